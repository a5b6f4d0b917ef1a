// SPDX-License-Identifier: Apache-2.0
//
// Native's device kernels through the door: compiled, loaded by a driver and launched on a stream
// of the simulated device, against the reference provider.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "ClassBounds.h"
#include "NativeCheck.h"
#include "SimulatedDriver.h"
#include "device/DeviceDescription.h"
#include "support/DeviceKernel.h"

namespace dovetail::test {
namespace {

using namespace dovetail::device;
using testing::HasSubstr;

PluginSet loadNative(const std::string &drivers) {
  PluginSet::Options options;
  options.folders = {DOVETAIL_BINARY_DIR "/lib/dovetail"};
  options.only = {"native"};
  options.deviceDrivers = drivers;
  return PluginSet::load(options);
}

class OnDevice : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    auto known = findDescription(isCuda() ? "cuda:sm_90" : "rocm:gfx942",
                                 {DOVETAIL_SOURCE_DIR "/src/device/descriptions"});
    ASSERT_TRUE(known) << known.error().message;
    target = known->target();
    device = openSimulated(GetParam());
    ASSERT_TRUE(device && native());
    auto made = device->createStream();
    ASSERT_TRUE(made);
    stream = std::move(*made);
  }
  bool isCuda() const { return GetParam() == "cuda"; }
  const Provider *native() {
    static const PluginSet plugins =
        loadNative("cuda=" + simulatedPath("cuda") + ":rocm=" + simulatedPath("rocm"));
    return plugins.find("native");
  }

  /// A problem's kernel by the first candidate, loaded.
  struct Loaded {
    Loaded() = default;
    Loaded(const Loaded &) = delete;
    ~Loaded() {
      if (kernel)
        provider->functions().destroy_kernel(kernel);
    }
    const Provider *provider = nullptr;
    dvt_kernel *kernel = nullptr;
    dvt_code code = DVT_OK;
    dvt_error error{};
  };
  void load(const Provider &provider, const Problem &problem, const Candidate &candidate,
            const std::vector<uint8_t> &bytes, Loaded &loaded) {
    loaded.provider = &provider;
    dvt_target view = target.view();
    std::vector<const char *> storage;
    dvt_candidate offered = candidate.view(storage);
    dvt_prepare_args args{};
    args.struct_size = sizeof args;
    args.kernel = bytes.data();
    args.kernel_bytes = bytes.size();
    args.threads = 1;
    loaded.code = provider.functions().prepare(provider.handle(), &view, ProblemView(problem),
                                               &offered, &args, &loaded.kernel, &loaded.error);
  }
  struct Made {
    Problem problem;
    Candidate candidate;
    std::vector<uint8_t> bytes;
  };
  Made make(const std::string &text) {
    auto problem = Problem::parse(text);
    EXPECT_TRUE(problem) << problem.error().message;
    Proposal proposal = native()->propose(target, *problem);
    EXPECT_FALSE(proposal.candidates.empty());
    auto bytes = native()->compile(target, *problem, proposal.candidates.front());
    EXPECT_TRUE(bytes) << bytes.error().message;
    return {*problem, proposal.candidates.front(), *bytes};
  }

