// SPDX-License-Identifier: Apache-2.0
//
// Convolutions by the older calls, and what may follow them. Trials run nothing: the double's times
// are its own.
#include <algorithm>

#include "ElementTypes.h"
#include "Execution.h"
#include "Graphs.h"
#include "Legacy.h"

using namespace cudnn_double;

namespace cudnn_double {
namespace {

using api::ForwardAlgorithm;
using api::MathType;
using api::Operation;

/// What a convolution's call names.
struct Named {
  const LegacyTensor *x = nullptr, *w = nullptr, *y = nullptr;
  LegacyConvolution *convolution = nullptr;
  bool isWhole() const { return x && w && y && convolution; }
};

Named named(Entry &entry, Ref x, Ref w, Ref convolution, Ref y) {
  return {described(entry, legacy().tensors, x, "x"), described(entry, legacy().filters, w, "w"),
          described(entry, legacy().tensors, y, "y"),
          described(entry, legacy().convolutions, convolution, "the convolution")};
}

size_t add(api::Graph &graph, const LegacyTensor &tensor) {
  graph.tensors.push_back(tensor.tensor);
  graph.tensors.back().value = static_cast<uint32_t>(graph.tensors.size() - 1);
  graph.tensors.back().alignment = elementBytes(tensor.tensor.type);
  return graph.tensors.size() - 1;
}

/// A graph of x, w and y.
api::Graph graphOf(Entry &entry, const Named &of) {
  api::Graph graph;
  Operation op;
  op.kind = Operation::Kind::Convolution;
  op.operands = {add(graph, *of.x), add(graph, *of.w)};
  op.result = add(graph, *of.y);
  op.prePads = op.postPads = of.convolution->pads;
  op.strides = of.convolution->strides;
  op.dilations = of.convolution->dilations;
  const std::string wrong = checkShapes(graph, op);
  entry.need(wrong.empty(), BadParam, "{}", wrong);
  entry.need(of.x->tensor.dims[1] == of.w->tensor.dims[1] * of.convolution->groups, BadParam,
             "{} groups of {} channels for {}", of.convolution->groups, of.w->tensor.dims[1],
             of.x->tensor.dims[1]);
  entry.need(of.y->tensor.type == of.x->tensor.type, NotSupported,
             "operands and result are of different types");
  graph.operations.push_back(std::move(op));
  return graph;
}

bool isChannelsLast(const LegacyTensor &tensor) {
  const api::Dims &strides = tensor.tensor.strides;
  return strides[1] < strides.back() && tensor.tensor.dims[1] > 1;
}

uint64_t bytesOf(const LegacyTensor &tensor) {
  return static_cast<uint64_t>(dovetail::providers::product(tensor.tensor.dims) *
                               elementBytes(tensor.tensor.type));
}

/// Nothing where it does not take the convolution, by the documentation.
std::optional<api::AlgorithmPerformance> performance(const Named &of, ForwardAlgorithm algorithm) {
  const LegacyConvolution &c = *of.convolution;
  const api::Dims &w = of.w->tensor.dims;
  const bool isFirst = !isChannelsLast(*of.x) && !isChannelsLast(*of.y),
             isFloat = of.x->tensor.type == api::DataType::Float;
  const bool isUnit =
      isFirst && c.groups == 1 && c.strides == api::Dims(2, 1) && c.dilations == api::Dims(2, 1);
  api::AlgorithmPerformance made = {};
  made.algorithm = algorithm;
  made.isDeterministic = 1;
  made.math = isFloat && c.math == MathType::Fma ? MathType::Fma : MathType::TensorOp;
  switch (algorithm) {
  case ForwardAlgorithm::ImplicitGemm:
    made.millis = 0.9F;
    if (isFloat)
      made.math = MathType::Fma;
    return made;
  case ForwardAlgorithm::ImplicitPrecompGemm:
    made.millis = 0.4F;
    made.workspaceBytes = 4096;
    return made;
  case ForwardAlgorithm::Gemm:
    made.millis = 0.6F;
    made.workspaceBytes =
        bytesOf(*of.x) * static_cast<uint64_t>(dovetail::providers::product(w, 2, w.size()));
    return isFirst && c.groups == 1 && w.size() == 4 ? std::optional(made) : std::nullopt;
  case ForwardAlgorithm::Fft:
  case ForwardAlgorithm::FftTiling:
    made.millis = 0.7F;
    made.workspaceBytes = 2 * (bytesOf(*of.x) + bytesOf(*of.y));
    return isUnit && w[2] > c.pads[0] && w[3] > c.pads[1] ? std::optional(made) : std::nullopt;
  case ForwardAlgorithm::Winograd:
  case ForwardAlgorithm::WinogradNonfused:
    made.millis = 0.2F;
    made.workspaceBytes = algorithm == ForwardAlgorithm::Winograd ? 0 : 4 * bytesOf(*of.w);
    return isUnit && w[2] == 3 && w[3] == 3 ? std::optional(made) : std::nullopt;
  default:
    return std::nullopt;
  }
}

/// All algorithms, those that do not take it last.
std::vector<api::AlgorithmPerformance> ranking(const Named &of) {
  std::vector<api::AlgorithmPerformance> all;
  for (int i = 0; i < 8; ++i) {
    const auto algorithm = static_cast<ForwardAlgorithm>(i);
    const std::optional<api::AlgorithmPerformance> found = performance(of, algorithm);
    api::AlgorithmPerformance none = {};
    none.algorithm = algorithm;
    none.status = NotSupported;
    none.millis = -1;
    all.push_back(found.value_or(none));
  }
  std::stable_sort(all.begin(), all.end(), [](const auto &a, const auto &b) {
    return std::pair(a.status != 0, a.millis) < std::pair(b.status != 0, b.millis);
  });
  return all;
}

int list(const char *name, Ref handle, Ref x, Ref w, Ref convolution, Ref y, int most, int *count,
         api::AlgorithmPerformance *to) {
  Entry entry(name);
  entry.handle(handle);
  const Named of = named(entry, x, w, convolution, y);
  entry.need(count && to && most >= 1, BadParam, "there is no place for the algorithms");
  if (!entry.isFine())
    return entry.end();
  graphOf(entry, of);
  if (!entry.isFine())
    return entry.end();
  const std::vector<api::AlgorithmPerformance> all = ranking(of);
  *count = std::min(most, static_cast<int>(all.size()));
  std::copy_n(all.begin(), *count, to);
  return entry.end();
}

void expectScales(Entry &entry, const void *alpha, const void *beta, float wantedBeta) {
  if (entry.need(alpha && beta, NullPointer, "a scale is missing"))
    entry.need(*static_cast<const float *>(alpha) == 1 &&
                   *static_cast<const float *>(beta) == wantedBeta,
               NotSupported, "scales other than 1 and {} are not used here", wantedBeta);
}

/// A run of the graph with an algorithm, and its workspace.
std::shared_ptr<Run> runOf(Entry &entry, api::Graph graph, const Named &of,
                           ForwardAlgorithm algorithm, void *workspace, size_t bytes) {
  const std::optional<api::AlgorithmPerformance> found = performance(of, algorithm);
  if (!entry.need(found.has_value(), NotSupported, "algorithm {} does not take this convolution",
                  static_cast<int>(algorithm)))
    return nullptr;
  entry.need(bytes >= found->workspaceBytes, BadParam,
             "the workspace has {} bytes, the algorithm takes {}", bytes, found->workspaceBytes);
  auto run = std::make_shared<Run>();
  run->addresses.assign(graph.tensors.size(), nullptr);
  run->graph = std::move(graph);
  run->workspace = found->workspaceBytes > 0 ? workspace : nullptr;
  run->workspaceBytes = found->workspaceBytes;
  run->rounding.operandsToTf32 = found->math != MathType::Fma;
  run->rounding.temporariesToType = true;
  checkWorkspace(entry, *run);
  return run;
}

/// Appends an element-wise operation on `before` that gives `result`.
void follow(api::Graph &graph, Operation op, std::vector<size_t> operands, size_t result) {
  op.kind = Operation::Kind::Pointwise;
  op.operands = std::move(operands);
  op.result = result;
  graph.operations.push_back(std::move(op));
}

size_t addTemporary(api::Graph &graph, const LegacyTensor &like) {
  api::Tensor made = like.tensor;
  made.type = api::DataType::Float;
  made.value = DVT_NO_VALUE;
  graph.tensors.push_back(std::move(made));
  return graph.tensors.size() - 1;
}

void expectChannels(Entry &entry, const LegacyTensor *bias, const LegacyTensor *of) {
  if (!bias || !of)
    return;
  api::Dims channels(of->tensor.dims.size(), 1);
  channels[1] = of->tensor.dims[1];
  entry.need(bias->tensor.dims == channels, BadParam, "a bias has one number for each channel");
}

} // namespace
} // namespace cudnn_double

