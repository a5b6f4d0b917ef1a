// SPDX-License-Identifier: Apache-2.0
//
// States: outputs that become inputs after a run. Most change hands with their memory. Those that
// the plan grows stay where they are: the output lies in the memory of the input, which has room to
// spare, and a step writes what is new behind it. The plan has the dimension that grows first; here
// is also what translates that to the model's order, which the caller knows.
#include <algorithm>

#include "artifact/BlockMemory.h"
#include "runtime/Session.h"
#include "runtime/StridedCopy.h"

namespace dovetail {

namespace {
constexpr int64_t kMostLength = int64_t(1) << 46;
} // namespace

void Session::Border::turn(const Plan &plan, bool isInput, uint32_t index) {
  turned = stateOf(plan, isInput, index);
  if (turned)
    modelExtents = borderExtents(plan, isInput, index);
}

/// What the caller binds, by the dimensions of the plan's value.
void Session::Border::take(const void *memory, std::span<const int64_t> shape,
                           std::span<const int64_t> steps) {
  data = static_cast<uint8_t *>(const_cast<void *>(memory));
  isBound = true;
  extents.assign(shape.begin(), shape.end());
  strides.assign(steps.begin(), steps.end());
  if (isTurned()) {
    strides = inPlanOrder(turned, strides.empty() ? denseStrides(shape) : strides);
    extents = inPlanOrder(turned, extents);
  }
  if (isDense(extents, strides))
    strides.clear();
}

Status Session::feedBack(uint32_t output, uint32_t input) {
  if (output >= outputs.size() || input >= inputs.size())
    return badInput("output {} or input {} does not exist", output, input);
  const PlanValue &from = outputValue(output), &to = inputValue(input);
  if (from.type != to.type || from.extents.size() != to.extents.size())
    return badInput("output '{}' and input '{}' differ in type or rank", outputName(output),
                    inputName(input));
  for (size_t d = 0; d < from.extents.size(); ++d)
    if (from.extents[d].isStatic() && to.extents[d].isStatic() && from.extents[d] != to.extents[d])
      return badInput("output '{}' cannot become input '{}': extent {} is {} there and {} here",
                      outputName(output), inputName(input), d, from.extents[d].value(),
                      to.extents[d].value());
  if (outputs[output].isBound)
    return badInput("output '{}' is bound and cannot be fed back", outputName(output));
  auto orderOf = [](const Border &border) {
    return border.isTurned() ? border.turned->order : std::vector<uint32_t>();
  };
  if (orderOf(outputs[output]) != orderOf(inputs[input]))
    return badInput("output '{}' and input '{}' lie in different orders of dimensions in this "
                    "plan; compile the model with --state for this pair",
                    outputName(output), inputName(input));
  for (const Border &other : inputs)
    if (other.fedFrom == output)
      return badInput("output '{}' is fed back already", outputName(output));
  if (int64_t before = inputs[input].fedFrom; before >= 0)
    outputs[static_cast<size_t>(before)].feeds = -1;
  inputs[input].fedFrom = output;
  outputs[output].feeds = input;
  const PlanState *state = inputs[input].turned;
  inputs[input].grows = state && state->grows && state->output == output;
  changed = true;
  return Status::success();
}

Status Session::reserveState(uint32_t input, int64_t length) {
  if (input >= inputs.size() || !inputs[input].grows)
    return badInput("input {} is not fed back from an output that grows it", input);
  if (length < 0 || length > kMostLength)
    return badInput("a state of length {}", length);
  inputs[input].reserved = length;
  changed = true;
  return Status::success();
}

/// Memory for an output that is an input with something behind it: that of the input where there is
/// room, else new memory with room for as much again.
Status Session::growState(uint32_t index) {
  Border &output = outputs[index], &input = inputs[static_cast<size_t>(output.feeds)];
  uint32_t value = block.outputs[index];
  uint64_t bytes = current->frame->bytes(value);
  output.staged = false;
  if (input.holdsState() && input.state.size() >= bytes) {
    current->frame->setOutput(index, input.state.data());
    return Status::success();
  }
  int64_t length = current->frame->extents(value)[0];
  uint64_t wanted = 2 * bytes;
  if (length > 0 && input.reserved > length)
    wanted = std::max<uint64_t>(
        bytes / static_cast<uint64_t>(length) * static_cast<uint64_t>(input.reserved), bytes);
  if (!output.own.reserve(wanted) && !output.own.reserve(bytes))
    return unavailable("no memory for {} bytes of the state '{}'", bytes, outputName(index));
  current->frame->setOutput(index, output.own.data());
  return Status::success();
}

/// The same for an output of a body whose extents were found out in this run: the value that
/// becomes it gets the input's memory, or new one. Where a body fails, all its inputs are bound
/// again before the next run.
Status Session::lendState(uint32_t value) {
  if (!outer || current->frame->isBound(value))
    return Status::success();
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    if (block.outputs[i] != value || outputs[i].isBound || outputs[i].feeds < 0)
      continue;
    Border &input = inputs[static_cast<size_t>(outputs[i].feeds)];
    if (!input.grows)
      continue;
    if (Status status = resolve(value); !status)
      return status;
    auto bytes = checkedBytes(block.values[value].type, extentsOf(value), Layout());
    HostBuffer &memory = found[value].memory;
    if (bytes && input.holdsState() && input.state.size() >= *bytes)
      memory.swap(input.state); // where the input's elements stay
    else if (bytes && memory.size() < *bytes && *bytes <= INT64_MAX)
      (void)memory.reserve(2 * *bytes); // without it there is just enough
  }
  return Status::success();
}

