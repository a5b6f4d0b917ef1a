// SPDX-License-Identifier: Apache-2.0
//
// Checks a plan part by part: constants, values and their storage, steps against their problems,
// memory, symbols.
#include "artifact/PlanCheck.h"

#include <algorithm>
#include <set>

#include "artifact/BlockMemory.h"
#include "artifact/ControlFlow.h"

namespace dovetail {

namespace {

constexpr uint64_t kMostBytes = uint64_t(1) << 46;

class PlanCheck {
public:
  explicit PlanCheck(const Plan &plan) : plan(plan) {}
  Expected<std::vector<Problem>> run();

private:
  Status constants();
  Status block(const PlanBlock &block);
  Status value(const PlanBlock &block, uint32_t number);
  Status aliases(const PlanBlock &block);
  Status step(const PlanBlock &block, const PlanStep &step);
  Status kernelStep(const PlanBlock &block, const PlanStep &step);
  Status append(const PlanBlock &block, const PlanStep &step);
  Status states(const PlanBlock &block, const std::vector<PlanState> &states);
  Status choice(const PlanStep &step, const KernelChoice &choice, const Problem &problem);
  Status inPlace(const PlanBlock &block, uint32_t index, const std::vector<uint32_t> &roots,
                 const std::vector<uint32_t> &lastRead);
  Status memory(const PlanBlock &block);
  Status apart(const PlanBlock &block, dvt_memory_kind memory);
  Status device() const;
  Status stepMemory(const PlanBlock &block, const PlanStep &step) const;
  Status symbols(const std::vector<uint32_t> &outer);
  Status symbols(const PlanBlock &block, std::set<std::string> &known);

