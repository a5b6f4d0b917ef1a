// SPDX-License-Identifier: Apache-2.0
//
// Builds frames: evaluates extents, places buffers as the plan does, gets the kernels and writes
// their arguments.
#include "runtime/Frame.h"

#include <algorithm>
#include <bit>

#include "runtime/Staging.h"

namespace dovetail {

namespace {

uint64_t roundUp(uint64_t bytes) {
  return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

/// By less than an eighth, to one of eight sizes between powers of two.
uint64_t roundUpCoarsely(uint64_t bytes) {
  uint64_t step = std::max<uint64_t>(std::bit_floor(bytes) / 8, kTensorAlignment);
  return (bytes + step - 1) / step * step;
}

} // namespace

Status checkExtents(const PlanStep &step, const PlanValue &value,
                    const std::vector<int64_t> &extents, const ProblemValue &problem,
                    const SymbolValues &symbols) {
  for (size_t d = 0; d < problem.extents.size(); ++d) {
    auto expected = problem.extents[d].evaluate(symbols);
    if (expected && *expected != extents[d])
      return badInput("step '{}': extent {} of '{}' is {}, its kernel is for {}", step.label, d,
                      value.name, extents[d], *expected);
  }
  return Status::success();
}

class FrameBuilder {
public:
  FrameBuilder(Model &model, uint32_t number, const SymbolValues &symbols, PlacedSizes &lastPlaced)
      : model(model), number(number), symbols(symbols), lastPlaced(lastPlaced),
        block(model.plan().blocks[number]), frame(std::make_unique<Frame>()) {}
  Expected<std::unique_ptr<Frame>> run();

private:
  Status evaluateValues();
  void placeValues();
  Status addStep(uint32_t index);
  Status addKernel(uint32_t index, std::shared_ptr<PreparedKernel> kernel);
  Status addDeviceKernel(uint32_t index, std::shared_ptr<PreparedKernel> kernel);
  Status checkAgainstProblem(const PlanStep &step, const Problem &problem);
  dvt_tensor describe(uint32_t value) const;
  /// `from`: bytes into the value.
  uint32_t addTensor(uint32_t value, uint64_t from = 0);
  Status readConstant(uint32_t value);
  void addCopy(uint32_t step, uint32_t source, uint32_t target, uint64_t bytes);
  uint32_t addScratchTensor(uint32_t value, uint64_t offset);
  Action &addAction(Action::Kind kind, uint32_t step);
  void addReorder(uint32_t step, uint32_t value, uint32_t source, const std::string &from,
                  uint32_t target, const std::string &to);
  const Layout *keep(const std::string &text);
  bool isEmpty(const PlanStep &step) const;

