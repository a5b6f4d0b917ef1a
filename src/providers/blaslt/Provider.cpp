// SPDX-License-Identifier: Apache-2.0
//
// The plug-ins of cuBLASLt and hipBLASLt: the door's functions. Proposing and compiling need
// neither the library nor a device: what they give is the product in the library's terms, and the
// algorithm is asked for on the device that runs it. Neither library can be asked without one.
#include "providers/DeviceCalls.h"
#include "providers/DevicePeaks.h"
#include "providers/ProviderTable.h"
#include "providers/blaslt/Kernel.h"

using namespace dovetail;
using namespace dovetail::blaslt;
using providers::DevicePeaks;
using providers::fail;

namespace {

struct BlasltProvider {
  using Kernel = blaslt::Kernel;
  static const char *name() { return dialect().provider; }
  explicit BlasltProvider(const dvt_host *host)
      : library(std::make_shared<Library>(host ? host->library_path : nullptr)) {
    libraryInfo = {sizeof libraryInfo, dialect().library, library->versionText.c_str(),
                   library->file.c_str(), library->missing.c_str()};
    info = {sizeof info, name(), "1", &libraryInfo, 1, 1, 0};
    drivers = providers::hostDrivers(host);
  }
  dvt_code propose(const dvt_target *target, const dvt_problem *problem,
                   const dvt_candidate_sink *sink, dvt_error *error);
  dvt_code compile(const dvt_target *target, const dvt_problem *problem,
                   const dvt_candidate *candidate, const dvt_bytes_sink *sink, dvt_error *error);
  dvt_code prepare(const dvt_target *target, const dvt_problem *problem,
                   const dvt_candidate *candidate, const dvt_prepare_args *args,
                   std::unique_ptr<Kernel> &made, dvt_error *error);

  /// With the library open on the device that is current.
  dvt_code prepareHere(const Form &form, const ProblemReader &problem,
                       std::unique_ptr<Kernel> &made, std::string &reason);

