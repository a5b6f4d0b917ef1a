// SPDX-License-Identifier: Apache-2.0
//
// Plans round trip through files; damage gives one clear message; loaded models compute the same.
#include <algorithm>
#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "artifact/ArtifactFormat.h"
#include "artifact/Table.h"
#include "runtime/PlanMaker.h"

using namespace dovetail;

namespace {

class ArtifactTest : public testing::Test {
protected:
  void SetUp() override {
    path = testing::TempDir() + "/artifact-" +
           testing::UnitTest::GetInstance()->current_test_info()->name() + ".dvt";
  }
  void TearDown() override { std::filesystem::remove(path); }
  std::string content() { return *readFile(path); }
  /// The message with which the file is refused.
  std::string refusal(const std::string &bytes) {
    EXPECT_TRUE(writeFile(path, bytes));
    auto artifact = readArtifact(path);
    EXPECT_FALSE(artifact);
    if (artifact)
      return "";
    EXPECT_EQ(artifact.error().kind, ErrorKind::BadInput);
    return artifact.error().message;
  }
  std::string path;
};

Plan richPlan() {
  Plan plan = denseLayerPlan();
  Extent n = Extent::symbol("N");
  plan.symbols["N"] = {2, 64, 2};
  plan.blocks[0].requirements = {
      {Requirement::Relation::AtLeast, Extent::symbol("N"), 2, "Conv 'c'"}};
  plan.kernels = {{1, 2, 3}, {}, {9}};
  plan.memoryBound = 12345;
  plan.blocks[0].steps[1].choice.candidate.processBytes = uint64_t(5) << 32;
  plan.blocks[0].steps[1].choice.candidate.processGroup = "library";
  plan.blocks[0].steps[1].choice.kernel = 2;
  plan.blocks[0].steps[2].fallback = plan.blocks[0].steps[2].choice;
  plan.blocks[0].steps[2].fallback->candidate.algorithm = "other";
  plan.blocks[0].steps[2].report = 0;
  RegionReport report;
  report.ops = "relu";
  report.nodes = "node 1";
  report.micros = 3.5;
  report.conversion = true;
  report.prepareMillis = 7.5;
  report.alternatives.push_back({"toy:slow", 7, 6, 8, "slower"});
  plan.reports.push_back(report);
  plan.timings.push_back({"mixed", 10, 9, 11, true, 1.5, 1.25, 1.75});
  plan.runsPerLoad = 300;
  plan.planningSeconds = 1.25;
  plan.typicalSizes = {{"N", 8}};
  plan.blocks[0].steps[2].lateProviders = {"toy", "spare"};
  plan.blocks[0].steps[2].lateAlgorithm = "plain";
  PlanStep &scan = plan.blocks[0].steps.emplace_back(); // over the columns of x, the last one first
  scan.kind = StepKind::Scan;
  scan.label = "scan";
  scan.inputs = {plan.blocks[0].inputs[0]};
  scan.bodies = {1};
  scan.scanned = {{1, true}};
  PlanBlock body;
  body.values.resize(2);
  body.values[0].extents = {4};
  body.values[0].storage = Storage::Input;
  body.values[1].extents = {n, Extent::floorDiv(n + Extent(1), Extent(2))};
  body.values[1].storage = Storage::Dynamic;
  body.symbolSources = {{"N", 1, 0}};
  body.requirements = {{Requirement::Relation::Equal, n, 4, "Add 'a'"}};
  body.inputs = {0};
  plan.blocks.push_back(body);
  return plan;
}

/// Everything the table holds, as bytes.
std::string fingerprint(const Plan &plan) {
  std::vector<StoredBytes> constants(plan.constants.size()), kernels(plan.kernels.size());
  std::string out = planTable(plan, constants, kernels) + measuredTable(plan);
  for (const auto &kernel : plan.kernels)
    out.append(kernel.begin(), kernel.end());
  for (const auto &constant : plan.constants)
    out.append(static_cast<const char *>(constant.data), constant.bytes);
  return out;
}

TEST_F(ArtifactTest, RoundTrip) {
  Plan plan = richPlan();
  Status status = writeArtifact(plan, path);
  ASSERT_TRUE(status) << status.error().message;
  auto artifact = readArtifact(path);
  ASSERT_TRUE(artifact) << artifact.error().message;
  EXPECT_EQ(fingerprint(artifact->plan), fingerprint(plan));
  EXPECT_EQ(artifact->plan.kernels, plan.kernels);
  EXPECT_EQ(artifact->plan.blocks[1].values[1].extents[1].text(), "floordiv(N+1,2)");
  EXPECT_EQ(artifact->plan.reports[0].alternatives[0].outcome, "slower");
  EXPECT_EQ(artifact->plan.target.text(), plan.target.text());
  EXPECT_EQ(artifact->plan.symbols, plan.symbols);
  EXPECT_EQ(artifact->plan.memoryBound, 12345u);
  EXPECT_EQ(artifact->plan.reports[0].prepareMillis, 7.5);
  EXPECT_EQ(artifact->plan.timings[0].ratioHigh, 1.75);
  EXPECT_EQ(artifact->plan.runsPerLoad, 300);
  EXPECT_EQ(artifact->plan.blocks[0].steps[1].choice.candidate.processBytes, uint64_t(5) << 32);
  EXPECT_EQ(artifact->plan.blocks[0].steps[1].choice.candidate.processGroup, "library");
  EXPECT_EQ(artifact->plan.blocks[0].requirements, plan.blocks[0].requirements);
  EXPECT_EQ(artifact->plan.blocks[1].requirements, plan.blocks[1].requirements);
  ASSERT_EQ(artifact->plan.blocks[1].symbolSources.size(), 1u);
  EXPECT_EQ(artifact->plan.blocks[1].symbolSources[0].value, 1u);
  EXPECT_EQ(artifact->plan.blocks[0].steps.back().bodies, std::vector<uint32_t>{1});
  EXPECT_EQ(artifact->plan.blocks[0].steps.back().scanned, (std::vector<ScanAxis>{{1, true}}));
  for (uint32_t i = 0; i < plan.constants.size(); ++i)
    EXPECT_TRUE(artifact->checkConstant(i));
  // What is for people only may stay in the file.
  auto brief = readArtifact(path, {false});
  ASSERT_TRUE(brief) << brief.error().message;
  ASSERT_EQ(brief->plan.reports.size(), plan.reports.size());
  EXPECT_TRUE(brief->plan.reports[0].alternatives.empty());
  EXPECT_EQ(brief->plan.reports[0].micros, plan.reports[0].micros);
  // The same plan gives the same file.
  std::string first = content();
  ASSERT_TRUE(writeArtifact(plan, path));
  EXPECT_EQ(content(), first);
}

TEST_F(ArtifactTest, MeasuredFiguresCanBeDropped) {
  Plan plan = richPlan();
  ASSERT_TRUE(writeArtifact(plan, path));
  std::string digest = readArtifact(path)->digest;
  ASSERT_TRUE(writeArtifact(plan, path, {.measured = false}));
  auto artifact = readArtifact(path);
  ASSERT_TRUE(artifact);
  EXPECT_EQ(artifact->digest, digest);
  EXPECT_TRUE(artifact->plan.reports.empty());
}

TEST_F(ArtifactTest, LargeConstantsArePageAlignedAndStoredOnce) {
  PlanMaker maker;
  std::vector<float> big = noise(5000);
  uint32_t a = maker.constant(big, {5000}), b = maker.constant(big, {5000});
  maker.step("add", {a, b}, {maker.outputValue("y", {5000})});
  ASSERT_TRUE(writeArtifact(maker.take(), path));
  auto artifact = readArtifact(path);
  ASSERT_TRUE(artifact);
  const auto &constants = artifact->plan.constants;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(constants[0].data) % 4096, 0u);
  EXPECT_EQ(constants[0].data, constants[1].data);
  EXPECT_LT(content().size(), 2 * big.size() * sizeof(float));
}

