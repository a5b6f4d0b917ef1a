// SPDX-License-Identifier: Apache-2.0
//
// Reads which bytes are contracted, and how they are quantised, from a problem; see the header.
#include "codegen/schedule/contraction/Int8.h"

#include <algorithm>

namespace dovetail::codegen {
namespace {

bool isByte(dvt_type type) { return type == DVT_I8 || type == DVT_U8; }

class Int8Reader {
public:
  Int8Reader(const ProblemReader &problem, Int8 &m)
      : problem(problem), m(m), op(problem.op(m.fusion().anchor)), name(op.name) {}

  Status read() {
    const Fusion &fusion = m.fusion();
    bool requantises = fusion.rightPosition == 3, integers = name.ends_with("_integer");
    m.left.value = m.product ? m.product->left.value : m.words.input;
    m.right.value = m.product ? m.product->right.value : m.words.weight;
    for (const Int8::Grid *side : {&m.left, &m.right})
      if (!isByte(problem.value(side->value).type))
        return badInput("{} of {}; quantised operands of 8 bits are supported", name,
                        elementTypeName(problem.value(side->value).type));
    m.left.isSigned = problem.value(m.left.value).type == DVT_I8;
    m.right.isSigned = problem.value(m.right.value).type == DVT_I8;
    auto input = [&](uint32_t position) { return ProblemReader::input(op, position); };
    if (requantises) {
      m.result = Int8::Result::Requantised;
      take(m.left, input(1), input(2));
      take(m.right, input(4), input(5));
      take(m.to, input(6), input(7));
      m.to.isSigned = problem.value(fusion.result).type == DVT_I8;
      if (!isByte(problem.value(fusion.result).type))
        return badInput("{} with a result of {}", name,
                        elementTypeName(problem.value(fusion.result).type));
    } else if (integers) {
      m.result = Int8::Result::Integer;
      take(m.left, std::nullopt, input(2));
      take(m.right, std::nullopt, input(3));
    } else {
      take(m.left, *fusion.leftDequantization);
      take(m.right, *fusion.dequantization);
      if (problem.value(fusion.result).type != DVT_F32)
        return badInput("{} of bytes dequantised to {}; f32 is supported", name,
                        elementTypeName(problem.value(fusion.result).type));
    }
    if (Status status = checkBias(); !status)
      return status;
    for (Int8::Grid *grid : {&m.left, &m.right, &m.to})
      if (Status status = checkGrid(*grid, grid == &m.right); !status)
        return status;
    // Beyond this an exact sum may not be one of i32; that of integer ops wraps in any case.
    constexpr int64_t kMostTerms = INT32_MAX / (255 * 255);
    int64_t terms = m.channels * m.words.rows.size * m.words.columns.size;
    if (!integers && terms > kMostTerms)
      return badInput("{} over {} products of bytes; up to {} are supported", name, terms,
                      kMostTerms);
    return Status::success();
  }

private:
  static void take(Int8::Grid &grid, std::optional<uint32_t> scale, std::optional<uint32_t> zero) {
    grid.scale = scale;
    grid.zero = zero;
  }
  void take(Int8::Grid &grid, uint32_t dequantization) {
    const dvt_op &from = problem.op(dequantization);
    take(grid, ProblemReader::input(from, 1), ProblemReader::input(from, 2));
  }

  Status checkBias() {
    if (!m.words.bias)
      return Status::success();
    dvt_type wanted = m.result == Int8::Result::Requantised ? DVT_I32 : DVT_F32;
    if (dvt_type type = problem.value(*m.words.bias).type; type != wanted)
      return badInput("{} with a bias of {}", name, elementTypeName(type));
    return Status::success();
  }

  /// Whether the zero point, in the type that the packed bytes have, is known to be 0.
  bool isCentred(const Int8::Grid &grid, bool right) const {
    double centre = right && !grid.isSigned ? 128 : !right && grid.isSigned ? -128 : 0;
    if (!grid.zero)
      return centre == 0;
    std::optional<double> known = problem.uniformLiteral(*grid.zero);
    return known && *known == centre;
  }

