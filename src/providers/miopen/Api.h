// SPDX-License-Identifier: Apache-2.0
//
// What is used of MIOpen's C interface, declared here so that no header of MIOpen is needed. It is
// the same binary interface from 2.x to 3.x; functions that not all versions have stand in lists of
// their own. ApiCheck.cpp compares everything with the header where one is found.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dovetail::miopen {

using Status = int; ///< 0 is success
using LibraryHandle = struct HandleTag *;
using DeviceStream = void *; ///< of HIP
using TensorRef = struct TensorTag *;
using ConvolutionRef = struct ConvolutionTag *;
using PoolingRef = struct PoolingTag *;
using ActivationRef = struct ActivationTag *;
using ProblemRef = struct ProblemTag *;
using FindOptionsRef = struct FindOptionsTag *;
using SolutionRef = struct SolutionTag *;
using FusionPlanRef = struct FusionPlanTag *;
using FusionOpRef = struct FusionOpTag *;
using OperatorArgsRef = struct OperatorArgsTag *;

enum class DataType : int { Half = 0, Float = 1, BFloat16 = 5 };
enum class TensorOp : int { Add = 0 };
enum class ConvolutionMode : int { Convolution = 0 };
enum class PoolingMode : int { Max = 0, Average = 1, AverageInclusive = 2 };
enum class BatchNormMode : int { Spatial = 1 };
enum class NormMode : int { WeightBias = 1 };
enum class SoftmaxAlgorithm : int { Accurate = 1, Log = 2 };
enum class SoftmaxMode : int { Channel = 1 };
enum class ProblemDirection : int { Forward = 0 };
enum class FusionDirection : int { Vertical = 0 };
/// Of forward convolutions, and of convolutions in general.
enum class Algorithm : int { Gemm = 0, Direct = 1, Fft = 2, Winograd = 3, ImplicitGemm = 5 };
enum class ArgumentId : int { X = 1, W = 2, Y = 3 };

/// What each computes of x.
enum class ActivationMode : int {
  Logistic = 1,    ///< 1 / (1 + exp(-x))
  Tanh = 2,        ///< beta * tanh(alpha * x)
  Relu = 3,        ///< max(0, x)
  SoftRelu = 4,    ///< log(1 + exp(x))
  Abs = 5,         ///< |x|
  ClippedRelu = 7, ///< min(alpha, max(0, x))
  LeakyRelu = 8,   ///< x, and below zero alpha * x
  Elu = 9          ///< x, and below zero alpha * (exp(x) - 1)
};

struct ConvSolution {
  float millis;
  size_t workspaceBytes;
  uint64_t id;
  Algorithm algorithm;
};

struct FoundAlgorithm {
  Algorithm algorithm;
  float millis;
  size_t workspaceBytes;
};

struct TensorArgument {
  ArgumentId id;
  TensorRef *descriptor; ///< null: that of the problem
  void *buffer;
};

/// The functions that every version has, without the prefix "miopen".
#define DOVETAIL_MIOPEN_FUNCTIONS(F)                                                               \
  F(GetVersion, Status, (size_t *, size_t *, size_t *))                                            \
  F(GetErrorString, const char *, (Status))                                                        \
  F(CreateWithStream, Status, (LibraryHandle *, DeviceStream))                                     \
  F(SetStream, Status, (LibraryHandle, DeviceStream))                                              \
  F(Destroy, Status, (LibraryHandle))                                                              \
  F(CreateTensorDescriptor, Status, (TensorRef *))                                                 \
  F(SetTensorDescriptor, Status, (TensorRef, DataType, int, const int *, const int *))             \
  F(DestroyTensorDescriptor, Status, (TensorRef))                                                  \
  F(OpTensor, Status,                                                                              \
    (LibraryHandle, TensorOp, const void *, TensorRef, const void *, const void *, TensorRef,      \
     const void *, const void *, TensorRef, void *))                                               \
  F(CreateConvolutionDescriptor, Status, (ConvolutionRef *))                                       \
  F(InitConvolutionNdDescriptor, Status,                                                           \
    (ConvolutionRef, int, const int *, const int *, const int *, ConvolutionMode))                 \
  F(SetConvolutionGroupCount, Status, (ConvolutionRef, int))                                       \
  F(DestroyConvolutionDescriptor, Status, (ConvolutionRef))                                        \
  F(ConvolutionForwardGetSolutionCount, Status,                                                    \
    (LibraryHandle, TensorRef, TensorRef, ConvolutionRef, TensorRef, size_t *))                    \
  F(ConvolutionForwardGetSolution, Status,                                                         \
    (LibraryHandle, TensorRef, TensorRef, ConvolutionRef, TensorRef, size_t, size_t *,             \
     ConvSolution *))                                                                              \
  F(ConvolutionForwardCompileSolution, Status,                                                     \
    (LibraryHandle, TensorRef, TensorRef, ConvolutionRef, TensorRef, uint64_t))                    \
  F(ConvolutionForwardImmediate, Status,                                                           \
    (LibraryHandle, TensorRef, const void *, TensorRef, const void *, ConvolutionRef, TensorRef,   \
     void *, void *, size_t, uint64_t))                                                            \
  F(ConvolutionForwardGetWorkSpaceSize, Status,                                                    \
    (LibraryHandle, TensorRef, TensorRef, ConvolutionRef, TensorRef, size_t *))                    \
  F(FindConvolutionForwardAlgorithm, Status,                                                       \
    (LibraryHandle, TensorRef, const void *, TensorRef, const void *, ConvolutionRef, TensorRef,   \
     void *, int, int *, FoundAlgorithm *, void *, size_t, bool))                                  \
  F(ConvolutionForward, Status,                                                                    \
    (LibraryHandle, const void *, TensorRef, const void *, TensorRef, const void *,                \
     ConvolutionRef, Algorithm, const void *, TensorRef, void *, void *, size_t))                  \
  F(ConvolutionForwardBias, Status,                                                                \
    (LibraryHandle, const void *, TensorRef, const void *, const void *, TensorRef, void *))       \
  F(CreatePoolingDescriptor, Status, (PoolingRef *))                                               \
  F(Set2dPoolingDescriptor, Status, (PoolingRef, PoolingMode, int, int, int, int, int, int))       \
  F(PoolingForward, Status,                                                                        \
    (LibraryHandle, PoolingRef, const void *, TensorRef, const void *, const void *, TensorRef,    \
     void *, bool, void *, size_t))                                                                \
  F(DestroyPoolingDescriptor, Status, (PoolingRef))                                                \
  F(BatchNormalizationForwardInference, Status,                                                    \
    (LibraryHandle, BatchNormMode, void *, void *, TensorRef, const void *, TensorRef, void *,     \
     TensorRef, void *, void *, void *, void *, double))                                           \
  F(SoftmaxForward_V2, Status,                                                                     \
    (LibraryHandle, const void *, TensorRef, const void *, const void *, TensorRef, void *,        \
     SoftmaxAlgorithm, SoftmaxMode))                                                               \
  F(CreateActivationDescriptor, Status, (ActivationRef *))                                         \
  F(SetActivationDescriptor, Status, (ActivationRef, ActivationMode, double, double, double))      \
  F(ActivationForward, Status,                                                                     \
    (LibraryHandle, ActivationRef, const void *, TensorRef, const void *, const void *, TensorRef, \
     void *))                                                                                      \
  F(DestroyActivationDescriptor, Status, (ActivationRef))

