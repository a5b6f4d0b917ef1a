// SPDX-License-Identifier: Apache-2.0
//
// The formulas of reductions and normalisations, as the ONNX standard gives them, in the
// numerically safe form: maxima are subtracted before exponentials, variances are taken about the
// mean.
#include "codegen/schedule/RowExpression.h"

#include <cmath>

#include <fmt/format.h>

namespace dovetail::codegen {
namespace {

using Kind = ExpressionKind;

class RowOpExpression {
public:
  RowOpExpression(Expression &expression, const ProblemReader &problem, const dvt_op &op)
      : x(expression), problem(problem), op(op), name(op.name) {}

  Status add() {
    auto first = ProblemReader::input(op, 0);
    if (!first)
      return badInput("{} has no operand", name);
    a = operand(0);
    type = x.nodes[a].type;
    bool compares =
        name == "reduce_max" || name == "reduce_min" || name == "arg_max" || name == "arg_min";
    bool sums = name == "reduce_sum" || name == "reduce_prod";
    bool integers = type == DVT_I64 || type == DVT_I32 || type == DVT_U32;
    bool narrow = type == DVT_U8 || type == DVT_I8 || type == DVT_U16 || type == DVT_I16;
    if (!isFloatType(type) && !(integers && (compares || sums)) && !(narrow && compares))
      return badInput("{} is supported on f32, f16, bf16{}{}, not {}", name,
                      compares || sums ? ", i32, u32, i64" : "",
                      compares ? ", 8 and 16-bit integers" : "", elementTypeName(type));
    if (compares)
      a = x.rounded(a);
    NodeId result = build();
    if (!reason.empty())
      return badInput("{} {}", name, reason);
    if (auto value = ProblemReader::output(op, 0))
      x.nodeOf[*value] = result;
    return Status::success();
  }

private:
  NodeId operand(uint32_t position) {
    auto value = ProblemReader::input(op, position);
    if (!value) {
      reason = fmt::format("lacks operand {}", position);
      return a;
    }
    auto known = x.nodeOf.find(*value);
    return known != x.nodeOf.end() ? known->second : x.leaf(problem, *value);
  }
  bool has(uint32_t position) { return ProblemReader::input(op, position).has_value(); }

  NodeId c(double number) { return x.constant(type, number); }
  NodeId add(NodeId l, NodeId r) { return x.binary(Kind::Add, l, r); }
  NodeId sub(NodeId l, NodeId r) { return x.binary(Kind::Sub, l, r); }
  NodeId mul(NodeId l, NodeId r) { return x.binary(Kind::Mul, l, r); }
  NodeId div(NodeId l, NodeId r) { return x.binary(Kind::Div, l, r); }
  NodeId sum(NodeId n) { return x.unary(Kind::ReduceSum, n); }
  NodeId mean(NodeId n) { return div(sum(n), count()); }
  /// The largest element of a row, to be subtracted before exponentials. It need not keep NaN: sums
  /// do.
  NodeId shift() {
    NodeId top = x.unary(Kind::ReduceMax, a);
    x.nodes[top].integer = 1;
    return top;
  }
  NodeId count() {
    if (counted == kNoNode) {
      counted = c(0);
      x.nodes[counted].kind = Kind::ReduceCount;
    }
    return counted;
  }

  NodeId build() {
    if (name == "reduce_sum")
      return sum(a);
    if (name == "reduce_max" || name == "global_max_pool")
      return x.unary(Kind::ReduceMax, a);
    if (name == "reduce_min")
      return x.unary(Kind::ReduceMin, a);
    if (name == "reduce_prod")
      return x.unary(Kind::ReduceProduct, a);
    if (name == "reduce_mean" || name == "global_average_pool")
      return mean(a);
    if (name == "reduce_l1")
      return sum(x.unary(Kind::Abs, a));
    if (name == "reduce_l2")
      return x.unary(Kind::Sqrt, sum(mul(a, a)));
    if (name == "reduce_sum_square")
      return sum(mul(a, a));
    if (name == "reduce_log_sum")
      return x.unary(Kind::Log, sum(a));
    if (name == "reduce_log_sum_exp")
      return logSumExp();
    if (name == "arg_max" || name == "arg_min") {
      NodeId node = x.unary(name == "arg_max" ? Kind::ReduceArgMax : Kind::ReduceArgMin, a);
      x.nodes[node].type = DVT_I64;
      x.nodes[node].integer = ProblemReader::integer(op, "select_last_index", 0);
      return node;
    }
    if (name == "softmax") {
      NodeId exponential = x.unary(Kind::Exp, sub(a, shift()));
      return mul(exponential, x.unary(Kind::Reciprocal, sum(exponential)));
    }
    if (name == "log_softmax") {
      NodeId shifted = sub(a, shift());
      return sub(shifted, x.unary(Kind::Log, sum(x.unary(Kind::Exp, shifted))));
    }
    if (name == "lp_normalization")
      return lpNormalization();
    if (name == "global_lp_pool")
      return lpPool();
    if (name == "mean_variance_normalization")
      return normalise(a, mean(a), 1e-9, true);
    if (name == "layer_normalization")
      return layerNormalization();
    if (name == "rms_normalization") {
      NodeId inverse = x.unary(Kind::ReciprocalSqrt,
                               add(mean(mul(a, a)), c(ProblemReader::real(op, "epsilon", 1e-5))));
      return mul(mul(a, inverse), operand(1));
    }
    if (name == "dynamic_quantize_linear")
      return dynamicQuantization();
    if (name == "instance_normalization") {
      NodeId normal = normalise(a, mean(a), ProblemReader::real(op, "epsilon", 1e-5), false);
      return add(mul(normal, operand(1)), operand(2));
    }
    reason = "is not supported";
    return a;
  }

