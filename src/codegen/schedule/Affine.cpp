// SPDX-License-Identifier: Apache-2.0
//
// Plans affine movement: follows each output back to the operands, composing index maps, then
// merges loops that all operands walk alike and chooses which loops become vectors and tiles. A
// concat makes a phase for each of its parts.
#include "codegen/schedule/Affine.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <variant>

#include <fmt/format.h>

#include "codegen/schedule/AffineMap.h"
#include "codegen/schedule/Families.h"
#include "codegen/schedule/Pointwise.h"
#include "support/Layout.h"

namespace dovetail::codegen {

Extent extentFrom(const dvt_extent &extent) {
  if (isStaticExtent(extent))
    return Extent(extent.value);
  auto parsed = Extent::parse(extent.symbol ? extent.symbol : "");
  return parsed ? *parsed : Extent::symbol("?");
}

bool isKnownAtRun(const ProblemReader &problem, const Extent &extent) {
  for (const std::string &symbol : extent.symbols()) {
    dvt_extent place{-1, symbol.c_str(), 0, 0, 1};
    if (!problem.placeOf(place))
      return false;
  }
  return true;
}

namespace {

constexpr double kTypicalExtent = 256;

/// Elements are moved as numbers of their size where nothing is computed.
dvt_type moveType(dvt_type type) {
  switch (type) {
  case DVT_F16:
  case DVT_BF16:
    return DVT_I16;
  case DVT_F64:
  case DVT_U64:
    return DVT_I64;
  default:
    return type;
  }
}

struct Branch {
  uint32_t op, part;
  size_t axis;
  Extent unit, start, extent; ///< of the part; the axis counts in units
};
using Step = std::variant<AxisSet::Split, Branch>;

class PhasePlanner {
public:
  PhasePlanner(const ProblemReader &problem, const Machine &machine,
               const std::vector<std::string> &inputLayouts,
               const std::vector<std::string> &outputLayouts)
      : problem(problem), machine(machine), inputLayouts(inputLayouts),
        outputLayouts(outputLayouts) {
    for (uint32_t i = 0; i < problem.opCount(); ++i)
      onlyMoves &=
          !isPointwiseOp(problem.op(i).name) || !std::strcmp(problem.op(i).name, "identity");
  }

  /// Plans one output, given the steps found so far, and those that follow from them.
  Status plan(uint32_t output, std::vector<Step> steps, std::vector<AffinePhase> &phases) {
    for (int attempt = 0; attempt < 16; ++attempt) {
      phase = AffinePhase();
      axes = AxisSet();
      branches.clear();
      wantedBranch.reset();
      memo.clear();
      outputMap = startMap(output);
      for (const Step &step : steps)
        apply(step);
      auto node = evaluate(output, outputMap);
      if (node) {
        if (Status status = finish(output, *node); !status)
          return status;
        phases.push_back(std::move(phase));
        return Status::success();
      }
      if (axes.wanted) {
        steps.push_back(*axes.wanted);
        continue;
      }
      if (!wantedBranch)
        return node.takeError();
      return planBranches(output, steps, phases);
    }
    return badInput("the loops of these ops split too often");
  }

private:
  /// A map of the output in its layout; the axes are its physical dimensions.
  IndexMap startMap(uint32_t output) {
    const dvt_value &value = problem.value(output);
    Layout layout = layoutOf(output);
    auto physical = physicalDimensions(layout, value.rank);
    for (const SpaceDimension &dimension : *physical) {
      Extent extent = extentFrom(value.extents[dimension.logical]);
      axes.extents.push_back(dimension.inside ? Extent(dimension.block)
                                              : Extent::ceilDiv(extent, Extent(dimension.block)));
    }
    IndexMap map(value.rank, AffineIndex::none(axes.extents.size()));
    for (size_t i = 0; i < physical->size(); ++i) {
      const SpaceDimension &dimension = (*physical)[i];
      map[dimension.logical].coefficients[i] = Extent(dimension.inside ? 1 : dimension.block);
    }
    return map;
  }

  Layout layoutOf(uint32_t value) const {
    int input = problem.inputOf(value), output = problem.outputOf(value);
    const std::string &text = output >= 0  ? outputLayouts[output]
                              : input >= 0 ? inputLayouts[input]
                                           : std::string();
    auto layout = Layout::parse(text);
    return layout ? *layout : Layout();
  }

