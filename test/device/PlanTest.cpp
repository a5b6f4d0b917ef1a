// SPDX-License-Identifier: Apache-2.0
//
// Plans with steps on a device: made by the planner, stored, loaded and run on the simulated one.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>

#include <gmock/gmock.h>
#include <unistd.h>

#include "SimulatedDriver.h"
#include "Surroundings.h"
#include "artifact/PlanCheck.h"
#include "plan/Planner.h"
#include "plan/TableSketch.h"
#include "runtime/Session.h"

using namespace dovetail;
using namespace dovetail::device;
using dovetail::plan::OpRole;
using dovetail::plan::TableSketch;
using test::Surroundings;
using testing::HasSubstr;

namespace {

const std::string kDrivers = "cuda=" + simulatedPath("cuda") + ":rocm=" + simulatedPath("rocm");
const std::vector<std::string> kFolders = {DOVETAIL_BINARY_DIR "/test/device-plugins",
                                           DOVETAIL_BINARY_DIR "/lib/dovetail"};

class DevicePlan : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    auto known = findDescription(target(), {DOVETAIL_SOURCE_DIR "/src/device/descriptions"});
    ASSERT_TRUE(known) << known.error().message;
    description = *known;
    options.device = description.target();
    options.select = plan::Select::Estimate;
    options.only = {"simulated", "reference"};
    options.worker.executable = DOVETAIL_WORKER;
    options.worker.plugins = kFolders;
    weights.resize(32 * 16);
    std::iota(weights.begin(), weights.end(), -100.f);
  }
  std::string target() const { return GetParam() == "cuda" ? "cuda:sm_90" : "rocm:gfx942"; }
  uint64_t count(const char *what) { return simulatedCount(GetParam(), what); }

  /// relu(x * w) + relu(x * w), flattened; x is [64,32].
  TableSketch sketch() {
    TableSketch sketch;
    uint32_t x = sketch.input({64, 32}), w = sketch.value({32, 16}, true);
    sketch.table.values[w].data = weights.data();
    sketch.table.values[w].dataBytes = weights.size() * 4;
    uint32_t product = sketch.op("mat_mul", OpRole::Contraction, {x, w}, {64, 16}, 13);
    uint32_t flat = sketch.op("flatten", OpRole::View, {product}, {1024}, 13);
    uint32_t positive = sketch.op("relu", OpRole::Pointwise, {flat}, {1024}, 14);
    sketch.output(sketch.op("add", OpRole::Pointwise, {positive, positive}, {1024}, 14));
    return sketch;
  }
  std::vector<float> truth(const std::vector<float> &x) const {
    std::vector<float> result;
    for (int i = 0; i < 64; ++i)
      for (int j = 0; j < 16; ++j) {
        float sum = 0;
        for (int k = 0; k < 32; ++k)
          sum += x[i * 32 + k] * weights[k * 16 + j];
        result.push_back(2 * std::max(sum, 0.f));
      }
    return result;
  }

  Expected<Plan> makePlan(plan::Prefer prefer = plan::Prefer::Cost) {
    return makePlan(sketch(), prefer);
  }
  Expected<Plan> makePlan(TableSketch sketch, plan::Prefer prefer = plan::Prefer::Cost) {
    linkUsers(sketch.table);
    std::map<std::string, std::string> providers;
    const PluginSet plugins = loadPlugins(options.only);
    for (const auto &provider : plugins.providers())
      providers[provider->name()] = provider->version();
    options.worker.only = options.only;
    auto cache = plan::PlanCache::open("", {});
    if (!cache)
      return cache.takeError();
    plan::Planner planner(sketch.table, Target::host(1), providers, **cache, options);
    if (Status status = planner.evaluate(); !status)
      return status.takeError();
    return planner.choose(prefer);
  }
  static PluginSet loadPlugins(const std::vector<std::string> &only) {
    PluginSet::Options given;
    given.folders = kFolders;
    given.deviceDrivers = kDrivers;
    given.only = only;
    return PluginSet::load(given);
  }
  ModelOptions modelOptions(const std::vector<std::string> &only = {"simulated",
                                                                    "reference"}) const {
    ModelOptions options;
    options.plugins = std::make_shared<const PluginSet>(loadPlugins(only));
    options.deviceDrivers = kDrivers;
    return options;
  }
  ModelOptions loggedOptions(std::string &log) const {
    ModelOptions options = modelOptions();
    options.log = {[](void *out, int, const char *message) {
                     *static_cast<std::string *>(out) += std::string(message) + "\n";
                   },
                   &log, LogLevel::Info};
    return options;
  }
  std::vector<float> run(Session &session, std::vector<float> &x) {
    Status status = session.bindInput(0, x.data(), std::vector<int64_t>{64, 32});
    EXPECT_TRUE(status) << status.error().message;
    status = session.run();
    EXPECT_TRUE(status) << status.error().message;
    const auto *first = static_cast<const float *>(session.output(0).data);
    return {first, first + 1024};
  }
  static std::vector<float> input(float first) {
    std::vector<float> x(64 * 32);
    std::iota(x.begin(), x.end(), first);
    return x;
  }
  static size_t countOf(const Plan &plan, StepKind kind) {
    const auto &steps = plan.blocks[0].steps;
    return std::count_if(steps.begin(), steps.end(),
                         [&](const PlanStep &step) { return step.kind == kind; });
  }

  DeviceDescription description;
  plan::PlannerOptions options;
  std::vector<float> weights;
};

