// SPDX-License-Identifier: Apache-2.0
//
// Ops on extents: those that tell them, those that change them without moving an element, and those
// that make a tensor from them.
#include "Ops.h"

#include <algorithm>
#include <cmath>

namespace dovetail::reference::ops {

Status shape(Invocation &op) {
  int64_t rank = op.rank(0);
  auto clampAxis = [&](int64_t axis) {
    return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  int64_t begin = clampAxis(op.integer("start", 0)), end = clampAxis(op.integer("end", rank));
  std::vector<int64_t> values;
  for (int64_t i = begin; i < end; ++i)
    values.push_back(op.shape(0)[static_cast<size_t>(i)]);
  return op.store(0, {static_cast<int64_t>(values.size())}, values);
}

Status size(Invocation &op) { return op.store(0, {}, std::vector<int64_t>{op.in(0).count()}); }

Status reshape(Invocation &op) {
  std::vector<int64_t> wanted;
  TRY(op.integerOperand(1, wanted));
  bool allowZero = op.integer("allowzero", 0);
  int64_t unknown = -1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == -1) {
      if (unknown >= 0)
        return op.bad("shape ", textOf(wanted), " has more than one -1");
      unknown = static_cast<int64_t>(i);
    } else if (wanted[i] == 0 && !allowZero) {
      if (static_cast<int64_t>(i) >= op.rank(0))
        return op.bad("shape ", textOf(wanted), " copies an extent that ", textOf(op.shape(0)),
                      " does not have");
      wanted[i] = op.shape(0)[i];
    } else if (wanted[i] < 0) {
      return op.bad("shape ", textOf(wanted), " has a negative extent");
    }
  }
  if (unknown >= 0) {
    wanted[static_cast<size_t>(unknown)] = 1;
    int64_t rest = elementCount(wanted).value_or(0);
    if (!rest || op.in(0).count() % rest)
      return op.bad(op.in(0).count(), " elements do not divide into the known extents of ",
                    textOf(wanted));
    wanted[static_cast<size_t>(unknown)] = op.in(0).count() / rest;
  }
  return copyAs(op, wanted);
}

Status flatten(Invocation &op) {
  int64_t axis = op.integer("axis", 1), rank = op.rank(0);
  if (axis < -rank || axis > rank)
    return op.bad("axis ", axis, " is outside [", -rank, ", ", rank, "]");
  axis += axis < 0 ? rank : 0;
  return copyAs(op, {productOf(op.shape(0), 0, axis), productOf(op.shape(0), axis, rank)});
}

Status squeeze(Invocation &op) {
  std::optional<Extents> axes;
  TRY(op.integerList(1, "axes", axes));
  Extents extents;
  if (axes)
    TRY(op.normalizeAxes(*axes, op.rank(0)));
  for (int64_t i = 0; i < op.rank(0); ++i) {
    int64_t extent = op.shape(0)[static_cast<size_t>(i)];
    bool removed = axes ? std::count(axes->begin(), axes->end(), i) > 0 : extent == 1;
    if (removed && extent != 1)
      return op.bad("axis ", i, " of ", textOf(op.shape(0)), " is not of extent 1");
    if (!removed)
      extents.push_back(extent);
  }
  return copyAs(op, extents);
}

Status unsqueeze(Invocation &op) {
  std::optional<Extents> axes;
  TRY(op.integerList(1, "axes", axes));
  if (!axes)
    return op.bad("axes are missing");
  int64_t rank = op.rank(0) + static_cast<int64_t>(axes->size());
  TRY(op.normalizeAxes(*axes, rank));
  Extents extents;
  size_t next = 0;
  for (int64_t i = 0; i < rank; ++i)
    extents.push_back(std::count(axes->begin(), axes->end(), i) ? 1 : op.shape(0)[next++]);
  return copyAs(op, extents);
}

Status expand(Invocation &op) {
  std::vector<int64_t> wanted;
  TRY(op.integerOperand(1, wanted));
  if (!elementCount(wanted))
    return op.bad("shape ", textOf(wanted), " is not a shape");
  Extents extents;
  TRY(broadcastExtents(op, {op.shape(0), wanted}, extents));
  Tensor *result = nullptr;
  TRY(op.output(0, extents, result));
  gatherStrided(op.in(0), 0, broadcastStrides(op.shape(0), extents), *result);
  return {};
}

