// SPDX-License-Identifier: Apache-2.0
//
// Frames over pipes and the JSON forms of candidates, trials and options, which the plan cache
// stores as well.
#include "plan/WorkerProtocol.h"

#include <cerrno>
#include <cmath>
#include <cstring>

#include <poll.h>
#include <unistd.h>

namespace dovetail::plan {
namespace {

using nlohmann::json;

bool writeAll(int descriptor, const void *data, uint64_t size) {
  const char *bytes = static_cast<const char *>(data);
  while (size > 0) {
    ssize_t written = ::write(descriptor, bytes, size);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    bytes += written;
    size -= static_cast<uint64_t>(written);
  }
  return true;
}

FrameResult readAll(int descriptor, void *data, uint64_t size, std::chrono::milliseconds timeout) {
  char *bytes = static_cast<char *>(data);
  bool first = true;
  while (size > 0) {
    pollfd waiting{descriptor, POLLIN, 0};
    int ready = ::poll(&waiting, 1, timeout.count() < 0 ? -1 : static_cast<int>(timeout.count()));
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready == 0)
      return FrameResult::TimedOut;
    ssize_t got = ::read(descriptor, bytes, size);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return first && got == 0 ? FrameResult::Closed : FrameResult::Broken;
    bytes += got;
    size -= static_cast<uint64_t>(got);
    first = false;
  }
  return FrameResult::Read;
}

} // namespace

bool writeFrame(int descriptor, const Frame &frame) {
  std::string text = frame.header.dump(-1, ' ', false, json::error_handler_t::replace);
  uint64_t sizes[2] = {text.size(), frame.blobs.size()};
  if (!writeAll(descriptor, sizes, sizeof sizes) || !writeAll(descriptor, text.data(), text.size()))
    return false;
  for (const auto &blob : frame.blobs) {
    uint64_t size = blob.size();
    if (!writeAll(descriptor, &size, sizeof size) || !writeAll(descriptor, blob.data(), size))
      return false;
  }
  return true;
}

FrameResult readFrame(int descriptor, Frame &frame, std::chrono::milliseconds timeout) {
  constexpr uint64_t kLimit = uint64_t(1) << 32;
  uint64_t sizes[2];
  if (FrameResult result = readAll(descriptor, sizes, sizeof sizes, timeout);
      result != FrameResult::Read)
    return result;
  if (sizes[0] > kLimit || sizes[1] > 1u << 20)
    return FrameResult::Broken;
  std::string text(sizes[0], '\0');
  if (readAll(descriptor, text.data(), text.size(), timeout) != FrameResult::Read)
    return FrameResult::Broken;
  frame.header = json::parse(text, nullptr, false);
  if (frame.header.is_discarded())
    return FrameResult::Broken;
  frame.blobs.clear();
  for (uint64_t i = 0; i < sizes[1]; ++i) {
    uint64_t size;
    if (readAll(descriptor, &size, sizeof size, timeout) != FrameResult::Read || size > kLimit)
      return FrameResult::Broken;
    frame.blobs.emplace_back(size);
    if (size > 0 &&
        readAll(descriptor, frame.blobs.back().data(), size, timeout) != FrameResult::Read)
      return FrameResult::Broken;
  }
  return FrameResult::Read;
}

json toJson(const Candidate &candidate) {
  json result{{"provider", candidate.provider},
              {"algorithm", candidate.algorithm},
              {"input_layouts", candidate.inputLayouts},
              {"output_layouts", candidate.outputLayouts},
              {"workspace_bytes", candidate.workspaceBytes},
              {"packed_bytes", candidate.packedBytes},
              {"packing", static_cast<int>(candidate.packing)},
              {"threading", static_cast<int>(candidate.threading)},
              {"numerics", candidate.numerics},
              {"deterministic", candidate.deterministic},
              {"runtime_extents", candidate.runtimeExtents},
              {"estimate_micros", candidate.estimateMicros}};
  if (candidate.codeBytes || candidate.registers || candidate.sharedBytes || candidate.scratchBytes)
    result["resources"] = {candidate.registers, candidate.sharedBytes, candidate.scratchBytes,
                           candidate.codeBytes};
  if (candidate.memory != DVT_MEMORY_HOST)
    result["memory"] = static_cast<int>(candidate.memory);
  if (candidate.processBytes)
    result["process"] = {candidate.processBytes, candidate.processGroup};
  return result;
}

Expected<Candidate> candidateFromJson(const json &from) {
  try {
    Candidate candidate;
    from.at("provider").get_to(candidate.provider);
    from.at("algorithm").get_to(candidate.algorithm);
    from.at("input_layouts").get_to(candidate.inputLayouts);
    from.at("output_layouts").get_to(candidate.outputLayouts);
    from.at("workspace_bytes").get_to(candidate.workspaceBytes);
    from.at("packed_bytes").get_to(candidate.packedBytes);
    candidate.packing = static_cast<dvt_packing>(from.at("packing").get<int>());
    candidate.threading = static_cast<dvt_threading>(from.at("threading").get<int>());
    from.at("numerics").get_to(candidate.numerics);
    from.at("deterministic").get_to(candidate.deterministic);
    from.at("runtime_extents").get_to(candidate.runtimeExtents);
    from.at("estimate_micros").get_to(candidate.estimateMicros);
    if (from.contains("resources")) {
      const json &resources = from["resources"];
      candidate.registers = resources.at(0).get<uint32_t>();
      candidate.sharedBytes = resources.at(1).get<uint32_t>();
      candidate.scratchBytes = resources.at(2).get<uint32_t>();
      candidate.codeBytes = resources.at(3).get<uint32_t>();
    }
    if (from.value("memory", 0) == DVT_MEMORY_DEVICE)
      candidate.memory = DVT_MEMORY_DEVICE;
    if (from.contains("process")) {
      from["process"].at(0).get_to(candidate.processBytes);
      from["process"].at(1).get_to(candidate.processGroup);
    }
    return candidate;
  } catch (const json::exception &error) {
    return internalError("a stored candidate cannot be read: {}", error.what());
  }
}

