// SPDX-License-Identifier: Apache-2.0
//
// Plan -> FlatBuffers tables. The same plan gives the same bytes.
#include <cstring>

#include "artifact/Table.h"
#include "artifact/artifact_generated.h"

namespace dovetail {

namespace {

namespace fb = flatbuffers;

class TableWriter {
public:
  std::string plan(const Plan &plan, const std::vector<StoredBytes> &constants,
                   const std::vector<StoredBytes> &kernels);
  std::string measured(const Plan &plan);

private:
  fb::Offset<fb::String> text(const std::string &value) { return out.CreateSharedString(value); }
  fb::Offset<fb::Vector<fb::Offset<fb::String>>> texts(const std::vector<std::string> &values) {
    std::vector<fb::Offset<fb::String>> offsets;
    for (const std::string &value : values)
      offsets.push_back(text(value));
    return out.CreateVector(offsets);
  }
  fb::Offset<fb::Vector<fb::Offset<fb::String>>> extents(const std::vector<Extent> &values) {
    std::vector<std::string> names;
    for (const Extent &value : values)
      names.push_back(value.text());
    return texts(names);
  }
  /// A vector of tables, each made from one element.
  template <typename T, typename Range, typename Make>
  fb::Offset<fb::Vector<fb::Offset<T>>> tables(const Range &range, Make make) {
    std::vector<fb::Offset<T>> offsets;
    for (const auto &element : range)
      offsets.push_back(make(element));
    return out.CreateVector(offsets);
  }
  fb::Offset<table::Choice> choice(const KernelChoice &choice);
  fb::Offset<table::Value> value(const PlanValue &value);
  fb::Offset<table::Step> step(const PlanStep &step);
  fb::Offset<table::Block> block(const PlanBlock &block);
  fb::Offset<table::Target> target(const Target &target);
  fb::Offset<fb::Vector<fb::Offset<table::State>>> states(const std::vector<PlanState> &states);
  std::string take() {
    return {reinterpret_cast<const char *>(out.GetBufferPointer()), out.GetSize()};
  }

