// SPDX-License-Identifier: Apache-2.0
//
// Finds out offsets and strides from attributes, constant operands and extents.
#include "plan/StridedViews.h"

#include <algorithm>
#include <cstring>

namespace dovetail::plan {
namespace {

/// Where the elements of a view lie in what it shows, in elements.
struct Window {
  int64_t offset = 0;
  std::vector<int64_t> strides;
};

using Integers = std::vector<int64_t>;

/// Row-major strides; nothing where one depends on a symbol.
std::optional<Integers> denseStrides(const std::vector<Extent> &extents) {
  Integers strides(extents.size(), 1);
  for (size_t d = extents.size(); d-- > 1;) {
    auto extent = extents[d].staticValue();
    if (!extent || *extent <= 0 || __builtin_mul_overflow(strides[d], *extent, &strides[d - 1]))
      return std::nullopt;
  }
  return strides;
}

/// The integers that an operand holds, where they are known now.
std::optional<Integers> numbersOf(const TableValue &value) {
  Integers numbers;
  if (value.isShapeData) {
    for (const Extent &extent : value.shapeData) {
      if (!extent.isStatic())
        return std::nullopt;
      numbers.push_back(extent.value());
    }
    return numbers;
  }
  if (!value.constant || !value.data || (value.type != DVT_I64 && value.type != DVT_I32))
    return std::nullopt;
  size_t bytes = value.type == DVT_I64 ? 8 : 4;
  for (size_t at = 0; at + bytes <= value.dataBytes; at += bytes) {
    const char *from = static_cast<const char *>(value.data) + at;
    int64_t wide = 0;
    int32_t narrow = 0;
    std::memcpy(bytes == 8 ? static_cast<void *>(&wide) : &narrow, from, bytes);
    numbers.push_back(bytes == 8 ? wide : narrow);
  }
  return numbers;
}

std::optional<int64_t> axisOf(const TableOp &op, size_t rank) {
  auto found = op.attributes.find("axis");
  int64_t axis = found == op.attributes.end() || !std::holds_alternative<int64_t>(found->second)
                     ? 0
                     : std::get<int64_t>(found->second);
  axis += axis < 0 ? static_cast<int64_t>(rank) : 0;
  return axis < 0 || axis >= static_cast<int64_t>(rank) ? std::nullopt : std::optional(axis);
}

std::optional<Window> sliceWindow(const OpTable &table, const TableOp &op, const Integers &dense) {
  const TableValue &base = table.values[op.inputs[0]];
  auto list = [&](size_t k) -> std::optional<Integers> {
    bool isThere =
        op.inputs.size() > k && op.inputs[k] != kNoValue && !table.values[op.inputs[k]].absent;
    return isThere ? numbersOf(table.values[op.inputs[k]]) : std::nullopt;
  };
  auto starts = list(1), axes = list(3), steps = list(4);
  bool hasAxes = op.inputs.size() > 3 && op.inputs[3] != kNoValue,
       hasSteps = op.inputs.size() > 4 && op.inputs[4] != kNoValue;
  if (!starts || (hasAxes && !axes) || (hasSteps && !steps))
    return std::nullopt;
  Window window{0, dense};
  for (size_t i = 0; i < starts->size(); ++i) {
    int64_t axis = axes && i < axes->size() ? (*axes)[i] : static_cast<int64_t>(i);
    int64_t step = steps && i < steps->size() ? (*steps)[i] : 1;
    axis += axis < 0 ? static_cast<int64_t>(dense.size()) : 0;
    if (axis < 0 || axis >= static_cast<int64_t>(dense.size()) || step < 1)
      return std::nullopt;
    auto extent = base.extents[static_cast<size_t>(axis)].staticValue();
    if (!extent)
      return std::nullopt;
    int64_t start = (*starts)[i];
    start = std::clamp<int64_t>(start + (start < 0 ? *extent : 0), 0, *extent);
    window.offset += start * dense[static_cast<size_t>(axis)];
    if (__builtin_mul_overflow(dense[static_cast<size_t>(axis)], step,
                               &window.strides[static_cast<size_t>(axis)]))
      return std::nullopt;
  }
  return window;
}

std::optional<Window> splitWindow(const OpTable &table, const TableOp &op, size_t output,
                                  const Integers &dense) {
  auto axis = axisOf(op, dense.size());
  if (!axis)
    return std::nullopt;
  int64_t before = 0;
  for (size_t i = 0; i < output; ++i) {
    if (op.outputs[i] == kNoValue)
      return std::nullopt;
    auto extent = table.values[op.outputs[i]].extents[static_cast<size_t>(*axis)].staticValue();
    if (!extent)
      return std::nullopt;
    before += *extent;
  }
  return Window{before * dense[static_cast<size_t>(*axis)], dense};
}

std::optional<Window> transposeWindow(const TableOp &op, const Integers &dense) {
  auto found = op.attributes.find("perm");
  const Integers *order =
      found == op.attributes.end() ? nullptr : std::get_if<Integers>(&found->second);
  if (!order || order->size() != dense.size())
    return std::nullopt;
  Window window{0, Integers(dense.size())};
  for (size_t d = 0; d < dense.size(); ++d) {
    if ((*order)[d] < 0 || (*order)[d] >= static_cast<int64_t>(dense.size()))
      return std::nullopt;
    window.strides[d] = dense[static_cast<size_t>((*order)[d])];
  }
  return window;
}

std::optional<Window> windowOf(const OpTable &table, const TableOp &op, size_t output) {
  if (op.role != OpRole::Movement || op.inputs.empty() || op.inputs[0] == kNoValue)
    return std::nullopt;
  const TableValue &base = table.values[op.inputs[0]];
  const TableValue &result = table.values[op.outputs[output]];
  // What was found out at run time has memory of its own kind.
  if (base.constant || base.isShapeData || base.dataDependent || result.isShapeData ||
      typeBits(base.type) < 8 || result.extents.size() != base.extents.size())
    return std::nullopt;
  auto dense = denseStrides(base.extents);
  if (!dense)
    return std::nullopt;
  if (op.name == "slice")
    return sliceWindow(table, op, *dense);
  if (op.name == "split")
    return splitWindow(table, op, output, *dense);
  if (op.name == "transpose")
    return transposeWindow(op, *dense);
  return std::nullopt;
}

} // namespace

std::vector<uint32_t> addStridedViews(OpTable &table) {
  std::vector<uint32_t> views(table.values.size(), kNoValue);
  for (size_t number = 0, count = table.ops.size(); number < count; ++number)
    for (size_t i = 0; i < table.ops[number].outputs.size(); ++i) {
      const TableOp &op = table.ops[number];
      uint32_t result = op.outputs[i];
      if (result == kNoValue || table.values[result].users.empty())
        continue;
      auto window = windowOf(table, op, i);
      if (!window)
        continue;
      TableValue view;
      view.type = table.values[result].type;
      view.extents = table.values[result].extents;
      view.name = table.values[result].name;
      view.strides = window->strides;
      view.offset = window->offset;
      view.producer = static_cast<int32_t>(table.ops.size());
      TableOp show;
      show.name = "dvt_strided_view";
      show.role = OpRole::View;
      show.inputs = {op.inputs[0]};
      show.outputs = {static_cast<uint32_t>(table.values.size())};
      show.node = op.node;
      views[result] = show.outputs[0];
      table.values.push_back(std::move(view));
      table.ops.push_back(std::move(show));
    }
  return views;
}

std::optional<RegionProblem> overStridedViews(const OpTable &table, const RegionProblem &problem,
                                              const std::vector<uint32_t> &views) {
  RegionProblem result = problem;
  bool any = false;
  for (size_t k = 0; k < result.operands.size(); ++k) {
    uint32_t view = views[result.operands[k]];
    if (view == kNoValue)
      continue;
    result.operands[k] = view;
    result.problem.values[result.problem.inputs[k]].strides = table.values[view].strides;
    any = true;
  }
  return any ? std::optional(std::move(result)) : std::nullopt;
}

} // namespace dovetail::plan
