// SPDX-License-Identifier: Apache-2.0
//
// Emits movement by computed positions. Starting from an output's positions, each op is asked at
// which positions it needs its operands, down to loads. Positions outside of a tensor are masked or
// clamped, so that no bad index, whatever it is, reads foreign memory.
#include "codegen/Families.h"

#include <cmath>
#include <cstring>

#include "codegen/PointwiseEmission.h"
#include "codegen/PulledIndex.h"
#include "codegen/SpaceEmission.h"
#include "codegen/schedule/Move.h"

namespace dovetail::codegen {
namespace {

using Positions = std::vector<PulledIndex>;

/// Elements of types without registers are moved as numbers of their size.
dvt_type carrierType(dvt_type type) { return type == DVT_F64 || type == DVT_U64 ? DVT_I64 : type; }

class Puller {
public:
  Puller(Emitter &emitter, const Layout &layout, uint32_t rank)
      : e(emitter), problem(emitter.problem), at(emitter), layout(layout), rank(rank),
        lanes(emitter.lanes()) {}

  /// Positions of the current vector: of channel blocks, which laid-out operands share with the
  /// output.
  Value blockIndex, inBlock, channel; ///< block number, first lane within it, first lane's channel

  /// Vector of the value at the positions; lanes that are false in `mask` (which may be null) are
  /// not read.
  Value pull(uint32_t value, const Positions &where, Value mask) {
    if (auto number = problem.uniformLiteral(value)) {
      mlir::Type type = e.registerType(problem.value(value).type);
      if (problem.value(value).type == DVT_I64) { // not all of which are doubles
        int64_t whole = 0;
        std::memcpy(&whole, problem.value(value).literal, sizeof whole);
        return e.integerConstant(e.vectorOf(type, lanes), whole);
      }
      return e.constant(e.vectorOf(type, lanes), *number);
    }
    int producer = problem.producerOf(value);
    if (producer < 0)
      return load(value, where, mask);
    const dvt_op &op = problem.op(producer);
    std::string_view name = op.name;
    if (name == "pad")
      return pullPad(op, where, mask);
    if (name == "resize")
      return pullResize(op, where, mask);
    if (name == "concat")
      return pullConcat(op, where, mask);
    if (name == "trilu")
      return pullTriangle(op, where, mask);
    if (name == "gather" || name == "gather_elements" || name == "gather_nd")
      return pull(*ProblemReader::input(op, 0), gathered(op, where, mask), mask);
    if (isMovement(name))
      return pull(*ProblemReader::input(op, 0), moved(op, where), mask);
    ValueMap values;
    for (uint32_t i = 0; i < op.input_count; ++i)
      if (auto operand = ProblemReader::input(op, i))
        values[*operand] = pull(*operand, aligned(op, i, where), mask);
    emitPointwiseOp(e, op, lanes, values);
    return e.splat(values[value], lanes);
  }

private:
  static bool isMovement(std::string_view name) {
    for (const char *known :
         {"transpose", "slice", "expand", "reshape", "flatten", "squeeze", "unsqueeze", "identity"})
      if (name == known)
        return true;
    return false;
  }

  Value extent(uint32_t value, uint32_t dimension) {
    return e.extentOf(problem.value(value).extents[dimension]);
  }

  Positions aligned(const dvt_op &op, uint32_t position, const Positions &where) {
    const dvt_value &value = problem.value(*ProblemReader::input(op, position));
    auto dimensions = operandDimensions(problem, op, position);
    if (!dimensions) {
      e.fail(dimensions.error().message);
      return Positions(value.rank, at.constant(0));
    }
    Positions positions;
    for (uint32_t i = 0; i < value.rank; ++i)
      positions.push_back(isOne(value.extents[i]) ? at.constant(0) : where[(*dimensions)[i]]);
    return positions;
  }

  Positions broadcast(uint32_t operand, uint32_t result, const Positions &where) {
    const dvt_value &value = problem.value(operand);
    Positions positions;
    for (uint32_t i = 0; i < value.rank; ++i)
      positions.push_back(isOne(value.extents[i])
                              ? at.constant(0)
                              : where[problem.value(result).rank - value.rank + i]);
    return positions;
  }

