// SPDX-License-Identifier: Apache-2.0
//
// A convolution with what follows it by the older calls, its algorithm settled on the device.
#pragma once

#include "providers/cudnn/Kernel.h"
#include "providers/cudnn/LegacyForm.h"

namespace dovetail::cudnn {

/// Null with `reason` and `code` where there is no device to run on, or the library has no
/// algorithm there for what was offered within the workspace that the plan has for it.
std::unique_ptr<Kernel> makeLegacyKernel(const Surroundings &surroundings, const Graph &graph,
                                         const LegacyForm &form, const LegacyOffer &offer,
                                         const providers::ProblemReader &problem, dvt_code &code,
                                         std::string &reason);

} // namespace dovetail::cudnn
