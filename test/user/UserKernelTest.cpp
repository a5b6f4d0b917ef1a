// SPDX-License-Identifier: Apache-2.0
//
// Tool chains one by one, and users' kernels compiled by them for devices that are not here.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>

#include "support/File.h"
#include "toolchain/ChildProcess.h"
#include "toolchain/SourceCompiler.h"
#include "toolchain/UserKernel.h"

namespace dovetail::toolchain {
namespace {

using testing::HasSubstr;

const std::string kKernels = DOVETAIL_SOURCE_DIR "/test/user/kernels/";
constexpr const char *kGelu =
    "problem(%0: f32[30,50]) %1: f32[30,50] = gelu@20(%0) {approximate=\"none\"} return(%1)";
constexpr const char *kRmsNorm =
    "problem(%0: f32[2,3,64], %1: const f32[64]) %2: f32[2,3,64] = rms_normalization@23(%0, %1) "
    "{axis=-1, epsilon=1e-05f, stash_type=1} return(%2)";

UserKernel kernelOf(const std::string &path) {
  auto kernel = UserKernel::read(path);
  EXPECT_TRUE(bool(kernel)) << kernel.error().message;
  return kernel ? std::move(*kernel) : UserKernel();
}

std::optional<KernelLaunch> launchOf(const UserKernel &kernel, const std::string &problem,
                                     std::string *why = nullptr, const char *device = "cuda",
                                     const char *architecture = "sm_90") {
  auto parsed = Problem::parse(problem);
  EXPECT_TRUE(bool(parsed)) << parsed.error().message;
  std::string reason;
  auto launch = kernel.launchFor(*parsed, device, architecture, reason);
  if (why)
    *why = reason;
  return launch;
}

/// A copy of a manifest's folder that a test may change.
class Copy {
public:
  Copy() : folder(TemporaryFolder::create()) {
    std::filesystem::copy(kKernels, folder->file("k"), std::filesystem::copy_options::recursive);
  }
  std::string path(const std::string &name) const { return folder->file("k/" + name); }
  /// Replaces `from`, which is in the file.
  void change(const std::string &name, const std::string &from, const std::string &to) const {
    std::string text = *readFile(path(name));
    size_t place = text.find(from);
    ASSERT_NE(place, std::string::npos);
    ASSERT_TRUE(bool(writeFile(path(name), text.replace(place, from.size(), to))));
  }

private:
  Expected<TemporaryFolder> folder;
};

TEST(Tools, VersionsCompare) {
  EXPECT_TRUE(isAtLeast("13.0", 12, 8));
  EXPECT_TRUE(isAtLeast("12.8", 12, 8));
  EXPECT_FALSE(isAtLeast("12.6", 12, 8));
  EXPECT_TRUE(isAtLeast("5.2.21153", 5, 2));
  EXPECT_FALSE(isAtLeast("", 1, 0));
}

TEST(Tools, EachIsFoundOrSaysWhatIsMissing) {
  for (const Tool &tool : Tools("").all()) {
    EXPECT_FALSE(tool.name.empty());
    EXPECT_EQ(tool.found(), !tool.version.empty()) << tool.name << ": " << tool.missing;
    EXPECT_EQ(tool.found(), !tool.path.empty()) << tool.name;
  }
}

TEST(Tools, FoldersComeFirstAndBrokenProgramsAreNamed) {
  auto folder = TemporaryFolder::create();
  ASSERT_TRUE(bool(folder));
  auto put = [&](const std::string &name, const std::string &script) {
    ASSERT_TRUE(bool(writeFile(folder->file(name), "#!/bin/sh\n" + script + "\n")));
    std::filesystem::permissions(folder->file(name), std::filesystem::perms::owner_all);
  };
  put("nvcc", "echo 'Cuda compilation tools, release 99.7, V99.7.1'");
  put("hipcc", "kill -SEGV $$");
  Tools tools(folder->file("."));
  EXPECT_EQ(tools.of(ToolKind::Nvcc).version, "99.7");
  const Tool &hipcc = tools.of(ToolKind::Hipcc);
  if (!hipcc.found()) {
    EXPECT_THAT(hipcc.missing, HasSubstr("hipcc tells no version: signal 11"));
  }
}

TEST(Tools, WhatLoadersSayIsNoPath) {
  ::setenv("LD_PRELOAD", "/gone.so", 1);
  const std::vector<Tool> tools = Tools("").all();
  ::unsetenv("LD_PRELOAD");
  for (const Tool &tool : tools) {
    EXPECT_THAT(tool.path, testing::Not(HasSubstr("ld.so")));
    EXPECT_THAT(tool.version, testing::Not(HasSubstr("/"))) << tool.name;
  }
}

TEST(Tools, OldOnesDoNotDo) {
  SourceRequest request{kKernels + "gelu.cu", "sm_100", {}, {}};
  auto compiled = compileSourceBy(ToolKind::Nvcc, {"nvcc", "12.6", "/nowhere/nvcc", ""}, request);
  ASSERT_FALSE(bool(compiled));
  EXPECT_EQ(compiled.error().kind, ErrorKind::Unavailable);
  EXPECT_THAT(compiled.error().message, HasSubstr("nvcc 12.6 is older than 12.8"));
}

TEST(UserKernel, LaunchesFollowFromTheProblem) {
  auto launch = launchOf(kernelOf(kKernels + "gelu.json"), kGelu);
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->blocks, (30 * 50 + 255) / 256);
  EXPECT_EQ(launch->threads, 256);
  using Kind = DeviceArgument::Kind;
  EXPECT_EQ(launch->arguments,
            (std::vector<DeviceArgument>{
                {Kind::Tensor, 0}, {Kind::Tensor, 1}, {Kind::Number, 0, 0, 1500}}));
  launch = launchOf(kernelOf(kKernels + "rms_norm.json"), kRmsNorm);
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->blocks, 6);
  EXPECT_EQ(launch->definitions, (std::vector<std::string>{"COLUMNS=64", "THREADS=128"}));
  EXPECT_EQ(launch->arguments[2], (DeviceArgument{Kind::Tensor, 2}));
  const float epsilon = 1e-5F;
  uint32_t bits = 0;
  memcpy(&bits, &epsilon, sizeof(bits));
  EXPECT_EQ(launch->arguments[3], (DeviceArgument{Kind::Number, 0, 0, int64_t(bits)}));
}

