// SPDX-License-Identifier: Apache-2.0
//
// libxsmm as found at run time: it makes kernels for small products of given extents, and for sums
// of such products over blocks a fixed distance apart. Declarations are our own, of the interface
// of 1.x. Its matrices are column-major, which for us means that the operands change places; here
// that is done: extents and pointers are those of a row-major c = a b.
#pragma once

#include <cstdint>

#include "providers/blas/LibraryFile.h"

namespace dovetail::blas {

/// A kernel of libxsmm: c (+)= b^T... in its terms; call it through XsmmKernel.
struct XsmmKernel {
  void (*sum)(const float *b, const float *a, float *c, const unsigned long long *count) = nullptr;
  void (*single)(const float *b, const float *a, float *c) = nullptr;
  bool isThere() const { return sum || single; }
  /// c = or += the sum of `count` products of blocks.
  void operator()(const float *a, const float *b, float *c, unsigned long long count) const {
    if (sum)
      sum(b, a, c, &count);
    else
      single(b, a, c);
  }
};

struct XsmmRequest {
  int rows, columns, depth; ///< of one product
  int leadingA, leadingB, leadingC;
  bool transposedA, accumulates; ///< a is stored [depth, rows]; adds to c
  /// Bytes from a block to the next one; a kernel for one block where both are 0.
  int strideA = 0, strideB = 0;
};

/// Thread safe once loaded.
struct Xsmm : LibraryState {
  /// Looks in the folders of `path` (separated by ':'), then where the system does.
  static Xsmm open(const char *path);
  /// Makes the kernel, or finds it again; empty where the library cannot.
  XsmmKernel kernelFor(const XsmmRequest &request) const;
  /// Why no kernels can be made on this processor; empty where they can. The first call costs
  /// milliseconds.
  std::string refusal() const;

private:
  std::string adopt(LibraryFile &library);
  void (*initialise)() = nullptr;
  using Single = void(const float *, const float *, float *);
  using Sum = void(const float *, const float *, float *, const unsigned long long *);
  Single *(*dispatch)(int m, int n, int k, const int *lda, const int *ldb, const int *ldc,
                      const float *alpha, const float *beta, const int *flags,
                      const int *prefetch) = nullptr;
  Sum *(*dispatchSum)(int m, int n, int k, int strideA, int strideB, const int *lda, const int *ldb,
                      const int *ldc, const float *alpha, const float *beta, const int *flags,
                      const int *prefetch) = nullptr;
};

} // namespace dovetail::blas
