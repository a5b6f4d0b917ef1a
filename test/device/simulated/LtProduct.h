// SPDX-License-Identifier: Apache-2.0
//
// One product of the double: d = epilogue(alpha op(a) op(b) + beta c) over a batch of column-major
// matrices.
#pragma once

#include <string>
#include <vector>

#include "LibraryWork.h"
#include "LtLibrary.h"

namespace simulated::lt {

struct LtMatrices {
  dvt_type type = DVT_F32;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0;
  uint64_t batch = 1;
  int64_t batchStride = 0;
  /// From the first element to behind the last.
  uint64_t span() const;
};

struct LtLibrary::Product {
  LtMatrices matrices[4]; ///< a, b, c and d
  bool transposed[2] = {};
  bool isTf32 = false;
  uint32_t epilogue = 1;
  const void *bias = nullptr;
  dvt_type biasType = DVT_UNDEFINED; ///< of d where it was not set
  float alpha = 1, beta = 0;
  const void *data[4] = {};

  /// Why this is no product; empty where it is.
  std::string check() const;
  /// Why these addresses must not be used together.
  std::string checkOverlap(const void *const addresses[4]) const;
  /// All but addresses and scales.
  std::string text() const;
  std::vector<Range> ranges() const;
  void compute() const;

private:
  double operand(size_t which, uint64_t matrix, uint64_t row, uint64_t column) const;
  double finished(double value, uint64_t row) const;
};

inline uint64_t bytesOf(dvt_type type) { return type == DVT_F32 ? 4 : 2; }

} // namespace simulated::lt
