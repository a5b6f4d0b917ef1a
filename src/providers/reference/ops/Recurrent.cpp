// SPDX-License-Identifier: Apache-2.0
//
// rnn, gru and lstm with all their attributes: directions, layouts, sequence lengths, activations,
// clipping, peepholes. One step of one sequence at a time, in double.
#include "Ops.h"

#include <algorithm>
#include <cmath>

namespace dovetail::reference::ops {

namespace {

struct Activation {
  std::string name;
  double alpha = 0, beta = 0;

  double operator()(double x) const {
    if (name == "sigmoid")
      return 1 / (1 + std::exp(-x));
    if (name == "tanh")
      return std::tanh(x);
    if (name == "relu")
      return std::max(x, 0.0);
    if (name == "affine")
      return alpha * x + beta;
    if (name == "leakyrelu")
      return x < 0 ? alpha * x : x;
    if (name == "thresholdedrelu")
      return x > alpha ? x : 0;
    if (name == "scaledtanh")
      return alpha * std::tanh(beta * x);
    if (name == "hardsigmoid")
      return std::clamp(alpha * x + beta, 0.0, 1.0);
    if (name == "elu")
      return x < 0 ? alpha * std::expm1(x) : x;
    if (name == "softsign")
      return x / (1 + std::fabs(x));
    return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); // softplus
  }
};

/// Defaults of alpha and beta; NaN where the function has none.
struct ActivationDefault {
  const char *name;
  double alpha, beta;
};
constexpr double kNone = -1e300;
constexpr ActivationDefault kActivations[] = {
    {"sigmoid", kNone, kNone},  {"tanh", kNone, kNone},     {"relu", kNone, kNone},
    {"affine", 1, 0},           {"leakyrelu", 0.01, kNone}, {"thresholdedrelu", 1, kNone},
    {"scaledtanh", 1, 1},       {"hardsigmoid", 0.2, 0.5},  {"elu", 1, kNone},
    {"softsign", kNone, kNone}, {"softplus", kNone, kNone}};

struct Network {
  int64_t directions = 1, steps = 0, batch = 0, input = 0, hidden = 0, gates = 1;
  bool batchFirst = false, reverseFirst = false;
  double clip = 0;
  std::vector<double> x, w, r, b, h, c, p; ///< c and p of lstm only
  std::vector<int64_t> lengths;
  std::vector<Activation> activations; ///< those of one direction after those of the other
  std::vector<double> y;               ///< [steps, directions, batch, hidden]

  double clipped(double value) const { return clip > 0 ? std::clamp(value, -clip, clip) : value; }
};

} // namespace

static Status readActivations(const Invocation &op, size_t perDirection, const char *fallback,
                              Network &net) {
  std::string names(op.text("activations", ""));
  std::vector<std::string> list;
  std::string text = names.empty() ? fallback : names;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string name = text.substr(begin, end - begin);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    list.push_back(name);
    begin = end + 1;
  }
  if (list.size() < perDirection)
    return op.bad("activations ", text, "; ", perDirection, " for each direction are needed");
  while (list.size() < perDirection * static_cast<size_t>(net.directions))
    list.push_back(list[list.size() - perDirection]);
  std::vector<double> alphas = op.reals("activation_alpha"), betas = op.reals("activation_beta");
  size_t nextAlpha = 0, nextBeta = 0;
  for (const std::string &name : list) {
    const ActivationDefault *known =
        std::find_if(std::begin(kActivations), std::end(kActivations),
                     [&](const ActivationDefault &a) { return name == a.name; });
    if (known == std::end(kActivations))
      return op.unsupported("activation ", name);
    Activation activation = {name, known->alpha, known->beta};
    // Only functions that have the parameter take one from the list.
    if (known->alpha != kNone && nextAlpha < alphas.size())
      activation.alpha = alphas[nextAlpha++];
    if (known->beta != kNone && nextBeta < betas.size())
      activation.beta = betas[nextBeta++];
    net.activations.push_back(activation);
  }
  return {};
}

/// Operand `input` where it is there, zeros otherwise; it must have the given extents.
static Status readOperand(const Invocation &op, size_t input, const Extents &extents,
                          std::vector<double> &values) {
  if (!op.has(input)) {
    values.assign(static_cast<size_t>(elementCount(extents).value_or(0)), 0);
    return {};
  }
  if (op.shape(input) != extents)
    return op.bad("operand ", input, " has extents ", textOf(op.shape(input)), "; ",
                  textOf(extents), " is needed");
  values = op.numbers<double>(input);
  return {};
}

/// [batch, directions, hidden] <-> [directions, batch, hidden].
static std::vector<double> swapOuter(const std::vector<double> &values, int64_t first,
                                     int64_t second, int64_t inner) {
  std::vector<double> result(values.size());
  for (int64_t i = 0; i < first; ++i)
    for (int64_t j = 0; j < second; ++j)
      std::copy_n(values.begin() + (i * second + j) * inner, inner,
                  result.begin() + (j * first + i) * inner);
  return result;
}

