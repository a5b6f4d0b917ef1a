// SPDX-License-Identifier: Apache-2.0
//
// Emits pooling. Along channels every lane has the same window: it is clipped once for all of them,
// and windows that lie wholly inside the image are unrolled. Along columns of a row-major image
// lanes have windows of their own: places outside are masked.
#include "codegen/Families.h"

#include <cmath>

#include "codegen/PointwiseEmission.h"
#include "codegen/SpaceEmission.h"
#include "codegen/schedule/Pool.h"

namespace dovetail::codegen {
namespace {

class PoolEmitter {
public:
  PoolEmitter(Emitter &emitter, const PoolPlan &plan)
      : e(emitter), plan(plan), space(emitter, plan.space), lanes(emitter.lanes()),
        last(plan.space.axes.size() - 1), indices(plan.space.axes.size()),
        source(emitter.problem.value(plan.source)) {
    const auto &dimensions = plan.space.axes[last].dimensions;
    laneDimension = dimensions.empty() ? -1 : int(dimensions[0].logical);
    // Strides of the operand's physical dimensions.
    physical = *physicalDimensions(plan.layout, source.rank);
    strides.resize(physical.size());
    Value stride = e.index(1);
    for (size_t i = physical.size(); i-- > 0;) {
      strides[i] = stride;
      stride = e.mul(stride, extentOf(physical[i]));
    }
    for (uint32_t i = 0; i < plan.windows.size(); ++i) {
      inputExtents.push_back(e.extentOf(source.extents[2 + i]));
      addPads(plan.windows[i], e.extentOf(plan.space.shape[2 + i]), inputExtents[i]);
    }
  }

  void emit(Value begin, Value end) {
    std::vector<uint32_t> axes = space.allAxes();
    e.loop(begin, end, 1, [&](Value task) {
      SpaceEmission::Task decoded = space.decode(plan.split, axes, task);
      indices = decoded.indices;
      emitAxis(plan.split.axis, decoded.from, decoded.to);
    });
  }

private:
  void addPads(const PoolPlan::Window &window, Value places, Value extent) {
    if (window.same == PoolPlan::Window::Same::No) {
      before.push_back(e.index(window.before));
      after.push_back(e.index(window.after));
      return;
    }
    Value covered = e.add(e.mul(e.sub(places, e.index(1)), window.stride),
                          e.index((window.size - 1) * window.dilation + 1));
    Value total = e.maximum(e.sub(covered, extent), e.index(0));
    Value smaller = e.div(total, 2), larger = e.sub(total, smaller);
    bool upper = window.same == PoolPlan::Window::Same::Upper;
    before.push_back(upper ? smaller : larger);
    after.push_back(upper ? larger : smaller);
  }

  Value extentOf(const SpaceDimension &dimension) {
    if (dimension.inside)
      return e.index(dimension.block);
    return e.ceilDiv(e.extentOf(source.extents[dimension.logical]), dimension.block);
  }

  void emitAxis(uint32_t axis, Value from, Value to) {
    if (axis == last)
      return e.vectorLoop(from, to, lanes, 1, [&](Value i, Value mask) { emitVector(i, mask); });
    e.loop(from, to, 1, [&](Value i) {
      indices[axis] = i;
      emitAxis(axis + 1, e.index(0), space.extent(axis + 1));
    });
  }

  bool laneIsSpatial() const { return laneDimension >= 2; }

  /// Index of the output along a dimension; the first lane's where lanes lie along it.
  Value outputIndex(uint32_t logical, bool inside, Value i) {
    for (uint32_t axis = 0; axis < plan.space.axes.size(); ++axis) {
      const auto &dimensions = plan.space.axes[axis].dimensions;
      if (!dimensions.empty() && dimensions[0].logical == logical && dimensions[0].inside == inside)
        return axis == last ? i : indices[axis];
    }
    return e.index(0);
  }