  std::shared_ptr<Library> library; ///< kernels hold it, too
  Handles handles;
  std::string drivers; ///< as in dvt_host
  dvt_library_info libraryInfo = {};
  dvt_provider_info info = {};
};

/// Estimates of algorithms that nobody has named yet are taken with this much caution. Measuring
/// when a plan is loaded takes time there and may choose otherwise each time.
constexpr double kCaution = 1.05, kCautionOfMeasuring = 1.1;

std::string prefixed(const std::string &text) {
  return std::string(dialect().provider) + ": " + text;
}

dvt_code checkCall(const dvt_target *target, const dvt_problem *problem, dvt_error *error) {
  return providers::checkDeviceCall(target, problem, dialect().device, dialect().platform,
                                    prefixed(""), error);
}

/// The forms of a problem in every class of rounding that the device has units for, each with
/// either choice of an algorithm, in a fixed order.
std::vector<Form> allForms(const ProblemReader &problem, const DevicePeaks &peaks,
                           std::string &reason) {
  std::vector<Form> all;
  for (Form &form : findForms(problem, reason))
    for (const bool isTf32 : {false, true}) {
      if (isTf32 && (form.type != DVT_F32 || !peaks.has("tf32_matrix")))
        continue;
      form.isTf32 = isTf32;
      for (const bool isMeasured : {false, true}) {
        form.isMeasured = isMeasured;
        all.push_back(form);
      }
    }
  return all;
}

double estimateMicros(const DevicePeaks &peaks, const ProblemReader &problem, const Form &form) {
  const std::string matrix = form.numerics() + "_matrix";
  const double busy =
      peaks.busyMicros(providers::roughWork(problem), peaks.has(matrix) ? matrix : form.numerics());
  return busy < 0 ? -1
                  : peaks.launchMicros * static_cast<double>(form.calls()) +
                        busy * (form.isMeasured ? kCautionOfMeasuring : kCaution);
}

void offer(const dvt_candidate_sink &sink, const Form &form, double estimate) {
  const std::vector<const char *> in = providers::pointersTo(form.layouts.in),
                                  out = providers::pointersTo(form.layouts.out);
  const std::string algorithm = form.algorithm(), numerics = form.numerics();
  dvt_candidate candidate = {};
  candidate.struct_size = sizeof candidate;
  candidate.algorithm = algorithm.c_str();
  candidate.input_layouts = in.data();
  candidate.output_layouts = out.data();
  candidate.workspace_bytes = form.reservedBytes();
  candidate.packing = DVT_PACKING_NONE;
  candidate.threading = DVT_THREADING_SERIAL;
  candidate.numerics = numerics.c_str();
  candidate.deterministic = dialect().isDeterministic && !form.isMeasured;
  candidate.estimate_micros = estimate;
  candidate.memory = DVT_MEMORY_DEVICE;
  sink.candidate(sink.context, &candidate);
}

dvt_code BlasltProvider::propose(const dvt_target *target, const dvt_problem *problem,
                                 const dvt_candidate_sink *sink, dvt_error *error) {
  if (dvt_code code = checkCall(target, problem, error); code != DVT_OK)
    return code;
  std::string reason;
  const std::optional<DevicePeaks> peaks = DevicePeaks::read(target->description, reason);
  if (!peaks)
    return fail(error, DVT_BAD_INPUT, prefixed(reason));
  const ProblemReader reader(*problem);
  const std::vector<Form> forms = allForms(reader, *peaks, reason);
  for (const Form &form : forms)
    offer(*sink, form, estimateMicros(*peaks, reader, form));
  return forms.empty() ? fail(error, DVT_UNSUPPORTED, prefixed(reason)) : DVT_OK;
}

/// The form that a candidate stands for; nothing, with `error` filled, where propose would not give
/// it.
std::optional<Form> find(const dvt_target &target, const ProblemReader &problem,
                         const dvt_candidate *candidate, dvt_code &code, dvt_error *error) {
  if (!candidate || !candidate->algorithm) {
    code = fail(error, DVT_BAD_INPUT, prefixed("called without a candidate"));
    return std::nullopt;
  }
  std::string reason;
  const std::optional<DevicePeaks> peaks = DevicePeaks::read(target.description, reason);
  if (peaks)
    for (Form &form : allForms(problem, *peaks, reason))
      if (form.algorithm() == candidate->algorithm &&
          form.reservedBytes() == candidate->workspace_bytes &&
          providers::areLayouts(candidate->input_layouts, form.layouts.in) &&
          providers::areLayouts(candidate->output_layouts, form.layouts.out))
        return std::move(form);
  code =
      fail(error, DVT_UNSUPPORTED,
           prefixed(std::string("nothing is called ") + candidate->algorithm +
                    " with these layouts and workspace" + (reason.empty() ? "" : ": ") + reason));
  return std::nullopt;
}

dvt_code BlasltProvider::compile(const dvt_target *target, const dvt_problem *problem,
                                 const dvt_candidate *candidate, const dvt_bytes_sink *sink,
                                 dvt_error *error) {
  dvt_code code = checkCall(target, problem, error);
  if (code != DVT_OK)
    return code;
  const std::optional<Form> form = find(*target, ProblemReader(*problem), candidate, code, error);
  if (!form)
    return code;
  const std::string kernel = kernelOf(*form);
  sink->bytes(sink->context, kernel.data(), kernel.size());
  return DVT_OK;
}

dvt_code BlasltProvider::prepareHere(const Form &form, const ProblemReader &problem,
                                     std::unique_ptr<Kernel> &made, std::string &reason) {
  library->open();
  reason = library->failure;
  if (!library->isLoaded())
    return DVT_UNAVAILABLE;
  Calls calls;
  std::shared_ptr<OpenedHandle> handle = handles.get(library, calls, reason);
  if (!handle) {
    reason += calls.reason();
    return DVT_UNAVAILABLE;
  }
  dvt_code code = DVT_FAILED;
  made = Kernel::make(std::move(handle), form, problem, drivers, code, reason);
  return code;
}

dvt_code BlasltProvider::prepare(const dvt_target *target, const dvt_problem *problem,
                                 const dvt_candidate *candidate, const dvt_prepare_args *args,
                                 std::unique_ptr<Kernel> &made, dvt_error *error) {
  dvt_code code = checkCall(target, problem, error);
  if (code != DVT_OK)
    return code;
  const ProblemReader reader(*problem);
  const std::optional<Form> form = find(*target, reader, candidate, code, error);
  if (!form)
    return code;
  std::string reason;
  if (!args || !args->kernel || args->kernel_bytes == 0)
    return fail(error, DVT_BAD_INPUT, prefixed("prepare without a kernel"));
  const std::string_view bytes(static_cast<const char *>(args->kernel), args->kernel_bytes);
  if (!checkKernel(bytes, *form, reason))
    return fail(error, DVT_BAD_INPUT, prefixed(reason));
  code = prepareHere(*form, reader, made, reason);
  return code == DVT_OK ? code
                        : fail(error, code, prefixed(candidate->algorithm + (": " + reason)));
}

} // namespace

const dvt_provider_api *dvt_provider_entry(uint32_t host_abi_version) {
  return providers::ProviderTable<BlasltProvider>::get(host_abi_version);
}
