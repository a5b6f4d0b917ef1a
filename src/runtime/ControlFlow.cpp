// SPDX-License-Identifier: Apache-2.0
//
// Runs If, Loop and Scan: binds the session of a body to the step's operands, runs it as often as
// the op asks for, and puts together what it gives. Values carried from one iteration to the next
// change hands without a copy and may change their extents on the way.
#include "runtime/UnboundStep.h"

#include <algorithm>
#include <cstring>

#include "artifact/BlockMemory.h"
#include "artifact/ControlFlow.h"
#include "runtime/StridedCopy.h"

namespace dovetail {

namespace {

std::span<const int64_t> extentsOf(const dvt_tensor &tensor) {
  return {tensor.extents, tensor.rank};
}

int64_t countOf(std::span<const int64_t> extents) {
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  return count;
}

std::string listText(std::span<const int64_t> numbers) {
  std::string text;
  for (int64_t number : numbers)
    text += fmt::format("{}{}", text.empty() ? "" : ",", number);
  return "[" + text + "]";
}

/// A tensor seen as a row of others, along one of its axes.
struct Row {
  int64_t length = 0, stride = 0;
  std::vector<int64_t> extents, strides; ///< of one element; strides in elements

  Row(std::span<const int64_t> whole, uint32_t axis) {
    int64_t dense = 1;
    for (size_t d = whole.size(); d-- > 0;) {
      if (d == axis) {
        length = whole[d];
        stride = dense;
      } else {
        extents.insert(extents.begin(), whole[d]);
        strides.insert(strides.begin(), dense);
      }
      dense *= whole[d];
    }
  }
  /// Bytes from the start of the whole to element `index` of the row.
  int64_t offset(const ScanAxis &axis, int64_t index, dvt_type type) const {
    return (axis.backwards ? length - 1 - index : index) * stride * int64_t(typeBits(type) / 8);
  }
};

/// What a Loop stacks up along a new first axis, while the number of iterations is not known.
struct Stack {
  HostBuffer memory;
  uint64_t used = 0;
  std::vector<int64_t> element;

