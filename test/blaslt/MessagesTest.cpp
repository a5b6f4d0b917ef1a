// SPDX-License-Identifier: Apache-2.0
//
// What the plug-ins say where something does not fit or is not there, and that the double objects
// to wrong calls.
#include <cstring>

#include <gmock/gmock.h>

#include "BlasltFixture.h"
#include "device/Surroundings.h"

using namespace dovetail;
using namespace dovetail::test;
using testing::HasSubstr;

namespace {

constexpr const char *kProduct =
    "problem(%0: f32[5,7], %1: const f32[7,6]) %2: f32[5,6] = mat_mul@13(%0, %1) return(%2)";
constexpr const char *kOther =
    "problem(%0: f32[5,8], %1: const f32[8,6]) %2: f32[5,6] = mat_mul@13(%0, %1) return(%2)";

class Messages : public BlasltFixture {
protected:
  std::string refusal(const std::string &text) { return refusal(text, target); }
  std::string refusal(const std::string &text, const Target &of) {
    Expected<Problem> problem = Problem::parse(text);
    EXPECT_TRUE(problem) << problem.error().message;
    const Proposal proposal = provider->propose(of, *problem);
    EXPECT_TRUE(proposal.candidates.empty());
    return proposal.refusals.empty() ? "" : proposal.refusals[0].reason;
  }
  Candidate firstFor(const DeviceCase &given) {
    const Proposal proposal = provider->propose(target, given.problem());
    EXPECT_FALSE(proposal.candidates.empty());
    return proposal.candidates.empty() ? Candidate() : proposal.candidates[0];
  }
  std::vector<uint8_t> compiled(const DeviceCase &given, const Candidate &candidate) {
    Expected<std::vector<uint8_t>> bytes = provider->compile(target, given.problem(), candidate);
    EXPECT_TRUE(bytes) << bytes.error().message;
    return bytes ? *bytes : std::vector<uint8_t>();
  }
};

} // namespace

TEST_P(Messages, SayWhatIsNotSupported) {
  EXPECT_THAT(refusal("problem(%0: f32[5,7]) %1: f32[5,7] = relu@14(%0) return(%1)"),
              HasSubstr("relu is no matrix product"));
  EXPECT_THAT(refusal("problem(%0: f64[5,7], %1: f64[7,6]) %2: f64[5,6] = mat_mul@13(%0, %1) "
                      "return(%2)"),
              HasSubstr("f32, f16 or bf16 are supported"));
  EXPECT_THAT(refusal("problem(%0: f16[5,7], %1: f16[7,6]) %2: f16[5,6] = mat_mul@13(%0, %1); %3: "
                      "f16[5,6] = gelu@20(%2) {approximate=\"none\"} return(%3)"),
              HasSubstr("only the form with tanh"));
  EXPECT_THAT(refusal("problem(%0: f32[N,7], %1: f32[7,6]) %2: f32[N,6] = mat_mul@13(%0, %1) "
                      "return(%2) where N in 1..9"),
              HasSubstr("known only at run time"));
  EXPECT_THAT(refusal("problem(%0: f32[33,5,3,4], %1: f32[33,6,3,4]) %2: f32[33,3,5,4] = "
                      "transpose@13(%0) {perm=[0,2,1,3]}; %3: f32[33,3,4,6] = transpose@13(%1) "
                      "{perm=[0,2,3,1]}; %4: f32[33,3,5,6] = mat_mul@13(%2, %3) return(%4)"),
              HasSubstr("do not lie at equal distances, and there are too many"));
  EXPECT_THAT(refusal("problem(%0: f32[5,7], %1: f32[7,6], %2: f32[5,1]) %3: f32[5,6] = "
                      "mat_mul@13(%0, %1); %4: f32[5,6] = add@14(%3, %2) return(%4)"),
              HasSubstr("an element for each column"));
}

TEST_P(Messages, SayWhatIsWrongWithTheTarget) {
  EXPECT_THAT(refusal(kProduct, Target::host(1)), HasSubstr("not cpu"));
  EXPECT_THAT(refusal(kProduct, describedTarget(isCuda() ? "rocm:gfx942" : "cuda:sm_90")),
              HasSubstr(isCuda() ? "serves devices of CUDA, not rocm"
                                 : "serves devices of ROCm, not cuda"));
  target.description = "";
  EXPECT_THAT(refusal(kProduct), HasSubstr("no description"));
  target.description = "[]";
  EXPECT_THAT(refusal(kProduct), HasSubstr("no JSON object"));
}

