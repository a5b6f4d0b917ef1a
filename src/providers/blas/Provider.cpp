// SPDX-License-Identifier: Apache-2.0
//
// The BLAS plug-in: matrix products through MKL, OpenBLAS, BLIS and libxsmm, whichever are there.
// Nothing needs compiling; prepare finds the candidate again by its name and layouts, so a library
// of another version serves a plan, and one that is gone is refused by its name. Where the host
// only runs plans, just the libraries that they name are opened.
#include <cstddef>
#include <functional>

#include "providers/ProviderTable.h"
#include "providers/TeamSizes.h"
#include "providers/blas/Kernel.h"

using namespace dovetail;
using namespace dovetail::blas;
using providers::fail;

namespace {

struct BlasProvider {
  using Kernel = blas::Kernel;
  static constexpr const char *name() { return "blas"; }
  explicit BlasProvider(const dvt_host *host)
      : libraries(std::make_shared<Libraries>(host ? host->library_path : nullptr)) {
    constexpr size_t end = offsetof(dvt_host, runs_only) + sizeof(dvt_host::runs_only);
    version = "3#";
    if (!host || host->struct_size < end || !host->runs_only)
      describeAll();
    info = {sizeof info, name(), version.c_str(), infos.data(), static_cast<uint32_t>(infos.size()),
            0,           0};
  }
  void describeAll() {
    libraries->open();
    for (const Libraries::Named &library : libraries->all()) {
      const LibraryState &state = *library.state;
      if (state.isLoaded())
        version += (version.back() == '#' ? "" : "+") + std::string(library.name) + "-" +
                   state.versionText;
      infos.push_back({sizeof(dvt_library_info), library.name, state.versionText.c_str(),
                       state.file.c_str(), state.missing.c_str()});
    }
  }
  dvt_code propose(const dvt_target *target, const dvt_problem *problem,
                   const dvt_candidate_sink *sink, dvt_error *error);
  dvt_code prepare(const dvt_target *target, const dvt_problem *problem,
                   const dvt_candidate *candidate, const dvt_prepare_args *args,
                   std::unique_ptr<Kernel> &made, dvt_error *error);

