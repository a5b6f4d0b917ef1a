// SPDX-License-Identifier: Apache-2.0
//
// What the planner and its measuring worker say to each other: frames of one JSON object and any
// number of byte blobs over a pair of pipes. Worker and planner are always of the same build, so
// frames carry no version.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "plan/Trial.h"

namespace dovetail::plan {

struct Frame {
  nlohmann::json header;
  std::vector<std::vector<uint8_t>> blobs;
};

enum class FrameResult : uint8_t { Read, Closed, TimedOut, Broken };

/// Writes all of a frame; false when the other side is gone.
bool writeFrame(int descriptor, const Frame &frame);
/// Reads one frame; waits at most `timeout` for each piece of it (negative: for ever).
FrameResult readFrame(int descriptor, Frame &frame, std::chrono::milliseconds timeout);

nlohmann::json toJson(const Candidate &candidate);
Expected<Candidate> candidateFromJson(const nlohmann::json &json);
/// Without kernel bytes; `withKernels` appends them to `blobs` and notes their index.
nlohmann::json toJson(const Evaluation &evaluation, std::vector<std::vector<uint8_t>> *blobs);
Expected<Evaluation> evaluationFromJson(const nlohmann::json &json,
                                        const std::vector<std::vector<uint8_t>> &blobs);
nlohmann::json toJson(const EvaluationOptions &options);
EvaluationOptions optionsFromJson(const nlohmann::json &json);
nlohmann::json toJson(const Target &target);
Target targetFromJson(const nlohmann::json &json);

} // namespace dovetail::plan
