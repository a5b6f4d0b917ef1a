// SPDX-License-Identifier: Apache-2.0
#include "providers/miopen/Turn.h"

namespace dovetail::miopen {

Handle::~Handle() {
  if (handle)
    library->Destroy(handle);
}

Turn::Turn(Handle &handle, DeviceStream stream) : shared(handle), lock(handle.mutex) {
  if (!shared.handle) {
    if (check(api().CreateWithStream(&shared.handle, stream), "opening the device"))
      shared.stream = stream;
    else
      shared.handle = nullptr;
  } else if (shared.stream != stream &&
             check(api().SetStream(shared.handle, stream), "taking the stream")) {
    shared.stream = stream;
  }
}

bool Turn::check(Status status, const char *what) {
  return status == 0 || fail(std::string(what) + ": " + api().describe(status));
}

bool Turn::fail(std::string reason) {
  if (why.empty())
    why = std::move(reason);
  return false;
}

std::vector<int> asInts(const Dims &dims) { return {dims.begin(), dims.end()}; }

TensorDescriptor describe(Turn &turn, const Tensor &tensor) {
  TensorDescriptor made(turn, turn.api().CreateTensorDescriptor, turn.api().DestroyTensorDescriptor,
                        "making a tensor descriptor");
  const std::vector<int> dims = asInts(tensor.dims), strides = asInts(tensor.strides);
  if (turn.isFine())
    turn.check(turn.api().SetTensorDescriptor(made.get(), tensor.type,
                                              static_cast<int>(dims.size()), dims.data(),
                                              strides.data()),
               "describing a tensor");
  return made;
}

ConvolutionDescriptor describeConvolution(Turn &turn, const Call &call) {
  const Library &api = turn.api();
  ConvolutionDescriptor made(turn, api.CreateConvolutionDescriptor,
                             api.DestroyConvolutionDescriptor, "making a convolution descriptor");
  const std::vector<int> pads = asInts(call.pads), strides = asInts(call.strides),
                         dilations = asInts(call.dilations);
  if (turn.isFine() &&
      turn.check(api.InitConvolutionNdDescriptor(made.get(), static_cast<int>(pads.size()),
                                                 pads.data(), strides.data(), dilations.data(),
                                                 ConvolutionMode::Convolution),
                 "describing a convolution"))
    turn.check(api.SetConvolutionGroupCount(made.get(), static_cast<int>(call.groups)),
               "setting the number of groups");
  return made;
}

} // namespace dovetail::miopen