  fb::FlatBufferBuilder out;
};

fb::Offset<table::Choice> TableWriter::choice(const KernelChoice &choice) {
  const Candidate &c = choice.candidate;
  auto candidate = table::CreateCandidate(
      out, text(c.provider), text(c.algorithm), texts(c.inputLayouts), texts(c.outputLayouts),
      c.workspaceBytes, c.packedBytes, c.packing, c.threading, text(c.numerics), c.deterministic,
      c.runtimeExtents, c.estimateMicros, c.registers, c.sharedBytes, c.scratchBytes, c.codeBytes,
      c.memory, c.processBytes, text(c.processGroup));
  return table::CreateChoice(out, candidate, text(choice.providerVersion), choice.kernel);
}

fb::Offset<table::Value> TableWriter::value(const PlanValue &v) {
  fb::Offset<fb::Vector<int64_t>> strides;
  if (!v.strides.empty())
    strides = out.CreateVector(v.strides);
  return table::CreateValue(out, text(v.name), v.type, extents(v.extents), text(v.layout),
                            uint8_t(v.storage), v.index, v.offset, v.bytes, v.inPlaceOf, strides,
                            v.memory);
}

fb::Offset<table::Step> TableWriter::step(const PlanStep &s) {
  auto label = text(s.label);
  auto inputs = out.CreateVector(s.inputs), outputs = out.CreateVector(s.outputs);
  auto chosen = choice(s.choice);
  fb::Offset<table::Choice> fallback;
  if (s.fallback)
    fallback = choice(*s.fallback);
  auto late = texts(s.lateProviders);
  fb::Offset<fb::String> lateAlgorithm;
  if (!s.lateAlgorithm.empty())
    lateAlgorithm = text(s.lateAlgorithm);
  auto data = extents(s.data);
  auto bodies = out.CreateVector(s.bodies);
  std::vector<uint32_t> axes;
  std::vector<uint8_t> backwards;
  for (const ScanAxis &scanned : s.scanned) {
    axes.push_back(scanned.axis);
    backwards.push_back(scanned.backwards);
  }
  return table::CreateStep(out, uint8_t(s.kind), label, s.problem, inputs, outputs, chosen,
                           fallback, late, s.workspaceOffset, s.workspaceBytes, data, bodies,
                           s.report, s.carried, out.CreateVector(axes), out.CreateVector(backwards),
                           lateAlgorithm);
}

fb::Offset<table::Block> TableWriter::block(const PlanBlock &b) {
  auto values = tables<table::Value>(b.values, [&](const PlanValue &v) { return value(v); });
  auto steps = tables<table::Step>(b.steps, [&](const PlanStep &s) { return step(s); });
  auto inputs = out.CreateVector(b.inputs), outputs = out.CreateVector(b.outputs);
  auto sources = tables<table::SymbolSource>(b.symbolSources, [&](const SymbolSource &s) {
    return table::CreateSymbolSource(out, text(s.symbol), s.value, s.axis);
  });
  auto requirements = tables<table::Requirement>(b.requirements, [&](const Requirement &r) {
    return table::CreateRequirement(out, static_cast<uint8_t>(r.relation), text(r.left.text()),
                                    text(r.right.text()), text(r.subject));
  });
  fb::Offset<fb::Vector<fb::Offset<table::State>>> growing;
  if (!b.growing.empty())
    growing = states(b.growing);
  return table::CreateBlock(out, values, inputs, outputs, steps, b.arenaBytes, sources,
                            requirements, growing, b.deviceArenaBytes);
}

fb::Offset<fb::Vector<fb::Offset<table::State>>>
TableWriter::states(const std::vector<PlanState> &states) {
  return tables<table::State>(states, [&](const PlanState &s) {
    return table::CreateState(out, s.input, s.output, s.grows, out.CreateVector(s.order));
  });
}

fb::Offset<table::Target> TableWriter::target(const Target &t) {
  fb::Offset<fb::String> description;
  if (!t.description.empty())
    description = text(t.description);
  return table::CreateTarget(out, text(t.device), text(t.architecture), text(t.features), t.threads,
                             t.l1Bytes, t.l2Bytes, t.l3Bytes, description);
}

std::string TableWriter::plan(const Plan &plan, const std::vector<StoredBytes> &constants,
                              const std::vector<StoredBytes> &kernels) {
  auto target = this->target(plan.target);
  fb::Offset<table::Target> device;
  if (plan.device)
    device = this->target(*plan.device);
  auto symbols = tables<table::Symbol>(plan.symbols, [&](const auto &entry) {
    const auto &[name, range] = entry;
    return table::CreateSymbol(out, text(name), range.min, range.max, range.divisor);
  });
  size_t next = 0;
  auto constantTables = tables<table::Constant>(plan.constants, [&](const PlanConstant &c) {
    const StoredBytes &stored = constants[next++];
    uint64_t halves[2];
    std::memcpy(halves, stored.digest.data(), sizeof(halves));
    table::Digest digest(halves[0], halves[1]);
    return table::CreateConstant(out, text(c.name), c.type, out.CreateVector(c.extents),
                                 stored.offset, stored.bytes, &digest);
  });
  auto kernelTables = tables<table::Kernel>(kernels, [&](const StoredBytes &stored) {
    return table::CreateKernel(out, stored.offset, stored.bytes);
  });
  auto blocks = tables<table::Block>(plan.blocks, [&](const PlanBlock &b) { return block(b); });
  auto providers = tables<table::Provider>(plan.providers, [&](const auto &entry) {
    return table::CreateProvider(out, text(entry.first), text(entry.second));
  });
  auto stateTables = states(plan.states);
  auto model = text(plan.model), producer = text(plan.producer), selection = text(plan.selection);
  auto inputNames = texts(plan.inputNames), outputNames = texts(plan.outputNames);
  auto problems = texts(plan.problems);
  out.Finish(table::CreatePlan(out, model, producer, target, selection, inputNames, outputNames,
                               symbols, constantTables, problems, kernelTables, blocks, providers,
                               stateTables, device, plan.memoryBound));
  return take();
}

std::string TableWriter::measured(const Plan &plan) {
  auto reports = tables<table::Report>(plan.reports, [&](const RegionReport &r) {
    auto alternatives = tables<table::Alternative>(r.alternatives, [&](const Alternative &a) {
      return table::CreateAlternative(out, text(a.label), a.micros, a.low, a.high, text(a.outcome));
    });
    return table::CreateReport(out, text(r.ops), text(r.nodes), r.problem, r.micros,
                               r.conversionMicros, r.conversion, alternatives, r.prepareMillis);
  });
  auto timings = tables<table::Timing>(plan.timings, [&](const WholeModelTiming &t) {
    return table::CreateTiming(out, text(t.name), t.micros, t.low, t.high, t.chosen, t.ratio,
                               t.ratioLow, t.ratioHigh);
  });
  auto sizes = tables<table::TypicalSize>(plan.typicalSizes, [&](const auto &entry) {
    return table::CreateTypicalSize(out, text(entry.first), entry.second);
  });
  out.Finish(table::CreateMeasured(out, reports, timings, plan.planningSeconds, plan.problemsTimed,
                                   plan.problemsFromCache, plan.problemsEstimated, sizes,
                                   plan.runsPerLoad));
  return take();
}

} // namespace

std::string planTable(const Plan &plan, const std::vector<StoredBytes> &constants,
                      const std::vector<StoredBytes> &kernels) {
  return TableWriter().plan(plan, constants, kernels);
}

std::string measuredTable(const Plan &plan) { return TableWriter().measured(plan); }

} // namespace dovetail
