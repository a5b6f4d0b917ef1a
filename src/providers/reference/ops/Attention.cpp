// SPDX-License-Identifier: Apache-2.0
//
// attention with masks, windows and caches, linear_attention and rotary_embedding, as ONNX defines
// them. Everything between the operands and the results is computed in double; softmax_precision
// therefore changes nothing.
#include "Ops.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dovetail::reference::ops {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// An operand seen as [batch, heads, length, size], whether it is given so or as [batch, length,
/// heads * size].
struct Heads {
  std::vector<double> values;
  int64_t batch = 0, heads = 0, length = 0, size = 0;
  bool packed = false;
  size_t index(int64_t b, int64_t h, int64_t l, int64_t d) const {
    int64_t row = packed ? (b * length + l) * heads + h : (b * heads + h) * length + l;
    return static_cast<size_t>(row * size + d);
  }
  double at(int64_t b, int64_t h, int64_t l, int64_t d) const { return values[index(b, h, l, d)]; }
  Extents fourD() const { return {batch, heads, length, size}; }
};

} // namespace

static Status readHeads(const Invocation &op, size_t input, int64_t heads, Heads &view) {
  const Extents &extents = op.shape(input);
  view.values = op.numbers<double>(input);
  view.packed = extents.size() == 3;
  if (extents.size() == 4) {
    view.batch = extents[0];
    view.heads = extents[1];
    view.length = extents[2];
    view.size = extents[3];
    return {};
  }
  if (!view.packed || heads < 1 || extents[2] % heads)
    return op.bad("operand ", input, " of ", textOf(extents), " with ", heads,
                  " heads; [N,heads,L,size] or ", "[N,L,heads*size] is needed");
  view.batch = extents[0];
  view.length = extents[1];
  view.heads = heads;
  view.size = extents[2] / heads;
  return {};
}

/// Puts the past before `view` along the length; the result is not packed.
static Status prepend(const Invocation &op, size_t past, Heads &view) {
  Heads joined = view, before;
  joined.packed = false;
  if (op.has(past)) {
    TRY(readHeads(op, past, view.heads, before));
    if (before.packed || before.batch != view.batch || before.heads != view.heads ||
        before.size != view.size)
      return op.bad("past of ", textOf(op.shape(past)), " for ", textOf(view.fourD()));
    joined.length += before.length;
  }
  joined.values.assign(
      static_cast<size_t>(joined.batch * joined.heads * joined.length * joined.size), 0);
  for (int64_t b = 0; b < view.batch; ++b)
    for (int64_t h = 0; h < view.heads; ++h)
      for (int64_t l = 0; l < joined.length; ++l)
        for (int64_t d = 0; d < view.size; ++d)
          joined.values[joined.index(b, h, l, d)] =
              l < before.length ? before.at(b, h, l, d) : view.at(b, h, l - before.length, d);
  view = std::move(joined);
  return {};
}

namespace {

/// What is added to the scores: the mask operand, causality, windows and padding, as one number for
/// each pair.
struct Bias {
  std::vector<double> mask;
  Extents maskExtents, maskStrides;
  bool boolean = false, causal = false;
  int64_t left = -1, right = -1;
  std::vector<int64_t> offsets,
      valid; ///< for each batch: keys before the queries, keys that are not padding
  bool hasMask = false, hasValid = false;

  double operator()(int64_t b, int64_t h, int64_t i, int64_t j) const {
    int64_t position = i + offsets[static_cast<size_t>(b)];
    if ((causal && j > position) || (left >= 0 && position - j > left) ||
        (right >= 0 && j - position > right) || (hasValid && j >= valid[static_cast<size_t>(b)]))
      return kMinusInfinity;
    if (!hasMask)
      return 0;
    if (j >= maskExtents.back())
      return kMinusInfinity;
    const int64_t index[] = {b, h, i, j};
    int64_t at = 0;
    size_t skipped = 4 - maskExtents.size();
    for (size_t d = 0; d < maskExtents.size(); ++d)
      at += maskExtents[d] == 1 && d + 1 < maskExtents.size() ? 0
                                                              : index[skipped + d] * maskStrides[d];
    double value = mask[static_cast<size_t>(at)];
    return boolean ? (value != 0 ? 0 : kMinusInfinity) : value;
  }
};

} // namespace

