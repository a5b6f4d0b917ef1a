// SPDX-License-Identifier: Apache-2.0
//
// Reductions over any axes: sum, mean, maximum, minimum, product and norms.
#include <algorithm>

#include "providers/onednn/Attempt.h"

namespace dovetail::onednn {
namespace {

struct Reduction {
  const char *name;
  dnnl_alg_kind_t algorithm;
  float power;
};

constexpr Reduction kReductions[] = {
    {"reduce_sum", dnnl_reduction_sum, 0},
    {"reduce_mean", dnnl_reduction_mean, 0},
    {"reduce_max", dnnl_reduction_max, 0},
    {"reduce_min", dnnl_reduction_min, 0},
    {"reduce_prod", dnnl_reduction_mul, 0},
    {"reduce_l1", dnnl_reduction_norm_lp_power_p_sum, 1},
    {"reduce_l2", dnnl_reduction_norm_lp_sum, 2},
    {"reduce_sum_square", dnnl_reduction_norm_lp_power_p_sum, 2},
};

/// The reduced axes, an attribute or a literal operand; all of them where none are stated.
std::optional<std::vector<bool>> reducedAxes(const ProblemReader &problem, const OpReader &op,
                                             size_t rank) {
  Dims axes = op.integers("axes", {});
  if (op.hasInput(1)) {
    std::optional<std::vector<double>> literal = problem.literal(op.input(1));
    if (!literal)
      return std::nullopt;
    axes.assign(literal->begin(), literal->end());
  }
  std::vector<bool> reduced(rank, axes.empty());
  for (int64_t axis : axes) {
    axis += axis < 0 ? static_cast<int64_t>(rank) : 0;
    if (axis < 0 || axis >= static_cast<int64_t>(rank))
      return std::nullopt;
    reduced[static_cast<size_t>(axis)] = true;
  }
  return reduced;
}

} // namespace

bool makeReduction(Maker &maker) {
  const Library &library = maker.library;
  const OpReader op = maker.op();
  const std::string name(op.name());
  const Reduction *kind = std::find_if(std::begin(kReductions), std::end(kReductions),
                                       [&](const Reduction &r) { return name == r.name; });
  const View &source = maker.operand(0);
  View result = maker.match.result;
  if (kind == std::end(kReductions))
    return maker.refuse(name + " is not among this library's reductions");
  if (!maker.isOneFloatType({&source, &result}))
    return maker.refuse(name + ": f32, f16 and bf16 are supported");
  const size_t rank = source.dims.size();
  const std::optional<std::vector<bool>> reduced = reducedAxes(maker.problem, op, rank);
  if (!reduced || maker.problem.rank(op.input(0)) == 0)
    return maker.refuse(name + ": the axes must be known when compiling");
  std::vector<PostOp> postOps = maker.match.postOps;
  if (op.integer("keepdims", 1) == 0) {
    // A scalar result is shown as one dimension already.
    const bool scalar = maker.problem.rank(op.output(0)) == 0;
    auto restore = [&](View &view) {
      for (size_t i = 0; i < rank && view.dims.size() < rank; ++i)
        if ((*reduced)[i] || scalar)
          view = view.withAxis(i);
    };
    restore(result);
    for (PostOp &step : postOps)
      if (step.kind != PostOp::Kind::Eltwise)
        restore(step.operand);
  }
  bool isReduction = false;
  if (result.dims.size() != rank)
    return maker.refuse(name + ": extents do not agree");
  for (size_t i = 0; i < rank; ++i) {
    if (result.dims[i] != ((*reduced)[i] ? 1 : source.dims[i]))
      return maker.refuse(name + ": extents do not agree");
    isReduction |= result.dims[i] != source.dims[i];
  }
  if (!isReduction)
    return maker.refuse(name + ": nothing is reduced");
  for (Style style : maker.propagatingStyles(source)) {
    std::vector<Argument> arguments{{DNNL_ARG_SRC, source, -1}, {DNNL_ARG_DST, result, -1}};
    const Attributes attributes = maker.attributes(postOps, style, arguments);
    const Desc from = maker.styled(source, style), to = maker.styled(result, style);
    if (!from || !to || !attributes)
      continue;
    dnnl_primitive_desc_t made = nullptr;
    dnnl_status_t status =
        library.reduction_primitive_desc_create(&made, library.engine, kind->algorithm, from.get(),
                                                to.get(), kind->power, 0, attributes.get());
    maker.offer("reduction", status, made, std::move(arguments));
  }
  return true;
}

} // namespace dovetail::onednn
