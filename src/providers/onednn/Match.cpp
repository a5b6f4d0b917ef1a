// SPDX-License-Identifier: Apache-2.0
//
// Walks a problem's ops in order: first those that only change the view of an operand, then the
// main op, then element-wise ops on its result. Operands of post-operations are brought into the
// dimensions of the main op's result, through transposes that stand in between.
#include "providers/onednn/Match.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "providers/OpVersions.h"

namespace dovetail::onednn {
namespace {

bool keepsOrder(std::string_view name) {
  return name == "reshape" || name == "flatten" || name == "squeeze" || name == "unsqueeze" ||
         name == "identity";
}

std::vector<size_t> permutation(const OpReader &op, size_t rank) {
  Dims reversed(rank);
  for (size_t i = 0; i < rank; ++i)
    reversed[i] = static_cast<int64_t>(rank - 1 - i);
  Dims perm = op.integers("perm", reversed);
  return std::vector<size_t>(perm.begin(), perm.end());
}

class Matcher {
public:
  Matcher(const ProblemReader &problem, std::string &reason) : problem(problem), reason(reason) {}

  std::optional<Match> run() {
    if (!checkWhole())
      return std::nullopt;
    if (isRecurrent(problem.op(0).name()))
      return takeRecurrent() ? std::optional(std::move(match)) : std::nullopt;
    uint32_t index = 0;
    for (; index < problem.opCount() && isPrefix(index); ++index)
      if (!takePrefix(index))
        return std::nullopt;
    // With nothing but views the last one is the main op: a copy.
    if (index == problem.opCount()) {
      --index;
      views.erase(problem.op(index).output(0));
    }
    if (!takeMain(index))
      return std::nullopt;
    for (++index; index < problem.opCount(); ++index)
      if (!takeTail(index))
        return std::nullopt;
    return finish();
  }

private:
  bool refuse(const std::string &why) {
    reason = why;
    return false;
  }

  bool checkWhole() {
    if (std::optional<std::string> unknown = providers::unknownDefinition(problem))
      return refuse(*unknown);
    if (std::optional<std::string> symbol = problem.symbolicExtent())
      return refuse("extents known only at run time (" + *symbol + "); late-bound");
    if (problem.opCount() == 0 ||
        (problem.raw().output_count != 1 && !isRecurrent(problem.op(0).name())))
      return refuse("one result is supported, found " + std::to_string(problem.raw().output_count));
    for (uint32_t v = 0; v < problem.raw().value_count; ++v) {
      if (providers::product(problem.extents(v)) == 0)
        return refuse("empty tensors are not supported");
      if (problem.rank(v) > DNNL_MAX_NDIMS - 1)
        return refuse("more than 11 dimensions are not supported");
      if (problem.value(v).strides)
        for (int64_t stride : problem.strides(v))
          if (stride <= 0)
            return refuse("operands with strides of 0 or below are not supported");
    }
    for (uint32_t i = 0; i < problem.opCount(); ++i)
      match.summary += (i ? "+" : "") + std::string(problem.op(i).name());
    return true;
  }

  View external(uint32_t value) const {
    if (auto found = views.find(value); found != views.end())
      return found->second;
    View view{value, problem.extents(value), problem.strides(value), {}};
    if (view.dims.empty())
      return View{value, {1}, {1}, {}};
    if (!problem.value(value).strides) {
      view.axes.resize(view.dims.size());
      std::iota(view.axes.begin(), view.axes.end(), 0);
    }
    return view;
  }

  bool isPrefix(uint32_t index) const {
    OpReader op = problem.op(index);
    return (op.name() == "transpose" || op.name() == "dequantize_linear" ||
            keepsOrder(op.name())) &&
           op.hasInput(0) && (problem.producer(op.input(0)) < 0 || views.count(op.input(0)));
  }

