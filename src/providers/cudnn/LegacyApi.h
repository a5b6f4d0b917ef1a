// SPDX-License-Identifier: Apache-2.0
//
// What is used of cuDNN's older calls, an algorithm of a list for each convolution, declared here
// so that no header of cuDNN is needed. Versions 8 and 9 have them; each is looked up by itself.
// LegacyCheck.cpp compares the numbers with the header where one is found.
#pragma once

#include "providers/cudnn/BackendApi.h"

namespace dovetail::cudnn {

enum class ForwardAlgorithm : int {
  ImplicitGemm = 0,
  ImplicitPrecompGemm = 1,
  Gemm = 2,
  Direct = 3,
  Fft = 4,
  FftTiling = 5,
  Winograd = 6,
  WinogradNonfused = 7,
};

enum class TensorFormat : int { ChannelsFirst = 0, ChannelsLast = 1 };
enum class MathType : int { Default = 0, TensorOp = 1, TensorOpConversion = 2, Fma = 3 };
enum class ActivationMode : int { Sigmoid = 0, Relu = 1, Tanh = 2, ClippedRelu = 3, Elu = 4 };

/// What the library says of an algorithm for a convolution.
struct AlgorithmPerformance {
  ForwardAlgorithm algorithm;
  Status status; ///< 0: it takes the convolution
  float millis;  ///< negative where it was not tried
  size_t workspaceBytes;
  int isDeterministic;
  MathType math;
  int reserved[3];
};

using TensorRef = void *;
using FilterRef = void *;
using ConvolutionRef = void *;
using ActivationRef = void *;

/// The functions used, without the prefix "cudnn".
#define DOVETAIL_CUDNN_LEGACY_FUNCTIONS(F)                                                         \
  F(CreateTensorDescriptor, Status, (TensorRef *))                                                 \
  F(SetTensorNdDescriptor, Status, (TensorRef, DataType, int, const int *, const int *))           \
  F(DestroyTensorDescriptor, Status, (TensorRef))                                                  \
  F(CreateFilterDescriptor, Status, (FilterRef *))                                                 \
  F(SetFilterNdDescriptor, Status, (FilterRef, DataType, TensorFormat, int, const int *))          \
  F(DestroyFilterDescriptor, Status, (FilterRef))                                                  \
  F(CreateConvolutionDescriptor, Status, (ConvolutionRef *))                                       \
  F(SetConvolutionNdDescriptor, Status,                                                            \
    (ConvolutionRef, int, const int *, const int *, const int *, int, DataType))                   \
  F(SetConvolutionGroupCount, Status, (ConvolutionRef, int))                                       \
  F(SetConvolutionMathType, Status, (ConvolutionRef, MathType))                                    \
  F(DestroyConvolutionDescriptor, Status, (ConvolutionRef))                                        \
  F(CreateActivationDescriptor, Status, (ActivationRef *))                                         \
  F(SetActivationDescriptor, Status, (ActivationRef, ActivationMode, int, double))                 \
  F(DestroyActivationDescriptor, Status, (ActivationRef))                                          \
  F(GetConvolutionForwardAlgorithm_v7, Status,                                                     \
    (LibraryHandle, TensorRef, FilterRef, ConvolutionRef, TensorRef, int, int *,                   \
     AlgorithmPerformance *))                                                                      \
  F(FindConvolutionForwardAlgorithm, Status,                                                       \
    (LibraryHandle, TensorRef, FilterRef, ConvolutionRef, TensorRef, int, int *,                   \
     AlgorithmPerformance *))                                                                      \
  F(GetConvolutionForwardWorkspaceSize, Status,                                                    \
    (LibraryHandle, TensorRef, FilterRef, ConvolutionRef, TensorRef, ForwardAlgorithm, size_t *))  \
  F(ConvolutionForward, Status,                                                                    \
    (LibraryHandle, const void *, TensorRef, const void *, FilterRef, const void *,                \
     ConvolutionRef, ForwardAlgorithm, void *, size_t, const void *, TensorRef, void *))           \
  F(ConvolutionBiasActivationForward, Status,                                                      \
    (LibraryHandle, const void *, TensorRef, const void *, FilterRef, const void *,                \
     ConvolutionRef, ForwardAlgorithm, void *, size_t, const void *, TensorRef, const void *,      \
     TensorRef, const void *, ActivationRef, TensorRef, void *))                                   \
  F(AddTensor, Status,                                                                             \
    (LibraryHandle, const void *, TensorRef, const void *, const void *, TensorRef, void *))       \
  F(ActivationForward, Status,                                                                     \
    (LibraryHandle, ActivationRef, const void *, TensorRef, const void *, const void *, TensorRef, \
     void *))

} // namespace dovetail::cudnn
