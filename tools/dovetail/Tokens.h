// SPDX-License-Identifier: Apache-2.0
//
// dovetail bench --tokens: a decoder run token by token, its states carried from run to run.
#pragma once

#include <map>
#include <string>

#include "OpenedModel.h"

namespace dovetail::cli {

struct TokenOptions {
  unsigned tokens = 0; ///< timed; 0: another kind of bench
  int64_t past = -1;   ///< length of the cache before the first; negative: as little as it can be
};

/// Runs and reports; gives the exit code.
int benchTokens(const std::string &model, const OpenedModel &opened, const CommonOptions &common,
                const std::map<std::string, Array> &given, const TokenOptions &options);

} // namespace dovetail::cli
