// SPDX-License-Identifier: Apache-2.0
//
// The file: a header with digests, a JSON object, then the bytes of all kernels one after the
// other. Trials have the form that worker and plan cache use.
#include "plan/Tuning.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "plan/WorkerProtocol.h"
#include "support/Candidate.h"
#include "support/File.h"
#include "support/Hash.h"

namespace dovetail::plan {
namespace {

using nlohmann::json;

constexpr std::array<char, 8> kMagic{'D', 'V', 'T', 'T', 'U', 'N', 'E', '\n'};
constexpr uint32_t kVersion = 1;

struct Header {
  std::array<char, 8> magic;
  uint32_t version, reserved;
  uint64_t fileBytes, textBytes;
  Digest content; ///< of all that follows the header
  Digest header;  ///< of all before this
};
static_assert(sizeof(Header) == 64);

constexpr const char *kHint = "export the candidates, or measure them, again";

/// A time, or nothing, and an outcome that fits: what is altered by hand must not lead anyone.
bool isSound(const Trial &trial) {
  return (trial.outcome == TrialOutcome::Measured) == (trial.micros >= 0);
}

/// Why a candidate of the file cannot be one for the problem; empty where it can.
std::string whyUnsound(const Trial &trial, const Problem &problem, const dvt_problem &view,
                       const Target &target) {
  const Candidate &candidate = trial.candidate;
  if (!isSound(trial))
    return "its time does not fit its outcome";
  if (!trial.usable())
    return {}; // never run; one that fell while it was proposed has no more than a name
  if (candidate.inputLayouts.size() != problem.inputs.size() ||
      candidate.outputLayouts.size() != problem.outputs.size())
    return "it has another number of layouts than the problem has operands";
  if (candidate.memory != target.memory())
    return "it works in other memory than the target's";
  std::vector<const char *> storage;
  return findNonsense(candidate.view(storage), view).value_or("");
}

Status checkProblem(const TuningProblem &tuning, const Target &target) {
  const Problem &problem = tuning.posed.problem;
  if (Status status = problem.verify(); !status)
    return status;
  ProblemView view(problem);
  for (const Trial &trial : tuning.evaluation.trials)
    if (std::string why = whyUnsound(trial, problem, *view.get(), target); !why.empty())
      return badInput("candidate {} of {}: {}", trial.candidate.label(), summary(problem), why);
  return Status::success();
}

json describe(const Tuning &tuning, std::vector<std::vector<uint8_t>> &kernels) {
  json problems = json::array();
  for (const TuningProblem &problem : tuning.problems)
    problems.push_back({{"problem", problem.posed.problem.text()},
                        {"representative", problem.posed.representative},
                        {"tried", problem.tried},
                        {"evaluation", toJson(problem.evaluation, &kernels)}});
  json sizes = json::array();
  for (const std::vector<uint8_t> &kernel : kernels)
    sizes.push_back(kernel.size());
  return {{"model", tuning.model},           {"producer", tuning.producer},
          {"target", toJson(tuning.target)}, {"footprint_bytes", tuning.footprintBytes},
          {"providers", tuning.providers},   {"problems", std::move(problems)},
          {"source", tuning.source},         {"measured_on", tuning.measuredOn},
          {"machine", tuning.machine},       {"kernels", std::move(sizes)}};
}

Expected<std::vector<std::vector<uint8_t>>> readKernels(const json &sizes, const uint8_t *from,
                                                        uint64_t bytes) {
  std::vector<std::vector<uint8_t>> kernels;
  for (const json &item : sizes) {
    uint64_t size = item.get<uint64_t>();
    if (size > bytes)
      return badInput("a kernel lies outside the file");
    kernels.emplace_back(from, from + size);
    from += size;
    bytes -= size;
  }
  if (bytes != 0)
    return badInput("{} bytes belong to no kernel", bytes);
  return kernels;
}

/// May throw what the JSON library throws for other kinds of values than expected.
Expected<Tuning> parse(const json &from, const uint8_t *kernelBytes, uint64_t bytes) {
  Tuning tuning;
  from.at("model").get_to(tuning.model);
  from.at("producer").get_to(tuning.producer);
  tuning.target = targetFromJson(from.at("target"));
  from.at("footprint_bytes").get_to(tuning.footprintBytes);
  from.at("providers").get_to(tuning.providers);
  from.at("source").get_to(tuning.source);
  from.at("measured_on").get_to(tuning.measuredOn);
  from.at("machine").get_to(tuning.machine);
  auto kernels = readKernels(from.at("kernels"), kernelBytes, bytes);
  if (!kernels)
    return kernels.takeError();
  for (const json &item : from.at("problems")) {
    auto problem = Problem::parse(item.at("problem").get<std::string>());
    if (!problem)
      return problem.takeError();
    auto evaluation = evaluationFromJson(item.at("evaluation"), *kernels);
    if (!evaluation)
      return evaluation.takeError();
    TuningProblem &made = tuning.problems.emplace_back();
    made.posed.problem = std::move(*problem);
    item.at("representative").get_to(made.posed.representative);
    item.at("tried").get_to(made.tried);
    made.evaluation = std::move(*evaluation);
    if (Status status = checkProblem(made, tuning.target); !status)
      return status.takeError();
  }
  return tuning;
}

/// The header of a file that is whole.
Expected<Header> readHeader(const MappedFile &file) {
  const std::string &path = file.path();
  Header header{};
  if (file.size() > 0)
    std::memcpy(&header, file.data(), std::min<uint64_t>(file.size(), sizeof header));
  if (file.size() < kMagic.size() || header.magic != kMagic)
    return badInput("{}: holds no candidates to measure; 'dovetail tune-export' writes them", path);
  if (file.size() >= offsetof(Header, reserved) && header.version != kVersion)
    return badInput("{}: written in format version {}, this is version {}; {}", path,
                    header.version, kVersion, kHint);
  if (file.size() < sizeof header)
    return badInput("{}: cut short, {} bytes are left; {}", path, file.size(), kHint);
  if (header.header != digestOf(&header, offsetof(Header, header)))
    return badInput("{}: its header was altered or is damaged; {}", path, kHint);
  if (file.size() != header.fileBytes)
    return badInput("{}: has {} bytes instead of {}; {}", path, file.size(), header.fileBytes,
                    kHint);
  if (header.textBytes > file.size() - sizeof header ||
      header.content != digestOf(file.data() + sizeof header, file.size() - sizeof header))
    return badInput("{}: was altered or is damaged; {}", path, kHint);
  return header;
}

} // namespace

Tuning::Counts Tuning::counts() const {
  Counts counts;
  for (const TuningProblem &problem : problems) {
    counts.candidates += problem.evaluation.trials.size();
    counts.tried += !problem.tried.empty();
    for (const Trial &trial : problem.evaluation.trials) {
      counts.timed += trial.outcome == TrialOutcome::Measured;
      counts.failed += !trial.usable();
    }
  }
  return counts;
}

Status writeTuning(const Tuning &tuning, const std::string &path) {
  std::vector<std::vector<uint8_t>> kernels;
  std::string text = describe(tuning, kernels).dump(-1, ' ', false, json::error_handler_t::replace);
  Header header{};
  header.magic = kMagic;
  header.version = kVersion;
  header.textBytes = text.size();
  header.fileBytes = sizeof header + text.size();
  Hasher content;
  content.update(text);
  for (const std::vector<uint8_t> &kernel : kernels) {
    content.update(kernel.data(), kernel.size());
    header.fileBytes += kernel.size();
  }
  header.content = content.digest();
  header.header = digestOf(&header, offsetof(Header, header));
  auto file = AtomicFile::create(path);
  if (!file)
    return file.takeError();
  Status status = (*file)->write(&header, sizeof header);
  if (status)
    status = (*file)->write(text);
  for (const std::vector<uint8_t> &kernel : kernels)
    if (status)
      status = (*file)->write(kernel.data(), kernel.size());
  return status ? (*file)->commit() : status;
}

Expected<Tuning> readTuning(const std::string &path) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  auto header = readHeader(**file);
  if (!header)
    return header.takeError();
  const uint8_t *text = (*file)->data() + sizeof(Header), *kernels = text + header->textBytes;
  Expected<Tuning> tuning = Error{};
  try {
    json described = json::parse(text, kernels);
    tuning = parse(described, kernels,
                   static_cast<uint64_t>((*file)->data() + header->fileBytes - kernels));
  } catch (const json::exception &error) {
    tuning = badInput("{}", error.what());
  }
  if (!tuning)
    return badInput("{}: cannot be read: {}; {}", path, tuning.error().message, kHint);
  tuning->digest = hexText(header->content);
  return tuning;
}

} // namespace dovetail::plan
