// SPDX-License-Identifier: Apache-2.0
//
// Opens each library once.
#include "providers/blas/Libraries.h"

namespace dovetail::blas {

void Libraries::open(std::string_view algorithm) {
  auto wants = [&](const LibraryState &library, std::string_view family) {
    return !library.wasTried() && (algorithm.empty() || algorithm.starts_with(family));
  };
  if (wants(openBlas, "openblas:"))
    openBlas = Cblas::openBlas(path.c_str());
  if (wants(blis, "blis:"))
    blis = Cblas::blis(path.c_str());
  if (wants(xsmm, "xsmm:"))
    xsmm = Xsmm::open(path.c_str());
  if (wants(mkl, "mkl:"))
    mkl = Mkl::open(path.c_str());
}

} // namespace dovetail::blas
