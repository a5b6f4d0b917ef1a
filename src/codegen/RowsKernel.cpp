// SPDX-License-Identifier: Apache-2.0
//
// Emits reductions and normalisations. A task is a range of rows. Where the last axis is reduced, a
// row is walked in vectors along it and its accumulators are folded at the end; otherwise several
// rows that lie side by side are walked at once, a lane for each. Several accumulators take turns,
// so that additions do not wait for each other.
#include "codegen/Families.h"

#include "codegen/PointwiseEmission.h"
#include "codegen/SpaceEmission.h"
#include "codegen/gpu/BlockReduction.h"
#include "codegen/schedule/Rows.h"

namespace dovetail::codegen {
namespace {

using Kind = ExpressionKind;

bool isArgument(Kind kind) { return kind == Kind::ReduceArgMin || kind == Kind::ReduceArgMax; }

Emitter::Reduction reductionOf(Kind kind) {
  switch (kind) {
  case Kind::ReduceProduct:
    return Emitter::Reduction::Mul;
  case Kind::ReduceMin:
  case Kind::ReduceArgMin:
    return Emitter::Reduction::Min;
  case Kind::ReduceMax:
  case Kind::ReduceArgMax:
    return Emitter::Reduction::Max;
  default:
    return Emitter::Reduction::Add;
  }
}

class RowsEmitter {
public:
  RowsEmitter(Emitter &emitter, const RowsPlan &plan)
      : e(emitter), plan(plan), space(emitter, plan.space), nodes(plan.expression.nodes),
        lanes(emitter.lanes()), last(plan.space.axes.size() - 1), reducedRegisters(nodes.size()),
        fullRegisters(nodes.size()) {}

  void emit(Value begin, Value end) {
    e.loop(begin, end, 1, [&](Value task) {
      SpaceEmission::Task decoded = space.decode(plan.split, plan.keptAxes, task);
      indices = decoded.indices;
      if (plan.keptAxes.empty())
        return emitRows(1, {}, {});
      emitKept(plan.split.axis, decoded.from, decoded.to);
    });
  }

private:
  /// Loops over kept axis number `position` and those after it.
  void emitKept(uint32_t position, Value from, Value to) {
    uint32_t axis = plan.keptAxes[position];
    if (axis == last)
      return emitSideBySide(from, to);
    e.loop(from, to, 1, [&](Value i) {
      indices[axis] = i;
      if (position + 1 == plan.keptAxes.size())
        emitRows(1, {}, {});
      else
        emitKept(position + 1, e.index(0), space.extent(plan.keptAxes[position + 1]));
    });
  }

  /// Rows [from, to) along the last axis, `lanes` and more at once.
  void emitSideBySide(Value from, Value to) {
    int64_t width = plan.space.axes[last].extent;
    int64_t most = plan.expression.cost() > 24 ? 2 : 4;
    unsigned vectors = e.machine.isDevice() ? 1
                       : width < 0          ? most
                                            : std::clamp<int64_t>(width / lanes, 1, most);
    Value done = from;
    if (vectors > 1 || width % lanes == 0) {
      Value length = e.sub(to, from), step = e.index(int64_t(vectors) * lanes);
      done = e.add(from, e.sub(length, e.rem(length, step)));
      e.loop(from, done, int64_t(vectors) * lanes, [&](Value i) { emitRows(vectors, i, {}); });
    }
    // Chunks of tasks are whole vectors, so only the end of the axis has a tail.
    if (width >= 0 && width % (int64_t(vectors) * lanes) == 0 &&
        plan.split.chunk % (int64_t(vectors) * lanes) == 0)
      return;
    if (width >= 0 && width % lanes == 0)
      return e.loop(done, to, lanes, [&](Value i) { emitRows(1, i, {}); });
    e.loop(done, to, lanes, [&](Value i) { emitRows(1, i, e.tailMask(e.sub(to, i), lanes)); });
  }

  // --- One row, or rows side by side ---

