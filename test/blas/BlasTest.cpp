// SPDX-License-Identifier: Apache-2.0
//
// Every candidate of every BLAS library that is here, of many products, against plain loops;
// refusals and missing libraries.
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "CandidateCheck.h"

using namespace dovetail;
using namespace dovetail::test;

namespace {

class Blas : public testing::Test {
protected:
  static void SetUpTestSuite() {
    plugins = new PluginSet(loadPlugin("blas", DOVETAIL_VENDOR_DIRS));
  }
  void SetUp() override {
    provider = plugins->find("blas");
    ASSERT_TRUE(provider) << (plugins->failures().empty() ? "" : plugins->failures()[0].reason);
    if (provider->version() == "3#")
      GTEST_SKIP() << "no library: " << provider->info().libraries[0].missing;
  }
  /// Names of the candidates found without ":serial", the result's layout behind '@' where it is
  /// not row-major.
  std::set<std::string> check(const std::string &text) {
    std::set<std::string> names;
    for (const CheckedCandidate &candidate : checkCandidates(*provider, text)) {
      const std::string &layout = candidate.outputLayouts[0];
      std::string name = candidate.algorithm;
      if (name.ends_with(":serial"))
        name.resize(name.size() - std::string(":serial").size());
      names.insert(name + (layout.empty() ? "" : "@" + layout));
    }
    EXPECT_FALSE(names.empty()) << text << "\n" << refusalOf(*provider, text);
    return names;
  }
  /// Those of `names` whose library is here.
  std::set<std::string> present(const std::set<std::string> &names) {
    const char *const families[] = {"mkl:", "openblas:", "blis:", "xsmm:"};
    std::set<std::string> found;
    EXPECT_EQ(provider->info().library_count, std::size(families));
    for (size_t i = 0; i < std::size(families); ++i)
      for (const std::string &name : names)
        if (name.starts_with(families[i]) && !*provider->info().libraries[i].missing)
          found.insert(name);
    return found;
  }
  static PluginSet *plugins;
  const Provider *provider = nullptr;
};
PluginSet *Blas::plugins = nullptr;

} // namespace

TEST_F(Blas, MatMul) {
  EXPECT_EQ(
      check(
          "problem(%0: f32[20,30], %1: f32[30,40]) %2: f32[20,40] = mat_mul@13(%0, %1) return(%2)"),
      present({"mkl:gemm", "openblas:sgemm", "blis:sgemm", "xsmm:gemm"}));
  EXPECT_EQ(
      check("problem(%0: f32[2,20,30], %1: const f32[30,40], %2: const f32[40]) %3: f32[2,20,40] = "
            "mat_mul@13(%0, %1); %4: f32[2,20,40] = add@14(%3, %2) return(%4)"),
      present({"mkl:gemm", "mkl:gemm-packed", "openblas:sgemm", "blis:sgemm", "xsmm:gemm",
               "xsmm:brgemm-packed"}));
  EXPECT_EQ(
      check("problem(%0: f32[1,300], %1: const f32[300,70], %2: const f32[70]) %3: f32[1,70] = "
            "mat_mul@13(%0, %1); %4: f32[1,70] = add@14(%2, %3) return(%4)"),
      present({"mkl:gemm", "mkl:gemm-packed", "mkl:gemv", "openblas:sgemv", "blis:sgemv",
               "xsmm:gemm", "xsmm:brgemm-packed"}));
  EXPECT_EQ(
      check("problem(%0: f32[3,4,5,7], %1: f32[3,4,7,6]) %2: f32[3,4,5,6] = mat_mul@13(%0, "
            "%1) return(%2)"),
      present({"mkl:gemm-loop", "mkl:gemm-batch", "openblas:sgemm", "blis:sgemm", "xsmm:gemm"}));
  check(
      "problem(%0: f32[3,1,5,7], %1: f32[4,7,6]) %2: f32[3,4,5,6] = mat_mul@13(%0, %1) return(%2)");
  check(
      "problem(%0: const f32[5,7], %1: f32[4,7,6]) %2: f32[4,5,6] = mat_mul@13(%0, %1) return(%2)");
}