  [[nodiscard]] bool append(const void *data, uint64_t bytes, const HostAllocator &allocator) {
    if (used + bytes > memory.size()) {
      HostBuffer larger(allocator);
      if (!larger.reserve(std::max(used + bytes, 2 * memory.size())))
        return false;
      if (used > 0)
        std::memcpy(larger.data(), memory.data(), used);
      memory.swap(larger);
    }
    if (bytes > 0)
      std::memcpy(memory.data() + used, data, bytes);
    used += bytes;
    return true;
  }
};

} // namespace

Status UnboundStep::readDense(uint32_t position, dvt_tensor &tensor) {
  return readOperand(step.inputs[position], "", tensor);
}

/// Gives input `input` of the body the operand at `position`.
Status UnboundStep::bindBody(Session &body, uint32_t input, uint32_t position) {
  dvt_tensor tensor;
  if (Status status = readDense(position, tensor); !status)
    return status;
  return body.bindInput(input, tensor.data, extentsOf(tensor));
}

Status UnboundStep::bindCaptured(Session &body, uint32_t captured) {
  auto inner = static_cast<uint32_t>(body.inputs.size()) - captured;
  auto outer = static_cast<uint32_t>(step.inputs.size()) - captured;
  for (uint32_t i = 0; i < captured; ++i)
    if (Status status = bindBody(body, inner + i, outer + i); !status)
      return status;
  return Status::success();
}

/// Binds what is carried from one iteration to the next: `count` outputs of the body from
/// `firstOutput` on feed inputs from `firstInput` on, which begin with the operands at those
/// places.
Status UnboundStep::bindCarried(Session &body, uint32_t count, uint32_t firstInput,
                                uint32_t firstOutput) {
  for (uint32_t i = 0; i < count; ++i) {
    if (body.inputs[firstInput + i].fedFrom < 0)
      if (Status status = body.feedBack(firstOutput + i, firstInput + i); !status)
        return status;
    if (Status status = bindBody(body, firstInput + i, firstInput + i); !status)
      return status;
  }
  return Status::success();
}

/// The first results are what was carried last, or what was given where the body never `ran`.
Status UnboundStep::takeCarried(Session &body, uint32_t count, uint32_t firstInput,
                                uint32_t firstOutput, bool ran) {
  for (uint32_t i = 0; i < count; ++i) {
    dvt_tensor last;
    if (ran)
      last = body.output(firstOutput + i);
    else if (Status status = readDense(firstInput + i, last); !status)
      return status;
    if (Status status = takeTensor(i, last); !status)
      return status;
  }
  return Status::success();
}

/// What is stacked up has the same extents in every iteration.
Status UnboundStep::checkElement(uint32_t position, int64_t iteration,
                                 std::span<const int64_t> shape,
                                 std::span<const int64_t> others) const {
  if (std::ranges::equal(shape, others))
    return Status::success();
  return badInput("step '{}': iteration {} gives {} for '{}' and others gave {}; all must be alike "
                  "to be stacked",
                  step.label, iteration, listText(shape), value(step.outputs[position]).name,
                  listText(others));
}

Status UnboundStep::runBody(Session &body) {
  if (session.isCancelled())
    return session.stopCancelled();
  body.stepMicros = session.stepMicros ? session.stepMicros - model.firstStep(session.number) +
                                             model.firstStep(body.number)
                                       : nullptr;
  return body.runOnce();
}

/// The one element of a condition.
Expected<bool> UnboundStep::readFlag(const dvt_tensor &tensor) const {
  if (countOf(extentsOf(tensor)) != 1)
    return badInput("step '{}': a condition has the extents {}, where it must be one bool",
                    step.label, listText(extentsOf(tensor)));
  return *static_cast<const uint8_t *>(tensor.data) != 0;
}

/// Memory for the result at `position`, which turned out to have these extents.
Expected<void *> UnboundStep::placeResult(uint32_t position, const std::vector<int64_t> &shape) {
  uint32_t number = step.outputs[position];
  if (value(number).storage == Storage::Dynamic) {
    void *data = allocate(this, position, static_cast<uint32_t>(shape.size()), shape.data());
    if (!data)
      return unavailable("step '{}': no memory for '{}' with the extents {}", step.label,
                         value(number).name, listText(shape));
    if (Status status = learn(number); !status)
      return status.takeError();
    return data;
  }
  dvt_tensor tensor;
  if (Status status = writeOperand(number, "", tensor); !status)
    return status.takeError();
  if (extents(number) != shape)
    return badInput("step '{}': '{}' came out with the extents {}, {} were expected", step.label,
                    value(number).name, listText(shape), listText(extents(number)));
  return tensor.data;
}

/// Copies a tensor to the result at `position`.
Status UnboundStep::takeTensor(uint32_t position, const dvt_tensor &from) {
  auto shape = extentsOf(from);
  auto data = placeResult(position, {shape.begin(), shape.end()});
  if (!data)
    return data.takeError();
  if (uint64_t bytes = bytesOf(from.type, countOf(shape)))
    std::memcpy(*data, from.data, bytes);
  return Status::success();
}

/// Lets the body write its output straight to the result where the extents of that are known.
Status UnboundStep::bindResult(Session &body, uint32_t position) {
  uint32_t number = step.outputs[position];
  if (value(number).storage == Storage::Dynamic)
    return body.bindOutput(position, nullptr, {});
  dvt_tensor tensor;
  if (Status status = writeOperand(number, "", tensor); !status)
    return status;
  return body.bindOutput(position, tensor.data, extentsOf(tensor));
}

Status UnboundStep::runIf() {
  auto border = borderOf(step);
  if (!border)
    return border.takeError();
  dvt_tensor condition;
  if (Status status = readDense(0, condition); !status)
    return status;
  auto taken = readFlag(condition);
  if (!taken)
    return taken.takeError();
  Session &body = session.body(step.bodies[*taken ? 0 : 1]);
  if (Status status = bindCaptured(body, border->captured); !status)
    return status;
  stated.assign(step.outputs.size(), false);
  for (uint32_t i = 0; i < border->results; ++i)
    if (Status status = bindResult(body, i); !status)
      return status;
  if (Status status = runBody(body); !status)
    return status;
  for (uint32_t i = 0; i < border->results; ++i)
    if (value(step.outputs[i]).storage == Storage::Dynamic)
      if (Status status = takeTensor(i, body.output(i)); !status)
        return status;
  return Status::success();
}

Status UnboundStep::runLoop() {
  auto border = borderOf(step);
  if (!border)
    return border.takeError();
  Session &body = session.body(step.bodies[0]);
  int64_t most = INT64_MAX;
  alignas(kTensorAlignment) int64_t iteration = 0;
  alignas(kTensorAlignment) uint8_t goesOn = 1;
  dvt_tensor given;
  if (step.inputs[0] != kNoValue) {
    if (Status status = readDense(0, given); !status)
      return status;
    if (countOf(extentsOf(given)) != 1)
      return badInput("step '{}': the trip count has the extents {}, where it must be one number",
                      step.label, listText(extentsOf(given)));
    most = *static_cast<const int64_t *>(given.data);
  }
  if (step.inputs[1] != kNoValue) {
    if (Status status = readDense(1, given); !status)
      return status;
    auto flag = readFlag(given);
    if (!flag)
      return flag.takeError();
    goesOn = *flag;
  }
  const std::vector<int64_t> ones(
      std::max(body.inputValue(0).extents.size(), body.inputValue(1).extents.size()), 1);
  auto one = [&](uint32_t input) {
    return std::span(ones).first(body.inputValue(input).extents.size());
  };
  if (Status status = body.bindInput(0, &iteration, one(0)); !status)
    return status;
  if (Status status = body.bindInput(1, &goesOn, one(1)); !status)
    return status;
  if (Status status = bindCarried(body, border->carried, 2, 1); !status)
    return status;
  if (Status status = bindCaptured(body, border->captured); !status)
    return status;

  stated.assign(step.outputs.size(), false);
  std::vector<Stack> stacks(border->stacked);
  for (; iteration < most && goesOn; ++iteration) {
    if (Status status = runBody(body); !status)
      return status;
    auto flag = readFlag(body.output(0));
    if (!flag)
      return flag.takeError();
    goesOn = *flag;
    for (uint32_t i = 0; i < border->stacked; ++i) {
      const dvt_tensor &element = body.output(1 + border->carried + i);
      auto shape = extentsOf(element);
      if (iteration == 0)
        stacks[i].element.assign(shape.begin(), shape.end());
      else if (Status status =
                   checkElement(border->carried + i, iteration, shape, stacks[i].element);
               !status)
        return status;
      if (!stacks[i].append(element.data, bytesOf(element.type, countOf(shape)), model.allocator()))
        return unavailable("step '{}': no memory for the results of {} iterations", step.label,
                           iteration + 1);
    }
  }

  if (Status status = takeCarried(body, border->carried, 2, 1, iteration > 0); !status)
    return status;
  for (uint32_t i = 0; i < border->stacked; ++i) {
    uint32_t position = border->carried + i, number = step.outputs[position];
    std::vector<int64_t> shape{iteration};
    for (size_t d = 1; d < value(number).extents.size(); ++d)
      shape.push_back(iteration > 0
                          ? stacks[i].element[d - 1]
                          : value(number).extents[d].evaluate(session.symbols).value_or(0));
    bool mine = value(number).storage == Storage::Dynamic && stacks[i].used > 0;
    if (mine)
      session.found[number].memory.swap(stacks[i].memory);
    auto data = placeResult(position, shape);
    if (!data)
      return data.takeError();
    if (!mine && stacks[i].used > 0)
      std::memcpy(*data, stacks[i].memory.data(), stacks[i].used);
  }
  return Status::success();
}

Status UnboundStep::runScan() {
  auto border = borderOf(step);
  if (!border)
    return border.takeError();
  Session &body = session.body(step.bodies[0]);
  uint32_t carried = border->carried;
  if (Status status = bindCarried(body, carried, 0, 0); !status)
    return status;
  std::vector<dvt_tensor> sources(border->scanned);
  std::vector<Row> rows;
  for (uint32_t i = 0; i < border->scanned; ++i) {
    if (Status status = readDense(carried + i, sources[i]); !status)
      return status;
    rows.emplace_back(extentsOf(sources[i]), step.scanned[i].axis);
    if (rows[i].length != rows[0].length)
      return badInput("step '{}': it goes through {} elements of '{}' and {} of '{}'; both must be "
                      "as many",
                      step.label, rows[0].length, value(step.inputs[carried]).name, rows[i].length,
                      value(step.inputs[carried + i]).name);
  }
  if (Status status = bindCaptured(body, border->captured); !status)
    return status;

  int64_t length = rows[0].length;
  stated.assign(step.outputs.size(), false);
  std::vector<uint8_t *> targets(border->stacked, nullptr);
  std::vector<Row> stacked;
  auto place = [&](uint32_t i, std::vector<int64_t> shape) -> Status {
    const ScanAxis &axis = step.scanned[border->scanned + i];
    shape.insert(shape.begin() + axis.axis, length);
    auto data = placeResult(carried + i, shape);
    if (!data)
      return data.takeError();
    targets[i] = static_cast<uint8_t *>(*data);
    stacked.emplace_back(shape, axis.axis);
    return Status::success();
  };
  for (int64_t iteration = 0; iteration < length; ++iteration) {
    for (uint32_t i = 0; i < border->scanned; ++i) {
      const uint8_t *from = static_cast<const uint8_t *>(sources[i].data) +
                            rows[i].offset(step.scanned[i], iteration, sources[i].type);
      if (Status status = body.bindInput(carried + i, from, rows[i].extents, rows[i].strides);
          !status)
        return status;
    }
    if (Status status = runBody(body); !status)
      return status;
    for (uint32_t i = 0; i < border->stacked; ++i) {
      const dvt_tensor &element = body.output(carried + i);
      auto shape = extentsOf(element);
      if (iteration == 0)
        if (Status status = place(i, {shape.begin(), shape.end()}); !status)
          return status;
      if (Status status = checkElement(carried + i, iteration, shape, stacked[i].extents); !status)
        return status;
      copyStrided(element.type, shape, element.data, {},
                  targets[i] +
                      stacked[i].offset(step.scanned[border->scanned + i], iteration, element.type),
                  stacked[i].strides);
    }
  }
  for (uint32_t i = 0; i < border->stacked && length == 0; ++i) {
    uint32_t number = step.outputs[carried + i], axis = step.scanned[border->scanned + i].axis;
    std::vector<int64_t> shape;
    for (uint32_t d = 0; d < value(number).extents.size(); ++d)
      if (d != axis)
        shape.push_back(value(number).extents[d].evaluate(session.symbols).value_or(0));
    if (Status status = place(i, shape); !status)
      return status;
  }
  return takeCarried(body, carried, 0, 0, length > 0);
}

} // namespace dovetail