  /// `start` and `mask` tell the lanes where rows lie side by side.
  void emitRows(unsigned count, Value start, Value mask) {
    vectors = count;
    rowStart = start;
    rowMask = mask;
    emitReducedNodes(0);
    for (int pass = 0; pass < plan.passes; ++pass) {
      emitPass(pass);
      emitReducedNodes(pass + 1);
    }
    for (const RowsPlan::Output &output : plan.outputs)
      if (!output.full)
        storeReduced(output);
  }

  unsigned reducedLanes() const { return plan.alongRows ? 0 : lanes; }

  Value emitReducedLeaf(uint32_t operand, unsigned vector) {
    Value base = space.offset(operand, indices, last);
    if (plan.alongRows)
      return e.load(space.type(operand), space.pointer(operand), base);
    return space.loadAlongLast(operand, base, laneIndex(vector), lanes, rowMask);
  }

  /// Nodes for the whole row that need no pass beyond `pass`, and are no reductions.
  void emitReducedNodes(int pass) {
    for (size_t id = 0; id < nodes.size(); ++id) {
      const RowsPlan::NodeUse &use = plan.uses[id];
      const ExpressionNode &node = nodes[id];
      bool reduction = node.kind >= Kind::ReduceSum && node.kind <= Kind::ReduceArgMax;
      if (!use.needed || use.full || use.pass != pass || reduction)
        continue;
      reducedRegisters[id].clear();
      for (unsigned vector = 0; vector < vectors; ++vector) {
        Value value;
        if (node.kind == Kind::Leaf)
          value = emitReducedLeaf(operandOf(node.value), vector);
        else if (node.kind == Kind::ReduceCount)
          value = reducedCount(node);
        else
          value = emitPrimitive(e, node, reduced(node.a, vector), reduced(node.b, vector),
                                reduced(node.c, vector), reducedLanes());
        reducedRegisters[id].push_back(value);
      }
    }
  }

  Value reducedCount(const ExpressionNode &node) {
    Value count = e.index(1);
    for (uint32_t axis : plan.reducedAxes)
      for (const SpaceDimension &dimension : plan.space.axes[axis].dimensions)
        if (!dimension.inside)
          count = e.mul(count, e.extentOf(plan.space.shape[dimension.logical]));
    if (auto known = Emitter::constantIndex(count)) {
      mlir::Type type = e.registerType(node.type);
      return e.constant(reducedLanes() ? mlir::Type(e.vectorOf(type, lanes)) : type,
                        double(*known));
    }
    Value number = e.convert(count, e.registerType(node.type));
    return reducedLanes() ? e.splat(number, lanes) : number;
  }

  Value reduced(NodeId id, unsigned vector) {
    return id == kNoNode ? Value() : reducedRegisters[id][vector];
  }
  uint32_t operandOf(uint32_t value) const {
    return plan.space.find(value) - plan.space.operands.data();
  }
  Value laneIndex(unsigned vector) { return e.add(rowStart, int64_t(vector) * lanes); }

  // --- Passes ---

  mlir::Type elementType(NodeId id) { return e.vectorOf(e.registerType(nodes[id].type), lanes); }

  void emitPass(int pass) {
    needed = plan.neededIn(pass);
    currentPass = pass;
    accumulators.clear();
    double cost = 0;
    for (size_t id = 0; id < nodes.size(); ++id) {
      if (nodes[id].kind >= Kind::ReduceSum && nodes[id].kind <= Kind::ReduceArgMax &&
          plan.uses[id].needed && plan.uses[id].pass == pass + 1)
        accumulators.push_back(NodeId(id));
      if (needed[id] && !plan.atHome(id, pass)) {
        Expression single;
        single.nodes.push_back(nodes[id]);
        cost += single.cost();
      }
    }
    uint32_t innermost = plan.reducedAxes.empty() ? last : plan.reducedAxes.back();
    int64_t extent = plan.space.axes[innermost].extent;
    int64_t trips = extent < 0 ? 1024 : plan.alongRows ? extent / lanes : extent;
    int64_t most = cost > 60 ? 1 : cost > 24 ? 2 : 4;
    turns = std::clamp<int64_t>(std::min(trips, most), 1, std::max<int64_t>(1, 8 / vectors));
    if (plan.blockThreads)
      turns = 1;
    Values initial;
    for (unsigned turn = 0; turn < turns; ++turn)
      for (NodeId id : accumulators)
        for (unsigned vector = 0; vector < vectors; ++vector)
          initialValues(id, initial);
    Values final = plan.reducedAxes.empty() ? passBody({}, {}, initial) : passAxis(0, initial);
    finish(final);
  }

