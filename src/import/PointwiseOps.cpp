// SPDX-License-Identifier: Apache-2.0
//
// Pointwise ops through the op-set versions: Clip got its bounds as operands in 11.
#include "import/NodeImport.h"

#include <cfloat>

namespace dovetail::importer {
namespace {

/// Before version 11 the bounds are attributes with the largest floats as defaults.
Status clip(NodeImport &node) {
  if (node.version >= 11)
    return Status::success();
  if (!node.operand(0))
    return node.fail("needs an operand");
  dvt_type type = node.emitter.type(node.operand(0));
  if (type != DVT_F32 && type != DVT_F64 && type != DVT_F16)
    return node.fail("clips elements that are no floats, which version {} does not define",
                     node.version);
  for (auto [name, index, fallback] :
       {std::tuple("min", 1u, -double(FLT_MAX)), {"max", 2u, double(FLT_MAX)}}) {
    node.setOperand(index, node.emitter.scalar(type, node.real(name, fallback)));
    node.erase(name);
  }
  return Status::success();
}

} // namespace

std::vector<NamedRule> pointwiseRules() { return {{"Clip", clip}}; }

} // namespace dovetail::importer