/// Describes an output that lies at `memory` with `extents` to the caller, who knows the model's
/// dimensions. Where these come in another order he gets a dense copy, or the state itself with
/// strides.
Status Session::show(uint32_t index, void *memory, const std::vector<int64_t> &extents) {
  Border &output = outputs[index];
  output.resultExtents.assign(extents.begin(), extents.end());
  output.resultStrides.clear();
  if (output.isBound)
    output.resultStrides.assign(output.strides.begin(), output.strides.end());
  if (output.isTurned()) {
    output.resultStrides = inModelOrder(
        output.turned, output.resultStrides.empty() ? denseStrides(extents) : output.resultStrides);
    output.resultExtents = inModelOrder(output.turned, output.resultExtents);
  }
  if (isDense(output.resultExtents, output.resultStrides)) {
    output.resultStrides.clear();
  } else if (!output.isBound && output.feeds < 0) {
    auto bytes = checkedBytes(outputValue(index).type, extents, Layout());
    if (!bytes || !output.shown.reserve(*bytes))
      return unavailable("no memory for output '{}'", outputName(index));
    copyStrided(outputValue(index).type, output.resultExtents, memory, output.resultStrides,
                output.shown.data(), {});
    output.resultStrides.clear();
    memory = output.shown.data();
  }
  output.result = {memory,
                   output.resultExtents.data(),
                   output.resultStrides.empty() ? nullptr : output.resultStrides.data(),
                   uint32_t(extents.size()),
                   outputValue(index).type,
                   DVT_MEMORY_HOST};
  return Status::success();
}

/// After a run: what was an output becomes the input that it is fed back to.
void Session::feedInputs() {
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].fedFrom < 0)
      continue;
    Border &input = inputs[i], &output = outputs[input.fedFrom];
    if (!input.grows || output.result.data != input.state.data()) {
      output.own.swap(input.state); // the result stays where it is and becomes the input
      if (input.grows)
        output.own.reset(); // the state before, which is part of it
    }
    input.data = input.state.data();
    input.extents = extentsOf(block.outputs[input.fedFrom]);
    input.strides.clear();
    changed = true;
  }
}

} // namespace dovetail
