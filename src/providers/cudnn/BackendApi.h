// SPDX-License-Identifier: Apache-2.0
//
// What is used of the C interface of cuDNN's graphs, declared here so that no header of cuDNN is
// needed: it is the same binary interface from 9.8 on. BackendCheck.cpp compares every number with
// the header where one is found.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dovetail::cudnn {

using Status = int; ///< 0 is success
using Descriptor = void *;
using LibraryHandle = void *; ///< of a library on a device
using DeviceStream = void *;

enum class DescriptorKind : int {
  Pointwise = 0,
  Convolution = 1,
  Engine = 2,
  EngineConfig = 3,
  EngineHeuristic = 4,
  ExecutionPlan = 5,
  KnobChoice = 7,
  KnobInfo = 8,
  ConvolutionForwardOp = 10,
  PointwiseOp = 13,
  OperationGraph = 15,
  VariantPack = 16,
  Tensor = 17,
  Matmul = 18,
  MatmulOp = 19,
  Reduction = 21,
  ReductionOp = 22,
  Resample = 24,
  ResampleForwardOp = 25,
  NormForwardOp = 29,
  DeviceProperties = 38,
  AttentionForwardOp = 41,
};

enum class Attribute : int {
  PointwiseMode = 0,
  PointwiseMathType = 1,
  PointwiseReluLowerClip = 3,
  PointwiseReluUpperClip = 4,
  PointwiseReluLowerSlope = 5,
  PointwiseEluAlpha = 6,
  PointwiseSoftplusBeta = 7,
  PointwiseSwishBeta = 8,
  ConvolutionComputeType = 100,
  ConvolutionMode = 101,
  ConvolutionDilations = 102,
  ConvolutionStrides = 103,
  ConvolutionPostPaddings = 104,
  ConvolutionPrePaddings = 105,
  ConvolutionSpatialDims = 106,
  HeuristicMode = 200,
  HeuristicGraph = 201,
  HeuristicResults = 202,
  HeuristicDeviceProperties = 204,
  ConfigEngine = 300,
  ConfigKnobChoices = 302,
  ConfigWorkspaceBytes = 303,
  PlanHandle = 400,
  PlanConfig = 401,
  PlanWorkspaceBytes = 402,
  PlanJson = 405,
  PlanDeviceProperties = 407,
  KnobChoiceType = 600,
  KnobChoiceValue = 601,
  ConvolutionOpAlpha = 700,
  ConvolutionOpBeta = 701,
  ConvolutionOpDescriptor = 702,
  ConvolutionOpW = 703,
  ConvolutionOpX = 704,
  ConvolutionOpY = 705,
  PointwiseOpDescriptor = 750,
  PointwiseOpX = 751,
  PointwiseOpB = 752,
  PointwiseOpY = 753,
  GraphOps = 801,
  TensorByteAlignment = 900,
  TensorDataType = 901,
  TensorDimensions = 902,
  TensorStrides = 903,
  TensorUniqueId = 906,
  TensorIsVirtual = 907,
  TensorIsByValue = 908,
  PackUniqueIds = 1000,
  PackDataPointers = 1001,
  PackWorkspace = 1003,
  EngineGraph = 1300,
  EngineGlobalIndex = 1301,
  EngineKnobInfo = 1302,
  EngineNumericalNotes = 1303,
  EngineBehaviorNotes = 1305,
  EngineDeviceProperties = 1307,
  MatmulComputeType = 1500,
  MatmulOpA = 1520,
  MatmulOpB = 1521,
  MatmulOpC = 1522,
  MatmulOpDescriptor = 1523,
  ReductionOperator = 1600,
  ReductionComputeType = 1601,
  ReductionOpX = 1610,
  ReductionOpY = 1611,
  ReductionOpDescriptor = 1612,
  ResampleMode = 1700,
  ResampleComputeType = 1701,
  ResampleSpatialDims = 1702,
  ResamplePostPaddings = 1703,
  ResamplePrePaddings = 1704,
  ResampleStrides = 1705,
  ResampleWindow = 1706,
  ResampleNanPropagation = 1707,
  ResamplePaddingMode = 1708,
  ResampleOpX = 1710,
  ResampleOpY = 1711,
  ResampleOpAlpha = 1713,
  ResampleOpBeta = 1714,
  ResampleOpDescriptor = 1716,
  NormMode = 2000,
  NormPhase = 2001,
  NormX = 2002,
  NormScale = 2005,
  NormBias = 2006,
  NormEpsilon = 2007,
  NormY = 2013,
  DevicePropertiesJson = 2702,
  AttentionQ = 2800,
  AttentionK = 2801,
  AttentionV = 2802,
  AttentionO = 2803,
  AttentionScale = 2805,
};