static Status readBias(const Invocation &op, const Heads &q, int64_t keys, int64_t pastLength,
                       Bias &bias) {
  bias.causal = op.integer("is_causal", 0);
  bias.left = op.integer("left_window_size", -1);
  bias.right = op.integer("right_window_size", -1);
  if (bias.left < -1 || bias.right < -1)
    return op.bad("window sizes ", bias.left, " and ", bias.right, "; they must be at least -1");
  bias.offsets.assign(static_cast<size_t>(q.batch), pastLength);
  if (op.has(6)) {
    TRY(op.integerOperand(6, bias.valid));
    bias.hasValid = true;
    if (static_cast<int64_t>(bias.valid.size()) != q.batch)
      return op.bad("nonpad_kv_seqlen has ", bias.valid.size(), " elements for a batch of ",
                    q.batch);
    for (size_t b = 0; b < bias.valid.size(); ++b) {
      if (bias.valid[b] < 0 || bias.valid[b] > keys)
        return op.bad("nonpad_kv_seqlen ", bias.valid[b], " is outside [0, ", keys, "]");
      bias.offsets[b] = bias.valid[b] - q.length;
    }
  }
  if (!op.has(3))
    return {};
  bias.hasMask = true;
  bias.boolean = op.in(3).type == DVT_BOOL;
  bias.mask = op.numbers<double>(3);
  bias.maskExtents = op.shape(3);
  bias.maskStrides = rowMajorStrides(bias.maskExtents);
  Extents full = {q.batch, q.heads, q.length,
                  bias.maskExtents.empty() ? 0 : bias.maskExtents.back()};
  if (bias.maskExtents.empty() || !broadcastsTo(bias.maskExtents, full) ||
      bias.maskExtents.back() > keys)
    return op.bad("attn_mask of ", textOf(op.shape(3)), " for scores of [", q.batch, ",", q.heads,
                  ",", q.length, ",", keys, "]");
  return {};
}

