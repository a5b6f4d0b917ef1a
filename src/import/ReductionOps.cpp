// SPDX-License-Identifier: Apache-2.0
//
// Reductions through the op-set versions: the axes became an operand, of ReduceSum in version 13
// and of the others in
// 18. Without axes, or with none given, all are reduced.
#include "import/NodeImport.h"

namespace dovetail::importer {
namespace {

Status reduce(NodeImport &node) {
  int asOperand = node.op == "ReduceSum" ? 13 : 18;
  if (node.version < asOperand) {
    if (std::optional<std::vector<int64_t>> axes = node.ints("axes"); axes && axes->empty())
      node.erase("axes");
    node.intsToOperand("axes", 1);
  }
  return Status::success();
}

} // namespace

std::vector<NamedRule> reductionRules() {
  std::vector<NamedRule> rules;
  for (std::string_view op :
       {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
        "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"})
    rules.push_back({op, reduce});
  return rules;
}

} // namespace dovetail::importer
