// SPDX-License-Identifier: Apache-2.0
//
// The ways in which the libraries compute a product: a name for each, what it costs, and making it
// ready. A library has a file with its own; here they are put together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "providers/blas/Operands.h"

namespace dovetail::blas {

enum class Library { Mkl, OpenBlas, Blis, Xsmm };
enum class Form {
  Gemm,       ///< a call for each matrix
  PackedGemm, ///< with a constant operand packed
  BatchGemm,  ///< one call for the whole batch
  Gemv,       ///< matrix times vector
  BlockGemm,  ///< sums of products of blocks
  PackedBlockGemm
};

struct Method {
  Library library;
  Form form;
  std::string name; ///< of the algorithm, the library first
  double
      efficiency; ///< part of a core's peak with 512-bit vectors that it reaches, from experience
  uint64_t workspaceBytes = 0, packedBytes = 0;
  bool bringsTeam = false; ///< threads of the library's own, not the host's parallel-for
};

/// All that fit a product, in a fixed order.
std::vector<Method> methodsFor(const Libraries &libraries, const ProblemReader &problem,
                               const Product &product);
/// Empty with `reason` on failure. `operands` must outlive it and stay where they are.
std::unique_ptr<Multiplication> multiplicationBy(const Libraries &libraries, const Method &method,
                                                 const Operands &operands, const Packing &packing,
                                                 std::string &reason);

// Each library's part.
void offerMkl(const Mkl &library, const ProblemReader &problem, const Product &product,
              std::vector<Method> &methods);
void offerCblas(const Cblas &library, Library which, const Product &product,
                std::vector<Method> &methods);
void offerXsmm(const Xsmm &library, const ProblemReader &problem, const Product &product,
               std::vector<Method> &methods);
std::unique_ptr<Multiplication> multiplyByMkl(const Mkl &library, Form form,
                                              const Operands &operands, const Packing &packing,
                                              std::string &reason);
std::unique_ptr<Multiplication> multiplyByCblas(const Cblas &library, Form form,
                                                const Operands &operands);
std::unique_ptr<Multiplication> multiplyByXsmm(const Xsmm &library, Form form,
                                               const Operands &operands, const Packing &packing,
                                               std::string &reason);

/// `count` elements from `first` of a result that is one column or one row, by `sgemv`.
void multiplyVector(Sgemv *sgemv, const Operands &operands, const float *a, const float *b,
                    float *c, int first, int count);

} // namespace dovetail::blas