  // --- Loads ---

  Value load(uint32_t value, const Positions &where, Value mask) {
    const dvt_value &tensor = problem.value(value);
    bool laidOut = !layout.isRowMajor() && isLaidOut(problem, value, rank);
    auto dimensions = *physicalDimensions(laidOut ? layout : Layout(), tensor.rank);
    PulledIndex offset = at.constant(0);
    Value stride = e.index(1);
    for (size_t i = dimensions.size(); i-- > 0;) {
      const SpaceDimension &dimension = dimensions[i];
      PulledIndex index = where[dimension.logical];
      Value length = extent(value, dimension.logical);
      if (dimension.block != 1) {
        bool same = !index.vector && index.step == 1 && index.scalar == channel && blockIndex;
        Value block = e.index(dimension.block);
        if (dimension.inside)
          index = same ? PulledIndex{inBlock, 1} : at.rem(index, block);
        else
          index = same ? PulledIndex{blockIndex} : at.div(index, block);
        length = dimension.inside ? block : e.ceilDiv(length, block);
      }
      offset = at.add(offset, at.mul(index, stride));
      stride = e.mul(stride, length);
    }
    if (offset.uniform())
      return e.loadSplat(carrierType(tensor.type), e.pointerOf(value), offset.scalar, lanes);
    if (!offset.vector && offset.step == 1)
      return e.loadVector(carrierType(tensor.type), e.pointerOf(value), offset.scalar, lanes, mask);
    return e.gather(carrierType(tensor.type), e.pointerOf(value), at.lanes(offset), mask);
  }

  // --- Movement whose positions are known ---

  Positions moved(const dvt_op &op, const Positions &where) {
    std::string_view name = op.name;
    uint32_t source = *ProblemReader::input(op, 0), result = *ProblemReader::output(op, 0);
    uint32_t sourceRank = problem.value(source).rank;
    if (name == "identity")
      return where;
    if (name == "expand")
      return broadcast(source, result, where);
    Positions positions(sourceRank);
    if (name == "transpose") {
      auto order = ProblemReader::integers(op, "perm");
      for (uint32_t i = 0; i < sourceRank; ++i)
        positions[order && !order->empty() ? (*order)[i] : sourceRank - 1 - i] = where[i];
      return positions;
    }
    if (name == "slice") {
      auto bounds = readSlice(problem, op);
      if (!bounds) {
        e.fail(bounds.error().message);
        return where;
      }
      for (uint32_t i = 0; i < sourceRank; ++i)
        positions[i] =
            at.add(at.mul(where[i], e.index(bounds->steps[i])), e.index(bounds->starts[i]));
      return positions;
    }
    return reshaped(source, result, where);
  }

  Positions reshaped(uint32_t source, uint32_t result, const Positions &where) {
    const dvt_value &from = problem.value(source), &to = problem.value(result);
    // Dimensions other than ones are often the same.
    std::vector<uint32_t> in, out;
    for (uint32_t i = 0; i < from.rank; ++i)
      if (!isOne(from.extents[i]))
        in.push_back(i);
    for (uint32_t i = 0; i < to.rank; ++i)
      if (!isOne(to.extents[i]))
        out.push_back(i);
    bool same = in.size() == out.size();
    for (size_t i = 0; same && i < in.size(); ++i)
      same = sameExtent(from.extents[in[i]], to.extents[out[i]]);
    Positions positions(from.rank, at.constant(0));
    if (same) {
      for (size_t i = 0; i < in.size(); ++i)
        positions[in[i]] = where[out[i]];
      return positions;
    }
    PulledIndex linear = at.constant(0);
    for (uint32_t i = 0; i < to.rank; ++i)
      linear = at.add(at.mul(linear, extent(result, i)), where[i]);
    for (uint32_t i = from.rank; i-- > 0;) {
      positions[i] = i == 0 ? linear : at.rem(linear, extent(source, i));
      linear = at.div(linear, extent(source, i));
    }
    return positions;
  }

  // --- Gathers ---

