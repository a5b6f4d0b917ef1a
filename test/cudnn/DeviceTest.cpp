// SPDX-License-Identifier: Apache-2.0
//
// Kernels of the provider planned, loaded and run with the double of cuDNN on the simulated device,
// and compared with plain loops: that calls are right in order, sizes and lifetimes, and that
// graphs mean what the problem does. It proves nothing about the library's own kernels.
#include <map>
#include <set>
#include <thread>

#include <gmock/gmock.h>

#include "DoubleFixture.h"
#include "device/Surroundings.h"

using namespace dovetail;
using namespace dovetail::test;
using testing::HasSubstr;

namespace {

/// By class of rounding: relative to the largest result, for sums of up to some tens of terms.
const std::map<std::string, double> kBounds = {
    {"f32", 1e-6},       {"f32-winograd", 1e-6}, {"f32-fft", 1e-6},
    {"tf32", 2e-3},      {"f16", 2e-3},          {"f16-winograd", 2e-3},
    {"f16-fft", 2e-3},   {"bf16", 1.6e-2},       {"bf16-winograd", 1.6e-2},
    {"bf16-fft", 1.6e-2}};

constexpr const char *kProduct =
    "problem(%0: f32[5,7], %1: const f32[7,6], %2: const f32[6]) %3: f32[5,6] = mat_mul@13(%0, "
    "%1); %4: f32[5,6] = add@14(%3, %2); %5: f32[5,6] = gelu@20(%4) {approximate=\"none\"} "
    "return(%5)";

std::string convolution(const std::string &type) {
  return "problem(%0: " + type + "[2,5,7,6], %1: const " + type + "[4,5,3,3], %2: const " + type +
         "[4], %3: " + type + "[2,4,7,6]) %4: " + type +
         "[2,4,7,6] = conv@11(%0, %1, %2) {dilations=[1,1], group=1, kernel_shape=[3,3], "
         "pads=[1,1,1,1], strides=[1,1]}; %5: " +
         type + "[2,4,7,6] = add@14(%4, %3); %6: " + type + "[2,4,7,6] = relu@14(%5) return(%6)";
}

class CudnnDevice : public CudnnDoubleFixture {
protected:
  /// Runs all there is for the problem, by graphs or by the older calls, and compares; gives the
  /// algorithms with their layouts.
  std::set<std::string> check(const std::string &text, bool isLegacy = false) {
    SCOPED_TRACE(text);
    const DeviceCase given(text);
    std::set<std::string> names;
    for (const Candidate &candidate : propose(given).candidates) {
      SCOPED_TRACE(candidate.label());
      if (candidate.algorithm.starts_with("legacy:") != isLegacy)
        continue;
      names.insert(candidate.algorithm + " " + candidate.outputLayouts[0]);
      const DeviceKernel kernel(device, *provider, target, given, candidate);
      EXPECT_EQ(kernel.code(), DVT_OK) << kernel.message();
      if (kernel.code() != DVT_OK)
        continue;
      if (isLegacy)
        EXPECT_LE(kernel.workspaceBytes(), candidate.workspaceBytes);
      else
        EXPECT_EQ(kernel.workspaceBytes(), candidate.workspaceBytes);
      std::string failure;
      const double worst = kernel.run(failure);
      EXPECT_GE(worst, 0) << failure;
      EXPECT_LE(worst, kBounds.at(candidate.numerics)) << candidate.numerics;
    }
    return names;
  }
  /// Why the first candidate for the product, compiled before, cannot be loaded.
  std::string refusalOf(const std::vector<uint8_t> &bytes) {
    const DeviceCase given(kProduct);
    const DeviceKernel kernel(device, *provider, target, given, propose(given).candidates.at(0),
                              bytes);
    EXPECT_NE(kernel.code(), DVT_OK);
    return kernel.message();
  }
  std::vector<uint8_t> compiledProduct() {
    const DeviceCase given(kProduct);
    const auto bytes = provider->compile(target, given.problem(), propose(given).candidates.at(0));
    EXPECT_TRUE(bytes) << bytes.error().message;
    return bytes ? *bytes : std::vector<uint8_t>();
  }
};

} // namespace

