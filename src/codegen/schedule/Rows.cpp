// SPDX-License-Identifier: Apache-2.0
//
// Plans reductions: finds the reduced tensor and its axes, writes all ops as one expression, places
// operands in the space, and assigns nodes to passes.
#include "codegen/schedule/Rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include <fmt/format.h>

#include "codegen/schedule/Families.h"
#include "codegen/schedule/Pointwise.h"
#include "codegen/schedule/RowExpression.h"

namespace dovetail::codegen {
namespace {

using Kind = ExpressionKind;

constexpr const char *kReductions[] = {"reduce_sum",         "reduce_mean",       "reduce_max",
                                       "reduce_min",         "reduce_prod",       "reduce_l1",
                                       "reduce_l2",          "reduce_sum_square", "reduce_log_sum",
                                       "reduce_log_sum_exp", "arg_max",           "arg_min"};
constexpr const char *kPools[] = {"global_average_pool", "global_max_pool", "global_lp_pool",
                                  "instance_normalization"};
constexpr const char *kAlongAxis[] = {"softmax", "log_softmax", "layer_normalization",
                                      "rms_normalization", "lp_normalization"};

template <size_t N> bool isIn(const char *const (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool keepsDimensions(const dvt_op &op) {
  std::string_view name = op.name;
  return !isIn(kReductions, name) || ProblemReader::integer(op, "keepdims", 1) != 0;
}

bool isReduction(Kind kind) { return kind >= Kind::ReduceSum && kind <= Kind::ReduceArgMax; }

std::vector<uint32_t> lastOf(const std::vector<uint32_t> &dimensions, uint32_t count) {
  return {dimensions.end() - count, dimensions.end()};
}

class RowsPlanner {
public:
  RowsPlanner(const ProblemReader &problem, const Machine &machine, const Layout &layout)
      : problem(problem), machine(machine), layout(layout) {}

  Expected<RowsPlan> build() {
    if (Status status = findRows(); !status)
      return status.takeError();
    for (uint32_t i = 0; i < problem.opCount(); ++i)
      if (Status status = addOp(problem.op(i)); !status)
        return status.takeError();
    if (Status status = makeTheSpace(); !status)
      return status.takeError();
    assignPasses();
    if (Status status = assignHomes(); !status)
      return status.takeError();
    splitWork();
    return std::move(plan);
  }

private:
  /// The dimensions of the space that a value's dimensions are: all of them, or those kept by a
  /// reduction that drops the others; always the last `rank` of these.
  struct Frame {
    bool dropped = false;
  };

  Status findRows() {
    for (uint32_t i = 0; i < problem.opCount(); ++i) {
      const dvt_op &op = problem.op(i);
      if (!isRowOp(op.name))
        continue;
      auto operand = ProblemReader::input(op, 0);
      if (!operand)
        return badInput("{} has no operand", op.name);
      shape = shapeOf(problem.value(*operand));
      auto found = rowAxes(problem, op, shape.size());
      if (!found)
        return found.takeError();
      reduced.assign(shape.size(), false);
      for (uint32_t axis : *found)
        reduced[axis] = true;
      break;
    }
    for (uint32_t i = 0; i < shape.size(); ++i) {
      all.push_back(i);
      if (!reduced[i])
        kept.push_back(i);
    }
    return Status::success();
  }

  const std::vector<uint32_t> &dimensionsOf(Frame frame) const {
    return frame.dropped ? kept : all;
  }

  /// A leaf, or a value computed before, takes part in an op of this frame.
  Status use(uint32_t value, Frame frame, std::vector<uint32_t> dimensions = {}) {
    const dvt_value &tensor = problem.value(value);
    if (problem.uniformLiteral(value))
      return Status::success();
    if (tensor.rank > dimensionsOf(frame).size())
      return badInput("{} has more dimensions than what is reduced", valueText(tensor));
    if (dimensions.empty())
      dimensions = lastOf(dimensionsOf(frame), tensor.rank);
    auto [place, first] = dimensionsOfValue.try_emplace(value, dimensions);
    if (!first && place->second != dimensions)
      return badInput("{} is used in two alignments", valueText(tensor));
    return Status::success();
  }

  Status define(uint32_t value, Frame frame) {
    const dvt_value &tensor = problem.value(value);
    if (tensor.rank > dimensionsOf(frame).size())
      return badInput("{} has more dimensions than what is reduced leaves", valueText(tensor));
    frames[value] = frame;
    dimensionsOfValue[value] = lastOf(dimensionsOf(frame), tensor.rank);
    return Status::success();
  }

  Status addOp(const dvt_op &op) {
    if (!isRowOp(op.name))
      return addPointwise(op);
    uint32_t operand = *ProblemReader::input(op, 0);
    if (!sameShape(shapeOf(problem.value(operand)), shape) ||
        (frames.count(operand) && frames[operand].dropped))
      return badInput("{} reduces {}, another op something else", op.name,
                      valueText(problem.value(operand)));
    auto axes = rowAxes(problem, op, shape.size());
    if (!axes)
      return axes.takeError();
    for (uint32_t i = 0; i < shape.size(); ++i)
      if (reduced[i] != (std::find(axes->begin(), axes->end(), i) != axes->end()))
        return badInput("{} reduces other axes than another op does", op.name);
    if (Status status = use(operand, {}); !status)
      return status;
    // Scales and biases; axes are no operand of the expression.
    bool perChannel = std::string_view(op.name) == "instance_normalization";
    for (uint32_t i = 1; i < op.input_count && !isIn(kReductions, op.name); ++i)
      if (auto value = ProblemReader::input(op, i))
        if (Status status =
                use(*value, {}, perChannel ? std::vector<uint32_t>{1} : std::vector<uint32_t>());
            !status)
          return status;
    if (Status status = addRowOp(plan.expression, problem, op); !status)
      return status;
    for (uint32_t i = 0; i < op.output_count; ++i)
      if (auto value = ProblemReader::output(op, i))
        if (Status status = define(*value, {!keepsDimensions(op)}); !status)
          return status;
    return Status::success();
  }

  Status addPointwise(const dvt_op &op) {
    Frame frame;
    bool any = false;
    for (uint32_t i = 0; i < op.input_count; ++i)
      if (auto value = ProblemReader::input(op, i))
        if (auto known = frames.find(*value); known != frames.end() && (!any || frame.dropped)) {
          frame = known->second;
          any = true;
        }
    for (uint32_t i = 0; i < op.input_count; ++i)
      if (auto value = ProblemReader::input(op, i))
        if (Status status = useAligned(op, i, *value, frame); !status)
          return status;
    if (Status status = plan.expression.add(problem, op); !status)
      return status;
    return define(*ProblemReader::output(op, 0), frame);
  }

  Status useAligned(const dvt_op &op, uint32_t position, uint32_t value, Frame frame) {
    auto dimensions = operandDimensions(problem, op, position);
    if (!dimensions)
      return dimensions.takeError();
    uint32_t rank = problem.value(*ProblemReader::output(op, 0)).rank;
    if (rank > dimensionsOf(frame).size())
      return badInput("{} has more dimensions than what is reduced", op.name);
    for (uint32_t &dimension : *dimensions)
      dimension = lastOf(dimensionsOf(frame), rank)[dimension];
    return use(value, frame, *dimensions);
  }

  Status makeTheSpace() {
    // A block of one channel is all padding; nothing says of such tensors that they lie in blocks.
    for (const Layout::Block &block : layout.blocks)
      if (block.dimension < shape.size() && isOne(shape[block.dimension]))
        return badInput("layout {} blocks a dimension of extent 1", layout.text());
    SpaceRequest request;
    request.shape = shape;
    request.layout = layout;
    request.kind = reduced;
    auto laidOut = [&](uint32_t value) {
      const dvt_value &tensor = problem.value(value);
      return tensor.rank == shape.size() && tensor.rank > 1 && !isOne(tensor.extents[1]) &&
             dimensionsOfValue[value] == all;
    };
    for (const ExpressionNode &node : plan.expression.nodes)
      if (node.kind == Kind::Leaf) {
        bool constant = problem.isConstant(node.value) || problem.isLiteral(node.value);
        request.tensors.push_back({node.value,
                                   !layout.isRowMajor() && !constant && laidOut(node.value),
                                   constant, dimensionsOfValue[node.value]});
      }
    const dvt_problem &source = problem.problem();
    for (uint32_t i = 0; i < source.output_count; ++i) {
      uint32_t value = source.outputs[i];
      auto node = plan.expression.nodeOf.find(value);
      if (node == plan.expression.nodeOf.end())
        return badInput("{} is not computed", valueText(problem.value(value)));
      request.tensors.push_back(
          {value, !layout.isRowMajor() && laidOut(value), false, dimensionsOfValue[value]});
      plan.outputs.push_back({value, uint32_t(request.tensors.size() - 1), node->second, false});
    }
    auto space = makeSpace(problem, request);
    if (!space)
      return space.takeError();
    plan.space = std::move(*space);
    for (uint32_t axis = 0; axis < plan.space.axes.size(); ++axis) {
      const auto &dimensions = plan.space.axes[axis].dimensions;
      bool isReduced = !dimensions.empty() && reduced[dimensions[0].logical];
      plan.reducedAxis.push_back(isReduced);
      (isReduced ? plan.reducedAxes : plan.keptAxes).push_back(axis);
    }
    for (const ExpressionNode &node : plan.expression.nodes)
      if ((node.kind == Kind::ReduceArgMin || node.kind == Kind::ReduceArgMax) &&
          (plan.reducedAxes.size() > 1 ||
           (plan.reducedAxes.size() == 1 &&
            plan.space.axes[plan.reducedAxes[0]].dimensions[0].block != 1)))
        return badInput("positions along blocks are not found");
    return checkOutputs();
  }

  /// An output must be written once for each element: it has all kept dimensions, and all reduced
  /// ones or none.
  Status checkOutputs() {
    for (RowsPlan::Output &output : plan.outputs) {
      const dvt_value &tensor = problem.value(output.value);
      const auto &dimensions = dimensionsOfValue[output.value];
      bool full = true, none = true;
      std::vector<bool> has(shape.size(), false);
      for (uint32_t i = 0; i < tensor.rank; ++i)
        has[dimensions[i]] = sameExtent(tensor.extents[i], shape[dimensions[i]]);
      for (uint32_t i = 0; i < shape.size(); ++i) {
        bool there = has[i] || isOne(shape[i]);
        if (!reduced[i] && !there)
          return badInput("output {} lacks a dimension that is not reduced", valueText(tensor));
        full &= there;
        none &= !reduced[i] || !has[i] || isOne(shape[i]);
      }
      const SpaceOperand &operand = plan.space.operands[output.operand];
      uint32_t last = plan.space.axes.size() - 1;
      if (operand.present[last] && !operand.contiguousAlong(last))
        return badInput("output {} is not contiguous along the space's last axis",
                        valueText(tensor));
      if (!full && !none)
        return badInput("output {} has some of the reduced dimensions", valueText(tensor));
      output.full = full && !none;
    }
    return Status::success();
  }

  std::array<NodeId, 3> operandsOf(NodeId id) const {
    const ExpressionNode &node = plan.expression.nodes[id];
    return {node.a, node.b, node.c};
  }

  void assignPasses() {
    auto &uses = plan.uses;
    const auto &nodes = plan.expression.nodes;
    uses.resize(nodes.size());
    for (const RowsPlan::Output &output : plan.outputs)
      uses[output.node].needed = true;
    for (size_t i = nodes.size(); i-- > 0;)
      if (uses[i].needed)
        for (NodeId operand : operandsOf(i))
          if (operand != kNoNode)
            uses[operand].needed = true;
    for (size_t i = 0; i < nodes.size(); ++i) {
      RowsPlan::NodeUse &use = uses[i];
      if (nodes[i].kind == Kind::Leaf) {
        const SpaceOperand &operand = *plan.space.find(nodes[i].value);
        for (uint32_t axis : plan.reducedAxes)
          use.full |= operand.present[axis];
        continue;
      }
      for (NodeId operand : operandsOf(i))
        if (operand != kNoNode) {
          use.full |= uses[operand].full;
          use.pass = std::max(use.pass, uses[operand].pass);
        }
      if (isReduction(nodes[i].kind)) {
        // Something that is the same for the whole row is reduced like anything else.
        use.full = false;
        use.pass += 1;
      }
      if (use.needed)
        plan.passes = std::max(plan.passes, use.full ? use.pass + 1 : use.pass);
    }
    for (RowsPlan::Output &output : plan.outputs)
      if (output.full)
        plan.passes = std::max(plan.passes, uses[output.node].pass + 1);
  }

public:
  /// Full nodes that pass `pass` computes or loads; a node with a home that was filled before is
  /// loaded.
  static std::vector<bool> neededIn(const RowsPlan &plan, int pass) {
    const auto &nodes = plan.expression.nodes;
    std::vector<bool> needed(nodes.size(), false);
    for (const RowsPlan::Output &output : plan.outputs)
      if (output.full && firstPass(plan, output.node) == pass)
        needed[output.node] = true;
    for (const RowsPlan::Home &home : plan.homes)
      if (plan.uses[home.node].pass == pass)
        needed[home.node] = true;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (isReduction(nodes[i].kind) && plan.uses[i].needed && plan.uses[i].pass == pass + 1)
        needed[nodes[i].a] = true;
    for (size_t i = nodes.size(); i-- > 0;) {
      if (!needed[i])
        continue;
      if (!plan.uses[i].full || atHome(plan, i, pass))
        continue;
      for (NodeId operand : {nodes[i].a, nodes[i].b, nodes[i].c})
        if (operand != kNoNode)
          needed[operand] = true;
    }
    for (size_t i = 0; i < nodes.size(); ++i)
      needed[i] = needed[i] && plan.uses[i].full;
    return needed;
  }

  static int firstPass(const RowsPlan &plan, NodeId node) {
    return plan.uses[node].full ? plan.uses[node].pass : plan.passes - 1;
  }

  static bool atHome(const RowsPlan &plan, NodeId node, int pass) {
    return std::any_of(plan.homes.begin(), plan.homes.end(), [&](const RowsPlan::Home &home) {
      // A guest stays until the output's own pass overwrites it.
      NodeId own = plan.outputs[home.output].node;
      return home.node == node && plan.uses[node].pass < pass &&
             (own == node || pass <= firstPass(plan, own));
    });
  }

private:
  double recomputeCost(NodeId id, std::set<NodeId> &seen) const {
    if (!plan.uses[id].full || !seen.insert(id).second)
      return 0;
    const ExpressionNode &node = plan.expression.nodes[id];
    Expression single;
    single.nodes.push_back(node);
    double cost = node.kind == Kind::Leaf ? 1 : single.cost();
    for (NodeId operand : operandsOf(id))
      if (operand != kNoNode)
        cost += recomputeCost(operand, seen);
    return cost;
  }

  bool usedLater(NodeId id) const {
    const auto &nodes = plan.expression.nodes;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (plan.uses[i].needed && (nodes[i].a == id || nodes[i].b == id || nodes[i].c == id) &&
          (isReduction(nodes[i].kind) ? plan.uses[i].pass - 1 : plan.uses[i].pass) >
              plan.uses[id].pass)
        return true;
    return false;
  }

  Status assignHomes() {
    for (uint32_t i = 0; i < plan.outputs.size(); ++i)
      if (plan.outputs[i].full && plan.uses[plan.outputs[i].node].full)
        plan.homes.push_back({plan.outputs[i].node, i});
    size_t own = plan.homes.size();
    for (uint32_t i = 0; i < plan.outputs.size(); ++i) {
      const RowsPlan::Output &output = plan.outputs[i];
      if (!output.full || problem.value(output.value).type != DVT_F32 ||
          plan.uses[output.node].pass == 0)
        continue;
      NodeId best = kNoNode;
      double bestCost = 8;
      for (NodeId id = 0; id < plan.uses.size(); ++id) {
        const RowsPlan::NodeUse &use = plan.uses[id];
        bool taken = std::any_of(plan.homes.begin(), plan.homes.end(),
                                 [&](const RowsPlan::Home &home) { return home.node == id; });
        if (!use.needed || !use.full || taken || plan.expression.nodes[id].type != DVT_F32 ||
            use.pass >= plan.uses[output.node].pass || !usedLater(id))
          continue;
        std::set<NodeId> seen;
        double cost = recomputeCost(id, seen);
        if (cost > bestCost) {
          best = id;
          bestCost = cost;
        }
      }
      if (best != kNoNode)
        plan.homes.push_back({best, i});
    }
    if (overwritesOperands())
      plan.homes.resize(own);
    if (overwritesOperands())
      return badInput("an output computed in place would overwrite an operand that is read again");
    return Status::success();
  }

  /// Whether an output that shares an input's memory is written in a pass before one that reads the
  /// input, or where other rows read it.
  bool overwritesOperands() const {
    for (uint32_t i = 0; i < plan.outputs.size(); ++i) {
      int32_t alias = problem.value(plan.outputs[i].value).may_alias;
      if (alias < 0 || alias >= int32_t(problem.problem().input_count))
        continue;
      uint32_t input = problem.problem().inputs[alias];
      // Of one along other dimensions elements are read by other rows, too.
      const SpaceOperand *read = plan.space.find(input);
      if (read && read->dimensions != plan.space.operands[plan.outputs[i].operand].dimensions)
        return true;
      int first = firstPass(plan, plan.outputs[i].node);
      for (const RowsPlan::Home &home : plan.homes)
        if (home.output == i)
          first = std::min(first, plan.uses[home.node].pass);
      for (int pass = first + 1; pass < plan.passes; ++pass) {
        std::vector<bool> needed = neededIn(plan, pass);
        for (size_t id = 0; id < needed.size(); ++id)
          if (needed[id] && plan.expression.nodes[id].kind == Kind::Leaf &&
              plan.expression.nodes[id].value == input)
            return true;
      }
    }
    return false;
  }

  void splitWork() {
    double row = 1;
    for (uint32_t axis : plan.reducedAxes)
      row *= std::max(1.0, plan.space.axes[axis].typical);
    for (uint32_t axis : plan.keptAxes)
      plan.taskAxes.push_back(plan.space.axes[axis]);
    plan.alongRows = plan.reducedAxis.back();
    double along = plan.space.axes.back().typical;
    if (machine.isDevice() && plan.alongRows && along >= kFewestShared)
      plan.blockThreads = uint32_t(std::bit_ceil(uint64_t(std::clamp(along / 4, 64.0, 256.0))));
    double grain = std::clamp(65536 / (4 + plan.expression.cost()), 1024.0, 16384.0);
    plan.split = splitTasks(plan.taskAxes, machine.grain(std::max(1.0, grain / row)),
                            plan.alongRows ? 1 : machine.isa.f32Lanes);
  }

  static constexpr double kFewestShared = 48; ///< elements that a block of a device shares

  const ProblemReader &problem;
  const Machine &machine;
  const Layout &layout;
  RowsPlan plan;
  std::vector<dvt_extent> shape;
  std::vector<bool> reduced; ///< for each logical dimension
  std::vector<uint32_t> all, kept;
  std::map<uint32_t, Frame> frames; ///< of values that ops have defined
  std::map<uint32_t, std::vector<uint32_t>> dimensionsOfValue;
};

double estimate(const ProblemReader &problem, const Machine &machine, const RowsPlan &plan) {
  double elements = 1, bytes = 0;
  for (const Axis &axis : plan.space.axes)
    elements *= axis.typical;
  for (const SpaceOperand &operand : plan.space.operands)
    bytes += ProblemReader::typicalElements(problem.value(operand.value)) *
             elementBytes(problem.value(operand.value).type);
  double compute = elements * (plan.passes + plan.expression.cost()) / machine.isa.f32Lanes /
                   4000.0 / machine.threads;
  return machine.startMicros() + std::max(compute, machine.memoryMicros(bytes));
}

} // namespace

bool isRowOp(std::string_view name) {
  return isIn(kReductions, name) || isIn(kPools, name) || isIn(kAlongAxis, name) ||
         name == "mean_variance_normalization" || name == "dynamic_quantize_linear";
}

Expected<std::vector<uint32_t>> rowAxes(const ProblemReader &problem, const dvt_op &op,
                                        uint32_t rank) {
  std::string_view name = op.name;
  std::vector<int64_t> axes;
  auto from = [&](int64_t first) {
    for (int64_t i = first < 0 ? first + rank : first; i < int64_t(rank); ++i)
      axes.push_back(i);
  };
  if (name == "dynamic_quantize_linear") {
    from(0);
  } else if (isIn(kPools, name)) {
    from(2);
  } else if (name == "layer_normalization" || name == "rms_normalization") {
    from(ProblemReader::integer(op, "axis", -1));
  } else if ((name == "softmax" || name == "log_softmax") && op.version < 13) {
    from(ProblemReader::integer(op, "axis", 1));
  } else if (isIn(kAlongAxis, name)) {
    axes.push_back(ProblemReader::integer(op, "axis", -1));
  } else if (name == "arg_max" || name == "arg_min") {
    axes.push_back(ProblemReader::integer(op, "axis", 0));
  } else {
    auto attribute = ProblemReader::integers(op, "axes");
    if (attribute) {
      axes = *attribute;
    } else if (auto value = ProblemReader::input(op, 1)) {
      auto literal = problem.integerLiteral(*value);
      if (!literal)
        return badInput("{} has axes that are known only at run time", name);
      axes = *literal;
    }
    if (axes.empty() && name == "mean_variance_normalization")
      axes = {0, 2, 3};
    if (axes.empty() && ProblemReader::integer(op, "noop_with_empty_axes", 0))
      return badInput("{} over no axes is not supported", name);
    if (axes.empty())
      from(0);
  }
  std::set<uint32_t> distinct;
  for (int64_t axis : axes) {
    int64_t positive = axis < 0 ? axis + rank : axis;
    if (positive < 0 || positive >= int64_t(rank))
      return badInput("{} has axis {} on a tensor of {} dimensions", name, axis, rank);
    distinct.insert(positive);
  }
  return std::vector<uint32_t>(distinct.begin(), distinct.end());
}

Expected<RowsPlan> planRows(const ProblemReader &problem, const Machine &machine,
                            const Layout &layout) {
  return RowsPlanner(problem, machine, layout).build();
}

std::vector<bool> RowsPlan::neededIn(int pass) const { return RowsPlanner::neededIn(*this, pass); }
bool RowsPlan::atHome(NodeId node, int pass) const {
  return RowsPlanner::atHome(*this, node, pass);
}

static std::string offerRows(const ProblemReader &problem, const Machine &machine,
                             const std::string &text, const ScheduleSink &sink) {
  auto layout = Layout::parse(text);
  if (!layout)
    return layout.error().message;
  auto plan = planRows(problem, machine, *layout);
  if (!plan)
    return plan.error().message;
  Schedule schedule = Schedule::rowMajor(text.empty() ? "rows" : "rows:" + text, problem.problem());
  for (const SpaceOperand &operand : plan->space.operands) {
    const dvt_value &value = problem.value(operand.value);
    int input = problem.inputOf(operand.value), output = problem.outputOf(operand.value);
    if (operand.packed && input >= 0) {
      auto bytes = packedBytesOf(plan->space, operand, value.type);
      if (!bytes)
        return "a constant of run-time extents cannot be packed";
      schedule.packedBytes[input] = *bytes;
    }
    bool channels = value.rank == plan->space.shape.size() && value.rank > 1 &&
                    !isOne(value.extents[1]) &&
                    std::is_sorted(operand.dimensions.begin(), operand.dimensions.end()) &&
                    operand.dimensions.size() == value.rank;
    if (output >= 0 && channels)
      schedule.outputLayouts[output] = text;
    else if (input >= 0 && channels && !problem.isConstant(operand.value))
      schedule.inputLayouts[input] = text;
  }
  schedule.estimateMicros = estimate(problem, machine, *plan);
  sink.offer(std::move(schedule));
  return {};
}

void proposeRows(const ProblemReader &problem, const Machine &machine, const ScheduleSink &sink) {
  bool any = false;
  uint32_t rank = 0;
  for (uint32_t i = 0; i < problem.opCount(); ++i) {
    const dvt_op &op = problem.op(i);
    if (!isRowOp(op.name) && !isPointwiseOp(op.name))
      return;
    if (isRowOp(op.name) && ProblemReader::input(op, 0))
      rank = problem.value(*ProblemReader::input(op, 0)).rank;
    any |= isRowOp(op.name);
  }
  if (!any)
    return;
  if (std::string reason = offerRows(problem, machine, "", sink); !reason.empty())
    return sink.refuse("rows", reason);
  for (const std::string &layout : imageLayouts(rank, machine))
    offerRows(problem, machine, layout, sink);
}

void packRows(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
              uint32_t input, const void *constant, void *packed) {
  auto layout = Layout::parse(schedule.parameter(""));
  if (!layout)
    return;
  if (auto plan = planRows(problem, machine, *layout))
    packInput(plan->space, problem, input, constant, packed);
}

} // namespace dovetail::codegen
