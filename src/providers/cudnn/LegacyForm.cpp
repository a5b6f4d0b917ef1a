// SPDX-License-Identifier: Apache-2.0
//
// Which algorithm takes which convolution follows the library's documentation; the device has the
// last word. What is not known before is offered where it may be.
#include "providers/cudnn/LegacyForm.h"

#include <algorithm>
#include <limits>

#include "providers/ChannelsLast.h"
#include "providers/OperandView.h"

namespace dovetail::cudnn {
namespace {

/// The calls take extents and strides as int.
bool fitsInt(const Tensor &tensor) {
  int64_t last = 0;
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    if (tensor.dims[i] > std::numeric_limits<int32_t>::max() ||
        tensor.strides[i] > std::numeric_limits<int32_t>::max())
      return false;
    last += (tensor.dims[i] - 1) * tensor.strides[i];
    if (last > std::numeric_limits<int32_t>::max())
      return false;
  }
  return true;
}

class Finder {
public:
  Finder(const Graph &graph, std::string &reason) : graph(graph), reason(reason) {}

  std::optional<LegacyForm> run() {
    if (graph.operations.empty() || graph.operations.front().kind != Operation::Kind::Convolution)
      return refuse("the older calls are used for problems that begin with a convolution");
    if (!readConvolution(graph.operations.front()))
      return std::nullopt;
    size_t before = graph.operations.front().result;
    for (size_t i = 1; i < graph.operations.size(); ++i) {
      if (!readFollower(graph.operations[i], before))
        return std::nullopt;
      before = graph.operations[i].result;
    }
    form.y = before;
    return checkTensors() ? std::optional(form) : std::nullopt;
  }

private:
  std::nullopt_t refuse(const char *why) {
    reason = why;
    return std::nullopt;
  }
  bool isNot(bool condition, const char *why) {
    if (condition)
      reason = why;
    return condition;
  }

  bool readConvolution(const Operation &op) {
    form.x = op.operands[0];
    form.w = op.operands[1];
    form.pads = op.prePads;
    form.strides = op.strides;
    form.dilations = op.dilations;
    const Tensor &x = graph.tensors[form.x], &w = graph.tensors[form.w];
    form.groups = x.dims[1] / w.dims[1];
    if (w.strides == providers::channelsLastStrides(w.dims) &&
        w.strides != providers::denseStrides(w.dims))
      form.filterFormat = TensorFormat::ChannelsLast;
    else if (isNot(!providers::isDense(w.dims, w.strides), "the older calls take dense weights"))
      return false;
    return !isNot(x.isVirtual() || w.isVirtual() || x.number || w.number,
                  "the older calls have nothing in front of a convolution") &&
           !isNot(op.prePads != op.postPads, "the older calls pad both sides alike");
  }

  /// An element-wise operation on what was computed before it, read by nothing else.
  bool readFollower(const Operation &op, size_t before) {
    const char *const kNoCall = "no older call computes what follows the convolution";
    if (isNot(op.kind != Operation::Kind::Pointwise || !graph.tensors[before].isVirtual() ||
                  form.activation.has_value(),
              kNoCall))
      return false;
    size_t uses = 0;
    for (const Operation &other : graph.operations)
      uses += static_cast<size_t>(std::count(other.operands.begin(), other.operands.end(), before));
    if (isNot(uses != 1, kNoCall))
      return false;
    if (op.operands.size() == 1 && op.operands[0] == before)
      return !isNot(!readActivation(op), kNoCall);
    if (isNot(op.operands.size() != 2 || op.pointwise != PointwiseMode::Add, kNoCall))
      return false;
    const size_t other = op.operands[0] == before ? op.operands[1] : op.operands[0];
    return !isNot(!readAddend(other, graph.tensors[before].dims), kNoCall);
  }

  bool readAddend(size_t tensor, const Dims &result) {
    const Tensor &from = graph.tensors[tensor];
    Dims channels(result.size(), 1);
    channels[1] = result[1];
    if (from.isVirtual() || from.number)
      return false;
    if (from.dims == channels && !form.bias && !form.addend)
      form.bias = tensor;
    else if (from.dims == result && !form.addend)
      form.addend = tensor;
    else
      return false;
    return true;
  }

