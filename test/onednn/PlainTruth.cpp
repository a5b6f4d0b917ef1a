// SPDX-License-Identifier: Apache-2.0
//
// Plain loops for the ops that library providers serve. Slow and short on purpose.
#include "PlainTruth.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>

namespace dovetail::test {
namespace {

using Index = std::vector<int64_t>;

int64_t count(const Index &dims) {
  int64_t n = 1;
  for (int64_t d : dims)
    n *= d;
  return n;
}

int64_t offset(const Index &dims, const Index &index) {
  int64_t at = 0;
  for (size_t i = 0; i < dims.size(); ++i)
    at = at * dims[i] + index[i];
  return at;
}

/// Calls f for every index of `dims` in row-major order.
template <typename F> void each(const Index &dims, F &&f) {
  Index index(dims.size(), 0);
  for (int64_t n = count(dims); n-- > 0;) {
    f(static_cast<const Index &>(index));
    for (size_t i = dims.size(); i-- > 0;) {
      if (++index[i] < dims[i])
        break;
      index[i] = 0;
    }
  }
}

/// Element of `t` where `index` broadcasts to it from the right.
double broadcastAt(const PlainTensor &t, const Index &index) {
  Index own(t.dims.size());
  for (size_t i = 0; i < own.size(); ++i)
    own[i] = t.dims[i] == 1 ? 0 : index[index.size() - own.size() + i];
  return t.data[static_cast<size_t>(offset(t.dims, own))];
}

class Evaluator {
public:
  explicit Evaluator(const Problem &problem) : problem(problem) {}

  std::map<uint32_t, PlainTensor> values;

  void run(const ProblemOp &op) {
    PlainTensor &out = values[op.outputs[0]];
    for (const Extent &extent : problem.values[op.outputs[0]].extents)
      out.dims.push_back(extent.value());
    out.data.assign(static_cast<size_t>(count(out.dims)), 0);
    const std::string &n = op.name;
    if (n == "conv" || n == "conv_transpose")
      convolution(op, out, n == "conv_transpose");
    else if (n == "mat_mul")
      matMul(in(op, 0), in(op, 1), out);
    else if (n == "gemm")
      gemm(op, out);
    else if (n.find("pool") != std::string::npos)
      pool(op, out);
    else if (n == "softmax" || n == "log_softmax")
      softmax(op, out);
    else if (n == "layer_normalization")
      layerNorm(op, out);
    else if (n == "batch_normalization" || n == "instance_normalization")
      batchNorm(op, out);
    else if (n.rfind("reduce_", 0) == 0)
      reduce(op, out);
    else if (n == "transpose")
      transpose(op, out);
    else if (n == "concat")
      concat(op, out);
    else if (n == "resize")
      resize(op, out);
    else if (n == "attention")
      attention(op, out);
    else if (n == "reshape" || n == "flatten" || n == "squeeze" || n == "unsqueeze" ||
             n == "identity" || n == "dvt_reorder")
      out.data = in(op, 0).data;
    else
      pointwise(op, out);
  }

private:
  const PlainTensor &in(const ProblemOp &op, size_t i) { return values.at(op.inputs[i]); }
  static bool has(const ProblemOp &op, size_t i) {
    return i < op.inputs.size() && op.inputs[i] != kNoValue;
  }
  static double number(const ProblemOp &op, const char *name, double otherwise) {
    auto found = op.attributes.find(name);
    if (found == op.attributes.end())
      return otherwise;
    if (auto *i = std::get_if<int64_t>(&found->second))
      return static_cast<double>(*i);
    return std::get<double>(found->second);
  }
  static int64_t integer(const ProblemOp &op, const char *name, int64_t otherwise) {
    return static_cast<int64_t>(number(op, name, static_cast<double>(otherwise)));
  }
  static std::string text(const ProblemOp &op, const char *name, const char *otherwise) {
    auto found = op.attributes.find(name);
    return found == op.attributes.end() ? otherwise : std::get<std::string>(found->second);
  }
  static Index list(const ProblemOp &op, const char *name, Index otherwise) {
    auto found = op.attributes.find(name);
    return found == op.attributes.end() ? otherwise : std::get<std::vector<int64_t>>(found->second);
  }

