// SPDX-License-Identifier: Apache-2.0
//
// Plans by hand.
#include "runtime/PlanMaker.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "artifact/BlockMemory.h"

namespace dovetail {

PlanMaker::PlanMaker() {
  plan.model = "hand-made";
  plan.producer = "test";
  plan.target = Target::host(1);
  plan.selection = "by hand";
  plan.blocks.emplace_back();
}

uint32_t PlanMaker::value(Extents extents, dvt_type type, const std::string &layout) {
  PlanValue v;
  v.type = type;
  v.extents = std::move(extents);
  v.layout = layout;
  v.name = "v" + std::to_string(block().values.size());
  block().values.push_back(std::move(v));
  return block().values.size() - 1;
}

uint32_t PlanMaker::input(const std::string &name, Extents extents, dvt_type type) {
  uint32_t number = value(std::move(extents), type);
  block().values[number].storage = Storage::Input;
  block().values[number].index = block().inputs.size();
  block().inputs.push_back(number);
  if (current == 0)
    plan.inputNames.push_back(name);
  else
    block().values[number].name = name;
  return number;
}

uint32_t PlanMaker::dynamic(Extents extents, dvt_type type) {
  uint32_t number = value(std::move(extents), type);
  block().values[number].storage = Storage::Dynamic;
  return number;
}

uint32_t PlanMaker::view(uint32_t of, Extents extents) {
  uint32_t number = value(std::move(extents), block().values[of].type);
  block().values[number].storage = Storage::Alias;
  block().values[number].index = of;
  return number;
}

uint32_t PlanMaker::constant(const std::vector<float> &data, std::vector<int64_t> extents) {
  auto owner = std::make_shared<Aligned<float>>(data.size());
  std::copy(data.begin(), data.end(), owner->begin());
  uint32_t number = value(Extents(extents.begin(), extents.end()));
  block().values[number].storage = Storage::Constant;
  block().values[number].index = plan.constants.size();
  PlanConstant c;
  c.name = "c" + std::to_string(plan.constants.size());
  c.extents = std::move(extents);
  c.bytes = data.size() * sizeof(float);
  c.data = owner->data();
  c.owner = owner;
  plan.constants.push_back(std::move(c));
  return number;
}

uint32_t PlanMaker::outputValue(const std::string &name, Extents extents, dvt_type type) {
  uint32_t number = value(std::move(extents), type);
  block().values[number].storage = Storage::Output;
  block().values[number].index = block().outputs.size();
  output(name, number);
  return number;
}

void PlanMaker::output(const std::string &name, uint32_t number) {
  block().outputs.push_back(number);
  if (current == 0)
    plan.outputNames.push_back(name);
}

KernelChoice PlanMaker::choice(const Problem &problem, const std::string &provider,
                               const std::string &algorithm, const std::string &version) {
  KernelChoice choice;
  Candidate &c = choice.candidate;
  c.provider = provider;
  c.algorithm = algorithm;
  std::string layout = algorithm == "transposed" ? "ba" : "";
  c.inputLayouts.assign(problem.inputs.size(), layout);
  c.outputLayouts.assign(problem.outputs.size(), layout);
  c.workspaceBytes = 256;
  c.runtimeExtents = algorithm != "fixed";
  if (summary(problem) == "mat_mul")
    c.packing = DVT_PACKING_AT_LOAD;
  choice.providerVersion = version;
  return choice;
}

PlanStep &PlanMaker::step(const std::string &op, std::vector<uint32_t> inputs,
                          std::vector<uint32_t> outputs, const std::string &algorithm,
                          const std::string &provider) {
  Problem problem;
  ProblemOp problemOp;
  problemOp.name = op;
  auto describe = [&](uint32_t number) {
    ProblemValue v;
    v.type = block().values[number].type;
    v.extents = block().values[number].extents;
    v.constant = block().values[number].storage == Storage::Constant;
    problem.values.push_back(v);
    return uint32_t(problem.values.size() - 1);
  };
  for (uint32_t number : inputs)
    problem.inputs.push_back(describe(number));
  for (uint32_t number : outputs)
    problem.outputs.push_back(describe(number));
  problemOp.inputs = problem.inputs;
  problemOp.outputs = problem.outputs;
  problem.ops.push_back(problemOp);
  problem.ranges = plan.symbols;
  problem.canonicalize();
  PlanStep &step = block().steps.emplace_back();
  step.label = op + std::to_string(block().steps.size());
  step.problem = plan.problems.size();
  plan.problems.push_back(problem.text());
  step.inputs = std::move(inputs);
  step.outputs = std::move(outputs);
  step.choice = choice(problem, provider, algorithm);
  step.workspaceBytes = 256;
  plan.providers[provider] = "1.0";
  return step;
}

PlanStep &PlanMaker::copy(uint32_t from, uint32_t to) {
  PlanStep &step = block().steps.emplace_back();
  step.kind = StepKind::Copy;
  step.label = "copy";
  step.inputs = {from};
  step.outputs = {to};
  return step;
}

PlanStep &PlanMaker::shapeData(std::vector<Extent> extents, uint32_t to) {
  PlanStep &step = block().steps.emplace_back();
  step.kind = StepKind::ShapeData;
  step.label = "shape";
  step.outputs = {to};
  step.data = std::move(extents);
  return step;
}

void PlanMaker::symbol(const std::string &name, uint32_t value, uint32_t axis, SymbolRange range) {
  plan.symbols[name] = range;
  block().symbolSources.push_back({name, value, axis});
}

uint32_t PlanMaker::beginBody() {
  plan.blocks.emplace_back();
  return current = plan.blocks.size() - 1;
}

PlanStep &PlanMaker::control(StepKind kind, std::vector<uint32_t> inputs,
                             std::vector<uint32_t> outputs, std::vector<uint32_t> bodies,
                             uint32_t carried, std::vector<ScanAxis> scanned) {
  PlanStep &step = block().steps.emplace_back();
  step.kind = kind;
  step.label = "control" + std::to_string(block().steps.size());
  step.inputs = std::move(inputs);
  step.outputs = std::move(outputs);
  step.bodies = std::move(bodies);
  step.carried = carried;
  step.scanned = std::move(scanned);
  return step;
}

Plan PlanMaker::take() {
  for (PlanBlock &block : plan.blocks)
    if (std::all_of(block.values.begin(), block.values.end(), [](const PlanValue &v) {
          return std::all_of(v.extents.begin(), v.extents.end(),
                             [](const Extent &e) { return e.isStatic(); });
        }))
      placeStaticBlock(block);
  return std::move(plan);
}

std::shared_ptr<const PluginSet> toys(const std::string &folder) {
  PluginSet::Options options;
  options.folders = {std::string(DOVETAIL_BINARY_DIR) + "/test/" + folder};
  auto set = std::make_shared<PluginSet>(PluginSet::load(options));
  for (const auto &failure : set->failures())
    ADD_FAILURE() << failure.file << ": " << failure.reason;
  return set;
}

ModelOptions toyOptions(const std::string &folder) {
  ModelOptions options;
  options.plugins = toys(folder);
  options.threads = 1;
  return options;
}

std::vector<float> noise(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> data(count);
  for (float &v : data)
    v = float(int(random() % 2001) - 1000) / 128;
  return data;
}

Plan denseLayerPlan() {
  PlanMaker maker;
  uint32_t x = maker.input("x", {4, 3});
  uint32_t w = maker.constant(noise(15, 2), {3, 5}), b = maker.constant(noise(20, 3), {4, 5});
  uint32_t product = maker.value({4, 5}), sum = maker.value({4, 5});
  uint32_t y = maker.outputValue("y", {4, 5});
  maker.step("mat_mul", {x, w}, {product});
  maker.step("add", {product, b}, {sum}, "fixed");
  maker.step("relu", {sum}, {y});
  return maker.take();
}

std::vector<float> denseLayerTruth(const std::vector<float> &x) {
  std::vector<float> w = noise(15, 2), b = noise(20, 3), y(20);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 5; ++j) {
      float sum = 0;
      for (int k = 0; k < 3; ++k)
        sum += x[i * 3 + k] * w[k * 5 + j];
      y[i * 5 + j] = std::max(sum + b[i * 5 + j], 0.0f);
    }
  return y;
}

std::vector<float> outputOf(const Session &session, uint32_t index) {
  const dvt_tensor &result = session.output(index);
  int64_t count = 1;
  for (uint32_t d = 0; d < result.rank; ++d)
    count *= result.extents[d];
  const auto *data = static_cast<const float *>(result.data);
  return {data, data + count};
}

std::vector<float> runOnce(Session &session, const std::vector<float> &x,
                           const std::vector<int64_t> &extents) {
  Aligned<float> memory(x.size());
  std::copy(x.begin(), x.end(), memory.begin());
  Status bound = session.bindInput(0, memory.data(), extents);
  EXPECT_TRUE(bound) << bound.error().message;
  Status ran = session.run();
  EXPECT_TRUE(ran) << ran.error().message;
  return ran ? outputOf(session) : std::vector<float>();
}

} // namespace dovetail