  bool takePrefix(uint32_t index) {
    OpReader op = problem.op(index);
    View view = external(op.input(0));
    if (op.name() == "dequantize_linear")
      return takeDequantization(op, view);
    if (op.name() == "transpose") {
      std::vector<size_t> order = permutation(op, problem.rank(op.input(0)));
      if (!isPermutation(order))
        return refuse("transpose: perm is no permutation of the axes");
      if (problem.rank(op.input(0)) > 0)
        view = view.permuted(order);
    } else {
      Dims to = problem.extents(op.output(0));
      std::optional<View> reshaped = view.reshaped(to.empty() ? Dims{1} : to);
      if (!reshaped)
        return refuse(std::string(op.name()) + " of a transposed operand needs a copy");
      view = *reshaped;
    }
    views[op.output(0)] = view;
    return true;
  }

  bool takeDequantization(const OpReader &op, const View &view) {
    if (problem.type(op.output(0)) != DVT_F32)
      return refuse("dequantize_linear to types other than f32 is not supported");
    if (op.integer("block_size", 0) != 0)
      return refuse("dequantize_linear with blocks is not supported");
    int64_t axis = op.integer("axis", 1);
    axis += axis < 0 ? static_cast<int64_t>(problem.rank(op.input(0))) : 0;
    views[op.output(0)] = view;
    return addGrid(view, op.input(1), op.input(2), axis);
  }

  /// `axis` is one of the view's.
  bool addGrid(const View &view, uint32_t scale, uint32_t zero, int64_t axis) {
    Grid grid{scale, zero, -1};
    for (uint32_t value : {scale, zero}) {
      if (value == DVT_NO_VALUE)
        continue;
      if (problem.producer(value) >= 0)
        return refuse("scales and zero points that are computed inside are not supported");
      if (problem.rank(value) > 1)
        return refuse("scales and zero points of more than one dimension are not supported");
      if (providers::product(problem.extents(value)) == 1)
        continue;
      if (!view.isFree() || axis < 0 || axis >= static_cast<int64_t>(view.axes.size()))
        return refuse("scales along an axis of a reshaped operand are not supported");
      grid.axis = view.axes[static_cast<size_t>(axis)];
    }
    auto [known, isNew] = match.grids.try_emplace(view.value, grid);
    if (!isNew && (known->second.scale != scale || known->second.zero != zero ||
                   known->second.axis != grid.axis))
      return refuse("one operand dequantised in two ways is not supported");
    return true;
  }

  bool setResultGrid(uint32_t scale, uint32_t zero) {
    for (uint32_t value : {scale, zero})
      if (value != DVT_NO_VALUE &&
          (problem.producer(value) >= 0 || providers::product(problem.extents(value)) != 1))
        return refuse("results with other than one scale and zero point are not supported");
    match.resultGrid = Grid{scale, zero, -1};
    return true;
  }

  /// Brings the main ops that have scales or zero points for operands into the form of those that
  /// have none.
  bool takeIntegerOp(const OpReader &op) {
    const bool linear = op.name() == "q_linear_conv" || op.name() == "q_linear_mat_mul";
    const bool conv = op.name() == "q_linear_conv" || op.name() == "conv_integer";
    if (!linear && !conv && op.name() != "mat_mul_integer")
      return true;
    std::vector<View> all = match.operands;
    all.resize(9);
    auto operand = [&](size_t i) { return all[i].value; };
    const size_t second = linear ? 3 : 1;
    const View &a = all[0], &b = all[second];
    const int64_t rankA = static_cast<int64_t>(a.dims.size()),
                  rankB = static_cast<int64_t>(b.dims.size());
    if (!addGrid(a, linear ? operand(1) : DVT_NO_VALUE, operand(2), rankA - 2) ||
        !addGrid(b, linear ? operand(4) : DVT_NO_VALUE, operand(linear ? 5 : 3),
                 conv ? 0 : rankB - 1) ||
        (linear && !setResultGrid(operand(6), operand(7))))
      return false;
    if (a.value == b.value)
      return refuse(std::string(op.name()) + " of one operand with itself is not supported");
    match.operands = {a, b};
    if (linear && all[8].isPresent()) {
      match.operands.push_back(all[8]);
      match.integerBias = true;
    }
    return true;
  }

  static bool isPermutation(const std::vector<size_t> &order) {
    std::vector<bool> seen(order.size());
    for (size_t axis : order) {
      if (axis >= order.size() || seen[axis])
        return false;
      seen[axis] = true;
    }
    return true;
  }

