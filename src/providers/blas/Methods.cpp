// SPDX-License-Identifier: Apache-2.0
//
// Asks the libraries in their order, and what they have in common.
#include "providers/blas/Methods.h"

namespace dovetail::blas {

std::vector<Method> methodsFor(const Libraries &libraries, const ProblemReader &problem,
                               const Product &product) {
  std::vector<Method> methods;
  if (libraries.mkl.isLoaded())
    offerMkl(libraries.mkl, problem, product, methods);
  if (libraries.openBlas.isLoaded())
    offerCblas(libraries.openBlas, Library::OpenBlas, product, methods);
  if (libraries.blis.isLoaded())
    offerCblas(libraries.blis, Library::Blis, product, methods);
  if (libraries.xsmm.isLoaded())
    offerXsmm(libraries.xsmm, problem, product, methods);
  return methods;
}

std::unique_ptr<Multiplication> multiplicationBy(const Libraries &libraries, const Method &method,
                                                 const Operands &operands, const Packing &packing,
                                                 std::string &reason) {
  switch (method.library) {
  case Library::Mkl:
    return multiplyByMkl(libraries.mkl, method.form, operands, packing, reason);
  case Library::OpenBlas:
    return multiplyByCblas(libraries.openBlas, method.form, operands);
  case Library::Blis:
    return multiplyByCblas(libraries.blis, method.form, operands);
  case Library::Xsmm:
    return multiplyByXsmm(libraries.xsmm, method.form, operands, packing, reason);
  }
  return nullptr;
}

void multiplyVector(Sgemv *sgemv, const Operands &operands, const float *a, const float *b,
                    float *c, int first, int count) {
  // A column of results is a b with b a vector; a row of them is b^T a^T.
  const bool column = operands.columns() == 1;
  const Matrix &matrix = column ? operands.a.matrix : operands.b.matrix;
  const Matrix &vector = column ? operands.b.matrix : operands.a.matrix;
  const int leading = static_cast<int>(matrix.leading), depth = operands.depth();
  // What is stored has a row for each result, or a column.
  const bool resultsDown = column != matrix.transposed;
  // Steps along the vector: a column steps by its leading dimension unless it is stored as a row.
  const int step = column == vector.transposed ? 1 : static_cast<int>(vector.leading);
  const int resultStep = column ? static_cast<int>(operands.c.matrix.leading) : 1;
  const int64_t start = resultsDown ? int64_t(first) * leading : first;
  sgemv(RowMajor, resultsDown ? NoTranspose : Transposed, resultsDown ? count : depth,
        resultsDown ? depth : count, operands.product.alpha, (column ? a : b) + start, leading,
        column ? b : a, step, operands.beta(), c + int64_t(first) * resultStep, resultStep);
}

} // namespace dovetail::blas