TEST_F(CudnnDevice, ConvolutionsOfEveryTypeAndLayout) {
  using testing::ElementsAre;
  EXPECT_THAT(check(convolution("f32")),
              ElementsAre("implicit-gemm:eng0 ", "implicit-gemm:eng0 acdb",
                          "implicit-gemm:eng1:k2=0 ", "implicit-gemm:eng1:k2=0 acdb",
                          "implicit-gemm:eng1:k2=1 ", "implicit-gemm:eng1:k2=1 acdb",
                          "implicit-gemm:eng5 ", "implicit-gemm:eng5 acdb"));
  check(convolution("f16"));
  check(convolution("bf16"));
  // Unequal pads, strides, dilations and groups; one spatial dimension, and three.
  check("problem(%0: f32[1,6,11,9], %1: const f32[4,3,3,2]) %2: f32[1,4,5,9] = conv@11(%0, %1) "
        "{dilations=[2,3], group=2, kernel_shape=[3,2], pads=[1,2,2,1], strides=[2,1]} return(%2)");
  check("problem(%0: f32[2,4,9], %1: const f32[6,4,3], %2: const f32[6]) %3: f32[2,6,4] = "
        "conv@11(%0, %1, %2) {dilations=[1], group=1, kernel_shape=[3], pads=[1,0], strides=[2]}; "
        "%4: f32[2,6,4] = tanh@13(%3) return(%4)");
  check("problem(%0: f32[1,2,3,4,5], %1: const f32[3,2,2,3,1]) %2: f32[1,3,2,4,5] = conv@11(%0, "
        "%1) {dilations=[1,1,1], group=1, kernel_shape=[2,3,1], pads=[0,1,0,0,1,0], "
        "strides=[1,1,1]} return(%2)");
}

TEST_F(CudnnDevice, ProductsAndAttention) {
  check(kProduct);
  check("problem(%0: f32[2,3,5,8], %1: f32[2,3,8,6], %2: f32[] {0.125}) %3: f32[2,3,5,6] = "
        "mat_mul@13(%0, %1); %4: f32[2,3,5,6] = mul@14(%3, %2) return(%4)");
  check("problem(%0: f16[2,3,5,8], %1: f16[8,6]) %2: f16[2,3,5,6] = mat_mul@13(%0, %1) return(%2)");
  check("problem(%0: f32[1,6,2,4], %1: f32[1,5,2,4]) %2: f32[1,2,6,4] = transpose@13(%0) "
        "{perm=[0,2,1,3]}; %3: f32[1,2,4,5] = transpose@13(%1) {perm=[0,2,3,1]}; %4: f32[1,2,6,5] "
        "= mat_mul@13(%2, %3) return(%4)");
  check("problem(%0: f32[6,5] strides[9,1], %1: f32[5,4]) %2: f32[6,4] = mat_mul@13(%0, %1) "
        "return(%2)");
  check("problem(%0: f16[2,5,16], %1: f16[2,6,8], %2: f16[2,6,8]) %3: f16[2,5,16] = "
        "attention@23(%0, %1, %2) {kv_num_heads=2, q_num_heads=4, scale=0.3f, is_causal=0, "
        "left_window_size=-1, qk_matmul_output_mode=0, right_window_size=-1, softcap=0.0} "
        "return(%3)");
}

TEST_F(CudnnDevice, PoolsAndNorms) {
  for (const std::string name : {"max_pool", "average_pool"})
    for (const std::string padding : {"0", "1"})
      check("problem(%0: f32[1,3,8,7]) %1: f32[1,3,4,4] = " + name +
            "@12(%0) {ceil_mode=0, count_include_pad=" + padding +
            ", dilations=[1,1], kernel_shape=[3,2], pads=[1,1,1,1], storage_order=0, "
            "strides=[2,2]} return(%1)");
  check("problem(%0: f16[2,3,8,7]) %1: f16[2,3,1,1] = global_average_pool@1(%0) return(%1)");
  check("problem(%0: f16[2,3,8], %1: const f16[8], %2: const f16[8]) %3: f16[2,3,8] = "
        "layer_normalization@17(%0, %1, %2) {axis=-1, epsilon=1e-05f, stash_type=1} return(%3)");
}

