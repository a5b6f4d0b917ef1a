// SPDX-License-Identifier: Apache-2.0
//
// Where a vendor library is looked for: in the folders that the host gives, then where the system
// looks. Header-only, shared by providers.
#pragma once

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace dovetail::providers {

/// What to give to dlopen, in order: the files of these names in the folders of `path` (separated
/// by
/// ':', may be null), then the bare names. Relative folders do not count, as they would make what
/// is loaded depend on the current one.
inline std::vector<std::string> libraryFiles(const char *path,
                                             std::initializer_list<const char *> names) {
  std::vector<std::string> files;
  std::string_view rest = path ? path : "";
  while (!rest.empty()) {
    const std::string folder(rest.substr(0, rest.find(':')));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    for (const char *name : names) {
      std::error_code unreadable;
      if (folder.starts_with('/') && std::filesystem::exists(folder + "/" + name, unreadable))
        files.push_back(folder + "/" + name);
    }
  }
  files.insert(files.end(), names.begin(), names.end());
  return files;
}

/// Gives them to `load` until it answers with an empty text. Empty then, else all its answers.
template <typename Load>
std::string loadFirst(const char *path, std::initializer_list<const char *> names, Load load) {
  std::string reasons;
  for (const std::string &name : libraryFiles(path, names)) {
    const std::string reason = load(name);
    if (reason.empty())
      return {};
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  return reasons;
}

} // namespace dovetail::providers