/// Page-locked memory as a host program may give it to sessions: out of one block, never used
/// again.
class PinnedRegion {
public:
  PinnedRegion(device::Device &device, uint64_t bytes) {
    auto made = device.allocatePinned(bytes);
    EXPECT_TRUE(made) << made.error().message;
    if (made)
      block = std::move(*made);
  }
  HostAllocator allocator() {
    return {this, &allocate, [](void *, void *, uint64_t) {}};
  }

private:
  static void *allocate(void *context, uint64_t bytes, uint64_t alignment) {
    auto *self = static_cast<PinnedRegion *>(context);
    const auto begin = reinterpret_cast<uintptr_t>(self->block.data());
    uint64_t offset = (begin + self->used + alignment - 1) / alignment * alignment - begin;
    if (offset + bytes > self->block.bytes())
      return nullptr;
    self->used = offset + bytes;
    return self->block.data() + offset;
  }
  PinnedMemory block;
  uint64_t used = 0;
};

TEST_P(DevicePlan, TransfersCostWhatTheDescriptionSays) {
  options.only = {"simulated"};
  description.transferMicros = 1e6;
  description.linkGigabytesPerSecond = 0.001; // a byte takes a microsecond
  options.device = description.target();
  auto made = makePlan();
  ASSERT_TRUE(made) << made.error().message;
  for (const PlanStep &step : made->blocks[0].steps)
    if (step.kind == StepKind::Transfer) {
      double bytes = made->blocks[0].values[step.inputs[0]].bytes;
      EXPECT_DOUBLE_EQ(made->reports[step.report].micros, 1e6 + bytes) << step.label;
    }
}

TEST_P(DevicePlan, WithoutKernelsForItEverythingStaysHere) {
  options.only = {"reference"};
  auto made = makePlan();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(countOf(*made, StepKind::Transfer), 0u);
  EXPECT_EQ(made->blocks[0].deviceArenaBytes, 0u);
  auto model = Model::create(std::move(*made), modelOptions());
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::create(*model);
  ASSERT_TRUE(session) << session.error().message;
  std::vector<float> x = input(-9);
  EXPECT_EQ(run(**session, x), truth(x));
}

TEST_P(DevicePlan, TransfersStandAtTheBorderOnly) {
  options.only = {"simulated"};
  auto made = makePlan();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->device->name(), target());
  EXPECT_EQ(countOf(*made, StepKind::Transfer), 2u);
  EXPECT_EQ(countOf(*made, StepKind::Kernel), 3u);
  EXPECT_GT(made->blocks[0].deviceArenaBytes, 0u);
  ASSERT_TRUE(checkPlan(*made));
  for (const PlanStep &step : made->blocks[0].steps)
    EXPECT_GT(made->reports[step.report].micros, 0) << step.label;
  for (const PlanValue &value : made->blocks[0].values)
    if (value.storage == Storage::Alias) {
      EXPECT_EQ(value.memory, DVT_MEMORY_DEVICE);
    }
}

TEST_P(DevicePlan, RunsOnTheDevice) {
  options.only = {"simulated"};
  auto made = makePlan();
  ASSERT_TRUE(made) << made.error().message;
  {
    auto model = Model::create(std::move(*made), modelOptions());
    ASSERT_TRUE(model) << model.error().message;
    auto session = Session::create(*model), other = Session::create(*model);
    ASSERT_TRUE(session && other) << session.error().message;
    uint64_t launches = count("launches"), copies = count("copies to the device"),
             bytes = count("bytes to the device");
    for (float first : {-5000.f, 1.f, 77.f}) {
      std::vector<float> x = input(first);
      EXPECT_EQ(run(**session, x), truth(x));
    }
    std::vector<float> x = input(-7);
    EXPECT_EQ(run(**other, x), truth(x));
    EXPECT_EQ(count("launches"), launches + 4 * 3);
    EXPECT_EQ(count("copies to the device"), copies + 4) << "constants are there already";
    EXPECT_EQ(count("bytes to the device"), bytes + 4 * 64 * 32 * 4);
    std::vector<double> micros;
    ASSERT_TRUE((*session)->run(&micros));
    EXPECT_EQ(micros.size(), 5u);
  }
  EXPECT_EQ(count("blocks"), 0u);
  EXPECT_EQ(count("streams"), 0u);
  EXPECT_EQ(count("live modules"), 0u);
}