Status constantOfShape(Invocation &op) {
  std::vector<int64_t> extents;
  TRY(op.integerOperand(0, extents));
  std::optional<int64_t> count = elementCount(extents);
  if (!count)
    return op.bad("shape ", textOf(extents), " is not a shape");
  auto elements = static_cast<size_t>(*count);
  std::optional<Extents> integers = op.integers("value");
  if (integers && !integers->empty())
    return op.store(0, extents, std::vector<int64_t>(elements, integers->front()));
  std::vector<double> reals = op.reals("value");
  return op.store(0, extents,
                  std::vector<double>(elements, reals.empty() ? op.real("value", 0) : reals[0]));
}

Status range(Invocation &op) {
  for (size_t i : {0, 1, 2})
    if (op.in(i).count() != 1 || op.in(i).type != op.in(0).type)
      return op.bad("operand ", i, " must be one element of ", nameOf(op.in(0).type));
  if (op.kind(0) != NumberKind::Real) {
    int64_t start = op.numbers<int64_t>(0)[0], limit = op.numbers<int64_t>(1)[0],
            step = op.numbers<int64_t>(2)[0];
    if (!step)
      return op.bad("the step is zero");
    // In 128 bits, because limit - start may not fit in 64.
    __int128 span = static_cast<__int128>(limit) - start, count = span / step + (span % step != 0);
    if (count < 0 || (span < 0) != (step < 0))
      count = 0;
    if (count > int64_t(1) << 48)
      return op.bad("from ", start, " to ", limit, " in steps of ", step, " are too many elements");
    std::vector<int64_t> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] =
          static_cast<int64_t>(static_cast<uint64_t>(start) + i * static_cast<uint64_t>(step));
    return op.store(0, {static_cast<int64_t>(values.size())}, values);
  }
  double start = op.numbers<double>(0)[0], limit = op.numbers<double>(1)[0],
         step = op.numbers<double>(2)[0];
  double count = std::ceil((limit - start) / step);
  if (!(std::fabs(count) < 1e14))
    return op.bad("from ", start, " to ", limit, " in steps of ", step, " is not a range");
  std::vector<double> values(static_cast<size_t>(std::max(count, 0.0)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = start + static_cast<double>(i) * step;
  return op.store(0, {static_cast<int64_t>(values.size())}, values);
}

Status eyeLike(Invocation &op) {
  if (op.rank(0) != 2)
    return op.bad("the operand is of rank ", op.rank(0), "; it must be a matrix");
  int64_t rows = op.shape(0)[0], columns = op.shape(0)[1], diagonal = op.integer("k", 0);
  std::vector<int64_t> values(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      values[static_cast<size_t>(i * columns + j)] = j - i == diagonal;
  return op.store(0, op.shape(0), values);
}

Status oneHot(Invocation &op) {
  if (op.in(1).count() != 1 || op.in(2).count() != 2)
    return op.bad("depth must be one element and values two");
  double depthReal = op.numbers<double>(1)[0];
  auto depth = static_cast<int64_t>(depthReal);
  if (!(depthReal >= 0 && depthReal < 1e12))
    return op.bad("depth is ", depthReal);
  int64_t axis = op.integer("axis", -1);
  TRY(op.normalizeAxis(axis, op.rank(0) + 1));
  Extents extents = op.shape(0);
  extents.insert(extents.begin() + axis, depth);
  std::vector<int64_t> indices = op.numbers<int64_t>(0);
  int64_t inner = productOf(op.shape(0), axis, op.rank(0));
  Tensor *result = nullptr;
  TRY(op.output(0, extents, result));
  for (int64_t i = 0, count = result->count(); i < count; ++i) {
    int64_t index = indices[static_cast<size_t>(i / (inner * depth) * inner + i % inner)];
    copyElement(op.in(2), (index < 0 ? index + depth : index) == i / inner % depth, *result, i);
  }
  return {};
}

} // namespace dovetail::reference::ops
