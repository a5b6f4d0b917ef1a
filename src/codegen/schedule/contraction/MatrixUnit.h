// SPDX-License-Identifier: Apache-2.0
//
// The instructions of tensor and matrix cores that kernels use, by their shapes and by what each
// lane of a warp hands over. A lane's part of an operand is a vector of 32-bit words, each one f32
// or two neighbours along the depth of 16 bits; its part of the sums is a vector of f32. Where the
// elements lie is said twice, independently: by the loads of gpu/MatrixProduct.cpp, and by
// gpu/MatrixHost.cpp, which does on the host what a device does.
#pragma once

#include <string>
#include <vector>

#include "codegen/schedule/Machine.h"

namespace dovetail::codegen {

struct MatrixUnit {
  enum class Vendor { Nvidia, Amd } vendor;
  dvt_type type;         ///< of the operands in memory
  const char *numerics;  ///< class of rounding of the products; sums are f32 in all of them
  int64_t rows, columns; ///< of the result
  int64_t depth;         ///< summed by one instruction
  int64_t lanes;         ///< threads of a warp
  int64_t leftWords, rightWords, sums; ///< of a lane

  int64_t elementsPerWord() const { return type == DVT_F32 ? 1 : 2; }
  int64_t depthWords() const { return depth / elementsPerWord(); }
  /// Of the function that stands for the instruction until the device is known: from the left
  /// words, the right words and the sums so far, the new sums.
  std::string function() const;

  static const std::vector<MatrixUnit> &all();
  /// That of a device for products of such operands; null where there is none.
  static const MatrixUnit *find(const Machine &machine, dvt_type left, dvt_type right);
};

/// i32 (f32): rounds to the nearest tf32, ties away from zero; the form that matrix units take.
inline constexpr const char *kRoundToTf32Function = "dovetail_round_to_tf32";

} // namespace dovetail::codegen
