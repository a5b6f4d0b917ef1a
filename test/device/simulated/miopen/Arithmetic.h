// SPDX-License-Identifier: Apache-2.0
//
// What the double computes: plain loops over what the descriptors say, in f64.
#pragma once

#include "Objects.h"

namespace miopen_double {

void convolve(const Convolution &convolution, const Tensor &xDesc, const void *x,
              const Tensor &wDesc, const void *w, const Tensor &yDesc, void *y);
void pool(const Pool &pool, const Tensor &xDesc, const void *x, const Tensor &yDesc, void *y);
/// Over the second dimension.
void softmax(bool logarithm, const Tensor &desc, const void *x, void *y);
/// c[i] = a[i] + b[i], b repeated where it has extents of 1; a and c are of one shape.
void add(const Tensor &aDesc, const void *a, const Tensor &bDesc, const void *b,
         const Tensor &cDesc, void *c);
void activate(const Activation &activation, const Tensor &xDesc, const void *x, const Tensor &yDesc,
              void *y);

struct BatchNormVectors {
  const void *scale, *bias, *mean, *variance;
};
/// The vectors go by the second dimension.
void batchNorm(const Tensor &xDesc, const void *x, const Tensor &vectorDesc,
               const BatchNormVectors &vectors, double epsilon, const Tensor &yDesc, void *y);
/// Rows from dimension `axis` on; `mean` and `inverse` (of the deviation) get a number for each.
void layerNorm(const Tensor &xDesc, const void *x, const void *scale, const void *bias, int axis,
               double epsilon, void *y, void *mean, void *inverse);

} // namespace miopen_double
