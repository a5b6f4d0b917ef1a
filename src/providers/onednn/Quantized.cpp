// SPDX-License-Identifier: Apache-2.0
//
// Contractions of bytes: scales and zero points of a problem become attributes and run-time
// arguments of oneDNN, which computes (sum of (a - za) * (b - zb)) * sa * sb + bias, then the
// post-operations, then divides by the result's scale, adds its zero point, rounds to even and
// saturates. Sums are exact, so a result is the literal graph's up to one quantum. In 2.x scales
// and bias have another form, which OutputScales.cpp makes.
#include <algorithm>
#include <cstring>

#include "providers/onednn/Attempt.h"

namespace dovetail::onednn {
namespace {

/// Products of two bytes of which f32 holds any sum exactly: 255 * 255 * 258 < 2^24.
constexpr int64_t kExactTerms = 258;

bool isByte(dnnl_data_type_t type) { return type == dnnl_s8 || type == dnnl_u8; }

std::string nameOf(const Maker &maker) { return std::string(maker.op().name()); }

bool isConvolution(const Maker &maker) {
  return maker.op().name().find("conv") != std::string::npos;
}

/// Whether integers that are the result may be rounded: for all that comes after the sums of
/// products, such as zero points, the library brings them into f32, and convolutions always do. One
/// implementation of products does so, too, see isMisleading.
bool mayRoundSums(const Maker &maker, const View &source, const View &weights) {
  const bool isWhole = !isConvolution(maker) && maker.type(source) == dnnl_u8 &&
                       maker.type(weights) == dnnl_s8 &&
                       maker.isZero(maker.match.grids.at(source.value).zero) &&
                       maker.isZero(maker.match.grids.at(weights.value).zero);
  const int64_t terms = isConvolution(maker)
                            ? providers::product(weights.dims, 1, weights.dims.size())
                            : source.dims.back();
  return !isWhole && terms > kExactTerms;
}

} // namespace

bool Maker::isZero(uint32_t value) const {
  if (value == DVT_NO_VALUE)
    return true;
  std::optional<std::vector<double>> numbers = problem.literal(value);
  return numbers && std::all_of(numbers->begin(), numbers->end(), [](double n) { return n == 0; });
}

bool Maker::hasOrdinaryScale(const Grid &grid) const {
  if (grid.axis >= 0 || grid.scale == DVT_NO_VALUE || problem.type(grid.scale) != DVT_F32 ||
      !problem.isConstant(grid.scale) || providers::product(problem.extents(grid.scale)) != 1 ||
      (grid.zero != DVT_NO_VALUE && !problem.isConstant(grid.zero)))
    return false;
  // Where the number is not stated it is checked when the kernel is prepared.
  const std::optional<double> scale = problem.uniform(grid.scale);
  return !scale || (*scale > 1e-30 && *scale < 1e30);
}

bool Maker::readContraction(const View &source, const View &weights, const View &result,
                            int weightsAxis) {
  if (!isInt8()) {
    if (isOneFloatType({&source, &weights, &operand(2), &result}))
      return true;
    return refuse(nameOf(*this) +
                  ": operands of f32, f16 or bf16 are supported, or quantised ones");
  }
  const Grid *quantized =
      match.grids.count(weights.value) ? &match.grids.at(weights.value) : nullptr;
  if (quantized && match.grids.size() == 1 && !match.resultGrid && isByte(type(weights)) &&
      isConstant(weights) && isF32({&source, &operand(2), &result}) &&
      problem.isConstant(quantized->scale) &&
      (quantized->zero == DVT_NO_VALUE || problem.isConstant(quantized->zero))) {
    weightsValue = weights.value;
    widenWeights = true;
    return true;
  }
  const auto from = match.grids.find(source.value), by = match.grids.find(weights.value);
  if (from == match.grids.end() || by == match.grids.end() || from == by)
    return refuse(nameOf(*this) + ": both operands must be quantised, or none");
  sourceValue = source.value;
  weightsValue = weights.value;
  if (!isByte(type(source)) || !isByte(type(weights)))
    return refuse(nameOf(*this) + ": quantised operands of 8 bits are supported");
  flipWeights = type(weights) == dnnl_u8 && isConstant(weights);
  shiftWeights = type(weights) == dnnl_u8 && !flipWeights;
  if (shiftWeights && isConvolution(*this))
    return refuse(nameOf(*this) + ": weights can be u8 only where they are constant");
  if (kGeneration == 2 && shiftWeights)
    return refuse(nameOf(*this) + ": unsigned weights that are not constant are left to oneDNN 3");
  const dnnl_data_type_t to = type(result);
  if (match.resultGrid ? !isByte(to) : to != dnnl_f32 && to != dnnl_s32)
    return refuse(nameOf(*this) + ": results of this type are not supported");
  if (to == dnnl_s32 && mayRoundSums(*this, source, weights))
    return refuse(nameOf(*this) + ": integer results of more than " + std::to_string(kExactTerms) +
                  " products pass through f32 and are supported without zero points only");
  if (operand(2).isPresent() && type(operand(2)) != (match.integerBias ? dnnl_s32 : dnnl_f32))
    return refuse(nameOf(*this) + ": a bias of this type is not supported");
  if (from->second.axis >= 0)
    return refuse(nameOf(*this) + ": the first operand must have one scale and zero point");
  if (by->second.axis >= 0 && by->second.axis != weightsAxis)
    return refuse(nameOf(*this) + ": scales of the second operand must differ by result channel");
  const uint32_t zero = by->second.zero;
  if (zero != DVT_NO_VALUE && !isZero(zero) &&
      (providers::product(problem.extents(zero)) != 1 || !problem.isConstant(zero)))
    return refuse(nameOf(*this) + ": the second operand must have one constant zero point");
  auto isFloat = [&](uint32_t value) {
    return value == DVT_NO_VALUE || problem.type(value) == DVT_F32;
  };
  if (!isFloat(from->second.scale) || !isFloat(by->second.scale) ||
      (match.resultGrid && !isFloat(match.resultGrid->scale)))
    return refuse(nameOf(*this) + ": scales of f32 are supported");
  if (match.resultGrid && !hasOrdinaryScale(*match.resultGrid))
    return refuse(nameOf(*this) + ": the result's scale must be a constant of ordinary size");
  return true;
}

bool Maker::addGrids(const Attributes &attributes, int weightsMask, int resultMask,
                     std::vector<Argument> &arguments) const {
  if (!isInt8())
    return true;
  if (usesOutputScales() && !addOutputScales(attributes, resultMask))
    return false;
  auto count = [&](uint32_t value) { return providers::product(problem.extents(value)); };
  auto add = [&](int argument, const Grid &grid, int mask, double shift) {
    if (grid.scale != DVT_NO_VALUE && !usesOutputScales()) {
      const int64_t scales = count(grid.scale);
      if (library.primitive_attr_set_scales_mask(attributes.get(), argument,
                                                 scales == 1 ? 0 : mask) != dnnl_success)
        return false;
      arguments.push_back({DNNL_ARG_ATTR_SCALES | argument,
                           {},
                           -1,
                           {dnnl_f32, scales, 0, {{1, grid.scale}}, 1},
                           false});
    }
    if (isZero(grid.zero) && shift == 0)
      return true;
    if (library.primitive_attr_set_zero_points_mask(attributes.get(), argument, 0) != dnnl_success)
      return false;
    arguments.push_back({DNNL_ARG_ATTR_ZERO_POINTS | argument,
                         {},
                         -1,
                         grid.zero == DVT_NO_VALUE
                             ? Derived{dnnl_s32, 1, shift, {}, 1}
                             : Derived{dnnl_s32, 1, shift, {{1, grid.zero}}, 1},
                         false});
    return true;
  };
  // Bytes of u8 lose 128, and so does their zero point, which may be 0 by that.
  Grid weights = match.grids.at(weightsValue);
  const bool isUnsigned = flipWeights || shiftWeights;
  double shift = isUnsigned ? -128 : 0;
  if (isUnsigned && weights.zero != DVT_NO_VALUE && problem.uniform(weights.zero) == 128) {
    weights.zero = DVT_NO_VALUE;
    shift = 0;
  }
  return add(DNNL_ARG_SRC, match.grids.at(sourceValue), 0, 0) &&
         add(DNNL_ARG_WEIGHTS, weights, weightsMask, shift) &&
         (!match.resultGrid || add(DNNL_ARG_DST, *match.resultGrid, 0, 0));
}

bool Maker::addShift(const View &weights, const Desc &to, Attempt &attempt) const {
  std::vector<Argument> arguments{{DNNL_ARG_FROM, weights, -1}, {DNNL_ARG_TO, {}, 0}};
  const Desc from = plain(weights);
  const Attributes shifting = attributes({}, Style::RowMajor, arguments);
  if (!from || !shifting ||
      library.primitive_attr_set_zero_points_mask(shifting.get(), DNNL_ARG_FROM, 0) != dnnl_success)
    return false;
  arguments.push_back(
      {DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_FROM, {}, -1, {dnnl_s32, 1, 128, {}, 1}, false});
  dnnl_primitive_desc_t made = nullptr;
  if (library.reorder_primitive_desc_create(&made, from.get(), library.engine, to.get(),
                                            library.engine, shifting.get()) != dnnl_success)
    return false;
  attempt.stages.push_back({PrimitiveDesc(library, made), std::move(arguments)});
  return true;
}

Argument Maker::weightsArgument(const View &weights) const {
  if (shiftWeights)
    return {DNNL_ARG_WEIGHTS, {}, 0};
  return {DNNL_ARG_WEIGHTS, weights, -1, {}, flipWeights, widenWeights};
}

Argument Maker::biasArgument(const View &bias) const {
  if (usesOutputScales())
    return outputBiasArgument(bias);
  if (!match.integerBias)
    return {DNNL_ARG_BIAS, bias, -1};
  return {DNNL_ARG_BIAS,
          {},
          -1,
          {dnnl_f32,
           providers::product(bias.dims),
           0,
           {{1, bias.value, match.grids.at(sourceValue).scale, match.grids.at(weightsValue).scale}},
           1},
          false};
}

Desc Maker::biasDesc(const View &bias) const {
  const bool scalesIt = match.integerBias && !usesOutputScales();
  return Desc::strided(library, scalesIt ? dnnl_f32 : type(bias), bias.dims, bias.strides);
}

std::optional<std::vector<double>> numbersOf(const ProblemReader &problem, uint32_t value,
                                             const dvt_prepare_args *args) {
  const int32_t input = problem.inputPosition(value);
  if (input < 0)
    return problem.literal(value);
  const void *bytes = args && args->constants ? args->constants[input] : nullptr;
  if (!bytes)
    return std::nullopt;
  std::vector<double> numbers(static_cast<size_t>(providers::product(problem.extents(value))));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = providers::elementAsDouble(bytes, problem.type(value), i);
  return numbers;
}

bool maySaturate(const Library &library, const std::string &implementation,
                 const dvt_target &target) {
  auto has = [&](const char *part) { return implementation.find(part) != std::string::npos; };
  const bool hasVnni =
      target.features && std::strstr(target.features, "vnni") && library.sumsBytesIn32Bits();
  if (has("vnni") || has("amx"))
    return false;
  if (has("sse41") || has("avx"))
    return !has("avx512_core_bf16") && !has("avx512_core_fp16"); // these include VNNI
  return !hasVnni && !has("ref");
}

} // namespace dovetail::onednn
