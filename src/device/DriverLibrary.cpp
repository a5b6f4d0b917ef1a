// SPDX-License-Identifier: Apache-2.0
//
// Opens drivers' shared objects.
#include "device/DriverLibrary.h"

#include <dlfcn.h>
#include <fmt/ranges.h>
#include <link.h>

namespace dovetail::device {

namespace {

/// The first that this process has already; else the first that opens. Null with the last reason.
void *openFirst(const std::vector<std::string> &names, std::string &opened, std::string &reason) {
  for (int flags : {RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL})
    for (const std::string &name : names) {
      opened = name;
      if (void *handle = ::dlopen(name.c_str(), flags))
        return handle;
      const char *why = ::dlerror();
      reason = why ? why : "cannot be opened";
    }
  return nullptr;
}

} // namespace

Expected<DriverLibrary> DriverLibrary::open(const std::string &path,
                                            const std::vector<std::string> &names) {
  const std::vector<std::string> given{path};
  const std::vector<std::string> &candidates = path.empty() ? names : given;
  std::string name, reason;
  DriverLibrary library;
  library.handle = openFirst(candidates, name, reason);
  if (!library.handle)
    return unavailable("no driver: none of {} opens here ({}); install the device's driver, or "
                       "name it in DOVETAIL_DRIVERS",
                       fmt::join(candidates, ", "), reason);
  struct link_map *map = nullptr;
  bool isKnown = ::dlinfo(library.handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name;
  library.file = isKnown ? map->l_name : name;
  return library;
}

void *DriverLibrary::symbol(const char *name) const { return ::dlsym(handle, name); }

} // namespace dovetail::device
