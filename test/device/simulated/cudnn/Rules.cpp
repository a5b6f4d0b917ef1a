// SPDX-License-Identifier: Apache-2.0
#include "Rules.h"

namespace cudnn_double {
namespace {

using A = api::Attribute;
using K = api::DescriptorKind;
using T = api::AttributeType;

constexpr int64_t kMostDims = 8, kMostOperations = 50, kMostKnobs = 64, kMostConfigs = 128,
                  kMostIds = 512, kMostBytes = int64_t{1} << 24;

constexpr Rule needed(K kind, A attribute, T type, int64_t most = 1, K holds = K::Tensor) {
  return {kind, attribute, type, most, true, false, holds};
}
constexpr Rule allowed(K kind, A attribute, T type, int64_t most = 1, K holds = K::Tensor) {
  return {kind, attribute, type, most, false, false, holds};
}
constexpr Rule given(K kind, A attribute, T type, int64_t most = 1, K holds = K::Tensor) {
  return {kind, attribute, type, most, false, true, holds};
}

constexpr Rule kRules[] = {
    needed(K::Tensor, A::TensorDataType, T::DataType),
    needed(K::Tensor, A::TensorDimensions, T::Int64, kMostDims),
    needed(K::Tensor, A::TensorStrides, T::Int64, kMostDims),
    needed(K::Tensor, A::TensorUniqueId, T::Int64),
    needed(K::Tensor, A::TensorByteAlignment, T::Int64),
    allowed(K::Tensor, A::TensorIsVirtual, T::Boolean),
    allowed(K::Tensor, A::TensorIsByValue, T::Boolean),

    needed(K::Convolution, A::ConvolutionComputeType, T::DataType),
    needed(K::Convolution, A::ConvolutionMode, T::ConvolutionMode),
    needed(K::Convolution, A::ConvolutionSpatialDims, T::Int64),
    needed(K::Convolution, A::ConvolutionPrePaddings, T::Int64, 3),
    needed(K::Convolution, A::ConvolutionPostPaddings, T::Int64, 3),
    needed(K::Convolution, A::ConvolutionStrides, T::Int64, 3),
    needed(K::Convolution, A::ConvolutionDilations, T::Int64, 3),
    needed(K::ConvolutionForwardOp, A::ConvolutionOpX, T::Descriptor),
    needed(K::ConvolutionForwardOp, A::ConvolutionOpW, T::Descriptor),
    needed(K::ConvolutionForwardOp, A::ConvolutionOpY, T::Descriptor),
    needed(K::ConvolutionForwardOp, A::ConvolutionOpAlpha, T::Double),
    needed(K::ConvolutionForwardOp, A::ConvolutionOpBeta, T::Double),
    needed(K::ConvolutionForwardOp, A::ConvolutionOpDescriptor, T::Descriptor, 1, K::Convolution),

    needed(K::Matmul, A::MatmulComputeType, T::DataType),
    needed(K::MatmulOp, A::MatmulOpA, T::Descriptor),
    needed(K::MatmulOp, A::MatmulOpB, T::Descriptor),
    needed(K::MatmulOp, A::MatmulOpC, T::Descriptor),
    needed(K::MatmulOp, A::MatmulOpDescriptor, T::Descriptor, 1, K::Matmul),

    needed(K::Pointwise, A::PointwiseMode, T::PointwiseMode),
    needed(K::Pointwise, A::PointwiseMathType, T::DataType),
    allowed(K::Pointwise, A::PointwiseReluLowerClip, T::Double),
    allowed(K::Pointwise, A::PointwiseReluUpperClip, T::Double),
    allowed(K::Pointwise, A::PointwiseReluLowerSlope, T::Double),
    allowed(K::Pointwise, A::PointwiseEluAlpha, T::Double),
    allowed(K::Pointwise, A::PointwiseSoftplusBeta, T::Double),
    allowed(K::Pointwise, A::PointwiseSwishBeta, T::Double),
    needed(K::PointwiseOp, A::PointwiseOpDescriptor, T::Descriptor, 1, K::Pointwise),
    needed(K::PointwiseOp, A::PointwiseOpX, T::Descriptor),
    allowed(K::PointwiseOp, A::PointwiseOpB, T::Descriptor),
    needed(K::PointwiseOp, A::PointwiseOpY, T::Descriptor),

    needed(K::Reduction, A::ReductionOperator, T::ReductionOperator),
    needed(K::Reduction, A::ReductionComputeType, T::DataType),
    needed(K::ReductionOp, A::ReductionOpDescriptor, T::Descriptor, 1, K::Reduction),
    needed(K::ReductionOp, A::ReductionOpX, T::Descriptor),
    needed(K::ReductionOp, A::ReductionOpY, T::Descriptor),

    needed(K::Resample, A::ResampleMode, T::ResampleMode),
    needed(K::Resample, A::ResampleComputeType, T::DataType),
    needed(K::Resample, A::ResampleNanPropagation, T::NanPropagation),
    needed(K::Resample, A::ResamplePaddingMode, T::PaddingMode),
    needed(K::Resample, A::ResampleSpatialDims, T::Int64),
    needed(K::Resample, A::ResampleWindow, T::Fraction, 3),
    needed(K::Resample, A::ResamplePrePaddings, T::Fraction, 3),
    needed(K::Resample, A::ResamplePostPaddings, T::Fraction, 3),
    needed(K::Resample, A::ResampleStrides, T::Fraction, 3),
    needed(K::ResampleForwardOp, A::ResampleOpX, T::Descriptor),
    needed(K::ResampleForwardOp, A::ResampleOpY, T::Descriptor),
    needed(K::ResampleForwardOp, A::ResampleOpAlpha, T::Double),
    needed(K::ResampleForwardOp, A::ResampleOpBeta, T::Double),
    needed(K::ResampleForwardOp, A::ResampleOpDescriptor, T::Descriptor, 1, K::Resample),

    needed(K::NormForwardOp, A::NormMode, T::NormMode),
    needed(K::NormForwardOp, A::NormPhase, T::NormPhase),
    needed(K::NormForwardOp, A::NormX, T::Descriptor),
    needed(K::NormForwardOp, A::NormScale, T::Descriptor),
    allowed(K::NormForwardOp, A::NormBias, T::Descriptor),
    needed(K::NormForwardOp, A::NormEpsilon, T::Descriptor),
    needed(K::NormForwardOp, A::NormY, T::Descriptor),

    needed(K::AttentionForwardOp, A::AttentionQ, T::Descriptor),
    needed(K::AttentionForwardOp, A::AttentionK, T::Descriptor),
    needed(K::AttentionForwardOp, A::AttentionV, T::Descriptor),
    needed(K::AttentionForwardOp, A::AttentionO, T::Descriptor),
    needed(K::AttentionForwardOp, A::AttentionScale, T::Descriptor),

    needed(K::OperationGraph, A::GraphOps, T::Descriptor, kMostOperations),
    needed(K::DeviceProperties, A::DevicePropertiesJson, T::Char, kMostBytes),

    needed(K::EngineHeuristic, A::HeuristicGraph, T::Descriptor, 1, K::OperationGraph),
    needed(K::EngineHeuristic, A::HeuristicMode, T::HeuristicMode),
    needed(K::EngineHeuristic, A::HeuristicDeviceProperties, T::Descriptor, 1, K::DeviceProperties),
    given(K::EngineHeuristic, A::HeuristicResults, T::Descriptor, kMostConfigs, K::EngineConfig),

    needed(K::Engine, A::EngineGraph, T::Descriptor, 1, K::OperationGraph),
    needed(K::Engine, A::EngineGlobalIndex, T::Int64),
    needed(K::Engine, A::EngineDeviceProperties, T::Descriptor, 1, K::DeviceProperties),
    given(K::Engine, A::EngineNumericalNotes, T::NumericalNote, kMostKnobs),
    given(K::Engine, A::EngineBehaviorNotes, T::BehaviorNote, kMostKnobs),

    needed(K::KnobChoice, A::KnobChoiceType, T::KnobType),
    needed(K::KnobChoice, A::KnobChoiceValue, T::Int64),

    needed(K::EngineConfig, A::ConfigEngine, T::Descriptor, 1, K::Engine),
    allowed(K::EngineConfig, A::ConfigKnobChoices, T::Descriptor, kMostKnobs, K::KnobChoice),
    given(K::EngineConfig, A::ConfigWorkspaceBytes, T::Int64),

    allowed(K::ExecutionPlan, A::PlanConfig, T::Descriptor, 1, K::EngineConfig),
    allowed(K::ExecutionPlan, A::PlanDeviceProperties, T::Descriptor, 1, K::DeviceProperties),
    allowed(K::ExecutionPlan, A::PlanHandle, T::Handle),
    allowed(K::ExecutionPlan, A::PlanJson, T::Char, kMostBytes),
    given(K::ExecutionPlan, A::PlanWorkspaceBytes, T::Int64),

    needed(K::VariantPack, A::PackUniqueIds, T::Int64, kMostIds),
    needed(K::VariantPack, A::PackDataPointers, T::VoidPointer, kMostIds),
    allowed(K::VariantPack, A::PackWorkspace, T::VoidPointer),
};

struct Named {
  K kind;
  const char *name;
};
constexpr Named kNames[] = {
    {K::Pointwise, "description of an element-wise operation"},
    {K::Convolution, "description of a convolution"},
    {K::Engine, "engine"},
    {K::EngineConfig, "configuration of an engine"},
    {K::EngineHeuristic, "heuristic"},
    {K::ExecutionPlan, "plan"},
    {K::KnobChoice, "choice of a knob"},
    {K::ConvolutionForwardOp, "convolution"},
    {K::PointwiseOp, "element-wise operation"},
    {K::OperationGraph, "graph"},
    {K::VariantPack, "variant pack"},
    {K::Tensor, "tensor"},
    {K::Matmul, "description of a product"},
    {K::MatmulOp, "product"},
    {K::Reduction, "description of a reduction"},
    {K::ReductionOp, "reduction"},
    {K::Resample, "description of a pool"},
    {K::ResampleForwardOp, "pool"},
    {K::NormForwardOp, "normalisation"},
    {K::DeviceProperties, "description of a device"},
    {K::AttentionForwardOp, "attention"},
};

} // namespace

const char *nameOf(api::DescriptorKind kind) {
  for (const Named &entry : kNames)
    if (entry.kind == kind)
      return entry.name;
  return nullptr;
}

const Rule *findRule(api::DescriptorKind kind, api::Attribute attribute) {
  for (const Rule &rule : kRules)
    if (rule.kind == kind && rule.attribute == attribute)
      return &rule;
  return nullptr;
}

std::string missingIn(const Descriptor &descriptor) {
  for (const Rule &rule : kRules)
    if (rule.kind == descriptor.kind && rule.isRequired && !descriptor.values.count(rule.attribute))
      return fmt::format("a {} without attribute {}", nameOf(rule.kind),
                         static_cast<int>(rule.attribute));
  return {};
}

size_t bytesOf(api::AttributeType type) {
  switch (type) {
  case T::Handle:
  case T::Int64:
  case T::Double:
  case T::VoidPointer:
  case T::Descriptor:
    return 8;
  case T::Boolean:
  case T::Char:
    return 1;
  case T::Fraction:
    return 16;
  default:
    return 4;
  }
}

} // namespace cudnn_double