CUDNN_ENTRY int cudnnGetConvolutionForwardAlgorithm_v7(Ref handle, Ref x, Ref w, Ref convolution,
                                                       Ref y, int most, int *count,
                                                       api::AlgorithmPerformance *to) {
  return list("cudnnGetConvolutionForwardAlgorithm_v7", handle, x, w, convolution, y, most, count,
              to);
}

CUDNN_ENTRY int cudnnFindConvolutionForwardAlgorithm(Ref handle, Ref x, Ref w, Ref convolution,
                                                     Ref y, int most, int *count,
                                                     api::AlgorithmPerformance *to) {
  return list("cudnnFindConvolutionForwardAlgorithm", handle, x, w, convolution, y, most, count,
              to);
}

CUDNN_ENTRY int cudnnGetConvolutionForwardWorkspaceSize(Ref handle, Ref x, Ref w, Ref convolution,
                                                        Ref y, ForwardAlgorithm algorithm,
                                                        size_t *bytes) {
  Entry entry("cudnnGetConvolutionForwardWorkspaceSize");
  entry.handle(handle);
  const Named of = named(entry, x, w, convolution, y);
  entry.need(bytes, NullPointer, "there is no place for the number");
  if (!of.isWhole() || !entry.isFine())
    return entry.end();
  graphOf(entry, of);
  const std::optional<api::AlgorithmPerformance> found = performance(of, algorithm);
  if (entry.need(found.has_value(), NotSupported, "algorithm {} does not take this convolution",
                 static_cast<int>(algorithm)))
    *bytes = found->workspaceBytes;
  return entry.end();
}

