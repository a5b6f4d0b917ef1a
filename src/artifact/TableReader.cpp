// SPDX-License-Identifier: Apache-2.0
//
// FlatBuffers tables -> plan. The verifier has seen the buffer before any field is read; every
// field may be absent.
#include <cstring>

#include "artifact/Table.h"
#include "artifact/artifact_generated.h"

namespace dovetail {

namespace {

namespace fb = flatbuffers;

std::string text(const fb::String *value) { return value ? value->str() : std::string(); }

template <typename T> std::vector<T> numbers(const fb::Vector<T> *values) {
  return values ? std::vector<T>(values->begin(), values->end()) : std::vector<T>();
}

std::vector<std::string> texts(const fb::Vector<fb::Offset<fb::String>> *values) {
  std::vector<std::string> out;
  for (fb::uoffset_t i = 0; values && i < values->size(); ++i)
    out.push_back(text(values->Get(i)));
  return out;
}

/// Calls `read` for each table of a vector that may be absent; stops at the first failure.
template <typename T, typename Read>
Status each(const fb::Vector<fb::Offset<T>> *values, Read read) {
  for (fb::uoffset_t i = 0; values && i < values->size(); ++i)
    if (Status status = read(*values->Get(i)); !status)
      return status;
  return Status::success();
}

Status readExtents(const fb::Vector<fb::Offset<fb::String>> *values, std::vector<Extent> &out) {
  for (fb::uoffset_t i = 0; values && i < values->size(); ++i) {
    auto extent = Extent::parse(text(values->Get(i)));
    if (!extent)
      return extent.takeError();
    out.push_back(std::move(*extent));
  }
  return Status::success();
}

/// Numbers that no enumerator has become DVT_UNDEFINED, which checkPlan refuses.
dvt_type readType(uint32_t number) { return number <= DVT_I4 ? dvt_type(number) : DVT_UNDEFINED; }

Status readChoice(const table::Choice *choice, KernelChoice &out) {
  if (!choice)
    return Status::success();
  out.providerVersion = text(choice->provider_version());
  out.kernel = choice->kernel();
  if (const table::Candidate *c = choice->candidate()) {
    Candidate &to = out.candidate;
    to.provider = text(c->provider());
    to.algorithm = text(c->algorithm());
    to.inputLayouts = texts(c->input_layouts());
    to.outputLayouts = texts(c->output_layouts());
    to.workspaceBytes = c->workspace_bytes();
    to.packedBytes = c->packed_bytes();
    if (c->packing() > DVT_PACKING_AT_LOAD || c->threading() > DVT_THREADING_OPENMP ||
        c->memory() > DVT_MEMORY_DEVICE)
      return badInput("unknown packing, threading or memory of {}", to.algorithm);
    to.memory = dvt_memory_kind(c->memory());
    to.packing = dvt_packing(c->packing());
    to.threading = dvt_threading(c->threading());
    to.numerics = text(c->numerics());
    to.deterministic = c->deterministic();
    to.runtimeExtents = c->runtime_extents();
    to.estimateMicros = c->estimate_micros();
    to.registers = c->registers();
    to.sharedBytes = c->shared_bytes();
    to.scratchBytes = c->scratch_bytes();
    to.codeBytes = c->code_bytes();
    to.processBytes = c->process_bytes();
    to.processGroup = text(c->process_group());
  }
  return Status::success();
}

Status readValue(const table::Value &v, PlanBlock &block) {
  PlanValue &to = block.values.emplace_back();
  to.name = text(v.name());
  to.type = readType(v.type());
  to.layout = text(v.layout());
  to.storage = Storage(v.storage());
  to.index = v.index();
  to.offset = v.offset();
  to.bytes = v.bytes();
  to.inPlaceOf = v.in_place_of();
  if (v.strides())
    to.strides.assign(v.strides()->begin(), v.strides()->end());
  if (v.memory() > DVT_MEMORY_DEVICE)
    return badInput("unknown memory of value '{}'", to.name);
  to.memory = dvt_memory_kind(v.memory());
  return readExtents(v.extents(), to.extents);
}

Status readStep(const table::Step &s, PlanBlock &block) {
  PlanStep &to = block.steps.emplace_back();
  to.kind = StepKind(s.kind());
  to.label = text(s.label());
  to.problem = s.problem();
  to.inputs = numbers(s.inputs());
  to.outputs = numbers(s.outputs());
  if (Status status = readChoice(s.choice(), to.choice); !status)
    return status;
  if (s.fallback())
    if (Status status = readChoice(s.fallback(), to.fallback.emplace()); !status)
      return status;
  to.lateProviders = texts(s.late_providers());
  to.lateAlgorithm = text(s.late_algorithm());
  to.workspaceOffset = s.workspace_offset();
  to.workspaceBytes = s.workspace_bytes();
  to.bodies = numbers(s.bodies());
  to.carried = s.carried();
  std::vector<uint32_t> axes = numbers(s.scanned_axes());
  std::vector<uint8_t> backwards = numbers(s.scanned_backwards());
  if (axes.size() != backwards.size())
    return badInput("step '{}' has {} axes and {} directions", to.label, axes.size(),
                    backwards.size());
  for (size_t i = 0; i < axes.size(); ++i)
    to.scanned.push_back({axes[i], backwards[i] != 0});
  to.report = s.report();
  return readExtents(s.data(), to.data);
}

Status readState(const table::State &s, std::vector<PlanState> &out) {
  out.push_back({s.input(), s.output(), s.grows(), numbers(s.order())});
  return Status::success();
}

Status readBlock(const table::Block &b, Plan &plan) {
  PlanBlock &to = plan.blocks.emplace_back();
  to.inputs = numbers(b.inputs());
  to.outputs = numbers(b.outputs());
  to.arenaBytes = b.arena_bytes();
  to.deviceArenaBytes = b.device_arena_bytes();
  if (Status status = each(b.values(), [&](const auto &v) { return readValue(v, to); }); !status)
    return status;
  Status status = each(b.steps(), [&](const auto &s) { return readStep(s, to); });
  if (status)
    status = each(b.symbol_sources(), [&](const table::SymbolSource &s) -> Status {
      to.symbolSources.push_back({text(s.symbol()), s.value(), s.axis()});
      return Status::success();
    });
  if (status)
    status = each(b.growing(), [&](const table::State &s) { return readState(s, to.growing); });
  if (status)
    status = each(b.requirements(), [&](const table::Requirement &r) -> Status {
      auto left = Extent::parse(text(r.left())), right = Extent::parse(text(r.right()));
      if (!left || !right || r.relation() >= kRelationCount)
        return badInput("a requirement on extents cannot be read");
      to.requirements.push_back(
          {static_cast<Requirement::Relation>(r.relation()), *left, *right, text(r.subject())});
      return Status::success();
    });
  return status;
}

Target readTarget(const table::Target *t) {
  Target out;
  if (!t)
    return out;
  out.device = text(t->device());
  out.architecture = text(t->architecture());
  out.features = text(t->features());
  out.threads = t->threads();
  out.l1Bytes = t->l1_bytes();
  out.l2Bytes = t->l2_bytes();
  out.l3Bytes = t->l3_bytes();
  out.description = text(t->description());
  return out;
}

Status readConstant(const table::Constant &c, Plan &plan, std::vector<StoredBytes> &stored) {
  PlanConstant &to = plan.constants.emplace_back();
  to.name = text(c.name());
  to.type = readType(c.type());
  to.extents = numbers(c.extents());
  to.bytes = c.bytes();
  StoredBytes &place = stored.emplace_back();
  place.offset = c.offset();
  place.bytes = c.bytes();
  if (!c.digest())
    return badInput("constant '{}' has no digest", to.name);
  uint64_t halves[2] = {c.digest()->high(), c.digest()->low()};
  std::memcpy(place.digest.data(), halves, sizeof(halves));
  return Status::success();
}

/// Bounds depth and number of tables; alignment is that of the mapped file.
fb::Verifier verifier(const uint8_t *data, uint64_t bytes) {
  constexpr fb::uoffset_t maxDepth = 16, maxTables = 1 << 24;
  return fb::Verifier(data, bytes, maxDepth, maxTables);
}

} // namespace

Status readPlanTable(const uint8_t *data, uint64_t bytes, Plan &plan,
                     std::vector<StoredBytes> &constants, std::vector<StoredBytes> &kernels) {
  if (bytes < 8 || bytes > INT32_MAX || !verifier(data, bytes).VerifyBuffer<table::Plan>(nullptr))
    return badInput("its table is damaged");
  const table::Plan &p = *fb::GetRoot<table::Plan>(data);
  plan.model = text(p.model());
  plan.producer = text(p.producer());
  plan.target = readTarget(p.target());
  if (p.device())
    plan.device = readTarget(p.device());
  plan.selection = text(p.selection());
  plan.inputNames = texts(p.input_names());
  plan.outputNames = texts(p.output_names());
  plan.problems = texts(p.problems());
  plan.memoryBound = p.memory_bound();
  Status status = each(p.symbols(), [&](const table::Symbol &s) -> Status {
    plan.symbols[text(s.name())] = {s.min(), s.max(), s.divisor()};
    return Status::success();
  });
  if (status)
    status = each(p.constants(),
                  [&](const table::Constant &c) { return readConstant(c, plan, constants); });
  if (status)
    status = each(p.kernels(), [&](const table::Kernel &k) -> Status {
      kernels.push_back({k.offset(), k.bytes(), {}});
      return Status::success();
    });
  if (status)
    status = each(p.blocks(), [&](const table::Block &b) { return readBlock(b, plan); });
  if (status)
    status = each(p.providers(), [&](const table::Provider &provider) -> Status {
      plan.providers[text(provider.name())] = text(provider.version());
      return Status::success();
    });
  if (status)
    status = each(p.states(), [&](const table::State &s) { return readState(s, plan.states); });
  return status;
}

Status readMeasuredTable(const uint8_t *data, uint64_t bytes, bool alternatives, Plan &plan) {
  if (bytes < 8 || bytes > INT32_MAX ||
      !verifier(data, bytes).VerifyBuffer<table::Measured>(nullptr))
    return badInput("its table of measured figures is damaged");
  const table::Measured &m = *fb::GetRoot<table::Measured>(data);
  plan.planningSeconds = m.planning_seconds();
  plan.runsPerLoad = m.runs_per_load();
  plan.problemsTimed = m.problems_timed();
  plan.problemsFromCache = m.problems_from_cache();
  plan.problemsEstimated = m.problems_estimated();
  for (fb::uoffset_t i = 0; m.typical_sizes() && i < m.typical_sizes()->size(); ++i) {
    const table::TypicalSize &size = *m.typical_sizes()->Get(i);
    plan.typicalSizes[text(size.symbol())] = size.size();
  }
  Status status = each(m.reports(), [&](const table::Report &r) {
    RegionReport &to = plan.reports.emplace_back();
    to.problem = r.problem();
    to.micros = r.micros();
    to.conversionMicros = r.conversion_micros();
    to.conversion = r.conversion();
    to.prepareMillis = r.prepare_millis();
    if (!alternatives)
      return Status::success();
    to.ops = text(r.ops());
    to.nodes = text(r.nodes());
    return each(r.alternatives(), [&](const table::Alternative &a) -> Status {
      to.alternatives.push_back(
          {text(a.label()), a.micros(), a.low(), a.high(), text(a.outcome())});
      return Status::success();
    });
  });
  if (!status)
    return status;
  return each(m.timings(), [&](const table::Timing &t) -> Status {
    plan.timings.push_back({text(t.name()), t.micros(), t.low(), t.high(), t.chosen(), t.ratio(),
                            t.ratio_low(), t.ratio_high()});
    return Status::success();
  });
}

} // namespace dovetail