  Value spatialStride(uint32_t spatial) {
    for (size_t i = 0; i < physical.size(); ++i)
      if (physical[i].logical == spatial + 2)
        return strides[i];
    return e.index(0);
  }

  struct Range {
    Value from, to; ///< places of the window that count
  };

  /// Places k of a window that starts at `start` whose position lies in [low, high).
  Range clip(const PoolPlan::Window &window, Value start, Value low, Value high) {
    auto firstAtLeast = [&](Value bound) {
      Value distance = e.maximum(e.sub(bound, start), e.integerConstant(start.getType(), 0));
      Value place = e.ceilDiv(distance, like(start, window.dilation));
      return e.minimum(place, like(start, window.size));
    };
    return {firstAtLeast(low), firstAtLeast(high)};
  }

  Value like(Value value, int64_t number) { return e.integerConstant(value.getType(), number); }

  Value start(uint32_t spatial, Value output) {
    const PoolPlan::Window &window = plan.windows[spatial];
    return e.sub(e.mul(output, like(output, window.stride)), before[spatial]);
  }

  void emitVector(Value i, Value mask) {
    Value base = e.index(0);
    for (size_t k = 0; k < physical.size(); ++k)
      if (physical[k].logical < 2)
        base =
            e.add(base, e.mul(outputIndex(physical[k].logical, physical[k].inside, i), strides[k]));
    std::vector<Value> starts;
    for (uint32_t d = 0; d < plan.windows.size(); ++d)
      starts.push_back(start(d, outputIndex(d + 2, false, i)));
    Value pooled =
        laneIsSpatial() ? emitColumns(base, starts, i, mask) : emitChannels(base, starts, mask);
    if (plan.average)
      pooled = e.fdiv(pooled, divisor(starts, i));
    store(pooled, i, mask);
  }

  Value initial() {
    mlir::Type type = e.vectorOf(e.registerType(source.type), lanes);
    if (isFloatType(source.type))
      return e.constant(type, plan.average ? 0 : -INFINITY);
    return e.integerConstant(type, source.type == DVT_I8 ? -128 : 0);
  }
  Value combine(Value a, Value b) { return plan.average ? e.add(a, b) : e.maximum(a, b); }

  // --- All lanes share a window ---

  Value loadChannels(Value offset, Value mask) {
    Value step = e.index(1);
    for (size_t k = 0; k < physical.size(); ++k)
      if (int(physical[k].logical) == laneDimension &&
          (k + 1 == physical.size() || !plan.space.axes[last].dimensions[0].inside))
        step = strides[k];
    if (Emitter::constantIndex(step) == 1 || laneDimension < 0)
      return e.loadVector(source.type, e.pointerOf(plan.source), offset, lanes, mask);
    Value offsets = e.add(e.mul(e.iota(lanes, e.i64Type()), step), offset);
    return e.gather(source.type, e.pointerOf(plan.source), offsets, mask);
  }

  Value emitChannels(Value base, const std::vector<Value> &starts, Value mask) {
    int64_t places = 1;
    Value inside = e.boolean(true);
    for (uint32_t d = 0; d < plan.windows.size(); ++d) {
      const PoolPlan::Window &window = plan.windows[d];
      places *= window.size;
      Value end = e.add(starts[d], (window.size - 1) * window.dilation);
      inside = e.bitAnd(inside, e.bitAnd(e.ge(starts[d], e.index(0)), e.lt(end, inputExtents[d])));
    }
    auto clipped = [&] {
      std::vector<Range> ranges;
      for (uint32_t d = 0; d < plan.windows.size(); ++d)
        ranges.push_back(clip(plan.windows[d], starts[d], e.index(0), inputExtents[d]));
      return clippedWindow(0, base, starts, ranges, mask, {initial()});
    };
    if (places > 32)
      return clipped()[0];
    return e.ifElse(
        inside, [&] { return wholeWindow(base, starts, mask); }, clipped)[0];
  }

