// SPDX-License-Identifier: Apache-2.0
#include "providers/cudnn/Driver.h"

#include <dlfcn.h>

namespace dovetail::cudnn {
namespace {

constexpr const char *kDriver = "libcuda.so.1";
constexpr const char *kStandIn = "cuda-compile-only.so";

bool isStandIn(void *driver) { return dlsym(driver, "dvt_compile_only_driver") != nullptr; }

std::string folderOfThis() {
  static const char anchor = 0;
  Dl_info place;
  std::string file = dladdr(&anchor, &place) && place.dli_fname ? place.dli_fname : "";
  return file.substr(0, file.rfind('/') + 1);
}

} // namespace

std::string provideDriverForCompiling() {
  // By its name it is found where the loader looks, or because it is in the process already.
  if (dlopen(kDriver, RTLD_NOW | RTLD_LOCAL))
    return {};
  const std::string file = folderOfThis() + kStandIn;
  if (dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL))
    return {};
  const char *error = dlerror();
  return std::string("neither a CUDA driver nor the stand-in to compile with can be loaded: ") +
         (error ? error : file);
}

std::string findDriverForRunning(const std::string &file) {
  const char *name = file.empty() ? kDriver : file.c_str();
  void *driver = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!driver) {
    const char *error = dlerror();
    return std::string("there is no CUDA driver here: ") + (error ? error : name);
  }
  if (isStandIn(driver))
    return "there is no CUDA driver here; this process only compiles";
  return {};
}

} // namespace dovetail::cudnn
