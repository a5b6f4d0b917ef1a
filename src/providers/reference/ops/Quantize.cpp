// SPDX-License-Identifier: Apache-2.0
//
// Quantisation and back, per tensor, per axis and in blocks. The quotient is rounded to the
// precision that ONNX prescribes before it is rounded to an integer, since both decide on which
// side of a tie it falls.
#include "Ops.h"

#include <algorithm>
#include <cmath>

namespace dovetail::reference::ops {

/// Rounds to the precision of a float type.
static double roundTo(dvt_type type, double value) {
  switch (type) {
  case DVT_F16:
    return halfToDouble(doubleToHalf(value));
  case DVT_BF16:
    return brainToDouble(doubleToBrain(value));
  case DVT_F32:
    return static_cast<float>(value);
  default:
    return value;
  }
}

/// For each element of operand 0, the element of the scale (operand 1) that belongs to it.
static Status scaleIndices(const Invocation &op, std::vector<int64_t> &indices) {
  const Extents &x = op.shape(0), &scale = op.shape(1);
  indices.assign(static_cast<size_t>(op.in(0).count()), 0);
  if (op.has(2) && op.shape(2) != scale && (op.in(1).count() != 1 || op.in(2).count() != 1))
    return op.bad("scale ", textOf(scale), " and zero point ", textOf(op.shape(2)),
                  " must have the same extents");
  int64_t block = op.integer("block_size", 0);
  if (op.in(1).count() == 1 && (scale.size() <= 1 || !block))
    return {};
  int64_t axis = op.integer("axis", 1);
  // Vectors have one axis only, whatever the default of 1 says.
  axis = x.size() == 1 && axis == 1 ? 0 : axis;
  TRY(op.normalizeAxis(axis, op.rank(0)));
  auto along = static_cast<size_t>(axis);
  Extents strides(x.size(), 0), dense = rowMajorStrides(scale);
  if (scale.size() == 1 && scale[0] == x[along] && !block) {
    block = 1;
    strides[along] = 1;
  } else if (scale.size() == x.size()) {
    block = block > 0 ? block
                      : (x[along] + std::max<int64_t>(scale[along], 1) - 1) /
                            std::max<int64_t>(scale[along], 1);
    strides = dense;
    for (size_t i = 0; i < x.size(); ++i)
      if (scale[i] != (i == along ? (x[i] + block - 1) / std::max<int64_t>(block, 1) : x[i]))
        return op.bad("scale ", textOf(scale), " for ", textOf(x), " in blocks of ", block,
                      " along axis ", axis);
  } else {
    return op.bad("scale ", textOf(scale), " for ", textOf(x), " along axis ", axis);
  }
  forEachIndex(x, [&](int64_t linear, const Extents &index) {
    int64_t at = 0;
    for (size_t i = 0; i < index.size(); ++i)
      at += (i == along ? index[i] / block : index[i]) * strides[i];
    indices[static_cast<size_t>(linear)] = at;
  });
  return {};
}

Status quantizeLinear(Invocation &op) {
  std::vector<int64_t> at;
  TRY(scaleIndices(op, at));
  auto precision = static_cast<dvt_type>(op.integer("precision", 0));
  precision = precision == DVT_UNDEFINED ? op.in(1).type : precision;
  std::vector<double> x = op.numbers<double>(0), scale = op.numbers<double>(1),
                      zero(scale.size(), 0);
  if (op.has(2))
    zero = op.numbers<double>(2);
  for (size_t i = 0; i < x.size(); ++i) {
    auto s = static_cast<size_t>(at[i]);
    double quotient = roundTo(precision, roundTo(precision, x[i]) / roundTo(precision, scale[s]));
    x[i] = std::nearbyint(quotient) + zero[s];
  }
  return op.store(0, op.shape(0), x);
}

Status dequantizeLinear(Invocation &op) {
  std::vector<int64_t> at;
  TRY(scaleIndices(op, at));
  std::vector<double> x = op.numbers<double>(0), scale = op.numbers<double>(1),
                      zero(scale.size(), 0);
  if (op.has(2))
    zero = op.numbers<double>(2);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = (x[i] - zero[static_cast<size_t>(at[i])]) * scale[static_cast<size_t>(at[i])];
  return op.store(0, op.shape(0), x);
}

Status dynamicQuantizeLinear(Invocation &op) {
  std::vector<double> x = op.numbers<double>(0);
  double low = 0, high = 0;
  for (double value : x) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // In float, as the definition has it: the results depend on each rounding.
  auto span = static_cast<float>(high) - static_cast<float>(low);
  float scale = (span == 0 ? 1.0f : span) / 255.0f;
  double zero = std::nearbyint(std::clamp(0.0f - static_cast<float>(low) / scale, 0.0f, 255.0f));
  for (double &value : x)
    value = std::nearbyint(static_cast<float>(value) / scale) + zero;
  TRY(op.store(0, op.shape(0), x));
  TRY(op.store(1, {}, std::vector<double>{scale}));
  return op.store(2, {}, std::vector<double>{zero});
}

} // namespace dovetail::reference::ops
