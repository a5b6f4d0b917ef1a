// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "Truth.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>

namespace dovetail::truth {

int64_t Tensor::elements() const {
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  return count;
}

double Tensor::at(const std::vector<int64_t> &index) const {
  int64_t offset = 0;
  size_t lead = index.size() - extents.size();
  for (size_t i = 0; i < extents.size(); ++i)
    offset = offset * extents[i] + (extents[i] == 1 ? 0 : index[lead + i]);
  return data[size_t(offset)];
}

namespace {

using Index = std::vector<int64_t>;

void forEach(const Index &extents, const std::function<void(const Index &)> &body) {
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  Index index(extents.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    body(index);
    for (size_t d = extents.size(); d-- > 0;) {
      if (++index[d] < extents[d])
        break;
      index[d] = 0;
    }
  }
}

class Evaluator {
public:
  Evaluator(const Problem &problem) : problem(problem), values(problem.values.size()) {}

  void run(const ProblemOp &op) {
    Tensor out;
    for (const Extent &extent : problem.values[op.outputs[0]].extents)
      out.extents.push_back(extent.value());
    if (op.name == "mat_mul")
      matMul(op, out);
    else if (op.name == "gemm")
      gemm(op, out);
    else if (op.name == "conv")
      conv(op, out);
    else if (op.name == "conv_transpose")
      convTranspose(op, out);
    else if (op.name == "transpose")
      transpose(op, out);
    else if (op.name == "attention")
      attention(op, out);
    else
      elementwise(op, out);
    values[op.outputs[0]] = std::move(out);
  }

  const Problem &problem;
  std::vector<Tensor> values;

private:
  const Tensor &in(const ProblemOp &op, size_t i) const { return values[op.inputs[i]]; }
  bool has(const ProblemOp &op, size_t i) const {
    return i < op.inputs.size() && op.inputs[i] != kNoValue;
  }
  static int64_t integer(const ProblemOp &op, const char *name, int64_t otherwise) {
    auto found = op.attributes.find(name);
    return found == op.attributes.end() ? otherwise : std::get<int64_t>(found->second);
  }
  static double real(const ProblemOp &op, const char *name, double otherwise) {
    auto found = op.attributes.find(name);
    return found == op.attributes.end() ? otherwise : std::get<double>(found->second);
  }
  static Index integers(const ProblemOp &op, const char *name, Index otherwise) {
    auto found = op.attributes.find(name);
    return found == op.attributes.end() ? otherwise : std::get<Index>(found->second);
  }

  void matMul(const ProblemOp &op, Tensor &out) {
    Tensor a = in(op, 0), b = in(op, 1);
    bool aVector = a.extents.size() == 1, bVector = b.extents.size() == 1;
    if (aVector)
      a.extents.insert(a.extents.begin(), 1);
    if (bVector)
      b.extents.push_back(1);
    int64_t depth = a.extents.back();
    Index full = out.extents;
    if (bVector)
      full.push_back(1);
    if (aVector)
      full.insert(full.end() - 1, 1);
    forEach(full, [&](const Index &index) {
      Index ai = index, bi = index;
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        ai[ai.size() - 1] = k;
        bi[bi.size() - 2] = k;
        sum += a.at(ai) * b.at(bi);
      }
      out.data.push_back(sum);
    });
  }

  void gemm(const ProblemOp &op, Tensor &out) {
    const Tensor &a = in(op, 0), &b = in(op, 1);
    bool ta = integer(op, "transA", 0), tb = integer(op, "transB", 0);
    double alpha = real(op, "alpha", 1), beta = real(op, "beta", 1);
    int64_t depth = a.extents[!ta];
    forEach(out.extents, [&](const Index &i) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += (ta ? a.at({k, i[0]}) : a.at({i[0], k})) * (tb ? b.at({i[1], k}) : b.at({k, i[1]}));
      out.data.push_back(alpha * sum + (has(op, 2) ? beta * in(op, 2).at(i) : 0));
    });
  }

