// SPDX-License-Identifier: Apache-2.0
//
// Brings mat_mul and gemm into the form of the header.
#include "codegen/schedule/contraction/MatMul.h"

#include <algorithm>
#include <charconv>

namespace dovetail::codegen {
namespace {

/// Strides of an operand by its own dimensions, transposes undone.
std::vector<Product> stridesOf(const ProblemReader &problem, const Fusion::Operand &operand) {
  std::optional<Access> own = denseAccess(problem.value(operand.value), Layout());
  std::vector<Product> strides;
  for (unsigned dimension : operand.order)
    strides.push_back(own->strides[dimension]);
  return strides;
}

std::vector<dvt_extent> operandExtents(const ProblemReader &problem,
                                       const Fusion::Operand &operand) {
  std::vector<dvt_extent> extents;
  for (unsigned dimension : operand.order)
    extents.push_back(problem.value(operand.value).extents[dimension]);
  return extents;
}

/// Strides along the batch dimensions of the output, which meet the operand's first `count`
/// dimensions from the right.
bool batchStrides(const std::vector<dvt_extent> &extents, const std::vector<Product> &strides,
                  unsigned count, const Fusion &fusion, unsigned batches,
                  std::vector<Product> &result) {
  if (count > batches)
    return false;
  result.assign(batches, Product(0));
  for (unsigned i = 0; i < count; ++i) {
    unsigned output = batches - count + i;
    if (sameExtent(extents[i], fusion.extents[output]))
      result[output] = strides[i];
    else if (!isOne(extents[i]))
      return false;
  }
  return true;
}

Expected<MatMul> readMatMul(const ProblemReader &problem, MatMul m) {
  auto a = m.fusion.operand(problem, 0), b = m.fusion.operand(problem, m.fusion.rightPosition);
  if (!a || !b)
    return badInput("mat_mul without both operands");
  std::vector<dvt_extent> aExtents = operandExtents(problem, *a),
                          bExtents = operandExtents(problem, *b);
  std::vector<Product> aStrides = stridesOf(problem, *a), bStrides = stridesOf(problem, *b);
  unsigned aRank = aExtents.size(), bRank = bExtents.size(), rank = m.fusion.extents.size();
  if (aRank == 0 || bRank == 0)
    return badInput("mat_mul of a scalar");
  bool hasRow = aRank > 1, hasColumn = bRank > 1;
  if (rank + 2 < hasRow + hasColumn + std::max(aRank, 2u) || rank < unsigned(hasRow) + hasColumn)
    return badInput("mat_mul of rank {} and {} with a result of rank {}", aRank, bRank, rank);
  unsigned batches = rank - hasRow - hasColumn;
  const dvt_extent &depth = bExtents[hasColumn ? bRank - 2 : 0];
  if (!sameExtent(aExtents[aRank - 1], depth))
    return badInput("mat_mul over extents {} and {} that are not known to be equal",
                    extentText(aExtents[aRank - 1]), extentText(depth));
  m.depth = depth;
  m.left = {a->value, {}, hasRow ? aStrides[aRank - 2] : Product(0), aStrides[aRank - 1]};
  m.right = {b->value,
             {},
             hasColumn ? bStrides[bRank - 1] : Product(0),
             bStrides[hasColumn ? bRank - 2 : 0]};
  if (!batchStrides(aExtents, aStrides, hasRow ? aRank - 2 : 0, m.fusion, batches, m.left.batch) ||
      !batchStrides(bExtents, bStrides, hasColumn ? bRank - 2 : 0, m.fusion, batches,
                    m.right.batch))
    return badInput("mat_mul with batch extents that are not known to broadcast");
  m.columnDimension = hasColumn ? int(rank) - 1 : -1;
  m.columns = hasColumn ? m.fusion.extents[rank - 1] : staticExtent(1);
  for (unsigned i = 0; i < batches; ++i)
    m.batchDimensions.push_back(i);
  if (hasRow)
    m.rowDimensions.push_back(batches);
  return m;
}

Expected<MatMul> readGemm(const ProblemReader &problem, MatMul m) {
  const dvt_op &op = problem.op(m.fusion.anchor);
  auto a = m.fusion.operand(problem, 0), b = m.fusion.operand(problem, 1);
  if (!a || !b || a->order.size() != 2 || b->order.size() != 2 || m.fusion.extents.size() != 2)
    return badInput("gemm whose operands are not matrices");
  std::vector<dvt_extent> aExtents = operandExtents(problem, *a),
                          bExtents = operandExtents(problem, *b);
  std::vector<Product> aStrides = stridesOf(problem, *a), bStrides = stridesOf(problem, *b);
  bool aTransposed = ProblemReader::integer(op, "transA", 0),
       bTransposed = ProblemReader::integer(op, "transB", 0);
  if (!sameExtent(aExtents[!aTransposed], bExtents[bTransposed]))
    return badInput("gemm over extents {} and {} that are not known to be equal",
                    extentText(aExtents[!aTransposed]), extentText(bExtents[bTransposed]));
  m.depth = aExtents[!aTransposed];
  m.left = {a->value, {}, aStrides[aTransposed], aStrides[!aTransposed]};
  m.right = {b->value, {}, bStrides[!bTransposed], bStrides[bTransposed]};
  m.columnDimension = 1;
  m.columns = m.fusion.extents[1];
  m.rowDimensions = {0};
  m.scale = ProblemReader::real(op, "alpha", 1);
  if (auto c = ProblemReader::input(op, 2)) {
    if (problem.inputOf(*c) < 0 && !problem.isLiteral(*c))
      return badInput("gemm with a computed addend in one kernel");
    auto access = broadcastAccess(problem.value(*c), Layout(), m.fusion.extents);
    if (!access)
      return badInput("gemm with an addend {} that is not known to broadcast",
                      valueText(problem.value(*c)));
    m.addend = Addend{*c, std::move(*access), ProblemReader::real(op, "beta", 1)};
  }
  return m;
}

/// Where no batch has a right side of its own and the left side's batches follow one another
/// evenly, they are rows.
void foldBatches(MatMul &m) {
  if (m.batchDimensions.empty() || m.rowDimensions.empty() || !m.oneRight())
    return;
  Access left;
  left.strides = m.left.batch;
  left.strides.push_back(m.left.row);
  std::vector<dvt_extent> extents;
  for (unsigned dimension : m.batchDimensions)
    extents.push_back(m.fusion.extents[dimension]);
  extents.push_back(m.fusion.extents[m.rowDimensions[0]]);
  if (!left.collapses(0, extents.size() - 1, extents))
    return;
  m.rowDimensions.insert(m.rowDimensions.begin(), m.batchDimensions.begin(),
                         m.batchDimensions.end());
  m.batchDimensions.clear();
  m.left.batch.clear();
  m.right.batch.clear();
}

} // namespace

std::optional<Expected<MatMul>> MatMul::find(const ProblemReader &problem, Fusion::Takes takes) {
  auto anchor = Fusion::findAnchor(problem, {"mat_mul", "gemm"});
  if (!anchor && takes == Fusion::Takes::Bytes)
    anchor = Fusion::findAnchor(problem, {"mat_mul_integer", "q_linear_mat_mul"});
  if (!anchor)
    return std::nullopt;
  auto fusion = Fusion::around(problem, *anchor, takes);
  if (!fusion)
    return Expected<MatMul>(fusion.takeError());
  MatMul m;
  m.fusion = std::move(*fusion);
  bool isGemm = std::string_view(problem.op(*anchor).name) == "gemm";
  auto read = isGemm ? readGemm(problem, std::move(m)) : readMatMul(problem, std::move(m));
  if (!read)
    return read;
  m = std::move(*read);
  foldBatches(m);
  m.rows = 1;
  for (unsigned dimension : m.rowDimensions)
    m.rows = m.rows * Product::of(m.fusion.extents[dimension]);
  auto leaves =
      m.fusion.leafAccesses(problem, std::vector<std::string>(problem.problem().input_count));
  if (!leaves)
    return Expected<MatMul>(badInput("an operand after {} whose extents are not known to broadcast",
                                     problem.op(*anchor).name));
  m.leaves = std::move(*leaves);
  m.output = *denseAccess(problem.value(m.fusion.result), Layout());
  return Expected<MatMul>(std::move(m));
}

bool MatMul::packsRight(const ProblemReader &problem) const {
  return problem.isConstant(right.value) && problem.useCount(right.value) == 1 &&
         ProblemReader::isStatic(problem.value(right.value)) &&
         std::all_of(right.batch.begin(), right.batch.end(),
                     [](const Product &p) { return p.is(0); });
}

int64_t MatMul::widenedLeft(const ProblemReader &problem) const {
  constexpr int64_t kFewRows = 4; // for which a phase costs more than it saves
  const dvt_value &value = problem.value(left.value);
  if (value.type == DVT_F32 || !ProblemReader::isStatic(value) || rows.upperBound() <= kFewRows)
    return 0;
  return ProblemReader::elements(value);
}

Product MatMul::batches() const {
  Product count = 1;
  for (unsigned dimension : batchDimensions)
    count = count * Product::of(fusion.extents[dimension]);
  return count;
}

bool MatMul::oneRight() const {
  return std::all_of(right.batch.begin(), right.batch.end(),
                     [](const Product &p) { return p.is(0); });
}

MatMulPlan MatMulPlan::read(const Schedule &schedule) {
  MatMulPlan plan;
  std::string_view tile = schedule.parameter("t");
  const char *begin = tile.data(), *end = begin + tile.size();
  auto [middle, error] = std::from_chars(begin, end, plan.tile.rows);
  if (error == std::errc() && middle < end)
    std::from_chars(middle + 1, end, plan.tile.vectors);
  plan.blockRows = schedule.integerParameter("m", plan.tile.rows);
  plan.panelsOutside = schedule.parameter("o") == "n";
  plan.streams = unsigned(std::max<int64_t>(1, schedule.integerParameter("s", 1)));
  std::string_view right = schedule.parameter("b");
  plan.right = right == "p"   ? Right::Packed
               : right == "h" ? Right::PackedNarrow
               : right == "f" ? Right::PackedOnRun
                              : Right::Direct;
  return plan;
}

std::string MatMulPlan::text() const {
  return fmt::format("matmul:t{}x{}:m{}:o{}:b{}", tile.rows, tile.vectors, blockRows,
                     panelsOutside ? "n" : "m",
                     right == Right::Packed         ? "p"
                     : right == Right::PackedNarrow ? "h"
                     : right == Right::PackedOnRun  ? "f"
                                                    : "d") +
         (streams > 1 ? fmt::format(":s{}", streams) : "");
}

} // namespace dovetail::codegen
