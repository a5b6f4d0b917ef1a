// SPDX-License-Identifier: Apache-2.0
//
// Runs device kernels in their host form: block after block, the threads of a block one after the
// other or, where they wait for each other, as contexts that take turns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "support/DeviceKernel.h"

namespace dovetail::test {

class HostExecutor {
public:
  /// BadInput where the image is damaged; Unavailable where no executable memory is to be had.
  static Expected<HostExecutor> load(const DeviceImage &image);
  ~HostExecutor();
  HostExecutor(HostExecutor &&other) noexcept;
  HostExecutor(const HostExecutor &) = delete;

  /// Runs a grid; `arguments` as HostEntry has them. An error where the launch does not fit the
  /// entry, or where some threads of a block end while others wait.
  Status launch(const std::string &entry, int64_t blocks, uint32_t threads, void *const *arguments,
                size_t argumentCount);

private:
  HostExecutor() = default;
  HostKernels kernels;
  void *memory = nullptr;
  size_t bytes = 0;
};

} // namespace dovetail::test