  void convolution(const ProblemOp &op, PlainTensor &out, bool transposed) {
    const PlainTensor &x = in(op, 0), &w = in(op, 1);
    const size_t s = x.dims.size() - 2;
    Index strides = list(op, "strides", Index(s, 1)), dil = list(op, "dilations", Index(s, 1)),
          pads = list(op, "pads", Index(2 * s, 0)), kernel(w.dims.begin() + 2, w.dims.end());
    const int64_t group = integer(op, "group", 1), outPer = out.dims[1] / group,
                  inPer = x.dims[1] / group;
    if (has(op, 2))
      each(out.dims, [&](const Index &o) {
        out.data[static_cast<size_t>(offset(out.dims, o))] =
            in(op, 2).data[static_cast<size_t>(o[1])];
      });
    // For a convolution every output place gathers, for a transposed one every input place
    // scatters.
    const Index &from = transposed ? x.dims : out.dims, &to = transposed ? out.dims : x.dims;
    each(from, [&](const Index &p) {
      each(kernel, [&](const Index &k) {
        Index q(p.size());
        q[0] = p[0];
        for (size_t i = 0; i < s; ++i) {
          q[i + 2] = p[i + 2] * strides[i] + k[i] * dil[i] - pads[i];
          if (q[i + 2] < 0 || q[i + 2] >= to[i + 2])
            return;
        }
        const int64_t g = p[1] / (transposed ? inPer : outPer);
        for (int64_t c = 0; c < (transposed ? outPer : inPer); ++c) {
          q[1] = g * (transposed ? outPer : inPer) + c;
          Index wi{p[1], c};
          wi.insert(wi.end(), k.begin(), k.end());
          const double weight = w.data[static_cast<size_t>(offset(w.dims, wi))];
          const Index &xi = transposed ? p : q, &oi = transposed ? q : p;
          out.data[static_cast<size_t>(offset(out.dims, oi))] +=
              weight * x.data[static_cast<size_t>(offset(x.dims, xi))];
        }
      });
    });
  }

  static void matMul(PlainTensor a, PlainTensor b, PlainTensor &out) {
    Index full = out.dims;
    if (a.dims.size() == 1 && b.dims.size() == 1)
      full = {1, 1};
    else if (a.dims.size() == 1)
      full.insert(full.end() - 1, 1);
    else if (b.dims.size() == 1)
      full.push_back(1);
    if (a.dims.size() == 1)
      a.dims.insert(a.dims.begin(), 1);
    if (b.dims.size() == 1)
      b.dims.push_back(1);
    const int64_t depth = a.dims.back();
    size_t at = 0;
    each(full, [&](const Index &o) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        Index ai = o, bi = o;
        ai.back() = k;
        bi[bi.size() - 2] = k;
        sum += broadcastAt(a, ai) * broadcastAt(b, bi);
      }
      out.data[at++] = sum;
    });
  }

  static PlainTensor swapped(const PlainTensor &t) {
    PlainTensor r{t.dims, std::vector<double>(t.data.size())};
    std::swap(r.dims[r.dims.size() - 1], r.dims[r.dims.size() - 2]);
    each(r.dims, [&](const Index &i) {
      Index j = i;
      std::swap(j[j.size() - 1], j[j.size() - 2]);
      r.data[static_cast<size_t>(offset(r.dims, i))] =
          t.data[static_cast<size_t>(offset(t.dims, j))];
    });
    return r;
  }

  void gemm(const ProblemOp &op, PlainTensor &out) {
    matMul(integer(op, "transA", 0) ? swapped(in(op, 0)) : in(op, 0),
           integer(op, "transB", 0) ? swapped(in(op, 1)) : in(op, 1), out);
    size_t at = 0;
    each(out.dims, [&](const Index &i) {
      out.data[at] = number(op, "alpha", 1) * out.data[at] +
                     (has(op, 2) ? number(op, "beta", 1) * broadcastAt(in(op, 2), i) : 0);
      ++at;
    });
  }

  void pool(const ProblemOp &op, PlainTensor &out) {
    const PlainTensor &x = in(op, 0);
    const size_t s = x.dims.size() - 2;
    const bool global = op.name.rfind("global", 0) == 0,
               average = op.name.find("average") != std::string::npos;
    Index spatial(x.dims.begin() + 2, x.dims.end()),
        kernel = global ? spatial : list(op, "kernel_shape", {}),
        strides = list(op, "strides", Index(s, 1)), dil = list(op, "dilations", Index(s, 1)),
        pads = list(op, "pads", Index(2 * s, 0));
    each(out.dims, [&](const Index &o) {
      double sum = 0, most = -std::numeric_limits<double>::infinity();
      int64_t seen = 0;
      each(kernel, [&](const Index &k) {
        Index q = o;
        for (size_t i = 0; i < s; ++i) {
          q[i + 2] = o[i + 2] * strides[i] + k[i] * dil[i] - pads[i];
          if (q[i + 2] < 0 || q[i + 2] >= x.dims[i + 2])
            return;
        }
        const double v = x.data[static_cast<size_t>(offset(x.dims, q))];
        sum += v;
        most = std::max(most, v);
        ++seen;
      });
      const int64_t divisor = integer(op, "count_include_pad", 0) ? count(kernel) : seen;
      out.data[static_cast<size_t>(offset(out.dims, o))] =
          average ? sum / static_cast<double>(divisor) : most;
    });
  }

