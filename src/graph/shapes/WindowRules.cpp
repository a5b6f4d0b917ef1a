// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and pools: every spatial extent follows from kernel, stride, dilation and padding.
// Where auto_pad is still there the padding follows from the extents.
#include "graph/shapes/ShapeRules.h"

namespace dovetail::graph {
namespace {

/// Beyond this nothing in a window makes sense, and below it no sum or product of two leaves 64
/// bits.
constexpr int64_t kMost = int64_t(1) << 30;

struct Window {
  std::vector<int64_t> kernel, strides, dilations, begin, end;
  std::string autoPad;
};

/// Reads the attributes for `spatial` dimensions; `kernel` is what they default to.
Expected<Window> readWindow(const InferContext &c, size_t spatial,
                            std::optional<std::vector<int64_t>> kernel) {
  Window window;
  auto read = [&](std::string_view name, int64_t fallback) {
    return c.list(name).value_or(std::vector<int64_t>(spatial, fallback));
  };
  std::optional<std::vector<int64_t>> stated = c.list("kernel_shape");
  if (stated && kernel && *stated != *kernel)
    return c.fail("kernel_shape differs from the weights' extents");
  if (!stated && !kernel)
    return c.fail("kernel_shape is not given and the weights' extents are not static");
  window.kernel = stated ? *stated : *kernel;
  window.strides = read("strides", 1);
  window.dilations = read("dilations", 1);
  window.autoPad = c.text("auto_pad", "NOTSET");
  std::vector<int64_t> pads = c.list("pads").value_or(std::vector<int64_t>(2 * spatial, 0));
  if (window.kernel.size() != spatial || window.strides.size() != spatial ||
      window.dilations.size() != spatial || pads.size() != 2 * spatial)
    return c.fail("kernel_shape, strides, dilations or pads do not fit {} spatial dimensions",
                  spatial);
  window.begin.assign(pads.begin(), pads.begin() + spatial);
  window.end.assign(pads.begin() + spatial, pads.end());
  for (size_t d = 0; d < spatial; ++d)
    for (int64_t extent : {window.kernel[d], window.strides[d], window.dilations[d]})
      if (extent < 1 || extent > kMost)
        return c.fail("kernel_shape, strides and dilations must lie in [1, {}], {} was found",
                      kMost, extent);
  for (int64_t pad : pads)
    if (pad < -kMost || pad > kMost)
      return c.fail("pads must lie in [{}, {}], {} was found", -kMost, kMost, pad);
  return window;
}

/// What slides over the image: pools count a last window that lies on it in part, convolutions do
/// not.
enum class Slider { Convolution, Pool, CeilingPool };

Expected<Extent> slid(const InferContext &c, const Window &window, size_t d, const Extent &extent,
                      Slider slider) {
  int64_t stride = window.strides[d];
  int64_t reach = window.dilations[d] * (window.kernel[d] - 1) + 1;
  if (window.autoPad == "SAME_UPPER" || window.autoPad == "SAME_LOWER")
    return Extent::ceilDiv(extent, stride);
  Extent padded = extent;
  int64_t begin = 0, end = 0;
  if (window.autoPad != "VALID") {
    begin = window.begin[d];
    end = window.end[d];
    padded = padded + (begin + end);
  }
  // ONNX's text lets a pool whose window is larger than its image by less than a stride have no
  // place at all; its shape inference (and with it ONNX Runtime) rounds towards zero, which leaves
  // one, on what there is of the image. Models were written against the latter.
  bool pool = slider != Slider::Convolution;
  Status fits = c.needAtLeast(padded, pool ? reach - stride + 1 : reach,
                              fmt::format("the padded image along axis {}", d + 2));
  if (!fits)
    return fits.takeError();
  if (slider != Slider::CeilingPool) {
    Extent count = Extent::floorDiv(padded - reach, stride) + 1;
    return pool ? c.most(count, 1) : count;
  }
  Extent count = Extent::ceilDiv(padded - reach, stride) + 1;
  // Windows that would start in the padding behind are left out.
  if (end + stride <= reach)
    return count;
  return c.least(count, Extent::ceilDiv(extent + begin, stride));
}

std::optional<std::vector<int64_t>> staticTail(const Shape &shape, size_t from) {
  std::vector<int64_t> result;
  for (size_t d = from; d < shape.size(); ++d) {
    if (!shape[d].isStatic())
      return std::nullopt;
    result.push_back(shape[d].value());
  }
  return result;
}

/// Convolution of operand `x` with the weights `w`.
Status convolve(InferContext &c, size_t x, size_t w, dvt_type type) {
  if (Status status = c.needRankAtLeast(x, 3); !status)
    return status;
  if (Status status = c.needRank(w, c.rank(x)); !status)
    return status;
  const Shape &image = c.shape(x), &weights = c.shape(w);
  size_t spatial = image.size() - 2;
  Expected<Window> window = readWindow(c, spatial, staticTail(weights, 2));
  if (!window)
    return window.takeError();
  int64_t group = c.integer("group", 1);
  if (group < 1)
    return c.fail("group is {}, expected at least 1", group);
  if (Status status = c.needEqual(image[1], weights[1] * group, "channels of image and weights");
      !status)
    return status;
  if (weights[0].isStatic() && weights[0].value() % group)
    return c.fail("{} output channels are no multiple of group {}", weights[0].value(), group);
  Shape shape{image[0], weights[0]};
  for (size_t d = 0; d < spatial; ++d) {
    Expected<Extent> extent = slid(c, *window, d, image[d + 2], Slider::Convolution);
    if (!extent)
      return extent.takeError();
    shape.push_back(*extent);
  }
  c.result(0, type, std::move(shape));
  return Status::success();
}

Status conv(InferContext &c) {
  if (c.has(2) && c.rank(1) > 0)
    if (Status status = c.needEqual(elementCount(c.shape(2)), c.shape(1)[0], "bias and channels");
        !status)
      return status;
  return convolve(c, 0, 1, c.type(0));
}
Status convInteger(InferContext &c) { return convolve(c, 0, 1, DVT_I32); }
Status qLinearConv(InferContext &c) {
  if (Status status = checkScales(c, 6); !status)
    return status;
  return convolve(c, 0, 3, c.type(7));
}

Status convTranspose(InferContext &c) {
  if (Status status = c.needRankAtLeast(0, 3); !status)
    return status;
  if (Status status = c.needRank(1, c.rank(0)); !status)
    return status;
  const Shape &image = c.shape(0), &weights = c.shape(1);
  size_t spatial = image.size() - 2;
  Expected<Window> window = readWindow(c, spatial, staticTail(weights, 2));
  if (!window)
    return window.takeError();
  if (Status status = c.needEqual(image[1], weights[0], "channels of image and weights"); !status)
    return status;
  std::vector<int64_t> extra = c.list("output_padding").value_or(std::vector<int64_t>(spatial, 0));
  std::optional<std::vector<int64_t>> stated = c.list("output_shape");
  if (extra.size() != spatial || (stated && stated->size() != spatial))
    return c.fail("output_padding or output_shape do not fit {} spatial dimensions", spatial);
  for (int64_t padding : extra)
    if (padding < 0 || padding > kMost)
      return c.fail("output_padding must lie in [0, {}], {} was found", kMost, padding);
  if (c.has(2))
    if (Status status = c.needEqual(elementCount(c.shape(2)), weights[1] * c.integer("group", 1),
                                    "bias and channels");
        !status)
      return status;
  bool same = window->autoPad == "SAME_UPPER" || window->autoPad == "SAME_LOWER";
  bool valid = window->autoPad == "VALID";
  Shape shape{image[0], weights[1] * c.integer("group", 1)};
  for (size_t d = 0; d < spatial; ++d) {
    int64_t reach = window->dilations[d] * (window->kernel[d] - 1) + 1;
    int64_t padding = valid ? 0 : window->begin[d] + window->end[d];
    if (stated)
      shape.push_back((*stated)[d]);
    else if (same)
      shape.push_back(image[d + 2] * window->strides[d]);
    else
      shape.push_back((image[d + 2] - 1) * window->strides[d] + (extra[d] + reach - padding));
    if (Status status = c.needAtLeast(shape.back(), 0, fmt::format("axis {} of the result", d + 2));
        !status)
      return status;
  }
  c.result(0, c.type(0), std::move(shape));
  return Status::success();
}

Status pool(InferContext &c) {
  if (Status status = c.needRankAtLeast(0, 3); !status)
    return status;
  const Shape &image = c.shape(0);
  Expected<Window> window = readWindow(c, image.size() - 2, std::nullopt);
  if (!window)
    return window.takeError();
  Shape shape{image[0], image[1]};
  for (size_t d = 0; d + 2 < image.size(); ++d) {
    Expected<Extent> extent =
        slid(c, *window, d, image[d + 2],
             c.integer("ceil_mode", 0) != 0 ? Slider::CeilingPool : Slider::Pool);
    if (!extent)
      return extent.takeError();
    shape.push_back(*extent);
  }
  c.result(1, DVT_I64, shape);
  c.result(0, c.type(0), std::move(shape));
  return Status::success();
}

Status globalPool(InferContext &c) {
  if (Status status = c.needRankAtLeast(0, 2); !status)
    return status;
  Shape shape(c.rank(0), 1);
  shape[0] = c.shape(0)[0];
  shape[1] = c.shape(0)[1];
  c.result(0, c.type(0), std::move(shape));
  return Status::success();
}

Status unpool(InferContext &c) {
  if (Status status = c.needRankAtLeast(0, 3); !status)
    return status;
  const Shape &image = c.shape(0);
  if (c.has(2)) {
    std::optional<Elements> stated = c.elements(2);
    if (!stated || stated->size() != image.size())
      return c.fail("output_shape is not known when compiling, which is not supported");
    Shape shape;
    for (size_t d = 0; d < image.size(); ++d)
      shape.push_back((*stated)[d] ? *(*stated)[d] : c.fresh(0, d));
    c.result(0, c.type(0), std::move(shape));
    return Status::success();
  }
  Expected<Window> window = readWindow(c, image.size() - 2, std::nullopt);
  if (!window)
    return window.takeError();
  Shape shape{image[0], image[1]};
  for (size_t d = 0; d + 2 < image.size(); ++d)
    shape.push_back((image[d + 2] - 1) * window->strides[d] +
                    (window->kernel[d] - window->begin[d] - window->end[d]));
  c.result(0, c.type(0), std::move(shape));
  return Status::success();
}

Status roi(InferContext &c) {
  if (Status status = c.needRank(0, 4); !status)
    return status;
  if (Status status = c.needRank(1, 2); !status)
    return status;
  std::vector<int64_t> extents = c.list("pooled_shape")
                                     .value_or(std::vector<int64_t>{c.integer("output_height", 1),
                                                                    c.integer("output_width", 1)});
  if (extents.size() != 2)
    return c.fail("pooled_shape has {} numbers, expected 2", extents.size());
  c.result(0, c.type(0), {c.shape(1)[0], c.shape(0)[1], extents[0], extents[1]});
  return Status::success();
}

} // namespace

void addWindowRules(ShapeRules &rules) {
  rules["conv"] = conv;
  rules["conv_integer"] = convInteger;
  rules["q_linear_conv"] = qLinearConv;
  rules["deform_conv"] = [](InferContext &c) { return convolve(c, 0, 1, c.type(0)); };
  rules["conv_transpose"] = convTranspose;
  for (const char *name : {"max_pool", "average_pool", "lp_pool"})
    rules[name] = pool;
  for (const char *name : {"global_max_pool", "global_average_pool", "global_lp_pool"})
    rules[name] = globalPool;
  rules["max_unpool"] = unpool;
  rules["max_roi_pool"] = roi;
  rules["roi_align"] = roi;
}

} // namespace dovetail::graph
