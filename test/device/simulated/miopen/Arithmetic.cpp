// SPDX-License-Identifier: Apache-2.0
#include "Arithmetic.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../Elements.h"

namespace miopen_double {
namespace {

double load(const Tensor &tensor, const void *from, int64_t offset) {
  return simulated::loadElement(from, tensor.elementType(), static_cast<size_t>(offset));
}
void store(const Tensor &tensor, void *to, int64_t offset, double value) {
  simulated::storeElement(to, tensor.elementType(), static_cast<size_t>(offset), value);
}

/// Calls `visit(index)` for every index below `extents`.
template <typename Visit> void forEachIndex(const Dims &extents, Visit visit) {
  Dims index(extents.size(), 0);
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  for (int64_t done = 0; done < count; ++done) {
    visit(index);
    for (size_t i = extents.size(); i-- > 0;) {
      if (++index[i] < extents[i])
        break;
      index[i] = 0;
    }
  }
}

int64_t offsetOf(const Tensor &tensor, const Dims &index) {
  int64_t offset = 0;
  for (size_t i = 0; i < index.size(); ++i)
    offset += (tensor.dims[i] == 1 ? 0 : index[i]) * tensor.strides[i];
  return offset;
}

/// Where element `at` of a window behind result index `index` lies in the source; false beside it.
bool locate(const Dims &index, const Dims &at, const Dims &strides, const Dims &dilations,
            const Dims &pads, const Tensor &source, Dims &place) {
  for (size_t i = 0; i < at.size(); ++i) {
    place[i + 2] = index[i + 2] * strides[i] - pads[i] + at[i] * dilations[i];
    if (place[i + 2] < 0 || place[i + 2] >= source.dims[i + 2])
      return false;
  }
  return true;
}

} // namespace

void convolve(const Convolution &convolution, const Tensor &xDesc, const void *x,
              const Tensor &wDesc, const void *w, const Tensor &yDesc, void *y) {
  const Dims window(wDesc.dims.begin() + 2, wDesc.dims.end());
  const int64_t channels = wDesc.dims[1], perGroup = wDesc.dims[0] / convolution.groups;
  forEachIndex(yDesc.dims, [&](const Dims &index) {
    double sum = 0;
    Dims place(index), weight(index);
    place[0] = index[0];
    weight[0] = index[1];
    const int64_t first = index[1] / perGroup * channels;
    forEachIndex(window, [&](const Dims &at) {
      if (!locate(index, at, convolution.strides, convolution.dilations, convolution.pads, xDesc,
                  place))
        return;
      std::copy(at.begin(), at.end(), weight.begin() + 2);
      for (int64_t c = 0; c < channels; ++c) {
        place[1] = first + c;
        weight[1] = c;
        sum += load(xDesc, x, offsetOf(xDesc, place)) * load(wDesc, w, offsetOf(wDesc, weight));
      }
    });
    store(yDesc, y, offsetOf(yDesc, index), sum);
  });
}

void pool(const Pool &pool, const Tensor &xDesc, const void *x, const Tensor &yDesc, void *y) {
  constexpr int kMax = 0, kInclusive = 2;
  const Dims ones(pool.window.size(), 1);
  forEachIndex(yDesc.dims, [&](const Dims &index) {
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    int64_t seen = 0, all = 1;
    for (int64_t extent : pool.window)
      all *= extent;
    Dims place(index);
    forEachIndex(pool.window, [&](const Dims &at) {
      if (!locate(index, at, pool.strides, ones, pool.pads, xDesc, place))
        return;
      const double value = load(xDesc, x, offsetOf(xDesc, place));
      most = std::max(most, value);
      sum += value;
      ++seen;
    });
    const auto divisor = static_cast<double>(pool.mode == kInclusive ? all : seen);
    store(yDesc, y, offsetOf(yDesc, index), pool.mode == kMax ? most : sum / divisor);
  });
}

void softmax(bool logarithm, const Tensor &desc, const void *x, void *y) {
  Dims others = desc.dims;
  others[1] = 1;
  forEachIndex(others, [&](const Dims &index) {
    const int64_t start = offsetOf(desc, index) - index[1] * desc.strides[1];
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t c = 0; c < desc.dims[1]; ++c)
      most = std::max(most, load(desc, x, start + c * desc.strides[1]));
    for (int64_t c = 0; c < desc.dims[1]; ++c)
      sum += std::exp(load(desc, x, start + c * desc.strides[1]) - most);
    for (int64_t c = 0; c < desc.dims[1]; ++c) {
      const double shifted = load(desc, x, start + c * desc.strides[1]) - most;
      store(desc, y, start + c * desc.strides[1],
            logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum);
    }
  });
}

