// SPDX-License-Identifier: Apache-2.0
//
// Runs the shape rules over the table once more, this time for the elements they track.
#include "plan/ShapeData.h"

#include <algorithm>

#include "graph/shapes/ShapeRules.h"
#include "plan/ExtentSources.h"

namespace dovetail::plan {
namespace {

graph::ValueFacts factsOf(const TableValue &value) {
  graph::ValueFacts facts;
  facts.absent = value.absent;
  facts.type = value.type;
  facts.shape = value.extents;
  facts.constant = value.constant;
  if (value.constant && value.data)
    facts.bytes = {static_cast<const char *>(value.data), value.dataBytes};
  if (value.isShapeData)
    facts.elements = graph::Elements(value.shapeData.begin(), value.shapeData.end());
  return facts;
}

void track(OpTable &table, const TableOp &op) {
  const graph::OpInfo *info = graph::findOp(op.name);
  if (!info || info->isRandom())
    return;
  bool small = std::any_of(op.outputs.begin(), op.outputs.end(), [&](uint32_t number) {
    if (number == kNoValue)
      return false;
    const TableValue &value = table.values[number];
    Extent count = elementCount(value.extents);
    return (value.type == DVT_I64 || value.type == DVT_I32) && count.isStatic() &&
           count.value() <= static_cast<int64_t>(graph::kMostTrackedElements);
  });
  if (!small)
    return;
  std::vector<graph::ValueFacts> operands;
  for (uint32_t number : op.inputs) {
    graph::ValueFacts absent;
    absent.absent = true;
    operands.push_back(number == kNoValue ? absent : factsOf(table.values[number]));
  }
  graph::InferContext context(*info, op.node, op.attributes, std::move(operands), op.outputs.size(),
                              table.ranges);
  if (!graph::inferShapes(context))
    return;
  auto &results = context.takeResults();
  for (size_t i = 0; i < op.outputs.size() && i < results.size(); ++i) {
    if (op.outputs[i] == kNoValue || !results[i].elements)
      continue;
    TableValue &value = table.values[op.outputs[i]];
    if (!std::all_of(results[i].elements->begin(), results[i].elements->end(),
                     [](const auto &element) { return element.has_value(); }))
      continue;
    value.isShapeData = true;
    value.shapeData.clear();
    for (const auto &element : *results[i].elements)
      value.shapeData.push_back(*element);
  }
}

} // namespace

void findShapeData(OpTable &table) {
  for (const TableOp &op : table.ops)
    track(table, op);
  dropDeadOps(table);
}

/// What views read only for their extents is not read at all; what only that needed is dead.
void dropDeadOps(OpTable &table) {
  std::vector<bool> needed(table.values.size(), false);
  ExtentSources sources(table);
  auto need = [&](uint32_t value) {
    needed[value] = true;
    if (table.values[value].isShapeData)
      for (uint32_t source : sources.ofShapeData(value))
        needed[source] = true;
  };
  for (uint32_t output : table.outputs)
    need(output);
  std::vector<bool> kept(table.ops.size(), false);
  for (size_t i = table.ops.size(); i-- > 0;) {
    TableOp &op = table.ops[i];
    kept[i] = std::any_of(op.outputs.begin(), op.outputs.end(), [&](uint32_t value) {
      return value != kNoValue && needed[value] && !table.values[value].isShapeData;
    });
    if (!kept[i])
      continue;
    if (op.role == OpRole::View && op.inputs.size() > 1)
      op.inputs.resize(1);
    for (uint32_t value : op.inputs)
      if (value != kNoValue)
        need(value);
    for (uint32_t source : sources.ofOp(op))
      needed[source] = true;
  }
  for (TableComposite &composite : table.composites)
    for (uint32_t &op : composite.body)
      if (kept[op])
        for (uint32_t value : composite.inputs)
          if (value != kNoValue)
            need(value);
  std::vector<uint32_t> moved(table.ops.size(), kNoValue);
  std::vector<TableOp> ops;
  for (size_t i = 0; i < table.ops.size(); ++i)
    if (kept[i]) {
      moved[i] = static_cast<uint32_t>(ops.size());
      ops.push_back(std::move(table.ops[i]));
    }
  table.ops = std::move(ops);
  for (TableComposite &composite : table.composites) {
    std::vector<uint32_t> body;
    for (uint32_t op : composite.body)
      if (moved[op] != kNoValue)
        body.push_back(moved[op]);
    composite.body = std::move(body);
  }
  std::erase_if(table.composites,
                [](const TableComposite &composite) { return composite.body.empty(); });
  linkUsers(table);
}

} // namespace dovetail::plan
