// SPDX-License-Identifier: Apache-2.0
//
// Index maps of the ops that move elements affinely.
#include "codegen/schedule/AffineMap.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "codegen/schedule/Affine.h"

namespace dovetail::codegen {

AffineIndex AffineIndex::axis(size_t axes, size_t number) {
  AffineIndex index = none(axes);
  index.coefficients[number] = Extent(1);
  return index;
}

int AffineIndex::pureAxis() const {
  int found = -1;
  for (size_t i = 0; i < coefficients.size(); ++i) {
    if (coefficients[i] == Extent(0))
      continue;
    if (found >= 0 || coefficients[i] != Extent(1))
      return -1;
    found = i;
  }
  return found;
}

AffineIndex AffineIndex::times(const Extent &factor) const {
  AffineIndex result{{}, constant * factor};
  for (const Extent &coefficient : coefficients)
    result.coefficients.push_back(coefficient * factor);
  return result;
}

AffineIndex AffineIndex::plus(const Extent &number) const {
  AffineIndex result = *this;
  result.constant = result.constant + number;
  return result;
}

AffineIndex operator+(const AffineIndex &a, const AffineIndex &b) {
  AffineIndex sum = a.plus(b.constant);
  for (size_t i = 0; i < sum.coefficients.size(); ++i)
    sum.coefficients[i] = sum.coefficients[i] + b.coefficients[i];
  return sum;
}

std::string AffineIndex::text() const {
  std::string result = constant.text();
  for (const Extent &coefficient : coefficients)
    result += "," + coefficient.text();
  return result;
}

std::optional<std::pair<AffineIndex, AffineIndex>> AxisSet::divide(const AffineIndex &index,
                                                                   const Extent &inner) const {
  AffineIndex outer = AffineIndex::none(extents.size()), rest = outer;
  if (index.constant != Extent(0)) {
    auto quotient = Extent::exactDiv(index.constant, inner);
    if (!quotient)
      return std::nullopt;
    outer.constant = *quotient;
  }
  std::vector<size_t> left;
  for (size_t i = 0; i < extents.size(); ++i) {
    const Extent &coefficient = index.coefficients[i];
    if (coefficient == Extent(0) || extents[i] == Extent(1))
      continue;
    if (auto quotient = Extent::exactDiv(coefficient, inner)) {
      outer.coefficients[i] = *quotient;
    } else {
      rest.coefficients[i] = coefficient;
      left.push_back(i);
    }
  }
  // What is left must count 0 .. inner - 1 or less: each axis goes on where those below it end.
  Extent reach(1);
  while (!left.empty()) {
    auto next = std::find_if(left.begin(), left.end(),
                             [&](size_t i) { return rest.coefficients[i] == reach; });
    if (next == left.end())
      return std::nullopt;
    reach = reach * extents[*next];
    left.erase(next);
  }
  bool fits = Extent::exactDiv(inner, reach).has_value() ||
              (reach.isStatic() && inner.isStatic() && reach.value() <= inner.value());
  if (!fits)
    return std::nullopt;
  return std::pair(outer, rest);
}

std::optional<std::pair<AffineIndex, AffineIndex>>
AxisSet::divideOrSplit(const AffineIndex &index, const Extent &outer, const Extent &inner) {
  if (auto parts = divide(index, inner))
    return parts;
  int axis = index.pureAxis();
  if (axis >= 0 && !wanted && index.constant == Extent(0) && extents[axis] == outer * inner)
    wanted = Split{size_t(axis), outer, inner};
  return std::nullopt;
}

bool isAffineMovement(std::string_view name) {
  for (const char *known :
       {"transpose", "slice", "split", "expand", "tile", "reshape", "flatten", "squeeze",
        "unsqueeze", "identity", "dropout", "depth_to_space", "space_to_depth"})
    if (name == known)
      return true;
  return false;
}

namespace {

class OperandMapper {
public:
  OperandMapper(const ProblemReader &problem, const dvt_op &op, uint32_t output, IndexMap map,
                AxisSet &axes)
      : problem(problem), op(op), result(problem.value(output)), output(output),
        map(std::move(map)), axes(axes), operand(problem.value(*ProblemReader::input(op, 0))) {}

  Expected<IndexMap> build() {
    std::string_view name = op.name;
    if (name == "identity" || name == "dropout")
      return map;
    if (name == "transpose")
      return transpose();
    if (name == "expand")
      return expand();
    if (name == "slice")
      return slice();
    if (name == "split")
      return split();
    if (name == "tile")
      return tile();
    if (name == "depth_to_space" || name == "space_to_depth")
      return space(name == "depth_to_space");
    return reshape();
  }

private:
  IndexMap empty() { return IndexMap(operand.rank, AffineIndex::none(axes.extents.size())); }
  Extent extent(const dvt_value &value, uint32_t dimension) {
    return extentFrom(value.extents[dimension]);
  }

