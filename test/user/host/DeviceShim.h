// SPDX-License-Identifier: Apache-2.0
//
// As much of CUDA C++ as the kernels of this folder need, for this processor: what a kernel asks of
// its device comes from the thread that a simulated device runs. Blocks run one after the other, so
// that shared memory is a static variable.
#pragma once

#include <cmath>
#include <type_traits>
#include <utility>

#include "device/simulated/HostImage.h"

namespace shim {

struct Index {
  int x, y, z;
};

/// Threads of a block are switched between at barriers and nowhere else.
inline const simulated::Thread *&current() {
  static const simulated::Thread *thread = nullptr;
  return thread;
}

inline void barrier() {
  const simulated::Thread *own = current();
  own->barrier(own->context);
  current() = own;
}

template <typename... Parameters, size_t... I>
void call(void (*kernel)(Parameters...), void *const *arguments, std::index_sequence<I...>) {
  kernel(*static_cast<std::remove_reference_t<Parameters> *>(arguments[I])...);
}

template <typename... Parameters>
void enter(void (*kernel)(Parameters...), void *const *arguments, const simulated::Thread *thread) {
  current() = thread;
  call(kernel, arguments, std::index_sequence_for<Parameters...>());
}

} // namespace shim

#define __global__
#define __device__
#define __shared__ static
#define threadIdx (shim::Index{int(shim::current()->thread), 0, 0})
#define blockIdx (shim::Index{int(shim::current()->block), 0, 0})
#define blockDim (shim::Index{BLOCK_THREADS, 1, 1})
#define __syncthreads shim::barrier

inline float rsqrtf(float x) { return 1 / std::sqrt(x); }

#define HOST_SYMBOL extern "C" __attribute__((visibility("default")))
/// The entry of a simulated device for the kernel that was included as `name`_of_device.
#define HOST_FORM(name, count)                                                                     \
  HOST_SYMBOL void name(void *const *arguments, const simulated::Thread *thread) {                 \
    shim::enter(&name##_of_device, arguments, thread);                                             \
  }                                                                                                \
  HOST_SYMBOL const unsigned name##_arguments = count;