  /// An index operand's elements as positions within `length`: negative ones count from the end,
  /// bad ones are clamped.
  PulledIndex indexAt(uint32_t indices, const Positions &where, Value length, Value mask) {
    bool uniform = std::all_of(where.begin(), where.end(),
                               [](const PulledIndex &index) { return index.uniform(); });
    Value element = pull(indices, where, mask);
    if (uniform)
      element = e.extract(element, 0);
    element = e.convert(element, e.i64Type());
    Value zero = e.integerConstant(element.getType(), 0);
    element = e.select(e.lt(element, zero), e.add(element, length), element);
    Value top = e.sub(length, int64_t(1));
    if (auto vector = mlir::dyn_cast<mlir::VectorType>(element.getType()))
      top = e.splat(top, vector.getNumElements());
    element = e.maximum(e.minimum(element, top), zero);
    return uniform ? PulledIndex{element} : PulledIndex{{}, 0, element};
  }

  Positions gathered(const dvt_op &op, const Positions &where, Value mask) {
    std::string_view name = op.name;
    uint32_t data = *ProblemReader::input(op, 0), indices = *ProblemReader::input(op, 1);
    uint32_t dataRank = problem.value(data).rank, indexRank = problem.value(indices).rank;
    if (name == "gather_nd")
      return gatheredNd(op, where, mask);
    int64_t axis = ProblemReader::integer(op, "axis", 0);
    axis = axis < 0 ? axis + dataRank : axis;
    if (name == "gather_elements") {
      Positions positions = where;
      positions[axis] = indexAt(indices, where, extent(data, axis), mask);
      return positions;
    }
    Positions inner(where.begin() + axis, where.begin() + axis + indexRank);
    Positions positions(where.begin(), where.begin() + axis);
    positions.push_back(indexAt(indices, inner, extent(data, axis), mask));
    positions.insert(positions.end(), where.begin() + axis + indexRank, where.end());
    return positions;
  }

  Positions gatheredNd(const dvt_op &op, const Positions &where, Value mask) {
    uint32_t data = *ProblemReader::input(op, 0), indices = *ProblemReader::input(op, 1);
    uint32_t indexRank = problem.value(indices).rank;
    int64_t batch = ProblemReader::integer(op, "batch_dims", 0);
    int64_t depth = problem.value(indices).extents[indexRank - 1].value;
    Positions positions(where.begin(), where.begin() + batch);
    for (int64_t k = 0; k < depth; ++k) {
      Positions inner(where.begin(), where.begin() + indexRank - 1);
      inner.push_back(at.constant(k));
      positions.push_back(indexAt(indices, inner, extent(data, batch + k), mask));
    }
    positions.insert(positions.end(), where.begin() + indexRank - 1, where.end());
    return positions;
  }

  // --- What depends on where a position lies ---

  /// `inside` where the condition holds, `outside` elsewhere; operands are pulled only where they
  /// are needed.
  Value choose(Value condition, Value mask, llvm::function_ref<Value(Value mask)> inside,
               llvm::function_ref<Value(Value mask)> outside) {
    if (!mlir::isa<mlir::VectorType>(condition.getType()))
      return e.ifElse(
          condition, [&] { return Values{inside(mask)}; },
          [&] { return Values{outside(mask)}; })[0];
    Value here = mask ? e.bitAnd(mask, condition) : condition;
    Value there = mask ? e.bitAnd(mask, e.bitNot(condition)) : e.bitNot(condition);
    return e.select(condition, inside(here), outside(there));
  }

  Value pullPad(const dvt_op &op, const Positions &where, Value mask) {
    uint32_t source = *ProblemReader::input(op, 0);
    std::string_view mode = ProblemReader::text(op, "mode", "constant");
    auto amounts = readPads(problem, op);
    Positions positions = where;
    Value uniformInside, lanesInside;
    for (uint32_t i = 0; i < where.size(); ++i) {
      if (amounts->before[i] == 0 && amounts->after[i] == 0)
        continue;
      Value length = extent(source, i);
      positions[i] = at.add(where[i], e.index(-amounts->before[i]));
      if (mode != "constant") {
        positions[i] = at.apply(positions[i],
                                [&](Value position) { return reflected(position, length, mode); });
        continue;
      }
      Value within = at.within(positions[i], length);
      Value &all = positions[i].uniform() ? uniformInside : lanesInside;
      all = all ? e.bitAnd(all, within) : within;
    }
    auto filling = [&](Value) {
      mlir::Type type = e.vectorOf(e.registerType(carrierType(problem.value(source).type)), lanes);
      auto value = ProblemReader::input(op, 2);
      return value ? pull(*value, Positions(problem.value(*value).rank, at.constant(0)), {})
                   : e.constant(type, 0);
    };
    auto inner = [&](Value masked) {
      if (!lanesInside)
        return pull(source, positions, masked);
      return choose(
          lanesInside, masked, [&](Value here) { return pull(source, positions, here); }, filling);
    };
    if (!uniformInside)
      return inner(mask);
    return choose(uniformInside, mask, inner, filling);
  }

