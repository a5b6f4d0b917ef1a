// SPDX-License-Identifier: Apache-2.0
//
// The libraries that this provider has, in the order in which they are offered. Each is there or
// not on its own account.
#pragma once

#include <array>
#include <utility>

#include "providers/blas/Cblas.h"
#include "providers/blas/Xsmm.h"

namespace dovetail::blas {

struct Libraries {
  explicit Libraries(const char *path)
      : openBlas(Cblas::openBlas(path)), blis(Cblas::blis(path)), xsmm(path), mkl(path) {}

  using Named = std::pair<const char *, const LibraryState *>;
  std::array<Named, 4> all() const {
    return {{{"MKL", &mkl}, {"OpenBLAS", &openBlas}, {"BLIS", &blis}, {"libxsmm", &xsmm}}};
  }
  bool anyLoaded() const {
    for (const auto &[name, library] : all())
      if (library->isLoaded())
        return true;
    return false;
  }

  Cblas openBlas, blis;
  Xsmm xsmm;
  Mkl mkl;
};

} // namespace dovetail::blas
