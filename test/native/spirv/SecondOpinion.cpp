// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "SecondOpinion.h"

#include <algorithm>
#include <cstring>

#include "DeviceCheck.h"

namespace dovetail::test {

namespace {

constexpr uint64_t kAlignment = 256, kGuardBytes = 256;
constexpr char kFill = 0x5a;

uint64_t bytesOf(const dvt_tensor &tensor) {
  int64_t count = 1;
  for (uint32_t i = 0; i < tensor.rank; ++i)
    count *= tensor.extents[i];
  return dovetail::bytesOf(tensor.type, count);
}

/// Places in one block of memory, with guards between them.
class Arena {
public:
  uint64_t place(uint64_t bytes) {
    const uint64_t offset = end;
    ranges.emplace_back(offset, bytes);
    end = (offset + bytes + kGuardBytes + kAlignment - 1) / kAlignment * kAlignment;
    return offset;
  }
  uint64_t bytes() const { return end; }
  /// What is between the places still is as it was filled.
  bool guardsStand(const char *memory) const {
    if (!std::all_of(memory, memory + kAlignment, [](char c) { return c == kFill; }))
      return false;
    for (size_t i = 0; i < ranges.size(); ++i) {
      const auto [offset, bytes] = ranges[i];
      const uint64_t next = i + 1 < ranges.size() ? ranges[i + 1].first : end;
      if (!std::all_of(memory + offset + bytes, memory + next, [](char c) { return c == kFill; }))
        return false;
    }
    return true;
  }

private:
  std::vector<std::pair<uint64_t, uint64_t>> ranges; ///< offsets and bytes
  uint64_t end = kAlignment;
};

} // namespace

SecondOpinion &SecondOpinion::get() {
  static SecondOpinion only;
  return only;
}

SecondOpinion::SecondOpinion() {
  auto opened = VulkanDevice::open();
  if (opened)
    device = std::move(*opened);
  else
    missing = opened.error().message;
}

bool SecondOpinion::covers(const std::string &algorithm) {
  return algorithm.find(":mma-") == algorithm.npos;
}

bool SecondOpinion::runs(const SpirvKernel &kernel) const {
  return device && (device->hasFloat16() ||
                    std::none_of(kernel.entries.begin(), kernel.entries.end(),
                                 [](const SpirvEntry &entry) { return entry.usesFloat16; }));
}

Status SecondOpinion::run(const DeviceKernel &kernel, const SpirvKernel &shaders,
                          const std::vector<dvt_tensor> &inputs,
                          const std::vector<dvt_tensor> &outputs) {
  std::vector<dvt_tensor> tensors = inputs;
  tensors.insert(tensors.end(), outputs.begin(), outputs.end());
  Arena arena;
  std::vector<uint64_t> offsets, addresses, argumentOffsets;
  std::vector<std::vector<int64_t>> extents;
  for (const dvt_tensor &tensor : tensors) {
    offsets.push_back(arena.place(bytesOf(tensor)));
    extents.emplace_back(tensor.extents, tensor.extents + tensor.rank);
  }
  const uint64_t workspace = arena.place(kernel.workspaceBytes),
                 data = arena.place(shaders.data.size());
  for (const DeviceLaunch &launch : kernel.launches)
    argumentOffsets.push_back(arena.place(8 * (launch.arguments.size() + 1)));
  auto memory = device->allocate(arena.bytes());
  if (!memory)
    return memory.takeError();
  std::memset(memory->host, kFill, arena.bytes());
  for (size_t i = 0; i < tensors.size(); ++i) {
    addresses.push_back(memory->address + offsets[i]);
    if (i < inputs.size() && bytesOf(tensors[i]) > 0)
      std::memcpy(memory->host + offsets[i], tensors[i].data, bytesOf(tensors[i]));
  }
  std::copy(shaders.data.begin(), shaders.data.end(), memory->host + data);
  Status status = Status::success();
  for (size_t i = 0; status && i < kernel.launches.size(); ++i) {
    const DeviceLaunch &launch = kernel.launches[i];
    std::vector<uint64_t> values =
        argumentsOf(launch, addresses, extents, memory->address + workspace);
    values.push_back(memory->address + data);
    std::memcpy(memory->host + argumentOffsets[i], values.data(), 8 * values.size());
    auto blocks = launch.blocks.evaluate(extents);
    if (!blocks)
      return blocks.takeError();
    if (*blocks > 0)
      status = device->run(shaders.entries[i].words, launch.entry, uint32_t(*blocks),
                           memory->address + argumentOffsets[i]);
  }
  if (status && !arena.guardsStand(memory->host))
    status = internalError("something was written beside the operands");
  for (size_t i = inputs.size(); i < tensors.size(); ++i)
    if (bytesOf(tensors[i]) > 0)
      std::memcpy(tensors[i].data, memory->host + offsets[i], bytesOf(tensors[i]));
  device->releaseMemory();
  return status;
}

} // namespace dovetail::test
