// SPDX-License-Identifier: Apache-2.0
//
// Attention as three primitives: scores = scale * Q K^T + mask, softmax in place, scores V. Heads
// side by side in a row (three-dimensional operands) and heads shared by groups of queries are
// views.
#include <cmath>

#include "providers/onednn/Attempt.h"

namespace dovetail::onednn {
namespace {

/// [batch, heads, sequence, width] from either form; groups > 1 splits heads into [heads / groups,
/// groups] or, for keys and values, [heads, 1].
std::optional<View> asHeads(const View &view, int64_t heads) {
  if (view.dims.size() == 4)
    return view.dims[1] == heads || heads == 0 ? std::optional(view) : std::nullopt;
  if (view.dims.size() != 3 || heads < 1 || view.dims[2] % heads != 0)
    return std::nullopt;
  std::optional<View> split =
      view.reshaped({view.dims[0], view.dims[1], heads, view.dims[2] / heads});
  return split ? std::optional(split->permuted({0, 2, 1, 3})) : std::nullopt;
}

/// Dimension 1 as [outer, inner].
View splitHeads(const View &view, int64_t inner) {
  View result{view.value, view.dims, view.strides, {}};
  const int64_t stride = view.strides[1];
  result.dims[1] = inner;
  result.dims.insert(result.dims.begin() + 1, view.dims[1] / inner);
  result.strides.insert(result.strides.begin() + 1, stride * inner);
  return result;
}

View matrixTransposed(const View &view) {
  std::vector<size_t> order(view.dims.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return view.permuted(order);
}

} // namespace

bool makeAttention(Maker &maker) {
  const Library &library = maker.library;
  const OpReader op = maker.op();
  for (uint32_t i = 4; i < op.inputCount(); ++i)
    if (op.hasInput(i))
      return maker.refuse("attention with past keys and values is not supported");
  if (op.integer("is_causal", 0) || op.number("softcap", 0) != 0 ||
      op.integer("left_window_size", -1) >= 0 || op.integer("right_window_size", -1) >= 0)
    return maker.refuse("attention: causal, windowed and soft-capped forms are not supported");
  const View &mask = maker.operand(3);
  if (!maker.isF32(
          {&maker.operand(0), &maker.operand(1), &maker.operand(2), &mask, &maker.match.result}))
    return maker.refuse("attention: f32 operands are supported");
  std::optional<View> q = asHeads(maker.operand(0), op.integer("q_num_heads", 0)),
                      k = asHeads(maker.operand(1), op.integer("kv_num_heads", 0)),
                      v = asHeads(maker.operand(2), op.integer("kv_num_heads", 0));
  std::optional<View> result = q ? asHeads(maker.match.result, q->dims[1]) : std::nullopt;
  if (!q || !k || !v || !result || k->dims[1] < 1 || q->dims[1] % k->dims[1] != 0 ||
      !maker.match.postOps.empty())
    return maker.refuse(
        "attention: operands of three or four dimensions without post-operations are supported");
  const double scale = op.number("scale", 1 / std::sqrt(static_cast<double>(q->dims[3])));
  std::vector<PostOp> steps{
      {PostOp::Kind::Eltwise, dnnl_eltwise_linear, static_cast<float>(scale), 0, {}}};
  if (mask.isPresent()) {
    if (mask.dims.size() > 4)
      return maker.refuse("attention: masks of up to four dimensions are supported");
    if (mask.dims.empty() || mask.dims.back() != k->dims[2])
      return maker.refuse("attention: masks that stop short of the last keys are not supported");
    steps.push_back({PostOp::Kind::Binary, dnnl_binary_add, 0, 0, mask.withRank(4)});
  }
  const int64_t groups = q->dims[1] / k->dims[1];
  if (groups > 1) {
    *q = splitHeads(*q, groups);
    *k = splitHeads(*k, 1);
    *v = splitHeads(*v, 1);
    *result = splitHeads(*result, groups);
    if (mask.isPresent())
      steps[1].operand = steps[1].operand.dims[1] == 1 ? steps[1].operand.withAxis(1)
                                                       : splitHeads(steps[1].operand, groups);
  }
  *k = matrixTransposed(*k);
  Dims scoreDims = q->dims;
  scoreDims.back() = k->dims.back();
  if (scoreDims.size() != k->dims.size() || k->dims[k->dims.size() - 2] != q->dims.back() ||
      v->dims[v->dims.size() - 2] != scoreDims.back() || result->dims.back() != v->dims.back())
    return maker.refuse("attention: extents do not agree");
  const Desc scores =
      Desc::strided(library, dnnl_f32, scoreDims, providers::denseStrides(scoreDims));
  Attempt attempt{"composed", "f32", {}, {}, {}, {}};
  dnnl_primitive_desc_t made = nullptr;
  auto addStage = [&](dnnl_status_t status, std::vector<Argument> arguments) {
    if (status == dnnl_success)
      attempt.stages.push_back({PrimitiveDesc(library, made), std::move(arguments)});
  };
  const Desc from = maker.plain(*q), right = maker.plain(*k), value = maker.plain(*v),
             to = maker.plain(*result);
  std::vector<Argument> first{
      {DNNL_ARG_SRC, *q, -1}, {DNNL_ARG_WEIGHTS, *k, -1}, {DNNL_ARG_DST, {}, 0}},
      second{{DNNL_ARG_SRC, {}, 0}, {DNNL_ARG_DST, {}, 0}},
      third{{DNNL_ARG_SRC, {}, 0}, {DNNL_ARG_WEIGHTS, *v, -1}, {DNNL_ARG_DST, *result, -1}};
  const Attributes scaled = maker.attributes(steps, Style::RowMajor, first),
                   bare = maker.attributes({}, Style::RowMajor, second);
  addStage(library.matmul_primitive_desc_create(&made, library.engine, from.get(), right.get(),
                                                nullptr, scores.get(), scaled.get()),
           std::move(first));
  addStage(library.softmax_forward_primitive_desc_create(
               &made, library.engine, dnnl_forward_inference, dnnl_softmax_accurate, scores.get(),
               scores.get(), static_cast<int>(scoreDims.size()) - 1, bare.get()),
           std::move(second));
  addStage(library.matmul_primitive_desc_create(&made, library.engine, scores.get(), value.get(),
                                                nullptr, to.get(), bare.get()),
           std::move(third));
  if (attempt.stages.size() == 3)
    maker.offer(std::move(attempt));
  return true;
}

} // namespace dovetail::onednn
