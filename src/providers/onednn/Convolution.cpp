// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and transposed convolutions of one to three spatial dimensions, grouped, dilated,
// with unequal pads, bias and post-operations. Constant weights are left to oneDNN to lay out.
#include "providers/onednn/Attempt.h"

namespace dovetail::onednn {
namespace {

struct Window {
  Dims strides, dilates, padLeft, padRight;
};

/// Reads the window attributes; the right pads follow from the result's extents, so that
/// output_padding is included.
std::optional<Window> readWindow(const OpReader &op, const Dims &source, const Dims &kernel,
                                 const Dims &result, bool transposed) {
  const size_t spatial = kernel.size();
  Window w;
  w.strides = op.integers("strides", Dims(spatial, 1));
  Dims dilations = op.integers("dilations", Dims(spatial, 1)),
       pads = op.integers("pads", Dims(2 * spatial, 0));
  if (w.strides.size() != spatial || dilations.size() != spatial || pads.size() != 2 * spatial)
    return std::nullopt;
  for (size_t i = 0; i < spatial; ++i) {
    if (w.strides[i] < 1 || dilations[i] < 1)
      return std::nullopt;
    const int64_t extent = (kernel[i] - 1) * dilations[i] + 1;
    const int64_t small = transposed ? result[i + 2] : source[i + 2],
                  large = transposed ? source[i + 2] : result[i + 2];
    // small = the side that the window slides over, large = the number of its places.
    int64_t right = (large - 1) * w.strides[i] + extent - small - pads[i];
    if (!transposed) {
      if ((small + pads[i] + pads[spatial + i] - extent) / w.strides[i] + 1 != large)
        return std::nullopt;
      right = std::max(right, pads[spatial + i]);
    }
    w.dilates.push_back(dilations[i] - 1);
    w.padLeft.push_back(pads[i]);
    w.padRight.push_back(right);
  }
  return w;
}

/// ONNX weights as oneDNN's [groups,] outputs, inputs, kernel...
std::optional<View> groupedWeights(const View &weights, int64_t groups, bool transposed) {
  Dims dims = weights.dims;
  if (groups > 1) {
    dims.insert(dims.begin(), groups);
    if (dims[1] % groups != 0)
      return std::nullopt;
    dims[1] /= groups;
  }
  std::optional<View> grouped = weights.reshaped(dims);
  if (!grouped || !transposed)
    return grouped;
  std::vector<size_t> order(dims.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  size_t outputs = groups > 1 ? 1 : 0;
  std::swap(order[outputs], order[outputs + 1]);
  return grouped->permuted(order);
}

/// A post-operation that adds a number per channel can be the bias.
std::optional<View> asBias(const PostOp &step, int64_t channels) {
  if (step.kind != PostOp::Kind::Binary || step.derived.isPresent() ||
      step.algorithm != dnnl_binary_add || step.operand.dims.size() < 2 ||
      step.operand.dims[1] != channels || providers::product(step.operand.dims) != channels)
    return std::nullopt;
  return step.operand.reshaped({channels});
}

} // namespace

bool makeConvolution(Maker &maker) {
  const Library &library = maker.library;
  const OpReader op = maker.op();
  const bool transposed = op.name() == "conv_transpose";
  const View &source = maker.operand(0), &result = maker.match.result;
  const size_t rank = source.dims.size();
  if (rank < 3 || rank > 5)
    return maker.refuse(std::string(op.name()) +
                        ": one to three spatial dimensions are supported, found rank " +
                        std::to_string(rank));
  if (!maker.readContraction(source, maker.operand(1), result, transposed ? 1 : 0))
    return false;
  const int64_t groups = op.integer("group", 1);
  const std::optional<View> weights =
      groups > 0 ? groupedWeights(maker.operand(1), groups, transposed) : std::nullopt;
  if (!weights || maker.operand(1).dims.size() != rank || result.dims.size() != rank)
    return maker.refuse(std::string(op.name()) + ": weights of this shape are not supported");
  const Dims kernel(maker.operand(1).dims.begin() + 2, maker.operand(1).dims.end());
  const std::optional<Window> window = readWindow(op, source.dims, kernel, result.dims, transposed);
  if (!window)
    return maker.refuse(std::string(op.name()) + ": extents, strides and pads do not agree");

  std::vector<PostOp> postOps = maker.match.postOps;
  std::optional<View> bias;
  if (maker.operand(2).isPresent()) {
    bias = maker.operand(2);
  } else if (!postOps.empty()) {
    bias = asBias(postOps[0], result.dims[1]);
    if (bias && !maker.mayBeBias(*bias))
      bias.reset();
    if (bias)
      postOps.erase(postOps.begin());
  }
  if (!maker.settleScales(bias, result.dims[1], postOps))
    return false;
  const Desc biasDesc = bias ? maker.biasDesc(*bias) : Desc();
  // Groups are a dimension in front.
  const int weightsMask = groups > 1 ? 3 : 1;
  if (maker.isInt8() && transposed && groups > 1)
    return maker.refuse("conv_transpose: groups of quantised operands are not supported");

  // A residual that the result may overwrite is added as a sum.
  const int32_t alias = maker.problem.value(result.value).may_alias;
  int accumulate = -1;
  for (size_t i = 0;
       i < postOps.size() && alias >= 0 && accumulate < 0 && !maker.isInt8() && !maker.wide; ++i)
    if (postOps[i].kind == PostOp::Kind::Binary && postOps[i].algorithm == dnnl_binary_add &&
        postOps[i].operand.dims == result.dims &&
        maker.problem.inputPosition(postOps[i].operand.value) == alias)
      accumulate = static_cast<int>(i);

  auto attempt = [&](Style style, bool winograd) {
    if (!maker.wants(winograd ? "winograd" : "direct"))
      return;
    const Desc from = maker.styled(source, style), to = maker.styled(result, style),
               pack = maker.weights(*weights);
    std::vector<Argument> arguments{
        {DNNL_ARG_SRC, source, -1}, maker.weightsArgument(*weights), {DNNL_ARG_DST, result, -1}};
    if (bias)
      arguments.push_back(maker.biasArgument(*bias));
    const Attributes attributes = maker.attributes(postOps, style, arguments, accumulate);
    if (!from || !to || !pack || !attributes ||
        !maker.addGrids(attributes, weightsMask, 1 << 1, arguments))
      return;
    dnnl_primitive_desc_t made = nullptr;
    dnnl_status_t status;
    if (transposed)
      status = library.deconvolution_forward_primitive_desc_create(
          &made, library.engine, dnnl_forward_inference,
          winograd ? dnnl_deconvolution_winograd : dnnl_deconvolution_direct, from.get(),
          pack.get(), biasDesc.get(), to.get(), window->strides.data(), window->dilates.data(),
          window->padLeft.data(), window->padRight.data(), attributes.get());
    else
      status = library.convolution_forward_primitive_desc_create(
          &made, library.engine, dnnl_forward_inference,
          winograd ? dnnl_convolution_winograd : dnnl_convolution_direct, from.get(), pack.get(),
          biasDesc.get(), to.get(), window->strides.data(), window->dilates.data(),
          window->padLeft.data(), window->padRight.data(), attributes.get());
    if (status != dnnl_success)
      return;
    Attempt attempt{winograd ? "winograd" : "direct",
                    maker.numerics(winograd ? "-winograd" : ""),
                    {},
                    {},
                    {},
                    {}};
    if (accumulate >= 0)
      attempt.accumulated = postOps[static_cast<size_t>(accumulate)].operand;
    attempt.stages.push_back({PrimitiveDesc(library, made), std::move(arguments)});
    maker.offer(std::move(attempt));
  };
  for (Style style : maker.inOrder({Style::Any, Style::RowMajor, Style::ChannelsLast})) {
    attempt(style, false);
    if (!maker.isInt8())
      attempt(style, true);
  }
  return true;
}

} // namespace dovetail::onednn
