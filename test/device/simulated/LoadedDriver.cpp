// SPDX-License-Identifier: Apache-2.0
//
// The doubles' side of LibraryWork.h.
#include <dlfcn.h>

#include "LibraryWork.h"

namespace simulated {

LoadedDriver LoadedDriver::beside(const void *anchor, const std::string &name) {
  LoadedDriver driver;
  Dl_info place;
  if (!dladdr(anchor, &place) || !place.dli_fname)
    return driver;
  const std::string file = place.dli_fname;
  void *loaded = dlopen((file.substr(0, file.rfind('/') + 1) + name).c_str(),
                        RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (!loaded)
    return driver;
  driver.give = reinterpret_cast<Give>(dlsym(loaded, "dvtSimulatedLibraryWork"));
  driver.explain = reinterpret_cast<Explain>(dlsym(loaded, "dvtSimulatedExplain"));
  if (!driver.explain)
    driver.give = nullptr;
  return driver;
}

std::string LoadedDriver::enqueue(const std::string &what, void *stream,
                                  const std::vector<Range> &ranges,
                                  std::function<void()> run) const {
  if (!give)
    return "there is no simulated driver in this process";
  const int code = give(&what, stream, &ranges, &run);
  return code == 0 ? std::string() : std::string(explain(code));
}

} // namespace simulated
