// SPDX-License-Identifier: Apache-2.0
//
// Matrix products: mat_mul with batches and broadcasting, gemm with its scalars and its addend.
// Transposes are strides. Where all matrices share the right operand, the batch becomes rows; the
// right operand, when constant, is laid out by oneDNN, both as a matrix product and as an inner
// product, which bring different implementations.
#include "providers/onednn/Attempt.h"

#include <algorithm>

namespace dovetail::onednn {
namespace {

/// A matrix product in oneDNN's terms: equal ranks, batch dimensions in front.
struct Product {
  View a, b, result;
  std::vector<PostOp> postOps;
  std::optional<View> bias; ///< 1, ..., 1, N
  size_t rank() const { return result.dims.size(); }
};

/// The operand of every post-operation, rearranged; false where one cannot be.
template <typename F> bool mapOperands(std::vector<PostOp> &postOps, F &&map) {
  for (PostOp &step : postOps) {
    if (step.kind == PostOp::Kind::Eltwise || step.derived.isPresent())
      continue;
    std::optional<View> mapped = map(step.operand);
    if (!mapped)
      return false;
    step.operand = *mapped;
  }
  return true;
}

View transposedMatrix(const View &view) {
  std::vector<size_t> order(view.dims.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return view.permuted(order);
}

void insertAxis(Product &product, size_t position) {
  product.result = product.result.withAxis(position);
  mapOperands(product.postOps,
              [&](const View &view) { return std::optional(view.withAxis(position)); });
}

bool readMatMul(Maker &maker, Product &product) {
  product.a = maker.operand(0);
  product.b = maker.operand(1);
  if (product.b.dims.size() == 1) {
    product.b = product.b.withAxis(1);
    // The result of two vectors is a scalar, which a view shows as one dimension already.
    insertAxis(product, product.a.dims.size() == 1 ? 0 : product.result.dims.size());
    if (product.a.dims.size() == 1)
      product.a = product.a.withAxis(0);
  } else if (product.a.dims.size() == 1) {
    product.a = product.a.withAxis(0);
    insertAxis(product, product.result.dims.size() - 1);
  }
  const size_t rank = product.result.dims.size();
  if (product.a.dims.size() > rank || product.b.dims.size() > rank)
    return maker.refuse("mat_mul: operand ranks do not agree with the result");
  product.a = product.a.withRank(rank);
  product.b = product.b.withRank(rank);
  return true;
}

bool readGemm(Maker &maker, Product &product) {
  const OpReader op = maker.op();
  product.a = maker.operand(0);
  product.b = maker.operand(1);
  if (product.a.dims.size() != 2 || product.b.dims.size() != 2)
    return maker.refuse("gemm: matrices are supported");
  if (op.integer("transA", 0))
    product.a = transposedMatrix(product.a);
  if (op.integer("transB", 0))
    product.b = transposedMatrix(product.b);
  const float alpha = static_cast<float>(op.number("alpha", 1)),
              beta = static_cast<float>(op.number("beta", 1));
  std::vector<PostOp> scaling;
  auto scale = [&](float factor) {
    if (factor != 1)
      scaling.push_back({PostOp::Kind::Eltwise, dnnl_eltwise_linear, factor, 0, {}});
  };
  if (maker.operand(2).isPresent() && beta != 0) {
    // alpha * AB + beta * C = beta * (alpha / beta * AB + C)
    scale(alpha / beta);
    View addend = maker.operand(2);
    if (addend.dims.size() > 2)
      return maker.refuse("gemm: the addend has more than two dimensions");
    scaling.push_back({PostOp::Kind::Binary, dnnl_binary_add, 0, 0, addend.withRank(2)});
    scale(beta);
  } else {
    scale(alpha);
  }
  product.postOps.insert(product.postOps.begin(), scaling.begin(), scaling.end());
  return true;
}

bool shapesAgree(const Product &p) {
  const size_t rank = p.rank();
  if (rank < 2 || p.a.dims[rank - 1] != p.b.dims[rank - 2] ||
      p.result.dims[rank - 2] != p.a.dims[rank - 2] ||
      p.result.dims[rank - 1] != p.b.dims[rank - 1])
    return false;
  for (size_t i = 0; i + 2 < rank; ++i) {
    int64_t a = p.a.dims[i], b = p.b.dims[i];
    if ((a != b && a != 1 && b != 1) || p.result.dims[i] != std::max(a, b))
      return false;
  }
  return true;
}

/// One matrix product with more rows, where the right operand has no batch.
std::optional<Product> withBatchAsRows(const Product &p) {
  const size_t leading = p.rank() - 1;
  if (leading < 2 || providers::product(p.b.dims, 0, p.b.dims.size() - 2) != 1)
    return std::nullopt;
  Product flat = p;
  std::optional<View> a = p.a.collapsed(leading), result = p.result.collapsed(leading),
                      b = p.b.collapsed(leading - 1);
  if (!a || !result || !b)
    return std::nullopt;
  flat.a = *a;
  flat.b = *b;
  while (flat.b.dims.size() > 2)
    flat.b = flat.b.collapsed(2).value_or(View{});
  flat.result = *result;
  const int64_t rows = result->dims[0];
  bool fits = mapOperands(flat.postOps, [&](const View &view) {
    std::optional<View> collapsed = view.collapsed(leading);
    // Broadcast along some of the rows only: no single stride.
    return collapsed && (collapsed->dims[0] == rows || collapsed->dims[0] == 1) ? collapsed
                                                                                : std::nullopt;
  });
  return fits ? std::optional(std::move(flat)) : std::nullopt;
}

/// A leading addition of a row vector becomes the bias.
void takeBias(const Maker &maker, Product &p) {
  if (p.postOps.empty())
    return;
  const PostOp &first = p.postOps[0];
  if (first.kind != PostOp::Kind::Binary || first.derived.isPresent() ||
      first.algorithm != dnnl_binary_add || first.operand.dims.back() != p.result.dims.back() ||
      providers::product(first.operand.dims) != p.result.dims.back() ||
      !maker.mayBeBias(first.operand))
    return;
  p.bias = first.operand;
  p.postOps.erase(p.postOps.begin());
}

void attemptMatMul(Maker &maker, const Product &p, bool packed) {
  if (!maker.wants(packed ? "matmul-packed" : "matmul"))
    return;
  std::vector<Argument> arguments{
      {DNNL_ARG_SRC, p.a, -1}, maker.weightsArgument(p.b), {DNNL_ARG_DST, p.result, -1}};
  if (p.bias)
    arguments.push_back(maker.biasArgument(*p.bias));
  // What a stage in front gives lies as its operand does.
  const Desc from = maker.plain(p.a),
             right = maker.shiftsWeights()
                         ? Desc::strided(maker.library, dnnl_s8, p.b.dims, p.b.strides)
                     : packed ? maker.weights(p.b)
                              : maker.plain(p.b),
             to = maker.plain(p.result), bias = p.bias ? maker.plain(*p.bias) : Desc();
  const Attributes attributes = maker.attributes(p.postOps, Style::RowMajor, arguments);
  const int columns = 1 << (p.rank() - 1);
  if (!from || !right || !to || !attributes ||
      !maker.addGrids(attributes, columns, columns, arguments))
    return;
  dnnl_primitive_desc_t made = nullptr;
  dnnl_status_t status = maker.library.matmul_primitive_desc_create(
      &made, maker.library.engine, from.get(), right.get(), bias.get(), to.get(), attributes.get());
  if (!maker.shiftsWeights())
    return maker.offer(packed ? "matmul-packed" : "matmul", status, made, std::move(arguments),
                       maker.numerics());
  Attempt attempt{"matmul", maker.numerics(), {}, {}, {}, {}};
  if (status != dnnl_success)
    return;
  PrimitiveDesc product(maker.library, made);
  if (!maker.addShift(p.b, right, attempt))
    return;
  attempt.stages.push_back({std::move(product), std::move(arguments)});
  maker.offer(std::move(attempt));
}

void attemptInnerProduct(Maker &maker, const Product &p, bool packed) {
  if (!maker.wants(packed ? "inner_product-packed" : "inner_product"))
    return;
  const View weights = transposedMatrix(p.b);
  std::vector<Argument> arguments{
      {DNNL_ARG_SRC, p.a, -1}, maker.weightsArgument(weights), {DNNL_ARG_DST, p.result, -1}};
  std::optional<View> row;
  if (p.bias) {
    row = p.bias->reshaped({p.result.dims[1]});
    if (!row)
      return;
    arguments.push_back(maker.biasArgument(*row));
  }
  const Desc from = maker.plain(p.a),
             right = packed ? maker.weights(weights) : maker.plain(weights),
             to = maker.plain(p.result), bias = row ? maker.plain(*row) : Desc();
  const Attributes attributes = maker.attributes(p.postOps, Style::RowMajor, arguments);
  if (!from || !right || !to || !attributes || !maker.addGrids(attributes, 1, 1 << 1, arguments))
    return;
  dnnl_primitive_desc_t made = nullptr;
  dnnl_status_t status = maker.library.inner_product_forward_primitive_desc_create(
      &made, maker.library.engine, dnnl_forward_inference, from.get(), right.get(), bias.get(),
      to.get(), attributes.get());
  maker.offer(packed ? "inner_product-packed" : "inner_product", status, made, std::move(arguments),
              maker.numerics());
}

} // namespace

bool makeMatMul(Maker &maker) {
  const std::string name(maker.op().name());
  const View &right = maker.operand(1);
  const bool rows = name == "gemm" && maker.op().integer("transB", 0) != 0;
  // The dimension of the second operand that is columns of the result, and the axis it is.
  const size_t columns = rows || right.dims.size() < 2 ? 0 : right.dims.size() - 1;
  if (!maker.readContraction(maker.operand(0), right, maker.match.result,
                             columns < right.axes.size() ? right.axes[columns] : -1))
    return false;
  if (maker.problem.value(maker.match.result.value).may_alias >= 0)
    return maker.refuse(name + ": the result may not share an operand's memory");
  Product whole;
  whole.result = maker.match.result;
  whole.postOps = maker.match.postOps;
  if (!(name == "gemm" ? readGemm(maker, whole) : readMatMul(maker, whole)))
    return false;
  if (!shapesAgree(whole))
    return maker.refuse(name + ": extents do not agree");
  std::optional<Product> flat = withBatchAsRows(whole);
  Product &product = flat ? *flat : whole;
  takeBias(maker, product);
  if (!maker.settleScales(product.bias, product.result.dims.back(), product.postOps))
    return false;
  const bool constant = maker.isConstant(product.b);
  if (constant)
    attemptMatMul(maker, product, true);
  const bool plain = !maker.widensWeights();
  if (plain)
    attemptMatMul(maker, product, false);
  if (product.rank() == 2 && !maker.shiftsWeights()) {
    if (constant)
      attemptInnerProduct(maker, product, true);
    if (plain)
      attemptInnerProduct(maker, product, false);
  }
  return true;
}

} // namespace dovetail::onednn