  void initialValues(NodeId id, Values &into) {
    mlir::Type type = elementType(nodes[id].a);
    into.push_back(e.reductionIdentity(reductionOf(nodes[id].kind), type));
    if (isArgument(nodes[id].kind))
      into.push_back(e.integerConstant(e.vectorOf(e.i64Type(), lanes), 0));
  }

  Values passAxis(uint32_t position, ValueRange carried) {
    uint32_t axis = plan.reducedAxes[position];
    Value zero = e.index(0), extent = space.extent(axis);
    if (axis == last && plan.blockThreads)
      return e.loop(e.threadIndex(), extent, plan.blockThreads, carried,
                    [&](Value i, ValueRange values) { return passBody(i, {}, values); });
    if (axis == last)
      return e.vectorLoop(
          zero, extent, lanes, turns, carried,
          [&](Value i, Value mask, ValueRange values) { return passBody(i, mask, values); });
    auto body = [&](Value i, ValueRange values) {
      indices[axis] = i;
      return position + 1 == plan.reducedAxes.size() ? passBody({}, {}, values)
                                                     : passAxis(position + 1, values);
    };
    bool innermost = position + 1 == plan.reducedAxes.size();
    return e.unrolledLoop(zero, extent, innermost ? turns : 1, carried, body);
  }

  /// One step: `i` and `mask` along the last axis where that is reduced.
  Values passBody(Value i, Value mask, ValueRange carried) {
    Value inside = mask;
    if (plan.alongRows)
      if (Value unpadded = space.padMask(indices, i, lanes))
        inside = mask ? e.bitAnd(mask, unpadded) : unpadded;
    for (size_t id = 0; id < nodes.size(); ++id)
      if (needed[id])
        emitFull(id, i, mask);
    storeFull(i, mask, inside);
    Values next(carried);
    size_t position = 0;
    for (NodeId id : accumulators)
      for (unsigned vector = 0; vector < vectors; ++vector)
        position = accumulate(id, vector, i, inside, next, position);
    // The next step takes the accumulators after these.
    std::rotate(next.begin(), next.begin() + position, next.end());
    return next;
  }

  void emitFull(NodeId id, Value i, Value mask) {
    fullRegisters[id].clear();
    const ExpressionNode &node = nodes[id];
    for (unsigned vector = 0; vector < vectors; ++vector) {
      Value place = plan.alongRows ? i : laneIndex(vector),
            lanesIn = plan.alongRows ? mask : rowMask;
      Value value;
      if (node.kind == Kind::Leaf || plan.atHome(id, currentPass)) {
        uint32_t operand = node.kind == Kind::Leaf ? operandOf(node.value) : homeOf(id);
        value = space.loadAlongLast(operand, space.offset(operand, indices, last), place, lanes,
                                    lanesIn);
      } else {
        value = emitPrimitive(e, node, full(node.a, vector), full(node.b, vector),
                              full(node.c, vector), lanes);
      }
      fullRegisters[id].push_back(value);
    }
  }

  uint32_t homeOf(NodeId id) {
    for (const RowsPlan::Home &home : plan.homes)
      if (home.node == id)
        return plan.outputs[home.output].operand;
    return 0;
  }

  /// A node's vector within a step, whether full or of the whole row.
  Value full(NodeId id, unsigned vector) {
    if (id == kNoNode)
      return {};
    return plan.uses[id].full ? fullRegisters[id][vector]
                              : e.splat(reducedRegisters[id][vector], lanes);
  }

