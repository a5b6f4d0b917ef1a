// SPDX-License-Identifier: Apache-2.0
//
// Ops that move elements: changes of layout, transposes and concatenations.
#include "providers/onednn/Attempt.h"

#include <algorithm>

namespace dovetail::onednn {
namespace {

/// Types are only copied here, so any type of the same width stands for another.
dnnl_data_type_t copyType(dvt_type type) {
  switch (providers::elementBytes(type)) {
  case 1:
    return dnnl_u8;
  case 4:
    return type == DVT_F32 ? dnnl_f32 : dnnl_s32;
  default:
    return dataType(type);
  }
}

/// Row-major has one spelling at the door, the empty one.
std::string canonical(const std::string &layout) {
  const std::string all = "abcdefghijkl";
  return layout == all.substr(0, layout.size()) ? "" : layout;
}

bool layoutReorder(Maker &maker) {
  const Library &library = maker.library;
  const OpReader op = maker.op();
  const View &source = maker.operand(0), &result = maker.match.result;
  const std::string from = canonical(op.string("src_layout", "")),
                    to = canonical(op.string("dst_layout", ""));
  if (!source.isFree() || !result.isFree())
    return maker.refuse("dvt_reorder of strided memory is not supported");
  const dnnl_data_type_t type = copyType(maker.problem.type(source.value));
  const Desc fromDesc = Desc::withLayout(library, type, source.dims, from),
             toDesc = Desc::withLayout(library, type, result.dims, to);
  if (type == dnnl_data_type_undef || !fromDesc || !toDesc || source.dims != result.dims)
    return maker.refuse("dvt_reorder: oneDNN knows no layout '" + (fromDesc ? to : from) +
                        "' for these operands");
  std::vector<Argument> arguments{{DNNL_ARG_FROM, source, -1}, {DNNL_ARG_TO, result, -1}};
  const Attributes attributes = maker.attributes({}, Style::RowMajor, arguments);
  dnnl_primitive_desc_t made = nullptr;
  dnnl_status_t status = library.reorder_primitive_desc_create(
      &made, fromDesc.get(), library.engine, toDesc.get(), library.engine, attributes.get());
  if (status == dnnl_success) {
    Attempt attempt{"reorder", maker.problem.type(source.value) == DVT_F32 ? "f32" : "exact",
                    {},        {},
                    {},        {from, to}};
    attempt.stages.push_back({PrimitiveDesc(library, made), std::move(arguments)});
    maker.offer(std::move(attempt));
  }
  return true;
}

bool transposeAsCopy(Maker &maker) {
  const Library &library = maker.library;
  const OpReader op = maker.op();
  const View &source = maker.operand(0), &result = maker.match.result;
  const size_t rank = source.dims.size();
  Dims perm(rank);
  for (size_t i = 0; i < rank; ++i)
    perm[i] = static_cast<int64_t>(rank - 1 - i);
  perm = op.integers("perm", perm);
  if (!maker.match.postOps.empty() || result.dims.size() != rank || perm.size() != rank)
    return maker.refuse("transpose with other ops is not supported");
  std::vector<size_t> order(perm.begin(), perm.end());
  for (size_t axis : order)
    if (axis >= rank)
      return maker.refuse("transpose: perm is no permutation of the axes");
  const View moved = source.permuted(order);
  const dnnl_data_type_t type = copyType(maker.problem.type(source.value));
  const Desc from = Desc::strided(library, type, moved.dims, moved.strides),
             to = Desc::strided(library, type, result.dims, result.strides);
  if (type == dnnl_data_type_undef || !from || !to || moved.dims != result.dims)
    return maker.refuse("transpose: elements of this type are not supported");
  std::vector<Argument> arguments{{DNNL_ARG_FROM, moved, -1}, {DNNL_ARG_TO, result, -1}};
  const Attributes attributes = maker.attributes({}, Style::RowMajor, arguments);
  dnnl_primitive_desc_t made = nullptr;
  dnnl_status_t status = library.reorder_primitive_desc_create(
      &made, from.get(), library.engine, to.get(), library.engine, attributes.get());
  maker.offer("reorder", status, made, std::move(arguments));
  return true;
}

} // namespace

bool makeReorder(Maker &maker) {
  if (!maker.match.postOps.empty())
    return maker.refuse("a change of layout together with other ops is not supported");
  return maker.op().name() == "dvt_reorder" ? layoutReorder(maker) : transposeAsCopy(maker);
}

bool makeConcat(Maker &maker) {
  const Library &library = maker.library;
  const View &result = maker.match.result;
  const std::vector<View> &sources = maker.match.operands;
  const int64_t rank = static_cast<int64_t>(result.dims.size());
  int64_t axis = maker.op().integer("axis", 0);
  axis += axis < 0 ? rank : 0;
  if (!maker.match.postOps.empty())
    return maker.refuse("concat with post-operations is not supported");
  if (sources.empty() || axis < 0 || axis >= rank)
    return maker.refuse("concat: no operands or a wrong axis");
  for (const View &source : sources)
    if (!source.isPresent() || !maker.isOneFloatType({&source, &result}) ||
        source.dims.size() != result.dims.size())
      return maker.refuse("concat: operands of one rank and of f32, f16 or bf16 are supported");
  for (Style style : maker.propagatingStyles(result)) {
    std::vector<Argument> arguments;
    std::vector<Desc> descs;
    std::vector<const_dnnl_memory_desc_t> handles;
    for (size_t i = 0; i < sources.size(); ++i) {
      descs.push_back(maker.styled(sources[i], style));
      handles.push_back(descs.back().get());
      arguments.push_back({DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), sources[i], -1});
    }
    arguments.push_back({DNNL_ARG_DST, result, -1});
    const Desc to = maker.styled(result, style);
    const Attributes attributes = maker.attributes({}, style, arguments);
    if (!to || !attributes ||
        std::any_of(descs.begin(), descs.end(), [](const Desc &d) { return !d; }))
      continue;
    dnnl_primitive_desc_t made = nullptr;
    dnnl_status_t status = library.concat_primitive_desc_create(
        &made, library.engine, to.get(), static_cast<int>(handles.size()), static_cast<int>(axis),
        handles.data(), attributes.get());
    maker.offer("concat", status, made, std::move(arguments));
  }
  return true;
}

} // namespace dovetail::onednn
