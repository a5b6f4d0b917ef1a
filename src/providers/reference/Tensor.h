// SPDX-License-Identifier: Apache-2.0
//
// Dense row-major tensors as the interpreter holds them, and their elements as numbers. Kernels
// compute on double, int64_t or uint64_t only: numbers() widens a whole tensor, storeNumbers()
// rounds it back once. 4-bit elements are held one to a byte here and packed at the door.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "Status.h"

namespace dovetail::reference {

using Extents = std::vector<int64_t>;

/// The type in which elements are computed: double, int64_t or uint64_t (bool is unsigned).
enum class NumberKind { Real, Signed, Unsigned };

bool isKnownType(dvt_type type);
const char *nameOf(dvt_type type);
/// Bytes an element takes in a Tensor; 4-bit elements take one.
size_t elementBytes(dvt_type type);
bool isFourBit(dvt_type type);
NumberKind kindOf(dvt_type type);
/// Smallest and largest value of an integer type.
int64_t lowestInteger(dvt_type type);
uint64_t highestInteger(dvt_type type);

/// Product; nothing where an extent is negative or the product does not fit.
std::optional<int64_t> elementCount(const Extents &extents);
/// Row-major strides in elements.
Extents rowMajorStrides(const Extents &extents);
/// "[1,3,224]"
std::string textOf(const Extents &extents);

struct Tensor {
  dvt_type type = DVT_UNDEFINED;
  Extents extents;
  uint8_t *data = nullptr; ///< borrowed, or `owned`
  std::unique_ptr<uint8_t[]> owned;

  int64_t count() const;
  int64_t rank() const { return static_cast<int64_t>(extents.size()); }
  size_t bytes() const { return static_cast<size_t>(count()) * elementBytes(type); }
  /// Memory of its own, not cleared. The extents must be valid.
  static Tensor allocate(dvt_type type, Extents extents);
};

double halfToDouble(uint16_t bits);
/// Rounds to nearest, ties to even.
uint16_t doubleToHalf(double value);
double brainToDouble(uint16_t bits);
uint16_t doubleToBrain(double value);

/// All elements widened. W is double, int64_t or uint64_t; floats become integers by truncation,
/// integers out of W's range wrap.
template <typename W> std::vector<W> numbers(const Tensor &tensor);
/// Writes count() numbers, rounded to the tensor's type: to nearest even for floats, modulo 2^bits
/// for integers, zero or one for bool. Reals stored as integers are truncated and saturate; NaN
/// becomes 0.
template <typename W> void storeNumbers(Tensor &tensor, const W *values);

/// Calls body(W{}) with the number type of `kind`, so that a generic lambda is compiled three
/// times, not fourteen.
template <typename Body> auto withNumbers(NumberKind kind, Body &&body) {
  switch (kind) {
  case NumberKind::Signed:
    return body(int64_t{});
  case NumberKind::Unsigned:
    return body(uint64_t{});
  case NumberKind::Real:
    break;
  }
  return body(double{});
}

} // namespace dovetail::reference