  bool readActivation(const Operation &op) {
    switch (op.pointwise) {
    case PointwiseMode::Relu:
      if (op.slope || op.lowerClip.value_or(0) != 0)
        return false;
      form.activation = op.upperClip ? ActivationMode::ClippedRelu : ActivationMode::Relu;
      form.coefficient = op.upperClip.value_or(0);
      return true;
    case PointwiseMode::Sigmoid:
      form.activation = ActivationMode::Sigmoid;
      return true;
    case PointwiseMode::Tanh:
      form.activation = ActivationMode::Tanh;
      return true;
    case PointwiseMode::Elu:
      form.activation = ActivationMode::Elu;
      form.coefficient = op.alpha.value_or(1);
      return true;
    default:
      return false;
    }
  }

  bool checkTensors() {
    const DataType type = graph.tensors[form.x].type;
    for (std::optional<size_t> tensor : {std::optional(form.x), std::optional(form.w),
                                         std::optional(form.y), form.bias, form.addend})
      if (tensor &&
          (isNot(graph.tensors[*tensor].type != type, "the older calls take tensors of one type") ||
           isNot(!fitsInt(graph.tensors[*tensor]),
                 "the older calls take tensors of less than 2^31 elements")))
        return false;
    return !isNot(graph.tensors[form.y].isVirtual(), "a result is missing") &&
           !isNot(type == DataType::Bfloat16 && form.calls(graph) > 1,
                  "the older calls compute convolutions in bf16 and nothing else");
  }

  const Graph &graph;
  std::string &reason;
  LegacyForm form;
};

uint64_t bytesOf(const Tensor &tensor) {
  return static_cast<uint64_t>(providers::product(tensor.dims)) *
         (tensor.type == DataType::Float ? 4 : 2);
}

/// Enough for an unfolded image, and for operands and result transformed, in f32.
uint64_t workspaceBound(const Graph &graph, const LegacyForm &form) {
  constexpr uint64_t kTables = 1 << 20, kOfTransforms = 8;
  const Tensor &x = graph.tensors[form.x], &w = graph.tensors[form.w], &y = graph.tensors[form.y];
  const int64_t window = providers::product(w.dims, 2, w.dims.size()),
                places = providers::product(y.dims, 2, y.dims.size());
  const uint64_t unfolded = static_cast<uint64_t>(x.dims[0] * x.dims[1] * window * places) * 4;
  return kTables + std::max(unfolded, kOfTransforms * (bytesOf(x) + bytesOf(w) + bytesOf(y)));
}

bool isPlain(const LegacyForm &form) {
  auto areOnes = [](const Dims &numbers) {
    return std::all_of(numbers.begin(), numbers.end(), [](int64_t each) { return each == 1; });
  };
  return form.strides.size() == 2 && areOnes(form.strides) && areOnes(form.dilations) &&
         form.groups == 1;
}

/// Whether the documentation lets an algorithm take the convolution.
bool takes(ForwardAlgorithm algorithm, const Graph &graph, const LegacyForm &form) {
  constexpr int64_t kMostForFft = 256, kMostForTiles = 32;
  const Dims &x = graph.tensors[form.x].dims, &w = graph.tensors[form.w].dims;
  const bool isFirst = form.filterFormat == TensorFormat::ChannelsFirst;
  if (algorithm == ForwardAlgorithm::ImplicitGemm ||
      algorithm == ForwardAlgorithm::ImplicitPrecompGemm)
    return true;
  if (algorithm == ForwardAlgorithm::Gemm)
    return isFirst && form.strides.size() == 2 && form.groups == 1;
  if (!isFirst || !isPlain(form))
    return false;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t padded = x[i + 2] + 2 * form.pads[i];
    const bool isInside = w[i + 2] > form.pads[i];
    if (algorithm == ForwardAlgorithm::Fft && (padded > kMostForFft || !isInside))
      return false;
    if (algorithm == ForwardAlgorithm::FftTiling && (w[i + 2] > kMostForTiles || !isInside))
      return false;
    if (algorithm == ForwardAlgorithm::Winograd && w[i + 2] != 3)
      return false;
    if (algorithm == ForwardAlgorithm::WinogradNonfused && w[i + 2] != 3 && w[i + 2] != 5)
      return false;
  }
  return w[2] == w[3] || (algorithm != ForwardAlgorithm::Winograd &&
                          algorithm != ForwardAlgorithm::WinogradNonfused);
}

