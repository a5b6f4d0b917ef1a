// SPDX-License-Identifier: Apache-2.0
//
// Reading and making of algorithm strings.
#include "codegen/schedule/Schedule.h"

#include <charconv>

namespace dovetail::codegen {

std::string_view Schedule::parameter(std::string_view key) const {
  std::string_view rest = algorithm;
  while (true) {
    size_t colon = rest.find(':');
    if (colon == rest.npos)
      return {};
    rest = rest.substr(colon + 1);
    std::string_view part = rest.substr(0, rest.find(':'));
    if (part.starts_with(key))
      return part.substr(key.size());
  }
}

int64_t Schedule::integerParameter(std::string_view key, int64_t otherwise) const {
  std::string_view digits = parameter(key);
  int64_t number = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size() ? number : otherwise;
}

Schedule Schedule::rowMajor(std::string algorithm, const dvt_problem &problem) {
  Schedule schedule;
  schedule.algorithm = std::move(algorithm);
  schedule.inputLayouts.resize(problem.input_count);
  schedule.outputLayouts.resize(problem.output_count);
  schedule.packedBytes.resize(problem.input_count);
  return schedule;
}

} // namespace dovetail::codegen
