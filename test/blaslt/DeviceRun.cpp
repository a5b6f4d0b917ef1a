// SPDX-License-Identifier: Apache-2.0
#include "DeviceRun.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "device/DeviceDescription.h"
#include "providers/ProblemReader.h"
#include "support/Layout.h"
#include "support/Literal.h"

namespace dovetail::test {
namespace {

std::vector<int64_t> extentsOf(const ProblemValue &value) {
  std::vector<int64_t> extents;
  for (const Extent &extent : value.extents)
    extents.push_back(extent.value());
  return extents;
}

uint64_t bytesIn(const ProblemValue &value, const Layout &layout) {
  return bytesOf(value.type, layout.physicalElements(extentsOf(value)));
}

void append(std::vector<uint8_t> &bytes, dvt_type type, float number) {
  const size_t at = bytes.size();
  if (type == DVT_F32) {
    bytes.resize(at + sizeof number);
    std::memcpy(&bytes[at], &number, sizeof number);
    return;
  }
  const uint16_t half = type == DVT_F16 ? floatToHalf(number) : floatToBfloat(number);
  bytes.resize(at + sizeof half);
  std::memcpy(&bytes[at], &half, sizeof half);
}

/// An operand or result in device memory.
struct Placed {
  device::DeviceMemory memory;
  std::vector<int64_t> extents, strides; ///< none where it is dense
  uint64_t offset = 0;                   ///< bytes
  dvt_tensor tensor(dvt_type type) const {
    return {reinterpret_cast<void *>(memory.address() + offset),
            extents.data(),
            strides.empty() ? nullptr : strides.data(),
            static_cast<uint32_t>(extents.size()),
            type,
            DVT_MEMORY_DEVICE};
  }
};

/// The elements of a strided value where they belong, one element behind the beginning, as views
/// into larger tensors may lie; not-a-numbers between them.
std::vector<uint8_t> spread(const ProblemValue &value, const std::vector<int64_t> &extents,
                            const uint8_t *rowMajor) {
  const uint64_t element = bytesOf(value.type, 1);
  int64_t span = 1, count = 1;
  for (size_t i = 0; i < extents.size(); ++i) {
    span += (extents[i] - 1) * value.strides[i];
    count *= extents[i];
  }
  std::vector<uint8_t> bytes(static_cast<uint64_t>(span + 1) * element, 0xFF);
  for (int64_t number = 0; number < count; ++number) {
    int64_t at = 1, rest = number;
    for (size_t i = extents.size(); i-- > 0; rest /= extents[i])
      at += rest % extents[i] * value.strides[i];
    std::memcpy(&bytes[static_cast<uint64_t>(at) * element],
                rowMajor + static_cast<uint64_t>(number) * element, element);
  }
  return bytes;
}

Placed place(device::Device &device, const ProblemValue &value, const Layout &layout,
             const uint8_t *rowMajor) {
  Placed placed{{}, extentsOf(value), value.strides};
  std::vector<uint8_t> bytes(bytesIn(value, layout));
  if (rowMajor && value.strides.empty()) {
    reorder(value.type, placed.extents, Layout{}, rowMajor, layout, bytes.data());
  } else if (rowMajor) {
    bytes = spread(value, placed.extents, rowMajor);
    placed.offset = bytesOf(value.type, 1);
  }
  Expected<device::DeviceMemory> memory = device.allocate(bytes.size());
  EXPECT_TRUE(memory) << memory.error().message;
  if (!memory)
    return placed;
  placed.memory = std::move(*memory);
  if (rowMajor) {
    Status status =
        device.driver().copyToDevice(placed.memory.address(), bytes.data(), bytes.size(), nullptr);
    if (status)
      status = device.driver().synchronize(device::StreamHandle());
    EXPECT_TRUE(status) << status.error().message;
  }
  return placed;
}

} // namespace

Target describedTarget(const std::string &name) {
  auto known = device::findDescription(name, {DOVETAIL_SOURCE_DIR "/src/device/descriptions"});
  EXPECT_TRUE(known) << known.error().message;
  return known ? known->target() : Target();
}

DeviceCase::DeviceCase(const std::string &text, unsigned seed) {
  Expected<Problem> problem = Problem::parse(text);
  EXPECT_TRUE(problem) << problem.error().message << "\n" << text;
  if (!problem)
    return;
  parsed = std::move(*problem);
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-2, 2);
  std::vector<PlainTensor> plain;
  for (uint32_t input : parsed.inputs) {
    const ProblemValue &value = parsed.values[input];
    PlainTensor &tensor = plain.emplace_back(PlainTensor{extentsOf(value), {}});
    std::vector<uint8_t> &bytes = inputs.emplace_back();
    int64_t count = 1;
    for (int64_t extent : tensor.dims)
      count *= extent;
    for (int64_t i = 0; i < count; ++i) {
      append(bytes, value.type, uniform(random));
      tensor.data.push_back(
          providers::elementAsDouble(bytes.data(), value.type, static_cast<size_t>(i)));
    }
  }
  results = plainTruth(parsed, plain);
}

