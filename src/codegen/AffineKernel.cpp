// SPDX-License-Identifier: Apache-2.0
//
// Emits affine movement with element-wise ops: loops over the axes, vectors along the last one.
// Where an operand is contiguous along the axis before it instead, squares of both axes are loaded
// that way and transposed in registers.
#include "codegen/Families.h"

#include "codegen/PointwiseEmission.h"
#include "codegen/SpaceEmission.h"
#include "codegen/schedule/Affine.h"

namespace dovetail::codegen {
namespace {

/// Offset and strides of an operand as emitted values.
struct Strided {
  Value pointer, offset;
  std::vector<Value> strides;
  dvt_type type;
};

class AffineEmitter {
public:
  AffineEmitter(Emitter &emitter, const AffinePhase &phase)
      : e(emitter), phase(phase), lanes(emitter.lanes()), last(phase.axes.size() - 1),
        indices(phase.axes.size()) {
    for (const Extent &extent : phase.axes)
      extents.push_back(e.extentOf(extent));
    std::vector<dvt_type> types(phase.operands.size(), DVT_F32);
    for (const ExpressionNode &node : phase.expression.nodes)
      if (node.kind == ExpressionKind::Leaf)
        types[node.value] = node.type;
    for (size_t i = 0; i < phase.operands.size(); ++i)
      operands.push_back(strided(phase.operands[i], types[i]));
    for (const AffinePhase::Output &output : phase.outputs)
      outputs.push_back(strided(output.target, phase.expression.nodes[output.node].type));
    markNeeded();
  }

  Value taskCount() {
    Value count = e.ceilDiv(extents[phase.split.axis], phase.split.chunk);
    for (uint32_t axis = 0; axis < phase.split.axis; ++axis)
      count = e.mul(count, extents[axis]);
    // No element, no task.
    for (size_t axis = phase.split.axis + 1; axis < extents.size(); ++axis)
      count = e.mul(count, e.minimum(extents[axis], 1));
    return count;
  }

  void emit(Value begin, Value end) {
    e.loop(begin, end, 1, [&](Value task) {
      uint32_t axis = phase.split.axis;
      Value chunks = e.ceilDiv(extents[axis], phase.split.chunk);
      Value from = e.mul(e.rem(task, chunks), phase.split.chunk);
      Value to = e.minimum(e.add(from, phase.split.chunk), extents[axis]);
      Value rest = e.div(task, chunks);
      for (uint32_t outer = axis; outer-- > 0;) {
        indices[outer] = outer == 0 ? rest : e.rem(rest, extents[outer]);
        rest = outer == 0 ? rest : e.div(rest, extents[outer]);
      }
      emitAxis(axis, from, to);
    });
  }

private:
  Strided strided(const AffineOperand &operand, dvt_type type) {
    Strided result;
    result.type = type;
    result.pointer = e.pointerOf(operand.value);
    result.offset = e.extentOf(operand.offset);
    for (const Extent &stride : operand.strides)
      result.strides.push_back(e.extentOf(stride));
    return result;
  }

  void markNeeded() {
    const auto &nodes = phase.expression.nodes;
    needed.assign(nodes.size(), false);
    for (const AffinePhase::Output &output : phase.outputs)
      needed[output.node] = true;
    for (size_t i = nodes.size(); i-- > 0;)
      if (needed[i])
        for (NodeId operand : {nodes[i].a, nodes[i].b, nodes[i].c})
          if (operand != kNoNode)
            needed[operand] = true;
  }

  void emitAxis(uint32_t axis, Value from, Value to) {
    if (int(axis) == phase.tileAxis)
      return emitTiles(from, to);
    if (axis == last)
      return emitVectors(from, to);
    e.loop(from, to, 1, [&](Value i) {
      indices[axis] = i;
      emitAxis(axis + 1, e.index(0), extents[axis + 1]);
    });
  }

  /// Offset over the axes before `count`.
  Value base(const Strided &operand, size_t count) {
    Value sum = operand.offset;
    for (size_t axis = 0; axis < count; ++axis)
      sum = e.add(sum, e.mul(indices[axis], operand.strides[axis]));
    return sum;
  }

  Value guardBase(size_t count) {
    Value sum = e.index(0);
    for (size_t axis = 0; axis < count; ++axis)
      if (phase.guard.coefficients[axis])
        sum = e.add(sum, e.mul(indices[axis], phase.guard.coefficients[axis]));
    return sum;
  }

  Value both(Value a, Value b) { return a && b ? e.bitAnd(a, b) : a ? a : b; }

  /// Lanes of [position, ...) along the last axis whose guarded position is below the limit.
  Value guardLanes(Value position, const Extent &limit) {
    int64_t step = phase.guard.coefficients[last];
    Value bound = e.extentOf(limit);
    if (step == 0)
      return e.splat(e.lt(position, bound), lanes);
    Value offsets = e.mul(e.iota(lanes, e.i64Type()), e.index(step));
    return e.lt(e.add(offsets, position), bound);
  }

