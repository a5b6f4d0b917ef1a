// SPDX-License-Identifier: Apache-2.0
//
// resize in all its modes. Interpolation is separable: for each axis every output index becomes a
// list of source indices with weights, and axes are done one after the other in double.
#include "Ops.h"

#include <algorithm>
#include <cmath>

namespace dovetail::reference::ops {

namespace {

/// One axis to resize: its scale, extents and region of interest.
struct Axis {
  double scale = 1, roiStart = 0, roiEnd = 1;
  double length = 1; ///< the output's extent before it was rounded to an integer
  int64_t input = 1, output = 1;
};

/// Weighted source indices of one output index; `outside` means the extrapolation value.
struct Taps {
  std::vector<int64_t> indices;
  std::vector<double> weights;
  bool outside = false;
};

struct Settings {
  std::string_view mode, transform, nearest;
  bool antialias, excludeOutside;
  double cubicA;
};

double sourcePosition(const Settings &settings, const Axis &axis, int64_t index) {
  double x = static_cast<double>(index), input = static_cast<double>(axis.input);
  double length = axis.length;
  std::string_view transform = settings.transform;
  if (transform == "align_corners")
    return length == 1 ? 0 : x * (input - 1) / (length - 1);
  if (transform == "asymmetric")
    return x / axis.scale;
  if (transform == "tf_crop_and_resize") {
    double span = (axis.roiEnd - axis.roiStart) * (input - 1);
    return axis.roiStart * (input - 1) + (length == 1 ? span / 2 : x * span / (length - 1));
  }
  if (transform == "pytorch_half_pixel" && length == 1)
    return -0.5;
  double halfPixel = (x + 0.5) / axis.scale - 0.5;
  if (transform == "half_pixel_symmetric")
    return input / 2 * (1 - static_cast<double>(axis.output) / length) + halfPixel;
  return halfPixel;
}

double cubicWeight(double distance, double a) {
  double x = std::fabs(distance);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

int64_t nearestIndex(std::string_view mode, double x) {
  double below = std::floor(x), fraction = x - below;
  if (mode == "floor")
    return static_cast<int64_t>(below);
  if (mode == "ceil")
    return static_cast<int64_t>(std::ceil(x));
  bool up = mode == "round_prefer_ceil" ? fraction >= 0.5 : fraction > 0.5;
  return static_cast<int64_t>(below) + (up ? 1 : 0);
}

Taps tapsFor(const Settings &settings, const Axis &axis, int64_t index) {
  Taps taps;
  double x = sourcePosition(settings, axis, index);
  if (settings.transform == "tf_crop_and_resize" &&
      (x < 0 || x > static_cast<double>(axis.input - 1))) {
    taps.outside = true;
    return taps;
  }
  if (settings.mode == "nearest") {
    taps.indices.push_back(nearestIndex(settings.nearest, x));
    taps.weights.push_back(1);
  } else {
    // A kernel of half width 1 or 2, stretched over more source elements where antialias shrinks.
    double stretch = settings.antialias ? std::min(axis.scale, 1.0) : 1.0;
    double halfWidth = (settings.mode == "cubic" ? 2 : 1) / stretch;
    for (auto i = static_cast<int64_t>(std::floor(x - halfWidth));
         static_cast<double>(i) <= x + halfWidth; ++i) {
      double distance = (static_cast<double>(i) - x) * stretch;
      double weight = settings.mode == "cubic" ? cubicWeight(distance, settings.cubicA)
                                               : std::max(0.0, 1 - std::fabs(distance));
      taps.indices.push_back(i);
      taps.weights.push_back(weight);
    }
  }
  double sum = 0;
  for (size_t i = 0; i < taps.indices.size(); ++i) {
    bool outside = taps.indices[i] < 0 || taps.indices[i] >= axis.input;
    if (settings.excludeOutside && outside)
      taps.weights[i] = 0;
    sum += taps.weights[i];
    taps.indices[i] = std::clamp<int64_t>(taps.indices[i], 0, axis.input - 1);
  }
  if ((settings.excludeOutside || settings.antialias) && sum != 0)
    for (double &weight : taps.weights)
      weight /= sum;
  return taps;
}

} // namespace

/// Resizes one dimension of `values`; `mask` marks elements that are the extrapolation value.
static void resizeAxis(const Settings &settings, const Axis &axis, size_t dimension,
                       Extents &extents, std::vector<double> &values, std::vector<bool> &mask) {
  auto at = static_cast<int64_t>(dimension);
  int64_t outer = productOf(extents, 0, at),
          inner = productOf(extents, at + 1, static_cast<int64_t>(extents.size()));
  extents[dimension] = axis.output;
  std::vector<double> result(static_cast<size_t>(outer * axis.output * inner), 0);
  std::vector<bool> resultMask(result.size(), false);
  for (int64_t i = 0; i < axis.output; ++i) {
    Taps taps = tapsFor(settings, axis, i);
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t k = 0; k < inner; ++k) {
        auto to = static_cast<size_t>((o * axis.output + i) * inner + k);
        resultMask[to] = taps.outside;
        for (size_t t = 0; t < taps.indices.size(); ++t) {
          auto from = static_cast<size_t>((o * axis.input + taps.indices[t]) * inner + k);
          result[to] += taps.weights[t] == 0 ? 0 : taps.weights[t] * values[from];
          resultMask[to] = resultMask[to] || mask[from];
        }
      }
  }
  values = std::move(result);
  mask = std::move(resultMask);
}

static Status planAxes(const Invocation &op, std::vector<Axis> &plan) {
  Extents axes = op.integers("axes").value_or(Extents());
  if (axes.empty())
    for (int64_t i = 0; i < op.rank(0); ++i)
      axes.push_back(i);
  TRY(op.normalizeAxes(axes, op.rank(0)));
  plan.resize(op.shape(0).size());
  for (size_t i = 0; i < plan.size(); ++i)
    plan[i].length = static_cast<double>(plan[i].input = plan[i].output = op.shape(0)[i]);
  bool haveScales = op.has(2) && op.in(2).count(), haveSizes = op.has(3) && op.in(3).count();
  if (haveScales == haveSizes)
    return op.bad("either scales or sizes must be given, and not both");
  if (op.has(1) && op.in(1).count()) {
    std::vector<double> roi = op.numbers<double>(1);
    if (roi.size() != 2 * axes.size())
      return op.bad("roi has ", roi.size(), " elements for ", axes.size(), " axes");
    for (size_t i = 0; i < axes.size(); ++i) {
      plan[static_cast<size_t>(axes[i])].roiStart = roi[i];
      plan[static_cast<size_t>(axes[i])].roiEnd = roi[i + axes.size()];
    }
  } else if (op.text("coordinate_transformation_mode", "") == "tf_crop_and_resize") {
    return op.bad("tf_crop_and_resize needs a roi");
  }
  std::vector<double> given = op.numbers<double>(haveScales ? 2 : 3);
  if (given.size() != axes.size())
    return op.bad(given.size(), haveScales ? " scales for " : " sizes for ", axes.size(), " axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    Axis &axis = plan[static_cast<size_t>(axes[i])];
    auto input = static_cast<double>(axis.input);
    if (!(given[i] >= 0) || (haveScales && !(given[i] > 0 && given[i] * input < 1e12)) ||
        given[i] > 1e12)
      return op.bad(haveScales ? "scale " : "size ", given[i]);
    if (!axis.input && given[i] > 0 && haveSizes)
      return op.bad("axis ", axes[i], " is empty");
    axis.scale = haveScales ? given[i] : given[i] / input;
    // As ONNX's own shape inference has it: the float scale times the extent, exactly.
    axis.length = haveScales ? input * given[i] : given[i];
    axis.output = static_cast<int64_t>(std::floor(axis.length));
  }
  std::string_view policy = op.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch" || haveScales)
    return {};
  if (policy != "not_larger" && policy != "not_smaller")
    return op.unsupported("keep_aspect_ratio_policy=", policy);
  double scale = plan[static_cast<size_t>(axes[0])].scale;
  for (int64_t axis : axes) {
    double other = plan[static_cast<size_t>(axis)].scale;
    scale = policy == "not_larger" ? std::min(scale, other) : std::max(scale, other);
  }
  for (int64_t index : axes) {
    Axis &axis = plan[static_cast<size_t>(index)];
    axis.scale = scale;
    axis.length = scale * static_cast<double>(axis.input);
    axis.output = static_cast<int64_t>(axis.length + 0.5);
  }
  return {};
}

static Status readSettings(const Invocation &op, Settings &settings) {
  settings = {op.text("mode", "nearest"),
              op.text("coordinate_transformation_mode", "half_pixel"),
              op.text("nearest_mode", "round_prefer_floor"),
              op.integer("antialias", 0) != 0,
              op.integer("exclude_outside", 0) != 0,
              op.real("cubic_coeff_a", -0.75)};
  auto known = [](std::string_view text, std::initializer_list<std::string_view> list) {
    return std::find(list.begin(), list.end(), text) != list.end();
  };
  if (!known(settings.mode, {"nearest", "linear", "cubic"}))
    return op.unsupported("mode=", settings.mode, "; nearest, linear and cubic are known");
  if (!known(settings.transform, {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                  "align_corners", "asymmetric", "tf_crop_and_resize"}))
    return op.unsupported("coordinate_transformation_mode=", settings.transform);
  if (!known(settings.nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}))
    return op.unsupported("nearest_mode=", settings.nearest);
  return {};
}

Status resize(Invocation &op) {
  Settings settings;
  TRY(readSettings(op, settings));
  std::vector<Axis> plan;
  TRY(planAxes(op, plan));
  Extents final, extents = op.shape(0);
  for (const Axis &axis : plan)
    final.push_back(axis.output);
  if (!elementCount(final) || *elementCount(final) > int64_t(1) << 40)
    return op.bad("a result of ", textOf(final));
  std::vector<double> values = op.numbers<double>(0);
  std::vector<bool> mask(values.size(), false);
  for (size_t i = 0; i < plan.size(); ++i) {
    const Axis &axis = plan[i];
    bool cropped =
        settings.transform == "tf_crop_and_resize" && (axis.roiStart != 0 || axis.roiEnd != 1);
    if (axis.output == axis.input && std::fabs(axis.scale - 1) < 1e-9 && !cropped)
      continue;
    if (!axis.input)
      continue;
    resizeAxis(settings, axis, i, extents, values, mask);
  }
  double extrapolation = op.real("extrapolation_value", 0);
  for (size_t i = 0; i < values.size(); ++i)
    if (mask[i])
      values[i] = extrapolation;
  return op.store(0, final, values);
}

} // namespace dovetail::reference::ops