DeviceKernel::DeviceKernel(std::shared_ptr<device::Device> device, const Provider &provider,
                           const Target &target, const DeviceCase &given,
                           const Candidate &candidate)
    : DeviceKernel(std::move(device), provider, target, given, candidate, [&] {
        Expected<std::vector<uint8_t>> bytes = provider.compile(target, given.problem(), candidate);
        EXPECT_TRUE(bytes) << bytes.error().message;
        return bytes ? *bytes : std::vector<uint8_t>();
      }()) {}

DeviceKernel::DeviceKernel(std::shared_ptr<device::Device> onDevice, const Provider &provider,
                           const Target &target, const DeviceCase &given,
                           const Candidate &candidate, std::vector<uint8_t> kernelBytes)
    : device(std::move(onDevice)), provider(provider), given(given), candidate(candidate),
      bytes(std::move(kernelBytes)) {
  const ProblemView view(given.problem());
  std::vector<const char *> storage;
  const dvt_candidate asProposed = candidate.view(storage);
  const dvt_target targetView = target.view();
  std::vector<const void *> constants(given.problem().inputs.size());
  for (size_t i = 0; i < constants.size(); ++i)
    if (given.problem().values[given.problem().inputs[i]].constant)
      constants[i] = given.inputs[i].data();
  dvt_prepare_args args = {};
  args.struct_size = sizeof args;
  args.constants = constants.data();
  args.kernel = bytes.data();
  args.kernel_bytes = bytes.size();
  args.threads = 1;
  dvt_error error = {};
  EXPECT_TRUE(device->makeCurrent());
  prepareCode = provider.functions().prepare(provider.handle(), &targetView, view, &asProposed,
                                             &args, &kernel, &error);
  prepareMessage = error.message;
}

DeviceKernel::~DeviceKernel() {
  EXPECT_TRUE(device->makeCurrent());
  if (kernel)
    provider.functions().destroy_kernel(kernel);
}

uint64_t DeviceKernel::workspaceBytes() const {
  return provider.functions().workspace_bytes(kernel);
}

double DeviceKernel::run(const Options &options, std::string &failure) const {
  const DeviceCase &operands = options.operands ? *options.operands : given;
  const Problem &problem = given.problem();
  EXPECT_TRUE(device->makeCurrent());
  Expected<std::unique_ptr<device::Stream>> stream = device->createStream();
  EXPECT_TRUE(stream) << stream.error().message;
  std::vector<Placed> placed;
  std::vector<dvt_tensor> in;
  for (size_t i = 0; i < problem.inputs.size(); ++i) {
    const ProblemValue &value = problem.values[problem.inputs[i]];
    placed.push_back(place(*device, value, *Layout::parse(candidate.inputLayouts[i]),
                           operands.inputs[i].data()));
    in.push_back(placed.back().tensor(value.type));
  }
  for (size_t i = 0; i < in.size(); ++i)
    in[i].extents = placed[i].extents.data();
  const ProblemValue &result = problem.values[problem.outputs[0]];
  const Layout layout = *Layout::parse(candidate.outputLayouts[0]);
  const Placed output = place(*device, result, layout, nullptr);
  dvt_tensor out = output.tensor(result.type);
  if (options.shares >= 0)
    out.data = in[static_cast<size_t>(options.shares)].data;
  Expected<device::DeviceMemory> workspace =
      device->allocate(std::max<uint64_t>(workspaceBytes(), 1));
  EXPECT_TRUE(workspace) << workspace.error().message;
  dvt_run_args args = {};
  args.struct_size = sizeof args;
  args.input_count = static_cast<uint32_t>(in.size());
  args.output_count = 1;
  args.inputs = in.data();
  args.outputs = &out;
  args.workspace = reinterpret_cast<void *>(workspace->address());
  args.workspace_bytes = workspaceBytes();
  args.stream = (*stream)->handle();
  if (options.freesOperandsFirst) {
    placed.clear();
    device->trim();
  }
  dvt_error error = {};
  if (provider.functions().run(kernel, &args, &error) != DVT_OK) {
    failure = error.message;
    return -1;
  }
  std::vector<uint8_t> physical(bytesIn(result, layout)), dense(bytesIn(result, Layout{}));
  Status status = device->driver().copyToHost(physical.data(),
                                              reinterpret_cast<device::DeviceAddress>(out.data),
                                              physical.size(), (*stream)->handle());
  if (status)
    status = (*stream)->synchronize();
  if (!status) {
    failure = status.error().message;
    return -1;
  }
  reorder(result.type, extentsOf(result), layout, physical.data(), Layout{}, dense.data());
  const std::vector<double> &truth = operands.results[0].data;
  double largest = 1e-3, worst = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    const double off =
        std::abs(providers::elementAsDouble(dense.data(), result.type, i) - truth[i]);
    largest = std::max(largest, std::abs(truth[i]));
    worst = std::isnan(off) ? INFINITY : std::max(worst, off);
  }
  return worst / largest;
}

} // namespace dovetail::test