void add(const Tensor &aDesc, const void *a, const Tensor &bDesc, const void *b,
         const Tensor &cDesc, void *c) {
  forEachIndex(cDesc.dims, [&](const Dims &index) {
    store(cDesc, c, offsetOf(cDesc, index),
          load(aDesc, a, offsetOf(aDesc, index)) + load(bDesc, b, offsetOf(bDesc, index)));
  });
}

namespace {

double activated(const Activation &a, double x) {
  switch (a.mode) {
  case 1:
    return 1 / (1 + std::exp(-x));
  case 2:
    return a.beta * std::tanh(a.alpha * x);
  case 3:
    return std::max(0.0, x);
  case 4:
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  case 5:
    return std::abs(x);
  case 6:
    return std::pow(a.alpha + a.beta * x, a.gamma);
  case 7:
    return std::min(a.alpha, std::max(0.0, x));
  case 8:
    return x > 0 ? x : a.alpha * x;
  case 9:
    return x > 0 ? x : a.alpha * std::expm1(x);
  default:
    return x;
  }
}

} // namespace

void activate(const Activation &activation, const Tensor &xDesc, const void *x, const Tensor &yDesc,
              void *y) {
  forEachIndex(yDesc.dims, [&](const Dims &index) {
    store(yDesc, y, offsetOf(yDesc, index),
          activated(activation, load(xDesc, x, offsetOf(xDesc, index))));
  });
}

void batchNorm(const Tensor &xDesc, const void *x, const Tensor &vectorDesc,
               const BatchNormVectors &vectors, double epsilon, const Tensor &yDesc, void *y) {
  forEachIndex(yDesc.dims, [&](const Dims &index) {
    auto number = [&](const void *vector) { return load(vectorDesc, vector, index[1]); };
    const double centred = load(xDesc, x, offsetOf(xDesc, index)) - number(vectors.mean);
    store(yDesc, y, offsetOf(yDesc, index),
          number(vectors.scale) * centred / std::sqrt(number(vectors.variance) + epsilon) +
              number(vectors.bias));
  });
}

void layerNorm(const Tensor &xDesc, const void *x, const void *scale, const void *bias, int axis,
               double epsilon, void *y, void *mean, void *inverse) {
  int64_t columns = 1;
  for (size_t i = static_cast<size_t>(axis); i < xDesc.dims.size(); ++i)
    columns *= xDesc.dims[i];
  for (int64_t row = 0; row < xDesc.elements() / columns; ++row) {
    auto value = [&](int64_t i) { return load(xDesc, x, row * columns + i); };
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < columns; ++i)
      sum += value(i);
    const double middle = sum / static_cast<double>(columns);
    for (int64_t i = 0; i < columns; ++i)
      squares += (value(i) - middle) * (value(i) - middle);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(columns) + epsilon);
    for (int64_t i = 0; i < columns; ++i)
      store(xDesc, y, row * columns + i,
            (value(i) - middle) * factor * load(xDesc, scale, i) + load(xDesc, bias, i));
    if (mean)
      store(xDesc, mean, row, middle);
    if (inverse)
      store(xDesc, inverse, row, factor);
  }
}

} // namespace miopen_double