  void conv(const ProblemOp &op, Tensor &out) {
    const Tensor &x = in(op, 0), &w = in(op, 1);
    size_t spatial = x.extents.size() - 2;
    Index strides = integers(op, "strides", Index(spatial, 1)),
          dilations = integers(op, "dilations", Index(spatial, 1)),
          pads = integers(op, "pads", Index(2 * spatial, 0));
    int64_t group = integer(op, "group", 1), perGroup = w.extents[1],
            outPerGroup = w.extents[0] / group;
    Index window(w.extents.begin() + 1, w.extents.end());
    forEach(out.extents, [&](const Index &o) {
      double sum = has(op, 2) ? in(op, 2).data[size_t(o[1])] : 0;
      forEach(window, [&](const Index &k) {
        Index xi{o[0], o[1] / outPerGroup * perGroup + k[0]}, wi{o[1]};
        wi.insert(wi.end(), k.begin(), k.end());
        for (size_t d = 0; d < spatial; ++d) {
          int64_t at = o[d + 2] * strides[d] - pads[d] + k[d + 1] * dilations[d];
          if (at < 0 || at >= x.extents[d + 2])
            return;
          xi.push_back(at);
        }
        sum += x.at(xi) * w.at(wi);
      });
      out.data.push_back(sum);
    });
  }

  void convTranspose(const ProblemOp &op, Tensor &out) {
    const Tensor &x = in(op, 0), &w = in(op, 1);
    size_t spatial = x.extents.size() - 2;
    Index strides = integers(op, "strides", Index(spatial, 1)),
          dilations = integers(op, "dilations", Index(spatial, 1)),
          pads = integers(op, "pads", Index(2 * spatial, 0));
    int64_t group = integer(op, "group", 1), perGroup = x.extents[1] / group,
            outPerGroup = w.extents[1];
    out.data.assign(size_t(out.elements()), 0);
    auto offset = [&](const Index &o) {
      int64_t at = 0;
      for (size_t d = 0; d < o.size(); ++d)
        at = at * out.extents[d] + o[d];
      return size_t(at);
    };
    if (has(op, 2))
      forEach(out.extents,
              [&](const Index &o) { out.data[offset(o)] = in(op, 2).data[size_t(o[1])]; });
    Index window(w.extents.begin() + 1, w.extents.end());
    forEach(x.extents, [&](const Index &xi) {
      forEach(window, [&](const Index &k) {
        Index o{xi[0], xi[1] / perGroup * outPerGroup + k[0]}, wi{xi[1]};
        wi.insert(wi.end(), k.begin(), k.end());
        for (size_t d = 0; d < spatial; ++d) {
          int64_t at = xi[d + 2] * strides[d] - pads[d] + k[d + 1] * dilations[d];
          if (at < 0 || at >= out.extents[d + 2])
            return;
          o.push_back(at);
        }
        out.data[offset(o)] += x.at(xi) * w.at(wi);
      });
    });
  }

  /// Element (batch, head, position, channel) of an operand of rank 4, or of rank 3 with heads side
  /// by side.
  static double headAt(const Tensor &t, int64_t size, int64_t b, int64_t h, int64_t l, int64_t d) {
    return t.extents.size() == 4 ? t.at({b, h, l, d}) : t.at({b, l, h * size + d});
  }