TEST_P(Messages, SayWhatIsWrongWithAKernel) {
  const DeviceCase given(kProduct), other(kOther);
  const Candidate candidate = firstFor(given);
  const std::vector<uint8_t> bytes = compiled(given, candidate);
  auto refused = [&](std::vector<uint8_t> altered, const char *says) {
    const DeviceKernel kernel(device, *provider, target, given, candidate, std::move(altered));
    EXPECT_EQ(kernel.code(), DVT_BAD_INPUT) << says;
    EXPECT_THAT(kernel.message(), HasSubstr(says));
  };
  refused({}, "without a kernel");
  refused({1, 2, 3}, "no kernel of this provider");
  refused(std::vector<uint8_t>(10000, bytes[0]), "no kernel of this provider");
  refused(compiled(other, firstFor(other)), "the kernel is of another product");
  for (size_t length = 1; length < bytes.size(); ++length) {
    const DeviceKernel kernel(device, *provider, target, given, candidate,
                              {bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length)});
    // The final line feed may be missing.
    EXPECT_EQ(kernel.code(), length + 1 == bytes.size() ? DVT_OK : DVT_BAD_INPUT) << length;
  }
  std::string text(bytes.begin(), bytes.end());
  text.replace(text.find(" 1\n"), 3, " 2\n");
  refused({text.begin(), text.end()}, "format 2, format 1 is supported; compile the model again");
}

TEST_P(Messages, SayWhichCandidateIsNone) {
  const DeviceCase given(kProduct);
  const std::vector<uint8_t> bytes = compiled(given, firstFor(given));
  auto refused = [&](auto alter) {
    Candidate candidate = firstFor(given);
    alter(candidate);
    const DeviceKernel kernel(device, *provider, target, given, candidate, bytes);
    EXPECT_EQ(kernel.code(), DVT_UNSUPPORTED);
    EXPECT_THAT(kernel.message(), HasSubstr("nothing is called " + candidate.algorithm));
    EXPECT_FALSE(provider->compile(target, given.problem(), candidate));
  };
  refused([](Candidate &candidate) { candidate.algorithm = "gemm:late:f64"; });
  refused([](Candidate &candidate) { candidate.inputLayouts[0] = "ba"; });
  refused([](Candidate &candidate) { candidate.workspaceBytes += 1; });
}

TEST_P(Messages, SayThatThereIsNoAlgorithm) {
  const Surroundings none("DOVETAIL_SIMULATED_LT_NO_ALGORITHM", "1");
  const DeviceCase given(kProduct);
  const DeviceKernel kernel(device, *provider, target, given, firstFor(given));
  EXPECT_EQ(kernel.code(), DVT_UNSUPPORTED);
  EXPECT_THAT(kernel.message(), HasSubstr("gemm:late: "));
  EXPECT_THAT(kernel.message(), HasSubstr("has no algorithm for this product on this device"));
  EXPECT_THAT(kernel.message(), HasSubstr(status("NOT_SUPPORTED")));
  EXPECT_EQ(doubleObjects(), 0u);
}

TEST_P(Messages, SayVersionsAsTheLibrariesDo) {
  const Surroundings none("DOVETAIL_SIMULATED_LT_NO_ALGORITHM", "1");
  const auto cases =
      isCuda() ? std::vector<std::pair<const char *, const char *>>{{"12103", "cuBLASLt 11.11.3 "},
                                                                    {"130100", "cuBLASLt 13.1.0 "}}
               : std::vector<std::pair<const char *, const char *>>{{"1300", "hipBLASLt 0.13.0 "},
                                                                    {"100200", "hipBLASLt 1.2.0 "}};
  for (const auto &[number, text] : cases) {
    const Surroundings version("DOVETAIL_SIMULATED_LT_VERSION", number);
    const DeviceCase given(kProduct);
    const DeviceKernel kernel(device, *provider, target, given, firstFor(given));
    EXPECT_THAT(kernel.message(), HasSubstr(text));
  }
}

