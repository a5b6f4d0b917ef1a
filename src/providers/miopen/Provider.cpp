// SPDX-License-Identifier: Apache-2.0
//
// The MIOpen plug-in: the door's functions. It serves devices of ROCm. Nothing is asked of the
// library before kernels are prepared, so plans are made without it and without a device; there is
// nothing to compile either, and so a session may also take another offer than the plan's where the
// library refuses that one.
#include <algorithm>
#include <cstddef>

#include "providers/DeviceCalls.h"
#include "providers/ProviderTable.h"
#include "providers/miopen/Kernel.h"
#include "providers/miopen/Offers.h"

using namespace dovetail;
using namespace dovetail::miopen;
using providers::fail;
using providers::ProblemReader;

namespace {

struct MiopenProvider {
  using Kernel = miopen::Kernel;
  static constexpr const char *name() { return "miopen"; }
  explicit MiopenProvider(const dvt_host *host) {
    auto has = [&](size_t end) { return host && host->struct_size >= end; };
    if (has(offsetof(dvt_host, library_path) + sizeof host->library_path) && host->library_path)
      path = host->library_path;
    drivers = providers::hostDrivers(host);
    // What stands before '#' is all that a plan depends on.
    version = "1";
    libraryInfo = {sizeof libraryInfo, "MIOpen", "", "", ""};
    info = {sizeof info, name(), version.c_str(), &libraryInfo, 1, 1, 0};
    if (has(offsetof(dvt_host, runs_only) + sizeof host->runs_only) && host->runs_only)
      return;
    open();
    if (library->isLoaded())
      version += "#MIOpen-" + library->versionText;
    info.version = version.c_str();
    libraryInfo = {sizeof libraryInfo, "MIOpen", library->versionText.c_str(),
                   library->file.c_str(), library->missing.c_str()};
  }
  const Library &open() {
    if (!library) {
      library = std::make_shared<Library>(path.c_str(), drivers.c_str());
      handle = std::make_shared<Handle>(library);
    }
    return *library;
  }
  dvt_code propose(const dvt_target *target, const dvt_problem *problem,
                   const dvt_candidate_sink *sink, dvt_error *error);
  dvt_code prepare(const dvt_target *target, const dvt_problem *problem,
                   const dvt_candidate *candidate, const dvt_prepare_args *args,
                   std::unique_ptr<Kernel> &made, dvt_error *error);

  std::string path, drivers, version;
  std::shared_ptr<const Library> library;
  std::shared_ptr<Handle> handle; ///< kernels hold it, too
  dvt_library_info libraryInfo;
  dvt_provider_info info;
};

const std::string kPrefix = "miopen: ";

/// What every call checks before anything else.
dvt_code checkCall(const dvt_target *target, const dvt_problem *problem, dvt_error *error) {
  return providers::checkDeviceCall(target, problem, "rocm", "ROCm", kPrefix, error);
}

void offer(const dvt_candidate_sink &sink, const Form &form, const Offer &offer,
           double estimateMicros) {
  const std::vector<const char *> in = providers::pointersTo(form.inputLayouts),
                                  out = providers::pointersTo(form.outputLayouts);
  dvt_candidate candidate = {};
  candidate.struct_size = sizeof candidate;
  candidate.algorithm = offer.algorithm.c_str();
  candidate.input_layouts = in.data();
  candidate.output_layouts = out.data();
  candidate.workspace_bytes = offer.choice.workspaceBytes;
  candidate.numerics = offer.numerics.c_str();
  candidate.deterministic = offer.isDeterministic;
  candidate.estimate_micros = estimateMicros;
  candidate.memory = DVT_MEMORY_DEVICE;
  sink.candidate(sink.context, &candidate);
}

dvt_code MiopenProvider::propose(const dvt_target *target, const dvt_problem *problem,
                                 const dvt_candidate_sink *sink, dvt_error *error) {
  if (dvt_code code = checkCall(target, problem, error); code != DVT_OK)
    return code;
  const ProblemReader reader(*problem);
  std::string reason;
  const std::vector<Form> forms = translate(reader, reason);
  if (forms.empty())
    return fail(error, DVT_UNSUPPORTED, kPrefix + reason);
  const std::optional<providers::DevicePeaks> peaks =
      providers::DevicePeaks::read(target->description, reason);
  if (!peaks)
    return fail(error, DVT_BAD_INPUT, kPrefix + reason);
  const providers::RoughWork work = providers::roughWork(reader);
  for (const Form &form : forms)
    for (const Offer &each : offersFor(form))
      offer(*sink, form, each, estimateMicros(form, each, work, *peaks));
  return DVT_OK;
}

/// The form and the choice that a candidate stands for; nothing with `reason`.
std::optional<std::pair<Form, Choice>> find(const ProblemReader &problem,
                                            const dvt_candidate &candidate, std::string &reason) {
  for (Form &form : translate(problem, reason)) {
    if (!providers::areLayouts(candidate.input_layouts, form.inputLayouts) ||
        !providers::areLayouts(candidate.output_layouts, form.outputLayouts))
      continue;
    for (Offer &offer : offersFor(form))
      if (offer.algorithm == candidate.algorithm) {
        offer.choice.workspaceBytes =
            std::min(offer.choice.workspaceBytes, candidate.workspace_bytes);
        return std::pair(std::move(form), offer.choice);
      }
  }
  if (reason.empty())
    reason = "nothing is called " + std::string(candidate.algorithm) + " with these layouts";
  return std::nullopt;
}

dvt_code MiopenProvider::prepare(const dvt_target *target, const dvt_problem *problem,
                                 const dvt_candidate *candidate, const dvt_prepare_args *args,
                                 std::unique_ptr<Kernel> &made, dvt_error *error) {
  if (dvt_code code = checkCall(target, problem, error); code != DVT_OK)
    return code;
  if (!candidate || !candidate->algorithm || !args)
    return fail(error, DVT_BAD_INPUT, kPrefix + "prepare without a candidate");
  const ProblemReader reader(*problem);
  std::string reason;
  const auto found = find(reader, *candidate, reason);
  if (!found)
    return fail(error, DVT_UNSUPPORTED, kPrefix + reason);
  if (const Library &opened = open(); !opened.isLoaded())
    return fail(error, DVT_UNAVAILABLE, kPrefix + opened.missing);
  made = Kernel::make(handle, found->first, found->second, problem->input_count, reason);
  if (!made)
    return fail(error, DVT_UNAVAILABLE, kPrefix + candidate->algorithm + ": " + reason);
  return DVT_OK;
}

} // namespace

const dvt_provider_api *dvt_provider_entry(uint32_t host_abi_version) {
  return providers::ProviderTable<MiopenProvider>::get(host_abi_version);
}
