// SPDX-License-Identifier: Apache-2.0
//
// Descriptors of the older calls.
#include "Legacy.h"

#include "providers/ChannelsLast.h"

using namespace cudnn_double;

namespace cudnn_double {

LegacyState &legacy() {
  static auto *only = new LegacyState();
  return *only;
}

namespace {

template <typename T> int create(const char *name, std::map<Ref, T> &all, Ref *to) {
  Entry entry(name);
  if (entry.need(to, NullPointer, "there is no place for the descriptor"))
    all[ *to = state().newRef()] = {};
  return entry.end();
}

template <typename T> int destroy(const char *name, std::map<Ref, T> &all, Ref ref) {
  Entry entry(name);
  entry.need(all.erase(ref) > 0, BadParam, "there is no such descriptor");
  return entry.end();
}

bool isKnown(api::DataType type) {
  return type == api::DataType::Float || type == api::DataType::Half ||
         type == api::DataType::Bfloat16;
}

/// Extents of four or five dimensions.
bool checkDims(Entry &entry, api::DataType type, int count, const int *dims) {
  entry.need(isKnown(type), NotSupported, "elements of type {}", static_cast<int>(type));
  entry.need(count >= 4 && count <= 5 && dims, BadParam, "{} dimensions", count);
  for (int i = 0; entry.isFine() && i < count; ++i)
    entry.need(dims[i] > 0, BadParam, "dimension {} is {}", i, dims[i]);
  return entry.isFine();
}

api::Tensor tensorOf(api::DataType type, int count, const int *dims) {
  api::Tensor tensor;
  tensor.type = type;
  tensor.dims.assign(dims, dims + count);
  tensor.value = 0; // it lies in memory
  return tensor;
}

} // namespace
} // namespace cudnn_double

#define DESCRIPTOR(Name, all)                                                                      \
  CUDNN_ENTRY int cudnnCreate##Name##Descriptor(Ref *to) {                                         \
    return create("cudnnCreate" #Name "Descriptor", legacy().all, to);                             \
  }                                                                                                \
  CUDNN_ENTRY int cudnnDestroy##Name##Descriptor(Ref ref) {                                        \
    return destroy("cudnnDestroy" #Name "Descriptor", legacy().all, ref);                          \
  }
DESCRIPTOR(Tensor, tensors)
DESCRIPTOR(Filter, filters)
DESCRIPTOR(Convolution, convolutions)
DESCRIPTOR(Activation, activations)

CUDNN_ENTRY int cudnnSetTensorNdDescriptor(Ref ref, api::DataType type, int count, const int *dims,
                                           const int *strides) {
  Entry entry("cudnnSetTensorNdDescriptor");
  LegacyTensor *found = described(entry, legacy().tensors, ref, "a tensor", true);
  entry.need(strides, NullPointer, "a tensor without strides");
  if (!found || !checkDims(entry, type, count, dims))
    return entry.end();
  for (int i = 0; i < count; ++i)
    entry.need(strides[i] > 0, BadParam, "dimension {} has stride {}", i, strides[i]);
  api::Tensor tensor = tensorOf(type, count, dims);
  tensor.strides.assign(strides, strides + count);
  if (entry.isFine())
    *found = {true, std::move(tensor)};
  return entry.end();
}

CUDNN_ENTRY int cudnnSetFilterNdDescriptor(Ref ref, api::DataType type, api::TensorFormat format,
                                           int count, const int *dims) {
  Entry entry("cudnnSetFilterNdDescriptor");
  LegacyTensor *found = described(entry, legacy().filters, ref, "weights", true);
  const bool isLast = format == api::TensorFormat::ChannelsLast;
  entry.need(isLast || format == api::TensorFormat::ChannelsFirst, NotSupported,
             "weights in format {}", static_cast<int>(format));
  if (!found || !checkDims(entry, type, count, dims))
    return entry.end();
  api::Tensor tensor = tensorOf(type, count, dims);
  tensor.strides = isLast ? dovetail::providers::channelsLastStrides(tensor.dims)
                          : dovetail::providers::denseStrides(tensor.dims);
  *found = {true, std::move(tensor)};
  return entry.end();
}

CUDNN_ENTRY int cudnnSetConvolutionNdDescriptor(Ref ref, int spatial, const int *pads,
                                                const int *strides, const int *dilations, int mode,
                                                api::DataType compute) {
  Entry entry("cudnnSetConvolutionNdDescriptor");
  LegacyConvolution *found = described(entry, legacy().convolutions, ref, "a convolution", true);
  entry.need(spatial == 2 || spatial == 3, NotSupported, "{} spatial dimensions", spatial);
  entry.need(mode == api::kCrossCorrelation, NotSupported, "mode {}", mode);
  entry.need(compute == api::DataType::Float, NotSupported, "arithmetic in type {}",
             static_cast<int>(compute));
  entry.need(pads && strides && dilations, NullPointer, "a list is missing");
  for (int i = 0; entry.isFine() && i < spatial; ++i)
    entry.need(pads[i] >= 0 && strides[i] >= 1 && dilations[i] >= 1, BadParam,
               "padding {}, stride {} or dilation {} is none", pads[i], strides[i], dilations[i]);
  if (entry.isFine() && found)
    *found = {true,
              api::Dims(pads, pads + spatial),
              api::Dims(strides, strides + spatial),
              api::Dims(dilations, dilations + spatial),
              1,
              api::MathType::Default};
  return entry.end();
}

CUDNN_ENTRY int cudnnSetConvolutionGroupCount(Ref ref, int groups) {
  Entry entry("cudnnSetConvolutionGroupCount");
  LegacyConvolution *found = described(entry, legacy().convolutions, ref, "a convolution");
  if (entry.need(groups >= 1, BadParam, "{} groups", groups) && found)
    found->groups = groups;
  return entry.end();
}

CUDNN_ENTRY int cudnnSetConvolutionMathType(Ref ref, api::MathType math) {
  Entry entry("cudnnSetConvolutionMathType");
  LegacyConvolution *found = described(entry, legacy().convolutions, ref, "a convolution");
  const int number = static_cast<int>(math);
  if (entry.need(number >= 0 && number <= 3, BadParam, "arithmetic {}", number) && found)
    found->math = math;
  return entry.end();
}

CUDNN_ENTRY int cudnnSetActivationDescriptor(Ref ref, api::ActivationMode mode, int,
                                             double coefficient) {
  Entry entry("cudnnSetActivationDescriptor");
  LegacyActivation *found = described(entry, legacy().activations, ref, "an activation", true);
  api::Operation op;
  switch (mode) {
  case api::ActivationMode::Sigmoid:
    op.pointwise = api::PointwiseMode::Sigmoid;
    break;
  case api::ActivationMode::ClippedRelu:
    op.upperClip = coefficient;
    [[fallthrough]];
  case api::ActivationMode::Relu:
    op.pointwise = api::PointwiseMode::Relu;
    break;
  case api::ActivationMode::Tanh:
    op.pointwise = api::PointwiseMode::Tanh;
    break;
  case api::ActivationMode::Elu:
    op.pointwise = api::PointwiseMode::Elu;
    op.alpha = coefficient;
    break;
  default:
    entry.need(false, NotSupported, "activation {}", static_cast<int>(mode));
  }
  if (entry.isFine() && found)
    *found = {true, std::move(op)};
  return entry.end();
}

namespace cudnn_double {

uint64_t legacyObjects() {
  const LegacyState &all = legacy();
  return all.tensors.size() + all.filters.size() + all.convolutions.size() + all.activations.size();
}

} // namespace cudnn_double