  Expected<IndexMap> transpose() {
    std::vector<int64_t> order;
    if (auto given = ProblemReader::integers(op, "perm"); given && !given->empty())
      order = *given;
    else
      for (int64_t i = operand.rank; i-- > 0;)
        order.push_back(i);
    if (order.size() != operand.rank)
      return badInput("transpose has a perm of {} for {}", order.size(), valueText(operand));
    IndexMap mapped = empty();
    for (uint32_t i = 0; i < order.size(); ++i) {
      if (order[i] < 0 || order[i] >= int64_t(operand.rank))
        return badInput("transpose has {} in its perm", order[i]);
      mapped[order[i]] = map[i];
    }
    return mapped;
  }

  Expected<IndexMap> expand() {
    IndexMap mapped = empty();
    for (uint32_t i = 0; i < operand.rank; ++i) {
      uint32_t from = result.rank - operand.rank + i;
      if (isOne(operand.extents[i]))
        continue;
      if (!sameExtent(operand.extents[i], result.extents[from]))
        return badInput("expand of {} to {}: extents may differ", valueText(operand),
                        valueText(result));
      mapped[i] = map[from];
    }
    return mapped;
  }

  Expected<IndexMap> slice() {
    std::vector<int64_t> parts[4];
    const char *names[] = {"", "starts", "ends", "axes"};
    for (uint32_t i = 1; i <= 3; ++i) {
      auto value = ProblemReader::input(op, i);
      std::optional<std::vector<int64_t>> literal;
      if (value)
        literal = problem.integerLiteral(*value);
      else
        literal = ProblemReader::integers(op, names[i]); // before op set 10
      if (literal)
        parts[i] = *literal;
      else if (i < 3 && (value || op.version >= 10))
        return badInput("slice bounds are known only at run time");
      else if (value)
        return badInput("slice axes are known only at run time");
    }
    std::vector<int64_t> steps(parts[1].size(), 1);
    if (auto value = ProblemReader::input(op, 4)) {
      auto literal = problem.integerLiteral(*value);
      if (!literal)
        return badInput("slice steps are known only at run time");
      steps = *literal;
    }
    std::vector<int64_t> dimensions = parts[3];
    for (size_t i = dimensions.size(); i < parts[1].size() && parts[3].empty(); ++i)
      dimensions.push_back(i);
    if (dimensions.size() != parts[1].size() || steps.size() != parts[1].size())
      return badInput("slice has operands of different lengths");
    IndexMap mapped = map;
    for (size_t i = 0; i < dimensions.size(); ++i) {
      int64_t dimension = dimensions[i] < 0 ? dimensions[i] + operand.rank : dimensions[i];
      if (dimension < 0 || dimension >= int64_t(operand.rank) || steps[i] == 0)
        return badInput("slice has axis {} and step {}", dimensions[i], steps[i]);
      auto start = sliceStart(operand.extents[dimension], parts[1][i], steps[i]);
      if (!start)
        return badInput("slice from {} of extent {}", parts[1][i],
                        extentText(operand.extents[dimension]));
      mapped[dimension] = map[dimension].times(Extent(steps[i])).plus(*start);
    }
    return mapped;
  }

  /// Start within the extent; nothing where it depends on how large a symbolic extent is.
  std::optional<Extent> sliceStart(const dvt_extent &extent, int64_t start, int64_t step) {
    if (isStaticExtent(extent)) {
      int64_t from = start < 0 ? std::max<int64_t>(start, -extent.value - 1) + extent.value : start;
      const int64_t last = extent.value - 1;
      return Extent(step < 0 ? std::clamp<int64_t>(from, std::min<int64_t>(0, last), last)
                             : std::clamp<int64_t>(from, 0, extent.value));
    }
    if (start >= 0 && start <= extent.min - (step < 0))
      return Extent(start);
    if (start < 0 && -start <= extent.min)
      return extentFrom(extent) + Extent(start);
    if (step < 0 && start >= extent.max - 1)
      return extentFrom(extent) - Extent(1);
    if (step > 0 && start == 0)
      return Extent(0);
    return std::nullopt;
  }

  Expected<IndexMap> split() {
    int64_t axis = ProblemReader::integer(op, "axis", 0);
    axis = axis < 0 ? axis + operand.rank : axis;
    if (axis < 0 || axis >= int64_t(operand.rank))
      return badInput("split has axis {} for {}", axis, valueText(operand));
    Extent start(0);
    for (uint32_t i = 0; i < op.output_count; ++i) {
      auto part = ProblemReader::output(op, i);
      if (!part)
        return badInput("split lacks a result");
      if (*part == output)
        break;
      start = start + extent(problem.value(*part), axis);
    }
    map[axis] = map[axis].plus(start);
    return map;
  }

  Error cannotSplit() {
    return badInput("{} of {} splits an index that is not one whole loop", op.name,
                    valueText(operand));
  }

