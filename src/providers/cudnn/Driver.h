// SPDX-License-Identifier: Apache-2.0
//
// The CUDA driver as cuDNN sees it in this process. cuDNN opens libcuda.so.1 by name whenever it
// compiles a kernel. Where the machine has none, propose and compile load a stand-in first, which
// takes kernels and runs none (compile-driver/); prepare and run never do, and do not take the
// stand-in for a driver.
#pragma once

#include <string>

namespace dovetail::cudnn {

/// Makes sure that cuDNN can compile here. Empty, or why it cannot.
std::string provideDriverForCompiling();

/// Whether there is a driver to run with: that of `file`, or the system's where it is empty. Empty,
/// or why there is none.
std::string findDriverForRunning(const std::string &file);

} // namespace dovetail::cudnn