/// Of the second interface for finding solutions, complete from 2.20 on; all of them or none.
#define DOVETAIL_MIOPEN_FIND2_FUNCTIONS(F)                                                         \
  F(CreateConvProblem, Status, (ProblemRef *, ConvolutionRef, ProblemDirection))                   \
  F(DestroyProblem, Status, (ProblemRef))                                                          \
  F(SetProblemTensorDescriptor, Status, (ProblemRef, ArgumentId, TensorRef))                       \
  F(CreateFindOptions, Status, (FindOptionsRef *))                                                 \
  F(DestroyFindOptions, Status, (FindOptionsRef))                                                  \
  F(SetFindOptionWorkspaceLimit, Status, (FindOptionsRef, size_t))                                 \
  F(FindSolutions, Status,                                                                         \
    (LibraryHandle, ProblemRef, FindOptionsRef, SolutionRef *, size_t *, size_t))                  \
  F(RunSolution, Status,                                                                           \
    (LibraryHandle, SolutionRef, size_t, const TensorArgument *, void *, size_t))                  \
  F(DestroySolution, Status, (SolutionRef))                                                        \
  F(GetSolutionWorkspaceSize, Status, (SolutionRef, size_t *))                                     \
  F(GetSolutionSolverId, Status, (SolutionRef, uint64_t *))                                        \
  F(GetSolverIdConvAlgorithm, Status, (uint64_t, Algorithm *))

/// Of several operations in one kernel; all of them or none.
#define DOVETAIL_MIOPEN_FUSION_FUNCTIONS(F)                                                        \
  F(CreateFusionPlan, Status, (FusionPlanRef *, FusionDirection, TensorRef))                       \
  F(DestroyFusionPlan, Status, (FusionPlanRef))                                                    \
  F(CompileFusionPlan, Status, (LibraryHandle, FusionPlanRef))                                     \
  F(CreateOpConvForward, Status, (FusionPlanRef, FusionOpRef *, ConvolutionRef, TensorRef))        \
  F(CreateOpBiasForward, Status, (FusionPlanRef, FusionOpRef *, TensorRef))                        \
  F(CreateOpActivationForward, Status, (FusionPlanRef, FusionOpRef *, ActivationMode))             \
  F(CreateOperatorArgs, Status, (OperatorArgsRef *))                                               \
  F(DestroyOperatorArgs, Status, (OperatorArgsRef))                                                \
  F(SetOpArgsConvForward, Status,                                                                  \
    (OperatorArgsRef, FusionOpRef, const void *, const void *, const void *))                      \
  F(SetOpArgsBiasForward, Status,                                                                  \
    (OperatorArgsRef, FusionOpRef, const void *, const void *, const void *))                      \
  F(SetOpArgsActivForward, Status,                                                                 \
    (OperatorArgsRef, FusionOpRef, const void *, const void *, double, double, double))            \
  F(ExecuteFusionPlan, Status,                                                                     \
    (LibraryHandle, FusionPlanRef, TensorRef, const void *, TensorRef, void *, OperatorArgsRef))

/// Its parameters are these from 3.1 on.
#define DOVETAIL_MIOPEN_NORM_FUNCTIONS(F)                                                          \
  F(LayerNormForward, Status,                                                                      \
    (LibraryHandle, NormMode, TensorRef, const void *, TensorRef, const void *, TensorRef,         \
     const void *, float, int32_t, TensorRef, void *, TensorRef, void *, TensorRef, void *))

} // namespace dovetail::miopen