  /// Recurrent ops stand alone, with all their results.
  bool takeRecurrent() {
    OpReader op = problem.op(0);
    if (problem.opCount() > 1)
      return refuse(std::string(op.name()) + " together with other ops is not supported");
    for (uint32_t i = 0; i < op.inputCount(); ++i)
      match.operands.push_back(op.hasInput(i) ? external(op.input(i)) : View());
    for (uint32_t i = 0; i < op.outputCount(); ++i) {
      const bool wanted = op.output(i) != DVT_NO_VALUE && problem.outputPosition(op.output(i)) >= 0;
      match.results.push_back(wanted ? external(op.output(i)) : View());
    }
    return true;
  }

  bool takeMain(uint32_t index) {
    OpReader op = problem.op(index);
    match.mainOp = index;
    for (uint32_t i = 0; i < op.inputCount(); ++i) {
      if (!op.hasInput(i)) {
        match.operands.emplace_back();
        continue;
      }
      if (problem.producer(op.input(i)) >= 0 && !views.count(op.input(i)))
        return refuse("an op other than a transpose feeds " + std::string(op.name()));
      match.operands.push_back(external(op.input(i)));
    }
    for (uint32_t i = 1; i < op.outputCount(); ++i)
      if (op.output(i) != DVT_NO_VALUE &&
          (problem.uses(op.output(i)) > 0 || problem.outputPosition(op.output(i)) >= 0))
        return refuse(std::string(op.name()) + ": only the first result is supported");
    if (op.output(0) == DVT_NO_VALUE)
      return refuse(std::string(op.name()) + ": no first result");
    if (!takeIntegerOp(op))
      return false;
    current = op.output(0);
    order.resize(problem.rank(current));
    std::iota(order.begin(), order.end(), size_t{0});
    return true;
  }

  bool takeTail(uint32_t index) {
    OpReader op = problem.op(index);
    if (problem.outputPosition(current) >= 0)
      return refuse("the value before " + std::string(op.name()) +
                    " is a result, too; one result is supported");
    if (op.name() == "transpose" || keepsOrder(op.name()))
      return isPrefix(index) ? takePrefix(index) : takeView(op);
    if (flattened)
      return refuse(std::string(op.name()) + " after a reshape is not supported");
    if (match.resultGrid)
      return refuse(std::string(op.name()) + " after a quantisation is not supported");
    if (skipNext) {
      // The multiplication of a gate that was taken together with its activation.
      skipNext = false;
      current = op.output(0);
      return true;
    }
    uint32_t uses = 0;
    for (uint32_t i = 0; i < op.inputCount(); ++i)
      uses += op.input(i) == current;
    if (uses == 0)
      return refuse(std::string(op.name()) + " does not use the result of " +
                    std::string(problem.op(match.mainOp).name()));
    if (problem.uses(current) == 2 && uses == 1 && takeGate(index))
      return true;
    if (problem.uses(current) != 1)
      return refuse("the result before " + std::string(op.name()) + " is used more than once");
    if (op.name() == "quantize_linear" && op.input(0) == current) {
      if (problem.type(current) != DVT_F32)
        return refuse("quantize_linear of types other than f32 is not supported");
      if (!setResultGrid(op.input(1), op.input(2)))
        return false;
      current = op.output(0);
      return true;
    }
    // A sum of integers can as well be stored as f32.
    if (op.name() == "cast" && problem.type(current) == DVT_I32 &&
        problem.type(op.output(0)) == DVT_F32 && match.isQuantized() && match.postOps.empty()) {
      current = op.output(0);
      return true;
    }
    if (op.name() != "p_relu" && binaryAlgorithm(op.name()) == dnnl_alg_kind_undef &&
        eltwiseSteps(problem, op, current).empty())
      return refuse(std::string(op.name()) + " is not among the post-operations of this library");
    const dvt_type type = problem.type(op.output(0));
    if (type != problem.type(current) || (type != DVT_F32 && type != DVT_F16 && type != DVT_BF16))
      return refuse(std::string(op.name()) + ": post-operations keep f32, f16 or bf16");
    if (type != DVT_F32 && op.name() == "round")
      return refuse("round after " + std::string(problem.op(match.mainOp).name()) +
                    " would see sums that are not rounded to their type");
    Dims result = problem.extents(op.output(0));
    if (result != problem.extents(current))
      return refuse(std::string(op.name()) + " broadcasts the result of " +
                    std::string(problem.op(match.mainOp).name()));
    if (!takeEltwise(op) && !takeBinary(op))
      return false;
    current = op.output(0);
    return true;
  }