  Expected<IndexMap> tile() {
    for (uint32_t i = 0; i < operand.rank; ++i) {
      if (sameExtent(operand.extents[i], result.extents[i]))
        continue;
      if (isOne(operand.extents[i])) {
        map[i] = AffineIndex::none(axes.extents.size());
        continue;
      }
      Extent inner = extent(operand, i);
      auto outer = Extent::exactDiv(extent(result, i), inner);
      if (!outer)
        return badInput("tile of {} to {}", valueText(operand), valueText(result));
      auto parts = axes.divideOrSplit(map[i], *outer, inner);
      if (!parts)
        return cannotSplit();
      map[i] = parts->second;
    }
    return map;
  }

  Expected<IndexMap> space(bool depthToSpace) {
    int64_t block = ProblemReader::integer(op, "blocksize", 0);
    if (operand.rank != 4 || block <= 0)
      return badInput("{} of {} with blocksize {}", op.name, valueText(operand), block);
    bool columnRow = ProblemReader::text(op, "mode", "DCR") == "CRD";
    Extent b(block);
    if (depthToSpace) {
      // out[n, c, h * b + i, w * b + j] = in[n, (i * b + j) * C + c, h, w], or (c * b + i) * b + j.
      auto rows = axes.divideOrSplit(map[2], extent(operand, 2), b);
      auto columns = axes.divideOrSplit(map[3], extent(operand, 3), b);
      if (!rows || !columns)
        return cannotSplit();
      const auto &[h, i] = *rows;
      const auto &[w, j] = *columns;
      AffineIndex channel = columnRow ? (map[1].times(b) + i).times(b) + j
                                      : (i.times(b) + j).times(extent(result, 1)) + map[1];
      return IndexMap{map[0], channel, h, w};
    }
    // out[n, (i * b + j) * C + c, h, w] = in[n, c, h * b + i, w * b + j], or out channel (c * b +
    // i) * b + j.
    Extent depth = extent(operand, 1);
    Extent innermost = columnRow ? b : depth;
    auto low = axes.divideOrSplit(map[1], columnRow ? depth * b : b * b, innermost);
    if (!low)
      return cannotSplit();
    auto high = axes.divideOrSplit(low->first, columnRow ? depth : b, b);
    if (!high)
      return cannotSplit();
    AffineIndex i = columnRow ? high->second : high->first,
                j = columnRow ? low->second : high->second,
                c = columnRow ? high->first : low->second;
    return IndexMap{map[0], c, map[2].times(b) + i, map[3].times(b) + j};
  }

  /// Matches runs of result dimensions with runs of operand dimensions of equal product.
  Expected<IndexMap> reshape() {
    IndexMap mapped = empty();
    uint32_t i = 0, j = 0;
    while (i < operand.rank || j < result.rank) {
      uint32_t firstIn = i, firstOut = j;
      Extent in(1), out(1);
      bool started = false;
      while (!started || in != out) {
        // The side that lacks factors takes the next dimension; ones are taken along.
        bool takeIn =
            started ? Extent::exactDiv(out, in).has_value() && i < operand.rank : i < operand.rank;
        if (takeIn && started && in == out)
          break;
        if (takeIn)
          in = in * extent(operand, i++);
        else if (j < result.rank)
          out = out * extent(result, j++);
        else if (i < operand.rank)
          in = in * extent(operand, i++);
        else
          return badInput("{} of {} to {} does not split into matching groups", op.name,
                          valueText(operand), valueText(result));
        started = true;
      }
      if (Status status = matchGroup(mapped, firstIn, i, firstOut, j); !status)
        return status.takeError();
    }
    return mapped;
  }

  Status matchGroup(IndexMap &mapped, uint32_t firstIn, uint32_t endIn, uint32_t firstOut,
                    uint32_t endOut) {
    std::vector<uint32_t> in;
    AffineIndex position = AffineIndex::none(axes.extents.size());
    for (uint32_t i = firstIn; i < endIn; ++i)
      if (!isOne(operand.extents[i]))
        in.push_back(i);
    for (uint32_t j = firstOut; j < endOut; ++j)
      if (!isOne(result.extents[j]))
        position = position.times(extent(result, j)) + map[j];
    // The position within the group, taken apart from the inside out.
    for (size_t k = in.size(); k-- > 1;) {
      Extent inner = extent(operand, in[k]), outer(1);
      for (size_t l = 0; l < k; ++l)
        outer = outer * extent(operand, in[l]);
      auto parts = axes.divideOrSplit(position, outer, inner);
      if (!parts)
        return cannotSplit();
      mapped[in[k]] = parts->second;
      position = parts->first;
    }
    if (!in.empty())
      mapped[in[0]] = position;
    return Status::success();
  }

  const ProblemReader &problem;
  const dvt_op &op;
  const dvt_value &result;
  uint32_t output;
  IndexMap map;
  AxisSet &axes;
  const dvt_value &operand;
};

} // namespace

Expected<IndexMap> operandMap(const ProblemReader &problem, const dvt_op &op, uint32_t output,
                              IndexMap map, AxisSet &axes) {
  if (!ProblemReader::input(op, 0))
    return badInput("{} has no operand", op.name);
  return OperandMapper(problem, op, output, std::move(map), axes).build();
}

} // namespace dovetail::codegen