  Value reflected(Value position, Value length, std::string_view mode) {
    if (auto vector = mlir::dyn_cast<mlir::VectorType>(position.getType()))
      length = e.splat(length, vector.getNumElements());
    Value zero = e.integerConstant(position.getType(), 0),
          one = e.integerConstant(position.getType(), 1);
    Value top = e.sub(length, one);
    if (mode == "edge")
      return e.maximum(e.minimum(position, top), zero);
    Value period = mode == "wrap" ? length : e.maximum(e.mul(top, e.add(one, one)), one);
    Value wrapped = e.srem(position, period);
    wrapped = e.select(e.lt(wrapped, zero), e.add(wrapped, period), wrapped);
    if (mode == "wrap")
      return wrapped;
    return e.select(e.gt(wrapped, top), e.sub(period, wrapped), wrapped);
  }

  Value pullConcat(const dvt_op &op, const Positions &where, Value mask) {
    int64_t axis = ProblemReader::integer(op, "axis", 0);
    axis = axis < 0 ? axis + int64_t(where.size()) : axis;
    return concatFrom(op, 0, axis, where, mask);
  }

  Value concatFrom(const dvt_op &op, uint32_t part, int64_t axis, const Positions &where,
                   Value mask) {
    uint32_t operand = *ProblemReader::input(op, part);
    if (part + 1 == op.input_count)
      return pull(operand, where, mask);
    Value length = extent(operand, axis);
    Positions rest = where;
    rest[axis] = at.add(where[axis], e.neg(length));
    return choose(
        at.within(where[axis], length), mask,
        [&](Value here) { return pull(operand, where, here); },
        [&](Value there) { return concatFrom(op, part + 1, axis, rest, there); });
  }

  Value pullTriangle(const dvt_op &op, const Positions &where, Value mask) {
    double k = 0;
    if (auto value = ProblemReader::input(op, 1))
      k = problem.uniformLiteral(*value).value_or(0);
    PulledIndex row = where[where.size() - 2], column = where.back();
    PulledIndex distance = at.add(column, at.mul(row, e.index(-1)));
    Value numbers = distance.uniform() ? distance.scalar : at.lanes(distance);
    Value diagonal = e.integerConstant(numbers.getType(), int64_t(k));
    bool upper = ProblemReader::integer(op, "upper", 1) != 0;
    Value keep = upper ? e.ge(numbers, diagonal) : e.le(numbers, diagonal);
    Value whole = pull(*ProblemReader::input(op, 0), where, mask);
    return e.select(keep, whole, e.constant(whole.getType(), 0));
  }

  // --- Resizing ---

  struct Sample {
    PulledIndex low, high;
    Value weight; ///< of high, an f32 vector; null where only low counts
  };

  Value pullResize(const dvt_op &op, const Positions &where, Value mask) {
    uint32_t source = *ProblemReader::input(op, 0), result = *ProblemReader::output(op, 0);
    bool linear = ProblemReader::text(op, "mode", "nearest") == "linear";
    auto scales = readScales(problem, op);
    Positions positions = where;
    std::vector<std::pair<uint32_t, Sample>> samples;
    for (uint32_t i = 0; i < where.size(); ++i) {
      double scale = scales->scales[i];
      if (sameExtent(problem.value(source).extents[i], problem.value(result).extents[i]) &&
          (scale == 0 || scale == 1))
        continue;
      Value x = sourceCoordinate(op, where[i], extent(source, i), extent(result, i), scale);
      if (linear)
        samples.push_back({i, linearSample(where[i].uniform(), x, extent(source, i))});
      else
        positions[i] = nearest(op, where[i].uniform(), x, extent(source, i));
    }
    return blend(source, positions, samples, 0, mask);
  }

