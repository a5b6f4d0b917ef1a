// SPDX-License-Identifier: Apache-2.0
//
// Bytes that stay where they are: in a mapped file or in memory lent by the caller. The constants
// of an imported graph point into them and hold a share of their owner, so weights are never
// copied. Also the rules for files that a model names: a model may come from anyone and must not be
// able to read other files of the user.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "support/Expected.h"

namespace dovetail::importer {

struct Bytes {
  std::string_view content;
  std::shared_ptr<const void> owner; ///< keeps content alive; null when the caller does
};

/// Maps a regular file. BadInput names the path and the reason; an empty file gives no bytes.
Expected<Bytes> mapFile(const std::string &path);

/// Maps `location`, a path relative to the folder of the model. Refuses absolute paths, "..", and
/// links that lead out of that folder.
Expected<Bytes> mapBeside(const std::string &folder, const std::string &location);

} // namespace dovetail::importer