TEST(UserKernel, OtherProblemsAndTargetsAreRefused) {
  UserKernel kernel = kernelOf(kKernels + "gelu.json");
  std::string why;
  EXPECT_FALSE(launchOf(kernel, kGelu, &why, "rocm", "gfx942"));
  EXPECT_THAT(why, HasSubstr("not for rocm:gfx942"));
  EXPECT_FALSE(launchOf(kernel, kRmsNorm, &why));
  EXPECT_EQ(why, ""); // not a word about what has nothing to do with it
}

TEST(UserKernel, WorkInPlaceMustBeAllowed) {
  const std::string inPlace = "problem(%0: f32[30,50]) %1: f32[30,50] alias(0) = gelu@20(%0) "
                              "{approximate=\"none\"} return(%1)";
  EXPECT_TRUE(launchOf(kernelOf(kKernels + "gelu.json"), inPlace));
  Copy copy;
  copy.change("gelu.json", "\"in_place\": true", "\"in_place\": false");
  std::string why;
  EXPECT_FALSE(launchOf(kernelOf(copy.path("gelu.json")), inPlace, &why));
  EXPECT_THAT(why, HasSubstr("memory of operands"));
}

TEST(UserKernel, AttributesMustNotBeOverlooked) {
  Copy copy;
  copy.change("rms_norm.json", "{\"f32\": \"@epsilon\"}", "{\"f32\": 1e-6}");
  std::string why;
  EXPECT_FALSE(launchOf(kernelOf(copy.path("rms_norm.json")), kRmsNorm, &why));
  EXPECT_THAT(why, HasSubstr("attribute 'epsilon'"));
}

TEST(UserKernel, TheDigestIsOfAllFiles) {
  Copy copy;
  const std::string manifest = copy.path("rms_norm.json");
  std::string before = kernelOf(manifest).digest;
  EXPECT_EQ(before, kernelOf(kKernels + "rms_norm.json").digest);
  copy.change("rms_norm.h", "x * x", "x * x * 1");
  std::string after = kernelOf(manifest).digest;
  EXPECT_NE(before, after);
  copy.change("rms_norm.json", "\"threads\": 128", "\"threads\": 256");
  EXPECT_NE(after, kernelOf(manifest).digest);
  // However the header is named.
  for (const char *include : {"#  include \"rms_norm.h\"", "#\tinclude\"rms_norm.h\""}) {
    Copy other;
    other.change("rms_norm.cu", "#include \"rms_norm.h\"", include);
    before = kernelOf(other.path("rms_norm.json")).digest;
    other.change("rms_norm.h", "x * x", "x * x * 1");
    EXPECT_NE(before, kernelOf(other.path("rms_norm.json")).digest) << include;
  }
}

TEST(UserKernel, MacrosOfRealNumbersStayReal) {
  Copy copy;
  copy.change("rms_norm.json", "\"THREADS\": 128", "\"A\": 2.0, \"B\": 0.5, \"C\": \"@epsilon\"");
  auto launch = launchOf(kernelOf(copy.path("rms_norm.json")), kRmsNorm);
  ASSERT_TRUE(launch);
  EXPECT_THAT(launch->definitions, testing::IsSupersetOf({"A=2.0", "B=0.5", "COLUMNS=64"}));
}