  void apply(const Step &step) {
    if (const auto *split = std::get_if<AxisSet::Split>(&step)) {
      axes.extents[split->axis] = split->outer;
      axes.extents.insert(axes.extents.begin() + split->axis + 1, split->inner);
      for (AffineIndex &index : outputMap) {
        Extent coefficient = index.coefficients[split->axis];
        index.coefficients[split->axis] = coefficient * split->inner;
        index.coefficients.insert(index.coefficients.begin() + split->axis + 1, coefficient);
      }
      return;
    }
    const Branch &branch = std::get<Branch>(step);
    branches[branch.op] = branch;
    axes.extents[branch.axis] = *Extent::exactDiv(branch.extent, branch.unit);
    Extent start = *Extent::exactDiv(branch.start, branch.unit);
    for (AffineIndex &index : outputMap)
      index.constant = index.constant + index.coefficients[branch.axis] * start;
  }

  Status planBranches(uint32_t output, const std::vector<Step> &steps,
                      std::vector<AffinePhase> &phases) {
    Branch wanted = *wantedBranch;
    const dvt_op &op = problem.op(wanted.op);
    int64_t axis = concatAxis(op);
    Extent start(0);
    for (uint32_t part = 0; part < op.input_count; ++part) {
      auto operand = ProblemReader::input(op, part);
      Extent extent = extentFrom(problem.value(*operand).extents[axis]);
      Branch branch = wanted;
      branch.part = part;
      branch.start = start;
      branch.extent = extent;
      if (!Extent::exactDiv(extent, wanted.unit) || !Extent::exactDiv(start, wanted.unit))
        return badInput("concat of parts that are no whole blocks");
      start = start + extent;
      if (extent == Extent(0))
        continue;
      std::vector<Step> more = steps;
      more.push_back(branch);
      if (Status status = PhasePlanner(problem, machine, inputLayouts, outputLayouts)
                              .plan(output, more, phases);
          !status)
        return status;
    }
    return Status::success();
  }

  int64_t concatAxis(const dvt_op &op) const {
    int64_t rank = problem.value(*ProblemReader::output(op, 0)).rank;
    int64_t axis = ProblemReader::integer(op, "axis", 0);
    return axis < 0 ? axis + rank : axis;
  }

  // --- Values at an index ---

  Expected<NodeId> evaluate(uint32_t value, const IndexMap &map) {
    std::string key = std::to_string(value);
    for (const AffineIndex &index : map)
      key += ";" + index.text();
    if (auto known = memo.find(key); known != memo.end())
      return known->second;
    auto node = compute(value, map);
    if (node)
      memo[key] = *node;
    return node;
  }

  Expected<NodeId> compute(uint32_t value, const IndexMap &map) {
    int producer = problem.producerOf(value);
    if (producer < 0)
      return leaf(value, map);
    const dvt_op &op = problem.op(producer);
    if (!std::strcmp(op.name, "concat"))
      return concat(producer, map);
    if (isAffineMovement(op.name)) {
      auto mapped = operandMap(problem, op, value, map, axes);
      if (!mapped)
        return mapped.takeError();
      return evaluate(*ProblemReader::input(op, 0), *mapped);
    }
    return pointwise(op, value, map);
  }

  Expected<NodeId> concat(uint32_t number, const IndexMap &map) {
    const dvt_op &op = problem.op(number);
    int64_t axis = concatAxis(op);
    if (axis < 0 || axis >= int64_t(map.size()))
      return badInput("concat has axis {}", axis);
    for (uint32_t i = 0; i < op.input_count; ++i)
      if (!ProblemReader::input(op, i))
        return badInput("concat lacks an operand");
    if (auto branch = branches.find(number); branch != branches.end()) {
      IndexMap mapped = map;
      mapped[axis] = map[axis].plus(Extent(0) - branch->second.start);
      return evaluate(*ProblemReader::input(op, branch->second.part), mapped);
    }
    // The loop that runs over the parts: the rest of the index stays below one of its steps.
    const AffineIndex &index = map[axis];
    for (size_t i = 0; i < axes.extents.size(); ++i) {
      const Extent &unit = index.coefficients[i];
      if (unit == Extent(0) || index.constant != Extent(0))
        continue;
      auto parts = axes.divide(index, unit);
      if (parts && parts->first.pureAxis() == int(i)) {
        wantedBranch = Branch{number, 0, i, unit, Extent(0), Extent(0)};
        break;
      }
    }
    return badInput("concat along an index that no loop runs over");
  }

