// SPDX-License-Identifier: Apache-2.0
//
// Emits fused element-wise ops: a nest of loops over the axes of the space, vectors along the last
// one. What does not change along inner axes is computed outside their loops, so that a gate for
// each channel, say, costs no more than the channels. Where the last axis is short, as the inside
// of a channel block is, all of it is one bundle of vectors and the axis before becomes the
// innermost loop.
#include "codegen/Families.h"

#include "codegen/PointwiseEmission.h"
#include "codegen/SpaceEmission.h"
#include "codegen/schedule/Pointwise.h"

namespace dovetail::codegen {
namespace {

class PointwisePhaseEmitter {
public:
  PointwisePhaseEmitter(Emitter &emitter, const PointwisePhase &phase)
      : e(emitter), phase(phase), space(emitter, phase.space), lanes(emitter.lanes()) {
    for (uint32_t op : phase.ops)
      if (Status status = expression.add(e.problem, e.problem.op(op)); !status)
        e.fail(status.error().message);
    last = phase.space.axes.size() - 1;
    int64_t inner = phase.space.axes[last].extent;
    bundled = inner >= 0 && inner <= 4 * int64_t(lanes) && last > 0 && phase.split.axis < last;
    for (size_t i = 0; i < phase.space.operands.size(); ++i)
      operandOf.try_emplace(phase.space.operands[i].value, i);
    assignLevels();
  }

  void emit(Value begin, Value end) {
    emitLevel(-1);
    std::vector<uint32_t> axes = space.allAxes();
    e.loop(begin, end, 1, [&](Value task) {
      SpaceEmission::Task decoded = space.decode(phase.split, axes, task);
      indices = decoded.indices;
      for (uint32_t axis = 0; axis < phase.split.axis; ++axis)
        emitLevel(axis);
      emitAxis(phase.split.axis, decoded.from, decoded.to);
    });
  }

private:
  /// The registers of a node: one scalar, one vector, or a bundle of vectors along the last axis.
  struct Registers {
    Values values;
    bool alongLast = false;
  };

  void assignLevels() {
    size_t count = expression.nodes.size();
    needed.assign(count, false);
    levels.assign(count, -1);
    alongLast.assign(count, false);
    registers.resize(count);
    for (uint32_t output : phase.outputs)
      needed[expression.nodeOf.at(output)] = true;
    for (size_t i = count; i-- > 0;)
      if (needed[i])
        for (NodeId operand : {expression.nodes[i].a, expression.nodes[i].b, expression.nodes[i].c})
          if (operand != kNoNode)
            needed[operand] = true;
    for (size_t i = 0; i < count; ++i) {
      const ExpressionNode &node = expression.nodes[i];
      if (node.kind == ExpressionKind::Leaf) {
        const SpaceOperand &operand = phase.space.operands[operandOf.at(node.value)];
        for (uint32_t axis = 0; axis < last; ++axis)
          if (operand.present[axis])
            levels[i] = axis;
        alongLast[i] = operand.present[last];
        if (alongLast[i] && !bundled)
          levels[i] = last;
      }
      for (NodeId operand : {node.a, node.b, node.c})
        if (operand != kNoNode) {
          levels[i] = std::max(levels[i], levels[operand]);
          alongLast[i] = alongLast[i] || alongLast[operand];
        }
    }
  }

  /// Offsets of the vectors of a bundle and the mask of the last one.
  unsigned bundleSize() const { return (phase.space.axes[last].extent + lanes - 1) / lanes; }
  Value bundleMask(unsigned part) {
    int64_t remaining = phase.space.axes[last].extent - int64_t(part) * lanes;
    return remaining < int64_t(lanes) ? e.tailMask(e.index(remaining), lanes) : Value();
  }

  Value operandRegister(NodeId id, size_t part, bool vectors) {
    if (id == kNoNode)
      return {};
    Value value = registers[id].values[registers[id].alongLast ? part : 0];
    return vectors ? e.splat(value, lanes) : value;
  }

  /// Computes the nodes of a level that is not the vector loop.
  void emitLevel(int level) {
    for (size_t i = 0; i < expression.nodes.size(); ++i) {
      if (!needed[i] || levels[i] != level || (alongLast[i] && !bundled))
        continue;
      const ExpressionNode &node = expression.nodes[i];
      Registers result;
      result.alongLast = alongLast[i];
      unsigned parts = alongLast[i] ? bundleSize() : 1;
      for (unsigned part = 0; part < parts; ++part) {
        if (node.kind == ExpressionKind::Leaf) {
          uint32_t operand = operandOf.at(node.value);
          Value base = space.offset(operand, indices, level + 1);
          result.values.push_back(
              alongLast[i] ? space.loadAlongLast(operand, base, e.index(int64_t(part) * lanes),
                                                 lanes, bundleMask(part))
                           : e.load(space.type(operand), space.pointer(operand), base));
          continue;
        }
        bool vectors = alongLast[i];
        result.values.push_back(emitPrimitive(
            e, node, operandRegister(node.a, part, vectors), operandRegister(node.b, part, vectors),
            operandRegister(node.c, part, vectors), vectors ? lanes : 0));
      }
      registers[i] = std::move(result);
    }
  }

