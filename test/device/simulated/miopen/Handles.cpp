// SPDX-License-Identifier: Apache-2.0
//
// Versions, handles and descriptors of tensors.
#include "Objects.h"

using namespace miopen_double;

MIOPEN_ENTRY int miopenGetVersion(size_t *major, size_t *minor, size_t *patch) {
  *major = DOUBLE_MAJOR;
  *minor = DOUBLE_MAJOR == 2 ? 16 : 2;
  *patch = 0;
  return Success;
}

MIOPEN_ENTRY int miopenCreateWithStream(Ref *handle, Ref stream) {
  Entry entry("miopenCreateWithStream");
  if (entry.need(handle, BadParm, "there is no place for the handle"))
    *handle = state().handles.add({stream, {}, {}});
  return entry.end();
}

MIOPEN_ENTRY int miopenSetStream(Ref handle, Ref stream) {
  Entry entry("miopenSetStream");
  if (Handle *found = entry.handle(handle))
    found->stream = stream;
  return entry.end();
}

MIOPEN_ENTRY int miopenDestroy(Ref handle) {
  Entry entry("miopenDestroy");
  entry.need(state().handles.remove(handle), BadParm, "there is no such handle");
  return entry.end();
}

MIOPEN_ENTRY int miopenCreateTensorDescriptor(Ref *tensor) {
  Entry entry("miopenCreateTensorDescriptor");
  if (entry.need(tensor, BadParm, "there is no place for the descriptor"))
    *tensor = state().tensors.add({});
  return entry.end();
}

MIOPEN_ENTRY int miopenSetTensorDescriptor(Ref tensor, int type, int count, const int *dims,
                                           const int *strides) {
  Entry entry("miopenSetTensorDescriptor");
  Tensor *found = entry.find(state().tensors, tensor, "tensor descriptor");
  entry.need(type == kHalf || type == kFloat || type == kBFloat16, BadParm,
             "elements of type {} are not known", type);
  entry.need(count >= 1 && count <= 5 && dims && strides, BadParm, "{} dimensions", count);
  if (!entry.isFine())
    return entry.end();
  for (int i = 0; i < count; ++i)
    entry.need(dims[i] > 0 && strides[i] > 0, BadParm, "dimension {} is {} with stride {}", i,
               dims[i], strides[i]);
  Tensor described{true, type, Dims(dims, dims + count), Dims(strides, strides + count)};
  entry.need(described.isPacked(), BadParm, "tensors with gaps are not supported here");
  if (entry.isFine())
    *found = described;
  return entry.end();
}

MIOPEN_ENTRY int miopenDestroyTensorDescriptor(Ref tensor) {
  Entry entry("miopenDestroyTensorDescriptor");
  entry.need(state().tensors.remove(tensor), BadParm, "there is no such descriptor");
  return entry.end();
}
