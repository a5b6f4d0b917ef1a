// SPDX-License-Identifier: Apache-2.0
#include "SimulatedDriver.h"

#include <dlfcn.h>

namespace dovetail::device {

uint64_t simulatedCount(const std::string &api, const char *what) {
  void *library = ::dlopen(simulatedPath(api).c_str(), RTLD_NOW | RTLD_NOLOAD);
  auto *count =
      library ? reinterpret_cast<uint64_t (*)(const char *)>(::dlsym(library, "dvtSimulatedCount"))
              : nullptr;
  EXPECT_NE(count, nullptr) << ::dlerror();
  return count ? count(what) : 0;
}

} // namespace dovetail::device
