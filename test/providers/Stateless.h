// SPDX-License-Identifier: Apache-2.0
//
// What the plug-ins of tests have in common: a provider without state, and how it says no. Each
// plug-in includes it once and adds what it proposes and runs.
#pragma once

#include <cstdio>
#include <string>

#include "dovetail/provider.h"

namespace stateless {

inline dvt_code create(const dvt_host *, dvt_provider **out, dvt_error *) {
  static int instance;
  *out = reinterpret_cast<dvt_provider *>(&instance);
  return DVT_OK;
}

inline void destroy(dvt_provider *) {}

inline dvt_code fail(dvt_error *error, const std::string &message, dvt_code code = DVT_FAILED) {
  std::snprintf(error->message, sizeof(error->message), "%s", message.c_str());
  return code;
}

/// Whether all extents of all values are known.
inline bool isStatic(const dvt_problem *problem) {
  for (uint32_t v = 0; v < problem->value_count; ++v)
    for (uint32_t d = 0; d < problem->values[v].rank; ++d)
      if (problem->values[v].extents[d].value < 0)
        return false;
  return true;
}

} // namespace stateless
