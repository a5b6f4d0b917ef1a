// SPDX-License-Identifier: Apache-2.0
//
// What stands between the contractions of a quantised model: quantisation and dequantisation alone,
// as reorders that may change the layout on the way, and sums of quantised tensors. A sum of
// (a - za) * sa and (b - zb) * sb is one of a * sa and b * sb with a number added, which goes into
// the step that brings it onto the result's grid.
#include <utility>

#include "providers/onednn/Attempt.h"

namespace dovetail::onednn {
namespace {

bool isByte(dnnl_data_type_t type) { return type == dnnl_s8 || type == dnnl_u8; }

Argument vectorOf(int id, dnnl_data_type_t type, uint32_t value) {
  return {id, {}, -1, {type, 1, 0, {{1, value}}, 1}, false};
}

/// Scale and zero point of one side of a reorder.
bool addGrid(const Maker &maker, const Attributes &attributes, int argument, const Grid &grid,
             std::vector<Argument> &arguments) {
  const Library &library = maker.library;
  if (library.primitive_attr_set_scales_mask(attributes.get(), argument, 0) != dnnl_success)
    return false;
  arguments.push_back(vectorOf(DNNL_ARG_ATTR_SCALES | argument, dnnl_f32, grid.scale));
  if (maker.isZero(grid.zero))
    return true;
  if (library.primitive_attr_set_zero_points_mask(attributes.get(), argument, 0) != dnnl_success)
    return false;
  arguments.push_back(vectorOf(DNNL_ARG_ATTR_ZERO_POINTS | argument, dnnl_s32, grid.zero));
  return true;
}

} // namespace

bool makeRequantization(Maker &maker) {
  const Library &library = maker.library;
  const OpReader op = maker.op();
  const std::string name(op.name());
  const View &source = maker.operand(0), &result = maker.match.result;
  const bool quantizes = name == "quantize_linear";
  const auto known = maker.match.grids.find(source.value);
  std::optional<Grid> from, to;
  if (known != maker.match.grids.end())
    from = known->second;
  if (quantizes)
    to = Grid{op.input(1), op.input(2), -1};
  auto fits = [&](const std::optional<Grid> &grid, const View &view) {
    return grid ? isByte(maker.type(view)) && maker.hasOrdinaryScale(*grid)
                : maker.type(view) == dnnl_f32;
  };
  if (!maker.match.postOps.empty() || source.dims != result.dims || kGeneration == 2)
    return maker.refuse(name + " together with other ops is not supported");
  if (!fits(from, source) || !fits(to, result))
    return maker.refuse(name + ": bytes with one constant scale and zero point are supported");
  for (Style before : maker.propagatingStyles(source))
    for (Style after : maker.propagatingStyles(result)) {
      // 3.2 gives wrong numbers on the way back from other layouts (7x7 images of many channels).
      if (before != after && before != Style::RowMajor)
        continue;
      std::vector<Argument> arguments{{DNNL_ARG_FROM, source, -1}, {DNNL_ARG_TO, result, -1}};
      const Desc a = maker.styled(source, before), b = maker.styled(result, after);
      const Attributes attributes = maker.attributes({}, Style::RowMajor, arguments);
      if (!a || !b || !attributes ||
          (from && !addGrid(maker, attributes, DNNL_ARG_FROM, *from, arguments)) ||
          (to && !addGrid(maker, attributes, DNNL_ARG_TO, *to, arguments)))
        continue;
      dnnl_primitive_desc_t made = nullptr;
      dnnl_status_t status = library.reorder_primitive_desc_create(
          &made, a.get(), library.engine, b.get(), library.engine, attributes.get());
      maker.offer("reorder", status, made, std::move(arguments), "int8");
    }
  return true;
}

bool makeQuantizedSum(Maker &maker) {
  const Library &library = maker.library;
  const OpReader op = maker.op();
  const std::string name(op.name());
  const View &result = maker.match.result;
  const bool subtracts = name == "sub";
  if ((name != "add" && !subtracts) || kGeneration == 2)
    return maker.refuse(name + " of quantised operands is not supported");
  const size_t rank = result.dims.size();
  View views[2] = {maker.operand(0), maker.operand(1)};
  std::optional<Grid> grids[2];
  std::vector<Derived::Term> offset; // of the sum, or of the result where nothing is between
  for (int i : {0, 1}) {
    if (!views[i].isPresent() || views[i].dims.size() > rank)
      return maker.refuse(name + ": operand ranks do not agree with the result");
    if (auto known = maker.match.grids.find(views[i].value); known != maker.match.grids.end()) {
      const Grid &grid = known->second;
      if (!maker.hasOrdinaryScale(grid) || !isByte(maker.type(views[i])))
        return maker.refuse(name + ": bytes with one constant scale and zero point are supported");
      grids[i] = grid;
      if (!maker.isZero(grid.zero))
        offset.push_back({i == 1 && subtracts ? 1.0 : -1.0, grid.zero, grid.scale});
    } else if (maker.type(views[i]) != dnnl_f32) {
      return maker.refuse(name + ": f32 and quantised operands are supported");
    }
    if (views[i].dims.size() < rank)
      views[i] = views[i].withRank(rank);
  }
  if (views[0].value == views[1].value)
    return maker.refuse(name + " of one operand with itself is not supported");
  if (views[0].dims != result.dims && !subtracts) {
    std::swap(views[0], views[1]);
    std::swap(grids[0], grids[1]);
  }
  if (views[0].dims != result.dims)
    return maker.refuse(name + ": the first operand must have the result's extents");
  std::vector<PostOp> postOps = maker.match.postOps;
  if (const std::optional<Grid> &to = maker.match.resultGrid) {
    if (!maker.hasOrdinaryScale(*to) || !isByte(maker.type(result)))
      return maker.refuse(name + ": results of bytes with one constant scale are supported");
    std::vector<Derived::Term> last;
    if (postOps.empty())
      for (const Derived::Term &term : std::exchange(offset, {}))
        last.push_back({term.sign, term.base, term.factor, DVT_NO_VALUE, to->scale});
    if (!maker.isZero(to->zero))
      last.push_back({1, to->zero});
    postOps.push_back(numberStep(dnnl_binary_div, {{1, to->scale}}));
    if (!last.empty())
      postOps.push_back(numberStep(dnnl_binary_add, std::move(last)));
  } else if (!maker.isF32({&result})) {
    return maker.refuse(name + ": results of this type are not supported");
  }
  if (!offset.empty())
    postOps.insert(postOps.begin(), numberStep(dnnl_binary_add, std::move(offset)));
  for (Style style : maker.propagatingStyles(result)) {
    std::vector<Argument> arguments{
        {DNNL_ARG_SRC_0, views[0], -1}, {DNNL_ARG_SRC_1, views[1], -1}, {DNNL_ARG_DST, result, -1}};
    const Attributes attributes = maker.attributes(postOps, style, arguments);
    const Desc a = maker.styled(views[0], style), b = maker.styled(views[1], style),
               to = maker.styled(result, style);
    bool complete = a && b && to && attributes;
    for (int i : {0, 1}) {
      if (!complete || !grids[i])
        continue;
      const int argument = i == 0 ? DNNL_ARG_SRC_0 : DNNL_ARG_SRC_1;
      complete =
          library.primitive_attr_set_scales_mask(attributes.get(), argument, 0) == dnnl_success;
      arguments.push_back(vectorOf(DNNL_ARG_ATTR_SCALES | argument, dnnl_f32, grids[i]->scale));
    }
    if (!complete)
      continue;
    dnnl_primitive_desc_t made = nullptr;
    dnnl_status_t status = library.binary_primitive_desc_create(
        &made, library.engine, subtracts ? dnnl_binary_sub : dnnl_binary_add, a.get(), b.get(),
        to.get(), attributes.get());
    maker.offer("binary", status, made, std::move(arguments), "int8");
  }
  return true;
}

} // namespace dovetail::onednn
