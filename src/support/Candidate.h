// SPDX-License-Identifier: Apache-2.0
//
// The check that stands before Candidate::copy; the class itself is declared in Plugin.h.
#pragma once

#include <optional>
#include <string>

#include "support/Plugin.h"

namespace dovetail {

/// Why a proposed candidate cannot be taken; nothing where it can.
std::optional<std::string> findNonsense(const dvt_candidate &candidate, const dvt_problem &problem);

} // namespace dovetail
