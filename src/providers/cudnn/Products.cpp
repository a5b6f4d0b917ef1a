// SPDX-License-Identifier: Apache-2.0
//
// Matrix products and attention.
#include <cmath>
#include <numeric>

#include "providers/cudnn/Translator.h"

namespace dovetail::cudnn {
namespace {

View transposed(const View &view) {
  std::vector<size_t> order(view.dims.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return view.permuted(order);
}

/// An operand of a product as the graph has it.
size_t matrix(Translator &to, const OpReader &op, uint32_t index, bool isTransposed) {
  const std::optional<View> memory = to.memoryOf(op.input(index));
  if (!memory && !isTransposed)
    return to.operand(op.input(index)); // what an operation in front gave
  if (!memory || memory->dims.size() < 2 || to.problem.isLiteral(memory->value)) {
    to.refuse(std::string(op.name()) +
              ": operands of two or more dimensions in memory are supported");
    return Operation::kAbsent;
  }
  const View view = isTransposed ? transposed(*memory) : *memory;
  const std::optional<View> placed = to.place(view);
  if (!placed) {
    to.refuse(std::string(op.name()) + ": the rows of an operand do not lie at equal distances");
    return Operation::kAbsent;
  }
  return to.operand(*placed);
}

bool shapesAgree(const Dims &a, const Dims &b, const Dims &c) {
  const size_t rank = c.size();
  if (a.size() != rank || b.size() != rank || rank < 3 || a[rank - 1] != b[rank - 2] ||
      c[rank - 2] != a[rank - 2] || c[rank - 1] != b[rank - 1])
    return false;
  for (size_t i = 0; i + 2 < rank; ++i)
    if ((a[i] != c[i] && a[i] != 1) || (b[i] != c[i] && b[i] != 1))
      return false;
  return true;
}

/// [batch, heads, sequence, width] of either form of attention's operands.
std::optional<View> asHeads(const View &view, int64_t heads) {
  if (view.dims.size() == 4)
    return view;
  if (view.dims.size() != 3 || heads < 1 || view.dims[2] % heads != 0)
    return std::nullopt;
  const std::optional<View> split =
      view.reshaped({view.dims[0], view.dims[1], heads, view.dims[2] / heads});
  return split ? std::optional(split->permuted({0, 2, 1, 3})) : std::nullopt;
}

} // namespace

bool translateProduct(Translator &to, const OpReader &op) {
  to.graph.family = "gemm";
  if (!op.hasInput(0) || !op.hasInput(1))
    return to.refuse(std::string(op.name()) + ": an operand is missing");
  if (to.problem.rank(op.input(0)) < 2 || to.problem.rank(op.input(1)) < 2)
    return to.refuse(std::string(op.name()) + ": vectors are not supported");
  const Dims right = to.problem.extents(op.input(1));
  if (to.domainOfAll() == Domain::Rows && providers::product(right, 0, right.size() - 2) != 1)
    return to.refuse(std::string(op.name()) + ": the right operand has a batch");
  Operation made;
  made.kind = Operation::Kind::Matmul;
  made.operands = {matrix(to, op, 0, op.integer("transA", 0) != 0),
                   matrix(to, op, 1, op.integer("transB", 0) != 0)};
  if (made.operands[0] == Operation::kAbsent || made.operands[1] == Operation::kAbsent)
    return false;
  to.alignType(made.operands[0], made.operands[1]);
  to.alignType(made.operands[1], made.operands[0]);
  const size_t result = to.result(op.output(0));
  if (result == Operation::kAbsent)
    return false;
  if (!shapesAgree(to.dimsOf(made.operands[0]), to.dimsOf(made.operands[1]), to.dimsOf(result)))
    return to.refuse(std::string(op.name()) + ": extents do not agree");
  // alpha * AB + beta * C, of which only Gemm has the rest.
  const double alpha = op.number("alpha", 1), beta = op.number("beta", 1);
  const bool adds = op.name() == "gemm" && op.hasInput(2) && beta != 0;
  const bool scales = op.name() == "gemm" && alpha != 1;
  made.result = adds || scales ? to.temporary(to.dimsOf(result)) : result;
  to.append(made);
  size_t product = made.result;
  if (scales)
    product = to.pointwise(PointwiseMode::Mul, {product, to.number(alpha)},
                           adds ? Operation::kAbsent : result);
  if (!adds)
    return true;
  size_t addend = to.operand(op.input(2));
  if (addend == Operation::kAbsent)
    return false;
  if (!to.broadcasts(addend, result))
    return to.refuse("gemm: the addend does not fit the product");
  if (beta != 1)
    addend = to.pointwise(PointwiseMode::Mul, {addend, to.number(beta)});
  to.pointwise(PointwiseMode::Add, {product, addend}, result);
  return true;
}

bool translateAttention(Translator &to, const OpReader &op) {
  to.graph.family = "attention";
  for (uint32_t i = 3; i < op.inputCount(); ++i)
    if (op.hasInput(i))
      return to.refuse("attention with a mask or with past keys and values is not supported");
  if (op.integer("is_causal", 0) || op.number("softcap", 0) != 0 ||
      op.integer("left_window_size", -1) >= 0 || op.integer("right_window_size", -1) >= 0)
    return to.refuse("attention: causal, windowed and soft-capped forms are not supported");
  const int64_t queryHeads = op.integer("q_num_heads", 0), heads = op.integer("kv_num_heads", 0);
  std::optional<View> views[4];
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t value = i < 3 ? op.input(i) : op.output(0);
    if (value == DVT_NO_VALUE || (i < 3 && !to.memoryOf(value)) || (i == 3 && !to.isStored(value)))
      return to.refuse("attention together with other ops is not supported");
    if (to.problem.type(value) == DVT_F32)
      return to.refuse("attention of f32 is not supported, only of f16 and bf16");
    views[i] = asHeads(to.memory(value), i == 0 || i == 3 ? queryHeads : heads);
    if (!views[i])
      return to.refuse("attention: operands of three or four dimensions are supported");
  }
  const Dims &q = views[0]->dims, &k = views[1]->dims, &v = views[2]->dims, &o = views[3]->dims;
  if (k[1] < 1 || q[1] % k[1] != 0 || v[1] != k[1] || q[3] != k[3] || k[2] != v[2] ||
      o != Dims{q[0], q[1], q[2], v[3]})
    return to.refuse("attention: extents do not agree");
  const double scale = op.number("scale", 1 / std::sqrt(static_cast<double>(q[3])));
  Operation made;
  made.kind = Operation::Kind::Attention;
  for (uint32_t i = 0; i < 3; ++i)
    made.operands.push_back(to.operand(*views[i]));
  made.operands.push_back(to.number(scale));
  made.result = to.result(op.output(0), *views[3]);
  for (size_t operand : made.operands)
    if (operand == Operation::kAbsent)
      return false;
  to.append(made);
  return made.result != Operation::kAbsent;
}

} // namespace dovetail::cudnn
