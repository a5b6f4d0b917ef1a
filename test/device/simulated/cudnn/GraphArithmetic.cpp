// SPDX-License-Identifier: Apache-2.0
//
// An operation reads its operands whole, as rows of f64 in row-major order, and gives its result
// so; only then do strides count.
#include "GraphArithmetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "../Elements.h"
#include "ElementTypes.h"

namespace cudnn_double {
namespace {

using api::Dims;
using api::Operation;
using api::ReductionOperator;
using Values = std::vector<double>; ///< of a tensor, row-major
using dovetail::providers::product;

size_t at(int64_t index) { return static_cast<size_t>(index); }

/// Calls visit(offsets) for every index below `extents`, with an offset for each set of strides.
template <size_t Count, typename Visit>
void walk(const Dims &extents, const std::array<Dims, Count> &strides, Visit visit) {
  Dims index(extents.size(), 0);
  std::array<int64_t, Count> offsets{};
  for (int64_t left = product(extents); left > 0; --left) {
    visit(offsets);
    for (size_t i = extents.size(); i-- > 0;) {
      const bool wraps = ++index[i] == extents[i];
      for (size_t k = 0; k < Count; ++k)
        offsets[k] += strides[k][i] * (wraps ? 1 - extents[i] : 1);
      if (!wraps)
        break;
      index[i] = 0;
    }
  }
}

/// Row-major strides, 0 where a dimension of 1 is repeated.
Dims repeating(const Dims &dims) {
  Dims strides = dovetail::providers::denseStrides(dims);
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] == 1)
      strides[i] = 0;
  return strides;
}

/// One to three spatial dimensions as three.
struct Window {
  std::array<int64_t, 3> source{1, 1, 1}, window{1, 1, 1}, result{1, 1, 1}, strides{1, 1, 1},
      dilations{1, 1, 1}, pads{0, 0, 0};

  Window(const Operation &op, const Dims &x, const Dims &w, const Dims &y) {
    const size_t spatial = w.size(), first = 3 - spatial;
    for (size_t i = 0; i < spatial; ++i) {
      source[first + i] = x[i + 2];
      window[first + i] = w[i];
      result[first + i] = y[i + 2];
      strides[first + i] = op.strides[i];
      dilations[first + i] = op.dilations.empty() ? 1 : op.dilations[i];
      pads[first + i] = op.prePads[i];
    }
  }
  static int64_t volume(const std::array<int64_t, 3> &extents) {
    return extents[0] * extents[1] * extents[2];
  }
  /// Calls visit(place in the window, offset in the result, offset in the source) for all pairs
  /// inside the source.
  template <typename Visit> void forEachPair(Visit visit) const {
    int64_t place = 0;
    for (int64_t kz = 0; kz < window[0]; ++kz)
      for (int64_t ky = 0; ky < window[1]; ++ky)
        for (int64_t kx = 0; kx < window[2]; ++kx, ++place)
          for (int64_t z = 0; z < result[0]; ++z)
            for (int64_t y = 0; y < result[1]; ++y) {
              const int64_t fromZ = z * strides[0] + kz * dilations[0] - pads[0],
                            fromY = y * strides[1] + ky * dilations[1] - pads[1];
              if (fromZ < 0 || fromZ >= source[0] || fromY < 0 || fromY >= source[1])
                continue;
              for (int64_t x = 0; x < result[2]; ++x) {
                const int64_t fromX = x * strides[2] + kx * dilations[2] - pads[2];
                if (fromX >= 0 && fromX < source[2])
                  visit(place, (z * result[1] + y) * result[2] + x,
                        (fromZ * source[1] + fromY) * source[2] + fromX);
              }
            }
  }
};

class Runner {
public:
  Runner(const api::Graph &graph, GraphMemory &memory, const Rounding &rounding)
      : graph(graph), memory(memory), rounding(rounding) {}

  std::string run() {
    for (const Operation &op : graph.operations) {
      Values result = compute(op);
      if (!failure.empty())
        return failure;
      keep(op.result, std::move(result));
    }
    return {};
  }

private:
  const Dims &dims(size_t tensor) const { return graph.tensors[tensor].dims; }

  Values read(size_t index) {
    const api::Tensor &tensor = graph.tensors[index];
    if (tensor.number)
      return {static_cast<double>(*tensor.number)};
    if (tensor.isVirtual()) {
      const auto found = temporaries.find(index);
      if (found != temporaries.end())
        return found->second;
      failure = "tensor " + std::to_string(index) + " is read before anything gave it";
      return Values(at(product(tensor.dims)));
    }
    Values values;
    values.reserve(at(product(tensor.dims)));
    walk<1>(tensor.dims, {tensor.strides},
            [&](const auto &offsets) { values.push_back(memory.load(index, offsets[0])); });
    return values;
  }
  /// An operand of a product or convolution.
  Values readFactor(size_t index) {
    Values values = read(index);
    if (rounding.operandsToTf32 && graph.tensors[index].type == api::DataType::Float)
      for (double &value : values)
        value = simulated::roundedToTf32(value);
    return values;
  }
  void keep(size_t index, Values values) {
    const api::Tensor &tensor = graph.tensors[index];
    if (tensor.isVirtual()) {
      if (rounding.temporariesToType)
        for (double &value : values)
          value = simulated::roundedElement(elementType(tensor.type), value);
      temporaries[index] = std::move(values);
      return;
    }
    size_t next = 0;
    walk<1>(tensor.dims, {tensor.strides},
            [&](const auto &offsets) { memory.store(index, offsets[0], values[next++]); });
  }

