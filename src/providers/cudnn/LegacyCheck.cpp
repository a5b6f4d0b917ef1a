// SPDX-License-Identifier: Apache-2.0
//
// Compares the numbers of LegacyApi.h with cuDNN's own headers; compiled only where there are some.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <cudnn_cnn.h>
#include <cudnn_ops.h>

#include <cstddef>

#include "providers/cudnn/LegacyApi.h"

namespace dovetail::cudnn {

#define SAME(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))

SAME(ForwardAlgorithm::ImplicitGemm, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM);
SAME(ForwardAlgorithm::ImplicitPrecompGemm, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
SAME(ForwardAlgorithm::Gemm, CUDNN_CONVOLUTION_FWD_ALGO_GEMM);
SAME(ForwardAlgorithm::Direct, CUDNN_CONVOLUTION_FWD_ALGO_DIRECT);
SAME(ForwardAlgorithm::Fft, CUDNN_CONVOLUTION_FWD_ALGO_FFT);
SAME(ForwardAlgorithm::FftTiling, CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING);
SAME(ForwardAlgorithm::Winograd, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD);
SAME(ForwardAlgorithm::WinogradNonfused, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED);
SAME(TensorFormat::ChannelsFirst, CUDNN_TENSOR_NCHW);
SAME(TensorFormat::ChannelsLast, CUDNN_TENSOR_NHWC);
SAME(MathType::Default, CUDNN_DEFAULT_MATH);
SAME(MathType::TensorOp, CUDNN_TENSOR_OP_MATH);
SAME(MathType::TensorOpConversion, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION);
SAME(MathType::Fma, CUDNN_FMA_MATH);
SAME(ActivationMode::Sigmoid, CUDNN_ACTIVATION_SIGMOID);
SAME(ActivationMode::Relu, CUDNN_ACTIVATION_RELU);
SAME(ActivationMode::Tanh, CUDNN_ACTIVATION_TANH);
SAME(ActivationMode::ClippedRelu, CUDNN_ACTIVATION_CLIPPED_RELU);
SAME(ActivationMode::Elu, CUDNN_ACTIVATION_ELU);
SAME(1, CUDNN_DETERMINISTIC);

using Theirs = cudnnConvolutionFwdAlgoPerf_t;
static_assert(sizeof(AlgorithmPerformance) == sizeof(Theirs));
static_assert(offsetof(AlgorithmPerformance, workspaceBytes) == offsetof(Theirs, memory));
static_assert(offsetof(AlgorithmPerformance, isDeterministic) == offsetof(Theirs, determinism));
static_assert(offsetof(AlgorithmPerformance, math) == offsetof(Theirs, mathType));

/// Whether both functions are called alike: as many parameters, each of the same size.
template <typename Ours, typename Theirs> struct Alike;
template <typename... Ours, typename... Others>
struct Alike<Status(Ours...), cudnnStatus_t(Others...)> {
  static constexpr bool value() {
    if constexpr (sizeof...(Ours) != sizeof...(Others))
      return false;
    else
      return ((sizeof(Ours) == sizeof(Others)) && ...);
  }
};
#define ALIKE(name, result, parameters)                                                            \
  static_assert(Alike<result parameters, decltype(::cudnn##name)>::value());
DOVETAIL_CUDNN_LEGACY_FUNCTIONS(ALIKE)
#undef ALIKE

} // namespace dovetail::cudnn
