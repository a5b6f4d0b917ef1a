// SPDX-License-Identifier: Apache-2.0
//
// Element-wise calls, pools, softmax and normalisations. Element-wise ones go by dimensions, as the
// library's kernels do: operands that lie with channels last would be read wrongly, and are
// refused.
#include "Arithmetic.h"

using namespace miopen_double;

namespace {

/// Whether only the order of dimensions is one that all versions read rightly.
void rowMajor(Entry &entry, const Tensor *tensor, const char *what) {
  if (tensor)
    entry.need(tensor->isRowMajor(), BadParm, "{} does not lie row-major", what);
}

void notBfloat(Entry &entry, const Tensor *tensor) {
  if (tensor)
    entry.need(tensor->type != kBFloat16, NotImplemented, "bf16 is not supported");
}

void sameShape(Entry &entry, const Tensor *a, const Tensor *b) {
  if (a && b)
    entry.need(a->text() == b->text(), BadParm, "the shapes or types of operand and result differ");
}

void addTo(Entry &entry, const Handle *with, const Tensor *a, const void *first, const Tensor *b,
           const void *second, const Tensor *c, void *sum) {
  rowMajor(entry, a, "the first operand");
  rowMajor(entry, b, "the second operand");
  sameShape(entry, a, c);
  if (!entry.isFine())
    return;
  entry.need(a->type == b->type && a->dims.size() == b->dims.size(), BadParm,
             "the operands' types or numbers of dimensions differ");
  for (size_t i = 0; entry.isFine() && i < b->dims.size(); ++i)
    entry.need(b->dims[i] == 1 || b->dims[i] == a->dims[i], BadParm,
               "the second operand has {} elements in dimension {}", b->dims[i], i);
  entry.memory(*a, first, "the first operand");
  entry.memory(*b, second, "the second operand");
  entry.memory(*c, sum, "the result");
  if (!entry.isFine())
    return;
  entry.apart(*b, second, *c, sum);
  entry.enqueue(
      *with, ranges({{"a", first, a->bytes()}, {"b", second, b->bytes()}, {"c", sum, c->bytes()}}),
      [=, aDesc = *a, bDesc = *b, cDesc = *c] { add(aDesc, first, bDesc, second, cDesc, sum); });
}

} // namespace

MIOPEN_ENTRY int miopenOpTensor(Ref handle, int op, const void *alpha1, Ref aDesc, const void *a,
                                const void *alpha2, Ref bDesc, const void *b, const void *beta,
                                Ref cDesc, void *c) {
  Entry entry("miopenOpTensor");
  const Handle *with = entry.handle(handle);
  entry.need(op == 0, NotImplemented, "operation {} is no addition", op);
  entry.scales(alpha1, beta);
  entry.scales(alpha2, beta);
  const Tensor *first = entry.tensor(aDesc, "a");
  notBfloat(entry, first);
  addTo(entry, with, first, a, entry.tensor(bDesc, "b"), b, entry.tensor(cDesc, "c"), c);
  return entry.end();
}

MIOPEN_ENTRY int miopenConvolutionForwardBias(Ref handle, const void *alpha, Ref bDesc,
                                              const void *b, const void *beta, Ref yDesc, void *y) {
  Entry entry("miopenConvolutionForwardBias");
  const Handle *with = entry.handle(handle);
  entry.scales(alpha, beta);
  const Tensor *bias = entry.tensor(bDesc, "the bias"), *result = entry.tensor(yDesc, "y");
  notBfloat(entry, result);
  if (entry.isFine()) {
    Dims channels(result->dims.size(), 1);
    if (channels.size() > 1)
      channels[1] = result->dims[1];
    entry.need(bias->dims == channels, BadParm, "the bias does not go by the second dimension");
  }
  addTo(entry, with, result, y, bias, b, result, y);
  return entry.end();
}

MIOPEN_ENTRY int miopenCreatePoolingDescriptor(Ref *pool) {
  Entry entry("miopenCreatePoolingDescriptor");
  if (entry.need(pool, BadParm, "there is no place for the descriptor"))
    *pool = state().pools.add({});
  return entry.end();
}

MIOPEN_ENTRY int miopenSet2dPoolingDescriptor(Ref pool, int mode, int height, int width, int padY,
                                              int padX, int strideY, int strideX) {
  Entry entry("miopenSet2dPoolingDescriptor");
  Pool *found = entry.find(state().pools, pool, "pooling descriptor");
  entry.need(mode >= 0 && mode <= 2 && height > 0 && width > 0 && padY >= 0 && padX >= 0 &&
                 strideY > 0 && strideX > 0,
             BadParm, "mode {}, window {}x{}", mode, height, width);
  if (entry.isFine())
    *found = {true, mode, {height, width}, {padY, padX}, {strideY, strideX}};
  return entry.end();
}