  DeviceMemory upload(const void *data, uint64_t bytes) {
    auto memory = device->allocate(bytes);
    EXPECT_TRUE(memory) << memory.error().message;
    EXPECT_TRUE(device->driver().copyToDevice(memory->address(), data, bytes, stream->handle()));
    return std::move(*memory);
  }
  static uint64_t bytesOf(const dvt_tensor &tensor) {
    int64_t count = 1;
    for (uint32_t i = 0; i < tensor.rank; ++i)
      count *= tensor.extents[i];
    return dovetail::bytesOf(tensor.type, count);
  }
  /// Runs on operands that lie on the host, and brings the results back there.
  bool run(const Loaded &loaded, std::vector<dvt_tensor> inputs, std::vector<dvt_tensor> outputs) {
    std::vector<DeviceMemory> memory;
    std::vector<void *> results;
    for (std::vector<dvt_tensor> *tensors : {&inputs, &outputs})
      for (dvt_tensor &tensor : *tensors) {
        if (tensors == &outputs)
          results.push_back(tensor.data);
        memory.push_back(upload(tensor.data, bytesOf(tensor)));
        tensor.data = reinterpret_cast<void *>(memory.back().address());
      }
    auto workspace = device->allocate(loaded.provider->functions().workspace_bytes(loaded.kernel));
    dvt_run_args args{};
    args.struct_size = sizeof args;
    args.input_count = uint32_t(inputs.size());
    args.output_count = uint32_t(outputs.size());
    args.inputs = inputs.data();
    args.outputs = outputs.data();
    args.workspace = reinterpret_cast<void *>(workspace->address());
    args.workspace_bytes = loaded.provider->functions().workspace_bytes(loaded.kernel);
    args.stream = stream->handle();
    dvt_error error{};
    dvt_code code = loaded.provider->functions().run(loaded.kernel, &args, &error);
    EXPECT_EQ(code, DVT_OK) << error.message;
    for (size_t i = 0; i < outputs.size(); ++i)
      EXPECT_TRUE(device->driver().copyToHost(results[i], memory[inputs.size() + i].address(),
                                              bytesOf(outputs[i]), stream->handle()));
    Status status = stream->synchronize();
    EXPECT_TRUE(status) << status.error().message;
    return code == DVT_OK && status;
  }

  void check(const std::string &text, const CheckOptions &options) {
    auto problem = Problem::parse(text);
    ASSERT_TRUE(problem) << problem.error().message;
    Proposal proposal = native()->propose(target, *problem);
    ASSERT_FALSE(proposal.candidates.empty()) << text;
    for (const Candidate &candidate : proposal.candidates) {
      EXPECT_EQ(candidate.memory, DVT_MEMORY_DEVICE);
      auto bytes = native()->compile(target, *problem, candidate);
      ASSERT_TRUE(bytes) << candidate.label() << ": " << bytes.error().message;
      Loaded loaded;
      load(*native(), *problem, candidate, *bytes, loaded);
      ASSERT_EQ(loaded.code, DVT_OK) << candidate.label() << ": " << loaded.error.message;
      EXPECT_LE(native()->functions().workspace_bytes(loaded.kernel), candidate.workspaceBytes);
      checkRunner(
          *problem, candidate.label(), boundsOfClass(options, candidate.numerics),
          [&](const auto &inputs, const auto &outputs) { return run(loaded, inputs, outputs); });
    }
  }
  static CheckOptions loose() {
    CheckOptions options;
    options.low = -1;
    options.high = 1;
    options.relative = options.absolute = 1e-4;
    return options;
  }

  Target target;
  std::shared_ptr<Device> device;
  std::unique_ptr<Stream> stream;
};

const std::string kRelu = "problem(%0: f32[64,32]) %1: f32[64,32] = relu@14(%0) return(%1)";

TEST_P(OnDevice, ElementsAndRows) {
  check("problem(%0: f32[3,5,70], %1: const f32[5,1]) %2: f32[3,5,70] = add@14(%0, %1); %3: "
        "f32[3,5,70] = sigmoid@13(%2) return(%3)",
        loose());
  check("problem(%0: f32[4,300]) %1: f32[4,300] = softmax@13(%0) {axis=-1} return(%1)", loose());
  check("problem(%0: f32[2000]) %1: f32[] = reduce_sum@13(%0, _) {keepdims=0, "
        "noop_with_empty_axes=0} return(%1)",
        loose());
}

TEST_P(OnDevice, ProductsAndConvolutions) {
  check("problem(%0: f32[33,40], %1: const f32[40,50], %2: const f32[50]) %3: f32[33,50] = "
        "gemm@13(%0, %1, %2) {alpha=1.0, beta=1.0, transA=0, transB=0} return(%3)",
        loose());
  check("problem(%0: f32[1,6,9,11], %1: const f32[8,6,3,3]) %2: f32[1,8,9,11] = conv@22(%0, %1) "
        "{auto_pad=\"NOTSET\", dilations=[1,1], group=1, kernel_shape=[3,3], pads=[1,1,1,1], "
        "strides=[1,1]}; %3: f32[1,8,9,11] = relu@14(%2) return(%3)",
        loose());
}

