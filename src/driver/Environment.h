// SPDX-License-Identifier: Apache-2.0
//
// What the surroundings of a run decide: where plug-ins, vendor libraries and the cache are. The
// only place that reads environment variables: DOVETAIL_PLUGINS and DOVETAIL_VENDOR_PATH (folders
// separated by ':', searched before the built-in ones), DOVETAIL_CACHE, XDG_CACHE_HOME and HOME.
#pragma once

#include <string>
#include <vector>

namespace dovetail {

struct Environment {
  std::vector<std::string> pluginFolders;
  std::string vendorPath;
  std::string cacheFolder; ///< empty: none can be had
  std::string worker;      ///< executable that measures
  static Environment detect();
};

} // namespace dovetail
