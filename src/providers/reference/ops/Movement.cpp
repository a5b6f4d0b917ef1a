// SPDX-License-Identifier: Apache-2.0
//
// Ops that move elements without looking at them: transpose, concat, split, slice, pad, tile,
// depth_to_space and the like. They work on elements of any type by size.
#include "Ops.h"

#include <algorithm>

namespace dovetail::reference::ops {

Status transpose(Invocation &op) {
  auto rank = static_cast<size_t>(op.rank(0));
  Extents permutation = op.integers("perm").value_or(Extents());
  if (!op.hasAttribute("perm"))
    for (size_t i = rank; i-- > 0;)
      permutation.push_back(static_cast<int64_t>(i));
  if (permutation.size() != rank)
    return op.bad("perm ", textOf(permutation), " does not fit rank ", rank);
  TRY(op.normalizeAxes(permutation, op.rank(0)));
  Extents dense = rowMajorStrides(op.shape(0)), extents(rank), strides(rank);
  for (size_t i = 0; i < rank; ++i) {
    extents[i] = op.shape(0)[static_cast<size_t>(permutation[i])];
    strides[i] = dense[static_cast<size_t>(permutation[i])];
  }
  Tensor *result = nullptr;
  TRY(op.output(0, extents, result));
  gatherStrided(op.in(0), 0, strides, *result);
  return {};
}

Status concat(Invocation &op) {
  int64_t axis = op.integer("axis", 0);
  TRY(op.normalizeAxis(axis, op.rank(0)));
  auto along = static_cast<size_t>(axis);
  Extents extents = op.shape(0);
  extents[along] = 0;
  for (size_t i = 0; i < op.inputCount(); ++i) {
    if (!op.has(i) || op.in(i).type != op.in(0).type || op.rank(i) != op.rank(0))
      return op.bad("operand ", i, " is absent or differs in type or rank from the first");
    for (size_t d = 0; d < extents.size(); ++d)
      if (d != along && op.shape(i)[d] != extents[d])
        return op.bad("operand ", i, " has extents ", textOf(op.shape(i)), "; they must equal ",
                      textOf(op.shape(0)), " but for axis ", axis);
    extents[along] += op.shape(i)[along];
  }
  Tensor *result = nullptr;
  TRY(op.output(0, extents, result));
  size_t bytes = elementBytes(result->type);
  int64_t outer = productOf(extents, 0, axis), inner = productOf(extents, axis + 1, op.rank(0));
  uint8_t *to = result->data;
  for (int64_t o = 0; o < outer; ++o)
    for (size_t i = 0; i < op.inputCount(); ++i) {
      size_t run = static_cast<size_t>(op.shape(i)[along] * inner) * bytes;
      if (run)
        std::memcpy(to, op.in(i).data + static_cast<size_t>(o) * run, run);
      to += run;
    }
  return {};
}

Status split(Invocation &op) {
  int64_t axis = op.integer("axis", 0);
  TRY(op.normalizeAxis(axis, op.rank(0)));
  auto along = static_cast<size_t>(axis);
  auto parts = static_cast<int64_t>(op.outputCount());
  int64_t extent = op.shape(0)[along];
  std::optional<Extents> sizes;
  TRY(op.integerList(1, "split", sizes));
  if (!sizes) {
    int64_t each = (extent + parts - 1) / parts;
    sizes.emplace(static_cast<size_t>(parts), each);
    for (int64_t i = 0; i < parts; ++i)
      (*sizes)[static_cast<size_t>(i)] = std::clamp<int64_t>(extent - i * each, 0, each);
  }
  int64_t total = 0;
  for (int64_t size : *sizes) {
    if (size < 0 || size > extent)
      return op.bad("split ", textOf(*sizes), " of extent ", extent);
    total += size;
  }
  if (static_cast<int64_t>(sizes->size()) != parts || total != extent)
    return op.bad("split ", textOf(*sizes), " of extent ", extent, " into ", parts, " results");
  int64_t begin = 0;
  for (size_t i = 0; i < sizes->size(); ++i) {
    Extents extents = op.shape(0);
    extents[along] = (*sizes)[i];
    if (op.wants(i)) {
      Tensor *result = nullptr;
      TRY(op.output(i, extents, result));
      Extents strides = rowMajorStrides(op.shape(0));
      gatherStrided(op.in(0), begin * strides[along], strides, *result);
    }
    begin += (*sizes)[i];
  }
  return {};
}

Status slice(Invocation &op) {
  std::optional<Extents> starts, ends, axes, steps;
  TRY(op.integerList(1, "starts", starts));
  TRY(op.integerList(2, "ends", ends));
  TRY(op.integerList(3, "axes", axes));
  TRY(op.integerList(4, "steps", steps));
  if (!starts || !ends)
    return op.bad("starts or ends are missing");
  if (!axes) {
    axes.emplace();
    for (size_t i = 0; i < starts->size(); ++i)
      axes->push_back(static_cast<int64_t>(i));
  }
  if (!steps)
    steps.emplace(starts->size(), 1);
  if (ends->size() != starts->size() || axes->size() != starts->size() ||
      steps->size() != starts->size())
    return op.bad("starts, ends, axes and steps differ in length");
  TRY(op.normalizeAxes(*axes, op.rank(0)));
  Extents extents = op.shape(0), strides = rowMajorStrides(op.shape(0));
  int64_t base = 0;
  for (size_t i = 0; i < axes->size(); ++i) {
    auto axis = static_cast<size_t>((*axes)[i]);
    int64_t extent = op.shape(0)[axis], step = (*steps)[i];
    if (!step)
      return op.bad("the step of axis ", axis, " is zero");
    // A backward slice may end before element 0, that is at -1.
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
    auto place = [&](int64_t at, int64_t least) {
      return std::clamp(at < 0 ? at + extent : at, least, high);
    };
    int64_t start = place((*starts)[i], step > 0 ? 0 : std::min<int64_t>(0, high));
    int64_t end = place((*ends)[i], low);
    __int128 span = static_cast<__int128>(end) - start;
    __int128 count =
        span == 0 || (span > 0) != (step > 0) ? 0 : (span + step + (step > 0 ? -1 : 1)) / step;
    extents[axis] = static_cast<int64_t>(count);
    base += count > 0 ? start * strides[axis] : 0;
    strides[axis] = count > 1 ? strides[axis] * step : 0;
  }
  Tensor *result = nullptr;
  TRY(op.output(0, extents, result));
  gatherStrided(op.in(0), base, strides, *result);
  return {};
}

/// Index in [0, extent) from which a padded index is taken, or -1 for the constant.
static int64_t paddedSource(std::string_view mode, int64_t index, int64_t extent) {
  if (index >= 0 && index < extent)
    return index;
  if (mode == "edge")
    return index < 0 ? 0 : extent - 1;
  auto modulo = [](int64_t a, int64_t b) { return (a % b + b) % b; };
  if (mode == "wrap")
    return modulo(index, extent);
  if (mode == "reflect") {
    if (extent == 1)
      return 0;
    int64_t at = modulo(index, 2 * (extent - 1));
    return at < extent ? at : 2 * (extent - 1) - at;
  }
  return -1;
}

Status pad(Invocation &op) {
  std::optional<Extents> pads, axes;
  TRY(op.integerList(1, "pads", pads));
  TRY(op.integerList(3, "axes", axes));
  if (!axes) {
    axes.emplace();
    for (int64_t i = 0; i < op.rank(0); ++i)
      axes->push_back(i);
  }
  TRY(op.normalizeAxes(*axes, op.rank(0)));
  if (!pads || pads->size() != 2 * axes->size())
    return op.bad("pads must have two elements for each of ", axes->size(), " axes");
  std::string_view mode = op.text("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    return op.unsupported("mode=", mode, "; constant, edge, reflect and wrap are known");
  Extents extents = op.shape(0), before(extents.size(), 0);
  for (size_t i = 0; i < axes->size(); ++i) {
    auto axis = static_cast<size_t>((*axes)[i]);
    int64_t limit = int64_t(1) << 40, first = (*pads)[i], last = (*pads)[i + axes->size()];
    if (first < -limit || first > limit || last < -limit || last > limit ||
        extents[axis] + first + last < 0)
      return op.bad("pads ", first, " and ", last, " of extent ", extents[axis]);
    before[axis] = first;
    if (mode != "constant" && extents[axis] == 0 && first + last > 0)
      return op.bad("mode ", mode, " of an empty axis");
    extents[axis] += first + last;
  }
  Tensor *result = nullptr;
  TRY(op.output(0, extents, result));
  Tensor fill = Tensor::allocate(op.in(0).type, {1});
  std::memset(fill.data, 0, fill.bytes());
  if (op.has(2)) {
    if (op.in(2).count() != 1 || op.in(2).type != op.in(0).type)
      return op.bad("constant_value must be one element of ", nameOf(op.in(0).type));
    copyElement(op.in(2), 0, fill, 0);
  } else if (op.hasAttribute("value")) {
    double value = op.real("value", 0);
    storeNumbers(fill, &value);
  }
  Extents strides = rowMajorStrides(op.shape(0));
  forEachIndex(extents, [&](int64_t linear, const Extents &index) {
    int64_t source = 0;
    for (size_t i = 0; i < index.size() && source >= 0; ++i) {
      int64_t at = paddedSource(mode, index[i] - before[i], op.shape(0)[i]);
      source = at < 0 ? -1 : source + at * strides[i];
    }
    copyElement(source < 0 ? fill : op.in(0), std::max<int64_t>(source, 0), *result, linear);
  });
  return {};
}

Status tile(Invocation &op) {
  std::vector<int64_t> repeats;
  TRY(op.integerOperand(1, repeats));
  if (repeats.size() != op.shape(0).size() || !elementCount(repeats))
    return op.bad("repeats ", textOf(repeats), " do not fit ", textOf(op.shape(0)));
  Extents extents = op.shape(0);
  for (size_t i = 0; i < extents.size(); ++i)
    if (__builtin_mul_overflow(extents[i], repeats[i], &extents[i]))
      return op.bad("repeats ", textOf(repeats), " are too many");
  Tensor *result = nullptr;
  TRY(op.output(0, extents, result));
  Extents strides = rowMajorStrides(op.shape(0));
  forEachIndex(extents, [&](int64_t linear, const Extents &index) {
    int64_t source = 0;
    for (size_t i = 0; i < index.size(); ++i)
      source += index[i] % op.shape(0)[i] * strides[i];
    copyElement(op.in(0), source, *result, linear);
  });
  return {};
}

/// Views the operand with `extents`, permutes by `permutation` and gives the result the extents
/// `final`.
static Status permuteBlocks(Invocation &op, const Extents &extents, const Extents &permutation,
                            const Extents &final) {
  Tensor *result = nullptr;
  TRY(op.output(0, final, result));
  Extents dense = rowMajorStrides(extents), permuted, strides;
  for (int64_t axis : permutation) {
    permuted.push_back(extents[static_cast<size_t>(axis)]);
    strides.push_back(dense[static_cast<size_t>(axis)]);
  }
  walk<1>(permuted, {strides}, [&](int64_t linear, const std::array<int64_t, 1> &at) {
    copyElement(op.in(0), at[0], *result, linear);
  });
  return {};
}

static Status needImage(const Invocation &op, int64_t block) {
  if (op.rank(0) != 4 || block < 1 || block > 1 << 20)
    return op.bad("extents ", textOf(op.shape(0)), " with blocksize ", block,
                  "; an image of rank 4 is needed");
  return {};
}

static Status needMode(const Invocation &op) {
  std::string_view mode = op.text("mode", "DCR");
  return mode == "DCR" || mode == "CRD" ? Status()
                                        : op.unsupported("mode=", mode, "; DCR and CRD are known");
}

Status depthToSpace(Invocation &op) {
  int64_t b = op.integer("blocksize", 0);
  TRY(needImage(op, b));
  TRY(needMode(op));
  int64_t n = op.shape(0)[0], c = op.shape(0)[1], h = op.shape(0)[2], w = op.shape(0)[3];
  if (c % (b * b))
    return op.bad(c, " channels do not divide by the square of blocksize ", b);
  c /= b * b;
  Extents final = {n, c, h * b, w * b};
  if (op.text("mode", "DCR") == "DCR")
    return permuteBlocks(op, {n, b, b, c, h, w}, {0, 3, 4, 1, 5, 2}, final);
  return permuteBlocks(op, {n, c, b, b, h, w}, {0, 1, 4, 2, 5, 3}, final);
}

Status spaceToDepth(Invocation &op) {
  int64_t b = op.integer("blocksize", 0);
  TRY(needImage(op, b));
  TRY(needMode(op));
  int64_t n = op.shape(0)[0], c = op.shape(0)[1], h = op.shape(0)[2], w = op.shape(0)[3];
  if (h % b || w % b)
    return op.bad("an image of ", h, " by ", w, " does not divide by blocksize ", b);
  Extents blocks = {n, c, h / b, b, w / b, b}, final = {n, c * b * b, h / b, w / b};
  if (op.text("mode", "DCR") == "DCR")
    return permuteBlocks(op, blocks, {0, 3, 5, 1, 2, 4}, final);
  return permuteBlocks(op, blocks, {0, 1, 3, 5, 2, 4}, final);
}

Status trilu(Invocation &op) {
  TRY(op.needRank(0, 2));
  int64_t diagonal = 0;
  if (op.has(1))
    TRY(op.integerScalar(1, diagonal));
  bool upper = op.integer("upper", 1);
  Tensor *result = nullptr;
  TRY(op.output(0, op.shape(0), result));
  size_t bytes = elementBytes(result->type);
  int64_t rows = op.shape(0)[op.shape(0).size() - 2], columns = op.shape(0).back();
  for (int64_t i = 0, count = result->count(); i < count; ++i) {
    int64_t row = i / columns % rows, column = i % columns;
    if (upper ? column - row >= diagonal : column - row <= diagonal)
      copyElement(op.in(0), i, *result, i);
    else
      std::memset(result->data + static_cast<size_t>(i) * bytes, 0, bytes);
  }
  return {};
}

Status reverseSequence(Invocation &op) {
  TRY(op.needRank(0, 2));
  int64_t batchAxis = op.integer("batch_axis", 1), timeAxis = op.integer("time_axis", 0);
  TRY(op.normalizeAxis(batchAxis, op.rank(0)));
  TRY(op.normalizeAxis(timeAxis, op.rank(0)));
  auto batch = static_cast<size_t>(batchAxis), time = static_cast<size_t>(timeAxis);
  std::vector<int64_t> lengths;
  TRY(op.integerOperand(1, lengths));
  if (batch == time || static_cast<int64_t>(lengths.size()) != op.shape(0)[batch])
    return op.bad(lengths.size(), " lengths for batch axis ", batch, " of ", textOf(op.shape(0)));
  for (int64_t length : lengths)
    if (length < 0 || length > op.shape(0)[time])
      return op.bad("length ", length, " is outside [0, ", op.shape(0)[time], "]");
  Tensor *result = nullptr;
  TRY(op.output(0, op.shape(0), result));
  Extents strides = rowMajorStrides(op.shape(0));
  forEachIndex(op.shape(0), [&](int64_t linear, const Extents &index) {
    int64_t length = lengths[static_cast<size_t>(index[batch])], at = index[time];
    int64_t source = at < length ? linear + (length - 1 - 2 * at) * strides[time] : linear;
    copyElement(op.in(0), source, *result, linear);
  });
  return {};
}

Status centerCropPad(Invocation &op) {
  std::vector<int64_t> wanted;
  TRY(op.integerOperand(1, wanted));
  Extents axes = op.integers("axes").value_or(Extents());
  if (!op.hasAttribute("axes"))
    for (int64_t i = 0; i < op.rank(0); ++i)
      axes.push_back(i);
  TRY(op.normalizeAxes(axes, op.rank(0)));
  if (axes.size() != wanted.size())
    return op.bad(wanted.size(), " extents for ", axes.size(), " axes");
  Extents extents = op.shape(0), shift(extents.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    auto axis = static_cast<size_t>(axes[i]);
    int64_t from = extents[axis], to = wanted[i];
    shift[axis] = from > to ? (from - to) / 2 : -((to - from) / 2);
    extents[axis] = to;
  }
  Tensor *result = nullptr;
  TRY(op.output(0, extents, result));
  Extents strides = rowMajorStrides(op.shape(0));
  Tensor zero = Tensor::allocate(op.in(0).type, {1});
  std::memset(zero.data, 0, zero.bytes());
  forEachIndex(extents, [&](int64_t linear, const Extents &index) {
    int64_t source = 0;
    bool inside = true;
    for (size_t i = 0; i < index.size(); ++i) {
      int64_t at = index[i] + shift[i];
      inside = inside && at >= 0 && at < op.shape(0)[i];
      source += at * strides[i];
    }
    copyElement(inside ? op.in(0) : zero, inside ? source : 0, *result, linear);
  });
  return {};
}

} // namespace dovetail::reference::ops