MIOPEN_ENTRY int miopenDestroyPoolingDescriptor(Ref pool) {
  Entry entry("miopenDestroyPoolingDescriptor");
  entry.need(state().pools.remove(pool), BadParm, "there is no such descriptor");
  return entry.end();
}

MIOPEN_ENTRY int miopenPoolingForward(Ref handle, Ref poolDesc, const void *alpha, Ref xDesc,
                                      const void *x, const void *beta, Ref yDesc, void *y,
                                      bool backward, void *workspace, size_t bytes) {
  Entry entry("miopenPoolingForward");
  const Handle *with = entry.handle(handle);
  const Pool *found = entry.described(state().pools, poolDesc, "the pool");
  const Tensor *source = entry.tensor(xDesc, "x"), *result = entry.tensor(yDesc, "y");
  entry.scales(alpha, beta);
  notBfloat(entry, source);
  rowMajor(entry, source, "x");
  rowMajor(entry, result, "y");
  entry.need(!backward, NotImplemented, "indices for training are not computed here");
  entry.workspace(workspace, bytes, 0);
  if (!entry.isFine())
    return entry.end();
  entry.need(source->dims.size() == 4 && result->dims.size() == 4 && source->type == result->type,
             BadParm, "images of two spatial dimensions and one type are supported");
  for (size_t i = 0; entry.isFine() && i < 2; ++i) {
    const int64_t room = source->dims[i + 2] + 2 * found->pads[i] - found->window[i];
    entry.need(room >= 0 && result->dims[i + 2] == room / found->strides[i] + 1 &&
                   found->pads[i] < found->window[i] && result->dims[i] == source->dims[i],
               BadParm, "the result has {} elements in dimension {}", result->dims[i + 2], i + 2);
  }
  entry.memory(*source, x, "x");
  entry.memory(*result, y, "y");
  entry.apart(*source, x, *result, y);
  entry.enqueue(*with, ranges({{"x", x, source->bytes()}, {"y", y, result->bytes()}}),
                [=, desc = *found, from = *source, to = *result] { pool(desc, from, x, to, y); });
  return entry.end();
}

MIOPEN_ENTRY int miopenSoftmaxForward_V2(Ref handle, const void *alpha, Ref xDesc, const void *x,
                                         const void *beta, Ref yDesc, void *y, int algorithm,
                                         int mode) {
  Entry entry("miopenSoftmaxForward_V2");
  const Handle *with = entry.handle(handle);
  const Tensor *source = entry.tensor(xDesc, "x"), *result = entry.tensor(yDesc, "y");
  entry.scales(alpha, beta);
  notBfloat(entry, source);
  rowMajor(entry, source, "x");
  sameShape(entry, source, result);
  entry.need((algorithm == 1 || algorithm == 2) && mode == 1, NotImplemented,
             "algorithm {} in mode {} is not computed here", algorithm, mode);
  if (!entry.isFine() ||
      !entry.need(source->dims.size() == 4, BadParm, "four dimensions are supported"))
    return entry.end();
  entry.memory(*source, x, "x");
  entry.memory(*result, y, "y");
  entry.enqueue(*with, ranges({{"x", x, source->bytes()}, {"y", y, result->bytes()}}),
                [=, desc = *source] { softmax(algorithm == 2, desc, x, y); });
  return entry.end();
}

MIOPEN_ENTRY int miopenBatchNormalizationForwardInference(Ref handle, int mode, void *alpha,
                                                          void *beta, Ref xDesc, const void *x,
                                                          Ref yDesc, void *y, Ref vectorDesc,
                                                          void *scale, void *bias, void *mean,
                                                          void *variance, double epsilon) {
  Entry entry("miopenBatchNormalizationForwardInference");
  const Handle *with = entry.handle(handle);
  const Tensor *source = entry.tensor(xDesc, "x"), *result = entry.tensor(yDesc, "y"),
               *vector = entry.tensor(vectorDesc, "the vectors");
  entry.scales(alpha, beta);
  notBfloat(entry, source);
  rowMajor(entry, source, "x");
  sameShape(entry, source, result);
  entry.need(mode == 1, NotImplemented, "mode {} is not computed here", mode);
  if (!entry.isFine())
    return entry.end();
  entry.need(source->dims.size() == 4 && vector->dims == Dims{1, source->dims[1], 1, 1}, BadParm,
             "the vectors do not go by the second of four dimensions");
  entry.need(vector->type == kFloat || vector->type == source->type, BadParm,
             "the vectors are of another type");
  entry.memory(*source, x, "x");
  entry.memory(*result, y, "y");
  for (const void *each : {scale, bias, mean, variance})
    entry.memory(*vector, each, "a vector");
  entry.enqueue(*with,
                ranges({{"x", x, source->bytes()},
                        {"y", y, result->bytes()},
                        {"scale", scale, vector->bytes()},
                        {"bias", bias, vector->bytes()},
                        {"mean", mean, vector->bytes()},
                        {"variance", variance, vector->bytes()}}),
                [=, desc = *source, numbers = *vector] {
                  batchNorm(desc, x, numbers, {scale, bias, mean, variance}, epsilon, desc, y);
                });
  return entry.end();
}

