// SPDX-License-Identifier: Apache-2.0
//
// A product with its operands located: where each one's bytes are, and where each element of the
// batch begins. And what a library makes of it: a multiplication that is ready to run.
#pragma once

#include <memory>

#include "providers/MatrixProduct.h"
#include "providers/PackedMemory.h"
#include "providers/blas/Libraries.h"

namespace dovetail::blas {

using providers::asMatrix;
using providers::Dims;
using providers::Matrix;
using providers::ProblemReader;
using providers::Product;
using providers::View;

/// An operand's bytes, known since prepare where it is constant, and its form.
struct Source {
  int32_t input = -1; ///< the problem's input at run time, or -1
  const float *constant = nullptr;
  std::vector<int64_t> offsets; ///< elements, one for each batch element
  Matrix matrix{false, 1};
};

struct Operands {
  Product product;
  Source a, b, c, addend;
  uint32_t team = 1; ///< threads

  int rows() const { return static_cast<int>(product.rows()); }
  int columns() const { return static_cast<int>(product.columns()); }
  int depth() const { return static_cast<int>(product.depth()); }
  /// What the result held before counts this much; it is overwritten where there is no addend.
  float beta() const { return product.addend ? product.beta : 0; }
};

/// Ready to run, with packed operands where they pay. Keeps a reference to its Operands.
class Multiplication {
public:
  explicit Multiplication(const Operands &operands) : operands(operands) {}
  virtual ~Multiplication() = default;
  /// c = alpha a b + beta() c for every batch element. `workspace` has the bytes that the method
  /// states; `parallel` may be null.
  virtual void run(const float *a, const float *b, float *c, void *workspace,
                   const dvt_parallel *parallel) const = 0;

protected:
  const Operands &operands;
};

/// What packing needs at prepare.
struct Packing {
  const ProblemReader &problem;
  const dvt_prepare_args &args;
  providers::PackedMemory &memory;
};

/// Whether a view is one matrix for all of the batch.
inline bool isOneMatrix(const View &view) {
  return providers::product(view.dims, 0, view.dims.size() - 2) == 1;
}

/// One matrix whose bytes are known at prepare.
inline bool isConstantMatrix(const ProblemReader &problem, const View &view) {
  return problem.isConstant(view.value) && isOneMatrix(view);
}

} // namespace dovetail::blas
