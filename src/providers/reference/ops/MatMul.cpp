// SPDX-License-Identifier: Apache-2.0
//
// Matrix products: mat_mul with NumPy's broadcasting, gemm, and the products of quantised matrices.
// Floats and 8-bit integers are summed in double, which is exact for the latter; wider integers
// wrap at 64 bits.
#include "Ops.h"

#include <cmath>
#include <type_traits>

#include "../SumOfProducts.h"

namespace dovetail::reference::ops {

namespace {

/// a[batch, rows, depth] times b[batch, depth, columns], batches broadcast.
struct Product {
  int64_t rows = 1, depth = 1, columns = 1;
  Extents batch, batchA, batchB;
  Extents result;
};

} // namespace

static Status planProduct(const Invocation &op, size_t left, size_t right, Product &plan) {
  Extents a = op.shape(left), b = op.shape(right);
  if (a.empty() || b.empty())
    return op.bad("operands ", textOf(a), " and ", textOf(b), "; scalars have no matrix product");
  bool vectorA = a.size() == 1, vectorB = b.size() == 1;
  if (vectorA)
    a.insert(a.begin(), 1);
  if (vectorB)
    b.push_back(1);
  plan.rows = a[a.size() - 2];
  plan.depth = a.back();
  plan.columns = b.back();
  if (b[b.size() - 2] != plan.depth)
    return op.bad("operands ", textOf(op.shape(left)), " and ", textOf(op.shape(right)),
                  " do not multiply");
  plan.batchA.assign(a.begin(), a.end() - 2);
  plan.batchB.assign(b.begin(), b.end() - 2);
  TRY(broadcastExtents(op, {plan.batchA, plan.batchB}, plan.batch));
  plan.result = plan.batch;
  if (!vectorA)
    plan.result.push_back(plan.rows);
  if (!vectorB)
    plan.result.push_back(plan.columns);
  return {};
}

static std::vector<double> multiply(const Product &plan, const std::vector<double> &a,
                                    const std::vector<double> &b, const dvt_parallel *parallel) {
  std::vector<double> y(static_cast<size_t>(elementCount(plan.result).value_or(0)));
  if (y.empty())
    return y;
  std::vector<int64_t> rowBase(static_cast<size_t>(plan.rows)),
      offset(static_cast<size_t>(plan.depth));
  for (size_t m = 0; m < rowBase.size(); ++m)
    rowBase[m] = static_cast<int64_t>(m) * plan.depth;
  for (size_t k = 0; k < offset.size(); ++k)
    offset[k] = static_cast<int64_t>(k);
  walk<2>(plan.batch,
          {broadcastStrides(plan.batchA, plan.batch), broadcastStrides(plan.batchB, plan.batch)},
          [&](int64_t linear, const std::array<int64_t, 2> &at) {
            const double *from = b.data() + at[1] * plan.depth * plan.columns;
            PackedColumns right(plan.depth, plan.columns,
                                [&](int64_t k, int64_t n) { return from[k * plan.columns + n]; });
            Gathered left = {a.data() + at[0] * plan.rows * plan.depth, rowBase, offset};
            sumOfProducts(left, right, y.data() + linear * plan.rows * plan.columns, plan.columns,
                          1, parallel);
          });
  return y;
}

/// As multiply, in 64-bit integers that wrap.
static std::vector<uint64_t> multiplyIntegers(const Product &plan, const std::vector<uint64_t> &a,
                                              const std::vector<uint64_t> &b) {
  std::vector<uint64_t> y(static_cast<size_t>(elementCount(plan.result).value_or(0)));
  if (y.empty())
    return y;
  walk<2>(plan.batch,
          {broadcastStrides(plan.batchA, plan.batch), broadcastStrides(plan.batchB, plan.batch)},
          [&](int64_t linear, const std::array<int64_t, 2> &at) {
            const uint64_t *left = a.data() + at[0] * plan.rows * plan.depth;
            const uint64_t *right = b.data() + at[1] * plan.depth * plan.columns;
            uint64_t *to = y.data() + linear * plan.rows * plan.columns;
            for (int64_t m = 0; m < plan.rows; ++m)
              for (int64_t k = 0; k < plan.depth; ++k)
                for (int64_t n = 0; n < plan.columns; ++n)
                  to[m * plan.columns + n] +=
                      left[m * plan.depth + k] * right[k * plan.columns + n];
          });
  return y;
}

Status matMul(Invocation &op) {
  Product plan;
  TRY(planProduct(op, 0, 1, plan));
  if (op.in(0).type != op.in(1).type)
    return op.bad("operands are of ", nameOf(op.in(0).type), " and ", nameOf(op.in(1).type));
  if (op.kind(0) == NumberKind::Real)
    return op.store(0, plan.result,
                    multiply(plan, op.numbers<double>(0), op.numbers<double>(1), op.parallel));
  return op.store(0, plan.result,
                  multiplyIntegers(plan, op.numbers<uint64_t>(0), op.numbers<uint64_t>(1)));
}

/// alpha * a * b + beta * c, with a and b transposed as wanted, in number type W.
template <typename W>
static Status gemmAs(Invocation &op, const Product &plan, bool transposeA, bool transposeB) {
  auto transposed = [](const std::vector<W> &values, int64_t rows, int64_t columns) {
    std::vector<W> result(values.size());
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        result[static_cast<size_t>(i * columns + j)] = values[static_cast<size_t>(j * rows + i)];
    return result;
  };
  std::vector<W> a = op.numbers<W>(0), b = op.numbers<W>(1), y;
  if (transposeA)
    a = transposed(a, plan.rows, plan.depth);
  if (transposeB)
    b = transposed(b, plan.depth, plan.columns);
  if constexpr (std::is_same_v<W, double>)
    y = multiply(plan, a, b, op.parallel);
  else
    y = multiplyIntegers(plan, a, b);
  W alpha, beta;
  if constexpr (std::is_same_v<W, double>) {
    alpha = op.real("alpha", 1);
    beta = op.real("beta", 1);
  } else {
    alpha = static_cast<W>(static_cast<int64_t>(op.real("alpha", 1)));
    beta = static_cast<W>(static_cast<int64_t>(op.real("beta", 1)));
  }
  for (W &value : y)
    value *= alpha;
  if (op.has(2)) {
    if (!broadcastsTo(op.shape(2), plan.result))
      return op.bad("C of ", textOf(op.shape(2)), " does not broadcast to ", textOf(plan.result));
    std::vector<W> c = op.numbers<W>(2);
    walk<1>(plan.result, {broadcastStrides(op.shape(2), plan.result)},
            [&](int64_t linear, const std::array<int64_t, 1> &at) {
              y[static_cast<size_t>(linear)] += beta * c[static_cast<size_t>(at[0])];
            });
  }
  return op.store(0, plan.result, y);
}

Status gemm(Invocation &op) {
  if (op.rank(0) != 2 || op.rank(1) != 2)
    return op.bad("operands ", textOf(op.shape(0)), " and ", textOf(op.shape(1)),
                  "; matrices are needed");
  bool transposeA = op.integer("transA", 0), transposeB = op.integer("transB", 0);
  Product plan;
  plan.rows = op.shape(0)[transposeA ? 1 : 0];
  plan.depth = op.shape(0)[transposeA ? 0 : 1];
  plan.columns = op.shape(1)[transposeB ? 0 : 1];
  if (op.shape(1)[transposeB ? 1 : 0] != plan.depth)
    return op.bad("operands ", textOf(op.shape(0)), " and ", textOf(op.shape(1)),
                  " do not multiply");
  plan.result = {plan.rows, plan.columns};
  if (op.kind(0) == NumberKind::Real)
    return gemmAs<double>(op, plan, transposeA, transposeB);
  return gemmAs<uint64_t>(op, plan, transposeA, transposeB);
}

/// Extents in which a scale or zero point of a matrix operand broadcasts against it: one for all,
/// one for each row (left) or column (right), or of the operand's rank.
static Status parameterExtents(const Invocation &op, size_t operand, size_t parameter, bool perRow,
                               Extents &extents) {
  extents = op.shape(parameter);
  const Extents &matrix = op.shape(operand);
  if (op.in(parameter).count() == 1)
    extents.assign(matrix.size(), 1);
  else if (extents.size() == 1 && perRow && matrix.size() >= 2)
    extents.push_back(1);
  if (!broadcastsTo(extents, matrix))
    return op.bad("operand ", parameter, " of ", textOf(op.shape(parameter)), " does not fit ",
                  textOf(matrix));
  return {};
}

/// (operand - zero point) * scale; both may be absent.
static Status dequantized(const Invocation &op, size_t operand, std::optional<size_t> scale,
                          size_t zeroPoint, bool perRow, std::vector<double> &values) {
  values = op.numbers<double>(operand);
  auto apply = [&](size_t parameter, auto combine) -> Status {
    Extents extents;
    TRY(parameterExtents(op, operand, parameter, perRow, extents));
    std::vector<double> parameters = op.numbers<double>(parameter);
    walk<1>(op.shape(operand), {broadcastStrides(extents, op.shape(operand))},
            [&](int64_t linear, const std::array<int64_t, 1> &at) {
              combine(values[static_cast<size_t>(linear)], parameters[static_cast<size_t>(at[0])]);
            });
    return {};
  };
  if (op.has(zeroPoint))
    TRY(apply(zeroPoint, [](double &value, double zero) { value -= zero; }));
  if (scale)
    TRY(apply(*scale, [](double &value, double factor) { value *= factor; }));
  return {};
}

Status matMulInteger(Invocation &op) {
  Product plan;
  TRY(planProduct(op, 0, 1, plan));
  std::vector<double> a, b;
  TRY(dequantized(op, 0, std::nullopt, 2, true, a));
  TRY(dequantized(op, 1, std::nullopt, 3, false, b));
  std::vector<double> y = multiply(plan, a, b, op.parallel);
  return op.store(0, plan.result, std::vector<int64_t>(y.begin(), y.end()));
}

Status qLinearMatMul(Invocation &op) {
  Product plan;
  TRY(planProduct(op, 0, 3, plan));
  std::vector<double> a, b, scale = op.numbers<double>(6), zero = op.numbers<double>(7);
  TRY(dequantized(op, 0, 1, 2, true, a));
  TRY(dequantized(op, 3, 4, 5, false, b));
  std::vector<double> y = multiply(plan, a, b, op.parallel);
  if (scale.size() != zero.size() || !broadcastsTo(op.shape(6), plan.result))
    return op.bad("y_scale ", textOf(op.shape(6)), " and y_zero_point ", textOf(op.shape(7)),
                  " for a result ", textOf(plan.result));
  walk<1>(plan.result, {broadcastStrides(op.shape(6), plan.result)},
          [&](int64_t linear, const std::array<int64_t, 1> &at) {
            double &value = y[static_cast<size_t>(linear)];
            value = std::nearbyint(value / scale[static_cast<size_t>(at[0])]) +
                    zero[static_cast<size_t>(at[0])];
          });
  return op.store(0, plan.result, y);
}

} // namespace dovetail::reference::ops
