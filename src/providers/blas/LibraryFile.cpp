// SPDX-License-Identifier: Apache-2.0
//
// The search itself. Sanitizers replace functions of the C library, which a library that prefers
// its own symbols would not see, and refuse such libraries; built with them everything is bound as
// the process has it.
#include "providers/blas/LibraryFile.h"

#include <dlfcn.h>

#include <filesystem>
#include <string_view>

namespace dovetail::blas {
namespace {

#if defined(__has_feature) // clang's way to tell
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DOVETAIL_SANITIZED 1
#endif
#endif
#if defined(DOVETAIL_SANITIZED) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kOwnFirst = 0;
#else
constexpr int kOwnFirst = RTLD_DEEPBIND;
#endif

/// The file behind an opened name; `name` itself where it cannot be told.
std::string fileOf(void *handle, const std::string &name) {
  char folder[4096] = {};
  if (name.find('/') != std::string::npos || dlinfo(handle, RTLD_DI_ORIGIN, folder) != 0)
    return name;
  return std::string(folder) + "/" + name;
}

} // namespace

void *LibraryFile::lookup(const std::string &symbol) {
  void *found = dlsym(handle, symbol.c_str());
  if (!found && absent.empty())
    absent = symbol;
  return found;
}

void openLibrary(LibraryState &state, const char *path, std::initializer_list<const char *> names,
                 Binding binding, const std::string &howToGet,
                 const std::function<std::string(LibraryFile &)> &adopt) {
  std::string tried;
  auto attempt = [&](const std::string &name) {
    void *handle =
        dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | (binding == Binding::Own ? kOwnFirst : 0));
    std::string reason;
    if (handle) {
      LibraryFile file(handle, fileOf(handle, name));
      reason = adopt(file);
      if (reason.empty()) {
        state.file = file.file();
        return true;
      }
      reason = name + ": " + reason;
    } else {
      const char *error = dlerror();
      reason = error ? error : name + ": cannot be loaded";
    }
    tried += (tried.empty() ? "" : "; ") + reason;
    return false;
  };
  std::string_view rest = path ? path : "";
  while (!rest.empty()) {
    const size_t end = rest.find(':');
    const std::string folder(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    for (const char *name : names)
      // Relative folders would make what is loaded depend on the current one.
      if (!folder.empty() && folder[0] == '/' && std::filesystem::exists(folder + "/" + name) &&
          attempt(folder + "/" + name))
        return;
  }
  for (const char *name : names)
    if (attempt(name))
      return;
  state.versionText.clear();
  state.missing = howToGet + " (tried: " + tried + ")";
}

} // namespace dovetail::blas
