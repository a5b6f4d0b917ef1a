// SPDX-License-Identifier: Apache-2.0
//
// Recognises problems that are a matrix product, or a batch of them: mat_mul and gemm, with
// transposes on every side, a scale and addends; and 1x1 convolutions, which are products of
// images in rows (NCHW) or columns (NHWC). Shared by providers of BLAS libraries, whose rules say
// what each of them does beside the product.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "providers/OperandView.h"

namespace dovetail::providers {

/// Of a result. Gelu is the form with a hyperbolic tangent.
enum class Activation { None, Relu, Gelu };

/// c = activation(alpha * a b + beta * addend + gamma * second) over a batch: views of
/// [batch..., M, K], [batch..., K, N], [batch..., M, N]; batch extents of 1 in a or b are repeated,
/// the addends broadcast to c.
struct Product {
  View a, b, c;
  std::optional<View> addend, second;
  float alpha = 1, beta = 1, gamma = 1;
  Activation activation = Activation::None;
  /// Layouts of the problem's operands other than row-major, by value index.
  std::vector<std::pair<uint32_t, std::string>> layouts;

  int64_t rows() const { return c.dims[c.dims.size() - 2]; }
  int64_t columns() const { return c.dims.back(); }
  int64_t depth() const { return a.dims.back(); }
  int64_t batch() const;
};

/// What a library computes.
struct ProductRules {
  std::vector<dvt_type> types = {DVT_F32}; ///< of all operands and the result alike
  bool takesSecond = false;                ///< addend
  bool takesActivation = false;
};

/// The ways to see the problem as products, the simplest first; empty with `reason` where it is
/// none.
std::vector<Product> matchProducts(const ProblemReader &problem, const ProductRules &rules,
                                   std::string &reason);

/// A matrix as BLAS takes it: a leading dimension and whether it is transposed. Nothing where
/// neither stride is 1.
struct Matrix {
  bool transposed;
  int64_t leading;
};
std::optional<Matrix> asMatrix(const View &view);

/// The same product computed as c^T = b^T a^T; for results that are contiguous along columns.
Product transposedProduct(const Product &product);

/// Whether the result may share memory as the problem wants it: with an addend that lies exactly
/// as it does, and with nothing else.
bool mayShareResult(const ProblemReader &problem, const Product &product);

/// Layout texts of the problem's inputs and of its result.
struct ProductLayouts {
  std::vector<std::string> in, out;
};
ProductLayouts layoutsOf(const ProblemReader &problem, const Product &product);

} // namespace dovetail::providers
