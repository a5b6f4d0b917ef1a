// SPDX-License-Identifier: Apache-2.0
//
// Ops that move whole elements: transposed, joined, cut, padded, repeated. Small integer tensors of
// rank 1 keep their tracked elements through concat, split and slice.
#include "graph/shapes/ShapeRules.h"

#include <algorithm>
#include <cstdlib>

namespace dovetail::graph {
namespace {

/// Extents of a tracked tensor, which are numbers wherever there are elements.
std::optional<std::vector<int64_t>> numbersOf(const Shape &shape) {
  std::vector<int64_t> numbers;
  for (const Extent &extent : shape)
    if (std::optional<int64_t> number = extent.staticValue())
      numbers.push_back(*number);
  return numbers.size() == shape.size() ? std::optional(numbers) : std::nullopt;
}

Elements transposedElements(const Elements &elements, const std::vector<int64_t> &extents,
                            const std::vector<int64_t> &order) {
  std::vector<size_t> strides(extents.size(), 1);
  for (size_t d = extents.size(); d-- > 1;)
    strides[d - 1] = strides[d] * static_cast<size_t>(extents[d]);
  Elements result;
  std::vector<int64_t> index(order.size(), 0);
  while (result.size() < elements.size()) {
    size_t place = 0;
    for (size_t d = 0; d < order.size(); ++d)
      place += static_cast<size_t>(index[d]) * strides[static_cast<size_t>(order[d])];
    result.push_back(elements[place]);
    for (size_t d = order.size(); d-- > 0 && ++index[d] == extents[static_cast<size_t>(order[d])];)
      index[d] = 0;
  }
  return result;
}

Status transpose(InferContext &c) {
  size_t rank = c.rank(0);
  std::vector<int64_t> order = c.list("perm").value_or(std::vector<int64_t>());
  if (!c.hasAttribute("perm"))
    for (size_t d = rank; d-- > 0;)
      order.push_back(int64_t(d));
  Expected<std::vector<int64_t>> checked = c.axes(order, rank);
  if (!checked)
    return checked.takeError();
  if (checked->size() != rank)
    return c.fail("perm has {} entries for rank {}", checked->size(), rank);
  Shape shape;
  for (int64_t d : *checked)
    shape.push_back(c.shape(0)[d]);
  c.result(0, c.type(0), std::move(shape));
  if (std::optional<Elements> elements = c.elements(0))
    if (std::optional<std::vector<int64_t>> extents = numbersOf(c.shape(0)))
      c.resultElements(0, transposedElements(*elements, *extents, *checked));
  return Status::success();
}

Status concat(InferContext &c) {
  Expected<int64_t> axis = c.axis(c.integer("axis", 0), c.rank(0));
  if (!axis)
    return axis.takeError();
  Shape shape = c.shape(0);
  std::optional<Elements> elements = Elements();
  for (size_t i = 0; i < c.operandCount(); ++i) {
    if (!c.has(i))
      return c.fail("operand {} is absent", i);
    if (c.type(i) != c.type(0))
      return c.fail("operands 0 and {} have the types {} and {}, expected one type", i,
                    typeName(c.type(0)), typeName(c.type(i)));
    if (Status status = c.needRank(i, shape.size()); !status)
      return status;
    for (size_t d = 0; i > 0 && d < shape.size(); ++d) {
      const Extent &extent = c.shape(i)[d];
      if (int64_t(d) == *axis) {
        shape[d] = shape[d] + extent;
        continue;
      }
      if (Status status = c.needEqual(shape[d], extent, "extents beside the axis"); !status)
        return status;
      // A number says more than a symbol that must equal it.
      if (extent.isStatic())
        shape[d] = extent;
    }
    std::optional<Elements> own = c.rank(i) == 1 ? c.elements(i) : std::nullopt;
    std::optional<int64_t> length = c.rank(i) == 1 ? c.shape(i)[0].staticValue() : std::nullopt;
    if (!own && length && size_t(*length) <= kMostTrackedElements && c.type(i) == DVT_I64)
      own = Elements(*length);
    if (elements && own)
      elements->insert(elements->end(), own->begin(), own->end());
    else
      elements.reset();
  }
  c.result(0, c.type(0), std::move(shape));
  if (elements)
    c.resultElements(0, std::move(*elements));
  return Status::success();
}

Status split(InferContext &c) {
  Expected<int64_t> axis = c.axis(c.integer("axis", 0), c.rank(0));
  if (!axis)
    return axis.takeError();
  const Extent &whole = c.shape(0)[*axis];
  size_t count = c.resultCount();
  std::vector<Extent> parts;
  if (c.has(1)) {
    std::optional<Elements> given = c.elements(1);
    if (given && given->size() != count)
      return c.fail("splits into {} parts but has {} results", given->size(), count);
    Extent sum;
    for (size_t i = 0; i < count; ++i) {
      parts.push_back(given && (*given)[i] ? *(*given)[i] : c.fresh(i, *axis));
      sum = sum + parts.back();
    }
    if (Status status = c.needEqual(sum, whole, "sum of the parts and the extent"); !status)
      return status;
  } else {
    if (int64_t stated = c.integer("num_outputs", int64_t(count)); stated != int64_t(count))
      return c.fail("num_outputs is {} but there are {} results", stated, count);
    // Equal parts, the last one smaller where they do not come out even.
    std::optional<Extent> even = Extent::exactDiv(whole, int64_t(count));
    Extent part = even ? *even : Extent::ceilDiv(whole, int64_t(count));
    for (size_t i = 0; i + 1 < count; ++i)
      parts.push_back(part);
    parts.push_back(whole - part * int64_t(count - 1));
  }
  std::optional<Elements> elements = c.rank(0) == 1 ? c.elements(0) : std::nullopt;
  size_t begin = 0;
  for (size_t i = 0; i < count; ++i) {
    Shape shape = c.shape(0);
    shape[*axis] = parts[i];
    c.result(i, c.type(0), std::move(shape));
    std::optional<int64_t> length = parts[i].staticValue();
    if (!elements || !length || begin + *length > elements->size()) {
      elements.reset();
      continue;
    }
    c.resultElements(i, Elements(elements->begin() + begin, elements->begin() + begin + *length));
    begin += *length;
  }
  return Status::success();
}

/// A start or an end as ONNX clamps it: to [0, extent] going forward; going backward to [0, extent
/// - 1] for a start and [-1, extent - 1] for an end. Nothing where the sign of an index is not
/// known.
std::optional<Extent> clamped(const InferContext &c, const Extent &index, const Extent &extent,
                              bool backward, bool isEnd) {
  constexpr int64_t far = int64_t(1) << 40; // beyond every extent: INT64_MAX and the like
  std::optional<int64_t> number = index.staticValue();
  // Of an empty axis a backward slice starts at -1, where it ends.
  const Extent highest = backward ? extent - 1 : extent;
  const Extent lowest = !backward ? Extent(0) : isEnd ? Extent(-1) : c.least(0, highest);
  if (number && *number < -far)
    return lowest;
  if (number && *number > far)
    return highest;
  if (!number && c.range(index).min < 0 && c.range(index).max >= 0)
    return std::nullopt;
  bool fromEnd = number ? *number < 0 : c.range(index).max < 0;
  return c.most(c.least(fromEnd ? extent + index : index, highest), lowest);
}

std::optional<Extent> slicedExtent(const InferContext &c, const Extent &extent,
                                   const std::optional<Extent> &start,
                                   const std::optional<Extent> &end, int64_t step) {
  if (extent == Extent(0))
    return extent;
  if (!start || !end)
    return std::nullopt;
  std::optional<Extent> from = clamped(c, *start, extent, step < 0, false),
                        to = clamped(c, *end, extent, step < 0, true);
  if (!from || !to)
    return std::nullopt;
  Extent length = step > 0 ? *to - *from : *from - *to;
  return c.most(Extent::ceilDiv(length, std::abs(step)), 0);
}

/// Elements of a tracked tensor of rank 1 after slicing by numbers.
Elements slicedElements(const Elements &elements, int64_t start, int64_t end, int64_t step) {
  int64_t count = int64_t(elements.size());
  auto clamp = [&](int64_t index, bool isEnd) {
    if (index < 0)
      index = index < -count ? -1 : index + count;
    return step > 0 ? std::clamp<int64_t>(index, 0, count)
                    : std::min(std::max<int64_t>(index, isEnd ? -1 : 0), count - 1);
  };
  Elements result;
  if (elements.empty())
    return result;
  int64_t last = clamp(end, true);
  // A longer step leaves the list as surely, and no number's range.
  step = std::clamp(step, -count - 1, count + 1);
  for (int64_t i = clamp(start, false); step > 0 ? i < last : i > last; i += step)
    result.push_back(elements[i]);
  return result;
}

/// The same along one axis of a tracked tensor of any rank.
Elements slicedElements(const Elements &elements, const std::vector<int64_t> &extents, size_t axis,
                        int64_t start, int64_t end, int64_t step) {
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < extents.size(); ++d)
    (d < axis ? outer : inner) *= d == axis ? 1 : extents[d];
  Elements places, result;
  for (int64_t i = 0; i < extents[axis]; ++i)
    places.push_back(Extent(i));
  places = slicedElements(places, start, end, step);
  for (int64_t o = 0; o < outer; ++o)
    for (const std::optional<Extent> &place : places)
      for (int64_t i = 0; i < inner; ++i)
        result.push_back(elements[(o * extents[axis] + place->value()) * inner + i]);
  return result;
}

Status slice(InferContext &c) {
  size_t rank = c.rank(0);
  std::optional<Elements> starts = c.elements(1), ends = c.elements(2);
  std::optional<int64_t> count = c.rank(1) == 1 ? c.shape(1)[0].staticValue() : std::nullopt;
  std::optional<std::vector<int64_t>> axes, steps;
  if (c.has(3)) {
    axes = c.integers(3);
  } else if (count) {
    axes.emplace();
    for (int64_t d = 0; d < *count; ++d)
      axes->push_back(d);
  }
  if (!count && axes)
    count = int64_t(axes->size());
  if (c.has(4))
    steps = c.integers(4);
  else if (count)
    steps = std::vector<int64_t>(*count, 1);
  Shape shape = c.shape(0);
  if (!axes) {
    for (size_t d = 0; d < rank; ++d)
      shape[d] = c.fresh(0, d);
    c.result(0, c.type(0), std::move(shape));
    return Status::success();
  }
  Expected<std::vector<int64_t>> checked = c.axes(*axes, rank);
  if (!checked)
    return checked.takeError();
  size_t length = checked->size();
  if ((starts && starts->size() != length) || (ends && ends->size() != length) ||
      (steps && steps->size() != length))
    return c.fail("starts, ends, axes and steps have different lengths");
  for (size_t i = 0; i < length; ++i) {
    if (steps && (*steps)[i] == 0)
      return c.fail("a step is 0");
    size_t d = (*checked)[i];
    std::optional<Extent> extent;
    constexpr int64_t longest = int64_t(1) << 40; // beyond every extent, and safe to reckon with
    if (steps && starts && ends)
      extent = slicedExtent(c, shape[d], (*starts)[i], (*ends)[i],
                            std::clamp((*steps)[i], -longest, longest));
    shape[d] = extent ? *extent : c.fresh(0, d);
  }
  std::optional<Elements> elements = c.elements(0);
  std::optional<std::vector<int64_t>> extents = numbersOf(c.shape(0)), from = c.integers(1),
                                      to = c.integers(2);
  if (elements && extents && length == 1 && from && to && steps)
    c.resultElements(0, slicedElements(*elements, *extents, size_t((*checked)[0]), (*from)[0],
                                       (*to)[0], (*steps)[0]));
  c.result(0, c.type(0), std::move(shape));
  return Status::success();
}

Status pad(InferContext &c) {
  size_t rank = c.rank(0);
  std::vector<int64_t> axes;
  if (c.has(3)) {
    std::optional<std::vector<int64_t>> given = c.integers(3);
    if (!given)
      return c.fail("axes are no constant, which is not supported");
    Expected<std::vector<int64_t>> checked = c.axes(*given, rank);
    if (!checked)
      return checked.takeError();
    axes = std::move(*checked);
  } else {
    for (size_t d = 0; d < rank; ++d)
      axes.push_back(int64_t(d));
  }
  Shape shape = c.shape(0);
  std::optional<Elements> pads = c.elements(1);
  if (pads && pads->size() != 2 * axes.size())
    return c.fail("has {} pads for {} axes, expected two for each", pads->size(), axes.size());
  bool copies = c.text("mode", "constant") != "constant";
  for (size_t i = 0; i < axes.size(); ++i) {
    size_t d = axes[i];
    if (!pads || !(*pads)[i] || !(*pads)[i + axes.size()]) {
      shape[d] = c.fresh(0, d);
      continue;
    }
    Extent added = *(*pads)[i] + *(*pads)[i + axes.size()];
    if (copies && !c.surelyAtMost(added, 0))
      if (Status status = c.needAtLeast(shape[d], c.least(added, 1), "the axis that is padded");
          !status)
        return status;
    shape[d] = shape[d] + added;
    if (Status status = c.needAtLeast(shape[d], 0, fmt::format("axis {} of the result", d));
        !status)
      return status;
  }
  c.result(0, c.type(0), std::move(shape));
  return Status::success();
}

/// A shape operand's elements, or fresh symbols where only their number is known.
Expected<Shape> shapeOperand(InferContext &c, size_t i) {
  if (Status status = c.needRank(i, 1); !status)
    return status.takeError();
  std::optional<Elements> elements = c.elements(i);
  if (!elements) {
    std::optional<int64_t> rank = c.shape(i)[0].staticValue();
    if (!rank || *rank > 32)
      return c.fail("the rank of the result is not known when compiling");
    elements = Elements(*rank);
  }
  Shape shape;
  for (size_t d = 0; d < elements->size(); ++d)
    shape.push_back((*elements)[d] ? *(*elements)[d] : c.fresh(0, d));
  return shape;
}

Status expand(InferContext &c) {
  Expected<Shape> wanted = shapeOperand(c, 1);
  if (!wanted)
    return wanted.takeError();
  Expected<Shape> shape = c.broadcast(c.shape(0), *wanted);
  if (!shape)
    return shape.takeError();
  std::optional<Elements> elements = c.elements(0);
  std::optional<int64_t> count = elementCount(*shape).staticValue();
  if (elements && count && elements->size() == 1 && size_t(*count) <= kMostTrackedElements)
    c.resultElements(0, Elements(*count, (*elements)[0]));
  c.result(0, c.type(0), std::move(*shape));
  return Status::success();
}

Status tile(InferContext &c) {
  std::optional<Elements> repeats = c.elements(1);
  if (repeats && repeats->size() != c.rank(0))
    return c.fail("has {} repeats for rank {}", repeats->size(), c.rank(0));
  Shape shape = c.shape(0);
  for (size_t d = 0; d < shape.size(); ++d)
    shape[d] = repeats && (*repeats)[d] ? shape[d] * *(*repeats)[d] : c.fresh(0, d);
  c.result(0, c.type(0), std::move(shape));
  return Status::success();
}

constexpr int64_t kMostBlock = int64_t(1) << 20; // its square is no problem

Status depthToSpace(InferContext &c) {
  if (Status status = c.needRank(0, 4); !status)
    return status;
  const Shape &from = c.shape(0);
  int64_t block = c.integer("blocksize", 1);
  if (block < 1 || block > kMostBlock || (from[1].isStatic() && from[1].value() % (block * block)))
    return c.fail("{} channels cannot be spread over blocks of {}x{}", from[1].text(), block,
                  block);
  Extent area = block * block;
  Extent channels = Extent::exactDiv(from[1], area).value_or(Extent::floorDiv(from[1], area));
  if (Status status = c.needEqual(channels * area, from[1], "whole blocks of channels"); !status)
    return status;
  c.result(0, c.type(0), {from[0], channels, from[2] * block, from[3] * block});
  return Status::success();
}

Status spaceToDepth(InferContext &c) {
  if (Status status = c.needRank(0, 4); !status)
    return status;
  const Shape &from = c.shape(0);
  int64_t block = c.integer("blocksize", 1);
  if (block < 1 || block > kMostBlock)
    return c.fail("blocksize is {}, expected a number in [1, {}]", block, kMostBlock);
  for (size_t d : {2, 3})
    if (Status status = c.needEqual(Extent::floorDiv(from[d], block) * block, from[d],
                                    "whole blocks of the image");
        !status)
      return status;
  c.result(0, c.type(0),
           {from[0], from[1] * (block * block), Extent::floorDiv(from[2], block),
            Extent::floorDiv(from[3], block)});
  return Status::success();
}

Status centerCropPad(InferContext &c) {
  std::optional<Elements> wanted = c.elements(1);
  std::vector<int64_t> given = c.list("axes").value_or(std::vector<int64_t>());
  if (!c.hasAttribute("axes"))
    for (size_t d = 0; d < c.rank(0); ++d)
      given.push_back(int64_t(d));
  Expected<std::vector<int64_t>> axes = c.axes(given, c.rank(0));
  if (!axes)
    return axes.takeError();
  if (wanted && wanted->size() != axes->size())
    return c.fail("has {} extents for {} axes", wanted->size(), axes->size());
  Shape shape = c.shape(0);
  for (size_t i = 0; i < axes->size(); ++i)
    shape[(*axes)[i]] = wanted && (*wanted)[i] ? *(*wanted)[i] : c.fresh(0, (*axes)[i]);
  c.result(0, c.type(0), std::move(shape));
  return Status::success();
}

Status sameAsFirst(InferContext &c) {
  c.result(0, c.type(0), c.shape(0));
  return Status::success();
}

Status col2Im(InferContext &c) {
  if (Status status = c.needRank(0, 3); !status)
    return status;
  std::optional<std::vector<int64_t>> block = c.integers(2);
  Expected<Shape> image = shapeOperand(c, 1);
  if (!image)
    return image.takeError();
  if (!block)
    return c.fail("block_shape is no constant, which is not supported");
  int64_t elements = 1;
  for (int64_t extent : *block)
    elements *= extent;
  std::optional<Extent> channels = Extent::exactDiv(c.shape(0)[1], elements);
  if (!channels)
    return c.fail("{} rows are no multiple of the block's {} elements", c.shape(0)[1].text(),
                  elements);
  Shape shape{c.shape(0)[0], *channels};
  shape.insert(shape.end(), image->begin(), image->end());
  c.result(0, c.type(0), std::move(shape));
  return Status::success();
}

Status gridSample(InferContext &c) {
  if (Status status = c.needRankAtLeast(0, 3); !status)
    return status;
  if (Status status = c.needRank(1, c.rank(0)); !status)
    return status;
  Shape shape{c.shape(0)[0], c.shape(0)[1]};
  for (size_t d = 1; d + 1 < c.rank(1); ++d)
    shape.push_back(c.shape(1)[d]);
  c.result(0, c.type(0), std::move(shape));
  return Status::success();
}

Status affineGrid(InferContext &c) {
  Expected<Shape> size = shapeOperand(c, 1);
  if (!size)
    return size.takeError();
  if (size->size() != 4 && size->size() != 5)
    return c.fail("size has {} elements, expected 4 or 5", size->size());
  Shape shape{(*size)[0]};
  shape.insert(shape.end(), size->begin() + 2, size->end());
  shape.push_back(int64_t(size->size()) - 2);
  c.result(0, c.type(0), std::move(shape));
  return Status::success();
}

} // namespace

void addMovementRules(ShapeRules &rules) {
  rules["transpose"] = transpose;
  rules["concat"] = concat;
  rules["split"] = split;
  rules["slice"] = slice;
  rules["pad"] = pad;
  rules["expand"] = expand;
  rules["tile"] = tile;
  rules["depth_to_space"] = depthToSpace;
  rules["space_to_depth"] = spaceToDepth;
  rules["center_crop_pad"] = centerCropPad;
  rules["reverse_sequence"] = sameAsFirst;
  rules["trilu"] = sameAsFirst;
  rules["col2_im"] = col2Im;
  rules["grid_sample"] = gridSample;
  rules["affine_grid"] = affineGrid;
}

} // namespace dovetail::graph
