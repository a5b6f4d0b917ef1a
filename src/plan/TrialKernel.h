// SPDX-License-Identifier: Apache-2.0
//
// What a trial runs: the tensors of its problem, in every layout that candidates want, and prepared
// kernels with the memory bound to them, on the host and where it is a device's on that.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plan/TrialDevice.h"
#include "plan/TrialTensor.h"
#include "support/Plugin.h"

namespace dovetail::plan {

/// A tensor of a problem in memory, row-major and in every layout asked for.
struct TrialValue {
  const ProblemValue *value = nullptr;
  std::vector<int64_t> extents;
  int64_t elements = 0;
  std::vector<uint8_t> bytes; // row-major
  std::map<std::string, std::unique_ptr<GuardedBuffer>> inLayout;
  std::map<std::string, device::DeviceMemory> copies; ///< of inLayout, on the device

  void *as(const std::string &layoutText) {
    auto &slot = inLayout[layoutText];
    if (!slot) {
      auto layout = Layout::parse(layoutText);
      slot = std::make_unique<GuardedBuffer>(physicalBytes(layoutText));
      if (!value->strides.empty())
        scatter(value->type, extents, value->strides, bytes.data(), slot->data());
      else if (!layout || layout->isRowMajor())
        std::memcpy(slot->data(), bytes.data(), bytes.size());
      else
        reorder(value->type, extents, Layout{}, bytes.data(), *layout, slot->data());
    }
    return slot->data();
  }
  /// Never null.
  Expected<device::DeviceMemory *> onDevice(TrialDevice &device, const std::string &layoutText) {
    as(layoutText);
    device::DeviceMemory &slot = copies[layoutText];
    if (!slot.address()) {
      auto copy = device.copy(*inLayout[layoutText]);
      if (!copy)
        return copy.takeError();
      slot = std::move(*copy);
    }
    return &slot;
  }
  uint64_t physicalBytes(const std::string &layoutText) const {
    auto layout = Layout::parse(layoutText);
    if (!value->strides.empty())
      return bytesOf(value->type, stridedSpan(extents, value->strides));
    return bytesOf(value->type, layout ? layout->physicalElements(extents) : elements);
  }
};

/// A prepared candidate with its memory bound.
struct Prepared {
  const Provider *provider = nullptr;
  size_t trial = 0;
  std::unique_ptr<PackedBlocks> packed = std::make_unique<PackedBlocks>();
  dvt_kernel *kernel = nullptr;
  std::vector<dvt_tensor> inputs, outputs;
  std::vector<std::unique_ptr<GuardedBuffer>> outputMemory;
  std::unique_ptr<GuardedBuffer> workspace;
  TrialDevice *device = nullptr; ///< that it runs on; null: the host
  std::vector<device::DeviceMemory> outputCopies;
  device::DeviceMemory workspaceCopy;
  dvt_run_args args{};
  std::vector<double> samples;
  bool live = true;

  Prepared() = default;
  Prepared(Prepared &&other) noexcept { *this = std::move(other); }
  Prepared &operator=(Prepared &&other) noexcept {
    std::swap(provider, other.provider);
    std::swap(trial, other.trial);
    std::swap(packed, other.packed);
    std::swap(kernel, other.kernel);
    std::swap(inputs, other.inputs);
    std::swap(outputs, other.outputs);
    std::swap(outputMemory, other.outputMemory);
    std::swap(workspace, other.workspace);
    std::swap(device, other.device);
    std::swap(outputCopies, other.outputCopies);
    workspaceCopy.swap(other.workspaceCopy);
    std::swap(args, other.args);
    std::swap(samples, other.samples);
    std::swap(live, other.live);
    return *this;
  }
  ~Prepared() { drop(); }
  /// The kernel and what it packed; bindings stay.
  void drop() {
    if (kernel)
      provider->functions().destroy_kernel(kernel);
    kernel = nullptr;
    packed = std::make_unique<PackedBlocks>();
  }
  dvt_code run(dvt_error &error) { return provider->functions().run(kernel, &args, &error); }
  /// Waits for the device and brings outputs and workspace back, with what guards them.
  Status fetch() {
    for (size_t i = 0; i < outputCopies.size(); ++i)
      if (Status status = device->fetch(outputCopies[i], *outputMemory[i]); !status)
        return status;
    return device->fetch(workspaceCopy, *workspace);
  }
};

} // namespace dovetail::plan