  Status checkGrid(Int8::Grid &grid, bool right) {
    grid.isCentred = isCentred(grid, right);
    auto checkPlace = [&](uint32_t value) -> Status {
      if (problem.inputOf(value) < 0 && !problem.isLiteral(value))
        return badInput("{} with a computed scale or zero point in one kernel", name);
      return Status::success();
    };
    if (grid.scale) {
      if (Status status = checkPlace(*grid.scale); !status)
        return status;
      if (problem.value(*grid.scale).type != DVT_F32)
        return badInput("{} with scales of {}; f32 is supported", name,
                        elementTypeName(problem.value(*grid.scale).type));
      auto varies = byColumn(*grid.scale, right, "scales");
      if (!varies)
        return varies.takeError();
      grid.scaleByColumn = *varies;
    }
    if (grid.zero) {
      if (Status status = checkPlace(*grid.zero); !status)
        return status;
      if (!isByte(problem.value(*grid.zero).type))
        return badInput("{} with a zero point of {}", name,
                        elementTypeName(problem.value(*grid.zero).type));
      auto varies = byColumn(*grid.zero, right, "zero points");
      if (!varies)
        return varies.takeError();
      grid.zeroByColumn = *varies;
    }
    return Status::success();
  }

  /// Whether a parameter has one element for each column; BadInput where it has neither that nor a
  /// single one.
  Expected<bool> byColumn(uint32_t value, bool right, const char *what) const {
    const dvt_value &given = problem.value(value);
    if (problem.uniformLiteral(value))
      return false;
    int64_t columns = m.words.groups * m.words.outPerGroup;
    int64_t count = ProblemReader::isStatic(given) ? ProblemReader::elements(given) : -1;
    if (count == 1)
      return false;
    if (!right || count != columns || given.rank != 1 || !isColumnAxis())
      return badInput("{} with {} {}; one, or those of the second operand by column, are supported",
                      name, what, valueText(given));
    return true;
  }

  bool isColumnAxis() const {
    const Fusion &fusion = m.fusion();
    if (!fusion.dequantization)
      return true;
    const dvt_op &from = problem.op(*fusion.dequantization);
    if (ProblemReader::integer(from, "block_size", 0) || problem.producerOf(from.inputs[0]) >= 0)
      return false;
    int64_t rank = problem.value(from.inputs[0]).rank;
    int64_t axis = ProblemReader::integer(from, "axis", 1);
    axis += axis < 0 ? rank : 0;
    if (!m.product)
      return axis == 0;
    std::optional<Fusion::Operand> right = fusion.operand(problem, fusion.rightPosition);
    bool turned = name == "gemm" && ProblemReader::integer(op, "transB", 0) != 0;
    return right && right->order.size() >= 2 &&
           axis == int64_t(right->order[right->order.size() - (turned ? 2 : 1)]);
  }