TEST_P(Messages, SayThatTheLibraryIsTooOld) {
  const Surroundings old("DOVETAIL_SIMULATED_LT_VERSION", isCuda() ? "10200" : "500");
  load(DOVETAIL_BINARY_DIR "/lib/dovetail-test");
  const DeviceCase given(kProduct);
  const DeviceKernel kernel(device, *provider, target, given, firstFor(given));
  EXPECT_EQ(kernel.code(), DVT_UNAVAILABLE);
  // Of cuBLASLt the system may have one that will do, but for a device.
  EXPECT_THAT(kernel.message(),
              testing::AnyOf(HasSubstr(isCuda() ? "version 10.2.0 found, 11.0.0 or later is needed"
                                                : "version 0.5.0 found, 0.6.0 or later is needed"),
                             HasSubstr("opening the device: " + status(""))));
  EXPECT_EQ(doubleObjects(), 0u);
}

TEST_P(Messages, SayHowToGetTheLibrary) {
  load("/nonexistent");
  const dvt_library_info &library = provider->info().libraries[0];
  const DeviceCase given(kProduct);
  // Compiling works without it: it is for the machine that runs.
  const DeviceKernel kernel(device, *provider, target, given, firstFor(given));
  EXPECT_EQ(kernel.code(), DVT_UNAVAILABLE) << kernel.message();
  if (*library.missing) {
    EXPECT_THAT(library.missing, HasSubstr(isCuda() ? "nvidia-cublas" : "ROCm"));
    EXPECT_THAT(kernel.message(), HasSubstr(library.missing));
  } else { // that of the system, which has no device
    EXPECT_THAT(kernel.message(), HasSubstr("opening the device: " + status("")));
  }
}

TEST_P(Messages, AreOfTheLibraryThatIsHere) {
  const dvt_library_info &library = provider->info().libraries[0];
  EXPECT_STREQ(library.missing, "");
  EXPECT_STREQ(library.name, isCuda() ? "cuBLASLt" : "hipBLASLt");
  EXPECT_STREQ(library.version, isCuda() ? "13" : "1");
  EXPECT_THAT(library.path, HasSubstr("lib/dovetail-test"));
  const std::string withLibrary = provider->version();
  load("/nonexistent");
  EXPECT_EQ(withLibrary, provider->version()) << "any version runs a plan";
}

TEST_P(Messages, OfTheDoubleName) {
  const std::string prefix = isCuda() ? "cublasLt" : "hipblasLt";
  using Set = int(void *, int, const void *, size_t);
  auto *createHandle = ofDouble<int(void **)>((prefix + "Create").c_str());
  auto *destroyHandle = ofDouble<int(void *)>((prefix + "Destroy").c_str());
  auto *createLayout = ofDouble<int(void **, int, uint64_t, uint64_t, int64_t)>(
      (prefix + "MatrixLayoutCreate").c_str());
  auto *destroyLayout = ofDouble<int(void *)>((prefix + "MatrixLayoutDestroy").c_str());
  auto *set = ofDouble<Set>((prefix + "MatrixLayoutSetAttribute").c_str());
  void *handle = nullptr, *layout = nullptr;
  ASSERT_EQ(createHandle(&handle), 0);
  EXPECT_NE(createLayout(&layout, 0, 8, 4, 7), 0);
  EXPECT_THAT(doubleReason(), HasSubstr("8 x 4 with columns 7 apart"));
  EXPECT_NE(createLayout(&layout, 3, 8, 4, 8), 0);
  EXPECT_THAT(doubleReason(), HasSubstr("type 3"));
  ASSERT_EQ(createLayout(&layout, 0, 8, 4, 8), 0);
  const int64_t batch = 3;
  EXPECT_NE(set(layout, isCuda() ? 5 : 0, &batch, sizeof batch), 0);
  EXPECT_THAT(doubleReason(), HasSubstr("has 4 bytes, given 8"));
  EXPECT_NE(set(layout, 77, &batch, sizeof batch), 0);
  EXPECT_THAT(doubleReason(), HasSubstr("no attribute 77"));
  EXPECT_NE(set(handle, 5, &batch, sizeof batch), 0);
  EXPECT_THAT(doubleReason(), HasSubstr("no such layout"));
  EXPECT_EQ(destroyLayout(layout), 0);
  EXPECT_NE(destroyLayout(layout), 0);
  EXPECT_EQ(destroyHandle(handle), 0);
  EXPECT_NE(destroyHandle(handle), 0);
  EXPECT_THAT(doubleReason(), HasSubstr("no such handle"));
}

INSTANTIATE_TEST_SUITE_P(, Messages, testing::Values("cuda", "rocm"),
                         [](const auto &info) { return info.param; });
