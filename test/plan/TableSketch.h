// SPDX-License-Identifier: Apache-2.0
//
// Builds tables op by op.
#pragma once

#include <string>
#include <vector>

#include "plan/OpTable.h"

namespace dovetail::plan {

struct TableSketch {
  OpTable table;
  uint32_t value(std::vector<int64_t> extents, bool constant = false) {
    TableValue value;
    value.extents.assign(extents.begin(), extents.end());
    value.constant = constant;
    value.name = "value" + std::to_string(table.values.size());
    table.values.push_back(std::move(value));
    return static_cast<uint32_t>(table.values.size() - 1);
  }
  uint32_t input(std::vector<int64_t> extents) {
    uint32_t number = value(std::move(extents));
    table.inputs.push_back(number);
    table.inputNames.push_back(table.values[number].name);
    return number;
  }
  void output(uint32_t number) {
    table.outputs.push_back(number);
    table.outputNames.push_back(table.values[number].name);
  }
  uint32_t op(const char *name, OpRole role, std::vector<uint32_t> inputs,
              std::vector<int64_t> extents, uint32_t version = 1) {
    TableOp op;
    op.name = name;
    op.version = version;
    op.role = role;
    op.inputs = std::move(inputs);
    op.node = std::string(name) + "_" + std::to_string(table.ops.size());
    uint32_t result = value(std::move(extents));
    op.outputs = {result};
    table.ops.push_back(std::move(op));
    return result;
  }
};

} // namespace dovetail::plan
