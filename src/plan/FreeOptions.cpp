// SPDX-License-Identifier: Apache-2.0
//
// Operands and results are row-major. An extent that depends on data makes an option wait for what
// finds it out.
#include "plan/FreeOptions.h"

#include <algorithm>

#include "plan/ExtentSources.h"

namespace dovetail::plan {

void addFreeOptions(const OpTable &table, std::optional<uint32_t> device,
                    std::vector<CoverOption> &options, std::vector<OptionMeaning> &meanings) {
  ExtentSources sources(table);
  using Kind = OptionMeaning::Kind;
  auto isFixed = [&](uint32_t value) {
    const std::vector<Extent> &extents = table.values[value].extents;
    return std::all_of(extents.begin(), extents.end(),
                       [](const Extent &extent) { return extent.isStatic(); });
  };
  auto add = [&](Kind kind, uint32_t op, uint32_t value, const std::vector<uint32_t> &operands,
                 const std::vector<uint32_t> &waitsFor, const std::vector<uint32_t> &results,
                 uint32_t layout = 0) {
    CoverOption option;
    for (const std::vector<uint32_t> *needed : {&operands, &waitsFor})
      for (uint32_t number : *needed)
        if (number != kNoValue && !table.values[number].constant)
          option.needs.push_back({number, needed == &waitsFor ? 0 : layout});
    for (uint32_t number : results)
      option.gives.push_back({number, layout});
    std::sort(option.needs.begin(), option.needs.end());
    option.needs.erase(std::unique(option.needs.begin(), option.needs.end()), option.needs.end());
    options.push_back(std::move(option));
    meanings.push_back({kind, 0, nullptr, nullptr, op, value, layout});
  };
  for (uint32_t number = 0; number < table.ops.size(); ++number) {
    const TableOp &op = table.ops[number];
    if (op.role == OpRole::View && !op.inputs.empty() && op.outputs.size() == 1) {
      add(Kind::View, number, 0, {op.inputs[0]}, sources.ofOp(op), op.outputs);
      bool isConstant = table.values[op.inputs[0]].constant;
      if (device && !isConstant && isFixed(op.inputs[0]) && isFixed(op.outputs[0]) &&
          !table.values[op.inputs[0]].dataDependent)
        add(Kind::View, number, 0, {op.inputs[0]}, sources.ofOp(op), op.outputs, *device);
    }
    if (op.role == OpRole::Control)
      add(Kind::Control, number, 0, op.inputs, sources.ofOp(op), op.outputs);
  }
  for (uint32_t value = 0; value < table.values.size(); ++value)
    if (table.values[value].isShapeData)
      add(Kind::ShapeData, 0, value, {}, sources.ofShapeData(value), {value});
}

std::vector<uint32_t> ranksOf(const OpTable &table) {
  ExtentSources sources(table);
  std::vector<uint32_t> ranks;
  for (const TableValue &value : table.values) {
    bool isStridedView = !value.strides.empty(); // made as soon as what it shows
    ranks.push_back(isStridedView ? ranks[table.ops[static_cast<size_t>(value.producer)].inputs[0]]
                                  : 2 * static_cast<uint32_t>(value.producer + 1));
  }
  for (uint32_t value = 0; value < table.values.size(); ++value)
    if (table.values[value].isShapeData)
      for (uint32_t source : sources.ofShapeData(value)) // between it and what comes next
        ranks[value] = std::max(ranks[value], ranks[source] + 1);
  return ranks;
}

} // namespace dovetail::plan