  Values wholeWindow(Value base, const std::vector<Value> &starts, Value mask) {
    Value total;
    std::function<void(uint32_t, Value)> visit = [&](uint32_t d, Value offset) {
      if (d == plan.windows.size()) {
        Value element = loadChannels(offset, mask);
        total = total ? combine(total, element) : element;
        return;
      }
      for (int64_t k = 0; k < plan.windows[d].size; ++k)
        visit(d + 1, e.add(offset, e.mul(e.add(starts[d], k * plan.windows[d].dilation),
                                         spatialStride(d))));
    };
    visit(0, base);
    return {total};
  }

  Values clippedWindow(uint32_t d, Value offset, const std::vector<Value> &starts,
                       const std::vector<Range> &ranges, Value mask, ValueRange carried) {
    if (d == plan.windows.size())
      return {combine(carried[0], loadChannels(offset, mask))};
    return e.loop(ranges[d].from, ranges[d].to, 1, carried, [&](Value k, ValueRange values) {
      Value position = e.add(starts[d], e.mul(k, plan.windows[d].dilation));
      return clippedWindow(d + 1, e.add(offset, e.mul(position, spatialStride(d))), starts, ranges,
                           mask, values);
    });
  }

  // --- Lanes lie along a spatial dimension ---

  Value emitColumns(Value base, const std::vector<Value> &starts, Value i, Value mask) {
    std::vector<Range> ranges;
    for (uint32_t d = 0; d < plan.windows.size(); ++d)
      ranges.push_back(clip(plan.windows[d], starts[d], e.index(0), inputExtents[d]));
    return columnsWindow(0, base, starts, ranges, mask, {initial()})[0];
  }

  Values columnsWindow(uint32_t d, Value offset, const std::vector<Value> &starts,
                       const std::vector<Range> &ranges, Value mask, ValueRange carried) {
    uint32_t lane = laneDimension - 2;
    if (d == plan.windows.size()) {
      Values values(carried);
      for (int64_t k = 0; k < plan.windows[lane].size; ++k)
        values[0] = combine(
            values[0],
            loadColumns(offset, e.add(starts[lane], k * plan.windows[lane].dilation), mask));
      return values;
    }
    if (d == lane)
      return columnsWindow(d + 1, offset, starts, ranges, mask, carried);
    return e.loop(ranges[d].from, ranges[d].to, 1, carried, [&](Value k, ValueRange values) {
      Value position = e.add(starts[d], e.mul(k, plan.windows[d].dilation));
      return columnsWindow(d + 1, e.add(offset, e.mul(position, spatialStride(d))), starts, ranges,
                           mask, values);
    });
  }

  /// The element at position + stride * lane of each lane; what counts for nothing outside of the
  /// image.
  Value loadColumns(Value offset, Value position, Value mask) {
    uint32_t lane = laneDimension - 2;
    int64_t stride = plan.windows[lane].stride;
    Value step = spatialStride(lane), extent = inputExtents[lane];
    Value nothing = initial();
    Value pointer = e.pointerOf(plan.source);
    auto within = [&](Value first, int64_t apart) {
      Value positions = e.add(e.mul(e.iota(lanes, e.i64Type()), e.index(apart)), first);
      return e.bitAnd(e.ge(positions, like(positions, 0)), e.lt(positions, e.splat(extent, lanes)));
    };
    auto both = [&](Value inside) { return mask ? e.bitAnd(mask, inside) : inside; };
    if (stride == 1 && Emitter::constantIndex(step) == 1)
      return e.loadVector(source.type, pointer, e.add(offset, position), lanes,
                          both(within(position, 1)), nothing);
    if (stride == 2 && Emitter::constantIndex(step) == 1) {
      // Two vectors side by side, of which the even lanes are taken.
      Value next = e.add(position, lanes);
      Value low = e.loadVector(source.type, pointer, e.add(offset, position), lanes,
                               within(position, 1), nothing);
      Value high =
          e.loadVector(source.type, pointer, e.add(offset, next), lanes, within(next, 1), nothing);
      llvm::SmallVector<int64_t> even;
      for (unsigned l = 0; l < lanes; ++l)
        even.push_back(2 * l);
      return e.shuffle(low, high, even);
    }
    Value positions = e.add(e.mul(e.iota(lanes, e.i64Type()), e.index(stride)), position);
    Value inside = both(within(position, stride));
    Value loaded = e.gather(source.type, pointer, e.add(e.mul(positions, step), offset), inside);
    return e.select(inside, loaded, nothing);
  }

