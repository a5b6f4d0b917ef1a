// SPDX-License-Identifier: Apache-2.0
//
// Loads MKL through its single-library front. The layers behind it are loaded by MKL itself from
// its own folder, at the first call; a version query makes that happen here, where a failure is
// still an answer and not a crash later.
#include "providers/blas/Library.h"

#include <dlfcn.h>

#include <cstring>
#include <filesystem>
#include <string_view>

namespace dovetail::blas {
namespace {

constexpr int kGnuThreading = 3, kLp64 = 0;
/// Shared-object versions of releases from 2021 to 2026, newest first.
constexpr const char *kNames[] = {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so.1"};

} // namespace

std::string Library::load(const std::string &name) {
  void *handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *reason = dlerror();
    return reason ? reason : name + ": cannot be loaded";
  }
  std::string absent;
  auto find = [&](auto &function, const char *symbol) {
    void *found = dlsym(handle, symbol);
    std::memcpy(&function, &found, sizeof found);
    if (!found && absent.empty())
      absent = symbol;
  };
  int (*setThreadingLayer)(int) = nullptr;
  int (*setInterfaceLayer)(int) = nullptr;
  void (*versionString)(char *, int) = nullptr;
  find(setThreadingLayer, "MKL_Set_Threading_Layer");
  find(setInterfaceLayer, "MKL_Set_Interface_Layer");
  find(versionString, "MKL_Get_Version_String");
  find(setThreads, "MKL_Set_Num_Threads_Local");
  find(sgemm, "cblas_sgemm");
  find(sgemv, "cblas_sgemv");
  find(sgemmBatch, "cblas_sgemm_batch");
  find(packBytes, "cblas_sgemm_pack_get_size");
  find(pack, "cblas_sgemm_pack");
  find(compute, "cblas_sgemm_compute");
  if (!absent.empty()) {
    dlclose(handle);
    return name + ": lacks " + absent;
  }
  // Without its parts the front prints a message and ends the process, so look for them first.
  Dl_info place = {};
  file = dladdr(reinterpret_cast<void *>(versionString), &place) && place.dli_fname
             ? place.dli_fname
             : name;
  const size_t base = file.rfind('/') + 1;
  const std::string suffix = file.substr(file.find(".so", base));
  for (const char *part : {"libmkl_core", "libmkl_gnu_thread", "libmkl_intel_lp64", "libmkl_def"}) {
    const std::string wanted = file.substr(0, base) + part + suffix;
    if (!std::filesystem::exists(wanted)) {
      dlclose(handle);
      return name + ": its part " + wanted + " is missing";
    }
  }
  if (setThreadingLayer(kGnuThreading) != kGnuThreading || setInterfaceLayer(kLp64) != kLp64)
    return name + ": already in use in this process with another threading or integer interface";
  char text[256] = {};
  versionString(text, sizeof text - 1);
  const char *number = std::strstr(text, "Version ");
  versionText = number ? number + std::strlen("Version ") : text;
  versionText = versionText.substr(0, versionText.find('-'));
  loaded = true;
  return {};
}

Library::Library(const char *path) {
  std::string_view rest = path ? path : "";
  std::string tried;
  auto attempt = [&](const std::string &name) {
    std::string reason = load(name);
    if (!reason.empty())
      tried += (tried.empty() ? "" : "; ") + reason;
    return reason.empty();
  };
  while (!rest.empty()) {
    size_t end = rest.find(':');
    std::string folder(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    for (const char *name : kNames)
      // Relative folders would make what is loaded depend on the current one.
      if (!folder.empty() && folder[0] == '/' && std::filesystem::exists(folder + "/" + name) &&
          attempt(folder + "/" + name))
        return;
  }
  for (const char *name : kNames)
    if (attempt(name))
      return;
  file.clear();
  missing = "MKL was not found; `pip download --no-deps mkl` has libmkl_rt and its parts, put "
            "their folder into the "
            "library path (tried: " +
            tried + ")";
}

} // namespace dovetail::blas
