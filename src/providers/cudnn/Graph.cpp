// SPDX-License-Identifier: Apache-2.0
//
// Descriptors for tensors and operations. All arithmetic is asked for in f32, whatever the types in
// memory.
#include "providers/cudnn/Graph.h"

namespace dovetail::cudnn {
namespace {

constexpr DataType kComputeType = DataType::Float;

struct Fraction {
  int64_t numerator, denominator;
};
constexpr AttributeType kFraction = AttributeType::Fraction;

class Builder {
public:
  Builder(Backend &backend, const Graph &graph) : backend(backend), graph(graph) {}

  OperationGraph run() {
    for (size_t i = 0; i < graph.tensors.size(); ++i)
      tensors.push_back(keep(tensor(i)));
    std::vector<Descriptor> operations;
    for (const Operation &op : graph.operations)
      operations.push_back(result.parts[keep(operation(op))].get());
    result.graph = Object(backend, DescriptorKind::OperationGraph);
    result.graph.set(backend, Attribute::GraphOps, operations);
    result.graph.finalize(backend, "the graph");
    return std::move(result);
  }

private:
  size_t keep(Object object) {
    result.parts.push_back(std::move(object));
    return result.parts.size() - 1;
  }

  Object tensor(size_t index) {
    const Tensor &from = graph.tensors[index];
    Object made(backend, DescriptorKind::Tensor);
    made.set(backend, Attribute::TensorDataType, from.type);
    made.set(backend, Attribute::TensorDimensions, from.dims);
    made.set(backend, Attribute::TensorStrides, from.strides);
    made.set(backend, Attribute::TensorUniqueId, Graph::uniqueId(index));
    made.set(backend, Attribute::TensorByteAlignment, from.alignment);
    if (from.isVirtual())
      made.set(backend, Attribute::TensorIsVirtual, true);
    if (from.number)
      made.set(backend, Attribute::TensorIsByValue, true);
    made.finalize(backend, "a tensor");
    return made;
  }

  void connect(const Object &to, Attribute attribute, size_t tensor) {
    to.set(backend, attribute, result.parts[tensors[tensor]]);
  }

  Object operation(const Operation &op) {
    switch (op.kind) {
    case Operation::Kind::Convolution:
      return convolution(op);
    case Operation::Kind::Matmul:
      return matmul(op);
    case Operation::Kind::Pointwise:
      return pointwise(op);
    case Operation::Kind::Reduction:
      return reduction(op);
    case Operation::Kind::Resample:
      return resample(op);
    case Operation::Kind::Norm:
      return norm(op);
    case Operation::Kind::Attention:
      return attention(op);
    }
    return {};
  }

  Object convolution(const Operation &op) {
    Object window(backend, DescriptorKind::Convolution);
    window.set(backend, Attribute::ConvolutionComputeType, kComputeType);
    window.set(backend, Attribute::ConvolutionMode, AttributeType::ConvolutionMode, 1,
               &kCrossCorrelation);
    window.set(backend, Attribute::ConvolutionSpatialDims, static_cast<int64_t>(op.strides.size()));
    window.set(backend, Attribute::ConvolutionPrePaddings, op.prePads);
    window.set(backend, Attribute::ConvolutionPostPaddings, op.postPads);
    window.set(backend, Attribute::ConvolutionStrides, op.strides);
    window.set(backend, Attribute::ConvolutionDilations, op.dilations);
    window.finalize(backend, "a convolution");
    Object made(backend, DescriptorKind::ConvolutionForwardOp);
    connect(made, Attribute::ConvolutionOpX, op.operands[0]);
    connect(made, Attribute::ConvolutionOpW, op.operands[1]);
    connect(made, Attribute::ConvolutionOpY, op.result);
    made.set(backend, Attribute::ConvolutionOpAlpha, 1.0);
    made.set(backend, Attribute::ConvolutionOpBeta, 0.0);
    made.set(backend, Attribute::ConvolutionOpDescriptor, window);
    made.finalize(backend, "a convolution");
    keep(std::move(window));
    return made;
  }

  Object matmul(const Operation &op) {
    Object product(backend, DescriptorKind::Matmul);
    product.set(backend, Attribute::MatmulComputeType, kComputeType);
    product.finalize(backend, "a product");
    Object made(backend, DescriptorKind::MatmulOp);
    connect(made, Attribute::MatmulOpA, op.operands[0]);
    connect(made, Attribute::MatmulOpB, op.operands[1]);
    connect(made, Attribute::MatmulOpC, op.result);
    made.set(backend, Attribute::MatmulOpDescriptor, product);
    made.finalize(backend, "a product");
    keep(std::move(product));
    return made;
  }