Status attention(Invocation &op) {
  Heads q, k, v;
  TRY(readHeads(op, 0, op.integer("q_num_heads", 0), q));
  TRY(readHeads(op, 1, op.integer("kv_num_heads", 0), k));
  TRY(readHeads(op, 2, op.integer("kv_num_heads", 0), v));
  if (op.has(4) != op.has(5) || (op.has(4) && op.has(6)))
    return op.bad("past_key and past_value come together, and without nonpad_kv_seqlen");
  if (k.batch != q.batch || v.batch != q.batch || k.heads != v.heads || k.length != v.length ||
      k.size != q.size || k.heads < 1 || q.heads % k.heads)
    return op.bad("operands ", textOf(op.shape(0)), ", ", textOf(op.shape(1)), " and ",
                  textOf(op.shape(2)), " do not fit each other");
  int64_t incoming = k.length;
  TRY(prepend(op, 4, k));
  TRY(prepend(op, 5, v));
  if (k.length != v.length)
    return op.bad("past_key and past_value differ in length");
  Bias bias;
  TRY(readBias(op, q, k.length, k.length - incoming, bias));
  double scale =
      op.hasAttribute("scale") ? op.real("scale", 1) : 1 / std::sqrt(static_cast<double>(q.size));
  double softcap = op.real("softcap", 0);
  int64_t mode = op.integer("qk_matmul_output_mode", 0), group = q.heads / k.heads;
  if (mode < 0 || mode > 3)
    return op.unsupported("qk_matmul_output_mode=", mode, "; 0 to 3 are known");

  Heads y = q;
  y.size = v.size;
  y.values.assign(static_cast<size_t>(y.batch * y.heads * y.length * y.size), 0);
  std::vector<double> shown, scores(static_cast<size_t>(k.length));
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h)
      for (int64_t i = 0; i < q.length; ++i) {
        bool anyKey = false;
        std::vector<double> stages[3];
        for (int64_t j = 0; j < k.length; ++j) {
          double dot = 0;
          for (int64_t d = 0; d < q.size; ++d)
            dot += q.at(b, h, i, d) * k.at(b, h / group, j, d);
          dot *= scale;
          double capped = softcap > 0 ? softcap * std::tanh(dot / softcap) : dot,
                 added = bias(b, h, i, j);
          anyKey = anyKey || added != kMinusInfinity;
          scores[static_cast<size_t>(j)] = capped + added;
          stages[0].push_back(dot);
          stages[1].push_back(capped);
          stages[2].push_back(capped + added);
        }
        // A row without any key attends to nothing.
        if (anyKey)
          softmaxInPlace(scores.data(), k.length, 1, false);
        else
          std::fill(scores.begin(), scores.end(), 0);
        const std::vector<double> &stage = mode == 3 ? scores : stages[mode];
        shown.insert(shown.end(), stage.begin(), stage.end());
        for (int64_t j = 0; j < k.length; ++j)
          for (int64_t d = 0; d < v.size && scores[static_cast<size_t>(j)] != 0; ++d)
            y.values[y.index(b, h, i, d)] +=
                scores[static_cast<size_t>(j)] * v.at(b, h / group, j, d);
      }
  TRY(op.store(0, y.packed ? Extents{y.batch, y.length, y.heads * y.size} : y.fourD(), y.values));
  TRY(op.store(1, k.fourD(), k.values));
  TRY(op.store(2, v.fourD(), v.values));
  return op.store(3, {q.batch, q.heads, q.length, k.length}, shown);
}

Status linearAttention(Invocation &op) {
  std::string_view rule = op.text("update_rule", "gated_delta");
  bool gated = rule == "gated" || rule == "gated_delta",
       delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    return op.unsupported("update_rule=", rule, "; linear, gated, delta and gated_delta are known");
  if (gated != op.has(4) || delta != op.has(5))
    return op.bad("update_rule ", rule, " needs decay: ", gated, ", beta: ", delta);
  Heads q, k, v, decay, beta;
  int64_t heads = op.integer("kv_num_heads", 0);
  TRY(readHeads(op, 0, op.integer("q_num_heads", 0), q));
  TRY(readHeads(op, 1, heads, k));
  TRY(readHeads(op, 2, heads, v));
  if (!q.packed || !k.packed || !v.packed || q.heads % k.heads || q.size != k.size ||
      k.batch != q.batch || v.batch != q.batch || k.length != q.length || v.length != q.length)
    return op.bad("operands ", textOf(op.shape(0)), ", ", textOf(op.shape(1)), " and ",
                  textOf(op.shape(2)), " do not fit each other");
  if (gated)
    TRY(readHeads(op, 4, heads, decay));
  if (delta)
    TRY(readHeads(op, 5, op.rank(5) == 3 && op.shape(5)[2] == 1 ? 1 : heads, beta));
  Extents stateExtents = {q.batch, heads, q.size, v.size};
  if ((gated && (decay.batch != q.batch || decay.length != q.length ||
                 (decay.size != 1 && decay.size != q.size))) ||
      (delta && (beta.batch != q.batch || beta.length != q.length || beta.size != 1)) ||
      (op.has(3) && op.shape(3) != stateExtents))
    return op.bad("decay, beta or past_state do not fit the operands");
  std::vector<double> state(static_cast<size_t>(*elementCount(stateExtents)), 0);
  if (op.has(3))
    state = op.numbers<double>(3);
  double scale = op.real("scale", 0);
  scale = scale == 0 ? 1 / std::sqrt(static_cast<double>(q.size)) : scale;
  Heads y = q;
  y.size = v.size;
  y.values.assign(static_cast<size_t>(y.batch * y.heads * y.length * y.size), 0);
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      double *s = state.data() + (b * heads + h) * q.size * v.size;
      for (int64_t t = 0; t < q.length; ++t) {
        for (int64_t d = 0; d < q.size && gated; ++d)
          for (int64_t m = 0; m < v.size; ++m)
            s[d * v.size + m] *= std::exp(decay.at(b, h, t, decay.size == 1 ? 0 : d));
        for (int64_t m = 0; m < v.size; ++m) {
          double written = v.at(b, h, t, m);
          if (delta) {
            for (int64_t d = 0; d < q.size; ++d)
              written -= s[d * v.size + m] * k.at(b, h, t, d);
            written *= beta.at(b, beta.heads == 1 ? 0 : h, t, 0);
          }
          for (int64_t d = 0; d < q.size; ++d)
            s[d * v.size + m] += k.at(b, h, t, d) * written;
        }
        for (int64_t g = h * (q.heads / heads); g < (h + 1) * (q.heads / heads); ++g)
          for (int64_t m = 0; m < v.size; ++m)
            for (int64_t d = 0; d < q.size; ++d)
              y.values[y.index(b, g, t, m)] += scale * q.at(b, g, t, d) * s[d * v.size + m];
      }
    }
  TRY(op.store(0, {y.batch, y.length, y.heads * y.size}, y.values));
  return op.store(1, stateExtents, state);
}