CUDNN_ENTRY int cudnnConvolutionForward(Ref handle, const void *alpha, Ref xDesc, const void *x,
                                        Ref wDesc, const void *w, Ref convolution,
                                        ForwardAlgorithm algorithm, void *workspace, size_t bytes,
                                        const void *beta, Ref yDesc, void *y) {
  Entry entry("cudnnConvolutionForward");
  const Handle *with = entry.handle(handle);
  const Named of = named(entry, xDesc, wDesc, convolution, yDesc);
  expectScales(entry, alpha, beta, 0);
  if (!entry.isFine())
    return entry.end();
  const auto run = runOf(entry, graphOf(entry, of), of, algorithm, workspace, bytes);
  if (!run)
    return entry.end();
  bindMemory(entry, *run, 0, "x", const_cast<void *>(x));
  bindMemory(entry, *run, 1, "w", const_cast<void *>(w));
  bindMemory(entry, *run, 2, "y", y);
  enqueue(entry, "cudnnConvolutionForward", *with, run);
  return entry.end();
}

CUDNN_ENTRY int cudnnConvolutionBiasActivationForward(Ref handle, const void *alpha, Ref xDesc,
                                                      const void *x, Ref wDesc, const void *w,
                                                      Ref convolution, ForwardAlgorithm algorithm,
                                                      void *workspace, size_t bytes,
                                                      const void *alphaOfZ, Ref zDesc,
                                                      const void *z, Ref biasDesc, const void *bias,
                                                      Ref activation, Ref yDesc, void *y) {
  Entry entry("cudnnConvolutionBiasActivationForward");
  const Handle *with = entry.handle(handle);
  const Named of = named(entry, xDesc, wDesc, convolution, yDesc);
  const LegacyTensor *addend = described(entry, legacy().tensors, zDesc, "z"),
                     *channels = described(entry, legacy().tensors, biasDesc, "the bias");
  const LegacyActivation *bend =
      described(entry, legacy().activations, activation, "the activation");
  const float *scale = static_cast<const float *>(alphaOfZ);
  entry.need(alpha && scale && *static_cast<const float *>(alpha) == 1 &&
                 (*scale == 0 || *scale == 1),
             NotSupported, "a scale is missing, or other than 1 or 0");
  expectChannels(entry, channels, of.y);
  if (!entry.isFine())
    return entry.end();
  entry.need(bend->op.pointwise == api::PointwiseMode::Relu && !bend->op.upperClip, NotSupported,
             "an activation other than ReLU");
  entry.need(addend->tensor.dims == of.y->tensor.dims &&
                 addend->tensor.strides == of.y->tensor.strides,
             BadParam, "z lies otherwise than y");
  api::Graph graph = graphOf(entry, of);
  const size_t raw = addTemporary(graph, *of.y), biased = addTemporary(graph, *of.y),
               biasAt = add(graph, *channels);
  graph.operations[0].result = raw;
  Operation sum;
  sum.pointwise = api::PointwiseMode::Add;
  follow(graph, sum, {raw, biasAt}, biased);
  size_t before = biased, zAt = 0;
  if (*scale == 1) {
    before = addTemporary(graph, *of.y);
    zAt = add(graph, *addend);
    follow(graph, sum, {biased, zAt}, before);
  }
  follow(graph, bend->op, {before}, 2);
  const auto run = runOf(entry, std::move(graph), of, algorithm, workspace, bytes);
  if (!run)
    return entry.end();
  bindMemory(entry, *run, 0, "x", const_cast<void *>(x));
  bindMemory(entry, *run, 1, "w", const_cast<void *>(w));
  bindMemory(entry, *run, 2, "y", y);
  bindMemory(entry, *run, biasAt, "the bias", const_cast<void *>(bias));
  if (*scale == 1)
    bindMemory(entry, *run, zAt, "z", const_cast<void *>(z));
  entry.need(z, NullPointer, "z has no address");
  enqueue(entry, "cudnnConvolutionBiasActivationForward", *with, run);
  return entry.end();
}

