// SPDX-License-Identifier: Apache-2.0
//
// Loads MKL through its single-library front. The layers behind it are loaded by MKL itself from
// its own folder, at the first call; a version query makes that happen here, where a failure is
// still an answer and not a crash later. MKL loads them for all of the process to see, and its
// parts find each other that way.
#include "providers/blas/Mkl.h"

#include <dlfcn.h>

#include <filesystem>

namespace dovetail::blas {
namespace {

constexpr int kGnuThreading = 3, kLp64 = 0;

} // namespace

std::string Mkl::adopt(LibraryFile &library) {
  int (*setThreadingLayer)(int) = nullptr;
  int (*setInterfaceLayer)(int) = nullptr;
  void (*versionString)(char *, int) = nullptr;
  library.find(setThreadingLayer, "MKL_Set_Threading_Layer");
  library.find(setInterfaceLayer, "MKL_Set_Interface_Layer");
  library.find(versionString, "MKL_Get_Version_String");
  library.find(setThreads, "MKL_Set_Num_Threads_Local");
  library.find(sgemm, "cblas_sgemm");
  library.find(sgemv, "cblas_sgemv");
  library.find(sgemmBatch, "cblas_sgemm_batch");
  library.find(packBytes, "cblas_sgemm_pack_get_size");
  library.find(pack, "cblas_sgemm_pack");
  library.find(compute, "cblas_sgemm_compute");
  if (std::string absent = library.lacks(); !absent.empty())
    return absent;
  // Without its parts the front prints a message and ends the process, so look for them first.
  Dl_info place = {};
  const std::string front =
      dladdr(reinterpret_cast<void *>(versionString), &place) && place.dli_fname ? place.dli_fname
                                                                                 : library.file();
  const size_t base = front.rfind('/') + 1;
  const std::string suffix = front.substr(front.find(".so", base));
  for (const char *part : {"libmkl_core", "libmkl_gnu_thread", "libmkl_intel_lp64", "libmkl_def"}) {
    const std::string wanted = front.substr(0, base) + part + suffix;
    if (!std::filesystem::exists(wanted))
      return "its part " + wanted + " is missing";
  }
  if (setThreadingLayer(kGnuThreading) != kGnuThreading || setInterfaceLayer(kLp64) != kLp64)
    return "already in use in this process with another threading or integer interface";
  char text[256] = {};
  versionString(text, sizeof text - 1);
  const char *number = std::strstr(text, "Version ");
  versionText = number ? number + std::strlen("Version ") : text;
  versionText = versionText.substr(0, versionText.find('-'));
  return {};
}

Mkl Mkl::open(const char *path) {
  Mkl mkl;
  // Shared-object versions of releases from 2021 to 2026, newest first.
  openLibrary(mkl, path, {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so.1"}, Binding::Process,
              "MKL was not found; `pip download --no-deps mkl` has libmkl_rt and its parts, put "
              "their folder into the library path",
              [&](LibraryFile &library) { return mkl.adopt(library); });
  return mkl;
}

} // namespace dovetail::blas
