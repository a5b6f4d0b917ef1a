// SPDX-License-Identifier: Apache-2.0
//
// Reads a problem into the form of the header. What ONNX leaves to defaults is settled here, so
// that emission sees functions with their numbers and operands that are there or not.
#include "codegen/schedule/recurrent/Recurrent.h"

#include <algorithm>
#include <cctype>

namespace dovetail::codegen {
namespace {

using Kind = RecurrentFunction::Kind;

/// Names of the functions, whether they have an alpha and a beta, and what these are by default.
struct KnownFunction {
  const char *name;
  Kind kind;
  bool hasAlpha, hasBeta;
  double alpha, beta;
};
constexpr KnownFunction kKnown[] = {
    {"sigmoid", Kind::Sigmoid, false, false, 0, 0},
    {"tanh", Kind::Tanh, false, false, 0, 0},
    {"relu", Kind::Relu, false, false, 0, 0},
    {"affine", Kind::Affine, true, true, 1, 0},
    {"leakyrelu", Kind::LeakyRelu, true, false, 0.01, 0},
    {"thresholdedrelu", Kind::ThresholdedRelu, true, false, 1, 0},
    {"scaledtanh", Kind::ScaledTanh, true, true, 1, 1},
    {"hardsigmoid", Kind::HardSigmoid, true, true, 0.2, 0.5},
    {"elu", Kind::Elu, true, false, 1, 0},
    {"softsign", Kind::Softsign, false, false, 0, 0},
    {"softplus", Kind::Softplus, false, false, 0, 0},
};

std::vector<std::string> lowerCaseParts(std::string_view text) {
  std::vector<std::string> parts(1);
  for (char c : text)
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += char(std::tolower(static_cast<unsigned char>(c)));
  return parts;
}

std::vector<double> reals(const dvt_op &op, std::string_view name) {
  const dvt_attribute *found = ProblemReader::attribute(op, name);
  if (!found || found->kind != DVT_ATTRIBUTE_FLOATS)
    return {};
  return std::vector<double>(found->floats, found->floats + found->count);
}

class Reading {
public:
  Reading(const ProblemReader &problem, const dvt_op &op) : problem(problem), op(op) {}

