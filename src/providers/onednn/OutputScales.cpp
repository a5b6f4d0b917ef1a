// SPDX-License-Identifier: Apache-2.0
//
// Contractions of bytes in oneDNN 2.x, which know one scale for each channel of the result and add
// the bias before it: post-operations((sum + bias) * scale) + zero point. So the scale is the
// product of the operands' scales, the bias is divided by it, and the result's scale is a step of
// its own behind the others, or goes into steps before it and into the scale where these let a
// positive factor pass. Convolutions of 2.x take scales as numbers only, not at run time, so a
// primitive belongs to the constants it was made of.
#include <algorithm>
#include <cmath>

#include "providers/onednn/Attempt.h"

namespace dovetail::onednn {
namespace {

/// For scales that are not known while proposing: neither 0 nor 1, which would be none.
constexpr double kStandIn = 0.75;

/// A channel's scale is at least this part of its bias, and at least kLeastScale where it has one:
/// what a sum below 2^31 then adds is less than f32 tells from the bias, and their ratio is finite.
constexpr double kLeastPart = 1e-30, kLeastScale = 1e-37;

/// Numbers of a constant, or what stands in for them; 1 where there is none.
std::optional<std::vector<double>> numbersFor(const Maker &maker, uint32_t value) {
  if (value == DVT_NO_VALUE)
    return std::vector<double>{1};
  if (!maker.prepareArgs && !maker.problem.isLiteral(value))
    return std::vector<double>(
        static_cast<size_t>(providers::product(maker.problem.extents(value))), kStandIn);
  return numbersOf(maker.problem, value, maker.prepareArgs);
}

bool isLinear(const PostOp &step) {
  return step.kind == PostOp::Kind::Eltwise && step.algorithm == dnnl_eltwise_linear;
}

/// A step that combines every element with one number of the problem by `algorithm`.
bool isNumber(const PostOp &step, dnnl_alg_kind_t algorithm) {
  return step.kind == PostOp::Kind::Binary && step.algorithm == algorithm &&
         step.derived.terms.size() == 1 && step.derived.shift == 0;
}

/// Makes a step give `factor` times as much for `factor` times as much; false where none does.
bool letPass(PostOp &step, double factor) {
  if (step.kind != PostOp::Kind::Eltwise)
    return false;
  if (step.algorithm == dnnl_eltwise_clip) {
    step.alpha = static_cast<float>(step.alpha * factor);
    step.beta = static_cast<float>(step.beta * factor);
    return true;
  }
  return step.algorithm == dnnl_eltwise_relu || step.algorithm == dnnl_eltwise_abs;
}

/// Divides what the steps give by `scale`, whose value is `value`. True where what they are given
/// is to be divided instead.
bool divideResult(std::vector<PostOp> &steps, double scale, uint32_t value) {
  for (size_t at = steps.size(); at > 0; --at) {
    PostOp &step = steps[at - 1];
    if (isLinear(step)) {
      step.alpha = static_cast<float>(step.alpha / scale);
      step.beta = static_cast<float>(step.beta / scale);
      return false;
    }
    if (isNumber(step, dnnl_binary_mul) && step.derived.terms[0].divisor == DVT_NO_VALUE) {
      step.derived.terms[0].divisor = value;
      return false;
    }
    if (letPass(step, 1 / scale))
      continue;
    PostOp last{PostOp::Kind::Eltwise, dnnl_eltwise_linear, static_cast<float>(1 / scale), 0, {}};
    if (std::any_of(steps.begin(), steps.end(), isLinear)) // 2.6 has one of a kind
      last = numberStep(dnnl_binary_mul, {{1, DVT_NO_VALUE, DVT_NO_VALUE, DVT_NO_VALUE, value}});
    steps.insert(steps.begin() + static_cast<ptrdiff_t>(at), last);
    return false;
  }
  return true;
}

bool isOrdinary(double scale) { return scale > 1e-30 && scale < 1e30; }

/// first * second for each channel, or once for all, and no smaller than `shifts` allow: none or
/// one for each channel.
std::vector<double> productsBeside(double first, const std::vector<double> &second,
                                   const std::vector<double> &shifts) {
  std::vector<double> products(second.size());
  for (size_t i = 0; i < products.size(); ++i)
    products[i] = first * second[i];
  for (size_t i = 0; i < shifts.size(); ++i) {
    double &product = products[products.size() == 1 ? 0 : i];
    if (const double shift = std::abs(shifts[i]); shift > 0)
      product =
          std::copysign(std::max({std::abs(product), shift * kLeastPart, kLeastScale}), product);
  }
  return products;
}

/// As f32; nothing where one is no finite number.
std::optional<std::vector<float>> asFloats(const std::vector<double> &numbers) {
  std::vector<float> floats;
  for (double number : numbers)
    floats.push_back(static_cast<float>(number));
  return std::all_of(floats.begin(), floats.end(), [](float f) { return std::isfinite(f); })
             ? std::optional(std::move(floats))
             : std::nullopt;
}

} // namespace

bool Maker::settleScales(const std::optional<View> &bias, int64_t channels,
                         std::vector<PostOp> &postOps) {
  if (!usesOutputScales())
    return true;
  const std::string name(op().name());
  // An integer bias is in units of the sum.
  const uint32_t offset = bias && !match.integerBias ? bias->value : DVT_NO_VALUE,
                 first = match.grids.at(sourceValue).scale,
                 second = match.grids.at(weightsValue).scale,
                 last = match.resultGrid ? match.resultGrid->scale : DVT_NO_VALUE;
  // A factor in front goes into the scale.
  uint32_t before = DVT_NO_VALUE;
  double factor = 1;
  if (!postOps.empty() && isNumber(postOps[0], dnnl_binary_div)) {
    before = postOps[0].derived.terms[0].base;
    postOps.erase(postOps.begin());
  } else if (!postOps.empty() && isLinear(postOps[0]) && postOps[0].beta == 0) {
    factor = postOps[0].alpha;
    postOps.erase(postOps.begin());
  }
  for (uint32_t value : {offset, first, second, last, before}) {
    if (value == DVT_NO_VALUE)
      continue;
    if (!problem.isConstant(value))
      return refuse(name + ": scales and a bias that are not constant are left to oneDNN 3");
    ownsNumbers |= !problem.isLiteral(value);
  }
  const auto left = numbersFor(*this, first), right = numbersFor(*this, second),
             to = numbersFor(*this, last), divisor = numbersFor(*this, before);
  auto shifts = offset == DVT_NO_VALUE ? std::vector<double>() : numbersFor(*this, offset);
  if (!left || !right || !to || !divisor || !shifts)
    return refuse(name + ": scales or a bias came without bytes");
  const auto count = static_cast<size_t>(channels);
  if (left->size() != 1 || (right->size() != 1 && right->size() != count) ||
      (!shifts->empty() && shifts->size() != count))
    return refuse(name + ": scales or a bias of another number than channels");
  if (!isOrdinary((*to)[0]) || !isOrdinary((*divisor)[0]))
    return refuse(name + ": a result's scale must be a constant of ordinary size");
  const bool passes = !match.resultGrid || divideResult(postOps, (*to)[0], last);
  std::vector<double> scales = productsBeside((*left)[0], *right, *shifts);
  for (size_t i = 0; i < shifts->size(); ++i)
    if (double &shift = (*shifts)[i]; shift != 0)
      shift /= scales[scales.size() == 1 ? 0 : i];
  for (double &scale : scales)
    scale *= factor / ((passes ? (*to)[0] : 1) * (*divisor)[0]);
  std::optional<std::vector<float>> narrowScales = asFloats(scales), narrowBias = asFloats(*shifts);
  if (!narrowScales || !narrowBias)
    return refuse(name + ": scales or a bias are no finite numbers");
  outputScales = std::move(*narrowScales);
  outputBias = std::move(*narrowBias);
  return true;
}

bool Maker::addOutputScales(const Attributes &attributes, int resultMask) const {
  if (outputScales.size() == 1 && outputScales[0] == 1)
    return true;
  return library.primitive_attr_set_output_scales(
             attributes.get(), static_cast<dnnl_dim_t>(outputScales.size()),
             outputScales.size() == 1 ? 0 : resultMask, outputScales.data()) == dnnl_success;
}

Argument Maker::outputBiasArgument(const View &bias) const {
  Argument argument{DNNL_ARG_BIAS, bias, -1};
  if (match.integerBias)
    return argument;
  argument.view = {};
  argument.assembled = std::make_shared<Assembled>(
      Assembled{{},
                bias.dims,
                providers::denseStrides(bias.dims),
                [numbers = outputBias](const std::vector<const float *> &) { return numbers; }});
  return argument;
}

} // namespace dovetail::onednn