CUDNN_ENTRY int cudnnAddTensor(Ref handle, const void *alpha, Ref aDesc, const void *a,
                               const void *beta, Ref cDesc, void *c) {
  Entry entry("cudnnAddTensor");
  const Handle *with = entry.handle(handle);
  const LegacyTensor *from = described(entry, legacy().tensors, aDesc, "a"),
                     *to = described(entry, legacy().tensors, cDesc, "c");
  expectScales(entry, alpha, beta, 1);
  if (!entry.isFine())
    return entry.end();
  auto run = std::make_shared<Run>();
  add(run->graph, *from);
  add(run->graph, *to);
  Operation sum;
  sum.pointwise = api::PointwiseMode::Add;
  follow(run->graph, sum, {1, 0}, 1);
  const std::string wrong = checkShapes(run->graph, run->graph.operations[0]);
  entry.need(wrong.empty() && from->tensor.type == to->tensor.type, BadParam, "types differ, or {}",
             wrong);
  run->addresses.assign(2, nullptr);
  bindMemory(entry, *run, 0, "a", const_cast<void *>(a));
  bindMemory(entry, *run, 1, "c", c);
  enqueue(entry, "cudnnAddTensor", *with, run);
  return entry.end();
}

CUDNN_ENTRY int cudnnActivationForward(Ref handle, Ref activation, const void *alpha, Ref xDesc,
                                       const void *x, const void *beta, Ref yDesc, void *y) {
  Entry entry("cudnnActivationForward");
  const Handle *with = entry.handle(handle);
  const LegacyTensor *from = described(entry, legacy().tensors, xDesc, "x"),
                     *to = described(entry, legacy().tensors, yDesc, "y");
  const LegacyActivation *bend =
      described(entry, legacy().activations, activation, "the activation");
  expectScales(entry, alpha, beta, 0);
  if (!entry.isFine())
    return entry.end();
  entry.need(x != y || from->tensor.strides == to->tensor.strides, BadParam,
             "x and y lie in one place and otherwise");
  auto run = std::make_shared<Run>();
  // In place it is one tensor.
  const size_t source = add(run->graph, *from), result = x == y ? source : add(run->graph, *to);
  follow(run->graph, bend->op, {source}, result);
  const std::string wrong = checkShapes(run->graph, run->graph.operations[0]);
  entry.need(wrong.empty() && from->tensor.dims == to->tensor.dims, BadParam,
             "shapes differ, or {}", wrong);
  run->addresses.assign(run->graph.tensors.size(), nullptr);
  bindMemory(entry, *run, source, "x", const_cast<void *>(x));
  if (result != source)
    bindMemory(entry, *run, result, "y", y);
  enqueue(entry, "cudnnActivationForward", *with, run);
  return entry.end();
}
