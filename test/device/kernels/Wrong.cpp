// SPDX-License-Identifier: Apache-2.0
//
// Kernels of Plain.cpp's names that go wrong, each in its way.
#include <cstdint>

#include "device/simulated/HostImage.h"

using simulated::Thread;

#define KERNEL extern "C" __attribute__((visibility("default")))

/// (x, y, count): y = -x.
KERNEL void relu(void *const *arguments, const Thread *thread) {
  int64_t i = int64_t(thread->block) * 128 + thread->thread;
  if (i < *static_cast<int64_t *>(arguments[2]))
    (*static_cast<float **>(arguments[1]))[i] = -(*static_cast<const float **>(arguments[0]))[i];
}
KERNEL const unsigned relu_arguments = 3, relu_without_barriers = 1;

/// (a, b, sum, count): one element too many.
KERNEL void add(void *const *arguments, const Thread *thread) {
  auto *a = *static_cast<const float **>(arguments[0]),
       *b = *static_cast<const float **>(arguments[1]);
  auto *sum = *static_cast<float **>(arguments[2]);
  int64_t i = int64_t(thread->block) * 128 + thread->thread;
  int64_t count = *static_cast<int64_t *>(arguments[3]);
  if (i < count)
    sum[i] = a[i] + b[i];
  if (i == count - 1)
    sum[count] = 0;
}
KERNEL const unsigned add_arguments = 4, add_without_barriers = 1;

/// (a, b, c, m, n, k): one thread leaves while the others wait for it.
KERNEL void mat_mul(void *const *, const Thread *thread) {
  if (thread->thread != 0)
    thread->barrier(thread->context);
}
KERNEL const unsigned mat_mul_arguments = 6;
