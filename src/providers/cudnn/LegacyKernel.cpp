// SPDX-License-Identifier: Apache-2.0
//
// Preparing describes tensors and convolution and asks the library for the workspace of the
// algorithm, its ranking, or the times that it takes itself. A run makes one call, or one for each
// part, those behind the first in place of the result.
#include "providers/cudnn/LegacyKernel.h"

#include <algorithm>

#include "providers/LibraryObject.h"
#include "providers/cudnn/Driver.h"

namespace dovetail::cudnn {
namespace {

using providers::Owned;

constexpr float kOne = 1, kZero = 0; ///< what results and sums are scaled with
constexpr int kMostAlgorithms = 16;  ///< the library knows eight; it may name one with both maths
constexpr DataType kComputeType = DataType::Float;

std::vector<int> asInts(const Dims &numbers) {
  std::vector<int> ints;
  for (int64_t number : numbers)
    ints.push_back(static_cast<int>(number));
  return ints;
}

bool isTransforming(ForwardAlgorithm algorithm) {
  return algorithm == ForwardAlgorithm::Fft || algorithm == ForwardAlgorithm::FftTiling ||
         algorithm == ForwardAlgorithm::Winograd || algorithm == ForwardAlgorithm::WinogradNonfused;
}

class LegacyKernel final : public Kernel {
public:
  LegacyKernel(const Surroundings &surroundings, const Graph &graph, const LegacyForm &form,
               const providers::ProblemReader &problem)
      : library(surroundings.library), shared(surroundings.handle), form(form),
        isFused(form.isFused(graph)), places(graph, problem), order(places.tensors()) {}

  /// What went wrong is in `backend`. Under the lock of the handle.
  void describe(Backend &backend, const Graph &graph) {
    x = tensor(backend, graph.tensors[form.x]);
    y = tensor(backend, graph.tensors[form.y]);
    if (form.bias)
      bias = tensor(backend, graph.tensors[*form.bias]);
    if (form.addend)
      addend = tensor(backend, graph.tensors[*form.addend]);
    describeFilter(backend, graph.tensors[form.w]);
    describeConvolution(backend);
    describeActivation(backend);
  }
  /// Settles the algorithm; false with the reason in `backend`.
  bool choose(Backend &backend, LibraryHandle handle, const LegacyOffer &offer) {
    if (!backend.ok())
      return false;
    return offer.by == LegacyOffer::By::Name ? takeNamed(backend, handle, offer)
                                             : takeFirst(backend, handle, offer);
  }
  uint64_t workspaceBytes() const override { return workspace; }
  dvt_code run(const dvt_run_args &args, std::string &reason) override;

private:
  Owned<TensorRef> tensor(Backend &backend, const Tensor &from) const {
    Owned<TensorRef> made(backend, library->CreateTensorDescriptor,
                          library->DestroyTensorDescriptor, "making a tensor descriptor");
    const std::vector<int> dims = asInts(from.dims), strides = asInts(from.strides);
    if (backend.ok())
      backend.check(library->SetTensorNdDescriptor(made.get(), from.type,
                                                   static_cast<int>(dims.size()), dims.data(),
                                                   strides.data()),
                    "describing a tensor");
    return made;
  }
  void describeFilter(Backend &backend, const Tensor &from) {
    w = Owned<FilterRef>(backend, library->CreateFilterDescriptor, library->DestroyFilterDescriptor,
                         "making a filter descriptor");
    const std::vector<int> dims = asInts(from.dims);
    if (backend.ok())
      backend.check(library->SetFilterNdDescriptor(w.get(), from.type, form.filterFormat,
                                                   static_cast<int>(dims.size()), dims.data()),
                    "describing the weights");
  }
  void describeConvolution(Backend &backend) {
    convolution =
        Owned<ConvolutionRef>(backend, library->CreateConvolutionDescriptor,
                              library->DestroyConvolutionDescriptor, "making a convolution");
    const std::vector<int> pads = asInts(form.pads), strides = asInts(form.strides),
                           dilations = asInts(form.dilations);
    if (backend.ok() &&
        backend.check(library->SetConvolutionNdDescriptor(
                          convolution.get(), static_cast<int>(pads.size()), pads.data(),
                          strides.data(), dilations.data(), kCrossCorrelation, kComputeType),
                      "describing a convolution"))
      backend.check(
          library->SetConvolutionGroupCount(convolution.get(), static_cast<int>(form.groups)),
          "setting the number of groups");
  }
  void describeActivation(Backend &backend) {
    if (!form.activation)
      return;
    activation = Owned<ActivationRef>(backend, library->CreateActivationDescriptor,
                                      library->DestroyActivationDescriptor, "making an activation");
    if (backend.ok())
      backend.check(library->SetActivationDescriptor(activation.get(), *form.activation,
                                                     kPropagateNan, form.coefficient),
                    "describing an activation");
  }