enum class AttributeType : int {
  Handle = 0,
  DataType = 1,
  Boolean = 2,
  Int64 = 3,
  Float = 4,
  Double = 5,
  VoidPointer = 6,
  ConvolutionMode = 7,
  HeuristicMode = 8,
  KnobType = 9,
  NanPropagation = 10,
  NumericalNote = 11,
  PointwiseMode = 14,
  Descriptor = 15,
  ReductionOperator = 18,
  BehaviorNote = 19,
  ResampleMode = 21,
  PaddingMode = 22,
  Int32 = 23,
  Char = 24,
  Fraction = 26,
  NormMode = 27,
  NormPhase = 28,
};

enum class DataType : int { Float = 0, Half = 2, Bfloat16 = 9 };

enum class PointwiseMode : int {
  Add = 0,
  Mul = 1,
  Min = 2,
  Max = 3,
  Sqrt = 4,
  Div = 6,
  Pow = 8,
  Sub = 9,
  Abs = 10,
  Ceil = 11,
  Exp = 13,
  Floor = 14,
  Log = 15,
  Neg = 16,
  Rsqrt = 17,
  Erf = 20,
  Identity = 21,
  Reciprocal = 22,
  Relu = 100,
  Tanh = 101,
  Sigmoid = 102,
  Elu = 103,
  Gelu = 104,
  Softplus = 105,
  Swish = 106,
  GeluTanh = 107,
};

enum class ReductionOperator : int { Add = 0, Mul = 1, Min = 2, Max = 3, Mean = 5, L1 = 6, L2 = 7 };
enum class ResampleMode : int { MeanWithPadding = 2, Max = 3, MeanWithoutPadding = 4 };
enum class PaddingMode : int { Zero = 0, NegativeInfinity = 1 };
enum class NormMode : int { Layer = 0, Rms = 4 };
enum class NormPhase : int { Inference = 0 };
enum class HeuristicMode : int { B = 1, Fallback = 2, A = 3 };

enum class NumericalNote : int {
  TensorCore = 0,
  DownConvertsInputs = 1,
  ReducedPrecisionReduction = 2,
  Fft = 3,
  Nondeterministic = 4,
  Winograd = 5,
  WinogradTile4x4 = 6,
  WinogradTile6x6 = 7,
  WinogradTile13x13 = 8,
};

enum class BehaviorNote : int { RuntimeCompilation = 0 };

constexpr int kCrossCorrelation = 1; ///< cudnnConvolutionMode_t
constexpr int kPropagateNan = 1;     ///< cudnnNanPropagation_t

/// The functions used, without the prefix "cudnn": by everything, and by graphs.
#define DOVETAIL_CUDNN_FUNCTIONS(F)                                                                \
  F(GetVersion, size_t, (void))                                                                    \
  F(GetErrorString, const char *, (Status))                                                        \
  F(Create, Status, (LibraryHandle *))                                                             \
  F(Destroy, Status, (LibraryHandle))                                                              \
  F(SetStream, Status, (LibraryHandle, DeviceStream))
#define DOVETAIL_CUDNN_GRAPH_FUNCTIONS(F)                                                          \
  F(BackendCreateDescriptor, Status, (DescriptorKind, Descriptor *))                               \
  F(BackendDestroyDescriptor, Status, (Descriptor))                                                \
  F(BackendFinalize, Status, (Descriptor))                                                         \
  F(BackendSetAttribute, Status, (Descriptor, Attribute, AttributeType, int64_t, const void *))    \
  F(BackendGetAttribute, Status,                                                                   \
    (Descriptor, Attribute, AttributeType, int64_t, int64_t *, void *))                            \
  F(BackendExecute, Status, (LibraryHandle, Descriptor, Descriptor))

} // namespace dovetail::cudnn
