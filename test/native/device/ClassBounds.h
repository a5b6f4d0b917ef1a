// SPDX-License-Identifier: Apache-2.0
//
// How far kernels may be from the truth by their class of rounding.
#pragma once

#include <algorithm>
#include <string>

#include "NativeCheck.h"

namespace dovetail::test {

/// Wider bounds for tf32, whose ten bits of fraction make about a hundredth of sums of a hundred
/// products of numbers up to one. Inputs that are given one by one are taken to be exact in it.
inline CheckOptions boundsOfClass(CheckOptions options, const std::string &numerics) {
  if (numerics == "tf32" && options.values.empty())
    options.relative = options.absolute = std::max(1e-2, options.relative);
  return options;
}

} // namespace dovetail::test