  std::shared_ptr<Libraries> libraries; ///< kernels hold it, too
  /// Kernels are found by name whatever is behind the '#'; measurements are not shared across it.
  std::string version;
  std::vector<dvt_library_info> infos;
  dvt_provider_info info;
};

/// What a library takes once: relocations, its tables, and what its products pack panels into.
struct ProcessMemory {
  const char *group;
  uint64_t bytes;
};
ProcessMemory processMemory(Library library) {
  constexpr uint64_t kKiB = 1024;
  switch (library) {
  case Library::Mkl:
    return {"mkl", 3500 * kKiB};
  case Library::OpenBlas:
    return {"openblas", 2000 * kKiB};
  case Library::Blis:
    return {"blis", 1000 * kKiB};
  case Library::Xsmm: // the registry of its code is all touched at the start
    break;
  }
  return {"xsmm", 10500 * kKiB};
}

/// Why libraries are not there, those in `among` (such as "openblas:sgemm") only where it is given.
std::string missingLibraries(const Libraries &libraries, std::string_view among = {}) {
  std::string reasons;
  for (const Libraries::Named &library : libraries.all())
    if (!library.state->isLoaded() && (among.empty() || among.starts_with(library.family)))
      reasons += (reasons.empty() ? "" : "; ") + library.state->missing;
  return reasons;
}

/// `algorithm` is what is asked for; empty for all.
dvt_code checkCall(Libraries &libraries, std::string_view algorithm, const dvt_target *target,
                   const dvt_problem *problem, dvt_error *error) {
  libraries.open(algorithm);
  if (algorithm.empty() && !libraries.anyLoaded())
    return fail(error, DVT_UNAVAILABLE, "blas: " + missingLibraries(libraries));
  if (!target || target->struct_size < sizeof(dvt_target))
    return fail(error, DVT_BAD_INPUT, "blas: target is missing or too short");
  if (std::optional<std::string> wrong = ProblemReader::check(problem))
    return fail(error, DVT_BAD_INPUT, "blas: " + *wrong);
  if (target->device && std::string_view(target->device) != "cpu")
    return fail(error, DVT_UNSUPPORTED, std::string("blas serves the CPU, not ") + target->device);
  return DVT_OK;
}

/// Every candidate, in a fixed order; `visit` returns false to stop.
struct Offer {
  const Product &product;
  const Method &method;
  uint32_t team; ///< threads
  std::string name;
  providers::ProductLayouts layouts;
};
using Visitor = std::function<bool(const Offer &)>;
void visitCandidates(const Libraries &libraries, const ProblemReader &problem, uint32_t threads,
                     const Visitor &visit, std::string &reason) {
  for (const Product &product : providers::matchProducts(problem, {}, reason)) {
    if (!providers::mayShareResult(problem, product)) {
      reason = "the result may not share this operand's memory";
      continue;
    }
    const std::vector<Method> methods = methodsFor(libraries, problem, product);
    if (methods.empty())
      reason = "the libraries that are here have nothing for this product";
    for (uint32_t team : providers::teamSizes(problem, threads))
      for (const Method &method : methods)
        if (!visit({product, method, team, method.name + providers::teamSuffix(team, threads),
                    providers::layoutsOf(problem, product)}))
          return;
  }
}

dvt_code BlasProvider::propose(const dvt_target *target, const dvt_problem *problem,
                               const dvt_candidate_sink *sink, dvt_error *error) {
  if (dvt_code code = checkCall(*libraries, {}, target, problem, error); code != DVT_OK)
    return code;
  ProblemReader reader(*problem);
  std::string reason;
  bool any = false;
  visitCandidates(
      *libraries, reader, target->threads,
      [&](const Offer &offer) {
        std::vector<const char *> in, out;
        for (const std::string &layout : offer.layouts.in)
          in.push_back(layout.c_str());
        for (const std::string &layout : offer.layouts.out)
          out.push_back(layout.c_str());
        dvt_candidate candidate = {};
        candidate.struct_size = sizeof candidate;
        candidate.algorithm = offer.name.c_str();
        candidate.input_layouts = in.data();
        candidate.output_layouts = out.data();
        candidate.workspace_bytes = offer.method.workspaceBytes;
        candidate.packing = offer.method.packedBytes ? DVT_PACKING_AT_LOAD : DVT_PACKING_NONE;
        candidate.packed_bytes = offer.method.packedBytes;
        const ProcessMemory process = processMemory(offer.method.library);
        candidate.process_bytes = process.bytes;
        candidate.process_group = process.group;
        candidate.threading = offer.team <= 1           ? DVT_THREADING_SERIAL
                              : offer.method.bringsTeam ? DVT_THREADING_OPENMP
                                                        : DVT_THREADING_PARALLEL_FOR;
        candidate.numerics = "f32";
        candidate.deterministic = 1;
        candidate.estimate_micros = providers::roughMicros(providers::roughWork(reader),
                                                           offer.method.efficiency, offer.team);
        sink->candidate(sink->context, &candidate);
        any = true;
        return true;
      },
      reason);
  return any ? DVT_OK : fail(error, DVT_UNSUPPORTED, "blas: " + reason);
}

dvt_code BlasProvider::prepare(const dvt_target *target, const dvt_problem *problem,
                               const dvt_candidate *candidate, const dvt_prepare_args *args,
                               std::unique_ptr<Kernel> &made, dvt_error *error) {
  if (!candidate || !candidate->algorithm || !args)
    return fail(error, DVT_BAD_INPUT, "blas: prepare without a candidate or arguments");
  if (dvt_code code = checkCall(*libraries, candidate->algorithm, target, problem, error);
      code != DVT_OK)
    return code;
  ProblemReader reader(*problem);
  std::string reason;
  bool matched = false;
  auto same = [](const char *const *texts, const std::vector<std::string> &layouts) {
    for (size_t i = 0; i < layouts.size(); ++i)
      if (layouts[i] != (texts && texts[i] ? texts[i] : ""))
        return false;
    return true;
  };
  visitCandidates(
      *libraries, reader, target->threads,
      [&](const Offer &offer) {
        if (offer.name != candidate->algorithm ||
            !same(candidate->input_layouts, offer.layouts.in) ||
            !same(candidate->output_layouts, offer.layouts.out))
          return true;
        matched = true;
        made = Kernel::make(libraries, reader, offer.product, offer.method, *args,
                            offer.team > 1 && args->threads ? args->threads : offer.team, reason);
        return false;
      },
      reason);
  if (made)
    return DVT_OK;
  if (matched)
    return fail(error, DVT_FAILED, std::string("blas: ") + candidate->algorithm + ": " + reason);
  const std::string missing = missingLibraries(*libraries, candidate->algorithm);
  if (!missing.empty())
    return fail(error, DVT_UNAVAILABLE, "blas: " + missing);
  return fail(error, DVT_UNSUPPORTED,
              std::string("blas: nothing is called ") + candidate->algorithm +
                  " with these layouts" + (reason.empty() ? "" : ": " + reason));
}

} // namespace

const dvt_provider_api *dvt_provider_entry(uint32_t host_abi_version) {
  return providers::ProviderTable<BlasProvider>::get(host_abi_version);
}