  Values compute(const Operation &op) {
    switch (op.kind) {
    case Operation::Kind::Convolution:
      return convolution(op);
    case Operation::Kind::Matmul:
      return matmul(op);
    case Operation::Kind::Pointwise:
      return pointwise(op);
    case Operation::Kind::Reduction:
      return reduction(op);
    case Operation::Kind::Resample:
      return resample(op);
    case Operation::Kind::Norm:
      return norm(op);
    case Operation::Kind::Attention:
      return attention(op);
    }
    return {};
  }

  Values convolution(const Operation &op) {
    const Dims &xDims = dims(op.operands[0]), &wDims = dims(op.operands[1]),
               &yDims = dims(op.result);
    const Values x = readFactor(op.operands[0]), w = readFactor(op.operands[1]);
    const Window window(op, xDims, Dims(wDims.begin() + 2, wDims.end()), yDims);
    const int64_t image = Window::volume(window.source), plane = Window::volume(window.result),
                  taps = Window::volume(window.window), channels = wDims[1],
                  perGroup = wDims[0] / (xDims[1] / channels);
    Values y(at(product(yDims)), 0);
    for (int64_t n = 0; n < yDims[0]; ++n)
      for (int64_t out = 0; out < yDims[1]; ++out)
        for (int64_t c = 0; c < channels; ++c) {
          const double *weights = &w[at((out * channels + c) * taps)];
          const double *from = &x[at((n * xDims[1] + out / perGroup * channels + c) * image)];
          double *to = &y[at((n * yDims[1] + out) * plane)];
          window.forEachPair([&](int64_t tap, int64_t result, int64_t source) {
            to[result] += weights[tap] * from[source];
          });
        }
    return y;
  }

  Values matmul(const Operation &op) {
    const Dims &a = dims(op.operands[0]), &b = dims(op.operands[1]), &c = dims(op.result);
    const Values left = readFactor(op.operands[0]), right = readFactor(op.operands[1]);
    const size_t rank = c.size();
    const int64_t rows = c[rank - 2], columns = c[rank - 1], depth = a[rank - 1];
    Dims strides[2] = {repeating(a), repeating(b)}, batch(c.begin(), c.end() - 2);
    for (Dims &each : strides)
      each.resize(rank - 2);
    Values result(at(product(c)), 0);
    double *to = result.data();
    walk<2>(batch, {strides[0], strides[1]}, [&](const auto &offsets) {
      for (int64_t m = 0; m < rows; ++m)
        for (int64_t k = 0; k < depth; ++k) {
          const double factor = left[at(offsets[0] + m * depth + k)];
          for (int64_t n = 0; n < columns; ++n)
            to[m * columns + n] += factor * right[at(offsets[1] + k * columns + n)];
        }
      to += rows * columns;
    });
    return result;
  }

  Values pointwise(const Operation &op) {
    const Dims &y = dims(op.result);
    const Values first = read(op.operands[0]);
    const bool isBinary = op.operands.size() > 1;
    const Values second = isBinary ? read(op.operands[1]) : Values{0};
    Values result;
    result.reserve(at(product(y)));
    walk<2>(y,
            {repeating(dims(op.operands[0])),
             isBinary ? repeating(dims(op.operands[1])) : Dims(y.size(), 0)},
            [&](const auto &offsets) {
              const double x = first[at(offsets[0])];
              const std::optional<double> value =
                  isBinary ? applyBinary(op.pointwise, x, second[at(offsets[1])])
                           : applyUnary(op, x);
              if (!value)
                failure = "element-wise mode " + std::to_string(static_cast<int>(op.pointwise)) +
                          " does not take " + (isBinary ? "two operands" : "one operand");
              result.push_back(value.value_or(0));
            });
    return result;
  }

  static double joined(ReductionOperator reduction, double sum, double element) {
    switch (reduction) {
    case ReductionOperator::Mul:
      return sum * element;
    case ReductionOperator::Min:
      return std::min(sum, element);
    case ReductionOperator::Max:
      return std::max(sum, element);
    case ReductionOperator::L1:
      return sum + std::abs(element);
    case ReductionOperator::L2:
      return sum + element * element;
    default:
      return sum + element;
    }
  }