  const Plan &plan;
  std::vector<Problem> problems;
};

bool isStatic(const std::vector<Extent> &extents) {
  return std::all_of(extents.begin(), extents.end(), [](const Extent &e) { return e.isStatic(); });
}

std::vector<int64_t> numbers(const std::vector<Extent> &extents) {
  std::vector<int64_t> out;
  for (const Extent &extent : extents)
    out.push_back(extent.value());
  return out;
}

Status PlanCheck::constants() {
  for (const PlanConstant &constant : plan.constants) {
    auto bytes = checkedBytes(constant.type, constant.extents, Layout());
    if (!typeName(constant.type) || !bytes || *bytes != constant.bytes)
      return badInput("constant '{}' has {} bytes, which is not what its type and extents need",
                      constant.name, constant.bytes);
    if (constant.bytes > 0 && !constant.data)
      return badInput("constant '{}' has no data", constant.name);
  }
  return Status::success();
}

Status PlanCheck::value(const PlanBlock &block, uint32_t number) {
  const PlanValue &v = block.values[number];
  auto bad = [&](std::string why) { return badInput("value {} '{}': {}", number, v.name, why); };
  if (!typeName(v.type))
    return bad("unknown element type");
  auto layout = Layout::parse(v.layout);
  if (!layout)
    return bad(layout.error().message);
  if (!layout->order.empty() && layout->order.size() != v.extents.size())
    return bad(fmt::format("layout {} does not fit rank {}", v.layout, v.extents.size()));
  if (!layout->isRowMajor() && typeBits(v.type) < 8)
    return bad("has a layout, but elements of less than a byte");
  for (const Extent &extent : v.extents)
    if (extent.isStatic() && extent.value() < 0)
      return bad("negative extent");
  bool fixed = isStatic(v.extents);
  bool onDevice = v.memory == DVT_MEMORY_DEVICE;
  if (onDevice && !plan.device)
    return bad("lies on a device, but the plan has none");
  if (onDevice && &block != &plan.blocks.front())
    return bad("lies on a device, where bodies of control flow do not run");
  if (onDevice && v.storage != Storage::Constant && v.storage != Storage::Arena &&
      v.storage != Storage::Alias)
    return bad("lies on a device, but is no constant, intermediate result or view of one");
  std::optional<uint64_t> bytes;
  if (fixed) {
    bytes = checkedBytes(v.type, numbers(v.extents), *layout);
    if (!bytes)
      return bad("too large");
  }
  if (v.inPlaceOf != kNoValue &&
      (v.storage != Storage::Arena || v.inPlaceOf >= block.values.size()))
    return bad("is computed in place of a value that does not exist, or has no place in the arena");
  if (!v.strides.empty()) {
    if (v.storage != Storage::Alias || v.strides.size() != v.extents.size())
      return bad("has strides, but is no view or of another rank");
    if (!layout->isRowMajor() || typeBits(v.type) < 8 || v.offset % (typeBits(v.type) / 8) != 0)
      return bad("has strides beside a layout, elements of less than a byte, or a part of one as "
                 "offset");
    for (int64_t stride : v.strides)
      if (stride < 0)
        return bad("negative stride");
  }
  switch (v.storage) {
  case Storage::Input:
  case Storage::Output: {
    bool input = v.storage == Storage::Input;
    const auto &border = input ? block.inputs : block.outputs;
    if (v.index >= border.size() || (input && border[v.index] != number))
      return bad("is not the model input or output it says it is");
    if (!layout->isRowMajor())
      return bad(
          fmt::format("layout {} at the border of a block, where row-major is needed", v.layout));
    return Status::success();
  }
  case Storage::Constant: {
    if (v.index >= plan.constants.size())
      return bad("constant does not exist");
    const PlanConstant &constant = plan.constants[v.index];
    bool same = fixed && v.type == constant.type && v.extents.size() == constant.extents.size();
    for (size_t d = 0; same && d < v.extents.size(); ++d)
      same = v.extents[d].value() == constant.extents[d];
    return same ? Status::success() : bad("differs from its constant in type or extents");
  }
  case Storage::Arena: {
    uint64_t arena = onDevice ? block.deviceArenaBytes : block.arenaBytes;
    if (!fixed || !block.isPlaced())
      return Status::success();
    if (v.bytes < *bytes || v.offset % (onDevice ? kDeviceAlignment : 64) != 0 ||
        v.offset > kMostBytes || v.bytes > kMostBytes)
      return bad("lies wrongly in the arena");
    if (*bytes > 0 && v.offset + v.bytes > arena)
      return bad("lies outside the arena");
    return Status::success();
  }
  case Storage::Alias: {
    if (v.index >= block.values.size())
      return bad("shows a value that does not exist");
    const PlanValue &shown = block.values[v.index];
    if (shown.memory != v.memory || shown.type != v.type)
      return bad("shows a value in other memory, or of another type");
    auto other = Layout::parse(shown.layout);
    if (!shown.strides.empty())
      return bad("shows a value that has strides itself");
    if (!v.strides.empty()) {
      if (shown.storage == Storage::Constant || !other || !other->isRowMajor())
        return bad("shows, with strides, a constant or something of another layout");
      auto whole = isStatic(shown.extents)
                       ? checkedBytes(shown.type, numbers(shown.extents), *other)
                       : std::nullopt;
      if (fixed && whole && !staysInside(v.type, numbers(v.extents), v.strides, v.offset, *whole))
        return bad("its strides lead out of what it shows");
      return Status::success();
    }
    if (fixed && other && isStatic(shown.extents) &&
        checkedBytes(shown.type, numbers(shown.extents), *other) != bytes)
      return bad("shows a value of another size");
    return Status::success();
  }
  case Storage::Dynamic:
    return Status::success();
  }
  return bad("unknown storage");
}

Status PlanCheck::aliases(const PlanBlock &block) {
  for (uint32_t i = 0; i < block.values.size(); ++i) {
    size_t length = 0;
    for (uint32_t root = i; block.values[root].storage == Storage::Alias;
         root = block.values[root].index)
      if (++length > block.values.size())
        return badInput("value {} '{}': its chain of views has no end", i, block.values[i].name);
  }
  return Status::success();
}

Status PlanCheck::choice(const PlanStep &step, const KernelChoice &choice, const Problem &problem) {
  const Candidate &c = choice.candidate;
  auto bad = [&](std::string why) {
    return badInput("step '{}': {}: {}", step.label, c.label(), why);
  };
  if (c.inputLayouts.size() != problem.inputs.size() ||
      c.outputLayouts.size() != problem.outputs.size())
    return bad("does not have a layout for each operand");
  if (choice.kernel < -1 || choice.kernel >= int64_t(plan.kernels.size()))
    return bad("its kernel does not exist");
  if (unsigned(c.packing) > DVT_PACKING_AT_LOAD || unsigned(c.threading) > DVT_THREADING_OPENMP)
    return bad("unknown packing or threading");
  auto check = [&](const std::vector<std::string> &layouts,
                   const std::vector<uint32_t> &values) -> Status {
    for (size_t i = 0; i < layouts.size(); ++i) {
      auto layout = Layout::parse(layouts[i]);
      const ProblemValue &value = problem.values[values[i]];
      if (!layout)
        return bad(layout.error().message);
      if (!layout->order.empty() && (layout->order.size() != value.extents.size() ||
                                     typeBits(value.type) < 8 || !value.strides.empty()))
        return bad(fmt::format("layout {} does not fit operand {}", layouts[i], i));
    }
    return Status::success();
  };
  if (Status status = check(c.inputLayouts, problem.inputs); !status)
    return status;
  return check(c.outputLayouts, problem.outputs);
}

Status PlanCheck::kernelStep(const PlanBlock &block, const PlanStep &step) {
  auto bad = [&](std::string why) { return badInput("step '{}': {}", step.label, why); };
  if (step.problem >= problems.size())
    return bad("its problem does not exist");
  const Problem &problem = problems[step.problem];
  if (step.inputs.size() != problem.inputs.size() || step.outputs.size() != problem.outputs.size())
    return bad("does not have a value for each operand of its problem");
  auto check = [&](uint32_t number, uint32_t operand) -> Status {
    if (number == kNoValue)
      return bad("lacks an operand");
    const PlanValue &value = block.values[number];
    const ProblemValue &expected = problem.values[operand];
    if (value.type != expected.type || value.extents.size() != expected.extents.size() ||
        value.strides != expected.strides)
      return bad(fmt::format("value {} differs from its problem in type, rank or strides", number));
    for (size_t d = 0; d < value.extents.size(); ++d)
      if (value.extents[d].isStatic() && expected.extents[d].isStatic() &&
          value.extents[d] != expected.extents[d])
        return bad(fmt::format("value {} differs from its problem in extent {}", number, d));
    return Status::success();
  };
  for (size_t i = 0; i < step.inputs.size(); ++i)
    if (Status status = check(step.inputs[i], problem.inputs[i]); !status)
      return status;
  for (size_t i = 0; i < step.outputs.size(); ++i)
    if (Status status = check(step.outputs[i], problem.outputs[i]); !status)
      return status;
  if (step.fallback)
    if (Status status = choice(step, *step.fallback, problem); !status)
      return status;
  if (step.kind == StepKind::LateBound && step.choice.candidate.provider.empty())
    return Status::success();
  return choice(step, step.choice, problem);
}

Status PlanCheck::append(const PlanBlock &block, const PlanStep &step) {
  auto bad = [&](const char *why) { return badInput("step '{}': {}", step.label, why); };
  auto isAbsent = [](uint32_t number) { return number == kNoValue; };
  if (step.inputs.size() < 2 || step.outputs.size() != 1 || isAbsent(step.outputs[0]) ||
      std::any_of(step.inputs.begin(), step.inputs.end(), isAbsent))
    return bad("appends parts to a state, giving one value");
  const PlanValue &grown = block.values[step.outputs[0]];
  if (grown.extents.empty() || typeBits(grown.type) < 8)
    return bad("grows a scalar, or elements of less than a byte");
  Extent length;
  for (uint32_t number : step.inputs) {
    const PlanValue &part = block.values[number];
    if (part.type != grown.type || part.extents.size() != grown.extents.size() ||
        !part.strides.empty() || !part.layout.empty() || !grown.layout.empty() ||
        !std::equal(part.extents.begin() + 1, part.extents.end(), grown.extents.begin() + 1))
      return bad("appends what differs in more than its length");
    length = length + part.extents[0];
  }
  return length == grown.extents[0] ? Status::success()
                                    : bad("gives another length than its parts");
}

Status PlanCheck::states(const PlanBlock &block, const std::vector<PlanState> &states) {
  std::set<uint32_t> inputs, outputs;
  const std::vector<uint32_t> roots = aliasRoots(block);
  for (const PlanState &state : states) {
    if (state.input >= block.inputs.size() || state.output >= block.outputs.size() ||
        !inputs.insert(state.input).second || !outputs.insert(state.output).second)
      return badInput("a state names an input or output that is not there, or one twice");
    const PlanValue &from = block.values[block.outputs[state.output]],
                    &to = block.values[block.inputs[state.input]];
    if (from.type != to.type || from.extents.size() != to.extents.size())
      return badInput("the state of input '{}' differs from its output in type or rank", to.name);
    std::set<uint32_t> dimensions(state.order.begin(), state.order.end());
    if (!state.order.empty() &&
        (state.order.size() != to.extents.size() || dimensions.size() != to.extents.size() ||
         *dimensions.rbegin() >= to.extents.size()))
      return badInput("the state of input '{}' has no order of its dimensions", to.name);
    auto appends = [&](const PlanStep &step) {
      return step.kind == StepKind::Append && step.inputs[0] == block.inputs[state.input] &&
             step.outputs[0] == block.outputs[state.output];
    };
    const uint32_t grown = block.outputs[state.output];
    auto showsGrown = [&](uint32_t number) { return roots[number] == grown; };
    // It lies in the memory of one input, so that it can be one output only.
    if (state.grows && (from.storage != Storage::Output || from.index != state.output ||
                        std::count_if(block.outputs.begin(), block.outputs.end(), showsGrown) != 1))
      return badInput("the state of input '{}' grows, but other outputs show it, too", to.name);
    if (state.grows && std::none_of(block.steps.begin(), block.steps.end(), appends))
      return badInput("the state of input '{}' grows, but nothing is appended to it", to.name);
  }
  return Status::success();
}

Status PlanCheck::step(const PlanBlock &block, const PlanStep &step) {
  auto bad = [&](std::string why) { return badInput("step '{}': {}", step.label, why); };
  bool onDevice = step.choice.candidate.memory == DVT_MEMORY_DEVICE;
  uint64_t arena = onDevice ? block.deviceArenaBytes : block.arenaBytes;
  if (Status status = stepMemory(block, step); !status)
    return status;
  if (step.workspaceBytes > kMostBytes || step.workspaceOffset > kMostBytes ||
      step.workspaceOffset % (onDevice ? kDeviceAlignment : 64) != 0 ||
      (block.isPlaced() && step.workspaceBytes > 0 &&
       step.workspaceOffset + step.workspaceBytes > arena))
    return bad("its workspace lies outside the arena");
  auto integers = [&](uint32_t number) {
    return number != kNoValue &&
           (block.values[number].type == DVT_I64 || block.values[number].type == DVT_I32);
  };
  switch (step.kind) {
  case StepKind::Kernel:
  case StepKind::LateBound:
    return kernelStep(block, step);
  case StepKind::ShapeData: {
    if (step.outputs.size() != 1 || !step.inputs.empty() || !integers(step.outputs[0]))
      return bad("writes extents to something that is not one integer tensor");
    Extent count = elementCount(block.values[step.outputs[0]].extents);
    return count == Extent(int64_t(step.data.size())) ? Status::success()
                                                      : bad("has extents for another size");
  }
  case StepKind::Copy: {
    if (step.inputs.size() != 1 || step.outputs.size() != 1 || step.inputs[0] == kNoValue ||
        step.outputs[0] == kNoValue)
      return bad("copies from one to one value");
    const PlanValue &from = block.values[step.inputs[0]], &to = block.values[step.outputs[0]];
    return from.type == to.type && from.extents == to.extents && from.layout == to.layout &&
                   from.strides.empty()
               ? Status::success()
               : bad("copies between different types, extents or layouts");
  }
  case StepKind::Transfer: {
    if (step.inputs.size() != 1 || step.outputs.size() != 1 || step.inputs[0] == kNoValue ||
        step.outputs[0] == kNoValue)
      return bad("transfers from one to one value");
    const PlanValue &from = block.values[step.inputs[0]], &to = block.values[step.outputs[0]];
    return from.type == to.type && from.extents == to.extents && from.layout == to.layout &&
                   from.memory != to.memory && from.strides.empty()
               ? Status::success()
               : bad("transfers between different types, extents or layouts, or inside one memory");
  }
  case StepKind::Append:
    return append(block, step);
  case StepKind::If:
  case StepKind::Loop:
  case StepKind::Scan:
    return Status::success(); // once all blocks are known to be in order
  case StepKind::Refuse:
    return step.inputs.empty() ? Status::success() : bad("refuses, but has operands");
  }
  return bad("unknown kind");
}

/// Kernels work in the memory of their candidate; all other steps but transfers in the host's.
Status PlanCheck::stepMemory(const PlanBlock &block, const PlanStep &step) const {
  if (step.kind == StepKind::Transfer)
    return Status::success();
  dvt_memory_kind memory = DVT_MEMORY_HOST;
  if (step.kind == StepKind::Kernel)
    memory = step.choice.candidate.memory;
  else if (step.choice.candidate.memory != DVT_MEMORY_HOST)
    return badInput("step '{}': only kernels chosen when compiling can run on a device",
                    step.label);
  if (step.fallback && step.fallback->candidate.memory != memory)
    return badInput("step '{}': its fallback works in other memory", step.label);
  for (const std::vector<uint32_t> *operands : {&step.inputs, &step.outputs})
    for (uint32_t number : *operands)
      if (number != kNoValue && block.values[number].memory != memory)
        return badInput("step '{}': value {} lies in other memory than the step works in",
                        step.label, number);
  return Status::success();
}

Status PlanCheck::device() const {
  if (plan.device && (!plan.device->isDevice() || plan.device->description.empty()))
    return badInput("the plan's device is {} without a description", plan.device->name());
  if (plan.target.isDevice())
    return badInput("the plan's processor is {}", plan.target.name());
  return Status::success();
}

/// An output may lie in the memory of an operand where the step's problem says so for these two,
/// the operand is alike in every respect and owns its memory, and nothing reads that memory
/// afterwards or through another operand or writes another output into it.
Status PlanCheck::inPlace(const PlanBlock &block, uint32_t index,
                          const std::vector<uint32_t> &roots,
                          const std::vector<uint32_t> &lastRead) {
  const PlanStep &step = block.steps[index];
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    if (step.outputs[i] == kNoValue || block.values[step.outputs[i]].inPlaceOf == kNoValue)
      continue;
    const PlanValue &output = block.values[step.outputs[i]];
    auto bad = [&](const char *why) {
      return badInput("step '{}': its output {} {}", step.label, i, why);
    };
    if (step.kind != StepKind::Kernel && step.kind != StepKind::LateBound)
      return bad("is in place, which only kernels can be");
    const Problem &problem = problems[step.problem];
    int32_t position = problem.values[problem.outputs[i]].mayAlias;
    if (position < 0 || step.inputs[static_cast<size_t>(position)] != output.inPlaceOf)
      return bad("is in place of something that its problem does not allow");
    const PlanValue &operand = block.values[output.inPlaceOf];
    uint32_t root = roots[output.inPlaceOf];
    if (block.values[root].storage != Storage::Arena)
      return bad("is in place of a value that has no memory in the arena");
    if (operand.type != output.type || operand.extents != output.extents ||
        operand.layout != output.layout || operand.memory != output.memory ||
        !operand.strides.empty())
      return bad("differs from the value that it is in place of");
    auto sharesRoot = [&](uint32_t value) { return value != kNoValue && roots[value] == root; };
    if (std::count_if(step.inputs.begin(), step.inputs.end(), sharesRoot) != 1)
      return bad("is in place of a value that another operand shows, too");
    for (size_t k = 0; k < i; ++k)
      if (step.outputs[k] != kNoValue && block.values[step.outputs[k]].inPlaceOf != kNoValue &&
          sharesRoot(block.values[step.outputs[k]].inPlaceOf))
        return bad("is in place of the same value as another one");
    if (lastRead[root] != index)
      return bad("is in place of a value that is needed later");
  }
  return Status::success();
}

Status PlanCheck::memory(const PlanBlock &block) {
  if (Status status = apart(block, DVT_MEMORY_HOST); !status)
    return status;
  return apart(block, DVT_MEMORY_DEVICE);
}

/// Arena buffers of one static block that live at the same time lie apart.
Status PlanCheck::apart(const PlanBlock &block, dvt_memory_kind memory) {
  if (!block.isPlaced())
    return Status::success();
  struct Piece {
    uint64_t offset, end;
    uint32_t first, last;
  };
  std::vector<Piece> pieces;
  std::vector<Lifetime> lives = arenaLifetimes(block);
  std::vector<uint32_t> buffers = bufferRoots(block);
  for (uint32_t v = 0; v < block.values.size(); ++v) {
    const PlanValue &value = block.values[v];
    if (value.memory != memory)
      continue;
    if (value.inPlaceOf != kNoValue && isStatic(value.extents)) {
      const PlanValue &first = block.values[buffers[v]];
      if (value.offset != first.offset || value.bytes > first.bytes)
        return badInput("value {} '{}': does not lie where the value lies that it is in place of",
                        v, value.name);
    }
    if (lives[v].first > lives[v].last)
      continue;
    if (!isStatic(value.extents))
      return Status::success(); // placed by the runtime, all of the block
    if (value.bytes > 0)
      pieces.push_back({value.offset, value.offset + value.bytes, lives[v].first, lives[v].last});
  }
  for (uint32_t s = 0; s < block.steps.size(); ++s) {
    const PlanStep &step = block.steps[s];
    if (step.workspaceBytes > 0 && step.choice.candidate.memory == memory)
      pieces.push_back({step.workspaceOffset, step.workspaceOffset + step.workspaceBytes, s, s});
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece &a, const Piece &b) { return a.offset < b.offset; });
  for (size_t i = 0; i < pieces.size(); ++i)
    for (size_t k = i + 1; k < pieces.size() && pieces[k].offset < pieces[i].end; ++k)
      if (pieces[i].first <= pieces[k].last && pieces[k].first <= pieces[i].last)
        return badInput("buffers at {} and {} in the arena overlap during step {}",
                        pieces[i].offset, pieces[k].offset,
                        std::max(pieces[i].first, pieces[k].first));
  return Status::success();
}