  bool setMath(Backend &backend, MathType math) {
    return backend.check(library->SetConvolutionMathType(convolution.get(), math),
                         "choosing the arithmetic");
  }
  bool takeNamed(Backend &backend, LibraryHandle handle, const LegacyOffer &offer) {
    size_t bytes = 0;
    if (!setMath(backend, offer.math) ||
        !backend.check(library->GetConvolutionForwardWorkspaceSize(handle, x.get(), w.get(),
                                                                   convolution.get(), y.get(),
                                                                   offer.algorithm, &bytes),
                       "asking for the workspace"))
      return false;
    if (bytes > offer.workspaceBytes)
      return backend.fail("the algorithm takes " + std::to_string(bytes) +
                          " bytes of workspace, the plan has " +
                          std::to_string(offer.workspaceBytes));
    algorithm = offer.algorithm;
    workspace = bytes;
    return true;
  }
  /// The first of the library's list that fits; the list is sorted by time.
  bool takeFirst(Backend &backend, LibraryHandle handle, const LegacyOffer &offer) {
    if (!setMath(backend, offer.math))
      return false;
    AlgorithmPerformance list[kMostAlgorithms] = {};
    int count = 0;
    const bool tries = offer.by == LegacyOffer::By::Trial;
    const auto ask = tries ? library->FindConvolutionForwardAlgorithm
                           : library->GetConvolutionForwardAlgorithm_v7;
    if (!backend.check(ask(handle, x.get(), w.get(), convolution.get(), y.get(), kMostAlgorithms,
                           &count, list),
                       tries ? "trying the algorithms" : "asking for the algorithms"))
      return false;
    count = std::clamp(count, 0, kMostAlgorithms);
    for (int i = 0; i < count; ++i) {
      const AlgorithmPerformance &each = list[i];
      // Of f32 without matrix units: those use units of less precision.
      const bool fits = each.status == 0 && each.workspaceBytes <= offer.workspaceBytes &&
                        !isTransforming(each.algorithm) &&
                        (offer.math != MathType::Fma || each.math == MathType::Fma ||
                         each.math == MathType::Default);
      if (!fits)
        continue;
      // Of another arithmetic than the one that stays set the list says nothing certain.
      size_t bytes = each.workspaceBytes;
      if (offer.math == MathType::Fma && each.math != MathType::Fma &&
          (library->GetConvolutionForwardWorkspaceSize(handle, x.get(), w.get(), convolution.get(),
                                                       y.get(), each.algorithm, &bytes) != 0 ||
           bytes > offer.workspaceBytes))
        continue;
      algorithm = each.algorithm;
      workspace = bytes;
      return offer.math == MathType::Fma || setMath(backend, each.math);
    }
    return backend.fail("of " + std::to_string(count) +
                        " algorithms for this convolution none without transforms works with " +
                        std::to_string(offer.workspaceBytes) + " bytes of workspace");
  }

  std::shared_ptr<const Library> library;
  std::shared_ptr<SharedHandle> shared;
  LegacyForm form;
  bool isFused = false;
  Places places;
  std::vector<size_t> order; ///< tensor at each address
  Owned<TensorRef> x, y, bias, addend;
  Owned<FilterRef> w;
  Owned<ConvolutionRef> convolution;
  Owned<ActivationRef> activation;
  ForwardAlgorithm algorithm = ForwardAlgorithm::ImplicitGemm;
  uint64_t workspace = 0;
};

dvt_code LegacyKernel::run(const dvt_run_args &args, std::string &reason) {
  std::vector<void *> addresses;
  if (dvt_code code = places.find(args, workspace, addresses, reason); code != DVT_OK)
    return code;
  auto at = [&](size_t tensor) {
    return addresses[static_cast<size_t>(std::find(order.begin(), order.end(), tensor) -
                                         order.begin())];
  };
  void *const result = at(form.y), *const scratch = workspace ? args.workspace : nullptr;
  Backend backend(*library);
  const auto lock = shared->lock();
  LibraryHandle handle = shared->on(backend, args.stream);
  if (handle && isFused) {
    // Without an addend the result stands for one, and counts nothing.
    const bool adds = form.addend.has_value();
    backend.check(library->ConvolutionBiasActivationForward(
                      handle, &kOne, x.get(), at(form.x), w.get(), at(form.w), convolution.get(),
                      algorithm, scratch, workspace, adds ? &kOne : &kZero,
                      adds ? addend.get() : y.get(), adds ? at(*form.addend) : result, bias.get(),
                      at(*form.bias), activation.get(), y.get(), result),
                  "convolution");
  } else if (handle) {
    backend.check(library->ConvolutionForward(handle, &kOne, x.get(), at(form.x), w.get(),
                                              at(form.w), convolution.get(), algorithm, scratch,
                                              workspace, &kZero, y.get(), result),
                  "convolution");
    if (backend.ok() && form.bias)
      backend.check(
          library->AddTensor(handle, &kOne, bias.get(), at(*form.bias), &kOne, y.get(), result),
          "adding the bias");
    if (backend.ok() && form.addend)
      backend.check(
          library->AddTensor(handle, &kOne, addend.get(), at(*form.addend), &kOne, y.get(), result),
          "adding a tensor");
    if (backend.ok() && form.activation)
      backend.check(library->ActivationForward(handle, activation.get(), &kOne, y.get(), result,
                                               &kZero, y.get(), result),
                    "activation");
  }
  reason = backend.reason();
  return backend.ok() ? DVT_OK : DVT_FAILED;
}

} // namespace

std::unique_ptr<Kernel> makeLegacyKernel(const Surroundings &surroundings, const Graph &graph,
                                         const LegacyForm &form, const LegacyOffer &offer,
                                         const providers::ProblemReader &problem, dvt_code &code,
                                         std::string &reason) {
  code = DVT_UNAVAILABLE;
  reason = findDriverForRunning(surroundings.driver);
  if (!reason.empty())
    return nullptr;
  Backend backend(*surroundings.library);
  const auto lock = surroundings.handle->lock();
  LibraryHandle handle = surroundings.handle->on(backend, nullptr);
  auto kernel = std::make_unique<LegacyKernel>(surroundings, graph, form, problem);
  code = handle ? DVT_UNSUPPORTED : DVT_UNAVAILABLE;
  if (handle)
    kernel->describe(backend, graph);
  const bool isReady = handle && kernel->choose(backend, handle, offer);
  code = isReady ? DVT_OK : code;
  reason = backend.reason();
  return isReady ? std::move(kernel) : nullptr;
}

} // namespace dovetail::cudnn