json toJson(const Evaluation &evaluation, std::vector<std::vector<uint8_t>> *blobs) {
  json trials = json::array();
  for (const Trial &trial : evaluation.trials) {
    json item{{"candidate", toJson(trial.candidate)},
              {"outcome", outcomeName(trial.outcome)},
              {"detail", trial.detail},
              {"micros", trial.micros},
              {"low", trial.low},
              {"high", trial.high},
              {"compile_millis", trial.compileMillis},
              {"prepare_millis", trial.prepareMillis},
              {"packing_millis", trial.packingMillis},
              {"built", trial.built},
              {"compared", trial.compared},
              {"max_error", std::isfinite(trial.maxError) ? trial.maxError : 1e300}};
    if (trial.badInput)
      item["bad_input"] = true;
    if (!trial.measuredOn.empty())
      item["measured_on"] = trial.measuredOn;
    if (blobs && !trial.kernel.empty()) {
      item["kernel"] = blobs->size();
      blobs->push_back(trial.kernel);
    }
    trials.push_back(std::move(item));
  }
  json refusals = json::array();
  for (const auto &[provider, refusal] : evaluation.refusals)
    refusals.push_back({provider, refusal.algorithm, refusal.reason});
  return {{"trials", std::move(trials)}, {"refusals", std::move(refusals)}};
}

Expected<Evaluation> evaluationFromJson(const json &from,
                                        const std::vector<std::vector<uint8_t>> &blobs) {
  try {
    Evaluation evaluation;
    for (const json &item : from.at("trials")) {
      Trial trial;
      auto candidate = candidateFromJson(item.at("candidate"));
      if (!candidate)
        return candidate.takeError();
      trial.candidate = std::move(*candidate);
      auto outcome = parseOutcome(item.at("outcome").get<std::string>());
      if (!outcome)
        return internalError("a stored trial has an unknown outcome");
      trial.outcome = *outcome;
      item.at("detail").get_to(trial.detail);
      item.at("micros").get_to(trial.micros);
      item.at("low").get_to(trial.low);
      item.at("high").get_to(trial.high);
      item.at("compile_millis").get_to(trial.compileMillis);
      item.at("prepare_millis").get_to(trial.prepareMillis);
      trial.packingMillis = item.value("packing_millis", 0.0); // files of tuning may lack it
      item.at("max_error").get_to(trial.maxError);
      item.at("built").get_to(trial.built);
      trial.compared = item.value("compared", false);
      trial.badInput = item.value("bad_input", false);
      trial.measuredOn = item.value("measured_on", "");
      if (item.contains("kernel"))
        trial.kernel = blobs.at(item["kernel"].get<size_t>());
      evaluation.trials.push_back(std::move(trial));
    }
    for (const json &item : from.at("refusals"))
      evaluation.refusals.emplace_back(
          item.at(0).get<std::string>(),
          Refusal{item.at(1).get<std::string>(), item.at(2).get<std::string>()});
    return evaluation;
  } catch (const std::exception &error) {
    return internalError("stored trials cannot be read: {}", error.what());
  }
}

json toJson(const EvaluationOptions &options) {
  return {{"providers", options.providers},
          {"algorithms", options.algorithms},
          {"skip", options.skip},
          {"build", options.build},
          {"run", options.run},
          {"measure", options.measure},
          {"check", options.check},
          {"time_reference", options.timeReference},
          {"footprint_bytes", options.footprintBytes},
          {"budget_millis", options.budgetMillis},
          {"representative", options.representative}};
}

EvaluationOptions optionsFromJson(const json &from) {
  EvaluationOptions options;
  options.providers = from.value("providers", options.providers);
  options.algorithms = from.value("algorithms", options.algorithms);
  options.skip = from.value("skip", options.skip);
  options.build = from.value("build", options.build);
  options.run = from.value("run", options.run);
  options.measure = from.value("measure", options.measure);
  options.check = from.value("check", options.check);
  options.timeReference = from.value("time_reference", options.timeReference);
  options.footprintBytes = from.value("footprint_bytes", options.footprintBytes);
  options.budgetMillis = from.value("budget_millis", options.budgetMillis);
  options.representative = from.value("representative", options.representative);
  return options;
}

json toJson(const Target &target) {
  return {{"device", target.device},     {"architecture", target.architecture},
          {"features", target.features}, {"threads", target.threads},
          {"l1_bytes", target.l1Bytes},  {"l2_bytes", target.l2Bytes},
          {"l3_bytes", target.l3Bytes},  {"description", target.description}};
}

Target targetFromJson(const json &from) {
  Target target;
  target.device = from.value("device", target.device);
  target.architecture = from.value("architecture", target.architecture);
  target.features = from.value("features", target.features);
  target.threads = from.value("threads", target.threads);
  target.l1Bytes = from.value("l1_bytes", target.l1Bytes);
  target.l2Bytes = from.value("l2_bytes", target.l2Bytes);
  target.l3Bytes = from.value("l3_bytes", target.l3Bytes);
  target.description = from.value("description", target.description);
  return target;
}

} // namespace dovetail::plan
