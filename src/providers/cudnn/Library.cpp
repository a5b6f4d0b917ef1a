// SPDX-License-Identifier: Apache-2.0
//
// Loads cuDNN. The file is small and opens its parts, which are large, as they are needed; so a
// process that only asks for the version pays little.
#include "providers/cudnn/Library.h"

#include <dlfcn.h>

#include <string_view>

#include "providers/LibrarySearch.h"

namespace dovetail::cudnn {
namespace {

constexpr size_t kLeastWithGraphs = 90800; ///< the first that plans without a device
constexpr size_t kLeastVersion = 8000, kNextMajor = 100000;

std::string textOf(size_t version) {
  // Up to 8 a thousand stands for the major version, from 9 on ten thousand.
  const size_t unit = version < 10000 ? 1000 : 10000;
  return std::to_string(version / unit) + "." + std::to_string(version % unit / 100) + "." +
         std::to_string(version % 100);
}

} // namespace

Library::Absent Library::findFunctions(void *opened) {
  Absent absent;
  std::string *first = nullptr;
#define DOVETAIL_CUDNN_LOOKUP(function, result, parameters)                                        \
  this->function = reinterpret_cast<result(*) parameters>(dlsym(opened, "cudnn" #function));       \
  if (!this->function && first->empty())                                                           \
    *first = "cudnn" #function;
  first = &absent.always;
  DOVETAIL_CUDNN_FUNCTIONS(DOVETAIL_CUDNN_LOOKUP)
  first = &absent.graphs;
  DOVETAIL_CUDNN_GRAPH_FUNCTIONS(DOVETAIL_CUDNN_LOOKUP)
  first = &absent.legacy;
  DOVETAIL_CUDNN_LEGACY_FUNCTIONS(DOVETAIL_CUDNN_LOOKUP)
#undef DOVETAIL_CUDNN_LOOKUP
  GetLastErrorString =
      reinterpret_cast<void (*)(char *, size_t)>(dlsym(opened, "cudnnGetLastErrorString"));
  return absent;
}

#define DOVETAIL_CUDNN_FORGET(function, result, parameters) this->function = nullptr;
void Library::forgetGraphs() { DOVETAIL_CUDNN_GRAPH_FUNCTIONS(DOVETAIL_CUDNN_FORGET) }
void Library::forgetLegacy(){DOVETAIL_CUDNN_LEGACY_FUNCTIONS(DOVETAIL_CUDNN_FORGET)}
#undef DOVETAIL_CUDNN_FORGET

std::string Library::load(const std::string &name) {
  void *opened = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened) {
    const char *reason = dlerror();
    return reason ? reason : name + ": cannot be loaded";
  }
  auto reject = [&](const std::string &reason) {
    dlclose(opened);
    return name + ": " + reason;
  };
  const Absent absent = findFunctions(opened);
  if (!GetVersion)
    return reject("has no cudnnGetVersion, is no cuDNN");
  const size_t version = GetVersion();
  const std::string found = textOf(version);
  if (version < kLeastVersion || version >= kNextMajor)
    return reject("version " + found + " found, 8 and 9 are supported");
  withoutGraphs = absent.graphs.empty() ? "" : "version " + found + " lacks " + absent.graphs;
  if (version < kLeastWithGraphs)
    withoutGraphs = "version " + found + " found, " + textOf(kLeastWithGraphs) +
                    " or a later 9.x is needed, as earlier ones cannot plan without a device";
  if (!absent.always.empty())
    return reject("version " + found + " lacks " + absent.always);
  if (!withoutGraphs.empty())
    forgetGraphs();
  if (!absent.legacy.empty())
    forgetLegacy();
  if (!hasGraphs() && !hasLegacy())
    return reject(withoutGraphs + "; of the older calls it lacks " + absent.legacy);
  Dl_info place;
  file = dladdr(reinterpret_cast<void *>(GetVersion), &place) && place.dli_fname ? place.dli_fname
                                                                                 : name;
  versionText = found;
  return {};
}

Library::Library(const char *path) {
  const std::string tried =
      providers::loadFirst(path, {"libcudnn.so.9", "libcudnn.so.8"},
                           [this](const std::string &name) { return load(name); });
  if (tried.empty())
    return;
  missing = "cuDNN " + textOf(kLeastWithGraphs) +
            " or a later 9.x was not found; the Python package nvidia-cudnn-cu13 (or -cu12) has "
            "it, put the folder with libcudnn.so.9 into the library path (tried: " +
            tried + ")";
}

std::string Library::lastError() const {
  char text[4096] = {};
  if (!GetLastErrorString)
    return {};
  GetLastErrorString(text, sizeof text);
  text[sizeof text - 1] = 0;
  // A trace of what was tried, a line each, innermost first; some are JSON.
  std::string_view rest = text, first;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    constexpr std::string_view kReason = "Reason: ";
    if (const size_t reason = line.find(kReason); reason != std::string_view::npos)
      return std::string(line.substr(reason + kReason.size()));
    if (first.empty() && !line.empty() && line.front() != '{')
      first = line;
  }
  return std::string(first);
}

std::string Library::describe(Status status) const {
  const char *name = GetErrorString(status);
  std::string text = name ? name : "status " + std::to_string(status);
  const std::string detail = lastError();
  return detail.empty() ? text : text + ": " + detail;
}

} // namespace dovetail::cudnn