TEST_F(CudnnDevice, ElementWiseOpsAndReductions) {
  EXPECT_THAT(check("problem(%0: f32[2,3,4,5], %1: f32[3,1,1], %2: f32[2,3,4,5]) %3: f32[2,3,4,5] "
                    "= mul@14(%0, %1); %4: f32[2,3,4,5] = add@14(%3, %2) return(%4)"),
              testing::Contains("pointwise:eng9 acdb"));
  for (const std::string op : {"elu@6(%0) {alpha=0.7f}", "hard_swish@14(%0)", "mish@18(%0)",
                               "leaky_relu@16(%0) {alpha=0.1f}", "swish@24(%0) {alpha=1.5f}"})
    check("problem(%0: f16[3,5]) %1: f16[3,5] = " + op + " return(%1)");
  check("problem(%0: f32[4,5,6], %1: i64[2] {0,2}) %2: f32[5] = reduce_max@18(%0, %1) {keepdims=0, "
        "noop_with_empty_axes=0} return(%2)");
}

TEST_F(CudnnDevice, WhatNoEngineTakesIsSaid) {
  const Proposal proposal = provider->propose(
      target, *Problem::parse("problem(%0: f32[4,5,6]) %1: f32[4,5,6] = softmax@13(%0) {axis=1} "
                              "return(%1)"));
  ASSERT_TRUE(proposal.candidates.empty());
  EXPECT_THAT(proposal.refusals.at(0).reason, HasSubstr("no engine takes a reduction"));
}

TEST_F(CudnnDevice, TakesOtherMemoryInEachRun) {
  const DeviceCase first(kProduct, 1), second(kProduct, 2);
  const Candidate candidate = propose(first).candidates.at(0);
  const DeviceKernel kernel(device, *provider, target, first, candidate);
  ASSERT_EQ(kernel.code(), DVT_OK) << kernel.message();
  std::string failures[2];
  double errors[2] = {};
  // More sets of memory than a kernel remembers, and two threads at once.
  for (int i = 0; i < 20; ++i)
    EXPECT_LE(std::abs(kernel.run({i % 2 ? &second : &first, -1, false}, failures[0])),
              kBounds.at(candidate.numerics));
  std::thread other([&] { errors[1] = kernel.run({&second, -1, false}, failures[1]); });
  errors[0] = kernel.run({&first, -1, false}, failures[0]);
  other.join();
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_GE(errors[i], 0) << failures[i];
    EXPECT_LE(errors[i], kBounds.at(candidate.numerics));
  }
}

TEST_F(CudnnDevice, LeavesNothingBehind) {
  EXPECT_EQ(doubleObjects(), 0u);
  {
    const DeviceCase given(convolution("f32"));
    const Candidate candidate = propose(given).candidates.at(0);
    EXPECT_EQ(doubleObjects(), 0u);
    const DeviceKernel kernel(device, *provider, target, given, candidate);
    ASSERT_EQ(kernel.code(), DVT_OK) << kernel.message();
    EXPECT_EQ(doubleObjects(), 2u); // a plan and a handle
    std::string failure;
    EXPECT_GE(kernel.run(failure), 0) << failure;
    EXPECT_EQ(doubleObjects(), 3u); // and a variant pack
    EXPECT_GE(kernel.run(failure), 0) << failure;
    EXPECT_EQ(doubleObjects(), 4u); // another stream and other memory: a pack, and no handle
  }
  // The handle goes with the last kernel, while the device is still there.
  EXPECT_EQ(doubleObjects(), 0u);
  plugins.reset();
  EXPECT_EQ(doubleObjects(), 0u);
}

TEST_F(CudnnDevice, FreedMemoryIsNoticed) {
  const DeviceCase given(kProduct);
  const DeviceKernel kernel(device, *provider, target, given, propose(given).candidates.at(0));
  ASSERT_EQ(kernel.code(), DVT_OK) << kernel.message();
  std::string failure;
  EXPECT_LT(kernel.run({nullptr, -1, true}, failure), 0);
  EXPECT_THAT(failure, HasSubstr("running: CUDNN_STATUS_EXECUTION_FAILED"));
  EXPECT_THAT(failure, HasSubstr("freed"));
}