TEST_F(Blas, VectorsOnEitherSide) {
  for (const char *text :
       {"problem(%0: f32[7], %1: f32[2,7,6]) %2: f32[2,6] = mat_mul@13(%0, %1) return(%2)",
        "problem(%0: f32[2,5,7], %1: const f32[7], %2: f32[2,5]) %3: f32[2,5] = mat_mul@13(%0, "
        "%1); %4: f32[2,5] = "
        "add@14(%3, %2) return(%4)",
        "problem(%0: f32[7], %1: f32[7]) %2: f32[] = mat_mul@13(%0, %1) return(%2)",
        "problem(%0: f32[50,7], %1: f32[7,1]) %2: f32[50,1] = mat_mul@13(%0, %1) return(%2)",
        "problem(%0: f32[7,50], %1: f32[1,7]) %2: f32[50,7] = transpose@13(%0) {perm=[1,0]}; %3: "
        "f32[7,1] = "
        "transpose@13(%1) {perm=[1,0]}; %4: f32[50,1] = mat_mul@13(%2, %3) return(%4)",
        "problem(%0: f32[7,1], %1: f32[50,7]) %2: f32[1,7] = transpose@13(%0) {perm=[1,0]}; %3: "
        "f32[7,50] = "
        "transpose@13(%1) {perm=[1,0]}; %4: f32[1,50] = mat_mul@13(%2, %3) return(%4)",
        "problem(%0: f32[7,4], %1: f32[7,50]) %2: f32[4,7] = transpose@13(%0) {perm=[1,0]}; %3: "
        "f32[4,50] = "
        "mat_mul@13(%2, %1) return(%3)"})
    check(text);
}

TEST_F(Blas, TransposesScalesAndAddends) {
  check("problem(%0: f32[1,32,4,16], %1: f32[1,32,4,16], %2: f32[] {0.25}, %3: f32[1,1,1,32]) %4: "
        "f32[1,4,32,16] = "
        "transpose@13(%0) {perm=[0,2,1,3]}; %5: f32[1,4,16,32] = transpose@13(%1) "
        "{perm=[0,2,3,1]}; %6: "
        "f32[1,4,32,32] = mat_mul@13(%4, %5); %7: f32[1,4,32,32] = mul@14(%6, %2); %8: "
        "f32[1,4,32,32] = add@14(%7, "
        "%3) return(%8)");
  check("problem(%0: f32[1,4,32,24], %1: f32[1,4,24,16]) %2: f32[1,4,32,16] = mat_mul@13(%0, %1); "
        "%3: f32[1,32,4,16] "
        "= transpose@13(%2) {perm=[0,2,1,3]} return(%3)");
  check("problem(%0: f32[20,30], %1: f32[30,40]) %2: f32[20,40] = mat_mul@13(%0, %1); %3: "
        "f32[40,20] = "
        "transpose@13(%2) {perm=[1,0]} return(%3)");
  check("problem(%0: f32[20,30], %1: f32[30,40], %2: f32[] {4}, %3: f32[20,1]) %4: f32[20,40] = "
        "mat_mul@13(%0, %1); "
        "%5: f32[20,40] = sub@14(%3, %4); %6: f32[20,40] = div@14(%5, %2) return(%6)");
  check("problem(%0: f32[20,30], %1: f32[30,40], %2: f32[] {4}, %3: f32[20,40]) %4: f32[20,40] = "
        "mat_mul@13(%0, %1); "
        "%5: f32[20,40] = mul@14(%2, %4); %6: f32[20,40] = sub@14(%5, %3); %7: f32[20,40] = "
        "mul@14(%6, %2) "
        "return(%7)");
  check("problem(%0: f32[20,30], %1: const f32[30,40], %2: f32[40] {0.5..}, %3: f32[40,20]) %4: "
        "f32[20,40] = "
        "mat_mul@13(%0, %1); %5: f32[40,20] = transpose@13(%4) {perm=[1,0]}; %6: f32[40,20] = "
        "add@14(%5, %3) "
        "return(%6)");
}