  Expected<NodeId> pointwise(const dvt_op &op, uint32_t result, const IndexMap &map) {
    std::map<uint32_t, NodeId> given;
    const dvt_value &shape = problem.value(result);
    for (uint32_t i = 0; i < op.input_count; ++i) {
      auto operand = ProblemReader::input(op, i);
      if (!operand)
        continue;
      const dvt_value &value = problem.value(*operand);
      auto dimensions = operandDimensions(problem, op, i);
      if (!dimensions)
        return dimensions.takeError();
      IndexMap mapped(value.rank, AffineIndex::none(axes.extents.size()));
      for (uint32_t j = 0; j < value.rank; ++j) {
        uint32_t from = (*dimensions)[j];
        if (!surelyBroadcasts(value.extents[j], shape.extents[from]))
          return badInput("{}: {} may not broadcast to {}", op.name, valueText(value),
                          valueText(shape));
        if (!isOne(value.extents[j]))
          mapped[j] = map[from];
      }
      auto node = evaluate(*operand, mapped);
      if (!node)
        return node;
      given[*operand] = *node;
    }
    phase.expression.nodeOf = given;
    if (Status status = phase.expression.add(problem, op); !status)
      return status.takeError();
    return phase.expression.nodeOf.at(result);
  }

  Expected<NodeId> leaf(uint32_t value, const IndexMap &map) {
    dvt_type type = problem.value(value).type;
    if (problem.uniformLiteral(value)) {
      phase.expression.nodeOf.clear();
      return phase.expression.leaf(problem, value);
    }
    if (!elementBytes(type))
      return badInput("{} has elements that are no whole bytes", valueText(problem.value(value)));
    auto operand = place(value, map, layoutOf(value));
    if (!operand)
      return operand.takeError();
    ExpressionNode node{ExpressionKind::Leaf, onlyMoves ? moveType(type) : type};
    node.value = phase.operands.size();
    phase.operands.push_back(std::move(*operand));
    phase.expression.nodes.push_back(node);
    return NodeId(phase.expression.nodes.size() - 1);
  }

public:
  /// Offset and strides of a tensor in a layout, walked by a map.
  Expected<AffineOperand> place(uint32_t number, const IndexMap &map, const Layout &layout) {
    const dvt_value &value = problem.value(number);
    auto physical = physicalDimensions(layout, value.rank);
    if (!physical)
      return badInput("layout {} is not supported", layout.text());
    AffineIndex position = AffineIndex::none(axes.extents.size());
    Extent stride(1);
    for (size_t i = physical->size(); i-- > 0;) {
      const SpaceDimension &dimension = (*physical)[i];
      AffineIndex index = map[dimension.logical];
      Extent extent = extentFrom(value.extents[dimension.logical]);
      if (dimension.block != 1) {
        auto parts = axes.divide(index, Extent(dimension.block));
        if (!parts)
          return badInput("{} is read across the blocks of its layout", valueText(value));
        index = dimension.inside ? parts->second : parts->first;
        extent = dimension.inside ? Extent(dimension.block)
                                  : Extent::ceilDiv(extent, Extent(dimension.block));
      }
      position = position + index.times(stride);
      stride = stride * extent;
    }
    return AffineOperand{number, position.constant, position.coefficients};
  }

  AffinePhase phase;
  AxisSet axes;

  /// Completes a phase whose operands and outputs are placed.
  Status finishLoops() {
    phase.axes = axes.extents;
    phase.guard.coefficients.resize(phase.axes.size());
    dropAndMerge();
    for (const Extent &extent : phase.axes)
      phase.typical.push_back(typicalOf(extent));
    chooseVectors();
    return checkExtents();
  }

private:
  Status finish(uint32_t output, NodeId node) {
    auto target = place(output, outputMap, layoutOf(output));
    if (!target)
      return target.takeError();
    phase.outputs.push_back({std::move(*target), node});
    // Padding would have to be written, too.
    auto physical = physicalDimensions(layoutOf(output), problem.value(output).rank);
    for (const SpaceDimension &dimension : *physical) {
      const dvt_extent &extent = problem.value(output).extents[dimension.logical];
      if ((isStaticExtent(extent) ? extent.value : extent.divisor) % dimension.block)
        return badInput("blocks of {} are padded", valueText(problem.value(output)));
    }
    return finishLoops();
  }

