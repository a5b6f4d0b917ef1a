// SPDX-License-Identifier: Apache-2.0
//
// Every kind of problem on the simulated device, by the doubles of MIOpen 2 and 3, in all layouts
// and types, against the problem's truth.
#include <set>

#include <gmock/gmock.h>

#include "Problems.h"

using namespace dovetail;
using namespace dovetail::test;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

namespace {

class Miopen : public OnDevice, public testing::WithParamInterface<int> {
protected:
  void SetUp() override { start(GetParam()); }
};

struct ConvolutionText {
  std::string type = "f32", x = "[2,4,6,5]", w = "[6,4,3,3]", y = "[2,6,6,5]";
  std::string kernel = "3,3", pads = "1,1,1,1", strides = "1,1", dilations = "1,1", group = "1";
  bool bias = false;
  std::string tail = ""; ///< ops behind it, from value %4 on, with what they read

  std::string text() const {
    std::string inputs = "%0: " + type + x + ", %1: const " + type + w;
    const std::string channels =
        y.substr(y.find(',') + 1, y.find(',', y.find(',') + 1) - y.find(',') - 1);
    if (bias)
      inputs += ", %2: const " + type + "[" + channels + "]";
    if (tail.find("%9") != std::string::npos)
      inputs += ", %9: " + type + y;
    std::string ops = "%3: " + type + y + " = conv@11(%0, %1" + (bias ? ", %2" : "") +
                      ") {dilations=[" + dilations + "], group=" + group + ", kernel_shape=[" +
                      kernel + "], pads=[" + pads + "], strides=[" + strides + "]}";
    std::string last = "%3";
    if (!tail.empty()) {
      ops += "; " + tail;
      last = tail.substr(tail.rfind(": " + type) - 2, 2);
    }
    return "problem(" + inputs + ") " + ops + " return(" + last + ")";
  }
  /// An op behind the convolution.
  std::string op(const std::string &result, const std::string &call) const {
    return result + ": " + type + y + " = " + call;
  }
};

TEST_P(Miopen, Convolutions) {
  for (const std::string type : {"f32", "f16", "bf16"}) {
    ConvolutionText plain;
    plain.type = type;
    const auto names = check(plain.text());
    for (const char *name :
         {"convolution:immediate:late", "convolution:find:late",
          "convolution:immediate:winograd:late", "convolution:find:winograd:late"})
      for (const char *layout : {"", "acdb"})
        EXPECT_THAT(names, Contains(std::string(name) + " " + layout));
  }
}

TEST_P(Miopen, ConvolutionsOfAllForms) {
  ConvolutionText strided{.y = "[2,6,3,3]", .strides = "2,2"};
  check(strided.text());
  ConvolutionText dilated{.y = "[2,6,4,3]", .pads = "1,1,1,1", .dilations = "2,2"};
  check(dilated.text());
  ConvolutionText grouped{.w = "[6,2,3,3]", .group = "2"};
  check(grouped.text());
  ConvolutionText depthwise{.w = "[4,1,3,3]", .y = "[2,4,6,5]", .group = "4"};
  check(depthwise.text());
  ConvolutionText pointwise{.w = "[6,4,1,1]", .kernel = "1,1", .pads = "0,0,0,0"};
  const auto names = check(pointwise.text());
  EXPECT_THAT(names, testing::Not(Contains(HasSubstr("winograd"))));
  ConvolutionText line{.x = "[2,4,9]",
                       .w = "[6,4,3]",
                       .y = "[2,6,9]",
                       .kernel = "3",
                       .pads = "1,1",
                       .strides = "1",
                       .dilations = "1"};
  EXPECT_THAT(check(line.text()), Contains("convolution:immediate:late acb"));
  ConvolutionText volume{.x = "[1,3,4,5,4]",
                         .w = "[2,3,3,3,3]",
                         .y = "[1,2,4,5,4]",
                         .kernel = "3,3,3",
                         .pads = "1,1,1,1,1,1",
                         .strides = "1,1,1",
                         .dilations = "1,1,1"};
  EXPECT_THAT(check(volume.text()), Contains("convolution:immediate:late acdeb"));
  // Nothing is read behind the image's end but where windows do not get to.
  ConvolutionText uneven{.x = "[2,4,6,6]", .y = "[2,6,3,3]", .pads = "1,1,0,0", .strides = "2,2"};
  check(uneven.text());
}

TEST_P(Miopen, WhatFollowsAConvolution) {
  for (const std::string type : {"f32", "f16"}) {
    ConvolutionText form;
    form.type = type;
    form.bias = true;
    check(form.text());
    form.tail = form.op("%4", "relu@14(%3)");
    EXPECT_THAT(check(form.text()), AllOf(Contains("convolution:fusion:late "),
                                          Contains("convolution:fusion:late acdb")));
    form.tail = form.op("%4", "add@14(%3, %9)") + "; " + form.op("%5", "relu@14(%4)");
    EXPECT_THAT(check(form.text()), testing::Not(Contains(HasSubstr("fusion"))));
    form.bias = false;
    form.tail = form.op("%4", "sigmoid@13(%3)");
    check(form.text());
  }
}

TEST_P(Miopen, WithoutAFusedKernelTheCallsAreMadeApart) {
  ConvolutionText grouped{.w = "[6,2,3,3]", .group = "2", .bias = true};
  grouped.tail = grouped.op("%4", "relu@14(%3)");
  const std::string text = grouped.text();
  const uint64_t before = device::simulatedCount("rocm", "library calls");
  for (const Candidate &candidate : propose(text).candidates)
    if (candidate.algorithm == "convolution:fusion:late" && candidate.outputLayouts[0].empty())
      checkOne(*Problem::parse(text), candidate);
  EXPECT_EQ(device::simulatedCount("rocm", "library calls"), before + 2 * 3);
}

TEST_P(Miopen, FusedIsOneCall) {
  ConvolutionText form{.bias = true};
  form.tail = form.op("%4", "leaky_relu@16(%3) {alpha=0.1f}");
  const std::string text = form.text();
  const uint64_t before = device::simulatedCount("rocm", "library calls");
  for (const Candidate &candidate : propose(text).candidates)
    if (candidate.algorithm == "convolution:fusion:late" && candidate.outputLayouts[0].empty())
      checkOne(*Problem::parse(text), candidate);
  EXPECT_EQ(device::simulatedCount("rocm", "library calls"), before + 2);
}

TEST_P(Miopen, Activations) {
  for (const std::string op : {"relu@14(%0)", "sigmoid@13(%0)", "tanh@13(%0)", "softplus@1(%0)",
                               "abs@13(%0)", "leaky_relu@16(%0) {alpha=0.1f}",
                               "elu@6(%0) {alpha=0.5f}", "clip@6(%0) {max=0.5f, min=0.0}"}) {
    check("problem(%0: f32[2,3,4,5]) %1: f32[2,3,4,5] = " + op + " return(%1)");
    check("problem(%0: f16[7,9]) %1: f16[7,9] = " + op + " return(%1)");
  }
}

TEST_P(Miopen, Pools) {
  const std::string attributes =
      "dilations=[1,1], kernel_shape=[3,3], pads=[1,1,1,1], storage_order=0, strides=[2,2]}";
  for (const std::string type : {"f32", "f16"}) {
    const std::string image = "problem(%0: " + type + "[2,3,7,6]) %1: " + type;
    check(image + "[2,3,4,3] = max_pool@12(%0) {ceil_mode=0, " + attributes + " return(%1)");
    for (const char *counts : {"0", "1"})
      check(image + "[2,3,4,3] = average_pool@19(%0) {ceil_mode=0, count_include_pad=" + counts +
            ", dilations=[1,1], kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]} return(%1)");
    check(image + "[2,3,1,1] = global_average_pool@1(%0) return(%1)");
    check(image + "[2,3,1,1] = global_max_pool@1(%0) return(%1)");
    check("problem(%0: " + type + "[2,3,8]) %1: " + type +
          "[2,3,4] = max_pool@12(%0) {ceil_mode=0, dilations=[1], kernel_shape=[2], pads=[0,0], "
          "storage_order=0, strides=[2]} return(%1)");
  }
}

TEST_P(Miopen, Softmax) {
  for (const std::string type : {"f32", "f16"})
    for (const std::string op : {"softmax", "log_softmax"}) {
      for (const std::string axis : {"0", "1", "-1"})
        check("problem(%0: " + type + "[3,5,4]) %1: " + type + "[3,5,4] = " + op +
              "@13(%0) {axis=" + axis + "} return(%1)");
      check("problem(%0: " + type + "[3,5]) %1: " + type + "[3,5] = " + op +
            "@11(%0) {axis=1} return(%1)");
    }
}

TEST_P(Miopen, BatchNormalization) {
  for (const std::string type : {"f32", "f16"})
    for (const std::string shape : {"[2,3,4,5]", "[4,3]", "[2,3,6]"}) {
      const std::string vector = ": const " + type + "[3]";
      const std::string problem = "problem(%0: " + type + shape + ", %1" + vector + ", %2" +
                                  vector + ", %3" + vector + ", %4" + vector + ") %5: " + type +
                                  shape +
                                  " = batch_normalization@15(%0, %1, %2, %3, %4) {epsilon=1e-05f, "
                                  "momentum=0.9f, training_mode=0}";
      check(problem + " return(%5)");
      check(problem + "; %6: " + type + shape + " = relu@14(%5) return(%6)");
    }
}

TEST_P(Miopen, LayerNormalization) {
  for (const std::string type : {"f32", "f16", "bf16"}) {
    const std::string text = "problem(%0: " + type + "[3,4,8], %1: const " + type +
                             "[8], %2: const " + type + "[8]) %3: " + type +
                             "[3,4,8] = layer_normalization@17(%0, %1, %2) {axis=-1, "
                             "epsilon=1e-05f, stash_type=1} return(%3)";
    if (GetParam() >= 3) {
      check(text);
      continue;
    }
    const Proposal proposal = propose(text);
    ASSERT_EQ(proposal.candidates.size(), 1u);
    const Prepared prepared = prepare(*Problem::parse(text), proposal.candidates[0]);
    EXPECT_EQ(prepared.code, DVT_UNAVAILABLE);
    EXPECT_THAT(prepared.message, HasSubstr("MIOpen 2.16.0 has no layer normalisation"));
  }
}

TEST_P(Miopen, TakesNoMoreWorkspaceThanItIsGiven) {
  const Problem problem = *Problem::parse(ConvolutionText{}.text());
  for (Candidate candidate : provider->propose(rocmTarget(), problem).candidates) {
    SCOPED_TRACE(candidate.label());
    const bool mayTransform = candidate.numerics == "f32-winograd";
    Prepared prepared = prepare(problem, candidate);
    ASSERT_EQ(prepared.code, DVT_OK) << prepared.message;
    // The double's Winograd is the fastest and takes none.
    EXPECT_EQ(provider->functions().workspace_bytes(prepared.kernel) == 0, mayTransform);
    destroy(prepared);
    candidate.workspaceBytes = 0;
    prepared = prepare(problem, candidate);
    ASSERT_EQ(prepared.code, DVT_OK) << prepared.message;
    EXPECT_EQ(provider->functions().workspace_bytes(prepared.kernel), 0u);
    destroy(prepared);
  }
}

TEST_P(Miopen, FailuresCarryTheLibrarysText) {
  const std::string text = "problem(%0: f32[4]) %1: f32[4] = relu@14(%0) return(%1)";
  const Problem problem = *Problem::parse(text);
  const Prepared prepared = prepare(problem, propose(text).candidates.at(0));
  ASSERT_EQ(prepared.code, DVT_OK) << prepared.message;
  auto memory = device->allocate(16);
  ASSERT_TRUE(memory);
  dvt_tensor x{}, y{};
  const int64_t extents[] = {4};
  x.data = reinterpret_cast<void *>(memory->address());
  x.extents = extents;
  x.rank = 1;
  x.type = DVT_F32;
  x.memory = DVT_MEMORY_DEVICE;
  y = x;
  y.data = reinterpret_cast<void *>(memory->address() + (1 << 20)); // beside all blocks
  dvt_run_args args{};
  args.struct_size = sizeof args;
  args.input_count = args.output_count = 1;
  args.inputs = &x;
  args.outputs = &y;
  args.stream = stream->handle();
  dvt_error error{};
  EXPECT_EQ(provider->functions().run(prepared.kernel, &args, &error), DVT_FAILED);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("activation: miopenStatusUnknownError"), HasSubstr("(7)")));
  x.memory = DVT_MEMORY_HOST;
  EXPECT_EQ(provider->functions().run(prepared.kernel, &args, &error), DVT_BAD_INPUT);
  EXPECT_THAT(error.message, HasSubstr("in device memory only"));
  args.input_count = 2;
  EXPECT_EQ(provider->functions().run(prepared.kernel, &args, &error), DVT_BAD_INPUT);
  destroy(prepared);
}

TEST_P(Miopen, RefusesCandidatesThatItDidNotPropose) {
  const Problem problem = *Problem::parse(ConvolutionText{}.text());
  Candidate candidate = propose(ConvolutionText{}.text()).candidates.at(0);
  candidate.algorithm = "convolution:guess:late";
  EXPECT_EQ(prepare(problem, candidate).code, DVT_UNSUPPORTED);
  candidate = propose(ConvolutionText{}.text()).candidates.at(0);
  candidate.inputLayouts[1] = "acdb";
  EXPECT_EQ(prepare(problem, candidate).code, DVT_UNSUPPORTED);
}

INSTANTIATE_TEST_SUITE_P(, Miopen, testing::Values(2, 3),
                         [](const auto &info) { return "version" + std::to_string(info.param); });

} // namespace