TEST_F(ArtifactTest, ALoadedModelComputesTheSame) {
  ASSERT_TRUE(writeArtifact(denseLayerPlan(), path));
  auto model = Model::load(path, toyOptions());
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::create(*model);
  ASSERT_TRUE(session);
  std::vector<float> x = noise(12);
  EXPECT_EQ(runOnce(**session, x, {4, 3}), denseLayerTruth(x));
}

TEST_F(ArtifactTest, KernelsMayRunWhereTheyAreMapped) {
  Plan plan = denseLayerPlan();
  plan.kernels = {KernelBytes(std::vector<uint8_t>(5000, 0xc3))}; // the code of "return"
  ASSERT_TRUE(writeArtifact(plan, path));
  auto artifact = readArtifact(path);
  ASSERT_TRUE(artifact);
  ASSERT_TRUE(artifact->makeKernelsExecutable());
  const KernelBytes &kernel = artifact->plan.kernels[0];
  reinterpret_cast<void (*)()>(reinterpret_cast<uintptr_t>(kernel.data()))();
  reinterpret_cast<void (*)()>(reinterpret_cast<uintptr_t>(kernel.data()) + 4999)();
  EXPECT_EQ(kernel, plan.kernels[0]);
  plan.kernels.clear();
  ASSERT_TRUE(writeArtifact(plan, path));
  EXPECT_FALSE(readArtifact(path)->makeKernelsExecutable());
}

