// SPDX-License-Identifier: Apache-2.0
//
// Reads what descriptors of operations refer to. Operations stand in an order in which they can be
// computed, every tensor has one id, and what is virtual is given before it is read.
#include <algorithm>

#include "Graphs.h"

namespace cudnn_double {
namespace {

using A = api::Attribute;
using api::Dims;
using api::Operation;
using K = api::DescriptorKind;

struct Fraction {
  int64_t numerator, denominator;
};

class Reader {
public:
  explicit Reader(Entry &entry) : entry(entry) {}

  std::shared_ptr<const KnownGraph> read(const std::vector<Ref> &operations) {
    entry.need(!operations.empty(), BadParam, "a graph without operations");
    for (Ref ref : operations) {
      const Descriptor *descriptor = entry.find(ref);
      if (!descriptor ||
          !entry.need(descriptor->isFinal, NotFinalized, "an operation was not finalised"))
        return nullptr;
      Operation op = operation(*descriptor);
      if (!entry.isFine())
        return nullptr;
      const std::string wrong = checkShapes(known.graph, op);
      entry.need(wrong.empty(), ShapeMismatch, "{}: {}", nameOf(descriptor->kind), wrong);
      if (!checkOrder(op))
        return nullptr;
      known.graph.operations.push_back(std::move(op));
    }
    return entry.isFine() ? std::make_shared<const KnownGraph>(std::move(known)) : nullptr;
  }

private:
  size_t tensor(const Descriptor &of, A attribute) {
    const Ref ref = of.get<Ref>(attribute);
    for (size_t i = 0; i < refs.size(); ++i)
      if (refs[i] == ref)
        return i;
    const Descriptor *found = entry.final(ref, K::Tensor, "an operand or result");
    if (!found)
      return Operation::kAbsent;
    refs.push_back(ref);
    known.graph.tensors.push_back(describe(*found));
    const auto id = found->get<int64_t>(A::TensorUniqueId);
    entry.need(std::find(known.ids.begin(), known.ids.end(), id) == known.ids.end(),
               DuplicatedEntries, "two tensors have the id {}", id);
    known.ids.push_back(id);
    return refs.size() - 1;
  }

  api::Tensor describe(const Descriptor &from) {
    api::Tensor made;
    made.type = from.get<api::DataType>(A::TensorDataType);
    made.dims = from.list<int64_t>(A::TensorDimensions);
    made.strides = from.list<int64_t>(A::TensorStrides);
    made.alignment = from.get<int64_t>(A::TensorByteAlignment);
    if (from.one<bool>(A::TensorIsByValue).value_or(false))
      made.number = 0;
    else if (!from.one<bool>(A::TensorIsVirtual).value_or(false))
      made.value = static_cast<uint32_t>(known.graph.tensors.size());
    return made;
  }

  /// What it reads is there, and nothing else gives what it gives.
  bool checkOrder(const Operation &op) {
    auto isGiven = [&](size_t tensor) {
      return std::any_of(known.graph.operations.begin(), known.graph.operations.end(),
                         [&](const Operation &earlier) { return earlier.result == tensor; });
    };
    for (size_t operand : op.operands)
      if (operand != Operation::kAbsent && known.graph.tensors[operand].isVirtual())
        entry.need(isGiven(operand), BadParam, "the virtual tensor {} is read before it is given",
                   known.ids[operand]);
    entry.need(!isGiven(op.result), BadParam, "two operations give tensor {}",
               known.ids[op.result]);
    entry.need(!known.graph.tensors[op.result].number, BadParam,
               "an operation gives a tensor that is handed over by value");
    return entry.isFine();
  }

  Operation operation(const Descriptor &from) {
    switch (from.kind) {
    case K::ConvolutionForwardOp:
      return convolution(from);
    case K::MatmulOp:
      return matmul(from);
    case K::PointwiseOp:
      return pointwise(from);
    case K::ReductionOp:
      return reduction(from);
    case K::ResampleForwardOp:
      return resample(from);
    case K::NormForwardOp:
      return norm(from);
    case K::AttentionForwardOp:
      return attention(from);
    default:
      entry.need(false, WrongDescriptorType, "a {} is no operation", nameOf(from.kind));
      return {};
    }
  }

