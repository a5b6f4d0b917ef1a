// SPDX-License-Identifier: Apache-2.0
//
// The one function of the native compiler's shared object, and how a candidate is found again among
// what the schedules offer for its problem. Both halves of the provider use it.
#pragma once

#include <cstdio>
#include <optional>
#include <string_view>

#include "codegen/schedule/Schedule.h"
#include "dovetail/provider.h"

namespace dovetail::native {

constexpr const char *kCompilerFile = "dovetail_native_compiler.so";
constexpr const char *kCompileSymbol = "dvt_native_compile";
using CompileFunction = dvt_code (*)(const dvt_target *target, const dvt_problem *problem,
                                     const dvt_candidate *candidate, const dvt_bytes_sink *sink,
                                     dvt_error *error);

inline dvt_code report(dvt_error *error, dvt_code code, std::string_view message) {
  if (error)
    std::snprintf(error->message, sizeof(error->message), "%.*s", int(message.size()),
                  message.data());
  return code;
}

inline dvt_code report(dvt_error *error, const Error &failure) {
  dvt_code code = failure.kind == ErrorKind::BadInput      ? DVT_BAD_INPUT
                  : failure.kind == ErrorKind::Unavailable ? DVT_UNAVAILABLE
                                                           : DVT_FAILED;
  return report(error, code, failure.message);
}

inline bool sameLayout(const char *const *layouts, uint32_t index, const std::string &layout) {
  return layout == (layouts && layouts[index] ? layouts[index] : "");
}

/// The schedule that propose gave as this candidate; nothing when it would not give it.
inline std::optional<codegen::Schedule> findSchedule(const codegen::ProblemReader &problem,
                                                     const codegen::Machine &machine,
                                                     const dvt_candidate &candidate) {
  std::optional<codegen::Schedule> found;
  if (!candidate.algorithm)
    return found;
  std::string_view algorithm = candidate.algorithm;
  codegen::ScheduleSink sink;
  sink.refuse = [](const char *, std::string) {};
  sink.offer = [&](codegen::Schedule schedule) {
    bool same = !found && schedule.algorithm == algorithm;
    for (uint32_t i = 0; same && i < schedule.inputLayouts.size(); ++i)
      same = sameLayout(candidate.input_layouts, i, schedule.inputLayouts[i]);
    for (uint32_t i = 0; same && i < schedule.outputLayouts.size(); ++i)
      same = sameLayout(candidate.output_layouts, i, schedule.outputLayouts[i]);
    if (same)
      found = std::move(schedule);
  };
  if (const codegen::ScheduleFamily *family =
          codegen::findScheduleFamily(algorithm.substr(0, algorithm.find(':')));
      family && family->serves(machine))
    family->propose(problem, machine, sink);
  return found;
}

} // namespace dovetail::native