  void storeFull(Value i, Value mask, Value inside) {
    auto storeAt = [&](uint32_t number, NodeId node) {
      uint32_t operand = plan.outputs[number].operand;
      Value base = space.offset(operand, indices, last);
      for (unsigned vector = 0; vector < vectors; ++vector) {
        Value value = full(node, vector), place = plan.alongRows ? i : laneIndex(vector);
        Value unpadded = plan.alongRows ? (inside == mask ? Value() : inside)
                                        : space.padMask(indices, place, lanes);
        if (unpadded)
          value = e.select(unpadded, value, e.constant(value.getType(), 0));
        e.storeVector(space.type(operand), value, space.pointer(operand), e.add(base, place),
                      plan.alongRows ? mask : rowMask);
      }
    };
    for (uint32_t number = 0; number < plan.outputs.size(); ++number) {
      const RowsPlan::Output &output = plan.outputs[number];
      int pass = plan.uses[output.node].full ? plan.uses[output.node].pass : plan.passes - 1;
      if (output.full && pass == currentPass)
        storeAt(number, output.node);
    }
    for (const RowsPlan::Home &home : plan.homes)
      if (plan.uses[home.node].pass == currentPass && plan.outputs[home.output].node != home.node)
        storeAt(home.output, home.node);
  }

  // --- Accumulators ---

  static bool mayLoseNan(const ExpressionNode &node) {
    return node.kind == Kind::ReduceMax && isFloatType(node.type) && node.integer;
  }

  Value combine(const ExpressionNode &node, Value a, Value b) {
    return mayLoseNan(node) ? e.fastMaximum(a, b) : e.combine(reductionOf(node.kind), a, b);
  }

  size_t accumulate(NodeId id, unsigned vector, Value i, Value inside, Values &values,
                    size_t position) {
    const ExpressionNode &node = nodes[id];
    Value element = full(node.a, vector);
    Emitter::Reduction kind = reductionOf(node.kind);
    if (!isArgument(node.kind)) {
      if (plan.alongRows && inside)
        element = e.select(inside, element, e.reductionIdentity(kind, element.getType()));
      values[position] = combine(node, values[position], element);
      return position + 1;
    }
    Value index =
        plan.alongRows
            ? e.add(e.iota(lanes, e.i64Type()), i)
            : e.splat(plan.reducedAxes.empty() ? e.index(0) : indices[plan.reducedAxes[0]], lanes);
    Value better = isBetter(node, element, values[position]);
    if (plan.alongRows && inside)
      better = e.bitAnd(better, inside);
    values[position] = e.select(better, element, values[position]);
    values[position + 1] = e.select(better, index, values[position + 1]);
    return position + 2;
  }

  Value isBetter(const ExpressionNode &node, Value candidate, Value best) {
    bool lastIndex = node.integer != 0;
    if (node.kind == Kind::ReduceArgMax)
      return lastIndex ? e.ge(candidate, best) : e.gt(candidate, best);
    return lastIndex ? e.le(candidate, best) : e.lt(candidate, best);
  }

  void finish(const Values &values) {
    size_t position = 0, group = values.size() / turns;
    for (NodeId id : accumulators) {
      const ExpressionNode &node = nodes[id];
      reducedRegisters[id].clear();
      if (plan.blockThreads) {
        position = finishInBlock(id, values, position);
        continue;
      }
      for (unsigned vector = 0; vector < vectors; ++vector) {
        if (isArgument(node.kind)) {
          reducedRegisters[id].push_back(finishArgument(node, values, position, group));
          position += 2;
          continue;
        }
        Emitter::Reduction kind = reductionOf(node.kind);
        Value total = values[position];
        for (unsigned turn = 1; turn < turns; ++turn)
          total = combine(node, total, values[position + turn * group]);
        if (plan.alongRows)
          total = mayLoseNan(node)
                      ? e.fold(total, [&](Value a, Value b) { return combine(node, a, b); })
                      : e.reduce(kind, total);
        reducedRegisters[id].push_back(total);
        ++position;
      }
    }
  }