TEST_F(CudnnDevice, ResultsInPlaceOfOperandsAreNoticed) {
  const DeviceCase given("problem(%0: f32[3,5], %1: f32[3,5]) %2: f32[3,5] = add@14(%0, %1) "
                         "return(%2)");
  const DeviceKernel kernel(device, *provider, target, given, propose(given).candidates.at(0));
  ASSERT_EQ(kernel.code(), DVT_OK) << kernel.message();
  std::string failure;
  EXPECT_LT(kernel.run({nullptr, 1, false}, failure), 0);
  EXPECT_THAT(failure, HasSubstr("a result lies where another tensor does"));
}

TEST_F(CudnnDevice, PlansOfAnotherVersionDoNotLoad) {
  const std::vector<uint8_t> bytes = compiledProduct();
  const std::string planned = provider->version();
  const Surroundings newer("DOVETAIL_SIMULATED_CUDNN_VERSION", "92001");
  load();
  EXPECT_EQ(planned, "1+cuDNN-9.19.0");
  EXPECT_STREQ(provider->version().c_str(), "1+cuDNN-9.20.1");
  EXPECT_THAT(refusalOf(bytes), HasSubstr("loading the plan: "
                                          "CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH: "));
}

TEST_F(CudnnDevice, PlansThatTheLibraryRefusesSayWhy) {
  const std::vector<uint8_t> bytes = compiledProduct();
  {
    const Surroundings refusing("DOVETAIL_SIMULATED_CUDNN_REFUSES", "1");
    EXPECT_THAT(refusalOf(bytes),
                HasSubstr("loading the plan: CUDNN_STATUS_NOT_SUPPORTED: cudnnBackendFinalize: "
                          "this device does not run plans of engine 1"));
  }
  {
    const Surroundings other("DOVETAIL_SIMULATED_ARCHITECTURE", "sm_80");
    EXPECT_THAT(refusalOf(bytes), HasSubstr("for a device of version 900, this one has 800"));
  }
  EXPECT_THAT(refusalOf({'{', '}'}), HasSubstr("is no plan of this library"));
  EXPECT_THAT(refusalOf({bytes.begin(), bytes.begin() + 90}), HasSubstr("loading the plan"));
}

TEST_F(CudnnDevice, PlansMayWantMoreWorkspaceThanWasSaid) {
  const DeviceCase given(kProduct);
  const Candidate candidate = propose(given).candidates.at(0);
  const std::vector<uint8_t> bytes = compiledProduct();
  const Surroundings wanting("DOVETAIL_SIMULATED_CUDNN_WORKSPACE", "12345");
  const DeviceKernel kernel(device, *provider, target, given, candidate, bytes);
  ASSERT_EQ(kernel.code(), DVT_OK) << kernel.message();
  EXPECT_EQ(kernel.workspaceBytes(), 12345u);
  std::string failure;
  EXPECT_GE(kernel.run(failure), 0) << failure;
}

TEST_F(CudnnDevice, OlderCallsByEveryAlgorithm) {
  const std::set<std::string> names = check(convolution("f32"), true);
  EXPECT_THAT(names, testing::IsSupersetOf(
                         {"legacy:implicit_gemm ", "legacy:implicit_gemm acdb",
                          "legacy:implicit_precomp_gemm:tf32 acdb", "legacy:gemm ", "legacy:fft ",
                          "legacy:fft_tiling ", "legacy:winograd ", "legacy:winograd_nonfused ",
                          "legacy:late ", "legacy:find:late ", "legacy:late:tf32 acdb"}));
  EXPECT_EQ(names.count("legacy:fft acdb"), 0u);
  check(convolution("f16"), true);
  check("problem(%0: bf16[1,4,5,5], %1: const bf16[6,4,3,3]) %2: bf16[1,6,3,3] = conv@11(%0, %1) "
        "{dilations=[1,1], group=1, kernel_shape=[3,3], pads=[0,0,0,0], strides=[1,1]} return(%2)",
        true);
  check("problem(%0: f32[1,6,11,9], %1: const f32[4,3,3,2]) %2: f32[1,4,5,10] = conv@11(%0, %1) "
        "{dilations=[2,1], group=2, kernel_shape=[3,2], pads=[1,1,1,1], strides=[2,1]} return(%2)",
        true);
  check("problem(%0: f32[1,2,3,4,5], %1: const f32[3,2,2,3,1]) %2: f32[1,3,2,4,5] = conv@11(%0, "
        "%1) {dilations=[1,1,1], group=1, kernel_shape=[2,3,1], pads=[0,1,0,0,1,0], "
        "strides=[1,1,1]} return(%2)",
        true);
}

