// SPDX-License-Identifier: Apache-2.0
#include "Problems.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <dlfcn.h>

#include "../device/simulated/Elements.h"
#include "PlainTruth.h"
#include "device/DeviceDescription.h"
#include "support/Layout.h"

namespace dovetail::test {
namespace {

std::vector<int64_t> extentsOf(const ProblemValue &value) {
  std::vector<int64_t> extents;
  for (const Extent &extent : value.extents)
    extents.push_back(extent.value());
  return extents;
}

/// Where each element, counted row-major, lies in a layout.
std::vector<size_t> placesOf(const std::vector<int64_t> &extents, const std::string &layout) {
  const Layout how = *Layout::parse(layout);
  size_t count = 1;
  for (int64_t extent : extents)
    count *= static_cast<size_t>(extent);
  std::vector<size_t> places(count);
  for (size_t element = 0; element < count; ++element) {
    std::vector<int64_t> index(extents.size());
    size_t rest = element;
    for (size_t i = extents.size(); i-- > 0; rest /= static_cast<size_t>(extents[i]))
      index[i] = static_cast<int64_t>(rest % static_cast<size_t>(extents[i]));
    places[element] = static_cast<size_t>(how.offset(extents, index));
  }
  return places;
}

/// A tensor on the device, and the bytes that it has here.
struct Operand {
  std::vector<int64_t> extents;
  std::vector<uint8_t> bytes;
  device::DeviceMemory memory;
  dvt_tensor tensor{};
};

Operand makeOperand(device::Device &device, const ProblemValue &value,
                    const std::vector<int64_t> &extents) {
  Operand operand;
  operand.extents = extents;
  size_t count = 1;
  for (int64_t extent : extents)
    count *= static_cast<size_t>(extent);
  operand.bytes.resize(count * providers::elementBytes(value.type));
  auto memory = device.allocate(operand.bytes.size());
  EXPECT_TRUE(memory) << memory.error().message;
  operand.memory = std::move(*memory);
  operand.tensor.data = reinterpret_cast<void *>(operand.memory.address());
  operand.tensor.rank = static_cast<uint32_t>(extents.size());
  operand.tensor.type = value.type;
  operand.tensor.memory = DVT_MEMORY_DEVICE;
  return operand;
}

/// Half a unit in the last place, of a number near 1.
double roundingOf(dvt_type type) {
  return type == DVT_F32 ? 0x1p-24 : type == DVT_F16 ? 0x1p-11 : 0x1p-8;
}

} // namespace

PluginSet loadMiopen(const std::string &vendorPath) {
  PluginSet::Options options;
  options.folders = {DOVETAIL_BINARY_DIR "/lib/dovetail"};
  options.vendorPath = vendorPath;
  options.deviceDrivers = "rocm=" + device::simulatedPath("rocm");
  options.only = {"miopen"};
  return PluginSet::load(options);
}

Target rocmTarget(const std::string &architecture) {
  auto known = device::findDescription("rocm:" + architecture,
                                       {DOVETAIL_SOURCE_DIR "/src/device/descriptions"});
  EXPECT_TRUE(known) << known.error().message;
  return known->target();
}

uint64_t liveObjects(int major) {
  void *library = dlopen((doubleFolder(major) + "/libMIOpen.so.1").c_str(), RTLD_NOW | RTLD_NOLOAD);
  auto *count =
      library ? reinterpret_cast<uint64_t (*)()>(dlsym(library, "dvtSimulatedObjects")) : nullptr;
  EXPECT_NE(count, nullptr);
  return count ? count() : 0;
}

void OnDevice::start(int version) {
  major = version;
  device = device::openSimulated("rocm");
  ASSERT_NE(device, nullptr);
  auto made = device->createStream();
  ASSERT_TRUE(made) << made.error().message;
  stream = std::move(*made);
  plugins = std::make_unique<PluginSet>(loadMiopen(doubleFolder(major)));
  provider = plugins->find("miopen");
  ASSERT_TRUE(provider) << (plugins->failures().empty() ? "" : plugins->failures()[0].reason);
  ASSERT_STREQ(provider->info().libraries[0].missing, "");
}

void OnDevice::TearDown() {
  plugins = nullptr;
  if (major != 0) {
    EXPECT_EQ(liveObjects(major), 0u);
  }
  stream = nullptr;
  device = nullptr;
}

Proposal OnDevice::propose(const std::string &text) {
  Expected<Problem> problem = Problem::parse(text);
  if (!problem) {
    ADD_FAILURE() << problem.error().message << "\n" << text;
    return {};
  }
  return provider->propose(rocmTarget(), *problem);
}

OnDevice::Prepared OnDevice::prepare(const Problem &problem, const Candidate &candidate) {
  ProblemView view(problem);
  std::vector<const char *> storage;
  const dvt_candidate given = candidate.view(storage);
  const Target target = rocmTarget();
  const dvt_target targetView = target.view();
  const std::vector<const void *> constants(problem.inputs.size());
  dvt_prepare_args args{};
  args.struct_size = sizeof args;
  args.constants = constants.data();
  dvt_error error{};
  Prepared prepared;
  prepared.code = provider->functions().prepare(provider->handle(), &targetView, view.get(), &given,
                                                &args, &prepared.kernel, &error);
  prepared.message = error.message;
  return prepared;
}

void OnDevice::checkOne(const Problem &problem, const Candidate &candidate) {
  SCOPED_TRACE(candidate.label());
  std::mt19937 random(5);
  std::uniform_real_distribution<double> uniform(0.25, 1);
  const bool isPositive = problem.text().find("batch_normalization") != std::string::npos;
  std::vector<PlainTensor> known;
  std::vector<Operand> inputs;
  auto &driver = device->driver();
  for (size_t i = 0; i < problem.inputs.size(); ++i) {
    const ProblemValue &value = problem.values[problem.inputs[i]];
    inputs.push_back(makeOperand(*device, value, extentsOf(value)));
    Operand &operand = inputs.back();
    known.push_back({operand.extents, {}});
    for (size_t place : placesOf(operand.extents, candidate.inputLayouts[i])) {
      const double number = uniform(random) * (isPositive || random() % 2 ? 1 : -1);
      simulated::storeElement(operand.bytes.data(), value.type, place, number);
      known.back().data.push_back(simulated::loadElement(operand.bytes.data(), value.type, place));
    }
    ASSERT_TRUE(driver.copyToDevice(operand.memory.address(), operand.bytes.data(),
                                    operand.bytes.size(), stream->handle()));
  }
  const std::vector<PlainTensor> truth = plainTruth(problem, known);
  const ProblemValue &value = problem.values[problem.outputs[0]];
  Operand result = makeOperand(*device, value, extentsOf(value));
  const Prepared prepared = prepare(problem, candidate);
  ASSERT_EQ(prepared.code, DVT_OK) << prepared.message;
  const uint64_t workspaceBytes = provider->functions().workspace_bytes(prepared.kernel);
  EXPECT_LE(workspaceBytes, candidate.workspaceBytes);
  auto workspace = device->allocate(std::max<uint64_t>(workspaceBytes, 1));
  ASSERT_TRUE(workspace) << workspace.error().message;
  std::vector<dvt_tensor> operands;
  for (const Operand &operand : inputs) {
    operands.push_back(operand.tensor);
    operands.back().extents = operand.extents.data();
  }
  result.tensor.extents = result.extents.data();
  dvt_run_args args{};
  args.struct_size = sizeof args;
  args.input_count = static_cast<uint32_t>(operands.size());
  args.output_count = 1;
  args.inputs = operands.data();
  args.outputs = &result.tensor;
  args.workspace = workspaceBytes ? reinterpret_cast<void *>(workspace->address()) : nullptr;
  args.workspace_bytes = workspaceBytes;
  args.stream = stream->handle();
  dvt_error error{};
  for (int repeat = 0; repeat < 2; ++repeat)
    ASSERT_EQ(provider->functions().run(prepared.kernel, &args, &error), DVT_OK) << error.message;
  ASSERT_TRUE(driver.copyToHost(result.bytes.data(), result.memory.address(), result.bytes.size(),
                                stream->handle()));
  const Status done = stream->synchronize();
  ASSERT_TRUE(done) << done.error().message;
  destroy(prepared);
  double most = 1;
  for (double number : truth[0].data)
    most = std::max(most, std::abs(number));
  // The double sums in f64 and rounds what each of at most four calls leaves.
  const double bound = 4 * roundingOf(value.type) * most;
  const std::vector<size_t> places = placesOf(result.extents, candidate.outputLayouts[0]);
  for (size_t i = 0; i < places.size(); ++i)
    ASSERT_NEAR(simulated::loadElement(result.bytes.data(), value.type, places[i]),
                truth[0].data[i], bound)
        << "element " << i;
}

std::vector<std::string> OnDevice::check(const std::string &text) {
  SCOPED_TRACE(text);
  const Proposal proposal = propose(text);
  EXPECT_FALSE(proposal.candidates.empty())
      << (proposal.refusals.empty() ? "" : proposal.refusals[0].reason);
  const Problem problem = *Problem::parse(text);
  std::vector<std::string> names;
  for (const Candidate &candidate : proposal.candidates) {
    EXPECT_EQ(candidate.memory, DVT_MEMORY_DEVICE);
    EXPECT_GT(candidate.estimateMicros, 0);
    checkOne(problem, candidate);
    names.push_back(candidate.algorithm + " " + candidate.outputLayouts[0]);
  }
  return names;
}

} // namespace dovetail::test