Status rotaryEmbedding(Invocation &op) {
  Heads x;
  TRY(readHeads(op, 0, op.integer("num_heads", 0), x));
  int64_t rotated = op.integer("rotary_embedding_dim", 0);
  rotated = rotated ? rotated : x.size;
  int64_t half = rotated / 2;
  bool interleaved = op.integer("interleaved", 0);
  if (rotated < 0 || rotated > x.size || rotated % 2)
    return op.bad("rotary_embedding_dim ", rotated, " of heads of ", x.size, " elements");
  std::vector<double> cosines = op.numbers<double>(1), sines = op.numbers<double>(2);
  std::vector<int64_t> positions;
  Extents perToken = {x.batch, x.length, half};
  if (op.has(3)) {
    TRY(op.integerOperand(3, positions));
    if (op.rank(1) != 2 || op.shape(1)[1] != half || op.shape(2) != op.shape(1) ||
        op.shape(3) != Extents{x.batch, x.length})
      return op.bad("caches ", textOf(op.shape(1)), " and positions ", textOf(op.shape(3)), " for ",
                    textOf(x.fourD()));
    for (int64_t &position : positions)
      if (position < 0 || position >= op.shape(1)[0])
        return op.bad("position ", position, " is outside [0, ", op.shape(1)[0] - 1, "]");
  } else if (op.shape(1) != perToken || op.shape(2) != perToken) {
    return op.bad("caches ", textOf(op.shape(1)), " and ", textOf(op.shape(2)), "; ",
                  textOf(perToken), " is needed");
  }
  std::vector<double> y = x.values;
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t h = 0; h < x.heads; ++h)
      for (int64_t l = 0; l < x.length; ++l)
        for (int64_t d = 0; d < half; ++d) {
          int64_t token = b * x.length + l;
          auto cache = static_cast<size_t>(
              (positions.empty() ? token : positions[static_cast<size_t>(token)]) * half + d);
          int64_t first = interleaved ? 2 * d : d, second = interleaved ? 2 * d + 1 : d + half;
          double real = x.at(b, h, l, first), imaginary = x.at(b, h, l, second);
          y[x.index(b, h, l, first)] = cosines[cache] * real - sines[cache] * imaginary;
          y[x.index(b, h, l, second)] = sines[cache] * real + cosines[cache] * imaginary;
        }
  return op.store(0, op.shape(0), y);
}

} // namespace dovetail::reference::ops
