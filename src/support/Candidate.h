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

/// How a device's kernel rounds, where that is not as f32 does, and what it takes of the device, as
/// far as it is known: "rounds as tf32, 512 bytes of workspace, 40 registers". May be empty.
std::string deviceFacts(const Candidate &candidate);

} // namespace dovetail
