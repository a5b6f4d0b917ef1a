// SPDX-License-Identifier: Apache-2.0
//
// Resize. oneDNN has one coordinate rule, half-pixel; ONNX has many, which agree with it for some
// extents and not for others. So both maps are computed for every output coordinate, and the op is
// taken only where they are the same.
#include <algorithm>
#include <cmath>

#include "providers/onednn/Attempt.h"

namespace dovetail::onednn {
namespace {

/// One resized dimension as ONNX defines it.
struct Axis {
  int64_t in, out;
  double scale;
};

/// ONNX operator documentation, Resize: x_original for x_resized.
std::optional<double> onnxCoordinate(const std::string &mode, const Axis &a, int64_t x) {
  const double position = static_cast<double>(x);
  if (mode == "half_pixel")
    return (position + 0.5) / a.scale - 0.5;
  if (mode == "pytorch_half_pixel")
    return a.out > 1 ? (position + 0.5) / a.scale - 0.5 : 0;
  if (mode == "asymmetric")
    return position / a.scale;
  if (mode == "align_corners")
    return a.out > 1 ? position * static_cast<double>(a.in - 1) / static_cast<double>(a.out - 1)
                     : 0;
  if (mode == "half_pixel_symmetric") {
    const double center = static_cast<double>(a.in) / 2;
    const double adjustment = static_cast<double>(a.out) / (a.scale * static_cast<double>(a.in));
    return center * (1 - adjustment) + (position + 0.5) / a.scale - 0.5;
  }
  return std::nullopt;
}

double clampTo(double x, int64_t extent) {
  return std::clamp(x, 0.0, static_cast<double>(extent - 1));
}

/// Rounded index; nothing where rounding errors could decide.
std::optional<double> rounded(const std::string &rule, double x) {
  const double twice = 2 * x, nearest = std::round(twice);
  const bool exactTie = twice == nearest;
  if (std::abs(twice - nearest) < 1e-4 && !exactTie)
    return std::nullopt;
  if (rule == "round_prefer_floor")
    return std::ceil(x - 0.5);
  if (rule == "round_prefer_ceil")
    return std::floor(x + 0.5);
  return rule == "floor"  ? std::floor(x)
         : rule == "ceil" ? std::optional(std::ceil(x))
                          : std::nullopt;
}

bool agrees(const std::string &mode, const std::string &coordinates, const std::string &rule,
            const Axis &axis) {
  if (axis.out > (int64_t{1} << 22))
    return false;
  for (int64_t x = 0; x < axis.out; ++x) {
    std::optional<double> theirs = onnxCoordinate(coordinates, axis, x);
    if (!theirs)
      return false;
    const double ours = (static_cast<double>(x) + 0.5) * static_cast<double>(axis.in) /
                            static_cast<double>(axis.out) -
                        0.5;
    if (mode == "linear") {
      if (std::abs(clampTo(*theirs, axis.in) - clampTo(ours, axis.in)) >
          1e-6 * static_cast<double>(axis.in))
        return false;
      continue;
    }
    std::optional<double> picked = rounded(rule, *theirs);
    // oneDNN rounds halves away from zero in single precision: stay clear of them.
    if (!picked || std::abs(ours - std::floor(ours) - 0.5) < 1e-4 ||
        clampTo(*picked, axis.in) != clampTo(std::round(ours), axis.in))
      return false;
  }
  return true;
}

/// Scale of every dimension; nothing where it is not known when compiling. Constant scales that are
/// not part of the problem are taken for the ratio of the extents, and `maker` notes to have that
/// checked.
std::optional<std::vector<double>> readScales(Maker &maker, const OpReader &op, const Dims &in,
                                              const Dims &out) {
  const ProblemReader &problem = maker.problem;
  std::vector<double> scales(in.size(), 1);
  std::vector<double> given;
  bool assumes = false;
  if (op.hasInput(2)) {
    std::optional<std::vector<double>> literal = problem.literal(op.input(2));
    if (literal)
      given = *literal;
    else if (!problem.isConstant(op.input(2)) || problem.type(op.input(2)) != DVT_F32)
      return std::nullopt;
    assumes = !literal && problem.extents(op.input(2)) != Dims{0};
  }
  if (given.empty()) {
    for (size_t i = 0; i < in.size(); ++i)
      scales[i] = static_cast<double>(out[i]) / static_cast<double>(in[i]);
    if (!assumes)
      return scales;
  }
  Dims every(in.size());
  for (size_t i = 0; i < every.size(); ++i)
    every[i] = static_cast<int64_t>(i);
  const Dims axes = op.integers("axes", every);
  if (assumes) {
    if (problem.extents(op.input(2)) != Dims{static_cast<int64_t>(axes.size())})
      return std::nullopt;
    std::vector<double> expected;
    for (int64_t axis : axes) {
      axis += axis < 0 ? static_cast<int64_t>(in.size()) : 0;
      if (axis < 0 || axis >= static_cast<int64_t>(in.size()))
        return std::nullopt;
      expected.push_back(scales[static_cast<size_t>(axis)]);
    }
    maker.assumed.emplace_back(op.input(2), expected);
    return scales;
  }
  if (axes.size() != given.size())
    return std::nullopt;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = axes[i] + (axes[i] < 0 ? static_cast<int64_t>(in.size()) : 0);
    if (axis < 0 || axis >= static_cast<int64_t>(in.size()) || given[i] <= 0)
      return std::nullopt;
    scales[static_cast<size_t>(axis)] = given[i];
  }
  return scales;
}

} // namespace

