// SPDX-License-Identifier: Apache-2.0
//
// The libraries that this provider has, in the order in which they are offered. Each is there or
// not on its own account, and is looked for when it is first wanted: opening one costs
// milliseconds, and OpenBLAS's threads spin for a while.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "providers/blas/Cblas.h"
#include "providers/blas/Xsmm.h"

namespace dovetail::blas {

struct Libraries {
  /// `path` as LibraryFile.h has it; may be null.
  explicit Libraries(const char *path) : path(path ? path : "") {}

  struct Named {
    const char *name, *family; ///< the latter is what its algorithms' names begin with
    const LibraryState *state;
  };
  std::array<Named, 4> all() const {
    return {{{"MKL", "mkl:", &mkl},
             {"OpenBLAS", "openblas:", &openBlas},
             {"BLIS", "blis:", &blis},
             {"libxsmm", "xsmm:", &xsmm}}};
  }
  /// Opens the library that has `algorithm` (such as "openblas:sgemm"), or all where it is empty.
  /// For one thread at a time; kernels of other libraries may run.
  void open(std::string_view algorithm = {});
  /// Among those opened so far.
  bool anyLoaded() const {
    for (const Named &library : all())
      if (library.state->isLoaded())
        return true;
    return false;
  }

  Cblas openBlas, blis;
  Xsmm xsmm;
  Mkl mkl;

private:
  std::string path;
};

} // namespace dovetail::blas