  Value loadAlong(const Strided &operand, Value offset, size_t axis, Value mask) {
    auto step = Emitter::constantIndex(operand.strides[axis]);
    if (step == 0 && !mask)
      return e.loadSplat(operand.type, operand.pointer, offset, lanes);
    if (step == 1)
      return e.loadVector(operand.type, operand.pointer, offset, lanes, mask);
    Value offsets = e.add(e.mul(e.iota(lanes, e.i64Type()), operand.strides[axis]), offset);
    return e.gather(operand.type, operand.pointer, offsets, mask);
  }

  void storeAlong(const Strided &operand, Value value, Value offset, Value mask) {
    value = e.splat(value, lanes);
    if (Emitter::constantIndex(operand.strides[last]) == 1)
      return e.storeVector(operand.type, value, operand.pointer, offset, mask);
    Value offsets = e.add(e.mul(e.iota(lanes, e.i64Type()), operand.strides[last]), offset);
    e.scatter(operand.type, value, operand.pointer, offsets, mask);
  }

  /// Computes the nodes from the registers of operands.
  void compute(const std::vector<Value> &loaded, std::vector<Value> &registers) {
    const auto &nodes = phase.expression.nodes;
    registers.assign(nodes.size(), Value());
    auto of = [&](NodeId id) { return id == kNoNode ? Value() : registers[id]; };
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (!needed[i])
        continue;
      registers[i] =
          nodes[i].kind == ExpressionKind::Leaf
              ? loaded[nodes[i].value]
              : emitPrimitive(e, nodes[i], of(nodes[i].a), of(nodes[i].b), of(nodes[i].c), lanes);
    }
  }

  void emitVectors(Value from, Value to) {
    double cost = phase.expression.cost();
    unsigned unroll = phase.guard.loadLimit || phase.guard.storeLimit ? 1
                      : cost <= 8                                     ? 4
                      : cost <= 40                                    ? 2
                                                                      : 1;
    std::vector<Value> bases, outputBases, registers;
    for (const Strided &operand : operands)
      bases.push_back(base(operand, last));
    for (const Strided &output : outputs)
      outputBases.push_back(base(output, last));
    Value position = guardBase(last);
    e.vectorLoop(from, to, lanes, unroll, [&](Value i, Value mask) {
      Value here = e.add(position, e.mul(i, phase.guard.coefficients[last]));
      Value loadMask = mask, storeMask = mask;
      if (phase.guard.loadLimit)
        loadMask = both(mask, guardLanes(here, *phase.guard.loadLimit));
      if (phase.guard.storeLimit)
        storeMask = both(mask, guardLanes(here, *phase.guard.storeLimit));
      std::vector<Value> loaded;
      for (size_t k = 0; k < operands.size(); ++k)
        loaded.push_back(loadAlong(
            operands[k], e.add(bases[k], e.mul(i, operands[k].strides[last])), last, loadMask));
      compute(loaded, registers);
      for (size_t k = 0; k < outputs.size(); ++k)
        storeAlong(outputs[k], registers[phase.outputs[k].node],
                   e.add(outputBases[k], e.mul(i, outputs[k].strides[last])), storeMask);
    });
  }

  // --- Tiles ---

  /// Tiles of `lanes` rows (along the tile axis, [from, to)) by `lanes` columns (along the last
  /// axis).
  void emitTiles(Value from, Value to) {
    int64_t columns = phase.axes[last].staticValue().value_or(-1),
            rows = phase.axes[last - 1].staticValue().value_or(-1);
    bool guarded = phase.guard.loadLimit || phase.guard.storeLimit;
    bool wholeColumns = columns >= 0 && columns % lanes == 0;
    bool wholeRows = rows >= 0 && rows % lanes == 0 && phase.split.chunk % lanes == 0;
    e.loop(from, to, lanes, [&](Value row) {
      e.loop(e.index(0), extents[last], lanes, [&](Value column) {
        if (wholeColumns && wholeRows && !guarded)
          return emitTile(row, column, to, false);
        bool neverWhole = (columns >= 0 && columns < lanes) || (rows >= 0 && rows < lanes);
        if (neverWhole)
          return emitTile(row, column, to, true);
        Value whole =
            e.bitAnd(e.le(e.add(row, lanes), to), e.le(e.add(column, lanes), extents[last]));
        for (const std::optional<Extent> &limit : {phase.guard.loadLimit, phase.guard.storeLimit})
          if (limit) {
            Value highest = e.add(guardBase(last - 1),
                                  e.mul(e.add(row, lanes - 1), phase.guard.coefficients[last - 1]));
            highest =
                e.add(highest, e.mul(e.add(column, lanes - 1), phase.guard.coefficients[last]));
            whole = e.bitAnd(whole, e.lt(highest, e.extentOf(*limit)));
          }
        e.ifElse(
            whole,
            [&] {
              emitTile(row, column, to, false);
              return Values();
            },
            [&] {
              emitTile(row, column, to, true);
              return Values();
            });
      });
    });
  }

  /// How many of the tile's rows and columns can exist at all.
  unsigned reach(size_t axis) const {
    int64_t extent = phase.axes[axis].staticValue().value_or(lanes);
    return std::min<int64_t>(extent, lanes);
  }