  Model &model;
  uint32_t number; ///< of the block
  const SymbolValues &symbols;
  PlacedSizes &lastPlaced;
  const PlanBlock &block;
  std::unique_ptr<Frame> frame;
  std::vector<uint64_t> workspaceOffsets, workspaces; ///< for each step; bytes there are for it
  uint64_t deviceScratch = 0; ///< behind what is planned in the device's arena
  uint64_t plannedArena = 0;  ///< what follows is scratch that steps use one after the other
  struct Operands {
    uint32_t inputs, outputs; ///< first tensor
  };
  std::vector<Operands> operands; ///< for each action
};

Status FrameBuilder::evaluateValues() {
  size_t count = block.values.size();
  frame->block = &block;
  frame->roots = aliasRoots(block);
  frame->bound.assign(count, false);
  frame->valueExtents.resize(count);
  frame->valueBytes.assign(count, 0);
  frame->constantData.assign(count, nullptr);
  for (uint32_t v = 0; v < count; ++v) {
    const PlanValue &value = block.values[v];
    if (block.values[frame->roots[v]].storage == Storage::Dynamic)
      continue;
    bool known = true;
    for (const Extent &extent : value.extents) {
      auto number = extent.evaluate(symbols);
      known &= number.has_value();
      frame->valueExtents[v].push_back(number.value_or(-1));
    }
    if (!known) {
      // Either it waits for a symbol that is found out later, or the numbers make no sense.
      for (const Extent &extent : value.extents) {
        std::vector<std::string> names = extent.symbols();
        if (!extent.evaluate(symbols) &&
            std::all_of(names.begin(), names.end(),
                        [&](const std::string &name) { return symbols.contains(name); }))
          return badInput("value '{}': extent {} has no value for these inputs", value.name,
                          extent.text());
      }
      continue;
    }
    auto layout = Layout::parse(value.layout);
    auto bytes = layout ? checkedBytes(value.type, frame->valueExtents[v], *layout) : std::nullopt;
    if (!bytes) {
      std::string text;
      for (int64_t extent : frame->valueExtents[v])
        text += fmt::format("{}{}", text.empty() ? "" : ",", extent);
      return badInput("value '{}' has the extents [{}] for these inputs", value.name, text);
    }
    frame->valueBytes[v] = *bytes;
    frame->bound[v] = true;
  }
  for (uint32_t v = 0; v < count; ++v) {
    uint32_t root = frame->roots[v];
    if (root == v)
      continue;
    frame->bound[v] = frame->bound[v] && frame->bound[root];
    const PlanValue &value = block.values[v];
    if (!value.strides.empty()) {
      if (frame->bound[v] && !staysInside(value.type, frame->valueExtents[v], value.strides,
                                          value.offset, frame->valueBytes[root]))
        return badInput("value '{}' shows more than '{}' has for these inputs", value.name,
                        block.values[root].name);
      continue;
    }
    if (frame->bound[v] && frame->valueBytes[v] != frame->valueBytes[root])
      return badInput("value '{}' is a view of '{}', which has another size for these inputs",
                      value.name, block.values[root].name);
  }
  return Status::success();
}

void FrameBuilder::placeValues() {
  bool placed = block.isPlaced();
  std::vector<uint64_t> sizes = frame->valueBytes;
  bool replaced = false;
  for (uint32_t s = 0; s < block.steps.size(); ++s) {
    auto instead = model.workspaceInstead(number, s);
    workspaces.push_back(instead.value_or(block.steps[s].workspaceBytes));
    replaced |= instead.has_value();
  }
  for (uint32_t v = 0; v < block.values.size(); ++v) {
    const PlanValue &value = block.values[v];
    bool isStatic = std::all_of(value.extents.begin(), value.extents.end(),
                                [](const Extent &extent) { return extent.isStatic(); });
    placed &= value.storage != Storage::Arena || isStatic;
    sizes[v] = !frame->bound[v] ? 0 : isStatic ? sizes[v] : roundUpCoarsely(sizes[v]);
  }
  if (placed && !replaced) { // the plan did it
    for (const PlanValue &value : block.values)
      frame->valueOffsets.push_back(value.offset);
    for (const PlanStep &step : block.steps)
      workspaceOffsets.push_back(step.workspaceOffset);
    plannedArena = block.arenaBytes;
    deviceScratch = block.deviceArenaBytes;
  } else {
    if (lastPlaced.values != sizes || lastPlaced.workspaces != workspaces) {
      lastPlaced.placement = placeBlock(block, sizes, workspaces);
      lastPlaced.values = std::move(sizes);
      lastPlaced.workspaces = workspaces;
    }
    const BlockPlacement &placement = lastPlaced.placement;
    frame->valueOffsets = placement.valueOffsets;
    workspaceOffsets = placement.workspaceOffsets;
    plannedArena = placement.arenaBytes;
    deviceScratch = placement.deviceArenaBytes;
  }
  plannedArena = roundUp(plannedArena);
  frame->arenaBytes = plannedArena;
  frame->deviceArenaBytes = deviceScratch;
}

dvt_tensor FrameBuilder::describe(uint32_t v) const {
  dvt_tensor tensor{};
  tensor.extents = frame->valueExtents[v].data();
  if (!block.values[v].strides.empty())
    tensor.strides = block.values[v].strides.data();
  tensor.rank = frame->valueExtents[v].size();
  tensor.type = block.values[v].type;
  tensor.memory = block.values[v].memory;
  return tensor;
}

uint32_t FrameBuilder::addTensor(uint32_t v, uint64_t from) {
  const PlanValue &root = block.values[frame->roots[v]];
  uint32_t index = frame->tensors.size();
  dvt_tensor tensor = describe(v);
  uint64_t offset = from + (block.values[v].strides.empty() ? 0 : block.values[v].offset);
  switch (root.storage) {
  case Storage::Input:
    frame->inputSlots[root.index].push_back({index, offset});
    break;
  case Storage::Output:
    frame->outputSlots[root.index].push_back({index, offset});
    break;
  case Storage::Constant:
    tensor.data = const_cast<void *>(frame->constantData[v]);
    break;
  default:
    (root.memory == DVT_MEMORY_DEVICE ? frame->deviceSlots : frame->arenaSlots)
        .push_back({index, frame->valueOffsets[frame->roots[v]] + offset});
  }
  frame->tensors.push_back(tensor);
  return index;
}

uint32_t FrameBuilder::addScratchTensor(uint32_t v, uint64_t offset) {
  frame->arenaSlots.push_back({uint32_t(frame->tensors.size()), offset});
  frame->tensors.push_back(describe(v));
  return frame->tensors.size() - 1;
}

/// The bytes of a value that is a constant.
Status FrameBuilder::readConstant(uint32_t value) {
  const PlanValue &root = block.values[frame->roots[value]];
  if (root.storage != Storage::Constant)
    return Status::success();
  auto data = model.constantData(root.index, frame->valueExtents[value], "");
  if (!data)
    return data.takeError();
  frame->constantData[value] = *data;
  return Status::success();
}

void FrameBuilder::addCopy(uint32_t step, uint32_t source, uint32_t target, uint64_t bytes) {
  addAction(Action::Kind::Copy, step).bytes = bytes;
  operands.back() = {source, target};
}

Action &FrameBuilder::addAction(Action::Kind kind, uint32_t step) {
  Action &action = frame->actions.emplace_back();
  action.kind = kind;
  action.step = step;
  operands.push_back({0, 0});
  return action;
}

const Layout *FrameBuilder::keep(const std::string &text) {
  auto layout = Layout::parse(text); // checkPlan and the copying of candidates saw it
  frame->layouts.push_back(std::make_unique<Layout>(layout ? *layout : Layout()));
  return frame->layouts.back().get();
}

void FrameBuilder::addReorder(uint32_t step, uint32_t value, uint32_t source,
                              const std::string &from, uint32_t target, const std::string &to) {
  Action &action = addAction(Action::Kind::Reorder, step);
  action.from = keep(from);
  action.to = keep(to);
  action.extents = &frame->valueExtents[value];
  operands.back() = {source, target};
}

bool FrameBuilder::isEmpty(const PlanStep &step) const {
  return !step.outputs.empty() &&
         std::all_of(step.outputs.begin(), step.outputs.end(), [&](uint32_t value) {
           return value == kNoValue || frame->valueBytes[value] == 0;
         });
}

Status FrameBuilder::checkAgainstProblem(const PlanStep &step, const Problem &problem) {
  auto check = [&](uint32_t value, uint32_t operand) {
    return checkExtents(step, block.values[value], frame->valueExtents[value],
                        problem.values[operand], symbols);
  };
  for (size_t i = 0; i < step.inputs.size(); ++i)
    if (Status status = check(step.inputs[i], problem.inputs[i]); !status)
      return status;
  for (size_t i = 0; i < step.outputs.size(); ++i)
    if (Status status = check(step.outputs[i], problem.outputs[i]); !status)
      return status;
  return Status::success();
}

Status FrameBuilder::addKernel(uint32_t index, std::shared_ptr<PreparedKernel> kernel) {
  const PlanStep &step = block.steps[index];
  const Candidate &candidate = kernel->candidate();
  uint64_t scratch = plannedArena;
  auto takeScratch = [&](uint64_t bytes) {
    uint64_t offset = scratch;
    scratch += roundUp(bytes);
    frame->arenaBytes = std::max(frame->arenaBytes, scratch);
    return offset;
  };
  // Where an operand's value has another layout than the kernel wants, it goes through scratch
  // memory.
  auto scratchFor = [&](uint32_t value,
                        const std::string &layout) -> Expected<std::optional<uint64_t>> {
    if (block.values[value].isLaidOut(layout))
      return std::optional<uint64_t>();
    auto bytes = checkedBytes(block.values[value].type, frame->valueExtents[value], *keep(layout));
    if (!bytes)
      return badInput("value '{}' is too large in layout {}", block.values[value].name, layout);
    return std::optional(takeScratch(*bytes));
  };
  std::vector<std::optional<uint64_t>> inputScratch, outputScratch;
  for (uint32_t i = 0; i < step.inputs.size(); ++i) {
    uint32_t value = step.inputs[i];
    const PlanValue &root = block.values[frame->roots[value]];
    if (root.storage == Storage::Constant) {
      inputScratch.push_back(std::nullopt);
      continue;
    }
    auto offset = scratchFor(value, candidate.inputLayouts[i]);
    if (!offset)
      return offset.takeError();
    inputScratch.push_back(*offset);
    if (*offset) {
      uint32_t source = addTensor(value), target = addScratchTensor(value, **offset);
      addReorder(index, value, source, block.values[value].layout, target,
                 candidate.inputLayouts[i]);
    }
  }
  for (uint32_t i = 0; i < step.outputs.size(); ++i) {
    auto offset = scratchFor(step.outputs[i], candidate.outputLayouts[i]);
    if (!offset)
      return offset.takeError();
    outputScratch.push_back(*offset);
  }

  Operands first{uint32_t(frame->tensors.size()), 0};
  for (uint32_t i = 0; i < step.inputs.size(); ++i) {
    uint32_t value = step.inputs[i];
    const PlanValue &root = block.values[frame->roots[value]];
    if (root.storage == Storage::Constant) {
      auto data =
          model.constantData(root.index, frame->valueExtents[value], candidate.inputLayouts[i]);
      if (!data)
        return data.takeError();
      frame->constantData[value] = *data;
    }
    inputScratch[i] ? addScratchTensor(value, *inputScratch[i]) : addTensor(value);
  }
  first.outputs = frame->tensors.size();
  for (uint32_t i = 0; i < step.outputs.size(); ++i)
    outputScratch[i] ? addScratchTensor(step.outputs[i], *outputScratch[i])
                     : addTensor(step.outputs[i]);
  Action &action = addAction(Action::Kind::Run, index);
  operands.back() = first;
  action.run = kernel->runFunction();
  action.kernel = kernel->handle();
  action.args.input_count = step.inputs.size();
  action.args.output_count = step.outputs.size();
  uint64_t workspace = kernel->workspaceBytes();
  action.args.workspace_bytes = workspace;
  action.workspaceOffset =
      workspace <= workspaces[index] ? workspaceOffsets[index] : takeScratch(workspace);
  for (uint32_t i = 0; i < step.outputs.size(); ++i)
    if (outputScratch[i]) {
      uint32_t value = step.outputs[i];
      uint32_t source = addScratchTensor(value, *outputScratch[i]), target = addTensor(value);
      addReorder(index, value, source, candidate.outputLayouts[i], target,
                 block.values[value].layout);
    }
  frame->kernels.push_back(std::move(kernel));
  return Status::success();
}

/// On a device kernels get what they were planned with: nothing is converted around them.
Status FrameBuilder::addDeviceKernel(uint32_t index, std::shared_ptr<PreparedKernel> kernel) {
  const PlanStep &step = block.steps[index];
  const Candidate &candidate = kernel->candidate();
  auto suits = [&](uint32_t value, const std::string &layout) {
    return block.values[frame->roots[value]].storage == Storage::Constant ||
           block.values[value].isLaidOut(layout);
  };
  Operands first{uint32_t(frame->tensors.size()), 0};
  for (uint32_t i = 0; i < step.inputs.size(); ++i) {
    uint32_t value = step.inputs[i];
    const PlanValue &root = block.values[frame->roots[value]];
    if (!suits(value, candidate.inputLayouts[i]))
      return unavailable("step '{}': {} takes '{}' in another layout than planned", step.label,
                         candidate.label(), block.values[value].name);
    if (root.storage == Storage::Constant) {
      auto address =
          model.deviceConstant(root.index, frame->valueExtents[value], candidate.inputLayouts[i]);
      if (!address)
        return address.takeError();
      frame->constantData[value] = reinterpret_cast<const void *>(*address);
    }
    addTensor(value);
  }
  first.outputs = frame->tensors.size();
  for (uint32_t i = 0; i < step.outputs.size(); ++i) {
    if (!suits(step.outputs[i], candidate.outputLayouts[i]))
      return unavailable("step '{}': {} gives '{}' in another layout than planned", step.label,
                         candidate.label(), block.values[step.outputs[i]].name);
    addTensor(step.outputs[i]);
  }
  Action &action = addAction(Action::Kind::Run, index);
  operands.back() = first;
  action.onDevice = true;
  action.run = kernel->runFunction();
  action.kernel = kernel->handle();
  action.args.input_count = step.inputs.size();
  action.args.output_count = step.outputs.size();
  uint64_t workspace = action.args.workspace_bytes = kernel->workspaceBytes();
  action.workspaceOffset = workspaceOffsets[index];
  if (workspace > workspaces[index]) { // one after the other all may have what lies behind
    action.workspaceOffset = deviceScratch;
    frame->deviceArenaBytes = std::max(frame->deviceArenaBytes, deviceScratch + workspace);
  }
  frame->kernels.push_back(std::move(kernel));
  return Status::success();
}

Status FrameBuilder::addStep(uint32_t index) {
  const PlanStep &step = block.steps[index];
  auto isBound = [&](const std::vector<uint32_t> &values) {
    return std::all_of(values.begin(), values.end(),
                       [&](uint32_t value) { return value == kNoValue || frame->bound[value]; });
  };
  bool known = isBound(step.inputs) && isBound(step.outputs);
  switch (step.kind) {
  case StepKind::Copy: {
    if (!known)
      break;
    if (Status status = readConstant(step.inputs[0]); !status)
      return status;
    uint32_t source = addTensor(step.inputs[0]), target = addTensor(step.outputs[0]);
    addCopy(index, source, target, frame->valueBytes[step.outputs[0]]);
    return Status::success();
  }
  case StepKind::Transfer: {
    bool toDevice = block.values[step.outputs[0]].memory == DVT_MEMORY_DEVICE;
    if (!known || frame->valueBytes[step.inputs[0]] != frame->valueBytes[step.outputs[0]])
      return badInput("step '{}': the size of what it moves does not follow from the inputs",
                      step.label);
    if (toDevice)
      if (Status status = readConstant(step.inputs[0]); !status)
        return status;
    uint32_t source = addTensor(step.inputs[0]), target = addTensor(step.outputs[0]);
    Action &action = addAction(toDevice ? Action::Kind::ToDevice : Action::Kind::ToHost, index);
    action.bytes = frame->valueBytes[step.outputs[0]];
    action.staged = Staging::place(action.bytes, frame->stagedBytes);
    operands.back() = {source, target};
    return Status::success();
  }
  case StepKind::Append: {
    if (!known)
      break;
    uint64_t from = 0;
    for (uint32_t part : step.inputs) {
      if (Status status = readConstant(part); !status)
        return status;
      uint32_t source = addTensor(part), target = addTensor(step.outputs[0], from);
      addCopy(index, source, target, frame->valueBytes[part]);
      from += frame->valueBytes[part];
    }
    return from == frame->valueBytes[step.outputs[0]]
               ? Status::success()
               : badInput("step '{}': its parts have {} bytes together, not {}", step.label, from,
                          frame->valueBytes[step.outputs[0]]);
  }
  case StepKind::ShapeData: {
    auto numbers = std::make_unique<std::vector<int64_t>>();
    for (const Extent &extent : step.data)
      if (auto number = extent.evaluate(symbols))
        numbers->push_back(*number);
    if (!known || numbers->size() != step.data.size())
      break;
    uint32_t target = addTensor(step.outputs[0]);
    addAction(Action::Kind::Write, index).extents = numbers.get();
    operands.back() = {target, target};
    frame->numbers.push_back(std::move(numbers));
    return Status::success();
  }
  case StepKind::If:
  case StepKind::Loop:
  case StepKind::Scan:
  case StepKind::Refuse:
    break; // the session does it
  default: {
    if (!known)
      break;
    if (isEmpty(step))
      return Status::success();
    if (Status status = checkAgainstProblem(step, model.problem(step.problem)); !status)
      return status;
    auto kernel = model.kernelFor(number, index, symbols);
    if (!kernel)
      return kernel.takeError();
    const Candidate &bound = (*kernel)->candidate();
    if (model.problem(step.problem).hasSymbols() &&
        (!bound.runtimeExtents || bound.label() != step.choice.candidate.label()))
      frame->packedBytes += (*kernel)->packedBytes();
    return bound.memory == DVT_MEMORY_DEVICE ? addDeviceKernel(index, std::move(*kernel))
                                             : addKernel(index, std::move(*kernel));
  }
  }
  addAction(Action::Kind::Unbound, index);
  frame->hasUnbound = true;
  return Status::success();
}

Expected<std::unique_ptr<Frame>> FrameBuilder::run() {
  frame->inputSlots.resize(block.inputs.size());
  frame->outputSlots.resize(block.outputs.size());
  frame->inputData.assign(block.inputs.size(), nullptr);
  frame->outputData.assign(block.outputs.size(), nullptr);
  if (Status status = evaluateValues(); !status)
    return status.takeError();
  placeValues();
  for (uint32_t index = 0; index < block.steps.size(); ++index)
    if (Status status = addStep(index); !status)
      return status.takeError();
  for (uint32_t output : block.outputs)
    for (uint32_t value : {output, frame->roots[output]}) // the extents of a view may be open
      if (Status status = readConstant(value); !status)
        return status.takeError();
  // The tensors no longer move: operands can be pointed at.
  for (size_t a = 0; a < frame->actions.size(); ++a) {
    dvt_run_args &args = frame->actions[a].args;
    args.struct_size = sizeof(args);
    args.inputs = frame->tensors.data() + operands[a].inputs;
    args.outputs = frame->tensors.data() + operands[a].outputs;
    args.parallel = model.parallel();
  }
  return std::move(frame);
}

Expected<std::unique_ptr<Frame>> Frame::build(Model &model, uint32_t block,
                                              const SymbolValues &symbols, PlacedSizes &placed) {
  auto frame = FrameBuilder(model, block, symbols, placed).run();
  model.endUpload(); // the constants are there
  return frame;
}

void Frame::place(uint8_t *base) {
  if (arena == base)
    return;
  arena = base;
  for (const Slot &slot : arenaSlots)
    tensors[slot.tensor].data = base + slot.offset;
  for (Action &action : actions)
    if (!action.onDevice)
      action.args.workspace = action.args.workspace_bytes ? base + action.workspaceOffset : nullptr;
}

void Frame::placeOnDevice(device::DeviceAddress base, device::StreamHandle stream) {
  auto pointer = [&](uint64_t offset) { return reinterpret_cast<void *>(base + offset); };
  for (const Slot &slot : deviceSlots)
    tensors[slot.tensor].data = pointer(slot.offset);
  for (Action &action : actions)
    if (action.onDevice) {
      action.args.workspace =
          action.args.workspace_bytes ? pointer(action.workspaceOffset) : nullptr;
      action.args.stream = stream;
    }
}

void *Frame::data(uint32_t value) const {
  const PlanValue &root = block->values[roots[value]];
  switch (root.storage) {
  case Storage::Input:
    return inputData[root.index];
  case Storage::Output:
    return outputData[root.index];
  case Storage::Constant:
    return const_cast<void *>(constantData[value]);
  default:
    return arena + valueOffsets[roots[value]];
  }
}

} // namespace dovetail