MIOPEN_ENTRY int miopenCreateActivationDescriptor(Ref *activation) {
  Entry entry("miopenCreateActivationDescriptor");
  if (entry.need(activation, BadParm, "there is no place for the descriptor"))
    *activation = state().activations.add({});
  return entry.end();
}

MIOPEN_ENTRY int miopenSetActivationDescriptor(Ref activation, int mode, double alpha, double beta,
                                               double gamma) {
  Entry entry("miopenSetActivationDescriptor");
  Activation *found = entry.find(state().activations, activation, "activation descriptor");
  entry.need(mode >= 0 && mode <= 9, BadParm, "mode {} is not known", mode);
  if (entry.isFine())
    *found = {true, mode, alpha, beta, gamma};
  return entry.end();
}

MIOPEN_ENTRY int miopenDestroyActivationDescriptor(Ref activation) {
  Entry entry("miopenDestroyActivationDescriptor");
  entry.need(state().activations.remove(activation), BadParm, "there is no such descriptor");
  return entry.end();
}

MIOPEN_ENTRY int miopenActivationForward(Ref handle, Ref activation, const void *alpha, Ref xDesc,
                                         const void *x, const void *beta, Ref yDesc, void *y) {
  Entry entry("miopenActivationForward");
  const Handle *with = entry.handle(handle);
  const Activation *found = entry.described(state().activations, activation, "the activation");
  const Tensor *source = entry.tensor(xDesc, "x"), *result = entry.tensor(yDesc, "y");
  entry.scales(alpha, beta);
  notBfloat(entry, source);
  sameShape(entry, source, result);
  if (!entry.isFine())
    return entry.end();
  entry.memory(*source, x, "x");
  entry.memory(*result, y, "y");
  entry.enqueue(*with, ranges({{"x", x, source->bytes()}, {"y", y, result->bytes()}}),
                [=, how = *found, desc = *source] { activate(how, desc, x, desc, y); });
  return entry.end();
}

#if DOUBLE_MAJOR >= 3
MIOPEN_ENTRY int miopenLayerNormForward(Ref handle, int mode, Ref xDesc, const void *x,
                                        Ref scaleDesc, const void *scale, Ref biasDesc,
                                        const void *bias, float epsilon, int32_t axis, Ref yDesc,
                                        void *y, Ref meanDesc, void *mean, Ref inverseDesc,
                                        void *inverse) {
  Entry entry("miopenLayerNormForward");
  const Handle *with = entry.handle(handle);
  const Tensor *source = entry.tensor(xDesc, "x"), *result = entry.tensor(yDesc, "y"),
               *scales = entry.tensor(scaleDesc, "scale"), *biases = entry.tensor(biasDesc, "bias"),
               *means = entry.tensor(meanDesc, "mean"),
               *inverses = entry.tensor(inverseDesc, "rstd");
  rowMajor(entry, source, "x");
  sameShape(entry, source, result);
  entry.need(mode == 1, NotImplemented, "mode {} is not computed here", mode);
  if (!entry.isFine())
    return entry.end();
  entry.need(axis >= 0 && axis <= static_cast<int>(source->dims.size()), BadParm,
             "the first normalised dimension is {}", axis);
  int64_t rows = 1;
  for (int i = 0; entry.isFine() && i < axis; ++i)
    rows *= source->dims[static_cast<size_t>(i)];
  entry.need(scales->elements() * rows == source->elements() &&
                 biases->elements() == scales->elements() && means->elements() == rows &&
                 inverses->elements() == rows,
             BadParm, "scale, bias, mean or rstd are of another size");
  for (const Tensor *each : {scales, biases, means, inverses})
    entry.need(each->type == source->type, BadParm, "the types differ");
  entry.memory(*source, x, "x");
  entry.memory(*result, y, "y");
  entry.memory(*scales, scale, "scale");
  entry.memory(*biases, bias, "bias");
  entry.enqueue(
      *with,
      ranges({{"x", x, source->bytes()},
              {"y", y, result->bytes()},
              {"scale", scale, scales->bytes()},
              {"bias", bias, biases->bytes()},
              {"mean", mean, mean ? means->bytes() : 0},
              {"rstd", inverse, inverse ? inverses->bytes() : 0}}),
      [=, desc = *source] { layerNorm(desc, x, scale, bias, axis, epsilon, y, mean, inverse); });
  return entry.end();
}
#endif