TEST_P(OnDevice, ExtentsOfTheRun) {
  CheckOptions options = loose();
  options.bindings = {{{"N", 1}, {"S", 7}}, {{"N", 3}, {"S", 600}}};
  check("problem(%0: f32[N,S]) %1: f32[N,S] = softmax@13(%0) {axis=-1} return(%1)", options);
}

TEST_P(OnDevice, ModulesGoWithTheirKernels) {
  Made made = make(kRelu);
  uint64_t before = simulatedCount(GetParam(), "live modules");
  {
    Loaded loaded, other;
    load(*native(), made.problem, made.candidate, made.bytes, loaded);
    load(*native(), made.problem, made.candidate, made.bytes, other);
    EXPECT_EQ(simulatedCount(GetParam(), "live modules"), before + 2);
  }
  EXPECT_EQ(simulatedCount(GetParam(), "live modules"), before);
}

TEST_P(OnDevice, WhatIsNoKernelForItIsRefused) {
  Made made = make(kRelu);
  auto refuses = [&](const std::vector<uint8_t> &bytes, const char *says) {
    Loaded loaded;
    load(*native(), made.problem, made.candidate, bytes, loaded);
    EXPECT_EQ(loaded.code, DVT_BAD_INPUT);
    EXPECT_THAT(std::string(loaded.error.message), HasSubstr(says));
  };
  refuses({}, "are not a device kernel");
  std::vector<uint8_t> cut(made.bytes.begin(), made.bytes.end() - 1);
  refuses(cut, "are not a device kernel");
  auto kernel = DeviceKernel::parse(made.bytes);
  ASSERT_TRUE(kernel);
  DeviceKernel changed = *kernel;
  changed.launches[0].arguments[0].tensor = 9;
  refuses(changed.serialise(), "takes what its problem does not have");
  changed = *kernel;
  std::erase_if(changed.images,
                [](const DeviceImage &image) { return image.kind == DeviceImage::Kind::Host; });
  refuses(changed.serialise(), "compile the model for it");
  changed = *kernel;
  for (DeviceImage &image : changed.images)
    image.bytes = {1, 2, 3};
  Loaded loaded;
  load(*native(), made.problem, made.candidate, changed.serialise(), loaded);
  EXPECT_EQ(loaded.code, DVT_UNAVAILABLE);
  EXPECT_THAT(std::string(loaded.error.message), HasSubstr("it is not an image of kernels"));
}

TEST_P(OnDevice, GridsStayWithinWhatADeviceTakes) {
  // More elements than HIP can count threads, and far from what CUDA takes.
  constexpr int64_t kExtents[] = {65537, 65536};
  Made made = make("problem(%0: f32[N,65536]) %1: f32[N,65536] = relu@14(%0) return(%1)");
  Loaded loaded;
  load(*native(), made.problem, made.candidate, made.bytes, loaded);
  ASSERT_EQ(loaded.code, DVT_OK) << loaded.error.message;
  if (!isCuda()) {
    float x = 0;
    DeviceMemory memory = upload(&x, sizeof x);
    dvt_tensor in{reinterpret_cast<void *>(memory.address()),
                  kExtents,
                  nullptr,
                  2,
                  DVT_F32,
                  DVT_MEMORY_DEVICE};
    dvt_tensor out = in;
    dvt_run_args args{};
    args.struct_size = sizeof args;
    args.input_count = args.output_count = 1;
    args.inputs = &in;
    args.outputs = &out;
    args.stream = stream->handle();
    dvt_error error{};
    EXPECT_EQ(native()->functions().run(loaded.kernel, &args, &error), DVT_BAD_INPUT);
    EXPECT_THAT(std::string(error.message),
                HasSubstr("blocks of 256 threads for these extents; the device takes 16777215"));
  }
  // Extents that are known say so as they are compiled.
  auto large = Problem::parse("problem(%0: f16[65537,65536]) %1: f16[65537,65536] = relu@14(%0) "
                              "return(%1)");
  ASSERT_TRUE(large) << large.error().message;
  for (const Candidate &candidate : native()->propose(target, *large).candidates) {
    auto bytes = native()->compile(target, *large, candidate);
    EXPECT_EQ(bool(bytes), isCuda()) << candidate.label();
    if (!bytes) {
      EXPECT_THAT(bytes.error().message, HasSubstr("a launch on gfx942 takes 16777215"));
    }
  }
}