TEST_F(Blas, Gemm) {
  for (const char *scalars : {"alpha=1.0, beta=1.0", "alpha=0.5, beta=2.0", "alpha=2.0, beta=0.0"})
    for (const char *flags :
         {"transA=0, transB=0", "transA=1, transB=0", "transA=0, transB=1", "transA=1, transB=1"})
      for (const char *addend : {"[24]", "[5,1]", "[5,24]"}) {
        const bool a = flags[7] == '1', b = flags[17] == '1';
        check(std::string("problem(%0: f32") + (a ? "[16,5]" : "[5,16]") + ", %1: const f32" +
              (b ? "[24,16]" : "[16,24]") + ", %2: const f32" + addend +
              ") %3: f32[5,24] = gemm@13(%0, %1, %2) {" + scalars + ", " + flags + "} return(%3)");
      }
}

/// Random extents, batches, transposes, constants, scales and addends; on up to three threads.
TEST_F(Blas, RandomProducts) {
  std::mt19937 random(11);
  auto pick = [&](int from, int to) {
    return from + static_cast<int>(random() % static_cast<uint32_t>(to - from + 1));
  };
  auto shape = [](std::vector<int> extents) {
    std::string text = "f32[";
    for (size_t i = 0; i < extents.size(); ++i)
      text += (i ? "," : "") + std::to_string(extents[i]);
    return text + "]";
  };
  for (int round = 0; round < 25; ++round) {
    const int most = round % 4 ? 70 : 300;
    const int m = pick(0, 3) ? pick(1, most) : 1, n = pick(0, 5) ? pick(1, most) : 1,
              k = pick(1, most), batch = pick(0, 2) ? 1 : pick(2, 6);
    const bool transposedA = pick(0, 1), transposedB = pick(0, 1);
    const char *constantA = pick(0, 4) ? "" : "const ", *constantB = pick(0, 1) ? "" : "const ";
    const std::string c = shape({batch, m, n});
    const int scaled = pick(0, 3); // before the addition, after it, or not at all
    const bool hasFactor = scaled == 1 || scaled == 2;
    std::string text = std::string("problem(%0: ") + constantA +
                       shape(transposedA ? std::vector{batch, k, m} : std::vector{batch, m, k}) +
                       ", %1: " + constantB +
                       shape(transposedB ? std::vector{batch, n, k} : std::vector{batch, k, n}) +
                       ", %2: " + shape({pick(0, 1) ? batch : 1, pick(0, 1) ? m : 1, n});
    if (hasFactor)
      text += std::string(", %3: f32[] {") + (pick(0, 1) ? "1.5" : "-0.25") + "}";
    text += ")";
    int values = hasFactor ? 4 : 3;
    auto compute = [&](const std::string &type, const std::string &operation) {
      const std::string value = "%" + std::to_string(values++);
      text += (text.back() == ')' && text.find(" = ") == std::string::npos ? " " : "; ") + value +
              ": " + type + " = " + operation;
      return value;
    };
    std::string a = "%0", b = "%1";
    if (transposedA)
      a = compute(shape({batch, m, k}), "transpose@13(%0) {perm=[0,2,1]}");
    if (transposedB)
      b = compute(shape({batch, k, n}), "transpose@13(%1) {perm=[0,2,1]}");
    std::string last = compute(c, "mat_mul@13(" + a + ", " + b + ")");
    if (scaled == 1)
      last = compute(c, "mul@14(" + last + ", %3)");
    last = compute(c, "add@14(" + last + ", %2)");
    if (scaled == 2)
      last = compute(c, "mul@14(" + last + ", %3)");
    text += " return(" + last + ")";
    for (uint32_t threads : {1u, 3u})
      EXPECT_FALSE(checkCandidates(*provider, text, 2e-5, threads).empty()) << text;
  }
}