Status PlanCheck::block(const PlanBlock &b) {
  if (b.arenaBytes > kMostBytes || b.deviceArenaBytes > kMostBytes)
    return badInput("the arena has {} bytes", std::max(b.arenaBytes, b.deviceArenaBytes));
  auto exists = [&](const std::vector<uint32_t> &numbers, bool mayBeAbsent) {
    return std::all_of(numbers.begin(), numbers.end(), [&](uint32_t number) {
      return number < b.values.size() || (mayBeAbsent && number == kNoValue);
    });
  };
  if (!exists(b.inputs, false) || !exists(b.outputs, false))
    return badInput("an input or output of a block does not exist");
  for (uint32_t v = 0; v < b.values.size(); ++v)
    if (Status status = value(b, v); !status)
      return status;
  if (Status status = aliases(b); !status)
    return status;
  for (uint32_t number : b.inputs)
    if (b.values[number].storage != Storage::Input)
      return badInput("value {} is an input, but not stored as one", number);

  std::vector<uint32_t> roots = aliasRoots(b);
  for (uint32_t v = 0; v < b.values.size(); ++v)
    if (b.values[v].storage == Storage::Output && roots[b.outputs[b.values[v].index]] != v)
      return badInput("value {} is stored as output {}, which shows another value", v,
                      b.values[v].index);
  std::vector<bool> written(b.values.size(), false);
  for (uint32_t v = 0; v < b.values.size(); ++v)
    written[v] = b.values[v].storage == Storage::Input || b.values[v].storage == Storage::Constant;
  for (uint32_t index = 0; index < b.steps.size(); ++index) {
    const PlanStep &s = b.steps[index];
    if (!exists(s.inputs, true) || !exists(s.outputs, true))
      return badInput("step '{}': an operand does not exist", s.label);
    for (uint32_t number : s.inputs)
      if (number != kNoValue && !written[roots[number]])
        return badInput("step '{}' reads value {} before it is written", s.label, number);
    if (Status status = step(b, s); !status)
      return status;
    for (uint32_t number : s.outputs) {
      if (number == kNoValue)
        continue;
      Storage storage = b.values[number].storage;
      if (storage != Storage::Arena && storage != Storage::Output && storage != Storage::Dynamic)
        return badInput("step '{}' writes value {}, which is no memory of its own", s.label,
                        number);
      if (written[number])
        return badInput("step '{}' writes value {} again", s.label, number);
      written[number] = true;
    }
  }
  // What is in place of a value was written after it, as was just seen: such chains end.
  std::vector<uint32_t> lastRead = lastReads(b);
  for (uint32_t index = 0; index < b.steps.size(); ++index)
    if (Status status = inPlace(b, index, roots, lastRead); !status)
      return status;
  for (uint32_t v = 0; v < b.values.size(); ++v)
    if (b.values[v].inPlaceOf != kNoValue && !written[v])
      return badInput("value {} is in place of another, but never written", v);
  for (uint32_t number : b.outputs) {
    if (!written[roots[number]])
      return badInput("output value {} is never written", number);
    if (!b.values[number].strides.empty())
      return badInput("output value {} has strides, where dense memory is needed", number);
  }
  return memory(b);
}