  void softmax(const ProblemOp &op, PlainTensor &out) {
    const PlainTensor &x = in(op, 0);
    const int64_t rank = static_cast<int64_t>(x.dims.size());
    int64_t axis = integer(op, "axis", op.version < 13 ? 1 : -1);
    axis += axis < 0 ? rank : 0;
    Index dims = x.dims;
    if (op.version < 13)
      dims = {count(Index(dims.begin(), dims.begin() + axis)),
              count(Index(dims.begin() + axis, dims.end()))},
      axis = 1;
    each(dims, [&](const Index &o) {
      double most = -1e300, sum = 0;
      Index q = o;
      for (q[axis] = 0; q[axis] < dims[axis]; ++q[axis])
        most = std::max(most, x.data[static_cast<size_t>(offset(dims, q))]);
      for (q[axis] = 0; q[axis] < dims[axis]; ++q[axis])
        sum += std::exp(x.data[static_cast<size_t>(offset(dims, q))] - most);
      const size_t at = static_cast<size_t>(offset(dims, o));
      out.data[at] = op.name == "softmax" ? std::exp(x.data[at] - most) / sum
                                          : x.data[at] - most - std::log(sum);
    });
  }

  /// (x - mean) / sqrt(variance + epsilon) over `inner` elements after each other.
  static void normalizeRow(const double *x, double *y, int64_t inner, double epsilon) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < inner; ++i)
      mean += x[i] / static_cast<double>(inner);
    for (int64_t i = 0; i < inner; ++i)
      variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(inner);
    for (int64_t i = 0; i < inner; ++i)
      y[i] = (x[i] - mean) / std::sqrt(variance + epsilon);
  }

  void layerNorm(const ProblemOp &op, PlainTensor &out) {
    const PlainTensor &x = in(op, 0);
    int64_t axis = integer(op, "axis", -1);
    axis += axis < 0 ? static_cast<int64_t>(x.dims.size()) : 0;
    const int64_t inner = count(Index(x.dims.begin() + axis, x.dims.end()));
    for (int64_t row = 0; row < count(x.dims) / inner; ++row)
      normalizeRow(&x.data[static_cast<size_t>(row * inner)],
                   &out.data[static_cast<size_t>(row * inner)], inner, number(op, "epsilon", 1e-5));
    each(out.dims, [&](const Index &o) {
      double &y = out.data[static_cast<size_t>(offset(out.dims, o))];
      y = y * broadcastAt(in(op, 1), o) + (has(op, 2) ? broadcastAt(in(op, 2), o) : 0);
    });
  }

  void batchNorm(const ProblemOp &op, PlainTensor &out) {
    const PlainTensor &x = in(op, 0);
    const int64_t inner = count(Index(x.dims.begin() + 2, x.dims.end()));
    const double epsilon = number(op, "epsilon", 1e-5);
    for (int64_t image = 0; image < x.dims[0] * x.dims[1]; ++image) {
      const size_t c = static_cast<size_t>(image % x.dims[1]);
      const double *from = &x.data[static_cast<size_t>(image * inner)];
      double *to = &out.data[static_cast<size_t>(image * inner)];
      if (op.name == "instance_normalization")
        normalizeRow(from, to, inner, epsilon);
      for (int64_t i = 0; i < inner; ++i) {
        if (op.name != "instance_normalization")
          to[i] = (from[i] - in(op, 3).data[c]) / std::sqrt(in(op, 4).data[c] + epsilon);
        to[i] = to[i] * in(op, 1).data[c] + in(op, 2).data[c];
      }
    }
  }

  void reduce(const ProblemOp &op, PlainTensor &out) {
    const PlainTensor &x = in(op, 0);
    Index axes = list(op, "axes", {});
    if (has(op, 1))
      axes.assign(in(op, 1).data.begin(), in(op, 1).data.end());
    std::vector<bool> reduced(x.dims.size(), axes.empty());
    for (int64_t a : axes)
      reduced[static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(x.dims.size()) : a)] = true;
    const bool product = op.name == "reduce_prod", most = op.name == "reduce_max",
               least = op.name == "reduce_min";
    Index kept = x.dims;
    for (size_t i = 0; i < kept.size(); ++i)
      kept[i] = reduced[i] ? 1 : kept[i];
    std::fill(out.data.begin(), out.data.end(), product ? 1 : most ? -1e300 : least ? 1e300 : 0);
    each(x.dims, [&](const Index &i) {
      Index o = i;
      for (size_t d = 0; d < o.size(); ++d)
        o[d] = reduced[d] ? 0 : o[d];
      double &y = out.data[static_cast<size_t>(offset(kept, o))];
      const double v = x.data[static_cast<size_t>(offset(x.dims, i))];
      if (product)
        y *= v;
      else if (most)
        y = std::max(y, v);
      else if (least)
        y = std::min(y, v);
      else
        y += op.name == "reduce_l1"                                     ? std::abs(v)
             : op.name == "reduce_l2" || op.name == "reduce_sum_square" ? v * v
                                                                        : v;
    });
    for (double &y : out.data)
      y = op.name == "reduce_mean"
              ? y * static_cast<double>(out.data.size()) / static_cast<double>(x.data.size())
          : op.name == "reduce_l2" ? std::sqrt(y)
                                   : y;
  }

  void transpose(const ProblemOp &op, PlainTensor &out) {
    const PlainTensor &x = in(op, 0);
    Index perm(x.dims.size());
    for (size_t i = 0; i < perm.size(); ++i)
      perm[i] = static_cast<int64_t>(perm.size() - 1 - i);
    perm = list(op, "perm", perm);
    each(out.dims, [&](const Index &o) {
      Index i(o.size());
      for (size_t d = 0; d < o.size(); ++d)
        i[static_cast<size_t>(perm[d])] = o[d];
      out.data[static_cast<size_t>(offset(out.dims, o))] =
          x.data[static_cast<size_t>(offset(x.dims, i))];
    });
  }

  void concat(const ProblemOp &op, PlainTensor &out) {
    int64_t axis = integer(op, "axis", 0), start = 0;
    axis += axis < 0 ? static_cast<int64_t>(out.dims.size()) : 0;
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      const PlainTensor &x = in(op, k);
      each(x.dims, [&](const Index &i) {
        Index o = i;
        o[static_cast<size_t>(axis)] += start;
        out.data[static_cast<size_t>(offset(out.dims, o))] =
            x.data[static_cast<size_t>(offset(x.dims, i))];
      });
      start += x.dims[static_cast<size_t>(axis)];
    }
  }

  void resize(const ProblemOp &op, PlainTensor &out) {
    const PlainTensor &x = in(op, 0);
    const std::string mode = text(op, "mode", "nearest"),
                      rule = text(op, "coordinate_transformation_mode", "half_pixel"),
                      nearest = text(op, "nearest_mode", "round_prefer_floor");
    std::vector<double> scales;
    if (has(op, 2))
      scales = in(op, 2).data;
    if (scales.empty())
      for (size_t i = 0; i < out.dims.size(); ++i)
        scales.push_back(static_cast<double>(out.dims[i]) / static_cast<double>(x.dims[i]));
    each(out.dims, [&](const Index &o) {
      Index low(o.size()), high(o.size());
      std::vector<double> weight(o.size());
      for (size_t i = 0; i < o.size(); ++i) {
        double at = rule == "asymmetric" ? static_cast<double>(o[i]) / scales[i]
                    : rule == "align_corners"
                        ? (out.dims[i] > 1 ? static_cast<double>(o[i] * (x.dims[i] - 1)) /
                                                 static_cast<double>(out.dims[i] - 1)
                                           : 0)
                        : (static_cast<double>(o[i]) + 0.5) / scales[i] - 0.5;
        if (mode == "nearest")
          at = nearest == "floor"                ? std::floor(at)
               : nearest == "ceil"               ? std::ceil(at)
               : nearest == "round_prefer_floor" ? std::ceil(at - 0.5)
                                                 : std::floor(at + 0.5);
        at = std::clamp(at, 0.0, static_cast<double>(x.dims[i] - 1));
        low[i] = static_cast<int64_t>(std::floor(at));
        high[i] = std::min(low[i] + 1, x.dims[i] - 1);
        weight[i] = at - std::floor(at);
      }
      double sum = 0;
      each(Index(o.size(), 2), [&](const Index &corner) {
        Index q(o.size());
        double w = 1;
        for (size_t i = 0; i < q.size(); ++i) {
          q[i] = corner[i] ? high[i] : low[i];
          w *= corner[i] ? weight[i] : 1 - weight[i];
        }
        if (w != 0)
          sum += w * x.data[static_cast<size_t>(offset(x.dims, q))];
      });
      out.data[static_cast<size_t>(offset(out.dims, o))] = sum;
    });
  }

  /// Element [b, h, s, d] of [B, H, S, D] or of [B, S, H * D].
  static double headAt(const PlainTensor &t, int64_t heads, int64_t b, int64_t h, int64_t s,
                       int64_t d) {
    if (t.dims.size() == 4)
      return t.data[static_cast<size_t>(offset(t.dims, {b, h, s, d}))];
    return t.data[static_cast<size_t>(offset(t.dims, {b, s, h * (t.dims[2] / heads) + d}))];
  }

  void attention(const ProblemOp &op, PlainTensor &out) {
    const PlainTensor &q = in(op, 0), &k = in(op, 1), &v = in(op, 2);
    const bool flat = q.dims.size() == 3;
    const int64_t heads = flat ? integer(op, "q_num_heads", 1) : q.dims[1],
                  kvHeads = flat ? integer(op, "kv_num_heads", 1) : k.dims[1];
    const int64_t width = flat ? q.dims[2] / heads : q.dims[3],
                  valueWidth = flat ? v.dims[2] / kvHeads : v.dims[3],
                  rows = flat ? q.dims[1] : q.dims[2], columns = flat ? k.dims[1] : k.dims[2];
    const double scale = number(op, "scale", 1 / std::sqrt(static_cast<double>(width)));
    each({q.dims[0], heads, rows}, [&](const Index &i) {
      const int64_t kv = i[1] / (heads / kvHeads);
      std::vector<double> score(static_cast<size_t>(columns));
      double most = -1e300, sum = 0;
      for (int64_t c = 0; c < columns; ++c) {
        double &s = score[static_cast<size_t>(c)];
        for (int64_t d = 0; d < width; ++d)
          s += headAt(q, heads, i[0], i[1], i[2], d) * headAt(k, kvHeads, i[0], kv, c, d);
        s = s * scale + (has(op, 3) ? broadcastAt(in(op, 3), {i[0], i[1], i[2], c}) : 0);
        most = std::max(most, s);
      }
      for (double &s : score)
        sum += s = std::exp(s - most);
      for (int64_t d = 0; d < valueWidth; ++d) {
        double y = 0;
        for (int64_t c = 0; c < columns; ++c)
          y += score[static_cast<size_t>(c)] / sum * headAt(v, kvHeads, i[0], kv, c, d);
        out.data[static_cast<size_t>(flat ? offset(out.dims, {i[0], i[2], i[1] * valueWidth + d})
                                          : offset(out.dims, {i[0], i[1], i[2], d}))] = y;
      }
    });
  }

  void pointwise(const ProblemOp &op, PlainTensor &out) {
    auto f = function(op);
    size_t at = 0;
    each(out.dims, [&](const Index &i) {
      std::vector<double> operands;
      for (size_t k = 0; k < op.inputs.size(); ++k)
        operands.push_back(has(op, k) ? broadcastAt(in(op, k), i) : std::nan(""));
      out.data[at++] = f(operands);
    });
  }

  static std::function<double(const std::vector<double> &)> function(const ProblemOp &op) {
    const std::string &n = op.name;
    const double alpha = number(op, "alpha", 0), beta = number(op, "beta", 0),
                 gamma = number(op, "gamma", 0);
    auto hardSigmoid = [](double x, double a, double b) { return std::clamp(a * x + b, 0.0, 1.0); };
    auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
    using V = const std::vector<double> &;
    static const double inf = std::numeric_limits<double>::infinity();
    const bool tanhGelu = text(op, "approximate", "none") == "tanh";
    const bool old = op.version < 11;
    const double low = number(op, "min", -inf), high = number(op, "max", inf);
    std::map<std::string, std::function<double(V)>> table{
        {"add", [](V v) { return v[0] + v[1]; }},
        {"sub", [](V v) { return v[0] - v[1]; }},
        {"mul", [](V v) { return v[0] * v[1]; }},
        {"div", [](V v) { return v[0] / v[1]; }},
        {"max", [](V v) { return std::max(v[0], v[1]); }},
        {"min", [](V v) { return std::min(v[0], v[1]); }},
        {"pow", [](V v) { return std::pow(v[0], v[1]); }},
        {"p_relu", [](V v) { return v[0] < 0 ? v[0] * v[1] : v[0]; }},
        {"relu", [](V v) { return std::max(v[0], 0.0); }},
        {"leaky_relu", [=](V v) { return v[0] < 0 ? alpha * v[0] : v[0]; }},
        {"elu", [=](V v) { return v[0] < 0 ? alpha * (std::exp(v[0]) - 1) : v[0]; }},
        {"selu", [=](V v) { return gamma * (v[0] < 0 ? alpha * (std::exp(v[0]) - 1) : v[0]); }},
        {"sigmoid", [=](V v) { return sigmoid(v[0]); }},
        {"tanh", [](V v) { return std::tanh(v[0]); }},
        {"hard_sigmoid", [=](V v) { return hardSigmoid(v[0], alpha, beta); }},
        {"hard_swish", [=](V v) { return v[0] * hardSigmoid(v[0], 1.0 / 6, 0.5); }},
        {"swish", [=](V v) { return v[0] * sigmoid(alpha * v[0]); }},
        {"gelu",
         [=](V v) {
           return tanhGelu ? 0.5 * v[0] *
                                 (1 + std::tanh(std::sqrt(2 / M_PI) *
                                                (v[0] + 0.044715 * v[0] * v[0] * v[0])))
                           : 0.5 * v[0] * (1 + std::erf(v[0] / std::sqrt(2.0)));
         }},
        {"clip",
         [=](V v) {
           double a = old ? low : v.size() > 1 && !std::isnan(v[1]) ? v[1] : -inf;
           double b = old ? high : v.size() > 2 && !std::isnan(v[2]) ? v[2] : inf;
           return std::min(std::max(v[0], a), b);
         }},
        {"softplus", [](V v) { return std::log1p(std::exp(v[0])); }},
        {"mish", [](V v) { return v[0] * std::tanh(std::log1p(std::exp(v[0]))); }},
        {"exp", [](V v) { return std::exp(v[0]); }},
        {"log", [](V v) { return std::log(v[0]); }},
        {"sqrt", [](V v) { return std::sqrt(v[0]); }},
        {"abs", [](V v) { return std::abs(v[0]); }},
        {"neg", [](V v) { return -v[0]; }},
        {"reciprocal", [](V v) { return 1 / v[0]; }},
        {"round", [](V v) { return std::nearbyint(v[0]); }},
    };
    auto found = table.find(n);
    if (found == table.end()) {
      std::fprintf(stderr, "plain truth: no definition of %s\n", n.c_str());
      std::abort();
    }
    return found->second;
  }

  const Problem &problem;
};