/// By one of the compilers of CUDA C++.
class CudaCompiler : public testing::TestWithParam<ToolKind> {
protected:
  void SetUp() override {
    tool = Tools("").of(GetParam());
    if (!tool.found())
      GTEST_SKIP() << tool.name << ": " << tool.missing;
  }
  Tool tool;
};

TEST_P(CudaCompiler, GivesPtx) {
  for (const char *architecture : {"sm_80", "sm_90", "sm_100"}) {
    auto compiled = compileSourceBy(GetParam(), tool, {kKernels + "gelu.cu", architecture, {}, {}});
    ASSERT_TRUE(bool(compiled)) << compiled.error().message;
    std::string ptx(compiled->bytes.begin(), compiled->bytes.end());
    EXPECT_THAT(ptx, HasSubstr(".entry gelu("));
    EXPECT_THAT(ptx, HasSubstr(".target " + std::string(architecture)));
    EXPECT_EQ(compiled->tool, tool.description());
  }
}

TEST_P(CudaCompiler, SaysWhatIsWrong) {
  auto compiled = compileSourceBy(GetParam(), tool, {kKernels + "rms_norm.cu", "sm_90", {}, {}});
  ASSERT_FALSE(bool(compiled));
  EXPECT_EQ(compiled.error().kind, ErrorKind::BadInput);
  EXPECT_THAT(compiled.error().message, HasSubstr("rms_norm.cu does not compile for sm_90 with"));
  EXPECT_THAT(compiled.error().message, HasSubstr("identifier \"THREADS\" is undefined"));
}

TEST_P(CudaCompiler, HeadersAreFoundBesideTheSourceAndInTheToolkit) {
  auto folder = TemporaryFolder::create();
  ASSERT_TRUE(bool(folder));
  ASSERT_TRUE(bool(writeFile(folder->file("own.h"), "#define TWO 2\n")));
  ASSERT_TRUE(
      bool(writeFile(folder->file("half.cu"), "#include <cuda_fp16.h>\n#include \"own.h\"\n"
                                              "extern \"C\" __global__ void twice(__half *x) "
                                              "{ x[0] = __hmul(x[0], __float2half(TWO)); }\n")));
  auto compiled = compileSourceBy(GetParam(), tool, {folder->file("half.cu"), "sm_90", {}, {}});
  EXPECT_TRUE(bool(compiled)) << compiled.error().message;
}

INSTANTIATE_TEST_SUITE_P(Each, CudaCompiler, testing::Values(ToolKind::Nvrtc, ToolKind::Nvcc),
                         [](const auto &info) {
                           return info.param == ToolKind::Nvrtc ? "Nvrtc" : "Nvcc";
                         });

class CudaKernel : public testing::Test {
protected:
  void SetUp() override {
    if (auto compiler = compilerFor(tools, "sm_90"); !compiler)
      GTEST_SKIP() << compiler.error().message;
  }
  Expected<DeviceKernel> compile(const std::string &path, const std::string &problem) {
    UserKernel kernel = kernelOf(path);
    std::string why;
    auto launch = launchOf(kernel, problem, &why);
    if (!launch)
      return internalError("{}", why);
    return kernel.compile(tools, *launch, "sm_90");
  }
  void refuses(const Copy &copy, const std::string &says) {
    auto kernel = compile(copy.path("gelu.json"), kGelu);
    ASSERT_FALSE(bool(kernel));
    EXPECT_EQ(kernel.error().kind, ErrorKind::BadInput);
    EXPECT_THAT(kernel.error().message, HasSubstr(says));
  }
  Tools tools{""};
};

TEST_F(CudaKernel, HasImagesAndResources) {
  for (const auto &[file, problem] :
       {std::pair("gelu.json", kGelu), std::pair("rms_norm.json", kRmsNorm)}) {
    auto kernel = compile(kKernels + file, problem);
    ASSERT_TRUE(bool(kernel)) << kernel.error().message;
    const DeviceImage *ptx = kernel->find(DeviceImage::Kind::Ptx);
    ASSERT_TRUE(ptx);
    EXPECT_EQ(ptx->bytes.back(), 0);
    EXPECT_EQ(std::count(ptx->bytes.begin(), ptx->bytes.end(), 0), 1);
    auto again = DeviceKernel::parse(kernel->serialise());
    ASSERT_TRUE(bool(again));
    EXPECT_EQ(again->launches, kernel->launches);
    if (const DeviceImage *cubin = kernel->find(DeviceImage::Kind::Cubin)) {
      ASSERT_EQ(cubin->resources.size(), 1u);
      EXPECT_GT(cubin->resources[0].registers, 0u);
      EXPECT_EQ(cubin->resources[0].spillBytes, 0u);
      EXPECT_EQ(cubin->resources[0].sharedBytes >= 512, std::string(file) == "rms_norm.json");
    }
  }
}

