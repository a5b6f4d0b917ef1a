// SPDX-License-Identifier: Apache-2.0
//
// The one loop nest under convolutions and matrix products: sums of products over a gathered left
// side and a packed right side, in double. Written for registers and caches so that whole models
// pass through the reference in seconds; each sum is still taken in plain order of k, by one
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "dovetail/provider.h"

namespace dovetail::reference {

/// Columns of a packed right side: panels of kPanel columns, each panel with its rows one after the
/// other, zero where there are fewer columns.
constexpr int64_t kPanel = 16;

class PackedColumns {
public:
  /// `element(k, n)` gives the right side, rows x columns.
  PackedColumns(int64_t rows, int64_t columns,
                const std::function<double(int64_t, int64_t)> &element);
  const double *panel(int64_t index) const { return data.data() + index * rows * kPanel; }
  int64_t panels() const { return (columns + kPanel - 1) / kPanel; }
  const int64_t rows, columns;

private:
  std::vector<double> data;
};

/// result(m, n) = sum over k of left[rowBase[m] + offset[k]] * right(k, n), written to
/// to[m * rowStride + n * columnStride].
struct Gathered {
  const double *left;
  const std::vector<int64_t> &rowBase, &offset;
};
void sumOfProducts(const Gathered &left, const PackedColumns &right, double *to, int64_t rowStride,
                   int64_t columnStride, const dvt_parallel *parallel);

} // namespace dovetail::reference