  void emitTile(Value row, Value column, Value rowEnd, bool masked) {
    size_t tile = last - 1;
    Value rowMask = masked ? e.tailMask(e.sub(rowEnd, row), lanes) : Value();
    Value columnMask = masked ? e.tailMask(e.sub(extents[last], column), lanes) : Value();
    std::vector<Values> rows(lanes);
    for (Values &registers : rows)
      registers.resize(operands.size());
    for (size_t k = 0; k < operands.size(); ++k)
      loadTile(k, row, column, rowEnd, masked, rowMask, columnMask, rows);
    std::vector<Value> registers;
    Value position = guardBase(tile);
    for (unsigned r = 0; r < reach(tile); ++r) {
      compute({rows[r].begin(), rows[r].end()}, registers);
      Value at = e.add(row, int64_t(r)), mask = columnMask;
      if (masked)
        mask = both(mask, e.splat(e.lt(at, rowEnd), lanes));
      if (masked && phase.guard.storeLimit)
        mask = both(mask, guardLanes(guardAt(position, at, column), *phase.guard.storeLimit));
      for (size_t k = 0; k < outputs.size(); ++k) {
        Value offset = e.add(base(outputs[k], tile), e.mul(at, outputs[k].strides[tile]));
        storeAlong(outputs[k], registers[phase.outputs[k].node],
                   e.add(offset, e.mul(column, outputs[k].strides[last])), mask);
      }
    }
  }

  Value guardAt(Value position, Value row, Value column) {
    position = e.add(position, e.mul(row, phase.guard.coefficients[last - 1]));
    return e.add(position, e.mul(column, phase.guard.coefficients[last]));
  }

  void loadTile(size_t k, Value row, Value column, Value rowEnd, bool masked, Value rowMask,
                Value columnMask, std::vector<Values> &rows) {
    size_t tile = last - 1;
    const Strided &operand = operands[k];
    Value start = base(operand, tile), position = guardBase(tile);
    bool transposed = Emitter::constantIndex(operand.strides[tile]) == 1 &&
                      Emitter::constantIndex(operand.strides[last]) != 0 &&
                      Emitter::constantIndex(operand.strides[last]) != 1;
    if (!transposed) {
      for (unsigned r = 0; r < reach(tile); ++r) {
        Value at = e.add(row, int64_t(r)), mask = columnMask;
        if (masked)
          mask = both(mask, e.splat(e.lt(at, rowEnd), lanes));
        if (masked && phase.guard.loadLimit)
          mask = both(mask, guardLanes(guardAt(position, at, column), *phase.guard.loadLimit));
        Value offset = e.add(start, e.mul(at, operand.strides[tile]));
        rows[r][k] =
            loadAlong(operand, e.add(offset, e.mul(column, operand.strides[last])), last, mask);
      }
      return;
    }
    Values columns;
    for (unsigned c = 0; c < reach(last); ++c) {
      Value at = e.add(column, int64_t(c)), mask = rowMask;
      if (masked)
        mask = both(mask, e.splat(e.lt(at, extents[last]), lanes));
      if (masked && phase.guard.loadLimit)
        mask = both(mask, guardRows(guardAt(position, row, at), *phase.guard.loadLimit));
      Value offset = e.add(e.add(start, row), e.mul(at, operand.strides[last]));
      columns.push_back(e.loadVector(operand.type, operand.pointer, offset, lanes, mask));
    }
    while (columns.size() < lanes)
      columns.push_back(e.constant(columns[0].getType(), 0));
    Values turned = e.transpose(columns);
    for (unsigned r = 0; r < lanes; ++r)
      rows[r][k] = turned[r];
  }

  /// guardLanes for lanes along the tile axis.
  Value guardRows(Value position, const Extent &limit) {
    int64_t step = phase.guard.coefficients[last - 1];
    Value bound = e.extentOf(limit);
    if (step == 0)
      return e.splat(e.lt(position, bound), lanes);
    return e.lt(e.add(e.mul(e.iota(lanes, e.i64Type()), e.index(step)), position), bound);
  }

  Emitter &e;
  const AffinePhase &phase;
  unsigned lanes;
  size_t last;
  std::vector<Value> indices, extents;
  std::vector<Strided> operands, outputs;
  std::vector<bool> needed;
};

} // namespace

Status emitAffineKernel(const ProblemReader &problem, const Machine &machine,
                        const Schedule &schedule, KernelModule &module) {
  auto phases = planAffine(problem, machine, schedule.inputLayouts, schedule.outputLayouts);
  if (!phases)
    return phases.takeError();
  for (const AffinePhase &phase : *phases) {
    module.setLanes(lanesAlong(phase.axes.back().staticValue().value_or(-1), machine));
    module.addPhase(
        [&](Emitter &e) { return AffineEmitter(e, phase).taskCount(); },
        [&](Emitter &e, Value begin, Value end) { AffineEmitter(e, phase).emit(begin, end); });
  }
  return Status::success();
}

} // namespace dovetail::codegen
