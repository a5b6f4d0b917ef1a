// SPDX-License-Identifier: Apache-2.0
//
// The table, and what is checked with it alone.
#include "import/ContribOps.h"

#include <algorithm>

#include "import/BlockQuantizedOps.h"

namespace dovetail::importer {

static const std::vector<ContribOp> &contribOps() {
  static const std::vector<ContribOp> ops = {
      {"com.microsoft",
       "MatMulNBits",
       3,
       6,
       1,
       {"K", "N", "block_size"},
       {"bits", "accuracy_level"},
       importMatMulNBits},
  };
  return ops;
}

const ContribOp *findContribOp(std::string_view domain, std::string_view op) {
  for (const ContribOp &known : contribOps())
    if (known.domain == domain && known.op == op)
      return &known;
  return nullptr;
}

std::string contribOpNames() {
  std::string names;
  for (const ContribOp &known : contribOps())
    names += fmt::format("{}{}.{}", names.empty() ? "" : ", ", known.domain, known.op);
  return names;
}

Status checkContribNode(const ContribOp &op, const NodeImport &node) {
  size_t operands = node.operands.size();
  if (operands < op.leastInputs || operands > op.mostInputs)
    return node.fail("has {} inputs; {} to {} are defined", operands, op.leastInputs,
                     op.mostInputs);
  for (size_t i = 0; i < op.leastInputs; ++i)
    if (!node.operands[i])
      return node.fail("input {} must be given", i);
  if (node.wanted.empty() || node.wanted.size() > op.mostOutputs)
    return node.fail("has {} outputs; at most {} are defined", node.wanted.size(), op.mostOutputs);
  for (std::string_view name : op.required)
    if (!node.has(name))
      return node.fail("lacks the attribute '{}'", name);
  auto isKnown = [&](std::string_view name) {
    return std::count(op.required.begin(), op.required.end(), name) +
           std::count(op.optional.begin(), op.optional.end(), name);
  };
  for (const auto &[name, value] : node.attributes.plain)
    if (!isKnown(name))
      return node.fail("has an attribute '{}', which is not supported", name);
  for (const auto &[name, value] : node.attributes.strings)
    if (!isKnown(name))
      return node.fail("has an attribute '{}', which is not supported", name);
  for (const auto &[name, value] : node.attributes.tensors)
    if (!isKnown(name))
      return node.fail("has an attribute '{}', which is not supported", name);
  return Status::success();
}

} // namespace dovetail::importer
