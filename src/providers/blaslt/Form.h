// SPDX-License-Identifier: Apache-2.0
//
// A product of the problem as the library computes it: column-major matrices. A row-major matrix is
// the transpose of a column-major one, so c = a b becomes d = c^T = b^T a^T with the operands
// changing sides; nothing is moved.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "providers/MatrixProduct.h"
#include "providers/blaslt/Dialect.h"

namespace dovetail::blaslt {

using providers::ProblemReader;

/// Of batches of column-major matrices: at equal distances in each, the batches anywhere.
struct Operand {
  uint32_t value = DVT_NO_VALUE; ///< of the problem, whose memory it is
  bool isTransposed = false;     ///< the library is to transpose it
  int64_t leading = 1;           ///< elements from one column to the next
  int64_t batchStride = 0;       ///< elements; 0: one matrix for all
  std::vector<int64_t> starts;   ///< elements to the first matrix of each batch
  uint32_t alignment = 1;        ///< bytes, of where batches start
  bool isPresent() const { return value != DVT_NO_VALUE; }
};

/// d = activation(alpha * a b + beta * c + bias): d is rows x columns, bias has an element for each
/// row. The library is called once for each batch.
struct Form {
  dvt_type type = DVT_F32;
  bool isTf32 = false;     ///< products of f32 with operands rounded to 10 bits of fraction
  bool isMeasured = false; ///< the fastest of several algorithms is taken, not the library's first
  int64_t rows = 0, columns = 0, depth = 0, batch = 1;
  Operand a, b, c, d; ///< c may be absent
  Operand bias;       ///< may be absent; of it only value and alignment count
  float alpha = 1, beta = 0;
  uint32_t epilogue = kDefault;
  uint64_t workspaceBytes = 0; ///< that algorithms may use at most
  providers::ProductLayouts layouts;

  size_t calls() const { return d.starts.size(); }
  /// What the host sets aside: the algorithm's and what aligning it may take.
  uint64_t reservedBytes() const { return workspaceBytes + dialect().workspaceAlignment; }
  /// Stable name: "gemm:late", "gemm:measured:tf32". Which algorithm it is is decided on the
  /// device.
  std::string algorithm() const {
    return std::string(isMeasured ? "gemm:measured" : "gemm:late") + (isTf32 ? ":tf32" : "");
  }
  std::string numerics() const;
  /// All of it but layouts, on one line.
  std::string text() const;
};

/// The ways to compute the problem, without those in tf32 and measured ones; empty with `reason`
/// where there are none.
std::vector<Form> findForms(const ProblemReader &problem, std::string &reason);

/// The bytes of a kernel. They hold no code, so that any version of the library serves them.
std::string kernelOf(const Form &form);
/// Whether `kernel` is one of `form`; otherwise `reason`.
bool checkKernel(std::string_view kernel, const Form &form, std::string &reason);

} // namespace dovetail::blaslt