TEST_F(ArtifactTest, DamageIsTold) {
  ASSERT_TRUE(writeArtifact(richPlan(), path));
  std::string good = content();
  ArtifactHeader header;
  std::memcpy(&header, good.data(), sizeof(header));

  EXPECT_NE(refusal("").find("not a compiled model"), std::string::npos);
  EXPECT_NE(refusal("PK" + good).find("not a compiled model"), std::string::npos);
  for (size_t length : {size_t(9), size_t(17), sizeof(header) - 1, sizeof(header), good.size() / 2,
                        good.size() - 1})
    EXPECT_NE(refusal(good.substr(0, length)).find("cut short"), std::string::npos) << length;

  std::string other = good;
  other[offsetof(ArtifactHeader, formatVersion)] = 99;
  EXPECT_NE(refusal(other).find("format version 99"), std::string::npos);

  for (SectionKind kind : {TableSection, KernelSection}) {
    other = good;
    other[header.sections[kind].offset + header.sections[kind].bytes / 2] ^= 1;
    EXPECT_NE(refusal(other).find("altered"), std::string::npos);
  }
  other = good;
  other[offsetof(ArtifactHeader, fileBytes) + 3] ^= 1;
  EXPECT_NE(refusal(other).find("header"), std::string::npos);
}

TEST_F(ArtifactTest, DamagedWeightsAreNoticedWhenUsed) {
  ASSERT_TRUE(writeArtifact(denseLayerPlan(), path));
  std::string bytes = content();
  ArtifactHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  bytes[header.sections[WeightSection].offset + 4] ^= 1;
  ASSERT_TRUE(writeFile(path, bytes));
  auto artifact = readArtifact(path);
  ASSERT_TRUE(artifact) << "weights are not read when opening";
  EXPECT_FALSE(artifact->checkConstant(0));
  EXPECT_TRUE(artifact->checkConstant(1));
  auto model = Model::load(path, toyOptions());
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("constant 'c0'"), std::string::npos)
      << model.error().message;
}

TEST_F(ArtifactTest, NoByteIsAlteredUnnoticed) {
  ASSERT_TRUE(writeArtifact(denseLayerPlan(), path));
  std::string good = content();
  ModelOptions options = toyOptions();
  int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC); // in place: a new file each time takes long
  ASSERT_GE(file, 0);
  for (size_t at = 0; at < good.size(); ++at) {
    char altered = char(good[at] ^ (1 << at % 8));
    ASSERT_EQ(::pwrite(file, &altered, 1, off_t(at)), 1);
    auto model = Model::load(path, options);
    ASSERT_FALSE(model) << "byte " << at;
    ASSERT_EQ(model.error().kind, ErrorKind::BadInput) << model.error().message;
    ASSERT_EQ(::pwrite(file, &good[at], 1, off_t(at)), 1);
  }
  EXPECT_TRUE(Model::load(path, options)) << "it is as it was";
  ::close(file);
  EXPECT_NE(refusal(good + "x").find("appended"), std::string::npos);
}

TEST_F(ArtifactTest, AnUnsoundPlanIsNotWritten) {
  Plan plan = denseLayerPlan();
  plan.blocks[0].steps[0].problem = 77;
  EXPECT_FALSE(writeArtifact(plan, path));
  // An arena of a device alone makes the runtime take all offsets as they are.
  plan = denseLayerPlan();
  plan.blocks[0].arenaBytes = 0;
  plan.blocks[0].deviceArenaBytes = 256;
  auto value = std::find_if(plan.blocks[0].values.begin(), plan.blocks[0].values.end(),
                            [](const PlanValue &v) { return v.storage == Storage::Arena; });
  ASSERT_NE(value, plan.blocks[0].values.end());
  value->offset = uint64_t(1) << 30;
  EXPECT_FALSE(writeArtifact(plan, path));
  // Constants are brought into a layout by their own type.
  PlanMaker maker;
  maker.output("y", maker.view(maker.constant(noise(6), {2, 3}), {6, 4}));
  plan = maker.take();
  plan.blocks[0].values[1].type = DVT_U8;
  EXPECT_FALSE(writeArtifact(plan, path));
  EXPECT_FALSE(std::filesystem::exists(path));
}

} // namespace