double literalElement(const ProblemValue &value, size_t i) {
  auto load = [&](auto sample) {
    std::memcpy(&sample, value.literal.data() + i * sizeof sample, sizeof sample);
    return static_cast<double>(sample);
  };
  switch (value.type) {
  case DVT_F32:
    return load(float{});
  case DVT_I64:
    return load(int64_t{});
  case DVT_I32:
    return load(int32_t{});
  default:
    std::fprintf(stderr, "plain truth: literal of this type\n");
    std::abort();
  }
}

} // namespace

std::vector<PlainTensor> plainTruth(const Problem &problem,
                                    const std::vector<PlainTensor> &inputs) {
  Evaluator evaluator(problem);
  for (size_t i = 0; i < inputs.size(); ++i)
    evaluator.values[problem.inputs[i]] = inputs[i];
  for (uint32_t v = 0; v < problem.values.size(); ++v) {
    const ProblemValue &value = problem.values[v];
    if (!value.isLiteral)
      continue;
    PlainTensor &tensor = evaluator.values[v];
    for (const Extent &extent : value.extents)
      tensor.dims.push_back(extent.value());
    for (int64_t i = 0; i < count(tensor.dims); ++i)
      tensor.data.push_back(literalElement(value, value.uniform ? 0 : static_cast<size_t>(i)));
  }
  for (const ProblemOp &op : problem.ops)
    evaluator.run(op);
  std::vector<PlainTensor> outputs;
  for (uint32_t v : problem.outputs)
    outputs.push_back(evaluator.values.at(v));
  return outputs;
}

} // namespace dovetail::test
