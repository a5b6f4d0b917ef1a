// SPDX-License-Identifier: Apache-2.0
//
// The demands on providers, each a test that is registered for every problem.
#pragma once

#include "Subject.h"

namespace dovetail::conformance {

void registerProblem(const ProblemLine &line);

} // namespace dovetail::conformance
