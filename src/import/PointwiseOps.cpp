// SPDX-License-Identifier: Apache-2.0
//
// Pointwise ops through the op-set versions. Up to version 6 broadcasting was asked for and placed
// by attributes, and many ops had `consumed_inputs`, a hint without meaning for the result. Clip
// got its bounds as operands in 11.
#include "import/NodeImport.h"

#include <cfloat>

namespace dovetail::importer {
namespace {

/// Gives `value`, whose dimensions start at dimension `axis` of a tensor of `rank`, ones behind
/// them.
Expected<mlir::Value> alignAt(NodeImport &node, mlir::Value value, int64_t axis, size_t rank) {
  int64_t own = int64_t(node.emitter.rank(value));
  std::vector<int64_t> axes;
  for (int64_t i = axis + own; i < int64_t(rank); ++i)
    axes.push_back(own + int64_t(axes.size()));
  if (axes.empty())
    return value;
  return node.emitter.emit("Unsqueeze", {value, node.emitter.ints(axes)});
}

Status dropConsumedInputs(NodeImport &node) {
  node.erase("consumed_inputs");
  return Status::success();
}

/// Versions 1 and 6: `broadcast` says that the second operand is broadcast, `axis` where its
/// dimensions start.
Status binary(NodeImport &node) {
  node.erase("consumed_inputs");
  if (node.version >= 7)
    return Status::success();
  bool broadcast = node.integer("broadcast", 0) != 0;
  std::optional<int64_t> axis;
  if (node.has("axis"))
    axis = node.integer("axis", 0);
  node.erase("broadcast");
  node.erase("axis");
  mlir::Value left = node.operand(0), right = node.operand(1);
  if (!left || !right)
    return node.fail("needs two operands");
  size_t rank = node.emitter.rank(left), own = node.emitter.rank(right);
  if (!broadcast && rank != own)
    return node.fail("has operands of {} and {} dimensions without the attribute broadcast", rank,
                     own);
  if (!broadcast || !axis)
    return Status::success();
  int64_t start = *axis < 0 ? *axis + int64_t(rank) : *axis;
  if (start < 0 || start + int64_t(own) > int64_t(rank))
    return node.fail("has axis {}, which does not place {} dimensions among {}", *axis, own, rank);
  Expected<mlir::Value> aligned = alignAt(node, right, start, rank);
  if (!aligned)
    return aligned.takeError();
  node.setOperand(1, *aligned);
  return Status::success();
}

/// The addend of versions before 7 has an attribute that allows it to be broadcast.
Status gemm(NodeImport &node) {
  if (node.version < 7)
    node.erase("broadcast");
  return Status::success();
}

/// Before version 7 a slope of one dimension belongs to the channels, dimension 1.
Status prelu(NodeImport &node) {
  node.erase("consumed_inputs");
  mlir::Value data = node.operand(0), slope = node.operand(1);
  if (node.version >= 7 || !data || !slope)
    return Status::success();
  bool shared = elementCount(node.emitter.shape(slope)) == Extent(1);
  if (shared || node.emitter.rank(slope) != 1 || node.emitter.rank(data) < 2)
    return Status::success();
  Expected<mlir::Value> aligned = alignAt(node, slope, 1, node.emitter.rank(data));
  if (!aligned)
    return aligned.takeError();
  node.setOperand(1, *aligned);
  return Status::success();
}

/// Before version 11 the bounds are attributes, since 6 with the largest floats as defaults.
Status clip(NodeImport &node) {
  node.erase("consumed_inputs");
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
    if (node.has(name) || node.version >= 6)
      node.setOperand(index, node.emitter.scalar(type, node.real(name, fallback)));
    node.erase(name);
  }
  return Status::success();
}

/// In version 1 the type is given by its name.
Status cast(NodeImport &node) {
  if (node.version < 6) {
    std::string name = node.text("to", "");
    int64_t type = elementTypeOfName(name);
    if (!type)
      return node.fail("casts to '{}', which is no element type", name);
    node.set("to", type);
  }
  return Status::success();
}

} // namespace

std::vector<NamedRule> pointwiseRules() {
  std::vector<NamedRule> rules{{"PRelu", prelu}, {"Gemm", gemm}, {"Clip", clip}, {"Cast", cast}};
  for (std::string_view op :
       {"Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less"})
    rules.push_back({op, binary});
  for (std::string_view op :
       {"Abs", "Ceil", "Elu", "Exp", "Floor", "HardSigmoid", "LeakyRelu", "Log", "Max", "Mean",
        "Min", "Neg", "Reciprocal", "Relu", "Selu", "Sigmoid", "Sqrt", "Sum", "Tanh"})
    rules.push_back({op, dropConsumedInputs});
  return rules;
}

} // namespace dovetail::importer