TEST_F(CudaKernel, TheSameSourceGivesTheSameBytes) {
  auto first = compile(kKernels + "gelu.json", kGelu),
       second = compile(kKernels + "gelu.json", kGelu);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->serialise(), second->serialise());
}

TEST_F(CudaKernel, EntriesAndParametersAreChecked) {
  {
    Copy copy;
    copy.change("gelu.json", "\"entry\": \"gelu\"", "\"entry\": \"other\"");
    refuses(copy, "has no kernel 'other' (extern \"C\" __global__); it has gelu");
  }
  {
    Copy copy;
    copy.change("gelu.json", "\"in0\", ", "");
    refuses(copy, "takes 3 parameters; the manifest has 2 arguments");
  }
  {
    Copy copy;
    copy.change("gelu.json", "{\"i32\": ", "{\"f32\": ");
    refuses(copy, "parameter 2 of 'gelu'");
  }
  {
    Copy copy;
    copy.change("gelu.json", "{\"i32\": \"out0.elements\"}", "\"out0\"");
    refuses(copy, "hands over an address");
  }
}

/// HIP C++ is taken from the same source.
class HipKernel : public testing::Test {
protected:
  void SetUp() override {
    if (auto compiler = compilerFor(tools, "gfx90a"); !compiler)
      GTEST_SKIP() << compiler.error().message;
    copy.change("gelu.json", "\"gelu.cu\"", "\"gelu.cu\", \"language\": \"hip\"");
  }
  Expected<DeviceKernel> compile(const std::string &architecture) {
    UserKernel kernel = kernelOf(copy.path("gelu.json"));
    std::string why;
    auto launch = launchOf(kernel, kGelu, &why, "rocm", architecture.c_str());
    if (!launch)
      return internalError("{}", why);
    return kernel.compile(tools, *launch, architecture);
  }
  static std::string folders() {
    const char *path = std::getenv("DOVETAIL_VENDOR_PATH");
    return path ? path : "";
  }
  Copy copy;
  Tools tools{folders()};
};

TEST_F(HipKernel, HasACodeObjectAndResources) {
  auto kernel = compile("gfx90a");
  ASSERT_TRUE(bool(kernel)) << kernel.error().message;
  const DeviceImage *object = kernel->find(DeviceImage::Kind::Hsaco);
  ASSERT_TRUE(object);
  ASSERT_EQ(object->resources.size(), 1u);
  EXPECT_GT(object->resources[0].registers, 0u);
}

TEST_F(HipKernel, EntriesAreChecked) {
  copy.change("gelu.json", "\"entry\": \"gelu\"", "\"entry\": \"other\"");
  auto kernel = compile("gfx90a");
  ASSERT_FALSE(bool(kernel));
  EXPECT_THAT(kernel.error().message, HasSubstr("has no kernel 'other'"));
  EXPECT_THAT(kernel.error().message, HasSubstr("it has gelu"));
}

TEST_F(HipKernel, ACompilerThatFallsCostsTheKernelOnly) {
  auto kernel = compile("gfx942"); // for which hiprtc 5.2 crashes
  if (!kernel) {
    EXPECT_EQ(kernel.error().kind, ErrorKind::Unavailable) << kernel.error().message;
    EXPECT_THAT(kernel.error().message, HasSubstr("for gfx942: "));
  }
}

TEST(OffloadBundle, GivesItsCodeObject) {
  auto bundle = [](uint64_t offset, uint64_t size) {
    const std::string triple = "hipv4-amdgcn-amd-amdhsa--gfx90a";
    std::string text = "__CLANG_OFFLOAD_BUNDLE__";
    for (uint64_t number : {uint64_t(1), offset, size, uint64_t(triple.size())})
      text.append(reinterpret_cast<const char *>(&number), sizeof(number));
    text += triple + "CODE";
    return std::vector<uint8_t>(text.begin(), text.end());
  };
  const uint64_t end = bundle(0, 0).size();
  auto code = unbundled(bundle(end - 4, 4));
  ASSERT_TRUE(bool(code));
  EXPECT_EQ(std::string(code->begin(), code->end()), "CODE");
  EXPECT_FALSE(bool(unbundled(bundle(end - 4, 5))));
  EXPECT_FALSE(bool(unbundled(bundle(0, 0))));
  for (size_t cut = 24; cut < end - 4; ++cut) {
    auto bytes = bundle(end - 4, 4);
    bytes.resize(cut);
    EXPECT_FALSE(bool(unbundled(bytes)));
  }
  const std::vector<uint8_t> plain{1, 2, 3};
  EXPECT_EQ(*unbundled(plain), plain);
}

} // namespace
} // namespace dovetail::toolchain
