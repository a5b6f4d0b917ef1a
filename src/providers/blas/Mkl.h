// SPDX-License-Identifier: Apache-2.0
//
// MKL as found at run time: file, version and the functions used. Declarations are our own, from
// the documented C interface with 32-bit integers, so no header is needed to build. The
// single-library front (libmkl_rt) is told to use the GNU OpenMP layer, whose team the rest of the
// process shares; no environment variable is involved.
//
// Which code runs inside is MKL's choice: on processors other than Intel's it takes its "def"
// library.
#pragma once

#include <cstddef>

#include "providers/blas/LibraryFile.h"

namespace dovetail::blas {

enum Order : int { RowMajor = 101 };
enum Transpose : int { NoTranspose = 111, Transposed = 112, Packed = 151 };
enum Operand : int { MatrixA = 161, MatrixB = 162 };

using Sgemm = void(int order, int transA, int transB, int m, int n, int k, float alpha,
                   const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
using Sgemv = void(int order, int trans, int m, int n, float alpha, const float *a, int lda,
                   const float *x, int incx, float beta, float *y, int incy);

/// Thread safe once loaded.
struct Mkl : LibraryState {
  /// Looks in the folders of `path` (separated by ':'), then where the system does.
  static Mkl open(const char *path);

  Sgemm *sgemm = nullptr;
  Sgemv *sgemv = nullptr;
  void (*sgemmBatch)(int order, const int *transA, const int *transB, const int *m, const int *n,
                     const int *k, const float *alpha, const float **a, const int *lda,
                     const float **b, const int *ldb, const float *beta, float **c, const int *ldc,
                     int groups, const int *groupSizes) = nullptr;
  size_t (*packBytes)(int operand, int m, int n, int k) = nullptr;
  void (*pack)(int order, int operand, int trans, int m, int n, int k, float alpha,
               const float *source, int ld, float *packed) = nullptr;
  void (*compute)(int order, int transA, int transB, int m, int n, int k, const float *a, int lda,
                  const float *b, int ldb, float beta, float *c, int ldc) = nullptr;
  /// Threads for calls of the calling thread; returns the number before (0: the process's).
  int (*setThreads)(int threads) = nullptr;

private:
  std::string adopt(LibraryFile &library);
};

} // namespace dovetail::blas