TEST_P(DevicePlan, KernelsAreGivenAsOneFromTheSecondRunOn) {
  options.only = {"simulated"};
  auto made = makePlan();
  ASSERT_TRUE(made) << made.error().message;
  {
    auto model = Model::create(std::move(*made), modelOptions());
    ASSERT_TRUE(model) << model.error().message;
    auto session = Session::create(*model);
    ASSERT_TRUE(session) << session.error().message;
    uint64_t before = count("graph launches"), launches = count("launches");
    for (int i = 0; i < 4; ++i) {
      std::vector<float> x = input(float(100 * i - 999));
      EXPECT_EQ(run(**session, x), truth(x));
      EXPECT_EQ(count("graph launches"), before + uint64_t(i));
    }
    EXPECT_EQ(count("launches"), launches + 4 * 3);
    // Each for itself where times are wanted.
    std::vector<double> micros;
    ASSERT_TRUE((*session)->run(&micros));
    EXPECT_EQ(count("graph launches"), before + 3);
    EXPECT_EQ(count("graphs"), 1u);
  }
  EXPECT_EQ(count("graphs"), 0u);
}

TEST_P(DevicePlan, TransfersGoThroughPinnedMemory) {
  options.only = {"simulated"};
  auto made = makePlan();
  ASSERT_TRUE(made) << made.error().message;
  {
    auto model = Model::create(std::move(*made), modelOptions());
    ASSERT_TRUE(model) << model.error().message;
    uint64_t pinned = count("pinned copies"), pools = count("pool allocations");
    auto session = Session::create(*model);
    ASSERT_TRUE(session) << session.error().message;
    EXPECT_EQ(count("pinned copies"), pinned + 1) << "the weights";
    EXPECT_EQ(count("pinned blocks"), 1u) << "what brought the weights is gone";
    EXPECT_EQ(count("pool allocations"), pools + 1);
    for (int i = 0; i < 3; ++i) {
      std::vector<float> x = input(float(10 * i));
      EXPECT_EQ(run(**session, x), truth(x));
    }
    EXPECT_EQ(count("pinned copies"), pinned + 1 + 3 * 2);
  }
  EXPECT_EQ(count("pinned blocks"), 0u);
  EXPECT_EQ(count("pools"), 0u);
}

TEST_P(DevicePlan, WithoutPinnedMemoryTransfersTakeLongerAndItIsSaid) {
  options.only = {"simulated"};
  auto made = makePlan();
  ASSERT_TRUE(made) << made.error().message;
  const Surroundings none("DOVETAIL_SIMULATED_PINNED_BYTES", "0");
  const Surroundings plain("DOVETAIL_SIMULATED_NO_POOLS", "1");
  std::string log;
  auto model = Model::create(std::move(*made), loggedOptions(log));
  ASSERT_TRUE(model) << model.error().message;
  uint64_t pinned = count("pinned copies");
  auto session = Session::create(*model);
  ASSERT_TRUE(session) << session.error().message;
  for (int i = 0; i < 3; ++i) {
    std::vector<float> x = input(float(10 * i));
    EXPECT_EQ(run(**session, x), truth(x));
  }
  EXPECT_EQ(count("pinned copies"), pinned);
  EXPECT_THAT(log, HasSubstr("transfers go through ordinary memory"));
  EXPECT_THAT(log, HasSubstr("bytes of pinned memory are wanted"));
  EXPECT_EQ(log.find("ordinary memory"), log.rfind("ordinary memory")) << "said once";
}