  Value blend(uint32_t source, const Positions &where,
              const std::vector<std::pair<uint32_t, Sample>> &samples, size_t k, Value mask) {
    if (k == samples.size())
      return pull(source, where, mask);
    const auto &[dimension, sample] = samples[k];
    Positions low = where, high = where;
    low[dimension] = sample.low;
    high[dimension] = sample.high;
    Value a = blend(source, low, samples, k + 1, mask),
          b = blend(source, high, samples, k + 1, mask);
    // Differences of infinities would be no numbers, and what weighs nothing must not count.
    Value weight = e.splat(sample.weight, lanes);
    Value one = e.constant(weight.getType(), 1), zero = e.constant(weight.getType(), 0);
    Value mixed = e.fma(b, weight, e.mul(a, e.sub(one, weight)));
    return e.select(e.eq(weight, zero), a, mixed);
  }

  /// Where an output position lies in the source: an f64 scalar or vector.
  Value sourceCoordinate(const dvt_op &op, const PulledIndex &position, Value in, Value out,
                         double scale) {
    std::string_view mode = ProblemReader::text(op, "coordinate_transformation_mode", "half_pixel");
    Value number =
        e.convert(position.uniform() ? position.scalar : at.lanes(position), e.f64Type());
    auto like = [&](double constant) { return e.constant(number.getType(), constant); };
    auto real = [&](Value whole) {
      Value converted = e.convert(whole, e.f64Type());
      return mlir::isa<mlir::VectorType>(number.getType()) ? e.splat(converted, lanes) : converted;
    };
    Value ratio = scale > 0 ? like(scale) : e.fdiv(real(out), real(in));
    if (mode == "asymmetric")
      return e.fdiv(number, ratio);
    if (mode == "align_corners") {
      Value intervals = e.sub(real(out), like(1));
      Value safe = e.select(e.gt(intervals, like(0)), intervals, like(1));
      return e.fdiv(e.mul(number, e.sub(real(in), like(1))), safe);
    }
    Value half = e.sub(e.fdiv(e.add(number, like(0.5)), ratio), like(0.5));
    if (mode == "pytorch_half_pixel")
      return e.select(e.gt(real(out), like(1)), half, like(0));
    if (mode == "half_pixel_symmetric") {
      // The output is as if cut, around its centre, from one of exactly in * scale elements.
      Value adjustment = e.fdiv(real(out), e.mul(ratio, real(in)));
      Value centre = e.mul(real(in), like(0.5));
      return e.add(e.mul(centre, e.sub(like(1), adjustment)), half);
    }
    return half;
  }

  PulledIndex clampedIndex(bool uniform, Value whole, Value length) {
    Value position = e.convert(whole, e.i64Type());
    Value top = e.sub(length, int64_t(1));
    if (!uniform)
      top = e.splat(top, lanes);
    position = e.maximum(e.minimum(position, top), e.integerConstant(position.getType(), 0));
    return uniform ? PulledIndex{position} : PulledIndex{{}, 0, position};
  }

  PulledIndex nearest(const dvt_op &op, bool uniform, Value x, Value length) {
    std::string_view mode = ProblemReader::text(op, "nearest_mode", "round_prefer_floor");
    auto half = e.constant(x.getType(), 0.5);
    Value whole = mode == "floor"               ? e.floor(x)
                  : mode == "ceil"              ? e.ceil(x)
                  : mode == "round_prefer_ceil" ? e.floor(e.add(x, half))
                                                : e.ceil(e.sub(x, half));
    return clampedIndex(uniform, whole, length);
  }

  Sample linearSample(bool uniform, Value x, Value length) {
    Value top = e.convert(e.sub(length, int64_t(1)), e.f64Type());
    if (!uniform)
      top = e.splat(top, lanes);
    x = e.minimum(e.maximum(x, e.constant(x.getType(), 0)), top);
    Value low = e.floor(x);
    Value weight = e.convert(e.sub(x, low), e.f32Type());
    return {clampedIndex(uniform, low, length),
            clampedIndex(uniform, e.add(low, e.constant(x.getType(), 1)), length), weight};
  }