  void emitAxis(uint32_t axis, Value from, Value to) {
    if (axis == last && !bundled)
      return emitVectorLoop(from, to);
    if (axis == last)
      return storeBundles();
    e.loop(from, to, 1, [&](Value i) {
      indices[axis] = i;
      emitLevel(axis);
      if (axis + 1 == last && bundled)
        storeBundles();
      else
        emitAxis(axis + 1, e.index(0), space.extent(axis + 1));
    });
  }

  void storeBundles() {
    for (uint32_t output : phase.outputs) {
      uint32_t operand = operandOf.at(output);
      NodeId id = expression.nodeOf.at(output);
      Value base = space.offset(operand, indices, last);
      for (unsigned part = 0; part < bundleSize(); ++part) {
        Value offset = e.index(int64_t(part) * lanes);
        Value value = operandRegister(id, part, true);
        if (Value inside = space.padMask(indices, offset, lanes))
          value = e.select(inside, value, e.constant(value.getType(), 0));
        e.storeVector(space.type(operand), value, space.pointer(operand), e.add(base, offset),
                      bundleMask(part));
      }
    }
  }

  void emitVectorLoop(Value from, Value to) {
    std::vector<Value> bases;
    for (size_t i = 0; i < phase.space.operands.size(); ++i)
      bases.push_back(space.offset(i, indices, last));
    double cost = expression.cost();
    unsigned unroll = cost <= 8 ? 4 : cost <= 40 ? 2 : 1;
    e.vectorLoop(from, to, lanes, unroll, [&](Value i, Value mask) {
      llvm::SmallVector<Value> current(expression.nodes.size());
      auto operand = [&](NodeId id) {
        return id == kNoNode ? Value()
               : current[id] ? current[id]
                             : e.splat(registers[id].values[0], lanes);
      };
      for (size_t id = 0; id < expression.nodes.size(); ++id) {
        if (!needed[id] || !alongLast[id])
          continue;
        const ExpressionNode &node = expression.nodes[id];
        if (node.kind == ExpressionKind::Leaf) {
          uint32_t number = operandOf.at(node.value);
          current[id] = space.loadAlongLast(number, bases[number], i, lanes, mask);
        } else {
          current[id] =
              emitPrimitive(e, node, operand(node.a), operand(node.b), operand(node.c), lanes);
        }
      }
      for (uint32_t output : phase.outputs) {
        uint32_t number = operandOf.at(output);
        e.storeVector(space.type(number), operand(expression.nodeOf.at(output)),
                      space.pointer(number), e.add(bases[number], i), mask);
      }
    });
  }

  Emitter &e;
  const PointwisePhase &phase;
  SpaceEmission space;
  unsigned lanes;
  Expression expression;
  llvm::DenseMap<uint32_t, uint32_t> operandOf; ///< problem value -> operand of the space
  uint32_t last = 0;
  bool bundled = false;
  std::vector<bool> needed, alongLast;
  std::vector<int>
      levels; ///< the innermost axis along which a node changes, the last one aside where bundled
  std::vector<Registers> registers;
  std::vector<Value> indices;
};

} // namespace

Status emitPointwiseKernel(const ProblemReader &problem, const Machine &machine,
                           const Schedule &schedule, KernelModule &module) {
  auto layout = Layout::parse(schedule.outputLayouts.empty() ? "" : schedule.outputLayouts[0]);
  if (!layout)
    return layout.takeError();
  auto phases = planPointwise(problem, machine, *layout);
  if (!phases)
    return phases.takeError();
  for (const PointwisePhase &phase : *phases) {
    module.setLanes(lanesAlong(phase.space.axes.back().extent, machine));
    module.addPhase(
        [&](Emitter &e) {
          SpaceEmission space(e, phase.space);
          Value count = space.taskCount(phase.split, space.allAxes());
          if (phase.when == PointwiseCase::Always)
            return count;
          bool whereEqual = phase.when == PointwiseCase::WhereExtentsAreEqual;
          return e.select(space.extentsAreEqual(), whereEqual ? count : e.index(0),
                          whereEqual ? e.index(0) : count);
        },
        [&](Emitter &e, Value begin, Value end) {
          PointwisePhaseEmitter(e, phase).emit(begin, end);
        });
  }
  return Status::success();
}

} // namespace dovetail::codegen
