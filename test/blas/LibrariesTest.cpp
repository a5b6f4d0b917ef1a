// SPDX-License-Identifier: Apache-2.0
//
// The libraries as such: all of them at work in one process, each with its own functions although
// others have the same names, on no more threads than the host's; those that are broken or missing;
// and Debian's OpenBLAS where PyPI's is not.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "CandidateCheck.h"
#include "providers/blas/Tiles.h"
#include "support/Parallel.h"

using namespace dovetail;
using namespace dovetail::test;

namespace {

const char *const kFamilies[] = {"mkl:", "openblas:", "blis:", "xsmm:"};
constexpr size_t kOpenBlas = 1; ///< its place among the families

std::string product(int m, int k, int n, const char *kind = "", int batch = 1) {
  const std::string b = batch > 1 ? std::to_string(batch) + "," : "";
  auto shape = [&](int rows, int columns) {
    return "f32[" + b + std::to_string(rows) + "," + std::to_string(columns) + "]";
  };
  return "problem(%0: " + shape(m, k) + ", %1: " + kind + shape(k, n) + ") %2: " + shape(m, n) +
         " = mat_mul@13(%0, %1) return(%2)";
}

std::string missing(const Provider &provider, size_t library) {
  return provider.info().libraries[library].missing;
}

/// A folder that goes when this does.
class Folder {
public:
  explicit Folder(const std::string &name)
      : path(std::filesystem::path(testing::TempDir()) / ("dovetail-blas-" + name)) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

size_t threadsOfProcess() {
  auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

/// Runs a candidate once on `threads` threads; results start as NaN and so does the workspace.
std::vector<float> runOnce(const Provider &provider, const std::string &text,
                           const std::string &algorithm, uint32_t threads) {
  const Problem problem = *Problem::parse(text);
  ProblemView view(problem);
  Target target = Target::host(threads);
  dvt_target targetView = target.view();
  ParallelFor parallel(threads);
  for (const Candidate &candidate : provider.propose(target, problem).candidates) {
    if (candidate.algorithm != algorithm || !candidate.outputLayouts[0].empty())
      continue;
    std::vector<std::vector<float>> values;
    std::vector<std::vector<int64_t>> extents;
    for (const ProblemValue &value : problem.values) {
      size_t count = 1;
      extents.emplace_back();
      for (const Extent &extent : value.extents) {
        extents.back().push_back(extent.value());
        count *= static_cast<size_t>(extent.value());
      }
      values.emplace_back(count);
      for (size_t i = 0; i < count; ++i)
        values.back()[i] = static_cast<float>(static_cast<int>(i * 7 % 11) - 5);
    }
    std::fill(values.back().begin(), values.back().end(), std::nanf(""));
    std::vector<const void *> constants;
    std::vector<dvt_tensor> tensors;
    for (size_t i = 0; i < values.size(); ++i) {
      constants.push_back(problem.values[i].constant ? values[i].data() : nullptr);
      tensors.push_back({values[i].data(), extents[i].data(), nullptr,
                         static_cast<uint32_t>(extents[i].size()), DVT_F32, DVT_MEMORY_HOST});
    }
    std::vector<const char *> storage;
    const dvt_candidate given = candidate.view(storage);
    dvt_prepare_args prepareArgs = {};
    prepareArgs.struct_size = sizeof prepareArgs;
    prepareArgs.constants = constants.data();
    prepareArgs.threads = threads;
    prepareArgs.parallel = parallel.get();
    dvt_error error = {};
    dvt_kernel *kernel = nullptr;
    const dvt_provider_api &api = provider.functions();
    EXPECT_EQ(
        api.prepare(provider.handle(), &targetView, view, &given, &prepareArgs, &kernel, &error),
        DVT_OK)
        << error.message;
    if (!kernel)
      return {};
    std::vector<float> workspace(api.workspace_bytes(kernel) / sizeof(float) + 16, std::nanf(""));
    dvt_run_args runArgs = {};
    runArgs.struct_size = sizeof runArgs;
    runArgs.input_count = static_cast<uint32_t>(values.size() - 1);
    runArgs.output_count = 1;
    runArgs.inputs = tensors.data();
    runArgs.outputs = &tensors.back();
    runArgs.workspace =
        reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64);
    runArgs.workspace_bytes = api.workspace_bytes(kernel);
    runArgs.parallel = parallel.get();
    EXPECT_EQ(api.run(kernel, &runArgs, &error), DVT_OK) << error.message;
    api.destroy_kernel(kernel);
    return values.back();
  }
  return {};
}

// Functions of names that BLAS libraries have are known to the whole process, before any of these
// libraries is loaded: who calls one of them instead of its own gets nothing done.
// With sanitizers libraries see the functions of the process first, so there it only is loaded.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kScope = RTLD_LOCAL;
#else
constexpr int kScope = RTLD_GLOBAL;
#endif
void *const impostor = dlopen(BLAS_IMPOSTOR, RTLD_NOW | kScope);

class BlasLibraries : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_TRUE(impostor) << "it was not loaded";
    int (*count)() = nullptr;
    void *found = dlsym(impostor, "dvt_test_impostor_calls");
    std::memcpy(&count, &found, sizeof found);
    calls = count;
    plugins = std::make_unique<PluginSet>(loadPlugin("blas", DOVETAIL_VENDOR_DIRS));
    provider = plugins->find("blas");
    ASSERT_TRUE(provider);
  }
  int (*calls)() = nullptr;
  std::unique_ptr<PluginSet> plugins;
  const Provider *provider = nullptr;
};

} // namespace

