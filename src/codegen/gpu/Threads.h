// SPDX-License-Identifier: Apache-2.0
//
// What kernels for devices say of their threads until it is known where they will run: calls of
// functions without a body (those of matrix units among them, see
// schedule/contraction/MatrixUnit.h), and the address spaces of memory. One module so becomes PTX,
// AMDGPU code, and code for this processor that a simulated device runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace llvm {
class Module;
} // namespace llvm

namespace dovetail::codegen {

/// i32 () and void (): within the block, within the grid, and wait for all threads of the block.
inline constexpr const char *kThreadIndexFunction = "dovetail_thread_index";
inline constexpr const char *kBlockIndexFunction = "dovetail_block_index";
inline constexpr const char *kBarrierFunction = "dovetail_barrier";

/// LLVM's numbers for NVPTX and AMDGPU alike.
inline constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;

/// A function of the module that a grid of threads runs.
struct ThreadEntry {
  std::string name;
  uint32_t threads; ///< of a block
};

/// Puts the devices' own intrinsics in place of the calls and marks the entries as kernels.
void bindToNvptx(llvm::Module &module, const std::vector<ThreadEntry> &entries);
void bindToAmdgpu(llvm::Module &module, const std::vector<ThreadEntry> &entries);
/// Makes each entry a HostEntry (support/DeviceKernel.h). Gives for each the bytes of shared memory
/// that it takes beside those of the device's form, behind them at a multiple of 16.
std::vector<uint32_t> bindToHost(llvm::Module &module, const std::vector<ThreadEntry> &entries);

} // namespace dovetail::codegen
