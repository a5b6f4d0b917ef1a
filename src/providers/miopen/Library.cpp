// SPDX-License-Identifier: Apache-2.0
//
// Loads MIOpen. Its file name has said version 1 since the first release, so only miopenGetVersion
// tells what it is.
#include "providers/miopen/Library.h"

#include <dlfcn.h>

#include "providers/DeviceCalls.h"
#include "providers/LibrarySearch.h"

namespace dovetail::miopen {
namespace {

constexpr size_t kOldestMajor = 2, kOldestMinor = 10, kNewestMajor = 3;

/// Whether all functions of a list were found; where not, none of them counts.
template <typename... Functions> void allOrNone(Functions *&...functions) {
  if ((... && functions))
    return;
  (..., (functions = nullptr));
}

} // namespace

void Library::findFunctions(void *from, std::string &absent) {
#define DOVETAIL_MIOPEN_LOOKUP(function, result, parameters)                                       \
  this->function = reinterpret_cast<result(*) parameters>(dlsym(from, "miopen" #function));        \
  if (!this->function && absent.empty())                                                           \
    absent = "miopen" #function;
  DOVETAIL_MIOPEN_FUNCTIONS(DOVETAIL_MIOPEN_LOOKUP)
  const std::string absentOfAll = absent;
  DOVETAIL_MIOPEN_FIND2_FUNCTIONS(DOVETAIL_MIOPEN_LOOKUP)
  DOVETAIL_MIOPEN_FUSION_FUNCTIONS(DOVETAIL_MIOPEN_LOOKUP)
  DOVETAIL_MIOPEN_NORM_FUNCTIONS(DOVETAIL_MIOPEN_LOOKUP)
#undef DOVETAIL_MIOPEN_LOOKUP
  absent = absentOfAll;
  allOrNone(CreateConvProblem, DestroyProblem, SetProblemTensorDescriptor, CreateFindOptions,
            DestroyFindOptions, SetFindOptionWorkspaceLimit, FindSolutions, RunSolution,
            DestroySolution, GetSolutionWorkspaceSize, GetSolutionSolverId,
            GetSolverIdConvAlgorithm);
  allOrNone(CreateFusionPlan, DestroyFusionPlan, CompileFusionPlan, CreateOpConvForward,
            CreateOpBiasForward, CreateOpActivationForward, CreateOperatorArgs, DestroyOperatorArgs,
            SetOpArgsConvForward, SetOpArgsBiasForward, SetOpArgsActivForward, ExecuteFusionPlan);
}

std::string Library::load(const std::string &name) {
  opened = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened) {
    const char *reason = dlerror();
    return reason ? reason : name + ": cannot be loaded";
  }
  // What does not fit stays open: the runtime that it brings along does not survive being closed.
  std::string absent;
  findFunctions(opened, absent);
  if (!GetVersion || !GetErrorString)
    return name + ": has no miopenGetVersion, is no MIOpen or one older than 2.10";
  if (const Status status = GetVersion(&version[0], &version[1], &version[2]))
    return name + ": does not tell its version: " + describe(status);
  const std::string found = std::to_string(version[0]) + "." + std::to_string(version[1]) + "." +
                            std::to_string(version[2]);
  if (!isAtLeast(kOldestMajor, kOldestMinor) || version[0] > kNewestMajor)
    return name + ": version " + found + " found, versions from 2.10 to 3.x are supported";
  if (!absent.empty())
    return name + ": version " + found + " lacks " + absent;
  if (!isAtLeast(3, 1)) // the modes were others
    LayerNormForward = nullptr;
  Dl_info place;
  file = dladdr(reinterpret_cast<void *>(GetVersion), &place) && place.dli_fname ? place.dli_fname
                                                                                 : name;
  versionText = found;
  return {};
}

/// In the driver that the host names for devices of ROCm, else in what MIOpen itself depends on.
void Library::findHip(const char *drivers) {
  const std::string file = providers::driverFile(drivers ? drivers : "", "rocm");
  void *driver = file.empty() ? opened : dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!driver)
    return;
  hipMalloc = reinterpret_cast<int (*)(void **, size_t)>(dlsym(driver, "hipMalloc"));
  hipFree = reinterpret_cast<int (*)(void *)>(dlsym(driver, "hipFree"));
  if (!hipMalloc || !hipFree)
    hipMalloc = nullptr;
}

Library::Library(const char *path, const char *drivers) {
  const std::string tried = providers::loadFirst(
      path, {"libMIOpen.so.1"}, [this](const std::string &name) { return load(name); });
  if (tried.empty()) {
    findHip(drivers);
    return;
  }
  missing = "MIOpen 2.10 to 3.x was not found; ROCm has it (package miopen-hip), put the folder "
            "with libMIOpen.so.1 into the library path (tried: " +
            tried + ")";
}

std::string Library::describe(Status status) const {
  const char *name = GetErrorString ? GetErrorString(status) : nullptr;
  return (name ? std::string(name) : "status") + " (" + std::to_string(status) + ")";
}

} // namespace dovetail::miopen
