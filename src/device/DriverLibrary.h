// SPDX-License-Identifier: Apache-2.0
//
// A driver's shared object: found, opened and never closed, as drivers do not survive that.
#pragma once

#include <string>
#include <vector>

#include "support/Expected.h"

namespace dovetail::device {

class DriverLibrary {
public:
  /// The first of `names` that this process has loaded, since two versions of a runtime do not know
  /// each other's memory and streams, else the first that opens; `path`, where not empty, instead
  /// of all of them.
  static Expected<DriverLibrary> open(const std::string &path,
                                      const std::vector<std::string> &names);
  /// Stores the address of the function `name` in `function`; Unavailable where there is none.
  template <typename Function> Status find(const char *name, Function &function) const {
    function = reinterpret_cast<Function>(symbol(name));
    return function ? Status::success()
                    : Status(unavailable("{} has no function {}; it is too old or another library",
                                         file, name));
  }
  bool has(const char *name) const { return symbol(name) != nullptr; }
  const std::string &path() const { return file; }

private:
  void *symbol(const char *name) const;
  void *handle = nullptr;
  std::string file;
};

} // namespace dovetail::device