TEST_F(BlasLibraries, EachComputesByItself) {
  // Plain, with a constant, matrix times vector, a batch, and one beyond what is called small.
  for (const std::string &text :
       {product(33, 47, 65), product(20, 70, 130, "const "), product(1, 300, 70, "const "),
        product(9, 20, 17, "", 5), product(70, 600, 300), product(300, 130, 70, "const ")}) {
    std::vector<size_t> found(std::size(kFamilies));
    for (const CheckedCandidate &candidate : checkCandidates(*provider, text, 1e-5, 2))
      for (size_t i = 0; i < found.size(); ++i)
        found[i] += candidate.algorithm.starts_with(kFamilies[i]);
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_EQ(found[i] > 0, missing(*provider, i).empty()) << kFamilies[i] << " " << text;
  }
  EXPECT_EQ(calls(), 0) << "a library called a function of the process instead of its own";
}

TEST_F(BlasLibraries, VersionsArePartOfTheProvidersVersion) {
  const std::string version = provider->version();
  for (uint32_t i = 0; i < provider->info().library_count; ++i) {
    const dvt_library_info &library = provider->info().libraries[i];
    EXPECT_NE(std::string(library.missing).empty(), std::string(library.version).empty());
    EXPECT_EQ(std::string(library.missing).empty(), std::filesystem::exists(library.path));
    if (*library.version) {
      EXPECT_NE(version.find(std::string(library.name) + "-" + library.version), std::string::npos)
          << version;
    }
  }
}

TEST_F(BlasLibraries, WhatTheResultHeldBeforeIsForgotten) {
  for (const std::string &text : {product(33, 47, 65), product(1, 300, 70, "const "),
                                  product(70, 1, 1), product(40, 700, 90, "const ")})
    for (const Candidate &candidate :
         provider->propose(Target::host(2), *Problem::parse(text)).candidates)
      for (float x : runOnce(*provider, text, candidate.algorithm, 2))
        ASSERT_TRUE(std::isfinite(x)) << candidate.algorithm << " " << text;
}

TEST_F(BlasLibraries, TeamsDoNotMultiply) {
  const std::string text = product(128, 300, 512, "const ");
  const Proposal proposal = provider->propose(Target::host(2), *Problem::parse(text));
  // The team of the process starts here, and nothing after it.
  ParallelFor team(2);
  team.get()->run(
      team.get()->context, 2, [](void *, int64_t, int64_t, uint32_t) {}, nullptr);
  const size_t before = threadsOfProcess();
  for (int round = 0; round < 2; ++round)
    for (const Candidate &candidate : proposal.candidates) {
      EXPECT_FALSE(runOnce(*provider, text, candidate.algorithm, 2).empty());
      EXPECT_LE(threadsOfProcess(), before) << candidate.algorithm;
      const bool host = candidate.threading == DVT_THREADING_PARALLEL_FOR;
      EXPECT_TRUE(candidate.threading == DVT_THREADING_SERIAL ||
                  host == !candidate.algorithm.starts_with("mkl:"))
          << candidate.algorithm;
    }
}

TEST_F(BlasLibraries, TheEnvironmentStaysAsItIs) {
  auto variables = [] {
    std::vector<std::string> all;
    for (char **variable = environ; *variable; ++variable)
      all.push_back(*variable);
    std::sort(all.begin(), all.end());
    return all;
  };
  const std::vector<std::string> before = variables();
  const std::string text = product(20, 30, 40, "const ");
  for (const Candidate &candidate :
       provider->propose(Target::host(2), *Problem::parse(text)).candidates)
    runOnce(*provider, text, candidate.algorithm, 2);
  EXPECT_EQ(variables(), before);
}

TEST_F(BlasLibraries, BrokenOnesCostThemselves) {
  Folder folder("broken");
  const std::string whole =
      std::string(DOVETAIL_BINARY_DIR) + "/lib/dovetail/dovetail_reference.so";
  std::ofstream(folder.path / "libscipy_openblas.so") << "not a library";
  std::filesystem::copy_file(whole, folder.path / "libblis.so.4");
  std::filesystem::copy_file(whole, folder.path / "libxsmm.so.1");
  std::filesystem::copy_file(whole, folder.path / "libmkl_rt.so.3");
  PluginSet broken = loadPlugin("blas", folder.path.string());
  const Provider *one = broken.find("blas");
  ASSERT_TRUE(one);
  const char *const reasons[] = {"libmkl_rt.so.3: lacks MKL_",
                                 "libscipy_openblas.so: ", "libblis.so.4: lacks bli_",
                                 "libxsmm.so.1: lacks libxsmm_"};
  for (size_t i = 0; i < std::size(reasons); ++i) {
    const dvt_library_info &library = one->info().libraries[i];
    if (*library.missing) { // the system may have a sound one
      EXPECT_NE(std::string(library.missing).find(reasons[i]), std::string::npos)
          << library.missing;
    } else {
      EXPECT_NE(std::filesystem::path(library.path).parent_path(), folder.path);
    }
  }
  // In front of sound ones, they are passed over.
  PluginSet both = loadPlugin("blas", folder.path.string() + ":" + DOVETAIL_VENDOR_DIRS);
  for (size_t i = 0; i < std::size(kFamilies); ++i)
    EXPECT_EQ(missing(*both.find("blas"), i).empty(), missing(*provider, i).empty());
}