  const ProblemReader &problem;
  Int8 &m;
  const dvt_op &op;
  std::string_view name;
};

dvt_extent extentLike(const Product &product) {
  if (product.isStatic())
    return staticExtent(product.constant);
  return {-1, nullptr, 1, product.upperBound(), 1};
}

/// Multiples of four in words; nothing where it is none.
bool inWords(Product &stride) {
  bool whole = stride.constant % 4 == 0;
  stride.constant /= whole ? 4 : 1;
  return whole;
}

Expected<Int8> readProduct(const ProblemReader &problem, MatMul p) {
  Int8 m;
  if (!p.left.depth.is(1))
    return badInput("a left side of bytes whose rows do not lie contiguous");
  if (p.columnDimension < 0)
    return badInput("a product of bytes with a vector");
  if (!p.packsRight(problem))
    return badInput("a right side of bytes that is no constant of its own");
  if (p.depth.value < 1 || p.columns.value < 1)
    return badInput("an empty right side");
  m.channels = p.depth.value;
  m.words.groups = 1;
  m.words.inPerGroup = (m.channels + 3) / 4;
  m.words.outPerGroup = p.columns.value;
  m.words.spatial = 2;
  m.words.batch = m.words.inRows = m.words.outRows = staticExtent(1);
  if (!p.batchDimensions.empty())
    m.words.batch = extentLike(p.batches());
  m.words.inColumns = m.words.outColumns = extentLike(p.rows);
  m.words.input = p.left.value;
  m.words.weight = p.right.value;
  m.words.fusion = p.fusion;
  m.product = std::move(p);
  if (m.mustCopyLeft())
    return m;
  bool whole = inWords(m.product->left.row);
  for (Product &stride : m.product->left.batch)
    whole &= inWords(stride);
  if (!whole)
    return badInput("rows of bytes that do not start at multiples of four");
  return m;
}

Expected<Int8> readConvolution(Convolution conv) {
  Int8 m;
  if (conv.isDepthwise())
    return badInput("depthwise convolutions of bytes");
  m.channels = conv.inPerGroup;
  m.words = std::move(conv);
  m.words.inPerGroup = (m.channels + 3) / 4;
  return m;
}

} // namespace

Product Int8::copiedLeftWords() const {
  return product->batches() * product->rows * Product(copiedRowWords());
}

std::optional<Expected<Int8>> Int8::find(const ProblemReader &problem) {
  auto integers = Fusion::findAnchor(
      problem, {"mat_mul_integer", "q_linear_mat_mul", "conv_integer", "q_linear_conv"});
  auto floats = Fusion::findAnchor(problem, {"conv", "mat_mul", "gemm"});
  if (!integers && (!floats || !Fusion::findAnchor(problem, {"dequantize_linear"})))
    return std::nullopt;
  auto fail = [](Error error) { return std::optional(Expected<Int8>(std::move(error))); };
  constexpr Fusion::Takes kBytes = Fusion::Takes::Bytes;
  Expected<Int8> made = badInput("no contraction");
  if (auto conv = Convolution::find(problem, kBytes)) {
    if (!*conv)
      return fail(conv->takeError());
    made = readConvolution(std::move(**conv));
  } else if (auto product = MatMul::find(problem, kBytes)) {
    if (!*product)
      return fail(product->takeError());
    const Fusion &fusion = (*product)->fusion;
    if (!integers && (!fusion.dequantization || !fusion.leftDequantization))
      return std::nullopt;
    made = readProduct(problem, std::move(**product));
  }
  if (!made)
    return made;
  const Fusion &fusion = made->fusion();
  if (!integers && (!fusion.dequantization || !fusion.leftDequantization))
    return std::nullopt;
  if (Status status = Int8Reader(problem, *made).read(); !status)
    return fail(status.takeError());
  return made;
}

Int8Plan Int8Plan::read(const Schedule &schedule) {
  return {ConvolutionPlan::read(schedule), schedule.integerParameter("l", 0) != 0};
}

std::string Int8Plan::text(const Machine &machine) const {
  std::string plan = tiles.text();
  return fmt::format("int8{}{}:{}", plan.substr(plan.find(':')), copiesLeft ? ":l1" : "",
                     machine.isa.vnni ? "vnni" : "pairs");
}

Int8Sizes::Int8Sizes(const Int8 &m, const Int8Plan &plan, const Machine &machine)
    : ConvolutionSizes(m.words, plan.tiles, machine) {
  sumsOffset = m.words.groups * groupElements;
  flipOffset = sumsOffset + m.words.groups * vectors * lanes;
  rowSums = m.right.isCentred ? 0 : int64_t(plan.tiles.tile.rows) * lanes;
}

} // namespace dovetail::codegen