  Values reduction(const Operation &op) {
    const Dims &x = dims(op.operands[0]), &y = dims(op.result);
    const Values from = read(op.operands[0]);
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const ReductionOperator by = op.reduction;
    Values result(at(product(y)), by == ReductionOperator::Mul   ? 1
                                  : by == ReductionOperator::Min ? kInfinity
                                  : by == ReductionOperator::Max ? -kInfinity
                                                                 : 0);
    walk<2>(x, {dovetail::providers::denseStrides(x), repeating(y)}, [&](const auto &offsets) {
      double &sum = result[at(offsets[1])];
      sum = joined(by, sum, from[at(offsets[0])]);
    });
    const double count = static_cast<double>(product(x)) / static_cast<double>(product(y));
    for (double &value : result)
      value = by == ReductionOperator::Mean ? value / count
              : by == ReductionOperator::L2 ? std::sqrt(value)
                                            : value;
    return result;
  }

  Values resample(const Operation &op) {
    const Dims &xDims = dims(op.operands[0]), &yDims = dims(op.result);
    const Values x = read(op.operands[0]);
    const Window window(op, xDims, op.window, yDims);
    const int64_t image = Window::volume(window.source), plane = Window::volume(window.result);
    const bool isMax = op.resample == api::ResampleMode::Max;
    Values y(at(product(yDims)), isMax ? -std::numeric_limits<double>::infinity() : 0);
    Values counts(at(plane), 0);
    window.forEachPair([&](int64_t, int64_t result, int64_t) { ++counts[at(result)]; });
    if (op.resample == api::ResampleMode::MeanWithPadding)
      counts.assign(counts.size(), static_cast<double>(Window::volume(window.window)));
    for (int64_t channel = 0; channel < yDims[0] * yDims[1]; ++channel) {
      const double *from = &x[at(channel * image)];
      double *to = &y[at(channel * plane)];
      window.forEachPair([&](int64_t, int64_t result, int64_t source) {
        to[result] = isMax ? std::max(to[result], from[source]) : to[result] + from[source];
      });
      for (int64_t i = 0; !isMax && i < plane; ++i)
        to[i] /= counts[at(i)];
    }
    return y;
  }

  /// Of everything behind the first dimension.
  Values norm(const Operation &op) {
    const Dims &x = dims(op.operands[0]);
    const Values from = read(op.operands[0]), scale = read(op.operands[1]);
    const bool hasBias = op.operands[2] != Operation::kAbsent;
    const Values bias = hasBias ? read(op.operands[2]) : Values{0};
    const double epsilon = read(op.operands[3])[0];
    const Dims row(x.begin() + 1, x.end());
    auto inRow = [&](size_t tensor) {
      const Dims strides = repeating(dims(tensor));
      return Dims(strides.begin() + 1, strides.end());
    };
    const std::array<Dims, 3> strides{dovetail::providers::denseStrides(row), inRow(op.operands[1]),
                                      hasBias ? inRow(op.operands[2]) : Dims(row.size(), 0)};
    const int64_t count = product(row);
    Values result(from.size());
    for (int64_t n = 0; n < x[0]; ++n) {
      const double *values = &from[at(n * count)];
      double mean = 0, squares = 0;
      for (int64_t i = 0; op.norm == api::NormMode::Layer && i < count; ++i)
        mean += values[i] / static_cast<double>(count);
      for (int64_t i = 0; i < count; ++i)
        squares += (values[i] - mean) * (values[i] - mean) / static_cast<double>(count);
      walk<3>(row, strides, [&](const auto &offsets) {
        result[at(n * count + offsets[0])] =
            (values[offsets[0]] - mean) / std::sqrt(squares + epsilon) * scale[at(offsets[1])] +
            bias[at(offsets[2])];
      });
    }
    return result;
  }

  Values attention(const Operation &op) {
    const Dims &q = dims(op.operands[0]), &k = dims(op.operands[1]), &v = dims(op.operands[2]);
    const Values queries = readFactor(op.operands[0]), keys = readFactor(op.operands[1]),
                 values = readFactor(op.operands[2]);
    const double scale = read(op.operands[3])[0];
    Values result;
    for (int64_t row = 0; row < q[0] * q[1] * q[2]; ++row) {
      const int64_t head = row / q[2] % q[1] / (q[1] / k[1]), batch = row / q[2] / q[1],
                    first = (batch * k[1] + head) * k[2];
      Values weights;
      for (int64_t s = 0; s < k[2]; ++s) {
        double score = 0;
        for (int64_t d = 0; d < q[3]; ++d)
          score += queries[at(row * q[3] + d)] * keys[at((first + s) * q[3] + d)];
        weights.push_back(score * scale);
      }
      const double most = *std::max_element(weights.begin(), weights.end());
      double sum = 0;
      for (double &weight : weights)
        sum += weight = std::exp(weight - most);
      for (int64_t d = 0; d < v[3]; ++d) {
        double value = 0;
        for (int64_t s = 0; s < k[2]; ++s)
          value += weights[at(s)] / sum * values[at((first + s) * v[3] + d)];
        result.push_back(value);
      }
    }
    return result;
  }

  const api::Graph &graph;
  GraphMemory &memory;
  const Rounding rounding;
  std::map<size_t, Values> temporaries;
  std::string failure;
};

} // namespace

std::string runGraph(const api::Graph &graph, GraphMemory &memory, const Rounding &rounding) {
  return Runner(graph, memory, rounding).run();
}

} // namespace cudnn_double