struct Named {
  ForwardAlgorithm algorithm;
  const char *name, *suffix; ///< of the class of rounding
};
constexpr Named kAlgorithms[] = {
    {ForwardAlgorithm::ImplicitGemm, "implicit_gemm", ""},
    {ForwardAlgorithm::ImplicitPrecompGemm, "implicit_precomp_gemm", ""},
    {ForwardAlgorithm::Gemm, "gemm", ""},
    {ForwardAlgorithm::Fft, "fft", "-fft"},
    {ForwardAlgorithm::FftTiling, "fft_tiling", "-fft"},
    {ForwardAlgorithm::Winograd, "winograd", "-winograd"},
    {ForwardAlgorithm::WinogradNonfused, "winograd_nonfused", "-winograd"},
};

} // namespace

bool LegacyForm::isFused(const Graph &graph) const {
  return bias && activation == ActivationMode::Relu &&
         (!addend || graph.tensors[*addend].strides == graph.tensors[y].strides);
}

size_t LegacyForm::calls(const Graph &graph) const {
  return isFused(graph) ? 1
                        : 1 + size_t{bias.has_value()} + size_t{addend.has_value()} +
                              size_t{activation.has_value()};
}

std::optional<LegacyForm> findLegacyForm(const Graph &graph, std::string &reason) {
  return Finder(graph, reason).run();
}

std::vector<LegacyOffer> legacyOffers(const Graph &graph, const LegacyForm &form) {
  const DataType type = graph.tensors[form.x].type;
  const bool isFloat = type == DataType::Float;
  const std::string plain = isFloat ? "f32" : type == DataType::Half ? "f16" : "bf16";
  const MathType math = isFloat ? MathType::Fma : MathType::TensorOp;
  const uint64_t bound = workspaceBound(graph, form);
  using By = LegacyOffer::By;
  std::vector<LegacyOffer> offers;
  for (const Named &each : kAlgorithms)
    if (takes(each.algorithm, graph, form))
      offers.push_back({By::Name, each.algorithm, math, std::string("legacy:") + each.name,
                        plain + each.suffix,
                        each.algorithm == ForwardAlgorithm::ImplicitGemm ? 0 : bound});
  offers.push_back({By::Ranking, {}, math, "legacy:late", plain, bound});
  offers.push_back({By::Trial, {}, math, "legacy:find:late", plain, bound});
  if (!isFloat)
    return offers;
  // The same by matrix units, which round f32 to 10 bits of fraction.
  offers.push_back({By::Name, ForwardAlgorithm::ImplicitPrecompGemm, MathType::TensorOp,
                    "legacy:implicit_precomp_gemm:tf32", "tf32", bound});
  offers.push_back({By::Ranking, {}, MathType::TensorOp, "legacy:late:tf32", "tf32", bound});
  offers.push_back({By::Trial, {}, MathType::TensorOp, "legacy:find:late:tf32", "tf32", bound});
  return offers;
}

double estimateMicros(const Graph &graph, const LegacyForm &form, const LegacyOffer &offer,
                      const providers::RoughWork &work, const providers::DevicePeaks &peaks) {
  // Graphs know more engines, so these stand behind them; then what is decided on the device.
  constexpr double kCaution = 1.12, kOfRanking = 0.01, kOfTrials = 0.02;
  const std::string type = offer.numerics.substr(0, offer.numerics.find('-')),
                    unit = offer.math == MathType::Fma ? type : type + "_matrix";
  const double busy = peaks.busyMicros(work, unit);
  const double changes = static_cast<double>(form.calls(graph) - 1),
               resultBytes = static_cast<double>(bytesOf(graph.tensors[form.y])),
               again = peaks.busyMicros({0, 2 * changes * resultBytes}, unit);
  if (busy < 0 || again < 0)
    return -1;
  const double rank = kCaution + (offer.by == LegacyOffer::By::Ranking ? kOfRanking : 0) +
                      (offer.by == LegacyOffer::By::Trial ? kOfTrials : 0);
  return peaks.launchMicros * (1 + changes) + (busy + again) * rank;
}

} // namespace dovetail::cudnn