  template <typename Visit> void forOperands(Visit visit) {
    for (AffineOperand &operand : phase.operands)
      visit(operand);
    for (AffinePhase::Output &output : phase.outputs)
      visit(output.target);
  }

  void removeAxis(size_t axis) {
    phase.axes.erase(phase.axes.begin() + axis);
    phase.guard.coefficients.erase(phase.guard.coefficients.begin() + axis);
    forOperands(
        [&](AffineOperand &operand) { operand.strides.erase(operand.strides.begin() + axis); });
  }

  void dropAndMerge() {
    for (size_t axis = phase.axes.size(); axis-- > 0;)
      if (phase.axes[axis] == Extent(1))
        removeAxis(axis);
    for (size_t axis = 0; axis + 1 < phase.axes.size();) {
      bool same = phase.guard.coefficients[axis] == 0 && phase.guard.coefficients[axis + 1] == 0;
      forOperands([&](AffineOperand &operand) {
        same &= operand.strides[axis] == operand.strides[axis + 1] * phase.axes[axis + 1];
      });
      if (!same) {
        ++axis;
        continue;
      }
      phase.axes[axis + 1] = phase.axes[axis] * phase.axes[axis + 1];
      removeAxis(axis);
    }
    if (phase.axes.empty()) {
      phase.axes.push_back(Extent(1));
      phase.guard.coefficients.push_back(0);
      forOperands([](AffineOperand &operand) { operand.strides.push_back(Extent(1)); });
    }
  }

  double typicalOf(const Extent &extent) const {
    if (extent.isStatic())
      return double(extent.value());
    SymbolValues values;
    for (const std::string &symbol : extent.symbols())
      values[symbol] = int64_t(kTypicalExtent);
    return double(std::max<int64_t>(1, extent.evaluate(values).value_or(int64_t(kTypicalExtent))));
  }

  void moveAxisLast(size_t axis) {
    auto last = [&](auto &list) {
      std::rotate(list.begin() + axis, list.begin() + axis + 1, list.end());
    };
    last(phase.axes);
    last(phase.typical);
    last(phase.guard.coefficients);
    forOperands([&](AffineOperand &operand) { last(operand.strides); });
  }

  void chooseVectors() {
    size_t count = phase.axes.size();
    const AffineOperand &target = phase.outputs[0].target;
    size_t vector = count - 1;
    for (size_t axis = 0; axis < count; ++axis)
      if (target.strides[axis] == Extent(1))
        vector = axis;
    moveAxisLast(vector);
    phase.vectorAxis = count - 1;
    for (const AffineOperand &operand : phase.operands) {
      const Extent &along = operand.strides[count - 1];
      if (along == Extent(0) || along == Extent(1) || phase.tileAxis >= 0 || machine.isDevice())
        continue;
      for (size_t axis = 0; axis + 1 < count; ++axis)
        if (operand.strides[axis] == Extent(1) && phase.typical[axis] >= 4 &&
            phase.typical[count - 1] >= 3) {
          moveAxisLast(axis);
          moveAxisLast(count - 2);
          phase.tileAxis = int(count) - 2;
          break;
        }
    }
    std::vector<Axis> loops;
    for (size_t axis = 0; axis < count; ++axis)
      loops.push_back(
          {{}, phase.axes[axis].staticValue().value_or(-1), phase.typical[axis], false});
    double grain = std::clamp(32768 / (2 + phase.expression.cost()), 512.0, 16384.0);
    int64_t step = 4 * machine.isa.f32Lanes;
    if (phase.tileAxis >= 0) { // the last two loops are walked in tiles: only the outer one is cut
      loops.pop_back();
      grain = std::max(1.0, grain / phase.typical[count - 1]);
      step = machine.isa.f32Lanes;
    }
    phase.split = splitTasks(loops, machine.grain(grain), machine.chunkStep(step));
  }

  Status checkExtents() {
    bool known = true;
    auto check = [&](const Extent &extent) { known &= isKnownAtRun(problem, extent); };
    std::for_each(phase.axes.begin(), phase.axes.end(), check);
    forOperands([&](AffineOperand &operand) {
      check(operand.offset);
      std::for_each(operand.strides.begin(), operand.strides.end(), check);
    });
    return known
               ? Status::success()
               : Status(badInput("an extent cannot be computed from those of inputs and outputs"));
  }