  Object pointwise(const Operation &op) {
    Object mode(backend, DescriptorKind::Pointwise);
    mode.set(backend, Attribute::PointwiseMode, AttributeType::PointwiseMode, 1, &op.pointwise);
    mode.set(backend, Attribute::PointwiseMathType, kComputeType);
    if (op.lowerClip)
      mode.set(backend, Attribute::PointwiseReluLowerClip, *op.lowerClip);
    if (op.upperClip)
      mode.set(backend, Attribute::PointwiseReluUpperClip, *op.upperClip);
    if (op.slope)
      mode.set(backend, Attribute::PointwiseReluLowerSlope, *op.slope);
    if (op.alpha)
      mode.set(backend,
               op.pointwise == PointwiseMode::Elu     ? Attribute::PointwiseEluAlpha
               : op.pointwise == PointwiseMode::Swish ? Attribute::PointwiseSwishBeta
                                                      : Attribute::PointwiseSoftplusBeta,
               *op.alpha);
    mode.finalize(backend, "an element-wise operation");
    Object made(backend, DescriptorKind::PointwiseOp);
    made.set(backend, Attribute::PointwiseOpDescriptor, mode);
    connect(made, Attribute::PointwiseOpX, op.operands[0]);
    if (op.operands.size() > 1)
      connect(made, Attribute::PointwiseOpB, op.operands[1]);
    connect(made, Attribute::PointwiseOpY, op.result);
    made.finalize(backend, "an element-wise operation");
    keep(std::move(mode));
    return made;
  }

  Object reduction(const Operation &op) {
    Object mode(backend, DescriptorKind::Reduction);
    mode.set(backend, Attribute::ReductionOperator, AttributeType::ReductionOperator, 1,
             &op.reduction);
    mode.set(backend, Attribute::ReductionComputeType, kComputeType);
    mode.finalize(backend, "a reduction");
    Object made(backend, DescriptorKind::ReductionOp);
    made.set(backend, Attribute::ReductionOpDescriptor, mode);
    connect(made, Attribute::ReductionOpX, op.operands[0]);
    connect(made, Attribute::ReductionOpY, op.result);
    made.finalize(backend, "a reduction");
    keep(std::move(mode));
    return made;
  }

  void setFractions(const Object &to, Attribute attribute, const Dims &numbers) {
    std::vector<Fraction> fractions;
    for (int64_t number : numbers)
      fractions.push_back({number, 1});
    to.set(backend, attribute, kFraction, static_cast<int64_t>(fractions.size()), fractions.data());
  }

  Object resample(const Operation &op) {
    const PaddingMode padding =
        op.resample == ResampleMode::Max ? PaddingMode::NegativeInfinity : PaddingMode::Zero;
    Object window(backend, DescriptorKind::Resample);
    window.set(backend, Attribute::ResampleMode, AttributeType::ResampleMode, 1, &op.resample);
    window.set(backend, Attribute::ResampleComputeType, kComputeType);
    window.set(backend, Attribute::ResampleNanPropagation, AttributeType::NanPropagation, 1,
               &kPropagateNan);
    window.set(backend, Attribute::ResamplePaddingMode, AttributeType::PaddingMode, 1, &padding);
    window.set(backend, Attribute::ResampleSpatialDims, static_cast<int64_t>(op.window.size()));
    setFractions(window, Attribute::ResampleWindow, op.window);
    setFractions(window, Attribute::ResamplePrePaddings, op.prePads);
    setFractions(window, Attribute::ResamplePostPaddings, op.postPads);
    setFractions(window, Attribute::ResampleStrides, op.strides);
    window.finalize(backend, "a pool");
    Object made(backend, DescriptorKind::ResampleForwardOp);
    connect(made, Attribute::ResampleOpX, op.operands[0]);
    connect(made, Attribute::ResampleOpY, op.result);
    made.set(backend, Attribute::ResampleOpAlpha, 1.0);
    made.set(backend, Attribute::ResampleOpBeta, 0.0);
    made.set(backend, Attribute::ResampleOpDescriptor, window);
    made.finalize(backend, "a pool");
    keep(std::move(window));
    return made;
  }

  Object norm(const Operation &op) {
    const NormPhase phase = NormPhase::Inference;
    Object made(backend, DescriptorKind::NormForwardOp);
    made.set(backend, Attribute::NormMode, AttributeType::NormMode, 1, &op.norm);
    made.set(backend, Attribute::NormPhase, AttributeType::NormPhase, 1, &phase);
    connect(made, Attribute::NormX, op.operands[0]);
    connect(made, Attribute::NormScale, op.operands[1]);
    if (op.operands[2] != Operation::kAbsent)
      connect(made, Attribute::NormBias, op.operands[2]);
    connect(made, Attribute::NormEpsilon, op.operands[3]);
    connect(made, Attribute::NormY, op.result);
    made.finalize(backend, "a normalisation");
    return made;
  }

  Object attention(const Operation &op) {
    Object made(backend, DescriptorKind::AttentionForwardOp);
    connect(made, Attribute::AttentionQ, op.operands[0]);
    connect(made, Attribute::AttentionK, op.operands[1]);
    connect(made, Attribute::AttentionV, op.operands[2]);
    connect(made, Attribute::AttentionScale, op.operands[3]);
    connect(made, Attribute::AttentionO, op.result);
    made.finalize(backend, "attention");
    return made;
  }

  Backend &backend;
  const Graph &graph;
  OperationGraph result;
  std::vector<size_t> tensors; ///< index among the parts
};

} // namespace

OperationGraph build(Backend &backend, const Graph &graph) { return Builder(backend, graph).run(); }

} // namespace dovetail::cudnn