  Emitter &e;
  const ProblemReader &problem;
  PulledArithmetic at;
  const Layout &layout;
  uint32_t rank;
  unsigned lanes;
};

class MoveEmitter {
public:
  MoveEmitter(Emitter &emitter, const MovePlan &plan, const MovePhase &phase)
      : e(emitter), plan(plan), phase(phase), space(emitter, phase.space),
        puller(emitter, plan.layout, phase.space.shape.size()), lanes(emitter.lanes()),
        last(phase.space.axes.size() - 1) {}

  void emit(Value begin, Value end) {
    std::vector<uint32_t> axes = space.allAxes();
    e.loop(begin, end, 1, [&](Value task) {
      SpaceEmission::Task decoded = space.decode(phase.split, axes, task);
      indices = decoded.indices;
      emitAxis(phase.split.axis, decoded.from, decoded.to);
    });
  }

private:
  void emitAxis(uint32_t axis, Value from, Value to) {
    if (axis == last)
      return e.vectorLoop(from, to, lanes, 1, [&](Value i, Value mask) { emitVector(i, mask); });
    e.loop(from, to, 1, [&](Value i) {
      indices[axis] = i;
      emitAxis(axis + 1, e.index(0), space.extent(axis + 1));
    });
  }

  void emitVector(Value i, Value mask) {
    Positions where(phase.space.shape.size(), PulledIndex{e.index(0)});
    for (uint32_t axis = 0; axis < phase.space.axes.size(); ++axis) {
      const auto &dimensions = phase.space.axes[axis].dimensions;
      if (dimensions.empty())
        continue;
      const SpaceDimension &dimension = dimensions[0];
      Value index = axis == last ? i : indices[axis];
      PulledIndex &position = where[dimension.logical];
      if (!dimension.inside) {
        position = {dimension.block == 1 ? index : e.mul(index, dimension.block),
                    axis == last ? 1 : 0};
        if (dimension.block != 1)
          puller.blockIndex = index;
        continue;
      }
      puller.inBlock = index;
      position = {e.add(position.scalar, index), 1};
      puller.channel = position.scalar;
    }
    // Lanes of padding read the padding of operands in the same layout, but nothing elsewhere.
    Value unpadded = space.padMask(indices, i, lanes), valid = mask;
    if (unpadded)
      valid = mask ? e.bitAnd(mask, unpadded) : unpadded;
    for (uint32_t output : phase.outputs) {
      uint32_t operand = phase.space.find(output) - phase.space.operands.data();
      Value value = puller.pull(output, where, valid);
      if (unpadded)
        value = e.select(unpadded, value, e.constant(value.getType(), 0));
      e.storeVector(carrierType(space.type(operand)), value, space.pointer(operand),
                    e.add(space.offset(operand, indices, last), i), mask);
    }
  }

  Emitter &e;
  const MovePlan &plan;
  const MovePhase &phase;
  SpaceEmission space;
  Puller puller;
  unsigned lanes;
  uint32_t last;
  std::vector<Value> indices;
};

} // namespace

Status emitMoveKernel(const ProblemReader &problem, const Machine &machine,
                      const Schedule &schedule, KernelModule &module) {
  auto layout = Layout::parse(schedule.parameter(""));
  if (!layout)
    return layout.takeError();
  auto plan = planMove(problem, machine, *layout);
  if (!plan)
    return plan.takeError();
  for (const MovePhase &phase : plan->phases) {
    module.setLanes(lanesAlong(phase.space.axes.back().extent, machine));
    module.addPhase(
        [&](Emitter &e) {
          SpaceEmission space(e, phase.space);
          // No element, no task: bodies may read before they know.
          Value count = space.taskCount(phase.split, space.allAxes());
          for (uint32_t axis = phase.split.axis + 1; axis < phase.space.axes.size(); ++axis)
            count = e.mul(count, e.minimum(space.extent(axis), int64_t(1)));
          return count;
        },
        [&](Emitter &e, Value begin, Value end) { MoveEmitter(e, *plan, phase).emit(begin, end); });
  }
  return Status::success();
}

} // namespace dovetail::codegen