TEST_F(Blas, PointwiseConvolution) {
  const std::string attributes =
      " {dilations=[1,1], group=1, kernel_shape=[1,1], pads=[0,0,0,0], strides=[1,1]}";
  EXPECT_EQ(check("problem(%0: f32[1,48,7,7], %1: const f32[20,48,1,1], %2: const f32[20]) %3: "
                  "f32[1,20,7,7] = "
                  "conv@11(%0, %1, %2)" +
                  attributes + " return(%3)"),
            present({"mkl:gemm", "mkl:gemm-packed", "mkl:gemm@acdb", "mkl:gemm-packed@acdb",
                     "openblas:sgemm", "openblas:sgemm@acdb", "blis:sgemm", "blis:sgemm@acdb",
                     "xsmm:gemm", "xsmm:brgemm-packed@acdb"}));
  check("problem(%0: f32[3,48,7,5], %1: const f32[20,48,1,1], %2: f32[3,20,7,5]) %3: f32[3,20,7,5] "
        "= conv@11(%0, %1)" +
        attributes + "; %4: f32[3,20,7,5] = add@14(%3, %2) return(%4)");
  check("problem(%0: f32[2,48,9], %1: const f32[20,12,1]) %2: f32[2,20,9] = conv@11(%0, %1) "
        "{dilations=[1], group=4, "
        "kernel_shape=[1], pads=[0,0], strides=[1]} return(%2)");
  EXPECT_NE(
      refusalOf(*provider,
                "problem(%0: f32[1,8,7,7], %1: const f32[8,8,1,1]) %2: f32[1,8,4,4] = conv@11(%0, "
                "%1) {dilations=[1,1], group=1, kernel_shape=[1,1], pads=[0,0,0,0], strides=[2,2]} "
                "return(%2)")
          .find("stride 1"),
      std::string::npos);
}

TEST_F(Blas, ResidualMayShareTheResultsMemory) {
  check("problem(%0: f32[20,30], %1: const f32[30,40], %2: f32[20,40]) %3: f32[20,40] = "
        "mat_mul@13(%0, %1); "
        "%4: f32[20,40] alias(2) = add@14(%3, %2) return(%4)");
  EXPECT_NE(refusalOf(*provider,
                      "problem(%0: f32[30,30], %1: const f32[30,30]) %2: f32[30,30] alias(0) = "
                      "mat_mul@13(%0, %1) return(%2)")
                .find("share"),
            std::string::npos);
}

TEST_F(Blas, SmallProductsAreOfferedOnOneThread) {
  auto count = [&](const std::string &text, bool serial) {
    std::set<std::string> found;
    for (const CheckedCandidate &candidate : checkCandidates(*provider, text, 1e-5, 2))
      if (candidate.algorithm.ends_with(":serial") == serial)
        found.insert(candidate.algorithm.substr(0, candidate.algorithm.find(':')));
    return found.size();
  };
  size_t libraries = 0;
  for (uint32_t i = 0; i < provider->info().library_count; ++i)
    libraries += !*provider->info().libraries[i].missing;
  auto product = [](const std::string &m, const std::string &k, const std::string &n) {
    return "problem(%0: f32[" + m + "," + k + "], %1: f32[" + k + "," + n + "]) %2: f32[" + m +
           "," + n + "] = mat_mul@13(%0, %1) return(%2)";
  };
  EXPECT_EQ(count(product("4", "5", "6"), false), 0u) << "a team takes longer to wake";
  EXPECT_EQ(count(product("4", "5", "6"), true), libraries);
  EXPECT_EQ(count(product("64", "64", "64"), false), libraries);
  EXPECT_EQ(count(product("64", "64", "64"), true), libraries);
  EXPECT_EQ(count(product("256", "256", "256"), true), 0u);
}

TEST_F(Blas, RefusesWithReasons) {
  auto expect = [&](const std::string &text, const std::string &words) {
    std::string reason = refusalOf(*provider, text);
    EXPECT_NE(reason.find(words), std::string::npos) << reason << "\n" << text;
  };
  expect("problem(%0: f32[N,64], %1: const f32[64,8]) %2: f32[N,8] = mat_mul@13(%0, %1) return(%2) "
         "where N in 1..64",
         "late-bound");
  expect("problem(%0: f32[2,64]) %1: f32[2,64] = relu@14(%0) return(%1)", "no matrix product");
  expect("problem(%0: f32[2,64], %1: const f32[64,8]) %2: f32[2,8] = mat_mul@13(%0, %1); %3: "
         "f32[2,8] = relu@14(%2) "
         "return(%3)",
         "relu");
  expect("problem(%0: f16[2,64], %1: const f16[64,8]) %2: f16[2,8] = mat_mul@13(%0, %1) return(%2)",
         "f32");
}
