// SPDX-License-Identifier: Apache-2.0
//
// A kernel for a device as compile gives it: images of code for one or several ways to load it, and
// the launches that together compute one problem, in order. Whoever runs it needs this file and a
// device's driver, but neither a compiler nor any knowledge of how the kernel was made. Grids and
// blocks have one dimension. Every argument of an entry takes eight bytes: an address in device
// memory or a signed number.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/Expected.h"

namespace dovetail {

/// Extents of the tensors of a problem: its inputs, then its outputs.
using TensorExtents = std::span<const std::vector<int64_t>>;

/// A number that may depend on run-time extents, as steps of a machine with a stack: operands
/// before operations, and one number left at the end.
class DeviceExpression {
public:
  enum class Op : uint8_t {
    Constant, ///< pushes `number`
    Extent,   ///< pushes dimension `number` of tensor `tensor`
    Add,
    Subtract,
    Multiply,
    Divide, ///< Divide and Remainder: both operands not negative
    Remainder,
    Minimum,
    Maximum
  };
  struct Step {
    Op op;
    uint32_t tensor = 0;
    int64_t number = 0;
    bool operator==(const Step &) const = default;
  };
  std::vector<Step> steps;

  static DeviceExpression constant(int64_t number) {
    return DeviceExpression({Step{Op::Constant, 0, number}});
  }
  /// The number where it depends on no extent.
  std::optional<int64_t> constantValue() const;
  /// BadInput where an extent is missing, something is divided by zero or 64 bits do not suffice.
  Expected<int64_t> evaluate(TensorExtents extents) const;
  /// "ceil"-free infix text, such as "(4*t0.1+255)/256".
  std::string text() const;
  bool operator==(const DeviceExpression &) const = default;

  DeviceExpression(std::vector<Step> steps = {}) : steps(std::move(steps)) {}
};

struct DeviceArgument {
  enum class Kind : uint8_t {
    Tensor,    ///< address of tensor `tensor`, numbered inputs before outputs
    Workspace, ///< address of the workspace
    Extent,    ///< dimension `dimension` of tensor `tensor`
    Number,    ///< `number`: a signed number, or the bits of a float in its lower bytes
  };
  Kind kind = Kind::Tensor;
  uint32_t tensor = 0, dimension = 0;
  int64_t number = 0;
  bool operator==(const DeviceArgument &) const = default;
};

struct DeviceLaunch {
  std::string entry;        ///< name of the function in every image
  DeviceExpression blocks;  ///< of the grid; nothing is to be launched where it is 0
  uint32_t threads = 0;     ///< of a block
  uint32_t sharedBytes = 0; ///< of a block, reserved by the code itself
  std::vector<DeviceArgument> arguments;
  bool operator==(const DeviceLaunch &) const = default;
};

/// What an entry takes of a processor; 0 where not known.
struct DeviceResources {
  uint32_t registers = 0;   ///< of a thread
  uint32_t spillBytes = 0;  ///< of a thread: registers that live in memory
  uint32_t stackBytes = 0;  ///< of a thread, spills included
  uint32_t sharedBytes = 0; ///< of a block
  bool operator==(const DeviceResources &) const = default;
};

struct DeviceImage {
  enum class Kind : uint32_t {
    Ptx = 1, ///< text with a final zero; a CUDA driver assembles it
    Cubin = 2,
    Hsaco = 3,
    Host = 4, ///< HostKernels: the same kernels for this processor, to be run by a simulated device
    Log = 5,  ///< no code: what the tool that `architecture` names said as it made another image
  };
  Kind kind = Kind::Ptx;
  std::string architecture; ///< "sm_90", "gfx90a"; of Host: "x86-64"
  std::vector<uint8_t> bytes;
  std::vector<DeviceResources> resources; ///< one for each launch, or none
  bool operator==(const DeviceImage &) const = default;
};

const char *kindName(DeviceImage::Kind kind);

struct DeviceKernel {
  std::vector<DeviceImage> images;
  std::vector<DeviceLaunch> launches;
  uint64_t workspaceBytes = 0; ///< in device memory, 256-byte aligned

  const DeviceImage *find(DeviceImage::Kind kind) const;
  /// Keeps what a tool said, if it said anything.
  void addLog(const std::string &tool, const std::string &text);
  std::vector<uint8_t> serialise() const;
  /// BadInput for bytes that serialise() of this version did not give, damaged ones included.
  static Expected<DeviceKernel> parse(std::span<const uint8_t> bytes);
  /// Whether `bytes` begin as a device kernel does.
  static bool recognises(std::span<const uint8_t> bytes);
};

/// One thread of a grid as kernels made for this processor see it. A simulated device calls an
/// entry once for each thread, those of a block so that each can wait for the others.
struct HostThread {
  uint32_t block = 0, thread = 0;
  void *shared = nullptr; ///< of the block, 64-byte aligned
  /// Returns when all threads of the block have called it.
  void (*barrier)(void *context) = nullptr;
  void *context = nullptr;
};
/// arguments[i] is the address of the i-th argument's eight bytes, as drivers take them.
using HostEntry = void (*)(void *const *arguments, const HostThread *thread);

/// What an image of kind Host holds: code that runs at any address and refers to nothing outside
/// itself, and where its entries are.
struct HostKernels {
  struct Entry {
    std::string name;
    uint64_t offset = 0; ///< in code
    uint32_t arguments = 0, threads = 0, sharedBytes = 0;
    bool barriers = false; ///< whether threads wait for each other at all
    bool operator==(const Entry &) const = default;
  };
  std::vector<Entry> entries;
  std::vector<uint8_t> code; ///< to be placed at a multiple of 64 bytes

  const Entry *find(std::string_view name) const;
  std::vector<uint8_t> serialise() const;
  /// BadInput as DeviceKernel::parse; every entry lies inside the code.
  static Expected<HostKernels> parse(std::span<const uint8_t> bytes);
};

} // namespace dovetail