bool makeResampling(Maker &maker) {
  const Library &library = maker.library;
  const OpReader op = maker.op();
  const View &source = maker.operand(0), &result = maker.match.result;
  const std::string mode = op.string("mode", "nearest"),
                    coordinates = op.string("coordinate_transformation_mode", "half_pixel"),
                    rule = op.string("nearest_mode", "round_prefer_floor");
  const size_t rank = source.dims.size();
  if (op.version() < 11 || (mode != "nearest" && mode != "linear") ||
      op.integer("antialias", 0) != 0 || op.integer("exclude_outside", 0) != 0)
    return maker.refuse(
        "resize: nearest and linear from op set 11 on, without antialiasing, are supported");
  if (rank < 3 || rank > 5 || result.dims.size() != rank || source.dims[0] != result.dims[0] ||
      source.dims[1] != result.dims[1])
    return maker.refuse("resize: one to three spatial dimensions are supported");
  if (!maker.isOneFloatType({&source, &result}))
    return maker.refuse("resize: f32, f16 and bf16 are supported");
  const std::optional<std::vector<double>> scales = readScales(maker, op, source.dims, result.dims);
  if (!scales)
    return maker.refuse("resize: scales must be known when compiling");
  // Of a scale that is not 1, or a crop, the extents may be the same and the elements others.
  const bool crops = coordinates == "tf_crop_and_resize";
  for (size_t i = 0; i < rank; ++i)
    if ((crops || source.dims[i] != result.dims[i] || (*scales)[i] != 1) &&
        !agrees(mode, coordinates, rule, {source.dims[i], result.dims[i], (*scales)[i]}))
      return maker.refuse("resize: " + coordinates + " (" + (mode == "nearest" ? rule : mode) +
                          ") differs from this library's half-pixel rule for " +
                          std::to_string(source.dims[i]) + " to " + std::to_string(result.dims[i]));
  for (Style style : maker.propagatingStyles(source)) {
    std::vector<Argument> arguments{{DNNL_ARG_SRC, source, -1}, {DNNL_ARG_DST, result, -1}};
    const Attributes attributes = maker.attributes(maker.match.postOps, style, arguments);
    const Desc from = maker.styled(source, style), to = maker.styled(result, style);
    if (!from || !to || !attributes)
      continue;
    dnnl_primitive_desc_t made = nullptr;
    dnnl_status_t status = library.resampling_forward_primitive_desc_create(
        &made, library.engine, dnnl_forward_inference,
        mode == "nearest" ? dnnl_resampling_nearest : dnnl_resampling_linear, nullptr, from.get(),
        to.get(), attributes.get());
    maker.offer("resampling", status, made, std::move(arguments));
  }
  return true;
}

} // namespace dovetail::onednn