  /// The description that an operation refers to; all arithmetic in f32.
  const Descriptor *description(const Descriptor &of, A attribute, K kind, A computeType) {
    const Descriptor *found = entry.final(of.get<Ref>(attribute), kind, "what describes it");
    if (found)
      entry.need(found->get<api::DataType>(computeType) == api::DataType::Float, NotSupported,
                 "arithmetic in type {}", found->get<int>(computeType));
    return entry.isFine() ? found : nullptr;
  }
  void expectPlain(const Descriptor &of, A alpha, A beta) {
    entry.need(of.get<double>(alpha) == 1 && of.get<double>(beta) == 0, NotSupported,
               "scales other than 1 and 0");
  }

  Operation convolution(const Descriptor &from) {
    Operation op;
    op.kind = Operation::Kind::Convolution;
    op.operands = {tensor(from, A::ConvolutionOpX), tensor(from, A::ConvolutionOpW)};
    op.result = tensor(from, A::ConvolutionOpY);
    expectPlain(from, A::ConvolutionOpAlpha, A::ConvolutionOpBeta);
    const Descriptor *window =
        description(from, A::ConvolutionOpDescriptor, K::Convolution, A::ConvolutionComputeType);
    if (!window)
      return op;
    entry.need(window->get<int>(A::ConvolutionMode) == api::kCrossCorrelation, NotSupported,
               "mode {} is no cross-correlation", window->get<int>(A::ConvolutionMode));
    op.prePads = window->list<int64_t>(A::ConvolutionPrePaddings);
    op.postPads = window->list<int64_t>(A::ConvolutionPostPaddings);
    op.strides = window->list<int64_t>(A::ConvolutionStrides);
    op.dilations = window->list<int64_t>(A::ConvolutionDilations);
    expectSpatial(window->get<int64_t>(A::ConvolutionSpatialDims),
                  {&op.prePads, &op.postPads, &op.strides, &op.dilations});
    return op;
  }
  void expectSpatial(int64_t spatial, std::initializer_list<const Dims *> lists) {
    entry.need(spatial >= 1 && spatial <= 3, BadParam, "{} spatial dimensions", spatial);
    for (const Dims *list : lists)
      entry.need(static_cast<int64_t>(list->size()) == spatial, BadParam,
                 "{} numbers for {} spatial dimensions", list->size(), spatial);
  }

  Operation matmul(const Descriptor &from) {
    Operation op;
    op.kind = Operation::Kind::Matmul;
    op.operands = {tensor(from, A::MatmulOpA), tensor(from, A::MatmulOpB)};
    op.result = tensor(from, A::MatmulOpC);
    description(from, A::MatmulOpDescriptor, K::Matmul, A::MatmulComputeType);
    return op;
  }

  Operation pointwise(const Descriptor &from) {
    Operation op;
    op.operands = {tensor(from, A::PointwiseOpX)};
    if (from.values.count(A::PointwiseOpB))
      op.operands.push_back(tensor(from, A::PointwiseOpB));
    op.result = tensor(from, A::PointwiseOpY);
    const Descriptor *mode =
        description(from, A::PointwiseOpDescriptor, K::Pointwise, A::PointwiseMathType);
    if (!mode)
      return op;
    op.pointwise = mode->get<api::PointwiseMode>(A::PointwiseMode);
    op.lowerClip = mode->one<double>(A::PointwiseReluLowerClip);
    op.upperClip = mode->one<double>(A::PointwiseReluUpperClip);
    op.slope = mode->one<double>(A::PointwiseReluLowerSlope);
    op.alpha =
        mode->one<double>(op.pointwise == api::PointwiseMode::Elu     ? A::PointwiseEluAlpha
                          : op.pointwise == api::PointwiseMode::Swish ? A::PointwiseSwishBeta
                                                                      : A::PointwiseSoftplusBeta);
    entry.need(op.operands.size() == 2 ? applyBinary(op.pointwise, 1, 1).has_value()
                                       : applyUnary(op, 1).has_value(),
               NotSupported, "element-wise mode {} of {} operands",
               mode->get<int>(A::PointwiseMode), op.operands.size());
    return op;
  }