static Status readState(const Invocation &op, size_t input, const Network &net,
                        std::vector<double> &values) {
  Extents extents = {net.directions, net.batch, net.hidden};
  if (net.batchFirst)
    std::swap(extents[0], extents[1]);
  TRY(readOperand(op, input, extents, values));
  if (net.batchFirst)
    values = swapOuter(values, net.batch, net.directions, net.hidden);
  return {};
}

static Status readNetwork(const Invocation &op, int64_t gates, size_t perDirection,
                          const char *activations, Network &net) {
  std::string_view direction = op.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return op.unsupported("direction=", direction);
  net.gates = gates;
  net.directions = direction == "bidirectional" ? 2 : 1;
  net.reverseFirst = direction == "reverse";
  net.batchFirst = op.integer("layout", 0);
  net.clip = op.real("clip", 0);
  if (op.rank(0) != 3 || op.rank(2) != 3)
    return op.bad("X of ", textOf(op.shape(0)), " and R of ", textOf(op.shape(2)),
                  "; both must be of rank 3");
  net.steps = op.shape(0)[net.batchFirst ? 1 : 0];
  net.batch = op.shape(0)[net.batchFirst ? 0 : 1];
  net.input = op.shape(0)[2];
  net.hidden = op.shape(2)[2];
  int64_t stated = op.integer("hidden_size", net.hidden);
  if (stated != net.hidden)
    return op.bad("hidden_size ", stated, " differs from R of ", textOf(op.shape(2)));
  net.x = op.numbers<double>(0);
  if (net.batchFirst)
    net.x = swapOuter(net.x, net.batch, net.steps, net.input);
  TRY(readOperand(op, 1, {net.directions, gates * net.hidden, net.input}, net.w));
  TRY(readOperand(op, 2, {net.directions, gates * net.hidden, net.hidden}, net.r));
  TRY(readOperand(op, 3, {net.directions, 2 * gates * net.hidden}, net.b));
  net.lengths.assign(static_cast<size_t>(net.batch), net.steps);
  if (op.has(4))
    TRY(op.integerOperand(4, net.lengths));
  if (static_cast<int64_t>(net.lengths.size()) != net.batch)
    return op.bad(net.lengths.size(), " sequence lengths for a batch of ", net.batch);
  for (int64_t length : net.lengths)
    if (length < 0 || length > net.steps)
      return op.bad("sequence length ", length, " is outside [0, ", net.steps, "]");
  TRY(readState(op, 5, net, net.h));
  TRY(readActivations(op, perDirection, activations, net));
  net.y.assign(static_cast<size_t>(net.steps * net.directions * net.batch * net.hidden), 0);
  return {};
}

/// Runs step(direction, input, hidden state, cell state or nullptr), which updates the states, over
/// all sequences.
template <typename Step> static void runSequences(Network &net, Step step) {
  for (int64_t d = 0; d < net.directions; ++d)
    for (int64_t n = 0; n < net.batch; ++n) {
      int64_t state = (d * net.batch + n) * net.hidden,
              length = net.lengths[static_cast<size_t>(n)];
      double *h = net.h.data() + state, *c = net.c.empty() ? nullptr : net.c.data() + state;
      for (int64_t t = 0; t < length; ++t) {
        int64_t at = d == 1 || net.reverseFirst ? length - 1 - t : t;
        step(d, net.x.data() + (at * net.batch + n) * net.input, h, c);
        std::copy_n(h, net.hidden,
                    net.y.begin() + ((at * net.directions + d) * net.batch + n) * net.hidden);
      }
    }
}

/// W x of one gate's row.
static double inputPart(const Network &net, int64_t d, int64_t row, const double *x) {
  const double *w = net.w.data() + (d * net.gates * net.hidden + row) * net.input;
  double sum = 0;
  for (int64_t i = 0; i < net.input; ++i)
    sum += w[i] * x[i];
  return sum;
}

/// R h of one gate's row.
static double statePart(const Network &net, int64_t d, int64_t row, const double *h) {
  const double *r = net.r.data() + (d * net.gates * net.hidden + row) * net.hidden;
  double sum = 0;
  for (int64_t i = 0; i < net.hidden; ++i)
    sum += r[i] * h[i];
  return sum;
}

static double inputBias(const Network &net, int64_t d, int64_t row) {
  return net.b[static_cast<size_t>(d * 2 * net.gates * net.hidden + row)];
}
static double stateBias(const Network &net, int64_t d, int64_t row) {
  return net.b[static_cast<size_t>((d * 2 + 1) * net.gates * net.hidden + row)];
}

