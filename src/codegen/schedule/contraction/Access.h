// SPDX-License-Identifier: Apache-2.0
//
// How a tensor is reached from the indices of a kernel's output: a stride for each of the output's
// dimensions, zero where the tensor is broadcast along it, and the inner block of the one dimension
// that may be blocked. Strides are products of numbers and symbolic extents, so that one
// description serves static and run-time shapes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/schedule/ProblemReader.h"
#include "support/Layout.h"

namespace dovetail::codegen {

/// constant * factors[0] * factors[1] * ..., the factors symbolic.
struct Product {
  int64_t constant = 1;
  std::vector<dvt_extent> factors;

  Product() = default;
  Product(int64_t constant) : constant(constant) {}
  static Product of(const dvt_extent &extent);
  bool isStatic() const { return factors.empty() || constant == 0; }
  bool is(int64_t number) const { return isStatic() && constant == number; }
  friend Product operator*(const Product &a, const Product &b);
  friend bool operator==(const Product &a, const Product &b);
  /// With every symbolic factor at its upper bound; INT64_MAX where that overflows.
  int64_t upperBound() const;
  /// With every symbolic factor at `typical`, or its bound when that is nearer.
  double typical(int64_t typical = 64) const;
};

struct Access {
  std::vector<Product> strides; ///< in elements, one for each dimension of the output
  /// Dimension with an inner block, or -1: index i of it stands at (i / block) * blockStride + (i %
  /// block) * stride.
  int blockedDimension = -1;
  int64_t block = 1;
  Product blockStride;

  bool isBroadcast(unsigned dimension) const { return strides[dimension].is(0); }
  /// Whether the dimensions [first, last] act as one of stride strides[last].
  bool collapses(unsigned first, unsigned last, const std::vector<dvt_extent> &extents) const;
};

/// Strides of a dense value in `layout` (one inner block at most), by its own dimensions. Nothing
/// for layouts of other kinds.
std::optional<Access> denseAccess(const dvt_value &value, const Layout &layout);

/// Access to `value` broadcast to an output of `extents`: dimensions meet from the right as in
/// ONNX. Nothing where the extents do not broadcast for sure, or the layout cannot be described.
std::optional<Access> broadcastAccess(const dvt_value &value, const Layout &layout,
                                      const std::vector<dvt_extent> &extents);

std::vector<dvt_extent> extentsOf(const dvt_value &value);
dvt_extent staticExtent(int64_t value);

} // namespace dovetail::codegen
