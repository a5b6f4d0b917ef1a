// SPDX-License-Identifier: Apache-2.0
//
// OpenBLAS and BLIS as found at run time, through the C interface of BLAS that both have.
// Declarations are our own; only libraries with 32-bit integers are taken. Both are held to one
// thread, their calls are spread over the host's (Tiles.h): no team of theirs gets work, so teams
// do not multiply. Their number of threads is the process's, shared with whoever else uses the
// same file.
//
// Which code runs inside is the library's choice, by processor and by its own environment variables
// (OPENBLAS_CORETYPE, BLIS_ARCH_TYPE), which are the user's: the name of what it chose is part of
// the version, so that measurements are not mixed up.
#pragma once

#include "providers/blas/Mkl.h"

namespace dovetail::blas {

/// Thread safe once loaded.
struct Cblas : LibraryState {
  /// Looks in the folders of `path` (separated by ':'), then where the system does. Of OpenBLAS the
  /// build of PyPI comes first.
  static Cblas openBlas(const char *path);
  static Cblas blis(const char *path);

  Sgemm *sgemm = nullptr;
  Sgemv *sgemv = nullptr;
  /// Floats in a vector of the code that the library chose.
  int lanes = 4;

private:
  std::string adoptOpenBlas(LibraryFile &library);
  std::string adoptBlis(LibraryFile &library);
};

} // namespace dovetail::blas