  Operation reduction(const Descriptor &from) {
    Operation op;
    op.kind = Operation::Kind::Reduction;
    op.operands = {tensor(from, A::ReductionOpX)};
    op.result = tensor(from, A::ReductionOpY);
    if (const Descriptor *mode =
            description(from, A::ReductionOpDescriptor, K::Reduction, A::ReductionComputeType))
      op.reduction = mode->get<api::ReductionOperator>(A::ReductionOperator);
    return op;
  }

  Dims whole(const Descriptor &of, A attribute) {
    Dims numbers;
    for (const Fraction &fraction : of.list<Fraction>(attribute)) {
      entry.need(fraction.denominator == 1, NotSupported, "a window of parts of elements");
      numbers.push_back(fraction.numerator);
    }
    return numbers;
  }

  Operation resample(const Descriptor &from) {
    Operation op;
    op.kind = Operation::Kind::Resample;
    op.operands = {tensor(from, A::ResampleOpX)};
    op.result = tensor(from, A::ResampleOpY);
    expectPlain(from, A::ResampleOpAlpha, A::ResampleOpBeta);
    const Descriptor *window =
        description(from, A::ResampleOpDescriptor, K::Resample, A::ResampleComputeType);
    if (!window)
      return op;
    op.resample = window->get<api::ResampleMode>(A::ResampleMode);
    const bool isMax = op.resample == api::ResampleMode::Max;
    entry.need(window->get<api::PaddingMode>(A::ResamplePaddingMode) ==
                   (isMax ? api::PaddingMode::NegativeInfinity : api::PaddingMode::Zero),
               NotSupported, "a pool of mode {} padded otherwise",
               window->get<int>(A::ResampleMode));
    op.window = whole(*window, A::ResampleWindow);
    op.prePads = whole(*window, A::ResamplePrePaddings);
    op.postPads = whole(*window, A::ResamplePostPaddings);
    op.strides = whole(*window, A::ResampleStrides);
    expectSpatial(window->get<int64_t>(A::ResampleSpatialDims),
                  {&op.prePads, &op.postPads, &op.strides, &op.window});
    return op;
  }

  Operation norm(const Descriptor &from) {
    Operation op;
    op.kind = Operation::Kind::Norm;
    op.norm = from.get<api::NormMode>(A::NormMode);
    entry.need(from.get<api::NormPhase>(A::NormPhase) == api::NormPhase::Inference, NotSupported,
               "a normalisation for training");
    op.operands = {tensor(from, A::NormX), tensor(from, A::NormScale),
                   from.values.count(A::NormBias) ? tensor(from, A::NormBias) : Operation::kAbsent,
                   tensor(from, A::NormEpsilon)};
    op.result = tensor(from, A::NormY);
    return op;
  }

  Operation attention(const Descriptor &from) {
    Operation op;
    op.kind = Operation::Kind::Attention;
    op.operands = {tensor(from, A::AttentionQ), tensor(from, A::AttentionK),
                   tensor(from, A::AttentionV), tensor(from, A::AttentionScale)};
    op.result = tensor(from, A::AttentionO);
    return op;
  }

  Entry &entry;
  KnownGraph known;
  std::vector<Ref> refs; ///< of the tensors
};

} // namespace

std::shared_ptr<const KnownGraph> readGraph(Entry &entry, const std::vector<Ref> &operations) {
  return Reader(entry).read(operations);
}

} // namespace cudnn_double
