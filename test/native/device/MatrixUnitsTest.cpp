// SPDX-License-Identifier: Apache-2.0
//
// Products on tensor and matrix cores: every tile right in its host form, where elements come from
// a small set whose products and sums are exact, so that one that is taken from a wrong place
// shows; and the instructions that were meant are in the code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "DeviceCheck.h"
#include "ImageCheck.h"
#include "codegen/schedule/contraction/DeviceProduct.h"

namespace dovetail::test {
namespace {

using codegen::MatrixTile;
using codegen::MatrixUnit;

/// Of three bits each: products are exact in all types, their sums in f32. In bf16 the truth rounds
/// sums before what is added to them.
CheckOptions exact(const MatrixUnit &unit) {
  CheckOptions options;
  options.largest = unit.type == DVT_BF16 ? 32 : 0;
  options.values = {-1.75, -1.5, -1.25, -1, -0.75, -0.5, 0.5, 0.75, 1, 1.25, 1.5, 1.75};
  options.relative = options.absolute = 1e-6;
  return options;
}

const char *architectureOf(const MatrixUnit &unit) {
  return unit.vendor == MatrixUnit::Vendor::Nvidia ? "sm_80" : "gfx90a";
}
const char *typeOf(const MatrixUnit &unit) {
  return unit.type == DVT_F16 ? "f16" : unit.type == DVT_BF16 ? "bf16" : "f32";
}

std::string nameOf(const testing::TestParamInfo<size_t> &info) {
  const MatrixUnit &unit = MatrixUnit::all()[info.param];
  return std::string(unit.vendor == MatrixUnit::Vendor::Nvidia ? "Mma_" : "Mfma_") + unit.numerics;
}

/// What is compiled here takes a second or two for each tile: all of them for one type, the largest
/// and the smallest for the others.
std::vector<MatrixTile> tilesOf(const MatrixUnit &unit) {
  std::vector<MatrixTile> all = MatrixTile::all(unit);
  return unit.type == DVT_F16 ? all : std::vector<MatrixTile>{all.front(), all.back()};
}

class MatrixUnits : public testing::TestWithParam<size_t> {
protected:
  const MatrixUnit &unit = MatrixUnit::all()[GetParam()];
};

TEST_P(MatrixUnits, ProductsOfEveryTile) {
  // More than one tile each way, and ends within tiles and instructions.
  auto problem = Problem::parse(
      fmt::format("problem(%0: {0}[150,41], %1: const {0}[41,139], %2: const {0}[139]) %3: "
                  "{0}[150,139] = mat_mul@13(%0, %1); %4: {0}[150,139] = add@14(%3, %2) return(%4)",
                  typeOf(unit)));
  ASSERT_TRUE(bool(problem));
  for (const MatrixTile &tile : tilesOf(unit)) {
    auto candidate =
        compileAlgorithm(*problem, architectureOf(unit), "devicematmul:" + tile.text());
    ASSERT_TRUE(candidate);
    checkCandidate(*problem, *candidate, exact(unit));
  }
}

TEST_P(MatrixUnits, TransposedOperandsAndBatches) {
  const MatrixTile tile = MatrixTile::all(unit)[3];
  for (const char *text :
       {"problem(%0: {0}[40,30], %1: {0}[50,40]) %2: {0}[30,50] = gemm@13(%0, %1, _) {{alpha=0.5, "
        "beta=1.0, transA=1, transB=1}} return(%2)",
        "problem(%0: {0}[2,3,20,33], %1: {0}[3,33,18]) %2: {0}[2,3,20,18] = mat_mul@13(%0, %1) "
        "return(%2)",
        // Multiples of eight are loaded side by side, along the depth or across it.
        "problem(%0: {0}[2,40,48], %1: {0}[2,48,72]) %2: {0}[2,40,72] = mat_mul@13(%0, %1) "
        "return(%2)",
        "problem(%0: {0}[48,40], %1: {0}[72,48]) %2: {0}[40,72] = gemm@13(%0, %1, _) {{alpha=1.0, "
        "beta=1.0, transA=1, transB=1}} return(%2)"}) {
    auto problem = Problem::parse(fmt::format(fmt::runtime(text), typeOf(unit)));
    ASSERT_TRUE(bool(problem)) << problem.error().message;
    auto candidate =
        compileAlgorithm(*problem, architectureOf(unit), "devicematmul:" + tile.text());
    ASSERT_TRUE(candidate);
    checkCandidate(*problem, *candidate, exact(unit));
  }
}

void checkConvolution(const Problem &problem, const MatrixUnit &unit) {
  const MatrixTile tile = MatrixTile::all(unit).back();
  auto candidate = compileAlgorithm(problem, architectureOf(unit), "deviceconv:" + tile.text());
  ASSERT_TRUE(candidate);
  checkCandidate(problem, *candidate, exact(unit));
}

TEST_P(MatrixUnits, Convolutions) {
  auto problem = Problem::parse(
      fmt::format("problem(%0: {0}[2,10,9,11], %1: const {0}[40,5,3,3], %2: const {0}[40]) %3: "
                  "{0}[2,40,5,6] = conv@22(%0, %1, %2) {{dilations=[1,1], group=2, "
                  "kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]}}; %4: {0}[2,40,5,6] = "
                  "relu@14(%3) return(%4)",
                  typeOf(unit)));
  ASSERT_TRUE(bool(problem)) << problem.error().message;
  checkConvolution(*problem, unit);
  // Pixels as they lie.
  auto pointwise = Problem::parse(
      fmt::format("problem(%0: {0}[2,16,4,10], %1: const {0}[24,16,1,1]) %2: {0}[2,24,4,10] = "
                  "conv@22(%0, %1) {{dilations=[1,1], group=1, kernel_shape=[1,1], "
                  "pads=[0,0,0,0], strides=[1,1]}} return(%2)",
                  typeOf(unit)));
  ASSERT_TRUE(bool(pointwise)) << pointwise.error().message;
  checkConvolution(*pointwise, unit);
}

INSTANTIATE_TEST_SUITE_P(All, MatrixUnits, testing::Range(size_t(0), MatrixUnit::all().size()),
                         nameOf);

struct Wanted {
  const char *type, *numerics;
};

/// Calls `check` for what native offers on matrix units for a product of this type.
template <typename Check>
void forOffered(const Wanted &wanted, std::initializer_list<const char *> architectures,
                Check check) {
  auto problem = Problem::parse(fmt::format(
      "problem(%0: {0}[256,512], %1: const {0}[512,256]) %2: {0}[256,256] = mat_mul@13(%0, %1) "
      "return(%2)",
      wanted.type));
  for (const char *architecture : architectures) {
    std::vector<DeviceCandidate> candidates = compileForDevice(*problem, architecture, ":mma-");
    EXPECT_FALSE(candidates.empty()) << wanted.type << " " << architecture;
    for (const DeviceCandidate &candidate : candidates) {
      std::string what = candidate.architecture + " " + candidate.algorithm;
      EXPECT_EQ(candidate.numerics, wanted.numerics) << what;
      check(candidate, what);
    }
  }
}

void expectNoSpills(const DeviceImage &image, const std::string &what) {
  ASSERT_EQ(image.resources.size(), 1u) << what;
  EXPECT_EQ(image.resources[0].spillBytes, 0u) << what;
  EXPECT_EQ(image.resources[0].stackBytes, 0u) << what;
  EXPECT_GT(image.resources[0].sharedBytes, 0u) << what;
}

TEST(MatrixUnitsOfCuda, AreInThePtxAndSpillNothing) {
  for (const Wanted &wanted : {Wanted{"f16", "f16"}, Wanted{"bf16", "bf16"}, Wanted{"f32", "tf32"}})
    forOffered(wanted, {"sm_80", "sm_90", "sm_100"},
               [&](const DeviceCandidate &candidate, const std::string &what) {
                 const DeviceImage *ptx = candidate.kernel.find(DeviceImage::Kind::Ptx);
                 ASSERT_TRUE(ptx) << what;
                 std::string text(reinterpret_cast<const char *>(ptx->bytes.data()));
                 EXPECT_NE(text.find(matrixInstruction(candidate.architecture, wanted.numerics)),
                           text.npos)
                     << what;
                 EXPECT_EQ(text.find("cvt.rna.tf32.f32") != text.npos, candidate.numerics == "tf32")
                     << what;
                 // Only where there is an assembler.
                 if (const DeviceImage *cubin = candidate.kernel.find(DeviceImage::Kind::Cubin))
                   expectNoSpills(*cubin, what);
               });
}

TEST(MatrixUnitsOfRocm, AreInTheCodeObjectAndSpillNothing) {
  for (const Wanted &wanted : {Wanted{"f16", "f16"}, Wanted{"bf16", "bf16"}, Wanted{"f32", "f32"}})
    forOffered(wanted, {"gfx90a", "gfx942"},
               [&](const DeviceCandidate &candidate, const std::string &what) {
                 Status right =
                     checkImages(candidate.kernel, candidate.architecture, candidate.algorithm);
                 EXPECT_TRUE(bool(right)) << (right ? "" : right.error().message);
                 const DeviceImage *image = candidate.kernel.find(DeviceImage::Kind::Hsaco);
                 ASSERT_TRUE(image) << what;
                 expectNoSpills(*image, what);
               });
}

TEST(MatrixTiles, AreOfferedWhereTheyFit) {
  codegen::Machine machine;
  machine.isa = {codegen::Isa::Sm90, 1, 255};
  machine.threads = 523;
  const MatrixUnit *unit = MatrixUnit::find(machine, DVT_F16, DVT_F16);
  ASSERT_TRUE(unit);
  EXPECT_FALSE(MatrixUnit::find(machine, DVT_F16, DVT_F32));
  EXPECT_FALSE(MatrixUnit::find(machine, DVT_I8, DVT_I8));
  EXPECT_TRUE(codegen::matrixTilesFor(machine, *unit, {1, 1, 4096, 4096}).empty());
  EXPECT_TRUE(codegen::matrixTilesFor(machine, *unit, {1, 4096, 4096, 3}).empty());
  EXPECT_EQ(codegen::matrixTilesFor(machine, *unit, {1, 16, 4096, 4096}).front().rows, 16);
  EXPECT_EQ(codegen::matrixTilesFor(machine, *unit, {1, 8192, 8192, 4096}).front().text(),
            "mma-f16:128x128x32:64x32");
  for (const MatrixUnit &each : MatrixUnit::all())
    for (const MatrixTile &tile : MatrixTile::all(each)) {
      EXPECT_EQ(tile.warpRows % each.rows, 0) << tile.text();
      EXPECT_EQ(tile.warpColumns % each.columns, 0) << tile.text();
      EXPECT_EQ(tile.rows * tile.columns,
                tile.warpRows * tile.warpColumns * MatrixTile::kThreads / each.lanes)
          << tile.text();
      EXPECT_EQ(tile.warpRows / each.rows % tile.finishingParts(), 0) << tile.text();
      EXPECT_EQ(MatrixTile::kDepthWords % each.depthWords(), 0) << tile.text();
      EXPECT_LE(tile.sharedBytes(), 48u << 10) << tile.text();
    }
}

} // namespace
} // namespace dovetail::test
