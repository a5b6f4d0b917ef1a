// SPDX-License-Identifier: Apache-2.0
//
// Loads OpenBLAS and BLIS and sets both to one thread.
#include "providers/blas/Cblas.h"

#include <omp.h>

namespace dovetail::blas {
namespace {

/// Floats in a vector of what the libraries have for a processor that they call `core`.
int lanesOf(const std::string &core) {
  for (const char *wide : {"SkylakeX", "Cooperlake", "SapphireRapids", "skx", "knl"})
    if (core == wide)
      return 16;
  for (const char *middle : {"Haswell", "Zen", "Excavator", "haswell", "zen", "zen2", "zen3"})
    if (core == middle)
      return 8;
  return 4;
}

} // namespace

std::string Cblas::adoptOpenBlas(LibraryFile &library) {
  // PyPI's build has a prefix, so that it can live beside others.
  const std::string name = library.file().substr(library.file().rfind('/') + 1);
  const std::string prefix = name.rfind("libscipy_", 0) == 0 ? "scipy_" : "";
  void (*setThreads)(int) = nullptr;
  int (*parallel)() = nullptr;
  const char *(*config)() = nullptr;
  const char *(*coreName)() = nullptr;
  library.find(setThreads, prefix + "openblas_set_num_threads");
  library.find(parallel, prefix + "openblas_get_parallel");
  library.find(config, prefix + "openblas_get_config");
  library.find(coreName, prefix + "openblas_get_corename");
  library.find(sgemm, prefix + "cblas_sgemm");
  library.find(sgemv, prefix + "cblas_sgemv");
  if (std::string absent = library.lacks(); !absent.empty())
    return absent;
  const std::string text = config();
  if (text.find("USE64BITINT") != std::string::npos)
    return "built with 64-bit integers; a build with 32-bit ones is wanted";
  if (parallel() == 0 && text.find("USE_LOCKING") == std::string::npos)
    return "built for programs with one thread; a build with pthread or OpenMP is wanted";
  // The build with OpenMP sets the number for the calling thread's teams on the way.
  const int before = omp_get_max_threads();
  setThreads(1);
  omp_set_num_threads(before);
  const size_t start = text.find(' ');
  const std::string core = coreName();
  versionText = start == std::string::npos ? text : text.substr(start + 1);
  versionText = versionText.substr(0, versionText.find(' ')) + " (" + core + ")";
  lanes = lanesOf(core);
  return {};
}

std::string Cblas::adoptBlis(LibraryFile &library) {
  const char *(*version)() = nullptr;
  long (*integerBits)() = nullptr;
  void (*setThreads)(long) = nullptr;
  int (*architecture)() = nullptr;
  const char *(*architectureName)(int) = nullptr;
  library.find(version, "bli_info_get_version_str");
  library.find(integerBits, "bli_info_get_blas_int_type_size");
  library.find(setThreads, "bli_thread_set_num_threads");
  library.find(architecture, "bli_arch_query_id");
  library.find(architectureName, "bli_arch_string");
  library.find(sgemm, "cblas_sgemm");
  library.find(sgemv, "cblas_sgemv");
  if (std::string absent = library.lacks(); !absent.empty())
    return absent;
  if (integerBits() != 32)
    return "its BLAS interface has 64-bit integers; a build with 32-bit ones is wanted";
  setThreads(1);
  const std::string core = architectureName(architecture());
  versionText = std::string(version()) + " (" + core + ")";
  lanes = lanesOf(core);
  return {};
}

Cblas Cblas::openBlas(const char *path) {
  Cblas library;
  openLibrary(library, path, {"libscipy_openblas.so", "libopenblas.so.0"}, Binding::Own,
              "OpenBLAS was not found; `pip download --no-deps scipy-openblas32` has "
              "libscipy_openblas.so, put its folder into the library path, or install Debian's "
              "libopenblas0-pthread",
              [&](LibraryFile &file) { return library.adoptOpenBlas(file); });
  return library;
}

Cblas Cblas::blis(const char *path) {
  Cblas library;
  openLibrary(library, path, {"libblis.so.4"}, Binding::Own,
              "BLIS was not found; install Debian's libblis4-pthread, or put the folder of "
              "libblis.so.4 into the library path",
              [&](LibraryFile &file) { return library.adoptBlis(file); });
  return library;
}

} // namespace dovetail::blas