  /// x * sigmoid(x) and x * hard_sigmoid(x).
  bool takeGate(uint32_t index) {
    OpReader op = problem.op(index);
    if (index + 1 >= problem.opCount())
      return false;
    OpReader next = problem.op(index + 1);
    uint32_t gate = op.output(0);
    bool multiplies =
        next.name() == "mul" && ((next.input(0) == current && next.input(1) == gate) ||
                                 (next.input(1) == current && next.input(0) == gate));
    if (!multiplies || problem.uses(gate) != 1 || problem.outputPosition(gate) >= 0)
      return false;
    PostOp step;
    if (op.name() == "sigmoid") {
      step.algorithm = dnnl_eltwise_swish;
      step.alpha = 1;
    } else if (op.name() == "hard_sigmoid") {
      step.algorithm = dnnl_eltwise_hardswish;
      step.alpha = static_cast<float>(op.number("alpha", 0.2));
      step.beta = static_cast<float>(op.number("beta", 0.5));
    } else {
      return false;
    }
    match.postOps.push_back(step);
    skipNext = true;
    current = gate;
    return true;
  }

  /// A scale and a shift that follow one another are one linear function.
  void append(const EltwiseStep &step) {
    PostOp *before = match.postOps.empty() ? nullptr : &match.postOps.back();
    if (before && before->kind == PostOp::Kind::Eltwise &&
        before->algorithm == dnnl_eltwise_linear && step.algorithm == dnnl_eltwise_linear) {
      before->beta = step.alpha * before->beta + step.beta;
      before->alpha *= step.alpha;
      return;
    }
    match.postOps.push_back({PostOp::Kind::Eltwise, step.algorithm, step.alpha, step.beta, {}});
  }

  bool takeEltwise(const OpReader &op) {
    std::vector<EltwiseStep> steps = eltwiseSteps(problem, op, current);
    for (const EltwiseStep &step : steps)
      append(step);
    return !steps.empty();
  }

  bool takeBinary(const OpReader &op) {
    std::string name(op.name());
    bool isPRelu = name == "p_relu" && op.input(0) == current;
    dnnl_alg_kind_t algorithm = binaryAlgorithm(name);
    if (op.inputCount() != 2 || (!isPRelu && algorithm == dnnl_alg_kind_undef))
      return refuse(name + " is not among the post-operations of this library");
    bool currentFirst = op.input(0) == current;
    uint32_t other = op.input(currentFirst ? 1 : 0);
    if (other == current || other == DVT_NO_VALUE)
      return refuse(name + ": both operands are the same value");
    if (problem.producer(other) >= 0 && !views.count(other))
      return refuse(name + " joins two results computed inside");
    const auto grid = match.grids.find(other == DVT_NO_VALUE ? other : external(other).value);
    if (problem.type(other) != problem.type(current) || (isPRelu && problem.type(other) != DVT_F32))
      return refuse(name + ": operands of post-operations are of the result's type, slopes of f32");
    if (grid != match.grids.end())
      return takeQuantizedBinary(op, other, grid->second);
    std::optional<View> seen = asOperand(other);
    if (!seen)
      return refuse(name + " broadcasts the result of " +
                    std::string(problem.op(match.mainOp).name()));
    View operand = *seen;
    auto eltwise = [&](dnnl_alg_kind_t step, float alpha, float beta) {
      match.postOps.push_back({PostOp::Kind::Eltwise, step, alpha, beta, {}});
    };
    if (isPRelu) {
      match.postOps.push_back({PostOp::Kind::PRelu, dnnl_alg_kind_undef, 0, 0, operand});
      return true;
    }
    // t - x = -x + t, t / x = 1 / x * t.
    if (!currentFirst && algorithm == dnnl_binary_sub) {
      eltwise(dnnl_eltwise_linear, -1, 0);
      algorithm = dnnl_binary_add;
    } else if (!currentFirst && algorithm == dnnl_binary_div) {
      eltwise(dnnl_eltwise_pow, 1, -1);
      algorithm = dnnl_binary_mul;
    }
    match.postOps.push_back({PostOp::Kind::Binary, algorithm, 0, 0, operand});
    return true;
  }

