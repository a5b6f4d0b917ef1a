// SPDX-License-Identifier: Apache-2.0
//
// A prepared matrix product: offsets of every batch element, packed operands, and the call that
// computes it. The addend, a bias or a residual, is written into the result first and the library
// adds to it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "providers/PackedMemory.h"
#include "providers/blas/Library.h"
#include "providers/blas/Product.h"

namespace dovetail::blas {

/// Which of the library's calls computes it.
enum class Call { Gemm, PackedGemm, BatchGemm, Gemv };

/// Stable name of the algorithm.
std::string algorithmName(Call call, const Product &product);
/// The calls that fit a product.
std::vector<Call> callsFor(const ProblemReader &problem, const Product &product);
/// Bytes of the packed operand; 0 where nothing is packed.
uint64_t packedBytesOf(const Library &library, const ProblemReader &problem,
                       const Product &product);
/// Bytes of workspace a call needs.
uint64_t workspaceBytesOf(Call call, const Product &product);

class Kernel {
public:
  /// `args` are those of prepare, but for the number of threads. Empty with `reason` on failure.
  static std::unique_ptr<Kernel> make(std::shared_ptr<const Library> library,
                                      const ProblemReader &problem, const Product &product,
                                      Call call, const dvt_prepare_args &args, uint32_t threads,
                                      std::string &reason);
  uint64_t workspaceBytes() const { return workspaceBytesOf(call, product); }
  dvt_code run(const dvt_run_args &args, std::string &reason) const;

private:
  /// Where an operand's bytes are: an input's number, or bytes known since prepare.
  struct Source {
    int32_t input = -1;
    const float *constant = nullptr;
    std::vector<int64_t> offsets; ///< elements, one for each batch element
    Matrix matrix{false, 1};
  };

  Kernel(std::shared_ptr<const Library> library, const Product &product, Call call,
         uint32_t threads)
      : library(std::move(library)), product(product), call(call), threads(threads) {}
  bool bind(const ProblemReader &problem, const View &view, const dvt_prepare_args &args,
            Source &source, std::string &reason);
  bool packOperand(const ProblemReader &problem, const dvt_prepare_args &args, std::string &reason);
  void fillResult(const float *addend, float *result) const;
  void multiply(const float *x, const float *y, float *result, void *workspace) const;

  std::shared_ptr<const Library> library;
  Product product;
  Call call;
  uint32_t threads;
  Source a, b, c, addend;
  std::vector<Dims> inputExtents;
  std::vector<bool> inputConstant;
  Dims outputExtents;
  bool packsA = false;
  providers::PackedMemory constantMemory;
};

} // namespace dovetail::blas
