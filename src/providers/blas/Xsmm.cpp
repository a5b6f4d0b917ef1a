// SPDX-License-Identifier: Apache-2.0
//
// Loads libxsmm and asks it for kernels.
#include "providers/blas/Xsmm.h"

#include <cstdlib>
#include <filesystem>

namespace dovetail::blas {
namespace {

constexpr int kTransposeSecond = 2, kNoPrefetch = 0;

/// libxsmm tells its version nowhere but in the name of its file.
std::string versionIn(const std::string &file) {
  std::error_code error;
  const std::string name = std::filesystem::canonical(file, error).filename().string();
  const size_t end = name.rfind(".so.");
  return error || end == std::string::npos ? "1.x" : name.substr(end + 4);
}

} // namespace

std::string Xsmm::adopt(LibraryFile &library) {
  library.find(initialise, "libxsmm_init");
  library.find(dispatch, "libxsmm_smmdispatch");
  library.find(dispatchSum, "libxsmm_smmdispatch_reducebatch_strd");
  if (std::string absent = library.lacks(); !absent.empty())
    return absent;
  versionText = versionIn(library.file());
  return {};
}

Xsmm Xsmm::open(const char *path) {
  Xsmm xsmm;
  openLibrary(xsmm, path, {"libxsmm.so.1", "libxsmm.so"}, Binding::Own,
              "libxsmm was not found; scripts/setup makes libxsmm.so.1 of Debian's libxsmm-dev, "
              "put the folder of such a file into the library path",
              [&](LibraryFile &library) { return xsmm.adopt(library); });
  return xsmm;
}

XsmmKernel Xsmm::kernelFor(const XsmmRequest &request) const {
  const float alpha = 1, beta = request.accumulates ? 1 : 0;
  const int flags = request.transposedA ? kTransposeSecond : 0;
  XsmmKernel kernel;
  if (request.strideA || request.strideB)
    kernel.sum = dispatchSum(request.columns, request.rows, request.depth, request.strideB,
                             request.strideA, &request.leadingB, &request.leadingA,
                             &request.leadingC, &alpha, &beta, &flags, &kNoPrefetch);
  else
    kernel.single =
        dispatch(request.columns, request.rows, request.depth, &request.leadingB, &request.leadingA,
                 &request.leadingC, &alpha, &beta, &flags, &kNoPrefetch);
  return kernel;
}

std::string Xsmm::refusal() const {
  if (!isLoaded())
    return missing;
  static const bool makes = [this] {
    // Version 1.17 asks for pinned OpenMP threads in the process's environment, for children to
    // inherit, where nobody has said anything about them. That is not for a library to say.
    constexpr const char *kPinning = "OMP_PROC_BIND";
    const bool isSet = std::getenv(kPinning) != nullptr;
    initialise();
    if (!isSet)
      unsetenv(kPinning);
    return kernelFor({16, 16, 16, 16, 16, 16, false, false}).isThere();
  }();
  return makes ? "" : "libxsmm makes no kernels for this processor (it wants AVX2 at least)";
}

} // namespace dovetail::blas
