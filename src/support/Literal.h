// SPDX-License-Identifier: Apache-2.0
//
// Elements of literals as text that gives the same bits back: shortest decimal form for numbers,
// hexadecimal bits for unusual NaNs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dovetail/provider.h"

namespace dovetail {

/// Text of element `index` of row-major `bytes`.
std::string elementText(dvt_type type, const std::vector<uint8_t> &bytes, int64_t index);
/// Appends the element to `bytes`, which holds `index` elements so far. False on text that is none
/// of that type.
bool appendElement(dvt_type type, std::string_view text, int64_t index,
                   std::vector<uint8_t> &bytes);

float halfToFloat(uint16_t half);
/// Nearest, ties to even.
uint16_t floatToHalf(float value);
float bfloatToFloat(uint16_t bfloat);
/// Nearest, ties to even.
uint16_t floatToBfloat(float value);

/// A floating-point attribute: has a point, an exponent, a name such as inf, or the suffix f of
/// 32-bit values.
std::string floatText(double value);
std::optional<double> parseFloatText(std::string_view text);

} // namespace dovetail