  // --- Averages ---

  Value divisor(const std::vector<Value> &starts, Value i) {
    Value total;
    for (uint32_t d = 0; d < plan.windows.size(); ++d) {
      const PoolPlan::Window &window = plan.windows[d];
      Value first = starts[d], low = e.index(0), high = inputExtents[d];
      if (plan.countPadding) {
        low = e.sub(e.index(0), before[d]);
        high = e.add(high, after[d]);
      }
      if (int(d) + 2 == laneDimension) {
        first = e.add(e.mul(e.iota(lanes, e.i64Type()), e.index(window.stride)), first);
        low = e.splat(low, lanes);
        high = e.splat(high, lanes);
      }
      Range range = clip(window, first, low, high);
      Value count = e.convert(e.convert(e.sub(range.to, range.from), e.i32Type()), e.f32Type());
      total = total ? e.mul(total, count) : count;
    }
    return e.splat(total, lanes);
  }

  void store(Value pooled, Value i, Value mask) {
    if (needRoundedOperands(e.problem, plan.epilogue))
      pooled = e.rounded(source.type, pooled);
    ValueMap values;
    values[plan.pooled] = pooled;
    for (uint32_t k = 0; k < plan.space.operands.size(); ++k) {
      uint32_t value = plan.space.operands[k].value;
      if (e.problem.outputOf(value) < 0)
        values[value] = space.loadAlongLast(k, space.offset(k, indices, last), i, lanes, mask);
    }
    emitPointwiseOps(e, plan.epilogue, lanes, values);
    for (uint32_t k = 0; k < plan.space.operands.size(); ++k) {
      uint32_t value = plan.space.operands[k].value;
      if (e.problem.outputOf(value) < 0)
        continue;
      Value result = values[value];
      if (!result)
        return e.fail("an output is not computed");
      result = e.splat(result, lanes);
      if (Value unpadded = space.padMask(indices, i, lanes))
        result = e.select(unpadded, result, e.constant(result.getType(), 0));
      e.storeVector(space.type(k), result, space.pointer(k),
                    e.add(space.offset(k, indices, last), i), mask);
    }
  }

  Emitter &e;
  const PoolPlan &plan;
  SpaceEmission space;
  unsigned lanes;
  uint32_t last;
  std::vector<Value> indices;
  const dvt_value &source;
  int laneDimension;                    ///< logical; -1 where there is a single element
  std::vector<SpaceDimension> physical; ///< of the operand
  std::vector<Value> strides, inputExtents, before, after; ///< the latter two: padding
};

} // namespace

Status emitPoolKernel(const ProblemReader &problem, const Machine &machine,
                      const Schedule &schedule, KernelModule &module) {
  auto layout = Layout::parse(schedule.parameter(""));
  if (!layout)
    return layout.takeError();
  auto plan = planPool(problem, machine, *layout);
  if (!plan)
    return plan.takeError();
  module.setLanes(lanesAlong(plan->space.axes.back().extent, machine));
  module.addPhase(
      [&](Emitter &e) {
        SpaceEmission space(e, plan->space);
        return space.taskCount(plan->split, space.allAxes());
      },
      [&](Emitter &e, Value begin, Value end) { PoolEmitter(e, *plan).emit(begin, end); });
  return Status::success();
}

} // namespace dovetail::codegen