static Status storeSequences(Invocation &op, const Network &net) {
  std::vector<double> y = net.y;
  Extents extents = {net.steps, net.directions, net.batch, net.hidden};
  if (net.batchFirst) {
    y = swapOuter(y, net.steps * net.directions, net.batch, net.hidden);
    extents = {net.batch, net.steps, net.directions, net.hidden};
  }
  return op.store(0, extents, y);
}

static Status storeState(Invocation &op, size_t output, const Network &net,
                         const std::vector<double> &state) {
  if (net.batchFirst)
    return op.store(output, {net.batch, net.directions, net.hidden},
                    swapOuter(state, net.directions, net.batch, net.hidden));
  return op.store(output, {net.directions, net.batch, net.hidden}, state);
}

Status rnn(Invocation &op) {
  Network net;
  TRY(readNetwork(op, 1, 1, "Tanh,Tanh", net));
  std::vector<double> next(static_cast<size_t>(net.hidden));
  runSequences(net, [&](int64_t d, const double *x, double *h, double *) {
    // Where two activations are stated for one direction, the second belongs to the reverse one.
    const Activation &f = net.activations[static_cast<size_t>(d)];
    for (int64_t i = 0; i < net.hidden; ++i)
      next[static_cast<size_t>(i)] =
          f(net.clipped(inputPart(net, d, i, x) + statePart(net, d, i, h) + inputBias(net, d, i) +
                        stateBias(net, d, i)));
    std::copy(next.begin(), next.end(), h);
  });
  TRY(storeSequences(op, net));
  return storeState(op, 1, net, net.h);
}

Status gru(Invocation &op) {
  Network net;
  TRY(readNetwork(op, 3, 2, "Sigmoid,Tanh", net));
  bool linearBeforeReset = op.integer("linear_before_reset", 0);
  auto hidden = static_cast<size_t>(net.hidden);
  std::vector<double> update(hidden), reset(hidden), gated(hidden);
  runSequences(net, [&](int64_t d, const double *x, double *h, double *) {
    const Activation *f = net.activations.data() + d * 2;
    auto gate = [&](int64_t row) {
      return f[0](net.clipped(inputPart(net, d, row, x) + statePart(net, d, row, h) +
                              inputBias(net, d, row) + stateBias(net, d, row)));
    };
    for (size_t i = 0; i < hidden; ++i) {
      update[i] = gate(static_cast<int64_t>(i));
      reset[i] = gate(net.hidden + static_cast<int64_t>(i));
      gated[i] = reset[i] * h[i];
    }
    for (size_t i = 0; i < hidden; ++i) {
      int64_t row = 2 * net.hidden + static_cast<int64_t>(i);
      double state = linearBeforeReset
                         ? reset[i] * (statePart(net, d, row, h) + stateBias(net, d, row))
                         : statePart(net, d, row, gated.data()) + stateBias(net, d, row);
      double proposed =
          f[1](net.clipped(inputPart(net, d, row, x) + inputBias(net, d, row) + state));
      update[i] = (1 - update[i]) * proposed + update[i] * h[i];
    }
    std::copy(update.begin(), update.end(), h);
  });
  TRY(storeSequences(op, net));
  return storeState(op, 1, net, net.h);
}

Status lstm(Invocation &op) {
  Network net;
  TRY(readNetwork(op, 4, 3, "Sigmoid,Tanh,Tanh", net));
  TRY(readState(op, 6, net, net.c));
  TRY(readOperand(op, 7, {net.directions, 3 * net.hidden}, net.p));
  bool coupled = op.integer("input_forget", 0);
  std::vector<double> next(static_cast<size_t>(net.hidden));
  runSequences(net, [&](int64_t d, const double *x, double *h, double *c) {
    const Activation *f = net.activations.data() + d * 3;
    const double *peephole = net.p.data() + d * 3 * net.hidden;
    auto sum = [&](int64_t gate, int64_t i, double peep) {
      int64_t row = gate * net.hidden + i;
      return net.clipped(inputPart(net, d, row, x) + statePart(net, d, row, h) +
                         inputBias(net, d, row) + stateBias(net, d, row) + peep);
    };
    // Gates and peepholes lie in the order input, output, forget; cell comes last.
    for (int64_t i = 0; i < net.hidden; ++i) {
      double input = f[0](sum(0, i, peephole[i] * c[i]));
      double forget = coupled ? 1 - input : f[0](sum(2, i, peephole[2 * net.hidden + i] * c[i]));
      double cell = forget * c[i] + input * f[1](sum(3, i, 0));
      double output = f[0](sum(1, i, peephole[net.hidden + i] * cell));
      c[i] = cell;
      next[static_cast<size_t>(i)] = output * f[2](cell);
    }
    std::copy(next.begin(), next.end(), h);
  });
  TRY(storeSequences(op, net));
  TRY(storeState(op, 1, net, net.h));
  return storeState(op, 2, net, net.c);
}

} // namespace dovetail::reference::ops
