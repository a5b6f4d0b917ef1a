// SPDX-License-Identifier: Apache-2.0
//
// Element-wise ops. Those that the library has no mode for are put together from some.
#include <cmath>
#include <limits>

#include "providers/cudnn/Translator.h"

namespace dovetail::cudnn {
namespace {

struct Named {
  std::string_view name;
  PointwiseMode mode;
};

constexpr Named kUnary[] = {
    {"abs", PointwiseMode::Abs},           {"ceil", PointwiseMode::Ceil},
    {"erf", PointwiseMode::Erf},           {"exp", PointwiseMode::Exp},
    {"floor", PointwiseMode::Floor},       {"log", PointwiseMode::Log},
    {"neg", PointwiseMode::Neg},           {"reciprocal", PointwiseMode::Reciprocal},
    {"relu", PointwiseMode::Relu},         {"sigmoid", PointwiseMode::Sigmoid},
    {"softplus", PointwiseMode::Softplus}, {"sqrt", PointwiseMode::Sqrt},
    {"tanh", PointwiseMode::Tanh},
};

constexpr Named kBinary[] = {
    {"add", PointwiseMode::Add}, {"div", PointwiseMode::Div}, {"max", PointwiseMode::Max},
    {"min", PointwiseMode::Min}, {"mul", PointwiseMode::Mul}, {"pow", PointwiseMode::Pow},
    {"sub", PointwiseMode::Sub}, {"sum", PointwiseMode::Add},
};

template <size_t Count>
std::optional<PointwiseMode> find(const Named (&table)[Count], std::string_view name) {
  for (const Named &entry : table)
    if (entry.name == name)
      return entry.mode;
  return std::nullopt;
}

constexpr std::string_view kOthers[] = {"clip",       "elu",        "gelu", "hard_sigmoid",
                                        "hard_swish", "leaky_relu", "mish", "swish"};

Operation unary(PointwiseMode mode, size_t x, size_t into) {
  Operation made;
  made.kind = Operation::Kind::Pointwise;
  made.pointwise = mode;
  made.operands = {x};
  made.result = into;
  return made;
}

/// max(0, min(1, slope * x + offset))
size_t hardSigmoid(Translator &to, size_t x, double slope, double offset, size_t into) {
  const size_t scaled = to.pointwise(PointwiseMode::Mul, {x, to.number(slope)}),
               shifted = to.pointwise(PointwiseMode::Add, {scaled, to.number(offset)});
  if (into == Operation::kAbsent)
    into = to.temporary(to.dimsOf(shifted));
  Operation clip = unary(PointwiseMode::Relu, shifted, into);
  clip.lowerClip = 0;
  clip.upperClip = 1;
  to.append(std::move(clip));
  return into;
}

/// A bound of Clip: an operand since op set 11, an attribute before; nothing where it is not known.
std::optional<double> bound(const Translator &to, const OpReader &op, uint32_t index,
                            std::string_view attribute, double none) {
  if (op.version() < 11)
    return op.number(attribute, none);
  if (!op.hasInput(index))
    return none;
  return to.problem.isLiteral(op.input(index)) ? to.problem.uniform(op.input(index)) : std::nullopt;
}

bool translateClip(Translator &to, const OpReader &op, size_t x, size_t result) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const std::optional<double> low = bound(to, op, 1, "min", -kNone),
                              high = bound(to, op, 2, "max", kNone);
  if (!low || !high)
    return to.refuse("clip: bounds known when compiling are supported");
  if (*low == -kNone && *high == kNone) {
    to.append(unary(PointwiseMode::Identity, x, result));
    return true;
  }
  if (*low == 0) { // the form that engines know as an activation
    Operation made = unary(PointwiseMode::Relu, x, result);
    if (*high != kNone)
      made.upperClip = high;
    to.append(std::move(made));
    return true;
  }
  const bool bothSides = *low != -kNone && *high != kNone;
  size_t clipped = x;
  if (*low != -kNone)
    clipped = to.pointwise(PointwiseMode::Max, {x, to.number(*low)},
                           bothSides ? Operation::kAbsent : result);
  if (*high != kNone)
    to.pointwise(PointwiseMode::Min, {clipped, to.number(*high)}, result);
  return true;
}

bool translateOther(Translator &to, const OpReader &op, size_t x, size_t result) {
  const std::string_view name = op.name();
  if (name == "clip")
    return translateClip(to, op, x, result);
  if (name == "hard_sigmoid") {
    hardSigmoid(to, x, op.number("alpha", 0.2), op.number("beta", 0.5), result);
    return true;
  }
  if (name == "hard_swish") {
    const size_t gate = hardSigmoid(to, x, 1.0 / 6, 0.5, Operation::kAbsent);
    to.pointwise(PointwiseMode::Mul, {x, gate}, result);
    return true;
  }
  if (name == "mish") {
    const size_t gate = to.pointwise(PointwiseMode::Softplus, {x}),
                 bent = to.pointwise(PointwiseMode::Tanh, {gate});
    to.pointwise(PointwiseMode::Mul, {x, bent}, result);
    return true;
  }
  Operation made = unary(PointwiseMode::Relu, x, result);
  if (name == "leaky_relu") {
    made.slope = op.number("alpha", 0.01);
  } else if (name == "elu") {
    made.pointwise = PointwiseMode::Elu;
    made.alpha = op.number("alpha", 1);
  } else if (name == "swish") {
    made.pointwise = PointwiseMode::Swish;
    made.alpha = op.number("alpha", 1);
  } else { // gelu
    made.pointwise =
        op.string("approximate", "none") == "tanh" ? PointwiseMode::GeluTanh : PointwiseMode::Gelu;
  }
  to.append(std::move(made));
  return true;
}

} // namespace

bool isPointwise(std::string_view name) {
  for (std::string_view other : kOthers)
    if (other == name)
      return true;
  return find(kUnary, name) || find(kBinary, name) || name == "cast";
}

bool translatePointwise(Translator &to, const OpReader &op) {
  const std::string name(op.name());
  if (to.graph.family.empty())
    to.graph.family = "pointwise";
  const size_t result = to.result(op.output(0)), x = to.operand(op.input(0));
  if (x == Operation::kAbsent || result == Operation::kAbsent)
    return false;
  if (!to.broadcasts(x, result))
    return to.refuse(name + ": an operand's shape does not fit those of the others");
  // Casts, and ops that jump between neighbours, see what memory would have held.
  auto hold = [&](size_t tensor, uint32_t value) {
    const std::optional<DataType> type = dataType(to.problem.type(value));
    if (type && to.graph.tensors[tensor].isVirtual())
      to.graph.tensors[tensor].type = *type;
  };
  if (name == "cast")
    hold(result, op.output(0));
  if (name == "cast" || name == "floor" || name == "ceil")
    hold(x, op.input(0));
  if (std::optional<PointwiseMode> mode = find(kBinary, name)) {
    if (op.inputCount() != 2)
      return to.refuse(name + " of two operands is supported");
    const size_t y = to.operand(op.input(1));
    if (y == Operation::kAbsent)
      return false;
    if (!to.broadcasts(y, result))
      return to.refuse(name + ": an operand's shape does not fit those of the others");
    to.pointwise(*mode, {x, y}, result);
    return true;
  }
  const std::optional<PointwiseMode> mode = find(kUnary, name);
  if (!mode && name != "cast")
    return translateOther(to, op, x, result);
  to.append(unary(mode.value_or(PointwiseMode::Identity), x, result));
  return true;
}

} // namespace dovetail::cudnn
