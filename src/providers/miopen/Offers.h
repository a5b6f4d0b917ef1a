// SPDX-License-Identifier: Apache-2.0
//
// What is on offer for a form: the ways to choose an algorithm, each under a name from which it is
// found again in another process. None is decided before a device is there, which "late" in the
// names of convolutions says.
#pragma once

#include <string>
#include <vector>

#include "providers/DevicePeaks.h"
#include "providers/miopen/Step.h"

namespace dovetail::miopen {

struct Offer {
  std::string algorithm; ///< "convolution:immediate:late"
  std::string numerics;  ///< class of rounding: "f32", "f16-winograd"
  Choice choice;
  bool isDeterministic = true;
};

/// Always the same list for the same form.
std::vector<Offer> offersFor(const Form &form);

/// A prediction by the roof line of the device: the arithmetic and the traffic of the problem, a
/// launch for each call, and the result read and written again by each call that changes it.
/// Negative where the description lacks a peak.
double estimateMicros(const Form &form, const Offer &offer, const providers::RoughWork &work,
                      const providers::DevicePeaks &peaks);

} // namespace dovetail::miopen
