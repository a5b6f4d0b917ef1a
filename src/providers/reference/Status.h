// SPDX-License-Identifier: Apache-2.0
//
// What a reference kernel returns: success, or a code of the door with a message. Kept apart from
// the support room's own Status, because a provider depends on nothing but the door.
#pragma once

#include <sstream>
#include <string>
#include <utility>

#include "dovetail/provider.h"

namespace dovetail::reference {

/// Converts to true on success.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(dvt_code code, std::string message) : code(code), message(std::move(message)) {}
  explicit operator bool() const { return code == DVT_OK; }
  /// Copies the message into `error` where there is one and gives the code.
  dvt_code report(dvt_error *error) const;

  dvt_code code = DVT_OK;
  std::string message;
};

/// Text of all parts one after the other.
template <typename... Parts> std::string join(const Parts &...parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

/// Returns from the calling function when `expression`, a Status, is a failure.
#define TRY(expression)                                                                            \
  do {                                                                                             \
    if (::dovetail::reference::Status status = (expression); !status)                              \
      return status;                                                                               \
  } while (false)

} // namespace dovetail::reference