  NodeId saturated(NodeId n) {
    NodeId result = x.unary(Kind::Saturate, n);
    x.nodes[result].type = DVT_U8;
    return result;
  }

  /// In f32, as the definition has it: the results depend on each rounding.
  NodeId dynamicQuantization() {
    if (type != DVT_F32) {
      reason = "is supported on f32";
      return a;
    }
    NodeId high = x.binary(Kind::Max, x.unary(Kind::ReduceMax, a), c(0));
    NodeId low = x.binary(Kind::Min, x.unary(Kind::ReduceMin, a), c(0));
    NodeId span = sub(high, low);
    NodeId scale = div(x.select(x.binary(Kind::Equal, span, c(0)), c(1), span), c(255));
    NodeId zero = x.binary(Kind::ClampLow, sub(c(0), div(low, scale)), c(0));
    zero = x.unary(Kind::RoundEven, x.binary(Kind::ClampHigh, zero, c(255)));
    if (auto value = ProblemReader::output(op, 1))
      x.nodeOf[*value] = scale;
    if (auto value = ProblemReader::output(op, 2))
      x.nodeOf[*value] = saturated(zero);
    return saturated(add(x.unary(Kind::RoundEven, div(a, scale)), zero));
  }

  NodeId logSumExp() {
    NodeId top = shift();
    // Infinite maxima are not subtracted: inf - inf would be NaN.
    NodeId finite = x.binary(Kind::Less, x.unary(Kind::Abs, top), c(INFINITY));
    NodeId finiteTop = x.select(finite, top, c(0));
    return add(x.unary(Kind::Log, sum(x.unary(Kind::Exp, sub(a, finiteTop)))), finiteTop);
  }

  NodeId lpNormalization() {
    bool one = ProblemReader::integer(op, "p", 2) == 1;
    NodeId norm = one ? sum(x.unary(Kind::Abs, a)) : x.unary(Kind::Sqrt, sum(mul(a, a)));
    // Rows of zeros stay zero.
    NodeId zero = x.binary(Kind::Equal, norm, c(0));
    return div(a, x.select(zero, c(1), norm));
  }

  NodeId lpPool() {
    int64_t p = ProblemReader::integer(op, "p", 2);
    if (p == 1)
      return sum(x.unary(Kind::Abs, a));
    if (p == 2)
      return x.unary(Kind::Sqrt, sum(mul(a, a)));
    NodeId total = sum(x.binary(Kind::Pow, x.unary(Kind::Abs, a), c(double(p))));
    return x.binary(Kind::Pow, total, c(1.0 / double(p)));
  }

  NodeId inverseDeviation(NodeId centred, double epsilon) {
    return x.unary(Kind::ReciprocalSqrt, add(mean(mul(centred, centred)), c(epsilon)));
  }

  /// (n - mean) / sqrt(variance + epsilon), or with the epsilon outside of the root.
  NodeId normalise(NodeId n, NodeId average, double epsilon, bool outside) {
    NodeId centred = sub(n, average);
    if (!outside)
      return mul(centred, inverseDeviation(centred, epsilon));
    return div(centred, add(x.unary(Kind::Sqrt, mean(mul(centred, centred))), c(epsilon)));
  }

  NodeId layerNormalization() {
    NodeId average = mean(a), centred = sub(a, average);
    NodeId inverse = inverseDeviation(centred, ProblemReader::real(op, "epsilon", 1e-5));
    if (auto value = ProblemReader::output(op, 1))
      x.nodeOf[*value] = average;
    if (auto value = ProblemReader::output(op, 2))
      x.nodeOf[*value] = inverse;
    NodeId result = mul(mul(centred, inverse), operand(1));
    return has(2) ? add(result, operand(2)) : result;
  }

  Expression &x;
  const ProblemReader &problem;
  const dvt_op &op;
  std::string_view name;
  NodeId a = kNoNode, counted = kNoNode;
  dvt_type type = DVT_F32;
  std::string reason;
};

} // namespace

Status addRowOp(Expression &expression, const ProblemReader &problem, const dvt_op &op) {
  return RowOpExpression(expression, problem, op).add();
}

} // namespace dovetail::codegen