  const ProblemReader &problem;
  const Machine &machine;
  const std::vector<std::string> &inputLayouts, &outputLayouts;
  bool onlyMoves = true; ///< nothing is computed
  IndexMap outputMap;
  std::map<uint32_t, Branch> branches;
  std::optional<Branch> wantedBranch;
  std::map<std::string, NodeId> memo;
};

/// A change of layout: loops over whole blocks of the larger kind, guarded where one side has fewer
/// elements.
Expected<AffinePhase> planReorder(const ProblemReader &problem, const Machine &machine,
                                  const Layout &from, const Layout &to) {
  uint32_t input = problem.problem().inputs[0], output = problem.problem().outputs[0];
  const dvt_value &value = problem.value(output);
  auto source = physicalDimensions(from, value.rank), target = physicalDimensions(to, value.rank);
  if (!source || !target)
    return badInput("dvt_reorder between {} and {} of {}", from.text(), to.text(),
                    valueText(value));
  std::vector<std::string> none;
  PhasePlanner planner(problem, machine, none, none);
  auto blockOf = [&](const std::vector<SpaceDimension> &dimensions, uint32_t logical) {
    for (const SpaceDimension &dimension : dimensions)
      if (dimension.logical == logical)
        return dimension.block;
    return int64_t(1);
  };
  struct Piece {
    uint32_t logical;
    int64_t factor;
  };
  std::vector<Piece> pieces;
  auto addAxis = [&](uint32_t logical, int64_t factor, Extent extent) {
    pieces.push_back({logical, factor});
    planner.axes.extents.push_back(std::move(extent));
  };
  for (const SpaceDimension &dimension : *target) {
    uint32_t logical = dimension.logical;
    Extent extent = extentFrom(value.extents[logical]);
    int64_t a = blockOf(*source, logical), b = blockOf(*target, logical);
    int64_t large = std::max(a, b), small = std::min(a, b);
    if (large % small)
      return badInput("dvt_reorder between blocks of {} and {}", a, b);
    if (!dimension.inside) {
      addAxis(logical, large, Extent::ceilDiv(extent, Extent(large)));
      if (b < large)
        addAxis(logical, b, Extent(large / b));
    } else if (a < large && a > 1) {
      addAxis(logical, a, Extent(large / a));
      addAxis(logical, 1, Extent(a));
    } else {
      addAxis(logical, 1, Extent(b));
    }
  }
  size_t count = pieces.size();
  IndexMap map(value.rank, AffineIndex::none(count));
  for (size_t i = 0; i < count; ++i)
    map[pieces[i].logical].coefficients[i] = Extent(pieces[i].factor);
  AffineGuard &guard = planner.phase.guard;
  guard.coefficients.resize(count);
  for (uint32_t logical = 0; logical < value.rank; ++logical) {
    int64_t a = blockOf(*source, logical), b = blockOf(*target, logical), large = std::max(a, b);
    const dvt_extent &extent = value.extents[logical];
    bool whole = (isStaticExtent(extent) ? extent.value : extent.divisor) % large == 0;
    if (whole || a == b)
      continue;
    if (guard.loadLimit || guard.storeLimit)
      return badInput("dvt_reorder with padding in two dimensions");
    for (size_t i = 0; i < count; ++i)
      guard.coefficients[i] = pieces[i].logical == logical ? pieces[i].factor : 0;
    Extent length = extentFrom(extent);
    if (a < large)
      guard.loadLimit = length;
    if (b < large)
      guard.storeLimit = b == 1 ? length : Extent::ceilDiv(length, Extent(b)) * Extent(b);
  }
  auto read = planner.place(input, map, from), written = planner.place(output, map, to);
  if (!read || !written)
    return read ? written.takeError() : read.takeError();
  if (!elementBytes(value.type))
    return badInput("dvt_reorder of {}", valueText(value));
  ExpressionNode node{ExpressionKind::Leaf, moveType(value.type)};
  node.value = 0;
  planner.phase.expression.nodes.push_back(node);
  planner.phase.operands.push_back(std::move(*read));
  planner.phase.outputs.push_back({std::move(*written), 0});
  if (Status status = planner.finishLoops(); !status)
    return status.takeError();
  return std::move(planner.phase);
}

} // namespace

Expected<std::vector<AffinePhase>> planAffine(const ProblemReader &problem, const Machine &machine,
                                              const std::vector<std::string> &inputLayouts,
                                              const std::vector<std::string> &outputLayouts) {
  const dvt_problem &source = problem.problem();
  for (uint32_t i = 0; i < source.output_count; ++i)
    if (problem.value(source.outputs[i]).may_alias >= 0)
      return badInput("elements cannot be moved in place");
  if (source.op_count == 1 && !std::strcmp(source.ops[0].name, "dvt_reorder")) {
    auto from = Layout::parse(inputLayouts[0]), to = Layout::parse(outputLayouts[0]);
    if (!from || !to)
      return from ? to.takeError() : from.takeError();
    auto phase = planReorder(problem, machine, *from, *to);
    if (!phase)
      return phase.takeError();
    return std::vector<AffinePhase>{std::move(*phase)};
  }
  std::vector<AffinePhase> phases;
  for (uint32_t i = 0; i < source.output_count; ++i)
    if (Status status = PhasePlanner(problem, machine, inputLayouts, outputLayouts)
                            .plan(source.outputs[i], {}, phases);
        !status)
      return status.takeError();
  return phases;
}

static std::string offerAffine(const ProblemReader &problem, const Machine &machine,
                               const std::string &layout, const ScheduleSink &sink) {
  const dvt_problem &source = problem.problem();
  bool reorder = source.op_count == 1 && !std::strcmp(source.ops[0].name, "dvt_reorder");
  Schedule schedule = Schedule::rowMajor(layout.empty() ? "affine" : "affine:" + layout, source);
  if (reorder) {
    auto canonical = [](std::string_view text) {
      auto parsed = Layout::parse(text);
      return parsed ? parsed->text() : std::string(text);
    };
    schedule.inputLayouts[0] = canonical(ProblemReader::text(source.ops[0], "src_layout", ""));
    schedule.outputLayouts[0] = canonical(ProblemReader::text(source.ops[0], "dst_layout", ""));
  }
  auto laidOut = [&](uint32_t value) {
    const dvt_value &tensor = problem.value(value);
    return tensor.rank > 1 && !isOne(tensor.extents[1]) && !problem.isConstant(value);
  };
  uint32_t rank = problem.value(source.outputs[0]).rank;
  for (uint32_t i = 0; i < source.input_count && !layout.empty(); ++i)
    if (problem.value(source.inputs[i]).rank == rank && laidOut(source.inputs[i]))
      schedule.inputLayouts[i] = layout;
  for (uint32_t i = 0; i < source.output_count && !layout.empty(); ++i)
    schedule.outputLayouts[i] = layout;
  auto phases = planAffine(problem, machine, schedule.inputLayouts, schedule.outputLayouts);
  if (!phases)
    return phases.error().message;
  double elements = 0, cost = 0;
  for (const AffinePhase &phase : *phases) {
    double count = 1;
    for (double typical : phase.typical)
      count *= typical;
    elements += count;
    cost += count * (phase.expression.cost() + (phase.tileAxis >= 0 ? 4 : 1));
  }
  schedule.estimateMicros =
      machine.startMicros() + std::max(cost / machine.isa.f32Lanes / 4000 / machine.threads,
                                       machine.memoryMicros(8 * elements));
  sink.offer(std::move(schedule));
  return {};
}

void proposeAffine(const ProblemReader &problem, const Machine &machine, const ScheduleSink &sink) {
  bool moves = false, keepsChannels = true;
  for (uint32_t i = 0; i < problem.opCount(); ++i) {
    std::string_view name = problem.op(i).name;
    bool movement = isAffineMovement(name) || name == "concat" ||
                    (name == "dvt_reorder" && problem.opCount() == 1);
    if (!movement && !isPointwiseOp(name))
      return;
    moves |= movement;
    keepsChannels &= !movement || name == "concat" || name == "slice" || name == "split" ||
                     name == "identity" || name == "depth_to_space" || name == "space_to_depth";
  }
  if (!moves)
    return;
  if (std::string reason = offerAffine(problem, machine, "", sink); !reason.empty())
    return sink.refuse("affine", reason);
  if (keepsChannels)
    for (const std::string &layout : imageLayouts(problem, machine))
      offerAffine(problem, machine, layout, sink);
}

} // namespace dovetail::codegen
