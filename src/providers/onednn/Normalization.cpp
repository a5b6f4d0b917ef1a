// SPDX-License-Identifier: Apache-2.0
//
// Softmax and the normalisations: layer, batch (with given statistics) and instance.
#include "providers/onednn/Attempt.h"

namespace dovetail::onednn {
namespace {

/// Dims before and from `axis` on, each as one.
Dims twoDims(const Dims &dims, size_t axis) {
  return {providers::product(dims, 0, axis), providers::product(dims, axis, dims.size())};
}

bool makeLayerNormalization(Maker &maker) {
  const Library &library = maker.library;
  const OpReader op = maker.op();
  const int64_t rank = static_cast<int64_t>(maker.operand(0).dims.size());
  int64_t axis = op.integer("axis", -1);
  axis += axis < 0 ? rank : 0;
  if (axis < 0 || axis >= rank)
    return maker.refuse("layer_normalization: axis is outside the rank");
  if (op.integer("stash_type", 1) != 1)
    return maker.refuse("layer_normalization: statistics in f32 are supported");
  if (!maker.match.postOps.empty())
    return maker.refuse("layer_normalization with post-operations is not supported");
  const Dims flat = twoDims(maker.operand(0).dims, static_cast<size_t>(axis));
  std::optional<View> source = maker.operand(0).reshaped(flat),
                      result = maker.match.result.reshaped(flat);
  // A transposed operand may come in the layout in which its rows are dense. Other strides are read
  // wrongly by this library's implementations.
  if ((!source || !result) && axis == rank - 1 && maker.operand(0).isFree() &&
      maker.match.result.isFree()) {
    source = maker.operand(0);
    result = maker.match.result;
  }
  const std::optional<View> scale = maker.operand(1).reshaped({flat[1]});
  const std::optional<View> shift = maker.operand(2).isPresent()
                                        ? maker.operand(2).reshaped({flat[1]})
                                        : std::optional<View>(View());
  auto usable = [](const std::optional<View> &view) {
    return view && (view->isFree() || providers::isDense(view->dims, view->strides));
  };
  if (!usable(source) || !usable(result) || !scale || !shift)
    return maker.refuse("layer_normalization: dense operands, with scale and bias of the "
                        "normalised extents, are supported");
  std::vector<Argument> arguments{
      {DNNL_ARG_SRC, *source, -1}, {DNNL_ARG_DST, *result, -1}, {DNNL_ARG_SCALE, *scale, -1}};
  unsigned flags = dnnl_use_scale;
  if (shift->isPresent()) {
    arguments.push_back({DNNL_ARG_SHIFT, *shift, -1});
    flags |= dnnl_use_shift;
  }
  auto rowsDense = [&](const View &view) {
    return view.isFree() ? Desc::strided(library, maker.type(view), view.dims,
                                         providers::denseStrides(view.dims))
                         : maker.plain(view);
  };
  const Desc from = rowsDense(*source), to = rowsDense(*result);
  const Attributes attributes = maker.attributes({}, Style::RowMajor, arguments);
  dnnl_primitive_desc_t made = nullptr;
  dnnl_status_t status = library.layer_normalization_forward_primitive_desc_create(
      &made, library.engine, dnnl_forward_inference, from.get(), to.get(), nullptr,
      static_cast<float>(op.number("epsilon", 1e-5)), flags, attributes.get());
  maker.offer("layer_normalization", status, made, std::move(arguments));
  return true;
}

bool makeBatchNormalization(Maker &maker) {
  const Library &library = maker.library;
  const OpReader op = maker.op();
  const std::string name(op.name());
  const View &source = maker.operand(0), &result = maker.match.result;
  const bool instance = name == "instance_normalization";
  if (op.integer("training_mode", 0) != 0 || op.integer("spatial", 1) == 0)
    return maker.refuse(name + ": inference with one statistic per channel is supported");
  if (source.dims.size() < 2 || source.dims.size() > 5)
    return maker.refuse(name + ": two to five dimensions are supported");
  if (instance && source.dims[0] != 1)
    return maker.refuse(name + ": one image at a time is supported, found a batch of " +
                        std::to_string(source.dims[0]));
  const int64_t channels = source.dims[1];
  std::vector<std::pair<int, size_t>> ids{{DNNL_ARG_SCALE, 1}, {DNNL_ARG_SHIFT, 2}};
  unsigned flags = dnnl_use_scale | dnnl_use_shift;
  if (!instance) {
    ids.insert(ids.end(), {{DNNL_ARG_MEAN, 3}, {DNNL_ARG_VARIANCE, 4}});
    flags |= dnnl_use_global_stats;
  }
  for (auto [id, index] : ids)
    if (maker.operand(index).dims != Dims{channels} || !maker.isF32({&maker.operand(index)}))
      return maker.refuse(name + ": f32 parameters of one number per channel are supported");
  for (Style style : maker.propagatingStyles(source)) {
    std::vector<Argument> arguments{{DNNL_ARG_SRC, source, -1}, {DNNL_ARG_DST, result, -1}};
    for (auto [id, index] : ids)
      arguments.push_back({id, maker.operand(index), -1});
    const Attributes attributes = maker.attributes(maker.match.postOps, style, arguments);
    const Desc from = maker.styled(source, style), to = maker.styled(result, style);
    if (!from || !to || !attributes)
      continue;
    dnnl_primitive_desc_t made = nullptr;
    dnnl_status_t status = library.batch_normalization_forward_primitive_desc_create(
        &made, library.engine, dnnl_forward_inference, from.get(), to.get(),
        static_cast<float>(op.number("epsilon", 1e-5)), flags, attributes.get());
    maker.offer("batch_normalization", status, made, std::move(arguments));
  }
  return true;
}

} // namespace

bool makeNormalization(Maker &maker) {
  const std::string name(maker.op().name());
  // oneDNN's scales, shifts and statistics are f32 whatever the tensor is.
  for (uint32_t i = 1; i < maker.op().inputCount(); ++i)
    if (!maker.isF32({&maker.operand(i)}))
      return maker.refuse(name + ": parameters of f32 are supported");
  if (!maker.isOneFloatType({&maker.operand(0), &maker.match.result}))
    return maker.refuse(name + ": tensors of f32, f16 and bf16 are supported");
  return name == "layer_normalization" ? makeLayerNormalization(maker)
                                       : makeBatchNormalization(maker);
}

bool makeSoftmax(Maker &maker) {
  const Library &library = maker.library;
  const OpReader op = maker.op();
  const std::string name(op.name());
  View source = maker.operand(0), result = maker.match.result;
  const int64_t rank = static_cast<int64_t>(source.dims.size());
  int64_t axis = op.integer("axis", op.version() < 13 ? 1 : -1);
  axis += axis < 0 ? rank : 0;
  if (axis < 0 || axis >= rank)
    return maker.refuse(name + ": axis is outside the rank");
  if (!maker.isOneFloatType({&source, &result}))
    return maker.refuse(name + ": f32, f16 and bf16 are supported");
  if (op.version() < 13) {
    // Before op set 13 everything from the axis on was one row.
    const Dims flat = twoDims(source.dims, static_cast<size_t>(axis));
    const std::optional<View> from = source.reshaped(flat), to = result.reshaped(flat);
    if (!from || !to || !maker.match.postOps.empty())
      return maker.refuse(name + ": strided operands are not supported before op set 13");
    source = *from;
    result = *to;
    axis = 1;
  }
  const dnnl_alg_kind_t algorithm = name == "softmax" ? dnnl_softmax_accurate : dnnl_softmax_log;
  for (Style style : maker.propagatingStyles(source)) {
    std::vector<Argument> arguments{{DNNL_ARG_SRC, source, -1}, {DNNL_ARG_DST, result, -1}};
    const Attributes attributes = maker.attributes(maker.match.postOps, style, arguments);
    const Desc from = maker.styled(source, style), to = maker.styled(result, style);
    if (!from || !to || !attributes)
      continue;
    dnnl_primitive_desc_t made = nullptr;
    dnnl_status_t status = library.softmax_forward_primitive_desc_create(
        &made, library.engine, dnnl_forward_inference, algorithm, from.get(), to.get(),
        static_cast<int>(axis), attributes.get());
    maker.offer("softmax", status, made, std::move(arguments));
  }
  return true;
}

} // namespace dovetail::onednn