TEST_F(BlasLibraries, MissingOnesSayHowToGetThem) {
  PluginSet none = loadPlugin("blas", "/nonexistent");
  const Provider *one = none.find("blas");
  ASSERT_TRUE(one);
  const char *const words[] = {"pip download", "scipy-openblas32", "libblis4", "libxsmm"};
  bool any = false;
  for (size_t i = 0; i < std::size(words); ++i) {
    any |= missing(*one, i).empty();
    if (!missing(*one, i).empty()) {
      EXPECT_NE(missing(*one, i).find("was not found"), std::string::npos);
      EXPECT_NE(missing(*one, i).find(words[i]), std::string::npos);
    }
  }
  const std::string text = product(20, 30, 40);
  if (!any) {
    EXPECT_NE(refusalOf(*one, text).find("was not found"), std::string::npos);
  }
  // A candidate of a library that is not here is refused by that library's reason.
  const Problem problem = *Problem::parse(text);
  ProblemView view(problem);
  Target target = Target::host(2);
  dvt_target targetView = target.view();
  for (const Candidate &candidate : provider->propose(target, problem).candidates)
    for (size_t i = 0; i < std::size(kFamilies); ++i)
      if (candidate.algorithm.starts_with(kFamilies[i]) && !missing(*one, i).empty()) {
        std::vector<const char *> storage;
        const dvt_candidate given = candidate.view(storage);
        dvt_prepare_args args = {};
        args.struct_size = sizeof args;
        args.threads = 2;
        dvt_error error = {};
        dvt_kernel *kernel = nullptr;
        EXPECT_EQ(one->functions().prepare(one->handle(), &targetView, view, &given, &args, &kernel,
                                           &error),
                  DVT_UNAVAILABLE);
        EXPECT_NE(std::string(error.message).find(words[i]), std::string::npos) << error.message;
      }
}

TEST_F(BlasLibraries, DebiansOpenBlasServes) {
  void *system = dlopen("libopenblas.so.0",
                        RTLD_NOW | RTLD_LOCAL | (kScope == RTLD_GLOBAL ? RTLD_DEEPBIND : 0));
  char origin[4096] = {};
  if (!system || dlinfo(system, RTLD_DI_ORIGIN, origin) != 0)
    GTEST_SKIP() << "Debian's libopenblas is not installed";
  // In a folder without PyPI's, which may be in the process already and would be found again.
  Folder folder("debian");
  std::filesystem::create_symlink(std::string(origin) + "/libopenblas.so.0",
                                  folder.path / "libopenblas.so.0");
  PluginSet plain = loadPlugin("blas", folder.path.string());
  const Provider *one = plain.find("blas");
  ASSERT_TRUE(one);
  ASSERT_EQ(missing(*one, kOpenBlas), "");
  EXPECT_EQ(std::string(one->info().libraries[kOpenBlas].path),
            (folder.path / "libopenblas.so.0").string());
  for (const std::string &text : {product(33, 47, 65), product(1, 300, 70, "const ")})
    EXPECT_FALSE(checkCandidates(*one, text, 1e-5, 2).empty());
}

TEST(BlasTiles, CoverTheResultOnce) {
  for (int64_t batch : {1, 2, 3, 7})
    for (int rows : {1, 5, 64, 70})
      for (int columns : {1, 16, 65, 300})
        for (uint32_t team : {1u, 2u, 3u, 4u, 6u, 16u})
          for (int step : {16, 64}) {
            std::vector<int> seen(static_cast<size_t>(batch * rows * columns));
            const auto tiles = blas::tilesFor(batch, rows, columns, team, step);
            EXPECT_LE(tiles.size(), std::max<size_t>(2 * team, 1));
            for (const blas::Tile &tile : tiles) {
              EXPECT_EQ(tile.column % step, 0);
              EXPECT_GT(tile.rows * tile.columns * tile.matrices, 0);
              for (int64_t m = tile.firstMatrix; m < tile.firstMatrix + tile.matrices; ++m)
                for (int r = tile.row; r < tile.row + tile.rows; ++r)
                  for (int c = tile.column; c < tile.column + tile.columns; ++c)
                    ++seen[static_cast<size_t>((m * rows + r) * columns + c)];
            }
            EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }))
                << batch << " x " << rows << " x " << columns << " by " << team;
          }
}
