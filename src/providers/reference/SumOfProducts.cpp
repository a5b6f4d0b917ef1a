// SPDX-License-Identifier: Apache-2.0
//
// Four rows by one panel are summed at a time, in vectors that the compiler splits to what the
// processor has. Sums run in order of k without contraction, so the bits depend neither on the
// processor nor on the number of threads.
#include "SumOfProducts.h"

#include <algorithm>

namespace dovetail::reference {

namespace {

constexpr int64_t kRows = 4, kLanes = 8;
static_assert(kPanel == 2 * kLanes);
// Aligned as its elements, since panels lie in a std::vector.
typedef double Lanes __attribute__((vector_size(kLanes * sizeof(double)), aligned(sizeof(double))));

struct Task {
  const Gathered &left;
  const PackedColumns &right;
  double *to;
  int64_t rowStride, columnStride, rowBlocks;
};

/// Rows [row, row + count) of one panel, count at most kRows.
__attribute__((target_clones("avx512f", "avx2", "default"))) void
sumBlock(const Task &task, int64_t row, int64_t count, int64_t panel) {
  const double *a[kRows];
  for (int64_t r = 0; r < kRows; ++r)
    a[r] = task.left.left + task.left.rowBase[static_cast<size_t>(row + std::min(r, count - 1))];
  const double *b = task.right.panel(panel);
  const int64_t *offset = task.left.offset.data();
  Lanes s00 = {}, s01 = {}, s10 = {}, s11 = {}, s20 = {}, s21 = {}, s30 = {}, s31 = {};
  for (int64_t k = 0; k < task.right.rows; ++k, b += kPanel) {
    Lanes low = *reinterpret_cast<const Lanes *>(b),
          high = *reinterpret_cast<const Lanes *>(b + kLanes);
    int64_t at = offset[k];
    s00 += a[0][at] * low;
    s01 += a[0][at] * high;
    s10 += a[1][at] * low;
    s11 += a[1][at] * high;
    s20 += a[2][at] * low;
    s21 += a[2][at] * high;
    s30 += a[3][at] * low;
    s31 += a[3][at] * high;
  }
  Lanes sums[kRows][2] = {{s00, s01}, {s10, s11}, {s20, s21}, {s30, s31}};
  int64_t first = panel * kPanel, columns = std::min(kPanel, task.right.columns - first);
  for (int64_t r = 0; r < count; ++r)
    for (int64_t n = 0; n < columns; ++n)
      task.to[(row + r) * task.rowStride + (first + n) * task.columnStride] =
          sums[r][n / kLanes][n % kLanes];
}

void sumRange(void *argument, int64_t begin, int64_t end, uint32_t) {
  const Task &task = *static_cast<const Task *>(argument);
  auto rows = static_cast<int64_t>(task.left.rowBase.size());
  for (int64_t i = begin; i < end; ++i) {
    int64_t row = i % task.rowBlocks * kRows;
    sumBlock(task, row, std::min(kRows, rows - row), i / task.rowBlocks);
  }
}

} // namespace

PackedColumns::PackedColumns(int64_t rows, int64_t columns,
                             const std::function<double(int64_t, int64_t)> &element)
    : rows(rows), columns(columns) {
  data.resize(static_cast<size_t>(panels() * rows * kPanel));
  for (int64_t k = 0; k < rows; ++k)
    for (int64_t n = 0; n < columns; ++n)
      data[static_cast<size_t>((n / kPanel * rows + k) * kPanel + n % kPanel)] = element(k, n);
}

void sumOfProducts(const Gathered &left, const PackedColumns &right, double *to, int64_t rowStride,
                   int64_t columnStride, const dvt_parallel *parallel) {
  Task task = {left,         right,
               to,           rowStride,
               columnStride, (static_cast<int64_t>(left.rowBase.size()) + kRows - 1) / kRows};
  int64_t blocks = task.rowBlocks * right.panels();
  if (parallel && parallel->threads > 1 && blocks > 1)
    parallel->run(parallel->context, blocks, sumRange, &task);
  else
    sumRange(&task, 0, blocks, 0);
}

} // namespace dovetail::reference