Status PlanCheck::symbols(const std::vector<uint32_t> &outer) {
  for (const auto &[name, range] : plan.symbols)
    if (range.min < 0 || range.min > range.max || range.divisor < 1)
      return badInput("symbol {}: {}..{}/{} is not a range", name, range.min, range.max,
                      range.divisor);
  std::vector<std::set<std::string>> known(plan.blocks.size());
  for (uint32_t b = 0; b < plan.blocks.size(); ++b) {
    known[b] = known[outer[b]];
    if (Status status = symbols(plan.blocks[b], known[b]); !status)
      return status;
  }
  return Status::success();
}

/// `known` has the symbols of the blocks around this one, and gets its own.
Status PlanCheck::symbols(const PlanBlock &b, std::set<std::string> &known) {
  const std::set<std::string> outside = known;
  for (const SymbolSource &source : b.symbolSources) {
    if (source.value >= b.values.size() || source.axis >= b.values[source.value].extents.size())
      return badInput("symbol {} comes from a value or axis that does not exist", source.symbol);
    Storage storage = b.values[source.value].storage;
    if (storage != Storage::Input && storage != Storage::Dynamic)
      return badInput("symbol {} comes from a value that is neither an input nor data-dependent",
                      source.symbol);
    if (storage == Storage::Dynamic && outside.contains(source.symbol))
      return badInput("symbol {} is found out in a body, but known around it", source.symbol);
    if (b.values[source.value].extents[source.axis] != Extent::symbol(source.symbol))
      return badInput("symbol {} does not stand alone where it comes from", source.symbol);
    known.insert(source.symbol);
  }
  for (const PlanValue &value : b.values)
    for (const Extent &extent : value.extents)
      if (!extent.isStatic())
        for (const std::string &name : extent.symbols())
          if (!known.contains(name))
            return badInput("value '{}': nothing gives symbol {} a value", value.name, name);
  return Status::success();
}

