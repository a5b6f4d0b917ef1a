// SPDX-License-Identifier: Apache-2.0
//
// The plug-in planning for devices that are not here: what it offers, that every offer compiles,
// the same in every process; and what it says where something is missing. There is no device in
// these tests, so nothing is run.
#include <algorithm>
#include <map>
#include <set>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/File.h"
#include "support/Plugin.h"

using namespace dovetail;

namespace {

constexpr const char *kConvolution =
    "problem(%0: f32[1,64,56,56], %1: const f32[64,64,3,3], %2: const f32[64]) %3: "
    "f32[1,64,56,56] = conv@11(%0, %1, %2) {dilations=[1,1], group=1, kernel_shape=[3,3], "
    "pads=[1,1,1,1], strides=[1,1]}; %4: f32[1,64,56,56] = relu@14(%3) return(%4)";
constexpr const char *kProduct =
    "problem(%0: f16[128,256], %1: const f16[256,512], %2: const f16[512]) %3: f16[128,512] = "
    "mat_mul@13(%0, %1); %4: f16[128,512] = add@14(%3, %2); %5: f16[128,512] = gelu@20(%4) "
    "{approximate=\"none\"} return(%5)";
constexpr const char *kPool =
    "problem(%0: f32[1,64,28,28]) %1: f32[1,64,14,14] = max_pool@12(%0) {ceil_mode=0, "
    "dilations=[1,1], kernel_shape=[3,3], pads=[1,1,1,1], storage_order=0, strides=[2,2]} "
    "return(%1)";
constexpr const char *kLayerNorm =
    "problem(%0: f16[64,768], %1: const f16[768], %2: const f16[768]) %3: f16[64,768] = "
    "layer_normalization@17(%0, %1, %2) {axis=-1, epsilon=1e-05f, stash_type=1} return(%3)";
constexpr const char *kAttention =
    "problem(%0: bf16[2,8,128,64], %1: bf16[2,8,128,64], %2: bf16[2,8,128,64]) %3: "
    "bf16[2,8,128,64] = attention@23(%0, %1, %2) {is_causal=0, left_window_size=-1, "
    "qk_matmul_output_mode=0, right_window_size=-1, softcap=0.0} return(%3)";

PluginSet load(const std::string &vendorPath) {
  PluginSet::Options options;
  options.folders = {std::string(DOVETAIL_BINARY_DIR) + "/lib/dovetail"};
  options.vendorPath = vendorPath;
  options.only = {"cudnn"};
  return PluginSet::load(options);
}

/// As the tree describes it.
Target deviceTarget(const std::string &architecture) {
  Target target;
  target.device = "cuda";
  target.architecture = architecture;
  const std::string file =
      std::string(DOVETAIL_SOURCE_DIR) + "/src/device/descriptions/cuda-" + architecture + ".json";
  Expected<std::string> text = readFile(file);
  EXPECT_TRUE(text) << (text ? "" : text.error().message);
  target.description = text ? *text : "";
  return target;
}

std::string refusalOf(const Provider &provider, const Target &target, const std::string &text) {
  const Proposal proposal = provider.propose(target, *Problem::parse(text));
  EXPECT_TRUE(proposal.candidates.empty());
  return proposal.refusals.empty() ? "" : proposal.refusals[0].reason;
}

std::string labelsOf(const Proposal &proposal) {
  std::string labels;
  for (const Candidate &candidate : proposal.candidates)
    labels += candidate.label() + " " + candidate.numerics + " " +
              std::to_string(candidate.workspaceBytes) + " " +
              std::to_string(candidate.estimateMicros) + "\n";
  return labels;
}

/// Whether the machine has a driver, and with it perhaps a device.
bool hasDriver() {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return driver && !dlsym(driver, "dvt_compile_only_driver");
}

class Cudnn : public testing::Test {
protected:
  void SetUp() override {
    plugins = std::make_unique<PluginSet>(load(DOVETAIL_VENDOR_DIRS));
    provider = plugins->find("cudnn");
    ASSERT_TRUE(provider) << (plugins->failures().empty() ? "" : plugins->failures()[0].reason);
    const std::string missing = provider->info().libraries[0].missing;
    if (!missing.empty())
      GTEST_SKIP() << missing;
  }
  /// What is on offer, each once and in device memory.
  Proposal propose(const Target &target, const std::string &text) {
    Expected<Problem> problem = Problem::parse(text);
    if (!problem) {
      ADD_FAILURE() << problem.error().message << "\n" << text;
      return {};
    }
    Proposal proposal = provider->propose(target, *problem);
    for (const Refusal &refusal : proposal.refusals)
      EXPECT_FALSE(refusal.reason.empty());
    EXPECT_FALSE(proposal.candidates.empty())
        << target.architecture << " " << text << "\n"
        << (proposal.refusals.empty() ? "" : proposal.refusals[0].reason);
    static const std::set<std::string> kTypes{"f32", "tf32", "f16", "bf16"};
    for (const Candidate &candidate : proposal.candidates) {
      EXPECT_EQ(candidate.memory, DVT_MEMORY_DEVICE);
      EXPECT_GT(candidate.estimateMicros, 0) << candidate.label();
      EXPECT_TRUE(kTypes.count(candidate.numerics.substr(0, candidate.numerics.find('-'))))
          << candidate.numerics;
    }
    // The older calls stand behind; they have tests of their own.
    std::erase_if(proposal.candidates,
                  [](const auto &each) { return each.algorithm.starts_with("legacy:"); });
    for (const Candidate &candidate : proposal.candidates)
      EXPECT_NE(candidate.algorithm.find(":eng"), std::string::npos) << candidate.algorithm;
    return proposal;
  }
  /// The plan for a candidate, which states the engine and settings of its name.
  void expectCompiles(const Target &target, const std::string &text, const Candidate &candidate) {
    Expected<std::vector<uint8_t>> kernel =
        provider->compile(target, *Problem::parse(text), candidate);
    ASSERT_TRUE(kernel) << candidate.label() << ": " << (kernel ? "" : kernel.error().message);
    const nlohmann::json plan =
        nlohmann::json::parse(kernel->begin(), kernel->end(), nullptr, false);
    ASSERT_TRUE(plan.is_object());
    const std::string name = candidate.algorithm.substr(candidate.algorithm.find(":eng") + 4);
    EXPECT_EQ(plan.at("engine").at("engineId"), std::stoi(name)) << candidate.algorithm;
    EXPECT_EQ(plan.at("GPUProfile").at("deviceVer"), std::stoi(target.architecture.substr(3)) * 10);
    // Knobs that the heuristics leave alone are in the plan, too.
    EXPECT_GE(plan.at("engine").at("knobChoices").size(),
              static_cast<size_t>(std::count(name.begin(), name.end(), '=')));
  }
  std::unique_ptr<PluginSet> plugins;
  const Provider *provider = nullptr;
};

} // namespace

