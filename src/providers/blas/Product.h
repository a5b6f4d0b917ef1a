// SPDX-License-Identifier: Apache-2.0
//
// Recognises problems that are a matrix product, or a batch of them: mat_mul and gemm, with
// transposes on every side, a scale and an addend; and 1x1 convolutions, which are products of
// images in rows (NCHW) or columns (NHWC).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "providers/OperandView.h"

namespace dovetail::blas {

using providers::Dims;
using providers::ProblemReader;
using providers::View;

/// c = alpha * a b + beta * addend over a batch: views of [batch..., M, K], [batch..., K, N],
/// [batch..., M, N]; batch extents of 1 in a or b are repeated, the addend broadcasts to c.
struct Product {
  View a, b, c;
  std::optional<View> addend;
  float alpha = 1, beta = 1;
  /// Layouts of the problem's operands other than row-major, by value index.
  std::vector<std::pair<uint32_t, std::string>> layouts;

  int64_t rows() const { return c.dims[c.dims.size() - 2]; }
  int64_t columns() const { return c.dims.back(); }
  int64_t depth() const { return a.dims.back(); }
  int64_t batch() const;
};

/// The ways to see the problem as products, the simplest first; empty with `reason` where it is
/// none.
std::vector<Product> matchProducts(const ProblemReader &problem, std::string &reason);

/// A matrix as BLAS takes it: a leading dimension and whether it is transposed. Nothing where
/// neither stride is 1.
struct Matrix {
  bool transposed;
  int64_t leading;
};
std::optional<Matrix> asMatrix(const View &view);

/// The same product computed as c^T = b^T a^T; for results that are contiguous along columns.
Product transposedProduct(const Product &product);

} // namespace dovetail::blas