TEST_P(DevicePlan, IsStored) {
  options.only = {"simulated"};
  auto made = makePlan();
  ASSERT_TRUE(made) << made.error().message;
  std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("device-plan-{}.dvt", ::getpid()))
          .string();
  Status written = writeArtifact(*made, path);
  ASSERT_TRUE(written) << written.error().message;
  {
    auto read = readArtifact(path, {});
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->plan.device->text(), options.device->text());
    EXPECT_EQ(read->plan.device->description, options.device->description);
    EXPECT_EQ(read->plan.blocks[0].deviceArenaBytes, made->blocks[0].deviceArenaBytes);
    auto model = Model::load(path, modelOptions());
    ASSERT_TRUE(model) << model.error().message;
    auto session = Session::create(*model);
    ASSERT_TRUE(session) << session.error().message;
    std::vector<float> x = input(3);
    EXPECT_EQ(run(**session, x), truth(x));
  }
  std::filesystem::remove(path);
}

TEST_P(DevicePlan, WithoutItsDeviceItSaysSo) {
  options.only = {"simulated"};
  auto made = makePlan();
  ASSERT_TRUE(made) << made.error().message;
  ModelOptions nowhere = modelOptions();
  nowhere.deviceDrivers = GetParam() + "=/nowhere/driver.so";
  auto model = Model::create(*made, nowhere);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind, ErrorKind::Unavailable);
  EXPECT_THAT(model.error().message, HasSubstr("compiled for " + target()));
  EXPECT_THAT(model.error().message, HasSubstr("/nowhere/driver.so"));
  made->device->architecture = GetParam() == "cuda" ? "sm_100" : "gfx90a";
  model = Model::create(*made, modelOptions());
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("the device here is " + target()));
}

TEST_P(DevicePlan, ConstantsThatDoNotFitAreSaid) {
  options.only = {"simulated"};
  auto made = makePlan();
  ASSERT_TRUE(made) << made.error().message;
  auto device = openSimulated(GetParam());
  ASSERT_NE(device, nullptr);
  auto most = device->driver().freeBytes();
  ASSERT_TRUE(most);
  auto taken = device->driver().allocate(*most - 1000);
  ASSERT_TRUE(taken) << taken.error().message;
  auto model = Model::create(*made, modelOptions());
  ASSERT_TRUE(device->driver().free(*taken));
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().kind, ErrorKind::Unavailable);
  EXPECT_THAT(model.error().message, HasSubstr("takes 2048 bytes of constants on the device"));
  EXPECT_THAT(model.error().message, HasSubstr("--target=cpu"));
}

TEST_P(DevicePlan, KernelsOfLessWorkspaceRunWhereMemoryDoesNotSuffice) {
  options.only = {"simulated"};
  auto made = makePlan();
  ASSERT_TRUE(made) << made.error().message;
  PlanBlock &block = made->blocks[0];
  auto product = std::find_if(block.steps.begin(), block.steps.end(),
                              [](const PlanStep &step) { return step.workspaceBytes > 0; });
  ASSERT_NE(product, block.steps.end());
  KernelChoice plain = product->choice;
  constexpr uint64_t kGreedy = uint64_t(64) << 30;
  product->choice.candidate.algorithm = "greedy";
  product->choice.candidate.workspaceBytes = product->workspaceBytes = kGreedy;
  product->workspaceOffset = block.deviceArenaBytes;
  block.deviceArenaBytes += kGreedy;
  std::string log;
  ModelOptions given = loggedOptions(log);
  {
    auto model = Model::create(*made, given);
    ASSERT_TRUE(model) << model.error().message;
    auto session = Session::create(*model);
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().kind, ErrorKind::Unavailable);
    EXPECT_THAT(session.error().message, HasSubstr("no memory on the device for"));
    EXPECT_THAT(session.error().message, HasSubstr("bytes are wanted"));
  }
  product->fallback = plain;
  auto model = Model::create(*made, given);
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::create(*model), other = Session::create(*model);
  ASSERT_TRUE(session && other) << (session ? other : session).error().message;
  std::vector<float> x = input(5);
  EXPECT_EQ(run(**session, x), truth(x));
  EXPECT_EQ(run(**other, x), truth(x));
  StepState state = (*model)->steps()[size_t(product - block.steps.begin())];
  EXPECT_EQ(state.running, "simulated:plain");
  EXPECT_THAT(state.note,
              HasSubstr("no memory for 68719476736 bytes of workspace; this takes 1000"));
  EXPECT_THAT(log, HasSubstr("simulated:plain runs instead of simulated:greedy"));
}