TEST_F(Cudnn, ConvolutionsInBothLayoutsAndClasses) {
  for (const std::string architecture : {"sm_80", "sm_90", "sm_100"}) {
    const Target target = deviceTarget(architecture);
    const Proposal proposal = propose(target, kConvolution);
    std::map<std::string, int> layouts, classes;
    for (const Candidate &candidate : proposal.candidates) {
      EXPECT_TRUE(candidate.algorithm.starts_with("implicit-gemm:eng")) << candidate.algorithm;
      ++layouts[candidate.inputLayouts[0]];
      ++classes[candidate.numerics];
    }
    EXPECT_GT(layouts["acdb"], 0) << architecture;
    EXPECT_GT(layouts[""], 0) << architecture;
    // Products rounded to tf32, and those that are not.
    EXPECT_GT(classes["tf32"], 0) << architecture;
    EXPECT_GT(classes["f32"], 0) << architecture;
  }
}

TEST_F(Cudnn, EveryKindOfProblemCompiles) {
  const std::pair<const char *, const char *> problems[] = {{kConvolution, "implicit-gemm"},
                                                            {kProduct, "gemm"},
                                                            {kPool, "pooling"},
                                                            {kLayerNorm, "normalization"},
                                                            {kAttention, "attention"}};
  for (const std::string architecture : {"sm_80", "sm_90", "sm_100"}) {
    const Target target = deviceTarget(architecture);
    for (const auto &[text, family] : problems) {
      SCOPED_TRACE(architecture + " " + text);
      const Proposal proposal = propose(target, text);
      if (proposal.candidates.empty())
        continue;
      const Candidate &first = proposal.candidates.front();
      EXPECT_TRUE(first.algorithm.starts_with(std::string(family) + ":")) << first.algorithm;
      expectCompiles(target, text, first);
    }
  }
}

TEST_F(Cudnn, AllOffersForAConvolutionCompile) {
  const Target target = deviceTarget("sm_90");
  const Proposal proposal = propose(target, kConvolution);
  for (const Candidate &candidate : proposal.candidates)
    expectCompiles(target, kConvolution, candidate);
}