  /// A value in the dimensions of the main op's result.
  std::optional<View> asOperand(uint32_t value) const {
    View operand = external(value);
    if (operand.dims.size() > std::max<size_t>(order.size(), 1))
      return std::nullopt;
    operand = operand.withRank(order.size());
    if (!order.empty()) {
      std::vector<size_t> inverse(order.size());
      for (size_t i = 0; i < order.size(); ++i)
        inverse[order[i]] = i;
      operand = operand.permuted(inverse);
    }
    return operand;
  }

  /// t + (x - z) * s = (t / s - z + x) * s, and t * (x - z) * s likewise where z is 0.
  bool takeQuantizedBinary(const OpReader &op, uint32_t other, const Grid &grid) {
    const std::string name(op.name());
    std::optional<View> operand = asOperand(other);
    const bool isZero = grid.zero == DVT_NO_VALUE || problem.uniform(grid.zero) == 0;
    const bool adds = name == "add" || name == "sum";
    if (!operand || grid.axis >= 0 || !problem.isConstant(grid.scale) ||
        (!isZero && !problem.isConstant(grid.zero)) || !(adds || (name == "mul" && isZero)))
      return refuse(name + " of a quantised operand of this kind is not supported");
    if (adds)
      match.postOps.push_back(numberStep(dnnl_binary_div, {{1, grid.scale}}));
    if (adds && !isZero)
      match.postOps.push_back(numberStep(dnnl_binary_sub, {{1, grid.zero}}));
    match.postOps.push_back(
        {PostOp::Kind::Binary, adds ? dnnl_binary_add : dnnl_binary_mul, 0, 0, *operand});
    match.postOps.push_back(numberStep(dnnl_binary_mul, {{1, grid.scale}}));
    return true;
  }

  bool takeView(const OpReader &op) {
    std::string name(op.name());
    if (op.input(0) != current || problem.uses(current) != 1)
      return refuse(name + " does not follow the result of " +
                    std::string(problem.op(match.mainOp).name()));
    if (name != "transpose") {
      if (!flattened)
        flattened = problem.extents(current);
    } else {
      std::vector<size_t> perm = permutation(op, order.size());
      if (flattened || !isPermutation(perm))
        return refuse("transpose after a reshape is not supported");
      std::vector<size_t> composed(order.size());
      for (size_t i = 0; i < perm.size(); ++i)
        composed[i] = order[perm[i]];
      order = composed;
    }
    current = op.output(0);
    return true;
  }

  std::optional<Match> finish() {
    if (problem.outputPosition(current) < 0) {
      reason = "the last op's value is not the problem's result";
      return std::nullopt;
    }
    View last = external(current);
    if (flattened) {
      std::optional<View> before = last.reshaped(flattened->empty() ? Dims{1} : *flattened);
      if (!before) {
        reason = "a strided result after a reshape is not supported";
        return std::nullopt;
      }
      last = *before;
    }
    if (!order.empty()) {
      std::vector<size_t> inverse(order.size());
      for (size_t i = 0; i < order.size(); ++i)
        inverse[order[i]] = i;
      last = last.permuted(inverse);
    }
    match.result = last;
    return std::move(match);
  }

  const ProblemReader &problem;
  std::string &reason;
  Match match;
  std::map<uint32_t, View> views;  ///< results of prefix ops
  uint32_t current = DVT_NO_VALUE; ///< the main op's result as far as it was followed
  std::vector<size_t> order;       ///< axis of the main op's result for each axis of `current`
  std::optional<Dims> flattened;   ///< extents before the first trailing reshape
  bool skipNext = false;
};

} // namespace

bool isRecurrent(std::string_view name) { return name == "lstm" || name == "gru" || name == "rnn"; }

std::optional<Match> matchProblem(const ProblemReader &problem, std::string &reason) {
  return Matcher(problem, reason).run();
}

} // namespace dovetail::onednn
