// SPDX-License-Identifier: Apache-2.0
//
// Opens drivers' shared objects.
#include "device/DriverLibrary.h"

#include <dlfcn.h>
#include <fmt/ranges.h>
#include <link.h>

namespace dovetail::device {

Expected<DriverLibrary> DriverLibrary::open(const std::string &path,
                                            const std::vector<std::string> &names) {
  const std::vector<std::string> given{path};
  const std::vector<std::string> &candidates = path.empty() ? names : given;
  std::string reason;
  for (const std::string &name : candidates) {
    void *handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char *why = ::dlerror();
      reason = why ? why : "cannot be opened";
      continue;
    }
    DriverLibrary library;
    library.handle = handle;
    struct link_map *map = nullptr;
    bool isKnown = ::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name;
    library.file = isKnown ? map->l_name : name;
    return library;
  }
  return unavailable("no driver: none of {} opens here ({}); install the device's driver, or name "
                     "it in DOVETAIL_DRIVERS",
                     fmt::join(candidates, ", "), reason);
}

void *DriverLibrary::symbol(const char *name) const { return ::dlsym(handle, name); }

} // namespace dovetail::device