TEST_F(Cudnn, ResidualsAndActivationsAreTakenIn) {
  const Target target = deviceTarget("sm_90");
  for (const std::string type : {"f32", "f16", "bf16"}) {
    auto shaped = [&](const char *extents) { return type + extents; };
    const std::string image = shaped("[1,64,28,28]");
    propose(target, "problem(%0: " + image + ", %1: const " + shaped("[64,64,1,1]") +
                        ", %2: const " + shaped("[64]") + ", %3: " + image + ") %4: " + image +
                        " = conv@11(%0, %1, %2) {dilations=[1,1], group=1, kernel_shape=[1,1], "
                        "pads=[0,0,0,0], strides=[1,1]}; %5: " +
                        image + " = add@14(%4, %3); %6: " + image + " = relu@14(%5) return(%6)");
    propose(target, "problem(%0: " + image + ", %1: const " + shaped("[64,64,1,1]") +
                        ") %2: " + image + " = relu@14(%0); %3: " + image +
                        " = conv@11(%2, %1) {dilations=[1,1], group=1, kernel_shape=[1,1], "
                        "pads=[0,0,0,0], strides=[1,1]} return(%3)");
    const Proposal sum =
        propose(target, "problem(%0: " + image + ", %1: " + image + ") %2: " + image +
                            " = add@14(%0, %1); %3: " + image + " = relu@14(%2) return(%3)");
    EXPECT_TRUE(
        std::any_of(sum.candidates.begin(), sum.candidates.end(),
                    [](const auto &candidate) { return candidate.inputLayouts[0] == "acdb"; }));
  }
}

TEST_F(Cudnn, TheOlderCallsAreOnOffer) {
  const Target target = deviceTarget("sm_90");
  const Problem problem = *Problem::parse(kConvolution);
  const Proposal proposal = provider->propose(target, problem);
  std::map<std::string, std::string> classes;
  double slowestEngine = 0, fastest = 1e9;
  for (const Candidate &candidate : proposal.candidates) {
    if (!candidate.algorithm.starts_with("legacy:")) {
      slowestEngine = std::max(slowestEngine, candidate.estimateMicros);
      continue;
    }
    classes[candidate.algorithm] = candidate.numerics;
    fastest = std::min(fastest, candidate.estimateMicros);
    const Expected<std::vector<uint8_t>> kernel = provider->compile(target, problem, candidate);
    ASSERT_TRUE(kernel) << kernel.error().message;
    EXPECT_TRUE(kernel->empty()) << "any version runs it";
  }
  const std::map<std::string, std::string> wanted{{"legacy:implicit_gemm", "f32"},
                                                  {"legacy:implicit_precomp_gemm", "f32"},
                                                  {"legacy:implicit_precomp_gemm:tf32", "tf32"},
                                                  {"legacy:gemm", "f32"},
                                                  {"legacy:fft", "f32-fft"},
                                                  {"legacy:fft_tiling", "f32-fft"},
                                                  {"legacy:winograd", "f32-winograd"},
                                                  {"legacy:winograd_nonfused", "f32-winograd"},
                                                  {"legacy:late", "f32"},
                                                  {"legacy:late:tf32", "tf32"},
                                                  {"legacy:find:late", "f32"},
                                                  {"legacy:find:late:tf32", "tf32"}};
  EXPECT_EQ(classes, wanted);
  EXPECT_LT(fastest, slowestEngine * 100); // both are estimated
}

