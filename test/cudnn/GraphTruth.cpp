// SPDX-License-Identifier: Apache-2.0
#include "GraphTruth.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

namespace dovetail::test {
namespace {

using cudnn::Dims;
using cudnn::Graph;
using cudnn::Operation;
using cudnn::PointwiseMode;
using cudnn::ReductionOperator;
using cudnn::ResampleMode;
using cudnn::Tensor;

void forEach(const Dims &dims, const std::function<void(const Dims &)> &visit) {
  Dims index(dims.size());
  while (true) {
    visit(index);
    size_t i = dims.size();
    while (i > 0 && ++index[i - 1] == dims[i - 1])
      index[--i] = 0;
    if (i == 0)
      return;
  }
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

double unary(const Operation &op, double x) {
  switch (op.pointwise) {
  case PointwiseMode::Abs:
    return std::abs(x);
  case PointwiseMode::Ceil:
    return std::ceil(x);
  case PointwiseMode::Elu:
    return x > 0 ? x : op.alpha.value_or(1) * std::expm1(x);
  case PointwiseMode::Erf:
    return std::erf(x);
  case PointwiseMode::Exp:
    return std::exp(x);
  case PointwiseMode::Floor:
    return std::floor(x);
  case PointwiseMode::Gelu:
    return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  case PointwiseMode::GeluTanh:
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  case PointwiseMode::Identity:
    return x;
  case PointwiseMode::Log:
    return std::log(x);
  case PointwiseMode::Neg:
    return -x;
  case PointwiseMode::Reciprocal:
    return 1 / x;
  case PointwiseMode::Relu: {
    const double low = op.lowerClip.value_or(0);
    const double bent = x < low ? low + op.slope.value_or(0) * (x - low) : x;
    return op.upperClip ? std::min(bent, *op.upperClip) : bent;
  }
  case PointwiseMode::Rsqrt:
    return 1 / std::sqrt(x);
  case PointwiseMode::Sigmoid:
    return logistic(x);
  case PointwiseMode::Softplus:
    return std::log1p(std::exp(x));
  case PointwiseMode::Sqrt:
    return std::sqrt(x);
  case PointwiseMode::Swish:
    return x * logistic(op.alpha.value_or(1) * x);
  case PointwiseMode::Tanh:
    return std::tanh(x);
  default:
    ADD_FAILURE() << "no such mode of one operand: " << static_cast<int>(op.pointwise);
    return 0;
  }
}

double binary(PointwiseMode mode, double x, double y) {
  switch (mode) {
  case PointwiseMode::Add:
    return x + y;
  case PointwiseMode::Div:
    return x / y;
  case PointwiseMode::Max:
    return std::max(x, y);
  case PointwiseMode::Min:
    return std::min(x, y);
  case PointwiseMode::Mul:
    return x * y;
  case PointwiseMode::Pow:
    return std::pow(x, y);
  case PointwiseMode::Sub:
    return x - y;
  default:
    ADD_FAILURE() << "no such mode of two operands: " << static_cast<int>(mode);
    return 0;
  }
}

class Runner {
public:
  Runner(const Graph &graph, Memory &memory) : graph(graph), memory(memory) {}

  void run() {
    for (const Operation &op : graph.operations) {
      switch (op.kind) {
      case Operation::Kind::Convolution:
        convolution(op);
        break;
      case Operation::Kind::Matmul:
        matmul(op);
        break;
      case Operation::Kind::Pointwise:
        forEach(tensor(op.result).dims, [&](const Dims &at) {
          const double x = read(op.operands[0], at);
          write(op.result, at,
                op.operands.size() > 1 ? binary(op.pointwise, x, read(op.operands[1], at))
                                       : unary(op, x));
        });
        break;
      case Operation::Kind::Reduction:
        reduction(op);
        break;
      case Operation::Kind::Resample:
        resample(op);
        break;
      case Operation::Kind::Norm:
        norm(op);
        break;
      case Operation::Kind::Attention:
        attention(op);
        break;
      }
    }
  }

private:
  const Tensor &tensor(size_t index) const { return graph.tensors[index]; }

  /// Its place in memory; dimensions of 1 are repeated.
  double &element(size_t index, const Dims &at) {
    const Tensor &t = tensor(index);
    size_t offset = 0, room = 1;
    for (size_t i = 0; i < t.dims.size(); ++i) {
      offset += t.dims[i] == 1 ? 0 : static_cast<size_t>(at[i] * t.strides[i]);
      room += static_cast<size_t>((t.dims[i] - 1) * t.strides[i]);
    }
    std::vector<double> &data = t.isVirtual() ? virtuals[index] : memory[t.value];
    if (t.isVirtual())
      data.resize(std::max(data.size(), room), std::nan(""));
    if (offset >= data.size()) {
      ADD_FAILURE() << "tensor " << index << " reaches beyond its memory";
      return nowhere;
    }
    return data[offset];
  }
  double read(size_t index, const Dims &at) {
    if (tensor(index).number)
      return static_cast<double>(*tensor(index).number);
    return element(index, at);
  }
  void write(size_t index, const Dims &at, double value) { element(index, at) = value; }

  void convolution(const Operation &op) {
    const Dims &x = tensor(op.operands[0]).dims, &w = tensor(op.operands[1]).dims,
               &y = tensor(op.result).dims;
    const int64_t groups = x[1] / w[1], outputs = w[0] / groups;
    forEach(y, [&](const Dims &at) {
      double sum = 0;
      forEach(Dims(w.begin() + 1, w.end()), [&](const Dims &k) {
        Dims from{at[0], at[1] / outputs * w[1] + k[0]}, weight{at[1], k[0]};
        bool inside = true;
        for (size_t i = 0; i < op.strides.size(); ++i) {
          const int64_t place =
              at[i + 2] * op.strides[i] + k[i + 1] * op.dilations[i] - op.prePads[i];
          inside &= place >= 0 && place < x[i + 2];
          from.push_back(place);
          weight.push_back(k[i + 1]);
        }
        if (inside)
          sum += read(op.operands[0], from) * read(op.operands[1], weight);
      });
      write(op.result, at, sum);
    });
  }

  void matmul(const Operation &op) {
    const Dims &a = tensor(op.operands[0]).dims;
    forEach(tensor(op.result).dims, [&](const Dims &at) {
      double sum = 0;
      Dims left = at, right = at;
      for (int64_t k = 0; k < a.back(); ++k) {
        left[at.size() - 1] = k;
        right[at.size() - 2] = k;
        sum += read(op.operands[0], left) * read(op.operands[1], right);
      }
      write(op.result, at, sum);
    });
  }

  void reduction(const Operation &op) {
    const Dims &x = tensor(op.operands[0]).dims, &y = tensor(op.result).dims;
    Dims window(x.size(), 1);
    double count = 1;
    for (size_t i = 0; i < x.size(); ++i)
      if (y[i] == 1) {
        window[i] = x[i];
        count *= static_cast<double>(x[i]);
      }
    forEach(y, [&](const Dims &at) {
      const ReductionOperator r = op.reduction;
      const double infinity = std::numeric_limits<double>::infinity();
      double value = r == ReductionOperator::Mul   ? 1
                     : r == ReductionOperator::Min ? infinity
                     : r == ReductionOperator::Max ? -infinity
                                                   : 0;
      forEach(window, [&](const Dims &step) {
        Dims from = at;
        for (size_t i = 0; i < from.size(); ++i)
          from[i] += step[i];
        const double element = read(op.operands[0], from);
        if (r == ReductionOperator::Mul)
          value *= element;
        else if (r == ReductionOperator::Min || r == ReductionOperator::Max)
          value = r == ReductionOperator::Min ? std::min(value, element) : std::max(value, element);
        else
          value += r == ReductionOperator::L1   ? std::abs(element)
                   : r == ReductionOperator::L2 ? element * element
                                                : element;
      });
      write(op.result, at,
            r == ReductionOperator::Mean ? value / count
            : r == ReductionOperator::L2 ? std::sqrt(value)
                                         : value);
    });
  }

  void resample(const Operation &op) {
    const Dims &x = tensor(op.operands[0]).dims;
    forEach(tensor(op.result).dims, [&](const Dims &at) {
      double largest = -std::numeric_limits<double>::infinity(), sum = 0, inside = 0, all = 0;
      forEach(op.window, [&](const Dims &k) {
        Dims from{at[0], at[1]};
        bool isInside = true;
        for (size_t i = 0; i < k.size(); ++i) {
          from.push_back(at[i + 2] * op.strides[i] + k[i] - op.prePads[i]);
          isInside &= from.back() >= 0 && from.back() < x[i + 2];
        }
        ++all;
        if (!isInside)
          return;
        const double element = read(op.operands[0], from);
        largest = std::max(largest, element);
        sum += element;
        ++inside;
      });
      write(op.result, at,
            op.resample == ResampleMode::Max               ? largest
            : op.resample == ResampleMode::MeanWithPadding ? sum / all
                                                           : sum / inside);
    });
  }

  void norm(const Operation &op) {
    const Dims &x = tensor(op.operands[0]).dims;
    const double count = static_cast<double>(x[1] * x[2] * x[3]),
                 epsilon = read(op.operands[3], {0, 0, 0, 0});
    for (int64_t row = 0; row < x[0]; ++row) {
      double mean = 0, squares = 0;
      const Dims one{1, x[1], x[2], x[3]};
      auto rowOf = [&](Dims at) {
        at[0] = row;
        return at;
      };
      if (op.norm == cudnn::NormMode::Layer)
        forEach(one, [&](const Dims &at) { mean += read(op.operands[0], rowOf(at)) / count; });
      forEach(one, [&](const Dims &at) {
        squares += std::pow(read(op.operands[0], rowOf(at)) - mean, 2) / count;
      });
      forEach(one, [&](const Dims &at) {
        const double normed =
            (read(op.operands[0], rowOf(at)) - mean) / std::sqrt(squares + epsilon);
        const double bias = op.operands[2] == Operation::kAbsent ? 0 : read(op.operands[2], at);
        write(op.result, rowOf(at), normed * read(op.operands[1], at) + bias);
      });
    }
  }

  void attention(const Operation &op) {
    const Dims &q = tensor(op.operands[0]).dims, &k = tensor(op.operands[1]).dims,
               &v = tensor(op.operands[2]).dims;
    const double scale = read(op.operands[3], Dims(4));
    forEach({q[0], q[1], q[2]}, [&](const Dims &at) {
      const int64_t head = at[1] / (q[1] / k[1]);
      std::vector<double> weights;
      double sum = 0;
      for (int64_t s = 0; s < k[2]; ++s) {
        double score = 0;
        for (int64_t d = 0; d < q[3]; ++d)
          score += read(op.operands[0], {at[0], at[1], at[2], d}) *
                   read(op.operands[1], {at[0], head, s, d});
        weights.push_back(std::exp(score * scale));
        sum += weights.back();
      }
      for (int64_t d = 0; d < v[3]; ++d) {
        double value = 0;
        for (int64_t s = 0; s < k[2]; ++s)
          value +=
              weights[static_cast<size_t>(s)] / sum * read(op.operands[2], {at[0], head, s, d});
        write(op.result, {at[0], at[1], at[2], d}, value);
      }
    });
  }

  const Graph &graph;
  Memory &memory;
  std::map<size_t, std::vector<double>> virtuals;
  double nowhere = 0;
};

} // namespace

void runGraph(const Graph &graph, Memory &memory) { Runner(graph, memory).run(); }

} // namespace dovetail::test
