// SPDX-License-Identifier: Apache-2.0
//
// What the engines take follows what was seen of the library: products and convolutions with
// element-wise operations around them, reductions of what lies in memory, and not reductions that
// others wait for, such as those of a softmax.
#include "Engines.h"

#include <algorithm>
#include <cstdlib>

#include "ElementTypes.h"

namespace cudnn_double {
namespace {

using api::Graph;
using api::Operation;
using Kind = Operation::Kind;

enum Number : int64_t { Plain = 0, MatrixUnits = 1, Winograd = 5, Compiled = 9 };
constexpr int64_t kSplitKnob = 2; ///< 1: sums in parts, which are added up in workspace

bool contracts(const Operation &op) {
  return op.kind == Kind::Convolution || op.kind == Kind::Matmul || op.kind == Kind::Attention;
}

const Operation *findContraction(const Graph &graph) {
  const auto found = std::find_if(graph.operations.begin(), graph.operations.end(), contracts);
  return found == graph.operations.end() ? nullptr : &*found;
}

bool isWinograd(const Graph &graph) {
  const Operation *op = findContraction(graph);
  if (!op || op->kind != Kind::Convolution || op->strides.size() != 2)
    return false;
  const api::Dims &x = graph.tensors[op->operands[0]].dims,
                  &w = graph.tensors[op->operands[1]].dims;
  return w[1] == x[1] && w[2] == 3 && w[3] == 3 && op->strides == api::Dims{1, 1} &&
         op->dilations == api::Dims{1, 1};
}

/// Empty, or why no engine takes the graph.
std::string whyNone(const Graph &graph) {
  size_t large = 0;
  for (const Operation &op : graph.operations) {
    large += op.kind != Kind::Pointwise;
    if (op.kind != Kind::Reduction)
      continue;
    if (op.reduction == api::ReductionOperator::Mean)
      return "no engine takes a mean";
    for (const Operation &other : graph.operations)
      if (std::count(other.operands.begin(), other.operands.end(), op.result))
        return "no engine takes a reduction that another operation reads";
  }
  return large > 1 ? "no engine takes a graph of two such operations" : "";
}

std::vector<Settings> allFor(const Graph &graph) {
  std::vector<Settings> all;
  if (findContraction(graph)) {
    all.push_back({MatrixUnits, {{kSplitKnob, 0}}});
    all.push_back({MatrixUnits, {{kSplitKnob, 1}}});
    if (isWinograd(graph))
      all.push_back({Winograd, {}});
  } else if (std::all_of(graph.operations.begin(), graph.operations.end(), [](const auto &op) {
               return op.kind == Kind::Pointwise || op.kind == Kind::Reduction;
             })) {
    all.push_back({Compiled, {}});
  }
  all.push_back({Plain, {}});
  return all;
}

} // namespace

std::vector<Settings> enginesFor(const Graph &graph, api::HeuristicMode mode, std::string &reason) {
  reason = whyNone(graph);
  if (!reason.empty())
    return {};
  std::vector<Settings> all = allFor(graph);
  if (mode == api::HeuristicMode::B)
    std::reverse(all.begin(), all.end());
  if (mode == api::HeuristicMode::Fallback)
    all.erase(all.begin(), all.end() - 1);
  return all;
}

std::optional<Engine> findEngine(const Graph &graph, const Settings &settings,
                                 std::string &reason) {
  reason = whyNone(graph);
  bool isKnown = false;
  for (const Settings &known : allFor(graph))
    isKnown |= known.engine == settings.engine && known.knobs == settings.knobs;
  if (reason.empty() && !isKnown)
    reason =
        fmt::format("there is no engine {} with these settings for the graph", settings.engine);
  if (!reason.empty())
    return std::nullopt;
  Engine engine;
  engine.rounding.temporariesToType = true;
  if (settings.engine == MatrixUnits) {
    engine.numericalNotes.insert(static_cast<int>(api::NumericalNote::TensorCore));
    engine.rounding.operandsToTf32 = true;
  }
  if (settings.engine == Winograd)
    engine.numericalNotes.insert(static_cast<int>(api::NumericalNote::Winograd));
  if (settings.engine == Compiled)
    engine.behaviorNotes.insert(static_cast<int>(api::BehaviorNote::RuntimeCompilation));
  return engine;
}

uint64_t workspaceOf(const Graph &graph, const Settings &settings) {
  if (const char *wanted = std::getenv("DOVETAIL_SIMULATED_CUDNN_WORKSPACE"))
    return std::strtoull(wanted, nullptr, 10);
  const Operation *op = findContraction(graph);
  if (!op || settings.engine == Plain)
    return 0;
  auto bytes = [&](size_t tensor) {
    const api::Tensor &of = graph.tensors[tensor];
    return static_cast<uint64_t>(dovetail::providers::product(of.dims) * elementBytes(of.type));
  };
  const auto split = settings.knobs.find(kSplitKnob);
  if (split != settings.knobs.end() && split->second == 1)
    return 2 * bytes(op->result);
  return settings.engine == Winograd ? 4 * bytes(op->operands[1]) : 0;
}

} // namespace cudnn_double