Expected<std::vector<Problem>> PlanCheck::run() {
  if (plan.blocks.empty())
    return badInput("plan without a block");
  if (plan.blocks[0].inputs.size() != plan.inputNames.size() ||
      plan.blocks[0].outputs.size() != plan.outputNames.size())
    return badInput("plan with {} inputs and {} outputs, but {} and {} names",
                    plan.blocks[0].inputs.size(), plan.blocks[0].outputs.size(),
                    plan.inputNames.size(), plan.outputNames.size());
  for (const std::string &text : plan.problems) {
    auto problem = Problem::parse(text);
    if (!problem)
      return problem.takeError();
    problems.push_back(std::move(*problem));
  }
  if (Status status = device(); !status)
    return status.takeError();
  if (Status status = constants(); !status)
    return status.takeError();
  auto outer = outerBlocks(plan);
  if (!outer)
    return outer.takeError();
  for (const PlanBlock &b : plan.blocks)
    if (Status status = block(b); !status)
      return status.takeError();
  for (const PlanBlock &b : plan.blocks)
    for (const PlanStep &s : b.steps)
      if (isControlFlow(s.kind))
        if (Status status = checkControlFlow(plan, b, s); !status)
          return status.takeError();
  if (Status status = symbols(*outer); !status)
    return status.takeError();
  if (Status status = states(plan.blocks.front(), plan.states); !status)
    return status.takeError();
  for (const PlanBlock &b : plan.blocks) {
    for (const PlanState &state : b.growing)
      if (&b == &plan.blocks.front() || !state.grows || !state.order.empty())
        return badInput("a block carries a state that does not grow as it is");
    if (Status status = states(b, b.growing); !status)
      return status.takeError();
  }
  return std::move(problems);
}

} // namespace

Expected<std::vector<Problem>> checkPlan(const Plan &plan) { return PlanCheck(plan).run(); }

} // namespace dovetail
