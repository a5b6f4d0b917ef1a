// SPDX-License-Identifier: Apache-2.0
//
// Ops that read images at positions between elements, or put windows back into images: grid_sample,
// affine_grid, roi_align, max_roi_pool, deform_conv, col2_im.
#include "Ops.h"

#include <algorithm>
#include <cmath>

#include "../Window.h"

namespace dovetail::reference::ops {

namespace {

/// One image (one channel) and how positions outside are answered.
struct Image {
  const double *values;
  Extents extents;
  std::string_view padding; ///< zeros, border or reflection
  bool alignCorners;

  double pixel(const Extents &index) const;
  double low(size_t) const { return alignCorners ? 0 : -0.5; }
  double high(size_t d) const { return static_cast<double>(extents[d]) - (alignCorners ? 1 : 0.5); }
};

/// Mirrors x at the ends of [low, high] until it lies inside.
double reflect(double x, double low, double high) {
  double range = high - low;
  if (!(range > 0))
    return low;
  double distance = x < low ? low - x : x > high ? x - high : 0;
  if (distance == 0)
    return x;
  double turns = std::floor(distance / range), rest = distance - turns * range;
  bool even = std::fmod(turns, 2) == 0;
  return (x < low) == even ? low + rest : high - rest;
}

double Image::pixel(const Extents &index) const {
  int64_t at = 0;
  for (size_t d = 0; d < index.size(); ++d) {
    int64_t i = index[d];
    if (i < 0 || i >= extents[d]) {
      if (padding == "zeros")
        return 0;
      if (padding == "reflection")
        i = static_cast<int64_t>(reflect(static_cast<double>(i), low(d), high(d)));
      i = std::clamp<int64_t>(i, 0, extents[d] - 1);
    }
    at = at * extents[d] + i;
  }
  return values[at];
}

/// Weights of the elements from floor(x) + first on.
std::vector<double> weightsOf(std::string_view mode, double fraction) {
  if (mode == "linear")
    return {1 - fraction, fraction};
  constexpr double a = -0.75;
  auto near = [](double t) { return ((a + 2) * t - (a + 3)) * t * t + 1; };
  auto far = [](double t) { return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a; };
  return {far(fraction + 1), near(fraction), near(1 - fraction), far(2 - fraction)};
}

/// Interpolates at `position`: "nearest", "linear" or "cubic" in every dimension.
double sample(const Image &image, std::string_view mode, const std::vector<double> &position) {
  size_t rank = position.size();
  std::vector<std::vector<double>> weights(rank);
  Extents first(rank), taps(rank);
  for (size_t d = 0; d < rank; ++d) {
    double below = mode == "nearest" ? std::nearbyint(position[d]) : std::floor(position[d]);
    first[d] = static_cast<int64_t>(below) - (mode == "cubic" ? 1 : 0);
    weights[d] = mode == "nearest" ? std::vector<double>{1} : weightsOf(mode, position[d] - below);
    taps[d] = static_cast<int64_t>(weights[d].size());
  }
  double sum = 0;
  forEachIndex(taps, [&](int64_t, const Extents &tap) {
    double weight = 1;
    Extents index(rank);
    for (size_t d = 0; d < rank; ++d) {
      weight *= weights[d][static_cast<size_t>(tap[d])];
      index[d] = first[d] + tap[d];
    }
    sum += weight == 0 ? 0 : weight * image.pixel(index);
  });
  return sum;
}

} // namespace

Status gridSample(Invocation &op) {
  std::string_view mode = op.text("mode", "linear"), padding = op.text("padding_mode", "zeros");
  mode = mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode;
  if (mode != "linear" && mode != "nearest" && mode != "cubic")
    return op.unsupported("mode=", mode, "; linear, nearest and cubic are known");
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    return op.unsupported("padding_mode=", padding, "; zeros, border and reflection are known");
  TRY(op.needRank(0, 3));
  const Extents &x = op.shape(0), &grid = op.shape(1);
  Extents spatial = spatialOf(x);
  size_t rank = spatial.size();
  if (grid.size() != x.size() || grid[0] != x[0] || grid.back() != static_cast<int64_t>(rank))
    return op.bad("a grid of ", textOf(grid), " for an operand ", textOf(x));
  Extents out(grid.begin() + 1, grid.end() - 1), extents = {x[0], x[1]};
  extents.insert(extents.end(), out.begin(), out.end());
  int64_t inner = productOf(x, 2, op.rank(0)), points = *elementCount(out);
  std::vector<double> values = op.numbers<double>(0), positions = op.numbers<double>(1), y;
  if (inner == 0 && *elementCount(extents) > 0)
    return op.bad("samples of an empty image ", textOf(x));
  bool align = op.integer("align_corners", 0);
  for (int64_t n = 0; n < x[0]; ++n)
    for (int64_t c = 0; c < x[1]; ++c) {
      Image image = {values.data() + (n * x[1] + c) * inner, spatial, padding, align};
      for (int64_t p = 0; p < points; ++p) {
        std::vector<double> position(rank);
        for (size_t d = 0; d < rank; ++d) {
          // Coordinates lie in the order x, y, z: the last dimension first.
          double g = positions[static_cast<size_t>((n * points + p) * static_cast<int64_t>(rank)) +
                               rank - 1 - d];
          auto length = static_cast<double>(spatial[d]);
          double at = align ? (g + 1) / 2 * (length - 1) : ((g + 1) * length - 1) / 2;
          at = mode == "nearest" ? std::nearbyint(at) : at;
          if (padding == "border")
            at = std::clamp(at, 0.0, length - 1);
          else if (padding == "reflection" && std::isfinite(at))
            at = reflect(at, image.low(d), image.high(d));
          // Far away, or not a number at all, is outside all the same.
          position[d] = at > -1e15 && at < 1e15 ? at : -1e15;
        }
        y.push_back(sample(image, mode, position));
      }
    }
  return op.store(0, extents, y);
}

Status affineGrid(Invocation &op) {
  std::vector<int64_t> size;
  TRY(op.integerOperand(1, size));
  if ((size.size() != 4 && size.size() != 5) || !elementCount(size))
    return op.bad("size ", textOf(size), "; [N,C,H,W] or [N,C,D,H,W] is needed");
  Extents spatial(size.begin() + 2, size.end());
  auto rank = static_cast<int64_t>(spatial.size());
  if (op.shape(0) != Extents{size[0], rank, rank + 1})
    return op.bad("theta of ", textOf(op.shape(0)), " for size ", textOf(size));
  bool align = op.integer("align_corners", 0);
  std::vector<double> theta = op.numbers<double>(0), y;
  for (int64_t n = 0; n < size[0]; ++n)
    forEachIndex(spatial, [&](int64_t, const Extents &index) {
      std::vector<double> point;
      for (size_t d = spatial.size(); d-- > 0;) {
        auto length = static_cast<double>(spatial[d]), at = static_cast<double>(index[d]);
        point.push_back(align ? (spatial[d] > 1 ? -1 + 2 * at / (length - 1) : -1)
                              : (2 * at + 1) / length - 1);
      }
      point.push_back(1);
      for (int64_t row = 0; row < rank; ++row) {
        double sum = 0;
        for (size_t k = 0; k < point.size(); ++k)
          sum += theta[static_cast<size_t>((n * rank + row) * (rank + 1)) + k] * point[k];
        y.push_back(sum);
      }
    });
  Extents extents = {size[0]};
  extents.insert(extents.end(), spatial.begin(), spatial.end());
  extents.push_back(rank);
  return op.store(0, extents, y);
}

Status roiAlign(Invocation &op) {
  const Extents &x = op.shape(0), &rois = op.shape(1);
  std::vector<int64_t> batches;
  TRY(op.integerOperand(2, batches));
  if (x.size() != 4 || rois.size() != 2 || rois[1] != 4 ||
      static_cast<int64_t>(batches.size()) != rois[0])
    return op.bad("operands ", textOf(x), ", ", textOf(rois), " and ", textOf(op.shape(2)));
  for (int64_t batch : batches)
    if (batch < 0 || batch >= x[0])
      return op.bad("batch index ", batch, " is outside [0, ", x[0] - 1, "]");
  std::string_view mode = op.text("mode", "avg");
  if (mode != "avg" && mode != "max")
    return op.unsupported("mode=", mode, "; avg and max are known");
  int64_t height = op.integer("output_height", 1), width = op.integer("output_width", 1);
  int64_t ratio = op.integer("sampling_ratio", 0);
  bool halfPixel = op.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  double scale = op.real("spatial_scale", 1), shift = halfPixel ? 0.5 : 0;
  Extents extents = {rois[0], x[1], height, width};
  if (!elementCount(extents) || ratio < 0 || ratio > 1024)
    return op.bad("a result of ", textOf(extents), " with sampling_ratio ", ratio);
  if (x[2] * x[3] == 0 && *elementCount(extents) > 0)
    return op.bad("samples of an empty image ", textOf(x));
  std::vector<double> values = op.numbers<double>(0), corners = op.numbers<double>(1), y;
  for (int64_t r = 0; r < rois[0]; ++r) {
    const double *roi = corners.data() + r * 4;
    double left = roi[0] * scale - shift, top = roi[1] * scale - shift;
    double spanX = roi[2] * scale - shift - left, spanY = roi[3] * scale - shift - top;
    if (!halfPixel) {
      spanX = std::max(spanX, 1.0);
      spanY = std::max(spanY, 1.0);
    }
    double binX = spanX / static_cast<double>(width), binY = spanY / static_cast<double>(height);
    if (!(std::fabs(binX) < 1e6 && std::fabs(binY) < 1e6))
      return op.bad("a region of ", spanX, " by ", spanY);
    int64_t gridX = ratio ? ratio : static_cast<int64_t>(std::ceil(binX));
    int64_t gridY = ratio ? ratio : static_cast<int64_t>(std::ceil(binY));
    for (int64_t c = 0; c < x[1]; ++c) {
      const double *image =
          values.data() + (batches[static_cast<size_t>(r)] * x[1] + c) * x[2] * x[3];
      for (int64_t ph = 0; ph < height; ++ph)
        for (int64_t pw = 0; pw < width; ++pw) {
          double sum = 0, largest = 0;
          bool first = true;
          for (int64_t iy = 0; iy < gridY; ++iy)
            for (int64_t ix = 0; ix < gridX; ++ix) {
              double atY = top + static_cast<double>(ph) * binY +
                           (static_cast<double>(iy) + 0.5) * binY / static_cast<double>(gridY);
              double atX = left + static_cast<double>(pw) * binX +
                           (static_cast<double>(ix) + 0.5) * binX / static_cast<double>(gridX);
              double terms[4] = {0, 0, 0, 0};
              if (atY >= -1 && atY <= static_cast<double>(x[2]) && atX >= -1 &&
                  atX <= static_cast<double>(x[3])) {
                atY = std::clamp(atY, 0.0, static_cast<double>(x[2] - 1));
                atX = std::clamp(atX, 0.0, static_cast<double>(x[3] - 1));
                auto y0 = static_cast<int64_t>(atY), x0 = static_cast<int64_t>(atX);
                int64_t y1 = std::min(y0 + 1, x[2] - 1), x1 = std::min(x0 + 1, x[3] - 1);
                double fy = atY - static_cast<double>(y0), fx = atX - static_cast<double>(x0);
                terms[0] = (1 - fy) * (1 - fx) * image[y0 * x[3] + x0];
                terms[1] = (1 - fy) * fx * image[y0 * x[3] + x1];
                terms[2] = fy * (1 - fx) * image[y1 * x[3] + x0];
                terms[3] = fy * fx * image[y1 * x[3] + x1];
              }
              // The maximum is that of the weighted terms, as ONNX has it.
              double peak = *std::max_element(terms, terms + 4);
              largest = first ? peak : std::max(largest, peak);
              first = false;
              sum += terms[0] + terms[1] + terms[2] + terms[3];
            }
          y.push_back(mode == "avg" ? sum / static_cast<double>(std::max<int64_t>(gridX * gridY, 1))
                                    : largest);
        }
    }
  }
  return op.store(0, extents, y);
}

Status maxRoiPool(Invocation &op) {
  const Extents &x = op.shape(0), &rois = op.shape(1);
  Extents pooled = op.integers("pooled_shape").value_or(Extents());
  if (x.size() != 4 || rois.size() != 2 || rois[1] != 5 || pooled.size() != 2 || pooled[0] < 1 ||
      pooled[1] < 1)
    return op.bad("operands ", textOf(x), " and ", textOf(rois), " with pooled_shape ",
                  textOf(pooled));
  double scale = op.real("spatial_scale", 1);
  std::vector<double> values = op.numbers<double>(0), corners = op.numbers<double>(1), y;
  for (int64_t r = 0; r < rois[0]; ++r) {
    const double *roi = corners.data() + r * 5;
    if (!(roi[0] >= 0 && roi[0] < static_cast<double>(x[0])))
      return op.bad("batch index ", roi[0], " is outside [0, ", x[0] - 1, "]");
    constexpr double kFarthest = 1e15; // places beyond are no integers of 64 bits any more
    for (int i = 1; i < 5; ++i)
      if (!(std::fabs(roi[i] * scale) < kFarthest))
        return op.bad("a region with the corner ", roi[i]);
    double left = std::round(roi[1] * scale), top = std::round(roi[2] * scale);
    double binX =
        std::max(std::round(roi[3] * scale) - left + 1, 1.0) / static_cast<double>(pooled[1]);
    double binY =
        std::max(std::round(roi[4] * scale) - top + 1, 1.0) / static_cast<double>(pooled[0]);
    auto place = [](double at, int64_t extent) {
      return static_cast<int64_t>(std::clamp(at, 0.0, static_cast<double>(extent)));
    };
    for (int64_t c = 0; c < x[1]; ++c) {
      const double *image = values.data() + (static_cast<int64_t>(roi[0]) * x[1] + c) * x[2] * x[3];
      for (int64_t ph = 0; ph < pooled[0]; ++ph)
        for (int64_t pw = 0; pw < pooled[1]; ++pw) {
          int64_t y0 = place(std::floor(static_cast<double>(ph) * binY) + top, x[2]);
          int64_t y1 = place(std::ceil(static_cast<double>(ph + 1) * binY) + top, x[2]);
          int64_t x0 = place(std::floor(static_cast<double>(pw) * binX) + left, x[3]);
          int64_t x1 = place(std::ceil(static_cast<double>(pw + 1) * binX) + left, x[3]);
          // A bin without elements gives 0.
          double largest = y0 < y1 && x0 < x1 ? image[y0 * x[3] + x0] : 0;
          for (int64_t i = y0; i < y1; ++i)
            for (int64_t j = x0; j < x1; ++j)
              largest = std::max(largest, image[i * x[3] + j]);
          y.push_back(largest);
        }
    }
  }
  return op.store(0, {rois[0], x[1], pooled[0], pooled[1]}, y);
}

Status deformConv(Invocation &op) {
  TRY(op.needRank(0, 3));
  const Extents &x = op.shape(0), &w = op.shape(1);
  int64_t groups = op.integer("group", 1), offsetGroups = op.integer("offset_group", 1);
  if (w.size() != x.size() || groups < 1 || offsetGroups < 1 || w[1] * groups != x[1] ||
      w[0] % groups || x[1] % offsetGroups)
    return op.bad("weights ", textOf(w), " in ", groups, " groups do not fit an operand ",
                  textOf(x));
  Window window;
  TRY(planWindow(op, spatialOf(x), spatialOf(w), Slider::Convolution, window));
  auto rank = static_cast<int64_t>(window.rank());
  int64_t taps = productOf(window.kernel, 0, rank), outputs = productOf(window.output, 0, rank);
  int64_t inner = productOf(x, 2, op.rank(0));
  Extents extents = {x[0], w[0]}, offsets = {x[0], offsetGroups * taps * rank},
          masks = {x[0], offsetGroups * taps};
  for (Extents *list : {&extents, &offsets, &masks})
    list->insert(list->end(), window.output.begin(), window.output.end());
  if (op.shape(2) != offsets || (op.has(4) && op.shape(4) != masks) ||
      (op.has(3) && op.in(3).count() != w[0]))
    return op.bad("offsets ", textOf(op.shape(2)), ", bias or mask do not fit; offsets must be ",
                  textOf(offsets));
  std::vector<double> xs = op.numbers<double>(0), ws = op.numbers<double>(1),
                      shift = op.numbers<double>(2), bias, mask;
  if (op.has(3))
    bias = op.numbers<double>(3);
  if (op.has(4))
    mask = op.numbers<double>(4);
  std::vector<double> y(static_cast<size_t>(x[0] * w[0] * outputs), 0);
  int64_t groupChannels = w[1], groupResults = w[0] / groups;
  for (int64_t n = 0; n < x[0]; ++n)
    for (int64_t c = 0; c < x[1]; ++c) {
      Image image = {xs.data() + (n * x[1] + c) * inner, spatialOf(x), "zeros", true};
      int64_t offsetGroup = c / (x[1] / offsetGroups);
      forEachIndex(window.output, [&](int64_t p, const Extents &at) {
        forEachIndex(window.kernel, [&](int64_t tap, const Extents &k) {
          int64_t entry = (n * offsetGroups + offsetGroup) * taps + tap;
          std::vector<double> position;
          for (int64_t d = 0; d < rank; ++d) {
            auto i = static_cast<size_t>(d);
            double moved =
                static_cast<double>(window.start(i, at[i]) + k[i] * window.dilations[i]) +
                shift[static_cast<size_t>((entry * rank + d) * outputs + p)];
            position.push_back(moved > -1e15 && moved < 1e15 ? moved : -1e15);
          }
          double value = sample(image, "linear", position);
          value *= mask.empty() ? 1 : mask[static_cast<size_t>(entry * outputs + p)];
          for (int64_t m = 0; m < groupResults; ++m) {
            int64_t result = c / groupChannels * groupResults + m;
            y[static_cast<size_t>((n * w[0] + result) * outputs + p)] +=
                value *
                ws[static_cast<size_t>((result * groupChannels + c % groupChannels) * taps + tap)];
          }
        });
      });
    }
  for (size_t i = 0; i < y.size() && !bias.empty(); ++i)
    y[i] += bias[i / static_cast<size_t>(outputs) % bias.size()];
  return op.store(0, extents, y);
}

Status col2Im(Invocation &op) {
  Extents image, block;
  TRY(op.integerOperand(1, image));
  TRY(op.integerOperand(2, block));
  Window window;
  TRY(planWindow(op, image, block, Slider::Convolution, window));
  auto rank = static_cast<int64_t>(window.rank());
  int64_t taps = productOf(block, 0, rank), columns = productOf(window.output, 0, rank);
  int64_t inner = productOf(image, 0, rank);
  const Extents &x = op.shape(0);
  if (x.size() != 3 || x[1] % taps || x[2] != columns)
    return op.bad("columns ", textOf(x), " for blocks ", textOf(block), " of an image ",
                  textOf(image));
  int64_t images = x[0] * (x[1] / taps);
  std::vector<double> xs = op.numbers<double>(0), y(static_cast<size_t>(images * inner), 0);
  Extents strides = rowMajorStrides(image);
  forEachIndex(block, [&](int64_t tap, const Extents &k) {
    forEachIndex(window.output, [&](int64_t column, const Extents &at) {
      int64_t place = 0;
      for (size_t i = 0; i < k.size(); ++i) {
        int64_t index = window.start(i, at[i]) + k[i] * window.dilations[i];
        if (index < 0 || index >= image[i])
          return;
        place += index * strides[i];
      }
      for (int64_t m = 0; m < images; ++m)
        y[static_cast<size_t>(m * inner + place)] +=
            xs[static_cast<size_t>((m * taps + tap) * columns + column)];
    });
  });
  Extents extents = {x[0], x[1] / taps};
  extents.insert(extents.end(), image.begin(), image.end());
  return op.store(0, extents, y);
}

} // namespace dovetail::reference::ops