TEST_F(CudnnDevice, OlderCallsForWhatFollowsAConvolution) {
  for (const std::string type : {"f32", "f16"})
    for (const std::string bend : {"relu@14(%6)", "sigmoid@13(%6)", "tanh@13(%6)",
                                   "elu@6(%6) {alpha=0.7f}", "clip@13(%6, %4, %5)", "identity"}) {
      std::string text = "problem(%0: T[1,3,6,5], %1: const T[4,3,1,1], %2: const T[4], %3: "
                         "T[1,4,6,5]";
      const bool clips = bend.starts_with("clip");
      if (clips && type == "f16") // the truth has no literals of f16
        continue;
      text += clips ? ", %4: T[] {0}, %5: T[] {1.5}" : "";
      const std::string ops =
          " = conv@11(%0, %1, %2) {dilations=[1,1], group=1, kernel_shape=[1,1], "
          "pads=[0,0,0,0], strides=[1,1]}; ";
      const int first = clips ? 6 : 4;
      auto name = [&](int i) { return "%" + std::to_string(first + i); };
      text += ") " + name(0) + ": T[1,4,6,5]" + ops + name(1) + ": T[1,4,6,5] = add@14(" + name(0) +
              ", %3)";
      if (bend != "identity") {
        std::string call = bend;
        call.replace(call.find("%6"), 2, name(1));
        text += "; " + name(2) + ": T[1,4,6,5] = " + call;
      }
      text += " return(" + name(bend == "identity" ? 1 : 2) + ")";
      for (size_t at = 0; (at = text.find("T[", at)) != std::string::npos;)
        text.replace(at, 1, type);
      EXPECT_FALSE(check(text, true).empty()) << text;
    }
}

TEST_F(CudnnDevice, OlderCallsSayWhatTheyDoNotTake) {
  auto legacyOf = [&](const std::string &text) { return check(text, true).size(); };
  const std::string window =
      "{dilations=[1,1], group=1, kernel_shape=[3,3], pads=[0,0,1,1], strides=[1,1]}";
  EXPECT_EQ(legacyOf("problem(%0: f32[1,2,5,5], %1: const f32[3,2,3,3]) %2: f32[1,3,4,4] = "
                     "conv@11(%0, %1) " +
                     window + " return(%2)"),
            0u);
  EXPECT_EQ(legacyOf(kProduct), 0u);
}

TEST_F(CudnnDevice, OlderCallsKeepToTheWorkspaceOfThePlan) {
  const DeviceCase given(convolution("f32"));
  for (Candidate candidate : propose(given).candidates) {
    if (candidate.algorithm != "legacy:implicit_precomp_gemm" &&
        candidate.algorithm != "legacy:late")
      continue;
    candidate.workspaceBytes = 100;
    const DeviceKernel kernel(device, *provider, target, given, candidate, {});
    if (candidate.algorithm == "legacy:late") { // there is one that takes none
      EXPECT_EQ(kernel.code(), DVT_OK) << kernel.message();
      EXPECT_EQ(kernel.workspaceBytes(), 0u);
    } else {
      EXPECT_EQ(kernel.code(), DVT_UNSUPPORTED);
      EXPECT_THAT(kernel.message(), HasSubstr("takes 4096 bytes of workspace, the plan has 100"));
    }
  }
}

TEST_F(CudnnDevice, OlderVersionsHaveTheOlderCallsAlone) {
  const Surroundings old("DOVETAIL_SIMULATED_CUDNN_VERSION", "8907");
  load();
  EXPECT_EQ(provider->version(), "1+cuDNN-8.9.7");
  EXPECT_TRUE(check(convolution("f32")).empty());
  EXPECT_FALSE(check(convolution("f32"), true).empty());
  const Proposal product = provider->propose(target, *Problem::parse(kProduct));
  ASSERT_TRUE(product.candidates.empty());
  EXPECT_THAT(product.refusals.at(0).reason, HasSubstr("version 8.9.7 found, 9.8.0 or a later"));
}