  void attention(const ProblemOp &op, Tensor &out) {
    const Tensor &q = in(op, 0), &k = in(op, 1), &v = in(op, 2);
    bool packed = q.extents.size() == 3;
    int64_t heads = packed ? integer(op, "q_num_heads", 0) : q.extents[1];
    int64_t keyHeads = packed ? integer(op, "kv_num_heads", 0) : k.extents[1];
    int64_t size = packed ? q.extents[2] / heads : q.extents[3], keys = k.extents[packed ? 1 : 2];
    int64_t valueSize = packed ? v.extents[2] / keyHeads : v.extents[3];
    double scale = real(op, "scale", 1 / std::sqrt(double(size)));
    bool causal = integer(op, "is_causal", 0);
    bool isBoolean = has(op, 3) && problem.values[op.inputs[3]].type == DVT_BOOL;
    forEach(out.extents, [&](const Index &o) {
      int64_t b = o[0], h = packed ? o[2] / valueSize : o[1], i = packed ? o[1] : o[2];
      int64_t d = packed ? o[2] % valueSize : o[3];
      std::vector<double> scores;
      double largest = -INFINITY, sum = 0, result = 0;
      for (int64_t j = 0; j < keys; ++j) {
        double score = 0;
        for (int64_t c = 0; c < size; ++c)
          score += headAt(q, size, b, h, i, c) * headAt(k, size, b, h / (heads / keyHeads), j, c);
        score *= scale;
        if (has(op, 3)) {
          double mask = in(op, 3).at({b, h, i, j});
          score = isBoolean ? (mask != 0 ? score : -INFINITY) : score + mask;
        }
        if (causal && j > i)
          score = -INFINITY;
        scores.push_back(score);
        largest = std::max(largest, score);
      }
      for (int64_t j = 0; j < keys && largest > -INFINITY; ++j) {
        double weight = std::exp(scores[size_t(j)] - largest);
        sum += weight;
        result += weight * headAt(v, valueSize, b, h / (heads / keyHeads), j, d);
      }
      out.data.push_back(sum > 0 ? result / sum : 0);
    });
  }

  void transpose(const ProblemOp &op, Tensor &out) {
    const Tensor &x = in(op, 0);
    Index order = integers(op, "perm", {});
    forEach(out.extents, [&](const Index &o) {
      Index from(o.size());
      for (size_t i = 0; i < o.size(); ++i)
        from[size_t(order[i])] = o[i];
      out.data.push_back(x.at(from));
    });
  }

  void elementwise(const ProblemOp &op, Tensor &out) {
    auto function = [&](const Index &i) -> double {
      double x = in(op, 0).at(i), y = has(op, 1) ? in(op, 1).at(i) : 0;
      const std::string &name = op.name;
      if (name == "add")
        return x + y;
      if (name == "sub")
        return x - y;
      if (name == "mul")
        return x * y;
      if (name == "div")
        return x / y;
      if (name == "relu")
        return x > 0 ? x : 0;
      if (name == "sigmoid")
        return 1 / (1 + std::exp(-x));
      if (name == "tanh")
        return std::tanh(x);
      if (name == "gelu")
        return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
      if (name == "hard_swish")
        return x * std::min(1.0, std::max(0.0, x / 6 + 0.5));
      if (name == "clip")
        return std::min(std::max(x, y), in(op, 2).at(i));
      if (name == "where")
        return x != 0 ? y : in(op, 2).at(i);
      throw std::runtime_error("the truth knows no " + name);
    };
    forEach(out.extents, [&](const Index &i) { out.data.push_back(function(i)); });
  }
};

} // namespace

std::vector<Tensor> evaluate(const Problem &problem, const std::vector<Tensor> &inputs) {
  Evaluator evaluator(problem);
  for (size_t i = 0; i < inputs.size(); ++i)
    evaluator.values[problem.inputs[i]] = inputs[i];
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const ProblemValue &value = problem.values[v];
    if (!value.isLiteral && !value.uniform)
      continue;
    Tensor tensor;
    for (const Extent &extent : value.extents)
      tensor.extents.push_back(extent.value());
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      float number;
      std::memcpy(&number, value.literal.data() + (value.uniform ? 0 : 4 * i), 4);
      tensor.data.push_back(number);
    }
    evaluator.values[v] = std::move(tensor);
  }
  for (const ProblemOp &op : problem.ops)
    evaluator.run(op);
  return evaluator.values;
}

} // namespace dovetail::truth