  Expected<Recurrent> run() {
    for (auto step : {&Reading::readKind, &Reading::readExtents, &Reading::readFunctions,
                      &Reading::readOperands, &Reading::readLengths, &Reading::readResults})
      if (Status status = (this->*step)(); !status)
        return status.takeError();
    return std::move(net);
  }

private:
  Status readKind() {
    std::string_view name = op.name;
    if (name == "lstm") {
      net.cell = Recurrent::Cell::Lstm;
      net.gates = 4;
      net.functionCount = 3;
    } else if (name == "gru") {
      bool linear = ProblemReader::integer(op, "linear_before_reset", 0) != 0;
      net.cell = linear ? Recurrent::Cell::GruLinear : Recurrent::Cell::Gru;
      net.gates = 3;
      net.functionCount = 2;
    }
    std::string_view direction = ProblemReader::text(op, "direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      return badInput("{} of direction {}", op.name, direction);
    net.directions = direction == "bidirectional" ? 2 : 1;
    net.reverseFirst = direction == "reverse";
    net.batchFirst = ProblemReader::integer(op, "layout", 0) != 0;
    net.coupled = ProblemReader::integer(op, "input_forget", 0) != 0;
    net.clip = std::max(0.0, ProblemReader::real(op, "clip", 0));
    return Status::success();
  }

  /// Of a value that must have these extents, -1 standing for any.
  Status needShape(uint32_t value, std::initializer_list<int64_t> extents, const char *what) {
    const dvt_value &found = problem.value(value);
    bool fits = found.rank == extents.size() && found.type == DVT_F32;
    for (uint32_t i = 0; fits && i < found.rank; ++i) {
      int64_t wanted = extents.begin()[i];
      fits = wanted < 0 || found.extents[i].value == wanted;
    }
    if (!fits)
      return badInput("{} with {} of {}, which does not fit the other operands or is not f32",
                      op.name, what, valueText(found));
    return Status::success();
  }

  Status readExtents() {
    for (uint32_t i = 0; i < 3; ++i) {
      auto value = ProblemReader::input(op, i);
      if (!value || problem.inputOf(*value) < 0)
        return badInput("{} without operand {} in memory", op.name, i);
      (i == 0 ? net.x : i == 1 ? net.w : net.r) = *value;
    }
    if (Status status = needShape(net.x, {-1, -1, -1}, "an input"); !status)
      return status;
    if (Status status = needShape(net.r, {net.directions, -1, -1}, "recurrent weights"); !status)
      return status;
    const dvt_value &x = problem.value(net.x), &r = problem.value(net.r);
    net.steps = x.extents[net.batchFirst ? 1 : 0];
    net.batch = x.extents[net.batchFirst ? 0 : 1];
    net.input = x.extents[2].value;
    net.hidden = r.extents[2].value;
    if (net.input < 1 || net.hidden < 1)
      return badInput("{} of {} inputs and {} hidden units; both must be known and positive",
                      op.name, extentText(x.extents[2]), extentText(r.extents[2]));
    if (Status status = needShape(net.r, {net.directions, net.gates * net.hidden, net.hidden},
                                  "recurrent weights");
        !status)
      return status;
    if (Status status =
            needShape(net.w, {net.directions, net.gates * net.hidden, net.input}, "weights");
        !status)
      return status;
    if (!problem.isConstant(net.w) || !problem.isConstant(net.r))
      return badInput("{} with weights that are computed at run time; constants are supported",
                      op.name);
    return Status::success();
  }

  Status readFunctions() {
    const char *fallback = net.cell == Recurrent::Cell::Lstm  ? "Sigmoid,Tanh,Tanh"
                           : net.cell == Recurrent::Cell::Rnn ? "Tanh"
                                                              : "Sigmoid,Tanh";
    std::string_view given = ProblemReader::text(op, "activations", "");
    std::vector<std::string> names = lowerCaseParts(given.empty() ? fallback : given);
    size_t wanted = net.functionCount * size_t(net.directions);
    if (names.size() < net.functionCount)
      return badInput("{} with activations {}; {} for each direction are needed", op.name, given,
                      net.functionCount);
    while (names.size() < wanted)
      names.push_back(names[names.size() - net.functionCount]);
    std::vector<double> alphas = reals(op, "activation_alpha"),
                        betas = reals(op, "activation_beta");
    size_t alpha = 0, beta = 0;
    for (const std::string &name : names) {
      auto known = std::find_if(std::begin(kKnown), std::end(kKnown),
                                [&](const KnownFunction &k) { return name == k.name; });
      if (known == std::end(kKnown))
        return badInput("{} with activation {}", op.name, name);
      RecurrentFunction function{known->kind, known->alpha, known->beta};
      // Only functions that have the parameter take one from the list.
      if (known->hasAlpha && alpha < alphas.size())
        function.alpha = alphas[alpha++];
      if (known->hasBeta && beta < betas.size())
        function.beta = betas[beta++];
      if (net.functions.size() < wanted)
        net.functions.push_back(function);
    }
    return Status::success();
  }

  Status readOperand(uint32_t position, std::initializer_list<int64_t> extents, const char *what,
                     Recurrent::Operand &operand) {
    auto value = ProblemReader::input(op, position);
    if (!value)
      return Status::success();
    if (Status status = needShape(*value, extents, what); !status)
      return status;
    if (problem.inputOf(*value) >= 0) {
      operand.value = value;
      return Status::success();
    }
    auto number = problem.uniformLiteral(*value);
    if (!number)
      return badInput("{} with {} computed in the same kernel", op.name, what);
    operand.uniform = *number;
    return Status::success();
  }

  Status readOperands() {
    if (Status status =
            readOperand(3, {net.directions, 2 * net.gates * net.hidden}, "biases", net.bias);
        !status)
      return status;
    if (net.bias.value && !problem.isConstant(*net.bias.value))
      return badInput("{} with biases that are computed at run time; constants are supported",
                      op.name);
    int64_t first = net.batchFirst ? -1 : net.directions;
    int64_t second = net.batchFirst ? net.directions : -1;
    if (Status status =
            readOperand(5, {first, second, net.hidden}, "an initial state", net.hidden0);
        !status)
      return status;
    if (net.cell != Recurrent::Cell::Lstm)
      return Status::success();
    if (Status status =
            readOperand(6, {first, second, net.hidden}, "an initial cell state", net.cell0);
        !status)
      return status;
    return readOperand(7, {net.directions, 3 * net.hidden}, "peepholes", net.peepholes);
  }

  Status readLengths() {
    auto value = ProblemReader::input(op, 4);
    if (!value)
      return Status::success();
    const dvt_value &found = problem.value(*value);
    if (found.type != DVT_I32 || found.rank != 1)
      return badInput("{} with sequence lengths of {}; one i32 for each sequence is supported",
                      op.name, valueText(found));
    if (problem.inputOf(*value) >= 0) {
      net.lengths = value;
      return Status::success();
    }
    auto literal = problem.integerLiteral(*value);
    if (!literal || !isStaticExtent(net.steps) || !isStaticExtent(net.batch) ||
        int64_t(literal->size()) != net.batch.value)
      return badInput("{} with sequence lengths of {} that are known while its extents are not",
                      op.name, valueText(found));
    for (int64_t length : *literal)
      if (length < 0 || length > net.steps.value)
        return badInput("{}: sequence length {} is outside [0, {}]", op.name, length,
                        net.steps.value);
    bool whole = std::all_of(literal->begin(), literal->end(),
                             [&](int64_t length) { return length == net.steps.value; });
    if (!whole)
      net.knownLengths = *literal;
    return Status::success();
  }

  Status readResults() {
    std::optional<uint32_t> *results[] = {&net.sequence, &net.lastH, &net.lastC};
    for (uint32_t i = 0; i < op.output_count; ++i) {
      auto value = ProblemReader::output(op, i);
      if (!value || problem.outputOf(*value) < 0)
        continue;
      if (i > 2 || (i == 2 && net.cell != Recurrent::Cell::Lstm))
        return badInput("{} with {} results", op.name, op.output_count);
      if (problem.value(*value).may_alias >= 0)
        return badInput("{} in the memory of an operand", op.name);
      *results[i] = value;
    }
    return Status::success();
  }

  const ProblemReader &problem;
  const dvt_op &op;
  Recurrent net;
};

} // namespace

std::optional<Expected<Recurrent>> Recurrent::find(const ProblemReader &problem) {
  for (uint32_t i = 0; i < problem.opCount(); ++i) {
    std::string_view name = problem.op(i).name;
    if (name != "lstm" && name != "gru" && name != "rnn")
      continue;
    if (problem.opCount() > 1)
      return Expected<Recurrent>(badInput("{} together with other ops in one kernel", name));
    return Reading(problem, problem.op(i)).run();
  }
  return std::nullopt;
}

bool Recurrent::sameFunctions() const {
  return directions == 1 || std::equal(functions.begin(), functions.begin() + functionCount,
                                       functions.begin() + functionCount);
}

RecurrentShape::RecurrentShape(const Recurrent &net, const Machine &machine)
    : lanes(machine.isa.f32Lanes) {
  while (lanes > 4 && net.hidden <= lanes / 2)
    lanes /= 2;
  const int64_t unitBlocks = (net.hidden + lanes - 1) / lanes;
  auto add = [&](std::vector<unsigned> gates) {
    constexpr unsigned kVectors = 4; // of a panel
    Pass pass;
    pass.blocks = unsigned(std::clamp<int64_t>(kVectors / int64_t(gates.size()), 1, unitBlocks));
    pass.panels = (unitBlocks + pass.blocks - 1) / pass.blocks;
    pass.gates = std::move(gates);
    pass.column = sumRow;
    sumRow += pass.panels * pass.vectors() * lanes;
    stateRow = std::max(stateRow, pass.panels * pass.blocks * lanes);
    passes.push_back(std::move(pass));
  };
  switch (net.cell) {
  case Recurrent::Cell::Rnn:
    add({0});
    break;
  case Recurrent::Cell::Gru:
    add({0, 1});
    add({2});
    break;
  case Recurrent::Cell::GruLinear:
    add({0, 1, 2});
    break;
  case Recurrent::Cell::Lstm:
    add({0, 1, 2, 3});
    break;
  }
}

std::string RecurrentPlan::text() const {
  return "recurrent:b" + std::to_string(sequences) +
         (chunk ? ":c" + std::to_string(chunk) : ":whole");
}

RecurrentPlan RecurrentPlan::read(const Schedule &schedule) {
  RecurrentPlan plan;
  plan.sequences = schedule.integerParameter("b", 1);
  plan.chunk = schedule.integerParameter("c", 0);
  return plan;
}

int64_t RecurrentPlan::scratchElements(const Recurrent &net, const RecurrentShape &shape) const {
  int64_t states = net.cell == Recurrent::Cell::Lstm ? 3 : net.cell == Recurrent::Cell::Gru ? 4 : 2;
  return sequences * (states * shape.stateRow + chunk * shape.sumRow);
}

} // namespace dovetail::codegen
