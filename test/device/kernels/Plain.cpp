// SPDX-License-Identifier: Apache-2.0
//
// Kernels for the simulated device: right ones, and such as go wrong. `<name>_arguments` says how
// many arguments there are; `<name>_without_barriers` that threads do not wait for each other.
#include <cstdint>

#include "device/simulated/HostImage.h"

using simulated::Thread;

#define KERNEL extern "C" __attribute__((visibility("default")))

namespace {

constexpr uint32_t kThreads = 128;

template <typename T> T argument(void *const *arguments, int index) {
  return *static_cast<T *>(arguments[index]);
}

} // namespace

/// (a, b, sum, count): sum = a + b, one element for each thread.
KERNEL void add(void *const *arguments, const Thread *thread) {
  auto *a = argument<const float *>(arguments, 0), *b = argument<const float *>(arguments, 1);
  auto *sum = argument<float *>(arguments, 2);
  int64_t i = int64_t(thread->block) * kThreads + thread->thread;
  if (i < argument<int64_t>(arguments, 3))
    sum[i] = a[i] + b[i];
}
KERNEL const unsigned add_arguments = 4, add_without_barriers = 1;

/// (in, out): out has each 128 elements of `in` the other way round.
KERNEL void reverse(void *const *arguments, const Thread *thread) {
  auto *in = argument<const float *>(arguments, 0);
  auto *out = argument<float *>(arguments, 1);
  auto *shared = static_cast<float *>(thread->shared);
  uint32_t first = thread->block * kThreads;
  shared[thread->thread] = in[first + thread->thread];
  thread->barrier(thread->context);
  out[first + thread->thread] = shared[kThreads - 1 - thread->thread];
}
KERNEL const unsigned reverse_arguments = 2;

/// (out, count): writes one element too many.
KERNEL void stray(void *const *arguments, const Thread *thread) {
  if (thread->thread == 0)
    argument<float *>(arguments, 0)[argument<int64_t>(arguments, 1)] = 1;
}
KERNEL const unsigned stray_arguments = 2, stray_without_barriers = 1;

/// (): one thread leaves while the others wait.
KERNEL void deadlock(void *const *, const Thread *thread) {
  if (thread->thread != 0)
    thread->barrier(thread->context);
}
KERNEL const unsigned deadlock_arguments = 0;

/// (x, y, count): y = max(x, 0).
KERNEL void relu(void *const *arguments, const Thread *thread) {
  auto *x = argument<const float *>(arguments, 0);
  auto *y = argument<float *>(arguments, 1);
  int64_t i = int64_t(thread->block) * kThreads + thread->thread;
  if (i < argument<int64_t>(arguments, 2))
    y[i] = x[i] > 0 ? x[i] : 0;
}
KERNEL const unsigned relu_arguments = 3, relu_without_barriers = 1;

/// (a, b, c, m, n, k): c[m,n] = a[m,k] * b[k,n], an element for each thread.
KERNEL void mat_mul(void *const *arguments, const Thread *thread) {
  auto *a = argument<const float *>(arguments, 0), *b = argument<const float *>(arguments, 1);
  auto *c = argument<float *>(arguments, 2);
  auto m = argument<int64_t>(arguments, 3), n = argument<int64_t>(arguments, 4),
       k = argument<int64_t>(arguments, 5);
  int64_t i = int64_t(thread->block) * kThreads + thread->thread;
  if (i >= m * n)
    return;
  float sum = 0;
  for (int64_t j = 0; j < k; ++j)
    sum += a[i / n * k + j] * b[j * n + i % n];
  c[i] = sum;
}
KERNEL const unsigned mat_mul_arguments = 6, mat_mul_without_barriers = 1;