TEST_P(OnDevice, RunsAreChecked) {
  Made made = make(kRelu);
  Loaded loaded;
  load(*native(), made.problem, made.candidate, made.bytes, loaded);
  ASSERT_EQ(loaded.code, DVT_OK) << loaded.error.message;
  std::vector<float> x(64 * 32, -1);
  DeviceMemory memory = upload(x.data(), x.size() * 4);
  std::vector<int64_t> extents{64, 32};
  dvt_tensor in{reinterpret_cast<void *>(memory.address()),
                extents.data(),
                nullptr,
                2,
                DVT_F32,
                DVT_MEMORY_DEVICE};
  dvt_tensor out = in;
  dvt_run_args good{};
  good.struct_size = sizeof good;
  good.input_count = good.output_count = 1;
  good.inputs = &in;
  good.outputs = &out;
  good.stream = stream->handle();
  auto refuses = [&](const dvt_run_args &args, const char *says) {
    dvt_error error{};
    EXPECT_EQ(native()->functions().run(loaded.kernel, &args, &error), DVT_BAD_INPUT);
    EXPECT_THAT(std::string(error.message), HasSubstr(says));
  };
  dvt_run_args args = good;
  args.stream = nullptr;
  refuses(args, "without a stream");
  dvt_tensor onHost = in;
  onHost.memory = DVT_MEMORY_HOST;
  args = good;
  args.inputs = &onHost;
  refuses(args, "lies in other memory");
  dvt_tensor gone = in;
  gone.data = nullptr;
  args.inputs = &gone;
  refuses(args, "input 0 has no memory");
  // The driver's own words.
  args.inputs = &in;
  args.stream = reinterpret_cast<void *>(0x1234);
  dvt_error error{};
  EXPECT_EQ(native()->functions().run(loaded.kernel, &args, &error), DVT_FAILED);
  EXPECT_THAT(std::string(error.message), HasSubstr("launch of 'phase0'"));
  EXPECT_THAT(std::string(error.message), HasSubstr("there is no stream"));
}

TEST_P(OnDevice, WithoutADriverItSaysSo) {
  Made made = make(kRelu);
  static const PluginSet nowhere = loadNative("cuda=/nowhere/driver.so:rocm=/nowhere/driver.so");
  Loaded loaded;
  load(*nowhere.find("native"), made.problem, made.candidate, made.bytes, loaded);
  EXPECT_EQ(loaded.code, DVT_UNAVAILABLE);
  EXPECT_THAT(std::string(loaded.error.message), HasSubstr("/nowhere/driver.so"));
}

TEST_P(OnDevice, DivisorsOfTheRunAreNotForIt) {
  auto problem = Problem::parse("problem(%0: i32[8], %1: i32[8]) %2: i32[8] = div@14(%0, %1) "
                                "return(%2)");
  ASSERT_TRUE(problem);
  Proposal proposal = native()->propose(target, *problem);
  EXPECT_TRUE(proposal.candidates.empty());
  ASSERT_FALSE(proposal.refusals.empty());
  EXPECT_THAT(proposal.refusals.front().reason, HasSubstr("checked on the processor"));
}

INSTANTIATE_TEST_SUITE_P(, OnDevice, testing::Values("cuda", "rocm"),
                         [](const auto &info) { return info.param; });

} // namespace
} // namespace dovetail::test