TEST_F(Cudnn, TheSameInEveryProcess) {
  const Target target = deviceTarget("sm_90");
  std::string texts[2];
  for (std::string &text : texts) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(ends[0]);
      const PluginSet fresh = load(DOVETAIL_VENDOR_DIRS);
      std::string labels;
      for (const char *problem : {kConvolution, kProduct})
        labels += labelsOf(fresh.find("cudnn")->propose(target, *Problem::parse(problem)));
      for (size_t done = 0; done < labels.size();) {
        const ssize_t count = write(ends[1], labels.data() + done, labels.size() - done);
        if (count <= 0)
          _exit(1);
        done += static_cast<size_t>(count);
      }
      _exit(0);
    }
    close(ends[1]);
    char buffer[4096];
    for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<size_t>(count));
    close(ends[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  EXPECT_FALSE(texts[0].empty());
  EXPECT_EQ(texts[0], texts[1]);
}

TEST_F(Cudnn, PreparingWithoutADriverSaysSo) {
  if (hasDriver())
    GTEST_SKIP() << "this machine has a CUDA driver";
  const Target target = deviceTarget("sm_90");
  const Problem problem = *Problem::parse(kConvolution);
  const Candidate candidate = propose(target, kConvolution).candidates.at(0);
  Expected<std::vector<uint8_t>> bytes = provider->compile(target, problem, candidate);
  ASSERT_TRUE(bytes);
  ProblemView view(problem);
  std::vector<const char *> storage;
  const dvt_candidate given = candidate.view(storage);
  const dvt_target targetView = target.view();
  const void *constants[3] = {};
  dvt_prepare_args args = {};
  args.struct_size = sizeof args;
  args.constants = constants;
  args.kernel = bytes->data();
  args.kernel_bytes = bytes->size();
  dvt_kernel *kernel = nullptr;
  dvt_error error = {};
  const dvt_provider_api &api = provider->functions();
  EXPECT_EQ(api.prepare(provider->handle(), &targetView, view, &given, &args, &kernel, &error),
            DVT_UNAVAILABLE);
  EXPECT_NE(std::string(error.message).find("no CUDA driver here"), std::string::npos)
      << error.message;
  EXPECT_EQ(kernel, nullptr);
  args.kernel_bytes = 0;
  EXPECT_EQ(api.prepare(provider->handle(), &targetView, view, &given, &args, &kernel, &error),
            DVT_BAD_INPUT);
}

TEST_F(Cudnn, CandidatesThatWereNotProposedDoNotCompile) {
  const Target target = deviceTarget("sm_90");
  const Problem problem = *Problem::parse(kConvolution);
  Candidate candidate = propose(target, kConvolution).candidates.at(0);
  for (const std::string algorithm :
       {"implicit-gemm:eng", "gemm:eng1", "implicit-gemm:eng4000", "implicit-gemm:eng1:k2=x",
        "implicit-gemm:eng99999999999999999999"}) {
    candidate.algorithm = algorithm;
    Expected<std::vector<uint8_t>> kernel = provider->compile(target, problem, candidate);
    ASSERT_FALSE(kernel) << algorithm;
    EXPECT_NE(kernel.error().message.find(algorithm), std::string::npos) << kernel.error().message;
  }
}

TEST_F(Cudnn, WrongTargetsAreRefusedWithAReason) {
  EXPECT_NE(refusalOf(*provider, Target::host(1), kConvolution).find("serves devices of CUDA"),
            std::string::npos);
  Target target = deviceTarget("sm_90");
  for (const auto &[text, reason] :
       {std::pair("", "no description"), std::pair("[1]", "no JSON object"),
        std::pair("{\"name\": \"x\"}", "no library_properties"),
        std::pair("{\"library_properties\": {\"warpSize\": 32}}", "library_properties")}) {
    target.description = text;
    EXPECT_NE(refusalOf(*provider, target, kConvolution).find(reason), std::string::npos)
        << refusalOf(*provider, target, kConvolution);
  }
}

TEST_F(Cudnn, TheStandInForTheDriverRunsNothing) {
  if (hasDriver())
    GTEST_SKIP() << "this machine has a CUDA driver";
  propose(deviceTarget("sm_90"), kProduct);
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(driver) << "products are compiled without a driver";
  auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  auto launch = reinterpret_cast<int (*)()>(dlsym(driver, "cuLaunchKernel"));
  ASSERT_TRUE(init && launch);
  constexpr int kNoDevice = 100; // CUDA_ERROR_NO_DEVICE
  EXPECT_EQ(init(0), kNoDevice);
  EXPECT_EQ(launch(), kNoDevice);
}

TEST(CudnnMissing, SaysWhatIsMissingAndOffersNothing) {
  const PluginSet plugins = load("/nonexistent");
  const Provider *provider = plugins.find("cudnn");
  ASSERT_TRUE(provider);
  const std::string missing = provider->info().libraries[0].missing;
  if (missing.empty())
    GTEST_SKIP() << "the system has a cuDNN of its own: " << provider->info().libraries[0].path;
  EXPECT_NE(missing.find("nvidia-cudnn"), std::string::npos) << missing;
  EXPECT_NE(refusalOf(*provider, deviceTarget("sm_90"), kConvolution).find("was not found"),
            std::string::npos);
}

TEST(CudnnMissing, ALibraryThatIsTooOldIsPassedOver) {
  const PluginSet plugins = load(CUDNN_IMPOSTOR_FOLDER);
  const Provider *provider = plugins.find("cudnn");
  ASSERT_TRUE(provider);
  const dvt_library_info &library = provider->info().libraries[0];
  EXPECT_EQ(std::string(library.path).find(CUDNN_IMPOSTOR_FOLDER), std::string::npos);
  if (*library.missing) {
    EXPECT_NE(std::string(library.missing).find("version 9.5.1 lacks"), std::string::npos)
        << library.missing;
  }
}
