// SPDX-License-Identifier: Apache-2.0
//
// Compares the declarations of Api.h with MIOpen's own header; compiled only where there is one.
// Two functions are the same to a caller where their parameters go by the same registers: all
// pointers are alike, and an enumeration is an int.
#define MIOPEN_BETA_API 1
#include <miopen/miopen.h>
#include <miopen/version.h>

#include <type_traits>

#include "providers/miopen/Api.h"

namespace dovetail::miopen {
namespace {

template <typename T> struct Passed { using Type = T; };
template <typename T> struct Passed<T *> { using Type = void *; };
template <typename T>
requires std::is_enum_v<T>
struct Passed<T> {
  static_assert(sizeof(T) == sizeof(int));
  using Type = int;
};
template <typename Result, typename... Parameters> struct Passed<Result (*)(Parameters...)> {
  using Type = typename Passed<Result>::Type (*)(typename Passed<Parameters>::Type...);
};
template <typename A, typename B>
constexpr bool isSame = std::is_same_v<typename Passed<A>::Type, typename Passed<B>::Type>;

#define SAME_FUNCTION(name, result, parameters)                                                    \
  static_assert(isSame<result(*) parameters, decltype(&::miopen##name)>, #name);
DOVETAIL_MIOPEN_FUNCTIONS(SAME_FUNCTION)
#if MIOPEN_VERSION_MAJOR > 2 || MIOPEN_VERSION_MINOR >= 20
DOVETAIL_MIOPEN_FIND2_FUNCTIONS(SAME_FUNCTION)
#endif
DOVETAIL_MIOPEN_FUSION_FUNCTIONS(SAME_FUNCTION)
#if MIOPEN_VERSION_MAJOR > 3 || (MIOPEN_VERSION_MAJOR == 3 && MIOPEN_VERSION_MINOR >= 1)
DOVETAIL_MIOPEN_NORM_FUNCTIONS(SAME_FUNCTION)
static_assert(static_cast<int>(NormMode::WeightBias) == MIOPEN_WEIGHT_BIAS);
#endif

#define SAME(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))

SAME(0, miopenStatusSuccess);
SAME(DataType::Half, miopenHalf);
SAME(DataType::Float, miopenFloat);
SAME(DataType::BFloat16, miopenBFloat16);
SAME(TensorOp::Add, miopenTensorOpAdd);
SAME(ConvolutionMode::Convolution, miopenConvolution);
SAME(PoolingMode::Max, miopenPoolingMax);
SAME(PoolingMode::Average, miopenPoolingAverage);
SAME(PoolingMode::AverageInclusive, miopenPoolingAverageInclusive);
SAME(BatchNormMode::Spatial, miopenBNSpatial);
SAME(SoftmaxAlgorithm::Accurate, MIOPEN_SOFTMAX_ACCURATE);
SAME(SoftmaxAlgorithm::Log, MIOPEN_SOFTMAX_LOG);
SAME(SoftmaxMode::Channel, MIOPEN_SOFTMAX_MODE_CHANNEL);
SAME(FusionDirection::Vertical, miopenVerticalFusion);
SAME(Algorithm::Gemm, miopenConvolutionFwdAlgoGEMM);
SAME(Algorithm::Direct, miopenConvolutionFwdAlgoDirect);
SAME(Algorithm::Fft, miopenConvolutionFwdAlgoFFT);
SAME(Algorithm::Winograd, miopenConvolutionFwdAlgoWinograd);
SAME(Algorithm::ImplicitGemm, miopenConvolutionFwdAlgoImplicitGEMM);
SAME(Algorithm::Gemm, miopenConvolutionAlgoGEMM);
SAME(Algorithm::Direct, miopenConvolutionAlgoDirect);
SAME(Algorithm::Fft, miopenConvolutionAlgoFFT);
SAME(Algorithm::Winograd, miopenConvolutionAlgoWinograd);
SAME(Algorithm::ImplicitGemm, miopenConvolutionAlgoImplicitGEMM);
SAME(ActivationMode::Logistic, miopenActivationLOGISTIC);
SAME(ActivationMode::Tanh, miopenActivationTANH);
SAME(ActivationMode::Relu, miopenActivationRELU);
SAME(ActivationMode::SoftRelu, miopenActivationSOFTRELU);
SAME(ActivationMode::Abs, miopenActivationABS);
SAME(ActivationMode::ClippedRelu, miopenActivationCLIPPEDRELU);
SAME(ActivationMode::LeakyRelu, miopenActivationLEAKYRELU);
SAME(ActivationMode::Elu, miopenActivationELU);

static_assert(sizeof(ConvSolution) == sizeof(miopenConvSolution_t));
static_assert(offsetof(ConvSolution, workspaceBytes) ==
              offsetof(miopenConvSolution_t, workspace_size));
static_assert(offsetof(ConvSolution, id) == offsetof(miopenConvSolution_t, solution_id));
static_assert(offsetof(ConvSolution, algorithm) == offsetof(miopenConvSolution_t, algorithm));
static_assert(sizeof(FoundAlgorithm) == sizeof(miopenConvAlgoPerf_t));
static_assert(offsetof(FoundAlgorithm, millis) == offsetof(miopenConvAlgoPerf_t, time));
static_assert(offsetof(FoundAlgorithm, workspaceBytes) == offsetof(miopenConvAlgoPerf_t, memory));
#if MIOPEN_VERSION_MAJOR > 2 || MIOPEN_VERSION_MINOR >= 20
SAME(ProblemDirection::Forward, miopenProblemDirectionForward);
SAME(ArgumentId::X, miopenTensorConvolutionX);
SAME(ArgumentId::W, miopenTensorConvolutionW);
SAME(ArgumentId::Y, miopenTensorConvolutionY);
static_assert(sizeof(TensorArgument) == sizeof(miopenTensorArgument_t));
static_assert(offsetof(TensorArgument, descriptor) == offsetof(miopenTensorArgument_t, descriptor));
static_assert(offsetof(TensorArgument, buffer) == offsetof(miopenTensorArgument_t, buffer));
#endif

} // namespace
} // namespace dovetail::miopen
