// SPDX-License-Identifier: Apache-2.0
//
// Which driver PTX asks for: a driver assembles the versions of the language that it knows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dovetail::device {

/// The oldest driver of CUDA that assembles the text, as cuDriverGetVersion numbers them (12080 is
/// 12.8), by its line `.version` and the table of releases in the PTX ISA's manual; 0 where the
/// text does not say.
uint32_t driverForPtx(std::string_view ptx);
/// "12.8"
std::string cudaVersionText(uint32_t number);

} // namespace dovetail::device