  /// One scalar for the whole block of what each of its threads has summed up.
  size_t finishInBlock(NodeId id, const Values &values, size_t position) {
    const ExpressionNode &node = nodes[id];
    Values own{e.extract(values[position], 0)};
    if (isArgument(node.kind))
      own.push_back(e.extract(values[position + 1], 0));
    Values whole = combineInBlock(e, plan.blockThreads, own, [&](const Values &a, const Values &b) {
      return isArgument(node.kind) ? betterOf(node, a, b) : Values{combine(node, a[0], b[0])};
    });
    reducedRegisters[id].push_back(whole.back());
    return position + own.size();
  }

  /// Of two pairs of an element and its index, the one that counts.
  Values betterOf(const ExpressionNode &node, const Values &best, const Values &other) {
    Value strictly =
        node.kind == Kind::ReduceArgMax ? e.gt(other[0], best[0]) : e.lt(other[0], best[0]);
    Value nearer = node.integer != 0 ? e.gt(other[1], best[1]) : e.lt(other[1], best[1]);
    Value take = e.bitOr(strictly, e.bitAnd(e.eq(other[0], best[0]), nearer));
    return {e.select(take, other[0], best[0]), e.select(take, other[1], best[1])};
  }

  Value finishArgument(const ExpressionNode &node, const Values &values, size_t position,
                       size_t group) {
    Value best = values[position], index = values[position + 1];
    bool lastIndex = node.integer != 0;
    for (unsigned turn = 1; turn < turns; ++turn) {
      Values taken =
          betterOf(node, {best, index},
                   {values[position + turn * group], values[position + turn * group + 1]});
      best = taken[0];
      index = taken[1];
    }
    if (!plan.alongRows)
      return index;
    Value top = e.splat(e.reduce(reductionOf(node.kind), best), lanes);
    Value none = e.integerConstant(index.getType(), lastIndex ? -1 : INT64_MAX);
    Value tied = e.select(e.eq(best, top), index, none);
    return e.reduce(lastIndex ? Emitter::Reduction::Max : Emitter::Reduction::Min, tied);
  }

  void storeReduced(const RowsPlan::Output &output) {
    Value base = space.offset(output.operand, indices, last);
    dvt_type type = space.type(output.operand);
    for (unsigned vector = 0; vector < vectors; ++vector) {
      Value value = reducedRegisters[output.node][vector];
      if (plan.alongRows) {
        auto store = [&] { e.store(type, value, space.pointer(output.operand), base); };
        if (plan.blockThreads)
          e.ifTrue(e.eq(e.threadIndex(), e.index(0)), store);
        else
          store();
        continue;
      }
      Value place = laneIndex(vector);
      if (Value unpadded = space.padMask(indices, place, lanes))
        value = e.select(unpadded, value, e.constant(value.getType(), 0));
      e.storeVector(type, value, space.pointer(output.operand), e.add(base, place), rowMask);
    }
  }

  Emitter &e;
  const RowsPlan &plan;
  SpaceEmission space;
  const std::vector<ExpressionNode> &nodes;
  unsigned lanes;
  uint32_t last;
  std::vector<Values> reducedRegisters, fullRegisters; ///< for each node, one for each of `vectors`
  std::vector<Value> indices;
  unsigned vectors = 1, turns = 1;
  Value rowStart, rowMask;
  int currentPass = 0;
  std::vector<bool> needed;
  std::vector<NodeId> accumulators;
};

} // namespace

Status emitRowsKernel(const ProblemReader &problem, const Machine &machine,
                      const Schedule &schedule, KernelModule &module) {
  auto layout = Layout::parse(schedule.parameter(""));
  if (!layout)
    return layout.takeError();
  auto plan = planRows(problem, machine, *layout);
  if (!plan)
    return plan.takeError();
  module.setLanes(lanesAlong(plan->space.axes.back().extent, machine));
  auto count = [&](Emitter &e) {
    return SpaceEmission(e, plan->space).taskCount(plan->split, plan->keptAxes);
  };
  auto body = [&](Emitter &e, Value begin, Value end) { RowsEmitter(e, *plan).emit(begin, end); };
  if (plan->blockThreads)
    module.addBlockPhase(plan->blockThreads, count, body);
  else
    module.addPhase(count, body);
  return Status::success();
}

} // namespace dovetail::codegen
