// SPDX-License-Identifier: Apache-2.0
//
// Compares the numbers of BackendApi.h with cuDNN's own header; compiled only where there is one.
#include <cudnn_graph.h>

#include "providers/cudnn/BackendApi.h"

namespace dovetail::cudnn {

#define SAME(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))

SAME(DescriptorKind::Pointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
SAME(DescriptorKind::Convolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
SAME(DescriptorKind::Engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
SAME(DescriptorKind::EngineConfig, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
SAME(DescriptorKind::EngineHeuristic, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
SAME(DescriptorKind::ExecutionPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
SAME(DescriptorKind::KnobChoice, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
SAME(DescriptorKind::KnobInfo, CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR);
SAME(DescriptorKind::ConvolutionForwardOp, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
SAME(DescriptorKind::PointwiseOp, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
SAME(DescriptorKind::OperationGraph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
SAME(DescriptorKind::VariantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
SAME(DescriptorKind::Tensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
SAME(DescriptorKind::Matmul, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
SAME(DescriptorKind::MatmulOp, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
SAME(DescriptorKind::Reduction, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
SAME(DescriptorKind::ReductionOp, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
SAME(DescriptorKind::Resample, CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
SAME(DescriptorKind::ResampleForwardOp, CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
SAME(DescriptorKind::NormForwardOp, CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
SAME(DescriptorKind::DeviceProperties, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
SAME(DescriptorKind::AttentionForwardOp, CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);

SAME(Attribute::PointwiseMode, CUDNN_ATTR_POINTWISE_MODE);
SAME(Attribute::PointwiseMathType, CUDNN_ATTR_POINTWISE_MATH_PREC);
SAME(Attribute::PointwiseReluLowerClip, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP);
SAME(Attribute::PointwiseReluUpperClip, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP);
SAME(Attribute::PointwiseReluLowerSlope, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE);
SAME(Attribute::PointwiseEluAlpha, CUDNN_ATTR_POINTWISE_ELU_ALPHA);
SAME(Attribute::PointwiseSoftplusBeta, CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA);
SAME(Attribute::PointwiseSwishBeta, CUDNN_ATTR_POINTWISE_SWISH_BETA);
SAME(Attribute::ConvolutionComputeType, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
SAME(Attribute::ConvolutionMode, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
SAME(Attribute::ConvolutionDilations, CUDNN_ATTR_CONVOLUTION_DILATIONS);
SAME(Attribute::ConvolutionStrides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
SAME(Attribute::ConvolutionPostPaddings, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
SAME(Attribute::ConvolutionPrePaddings, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
SAME(Attribute::ConvolutionSpatialDims, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
SAME(Attribute::HeuristicMode, CUDNN_ATTR_ENGINEHEUR_MODE);
SAME(Attribute::HeuristicGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
SAME(Attribute::HeuristicResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
SAME(Attribute::HeuristicDeviceProperties, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
SAME(Attribute::ConfigEngine, CUDNN_ATTR_ENGINECFG_ENGINE);
SAME(Attribute::ConfigKnobChoices, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
SAME(Attribute::ConfigWorkspaceBytes, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE);
SAME(Attribute::PlanHandle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
SAME(Attribute::PlanConfig, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
SAME(Attribute::PlanWorkspaceBytes, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
SAME(Attribute::PlanJson, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
SAME(Attribute::PlanDeviceProperties, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
SAME(Attribute::KnobChoiceType, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE);
SAME(Attribute::KnobChoiceValue, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
SAME(Attribute::ConvolutionOpAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
SAME(Attribute::ConvolutionOpBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
SAME(Attribute::ConvolutionOpDescriptor, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
SAME(Attribute::ConvolutionOpW, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
SAME(Attribute::ConvolutionOpX, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
SAME(Attribute::ConvolutionOpY, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
SAME(Attribute::PointwiseOpDescriptor, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
SAME(Attribute::PointwiseOpX, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
SAME(Attribute::PointwiseOpB, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
SAME(Attribute::PointwiseOpY, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
SAME(Attribute::GraphOps, CUDNN_ATTR_OPERATIONGRAPH_OPS);
SAME(Attribute::TensorByteAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
SAME(Attribute::TensorDataType, CUDNN_ATTR_TENSOR_DATA_TYPE);
SAME(Attribute::TensorDimensions, CUDNN_ATTR_TENSOR_DIMENSIONS);
SAME(Attribute::TensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
SAME(Attribute::TensorUniqueId, CUDNN_ATTR_TENSOR_UNIQUE_ID);
SAME(Attribute::TensorIsVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
SAME(Attribute::TensorIsByValue, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
SAME(Attribute::PackUniqueIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
SAME(Attribute::PackDataPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
SAME(Attribute::PackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
SAME(Attribute::EngineGraph, CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
SAME(Attribute::EngineGlobalIndex, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
SAME(Attribute::EngineKnobInfo, CUDNN_ATTR_ENGINE_KNOB_INFO);
SAME(Attribute::EngineNumericalNotes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
SAME(Attribute::EngineBehaviorNotes, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE);
SAME(Attribute::EngineDeviceProperties, CUDNN_ATTR_ENGINE_DEVICEPROP);
SAME(Attribute::MatmulComputeType, CUDNN_ATTR_MATMUL_COMP_TYPE);
SAME(Attribute::MatmulOpA, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
SAME(Attribute::MatmulOpB, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
SAME(Attribute::MatmulOpC, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
SAME(Attribute::MatmulOpDescriptor, CUDNN_ATTR_OPERATION_MATMUL_DESC);
SAME(Attribute::ReductionOperator, CUDNN_ATTR_REDUCTION_OPERATOR);
SAME(Attribute::ReductionComputeType, CUDNN_ATTR_REDUCTION_COMP_TYPE);
SAME(Attribute::ReductionOpX, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
SAME(Attribute::ReductionOpY, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
SAME(Attribute::ReductionOpDescriptor, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
SAME(Attribute::ResampleMode, CUDNN_ATTR_RESAMPLE_MODE);
SAME(Attribute::ResampleComputeType, CUDNN_ATTR_RESAMPLE_COMP_TYPE);
SAME(Attribute::ResampleSpatialDims, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS);
SAME(Attribute::ResamplePostPaddings, CUDNN_ATTR_RESAMPLE_POST_PADDINGS);
SAME(Attribute::ResamplePrePaddings, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS);
SAME(Attribute::ResampleStrides, CUDNN_ATTR_RESAMPLE_STRIDES);
SAME(Attribute::ResampleWindow, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS);
SAME(Attribute::ResampleNanPropagation, CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION);
SAME(Attribute::ResamplePaddingMode, CUDNN_ATTR_RESAMPLE_PADDING_MODE);
SAME(Attribute::ResampleOpX, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC);
SAME(Attribute::ResampleOpY, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC);
SAME(Attribute::ResampleOpAlpha, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_ALPHA);
SAME(Attribute::ResampleOpBeta, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_BETA);
SAME(Attribute::ResampleOpDescriptor, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC);
SAME(Attribute::NormMode, CUDNN_ATTR_OPERATION_NORM_FWD_MODE);
SAME(Attribute::NormPhase, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE);
SAME(Attribute::NormX, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC);
SAME(Attribute::NormScale, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC);
SAME(Attribute::NormBias, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC);
SAME(Attribute::NormEpsilon, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC);
SAME(Attribute::NormY, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC);
SAME(Attribute::DevicePropertiesJson, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
SAME(Attribute::AttentionQ, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC);
SAME(Attribute::AttentionK, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC);
SAME(Attribute::AttentionV, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC);
SAME(Attribute::AttentionO, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC);
SAME(Attribute::AttentionScale, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC);

SAME(AttributeType::Handle, CUDNN_TYPE_HANDLE);
SAME(AttributeType::DataType, CUDNN_TYPE_DATA_TYPE);
SAME(AttributeType::Boolean, CUDNN_TYPE_BOOLEAN);
SAME(AttributeType::Int64, CUDNN_TYPE_INT64);
SAME(AttributeType::Float, CUDNN_TYPE_FLOAT);
SAME(AttributeType::Double, CUDNN_TYPE_DOUBLE);
SAME(AttributeType::VoidPointer, CUDNN_TYPE_VOID_PTR);
SAME(AttributeType::ConvolutionMode, CUDNN_TYPE_CONVOLUTION_MODE);
SAME(AttributeType::HeuristicMode, CUDNN_TYPE_HEUR_MODE);
SAME(AttributeType::KnobType, CUDNN_TYPE_KNOB_TYPE);
SAME(AttributeType::NanPropagation, CUDNN_TYPE_NAN_PROPOGATION);
SAME(AttributeType::NumericalNote, CUDNN_TYPE_NUMERICAL_NOTE);
SAME(AttributeType::PointwiseMode, CUDNN_TYPE_POINTWISE_MODE);
SAME(AttributeType::Descriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR);
SAME(AttributeType::ReductionOperator, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
SAME(AttributeType::BehaviorNote, CUDNN_TYPE_BEHAVIOR_NOTE);
SAME(AttributeType::ResampleMode, CUDNN_TYPE_RESAMPLE_MODE);
SAME(AttributeType::PaddingMode, CUDNN_TYPE_PADDING_MODE);
SAME(AttributeType::Int32, CUDNN_TYPE_INT32);
SAME(AttributeType::Char, CUDNN_TYPE_CHAR);
SAME(AttributeType::Fraction, CUDNN_TYPE_FRACTION);
SAME(AttributeType::NormMode, CUDNN_TYPE_NORM_MODE);
SAME(AttributeType::NormPhase, CUDNN_TYPE_NORM_FWD_PHASE);

SAME(DataType::Float, CUDNN_DATA_FLOAT);
SAME(DataType::Half, CUDNN_DATA_HALF);
SAME(DataType::Bfloat16, CUDNN_DATA_BFLOAT16);

SAME(PointwiseMode::Add, CUDNN_POINTWISE_ADD);
SAME(PointwiseMode::Mul, CUDNN_POINTWISE_MUL);
SAME(PointwiseMode::Min, CUDNN_POINTWISE_MIN);
SAME(PointwiseMode::Max, CUDNN_POINTWISE_MAX);
SAME(PointwiseMode::Sqrt, CUDNN_POINTWISE_SQRT);
SAME(PointwiseMode::Div, CUDNN_POINTWISE_DIV);
SAME(PointwiseMode::Pow, CUDNN_POINTWISE_POW);
SAME(PointwiseMode::Sub, CUDNN_POINTWISE_SUB);
SAME(PointwiseMode::Abs, CUDNN_POINTWISE_ABS);
SAME(PointwiseMode::Ceil, CUDNN_POINTWISE_CEIL);
SAME(PointwiseMode::Exp, CUDNN_POINTWISE_EXP);
SAME(PointwiseMode::Floor, CUDNN_POINTWISE_FLOOR);
SAME(PointwiseMode::Log, CUDNN_POINTWISE_LOG);
SAME(PointwiseMode::Neg, CUDNN_POINTWISE_NEG);
SAME(PointwiseMode::Rsqrt, CUDNN_POINTWISE_RSQRT);
SAME(PointwiseMode::Erf, CUDNN_POINTWISE_ERF);
SAME(PointwiseMode::Identity, CUDNN_POINTWISE_IDENTITY);
SAME(PointwiseMode::Reciprocal, CUDNN_POINTWISE_RECIPROCAL);
SAME(PointwiseMode::Relu, CUDNN_POINTWISE_RELU_FWD);
SAME(PointwiseMode::Tanh, CUDNN_POINTWISE_TANH_FWD);
SAME(PointwiseMode::Sigmoid, CUDNN_POINTWISE_SIGMOID_FWD);
SAME(PointwiseMode::Elu, CUDNN_POINTWISE_ELU_FWD);
SAME(PointwiseMode::Gelu, CUDNN_POINTWISE_GELU_FWD);
SAME(PointwiseMode::Softplus, CUDNN_POINTWISE_SOFTPLUS_FWD);
SAME(PointwiseMode::Swish, CUDNN_POINTWISE_SWISH_FWD);
SAME(PointwiseMode::GeluTanh, CUDNN_POINTWISE_GELU_APPROX_TANH_FWD);

SAME(ReductionOperator::Add, CUDNN_REDUCE_TENSOR_ADD);
SAME(ReductionOperator::Mul, CUDNN_REDUCE_TENSOR_MUL);
SAME(ReductionOperator::Min, CUDNN_REDUCE_TENSOR_MIN);
SAME(ReductionOperator::Max, CUDNN_REDUCE_TENSOR_MAX);
SAME(ReductionOperator::Mean, CUDNN_REDUCE_TENSOR_AVG);
SAME(ReductionOperator::L1, CUDNN_REDUCE_TENSOR_NORM1);
SAME(ReductionOperator::L2, CUDNN_REDUCE_TENSOR_NORM2);

SAME(ResampleMode::MeanWithPadding, CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING);
SAME(ResampleMode::Max, CUDNN_RESAMPLE_MAXPOOL);
SAME(ResampleMode::MeanWithoutPadding, CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING);

SAME(PaddingMode::Zero, CUDNN_ZERO_PAD);
SAME(PaddingMode::NegativeInfinity, CUDNN_NEG_INF_PAD);

SAME(NormMode::Layer, CUDNN_LAYER_NORM);
SAME(NormMode::Rms, CUDNN_RMS_NORM);

SAME(NormPhase::Inference, CUDNN_NORM_FWD_INFERENCE);

SAME(HeuristicMode::B, CUDNN_HEUR_MODE_B);
SAME(HeuristicMode::Fallback, CUDNN_HEUR_MODE_FALLBACK);
SAME(HeuristicMode::A, CUDNN_HEUR_MODE_A);

SAME(NumericalNote::TensorCore, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
SAME(NumericalNote::DownConvertsInputs, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
SAME(NumericalNote::ReducedPrecisionReduction, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
SAME(NumericalNote::Fft, CUDNN_NUMERICAL_NOTE_FFT);
SAME(NumericalNote::Nondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
SAME(NumericalNote::Winograd, CUDNN_NUMERICAL_NOTE_WINOGRAD);
SAME(NumericalNote::WinogradTile4x4, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4);
SAME(NumericalNote::WinogradTile6x6, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6);
SAME(NumericalNote::WinogradTile13x13, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);

SAME(BehaviorNote::RuntimeCompilation, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);

SAME(kCrossCorrelation, CUDNN_CROSS_CORRELATION);
SAME(kPropagateNan, CUDNN_PROPAGATE_NAN);

// Enumerations travel as int, descriptors and handles as pointers.
static_assert(sizeof(cudnnStatus_t) == sizeof(Status));
static_assert(sizeof(cudnnBackendDescriptorType_t) == sizeof(DescriptorKind));
static_assert(sizeof(cudnnBackendAttributeName_t) == sizeof(Attribute));
static_assert(sizeof(cudnnBackendAttributeType_t) == sizeof(AttributeType));
static_assert(sizeof(cudnnBackendDescriptor_t) == sizeof(Descriptor));

} // namespace dovetail::cudnn