TEST_P(DevicePlan, LibrariesHaveAnOwnKernelBesideThem) {
  options.only = {"simulated", "native"};
  auto made = makePlan(plan::Prefer::Library);
  ASSERT_TRUE(made) << made.error().message;
  for (const PlanStep &step : made->blocks[0].steps)
    if (step.kind == StepKind::Kernel) {
      EXPECT_EQ(step.choice.candidate.provider, "simulated");
      ASSERT_TRUE(step.fallback) << step.label;
      EXPECT_EQ(step.fallback->candidate.provider, "native");
      EXPECT_EQ(step.fallback->candidate.memory, DVT_MEMORY_DEVICE);
    }
  auto model = Model::create(std::move(*made), modelOptions({"native", "reference"}));
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::create(*model);
  ASSERT_TRUE(session) << session.error().message;
  std::vector<float> x = input(-900);
  std::vector<float> wanted = truth(x), found = run(**session, x);
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(found[i], wanted[i], 1e-5 * std::abs(wanted[i]) + 1) << i;
}

TEST_P(DevicePlan, TheHostsMemoryMayBePinned) {
  // The host's second result takes the place of its first, which the device then has read.
  TableSketch sketch;
  uint32_t x = sketch.input({64, 32});
  std::vector<uint32_t> parts;
  for (const char *op : {"neg", "abs"}) {
    uint32_t here = sketch.op(op, OpRole::Pointwise, {x}, {64, 32}, 13);
    parts.push_back(sketch.op("relu", OpRole::Pointwise, {here}, {64, 32}, 14));
  }
  sketch.output(sketch.op("add", OpRole::Pointwise, parts, {64, 32}, 14));
  auto made = makePlan(std::move(sketch));
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(countOf(*made, StepKind::Transfer), 3u);
  auto device = openSimulated(GetParam());
  ASSERT_NE(device, nullptr);
  PinnedRegion region(*device, 4 << 20);
  ModelOptions given = modelOptions();
  given.allocator = region.allocator();
  auto model = Model::create(std::move(*made), given);
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::create(*model);
  ASSERT_TRUE(session) << session.error().message;
  for (float first : {-1000.f, 5.f}) {
    std::vector<float> values = input(first);
    ASSERT_TRUE((*session)->bindInput(0, values.data(), std::vector<int64_t>{64, 32}));
    Status status = (*session)->run();
    ASSERT_TRUE(status) << status.error().message;
    const auto *result = static_cast<const float *>((*session)->output(0).data);
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(result[i], std::max(-values[i], 0.f) + std::abs(values[i])) << i;
  }
}

TEST_P(DevicePlan, MemoryIsChecked) {
  options.only = {"simulated"};
  auto made = makePlan();
  ASSERT_TRUE(made) << made.error().message;
  auto refuses = [&](auto change, const char *says) {
    Plan plan = *made;
    change(plan, plan.blocks[0]);
    auto checked = checkPlan(plan);
    ASSERT_FALSE(checked) << says;
    EXPECT_EQ(checked.error().kind, ErrorKind::BadInput);
    EXPECT_THAT(checked.error().message, HasSubstr(says));
  };
  refuses([](Plan &plan, PlanBlock &) { plan.device.reset(); }, "lies on a device");
  refuses([](Plan &plan, PlanBlock &) { plan.device->description.clear(); },
          "without a description");
  refuses([](Plan &plan, PlanBlock &) { plan.target = *plan.device; }, "the plan's processor is");
  refuses([](Plan &, PlanBlock &b) { b.values[b.inputs[0]].memory = DVT_MEMORY_DEVICE; },
          "is no constant, intermediate result");
  auto kernel = [](PlanBlock &b) -> PlanStep & {
    return *std::find_if(b.steps.begin(), b.steps.end(),
                         [](const PlanStep &step) { return step.kind == StepKind::Kernel; });
  };
  refuses([&](Plan &, PlanBlock &b) { kernel(b).choice.candidate.memory = DVT_MEMORY_HOST; },
          "lies in other memory than the step works in");
  refuses([&](Plan &, PlanBlock &b) { kernel(b).fallback.emplace(); },
          "its fallback works in other");
  refuses([](Plan &, PlanBlock &b) { b.steps[0].kind = StepKind::Copy; }, "lies in other memory");
  refuses([](Plan &, PlanBlock &b) { b.steps[0].outputs = b.steps[0].inputs; },
          "inside one memory");
  refuses(
      [](Plan &, PlanBlock &b) {
        for (PlanValue &value : b.values)
          if (value.storage == Storage::Arena && value.memory == DVT_MEMORY_DEVICE)
            value.offset += 64;
      },
      "lies wrongly in the arena");
  refuses([](Plan &, PlanBlock &b) { b.deviceArenaBytes = 256; }, "outside the arena");
}

INSTANTIATE_TEST_SUITE_P(, DevicePlan, testing::Values("cuda", "rocm"),
                         [](const auto &info) { return info.param; });

} // namespace
