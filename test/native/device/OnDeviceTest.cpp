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
  bool run(const Loaded &loaded, const std::vector<dvt_tensor> &inputs,
           const std::vector<dvt_tensor> &outputs) {
    dvt_error error{};
    dvt_code code = tryRun(loaded, inputs, outputs, error);
    EXPECT_EQ(code, DVT_OK) << error.message;
    return code == DVT_OK;
  }
  dvt_code tryRun(const Loaded &loaded, std::vector<dvt_tensor> inputs,
                  std::vector<dvt_tensor> outputs, dvt_error &error) {
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
    dvt_code code = loaded.provider->functions().run(loaded.kernel, &args, &error);
    for (size_t i = 0; i < outputs.size(); ++i)
      EXPECT_TRUE(device->driver().copyToHost(results[i], memory[inputs.size() + i].address(),
                                              bytesOf(outputs[i]), stream->handle()));
    Status status = stream->synchronize();
    EXPECT_TRUE(status) << status.error().message;
    return status ? code : DVT_FAILED;
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

struct IndexCase {
  const char *op;             ///< on data of [3,5]
  std::vector<int64_t> shape; ///< of the indices
  const char *result;
  std::vector<int64_t> good, bad;
  const char *says;
};

const IndexCase kIndexCases[] = {
    {"gather@13(%0, %1) {axis=1}", {2}, "[3,2]", {-5, 4}, {0, 5}, "index 5 is outside [-5, 4]"},
    {"gather@13(%0, %1) {axis=0}", {2}, "[2,5]", {-3, 2}, {1, -4}, "index -4 is outside [-3, 2]"},
    {"gather_elements@13(%0, %1) {axis=0}",
     {1, 3},
     "[1,3]",
     {0, 2, -3},
     {0, 1, 3},
     "index 3 is outside [-3, 2]"},
    {"gather_nd@13(%0, %1) {batch_dims=0}",
     {2, 2},
     "[2]",
     {2, 4, -3, -5},
     {0, 0, 2, 5},
     "index 5 is outside [-5, 4]"},
};

TEST_P(OnDevice, IndicesThatPointNowhereAreNoticed) {
  std::vector<float> data(15);
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = float(i);
  for (const IndexCase &one : kIndexCases)
    for (bool wide : {true, false}) {
      std::string shape;
      for (int64_t extent : one.shape)
        shape += fmt::format("{}{}", shape.empty() ? "" : ",", extent);
      Made made = make(fmt::format("problem(%0: f32[3,5], %1: {}[{}]) %2: f32{} = {} return(%2)",
                                   wide ? "i64" : "i32", shape, one.result, one.op));
      Loaded loaded;
      load(*native(), made.problem, made.candidate, made.bytes, loaded);
      ASSERT_EQ(loaded.code, DVT_OK) << loaded.error.message;
      auto runWith = [&](const std::vector<int64_t> &indices, dvt_error &error) {
        std::vector<int32_t> narrow(indices.begin(), indices.end());
        std::vector<int64_t> extents{3, 5}, results, given = indices;
        for (const Extent &extent : made.problem.values[made.problem.outputs[0]].extents)
          results.push_back(*extent.staticValue());
        std::vector<float> result(15);
        void *at = wide ? static_cast<void *>(given.data()) : narrow.data();
        return tryRun(loaded,
                      {{data.data(), extents.data(), nullptr, 2, DVT_F32, DVT_MEMORY_DEVICE},
                       {at, one.shape.data(), nullptr, uint32_t(one.shape.size()),
                        wide ? DVT_I64 : DVT_I32, DVT_MEMORY_DEVICE}},
                      {{result.data(), results.data(), nullptr, uint32_t(results.size()), DVT_F32,
                        DVT_MEMORY_DEVICE}},
                      error);
      };
      dvt_error error{};
      EXPECT_EQ(runWith(one.good, error), DVT_OK) << one.op << ": " << error.message;
      EXPECT_EQ(runWith(one.bad, error), DVT_BAD_INPUT) << one.op;
      EXPECT_THAT(std::string(error.message), HasSubstr(one.says));
      EXPECT_EQ(runWith(one.good, error), DVT_OK) << "the device is as it was";
    }
}

TEST_P(OnDevice, Gathers) {
  CheckOptions options;
  options.low = -9;
  options.high = 8;
  check("problem(%0: f32[9,40], %1: i64[2,5]) %2: f32[2,5,40] = gather@13(%0, %1) {axis=0} "
        "return(%2)",
        options);
  check("problem(%0: f32[9,9], %1: i32[7,2]) %2: f32[7] = gather_nd@13(%0, %1) {batch_dims=0} "
        "return(%2)",
        options);
}

TEST_P(OnDevice, WhatWaitsIsNotRecorded) {
  ASSERT_TRUE(device->driver().hasGraphs());
  Made made = make("problem(%0: f32[9,40], %1: i64[5]) %2: f32[5,40] = gather@13(%0, %1) {axis=0} "
                   "return(%2)");
  Loaded loaded;
  load(*native(), made.problem, made.candidate, made.bytes, loaded);
  ASSERT_EQ(loaded.code, DVT_OK) << loaded.error.message;
  auto memory = device->allocate(8192);
  ASSERT_TRUE(memory);
  auto tensor = [&](std::vector<int64_t> &extents, dvt_type type) {
    return dvt_tensor{reinterpret_cast<void *>(memory->address()),
                      extents.data(),
                      nullptr,
                      uint32_t(extents.size()),
                      type,
                      DVT_MEMORY_DEVICE};
  };
  std::vector<int64_t> table{9, 40}, indices{5}, rows{5, 40};
  dvt_tensor inputs[] = {tensor(table, DVT_F32), tensor(indices, DVT_I64)};
  dvt_tensor output = tensor(rows, DVT_F32);
  dvt_run_args args{};
  args.struct_size = sizeof args;
  args.input_count = 2;
  args.output_count = 1;
  args.inputs = inputs;
  args.outputs = &output;
  args.workspace = reinterpret_cast<void *>(memory->address() + 4096);
  args.workspace_bytes = 4096;
  args.stream = stream->handle();
  ASSERT_TRUE(device->driver().beginCapture(stream->handle()));
  dvt_error error{};
  EXPECT_EQ(native()->functions().run(loaded.kernel, &args, &error), DVT_UNSUPPORTED);
  EXPECT_THAT(std::string(error.message), HasSubstr("cannot be recorded"));
  EXPECT_TRUE(device->endCapture(*stream)) << "nothing was spoilt";
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
