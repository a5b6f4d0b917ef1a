// SPDX-License-Identifier: Apache-2.0
//
// Reads what is quantised how from a problem; see the header.
#include "codegen/schedule/contraction/BlockMatMul.h"

#include <algorithm>

namespace dovetail::codegen {
namespace {

/// Dimension of the weights that runs along the depth, and the one along the columns.
struct Dimensions {
  unsigned depth, column;
};

std::optional<Dimensions> dimensionsOf(const ProblemReader &problem, const MatMul &m) {
  std::optional<Fusion::Operand> right = m.fusion.operand(problem, 1);
  if (!right || right->order.size() != 2 || m.columnDimension < 0)
    return std::nullopt;
  const dvt_op &op = problem.op(m.fusion.anchor);
  bool turned = std::string_view(op.name) == "gemm" && ProblemReader::integer(op, "transB", 0) != 0;
  return Dimensions{right->order[turned], right->order[!turned]};
}

/// Strides of a parameter of the given extents. BadInput where blocks run along the columns or the
/// extents fit nothing.
Expected<BlockParameter> parameter(const ProblemReader &problem, const BlockMatMul &m,
                                   Dimensions dimensions, uint32_t value, const char *what) {
  BlockParameter result;
  const dvt_value &given = problem.value(value);
  if (std::optional<double> all = problem.uniformLiteral(value)) {
    result.all = *all;
    return result;
  }
  if (!ProblemReader::isStatic(given) || (problem.inputOf(value) < 0 && !given.literal))
    return badInput("{} {} whose elements are not there when packing", what, valueText(given));
  result.value = value;
  int64_t count = ProblemReader::elements(given);
  if (count == 1)
    return result;
  if (given.rank == 1 && given.extents[0].value == m.columns && m.block == m.depth) {
    result.column = 1;
    return result;
  }
  if (given.rank != 2 || given.extents[dimensions.column].value != m.columns ||
      given.extents[dimensions.depth].value != m.blocks())
    return badInput("{} {} for {} blocks of {} along the depth of {} columns", what,
                    valueText(given), m.blocks(), m.block, m.columns);
  int64_t strides[2] = {given.extents[1].value, 1};
  result.column = strides[dimensions.column];
  result.block = strides[dimensions.depth];
  return result;
}

Expected<BlockMatMul> readBlocks(const ProblemReader &problem, BlockMatMul m) {
  const dvt_op &op = problem.op(*m.product.fusion.dequantization);
  const MatMul &p = m.product;
  const dvt_value &weights = problem.value(p.right.value);
  m.bits = weights.type == DVT_U4 || weights.type == DVT_I4 ? 4 : 8;
  m.isSigned = weights.type == DVT_I4 || weights.type == DVT_I8;
  if (m.bits == 8 && !m.isSigned && weights.type != DVT_U8)
    return badInput("weights of {}; those of 4 and 8 bits are supported",
                    elementTypeName(weights.type));
  auto scale = ProblemReader::input(op, 1), zero = ProblemReader::input(op, 2);
  if (!scale || !isFloatType(problem.value(*scale).type))
    return badInput("dequantised weights with scales of {}; f32, f16 and bf16 are supported",
                    scale ? elementTypeName(problem.value(*scale).type) : "nothing");
  m.scaleType = problem.value(*scale).type;
  std::optional<Dimensions> dimensions = dimensionsOf(problem, p);
  if (!dimensions || !p.batchDimensions.empty() || problem.useCount(p.right.value) != 1 ||
      !ProblemReader::isStatic(weights) || (problem.inputOf(p.right.value) < 0 && !weights.literal))
    return badInput("dequantised weights {} that are not one constant matrix for all rows",
                    valueText(weights));
  if (!p.left.depth.is(1))
    return badInput("a left side whose rows do not lie contiguous, times dequantised weights");
  m.depth = p.depth.value;
  m.columns = p.columns.value;
  if (m.depth < 1 || m.columns < 1)
    return badInput("an empty right side");
  int64_t block = ProblemReader::integer(op, "block_size", 0);
  int64_t axis = ProblemReader::integer(op, "axis", 1);
  axis += axis < 0 ? 2 : 0;
  bool oneForAll = ProblemReader::elements(problem.value(*scale)) == 1;
  m.block = m.depth;
  if (block > 0 && axis == int64_t(dimensions->depth))
    m.block = std::min(block, m.depth);
  else if (!oneForAll && (block > 0 || axis != int64_t(dimensions->column)))
    return badInput(
        "weights dequantised along axis {} in blocks of {}; blocks along the depth, and "
        "one scale for each column are supported",
        axis, block);
  auto scales = parameter(problem, m, *dimensions, *scale, "scales");
  if (!scales)
    return scales.takeError();
  m.scale = *scales;
  if (zero) {
    auto zeros = parameter(problem, m, *dimensions, *zero, "zero points");
    if (!zeros)
      return zeros.takeError();
    m.zero = *zeros;
  }
  return m;
}

} // namespace

std::optional<Expected<BlockMatMul>> BlockMatMul::find(const ProblemReader &problem) {
  if (!Fusion::findAnchor(problem, {"dequantize_linear"}))
    return std::nullopt;
  auto product = MatMul::find(problem, Fusion::Takes::DequantizedWeights);
  if (!product)
    return std::nullopt;
  if (!*product)
    return Expected<BlockMatMul>(product->takeError());
  if (!(*product)->fusion.dequantization)
    return std::nullopt;
  BlockMatMul m;
  m.product = std::move(**product);
  return readBlocks(problem, std::move(m));
}

BlockMatMulPlan BlockMatMulPlan::read(const Schedule &schedule) {
  BlockMatMulPlan plan;
  plan.vectors = unsigned(schedule.integerParameter("v", plan.vectors));
  plan.blockRows = schedule.integerParameter("m", 0);
  return plan;
}

std::string BlockMatMulPlan::text() const {
  return fmt::format("blockmatmul:v{}:m{}", vectors, blockRows);
}

BlockMatMulSizes::BlockMatMulSizes(const BlockMatMul &m, const BlockMatMulPlan &plan,
                                   const Machine &machine) {
  lanes = machine.isa.f32Lanes;
  width = lanes * plan.vectors;
  panels = (m.columns + width - 1) / width;
  int64_t depthsPerPlace = m.bits == 4 ? kDepthsPerWord : 1;
  auto places = [&](int64_t depths) { return (depths + depthsPerPlace - 1) / depthsPerPlace; };
  placesPerBlock = places(m.block);
  placesOfLast = places(m.depth - (m.blocks() - 1) * m.block);
  placesPerColumn = (m.blocks() - 1) * placesPerBlock + placesOfLast;
  placeBytes = m.bits == 4 ? 4 : 1;
}

} // namespace dovetail::codegen
