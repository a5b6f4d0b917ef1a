// SPDX-License-Identifier: Apache-2.0
//
// The BLAS plug-in: matrix products through MKL. Nothing needs compiling; prepare finds the
// candidate again by its name and layouts.
#include <functional>
#include <new>

#include "providers/TeamSizes.h"
#include "providers/blas/Kernel.h"

using namespace dovetail;
using namespace dovetail::blas;
using providers::fail;

struct dvt_provider {
  explicit dvt_provider(const dvt_host *host)
      : library(std::make_shared<Library>(host ? host->library_path : nullptr)) {
    version = library->isLoaded() ? "1+MKL-" + library->versionText : "1";
    libraryInfo = {sizeof libraryInfo, "MKL", library->versionText.c_str(), library->file.c_str(),
                   library->missing.c_str()};
    info = {sizeof info, "blas", version.c_str(), &libraryInfo, 1, 0};
  }
  std::shared_ptr<const Library> library; ///< kernels hold it, too
  std::string version;
  dvt_library_info libraryInfo;
  dvt_provider_info info;
};

struct dvt_kernel {
  std::unique_ptr<Kernel> kernel;
};

namespace {

dvt_code create(const dvt_host *host, dvt_provider **provider, dvt_error *error) {
  *provider = new (std::nothrow) dvt_provider(host);
  return *provider ? DVT_OK : fail(error, DVT_OUT_OF_MEMORY, "blas: out of memory");
}

void destroy(dvt_provider *provider) { delete provider; }

const dvt_provider_info *info(dvt_provider *provider) { return &provider->info; }

dvt_code checkCall(const dvt_provider *provider, const dvt_target *target,
                   const dvt_problem *problem, dvt_error *error) {
  if (!provider->library->isLoaded())
    return fail(error, DVT_UNAVAILABLE, provider->library->missing);
  if (!target || target->struct_size < sizeof(dvt_target))
    return fail(error, DVT_BAD_INPUT, "blas: target is missing or too short");
  if (std::optional<std::string> wrong = ProblemReader::check(problem))
    return fail(error, DVT_BAD_INPUT, "blas: " + *wrong);
  if (target->device && std::string_view(target->device) != "cpu")
    return fail(error, DVT_UNSUPPORTED, std::string("blas serves the CPU, not ") + target->device);
  return DVT_OK;
}

/// The result may share memory with an addend that lies exactly as it does, and with nothing else.
bool aliasHolds(const ProblemReader &problem, const Product &product) {
  const int32_t alias = problem.value(problem.raw().outputs[0]).may_alias;
  if (alias < 0 || alias >= static_cast<int32_t>(problem.raw().input_count))
    return true;
  const uint32_t value = problem.raw().inputs[alias];
  return product.addend && product.addend->value == value &&
         product.addend->dims == product.c.dims && product.addend->strides == product.c.strides &&
         product.a.value != value && product.b.value != value;
}

struct Layouts {
  std::vector<std::string> in, out;
};

Layouts layoutsOf(const ProblemReader &problem, const Product &product) {
  Layouts layouts{std::vector<std::string>(problem.raw().input_count), std::vector<std::string>(1)};
  for (const auto &[value, layout] : product.layouts) {
    if (int32_t in = problem.inputPosition(value); in >= 0)
      layouts.in[static_cast<size_t>(in)] = layout;
    if (problem.outputPosition(value) >= 0)
      layouts.out[0] = layout;
  }
  return layouts;
}

/// Every candidate, in a fixed order; `visit` returns false to stop.
struct Offer {
  const Product &product;
  Call call;
  uint32_t team; ///< threads
  std::string name;
  Layouts layouts;
};
using Visitor = std::function<bool(const Offer &)>;
void visitCandidates(const ProblemReader &problem, uint32_t threads, const Visitor &visit,
                     std::string &reason) {
  for (const Product &product : matchProducts(problem, reason)) {
    if (!aliasHolds(problem, product)) {
      reason = "the result may not share this operand's memory";
      continue;
    }
    for (uint32_t team : providers::teamSizes(problem, threads))
      for (Call call : callsFor(problem, product))
        if (!visit({product, call, team,
                    algorithmName(call, product) + providers::teamSuffix(team, threads),
                    layoutsOf(problem, product)}))
          return;
  }
}

/// Part of a core's peak that a call reaches, from experience.
double efficiencyOf(Call call) {
  switch (call) {
  case Call::PackedGemm:
    return 0.75;
  case Call::Gemm:
    return 0.65;
  case Call::BatchGemm:
    return 0.6;
  case Call::Gemv:
    return 0.3;
  }
  return 0.3;
}

dvt_code propose(dvt_provider *provider, const dvt_target *target, const dvt_problem *problem,
                 const dvt_candidate_sink *sink, dvt_error *error) {
  if (dvt_code code = checkCall(provider, target, problem, error); code != DVT_OK)
    return code;
  ProblemReader reader(*problem);
  std::string reason;
  bool any = false;
  visitCandidates(
      reader, target->threads,
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
        candidate.workspace_bytes = workspaceBytesOf(offer.call, offer.product);
        if (offer.call == Call::PackedGemm) {
          candidate.packing = DVT_PACKING_AT_LOAD;
          candidate.packed_bytes = packedBytesOf(*provider->library, reader, offer.product);
        }
        candidate.threading = offer.team > 1 ? DVT_THREADING_OPENMP : DVT_THREADING_SERIAL;
        candidate.numerics = "f32";
        candidate.deterministic = 1;
        candidate.estimate_micros = providers::roughMicros(providers::roughWork(reader),
                                                           efficiencyOf(offer.call), offer.team);
        sink->candidate(sink->context, &candidate);
        any = true;
        return true;
      },
      reason);
  return any ? DVT_OK : fail(error, DVT_UNSUPPORTED, "blas: " + reason);
}

dvt_code prepare(dvt_provider *provider, const dvt_target *target, const dvt_problem *problem,
                 const dvt_candidate *candidate, const dvt_prepare_args *args, dvt_kernel **kernel,
                 dvt_error *error) {
  *kernel = nullptr;
  if (dvt_code code = checkCall(provider, target, problem, error); code != DVT_OK)
    return code;
  if (!candidate || !candidate->algorithm || !args)
    return fail(error, DVT_BAD_INPUT, "blas: prepare without a candidate or arguments");
  ProblemReader reader(*problem);
  std::unique_ptr<Kernel> made;
  std::string reason;
  bool matched = false;
  auto same = [](const char *const *texts, const std::vector<std::string> &layouts) {
    for (size_t i = 0; i < layouts.size(); ++i)
      if (layouts[i] != (texts && texts[i] ? texts[i] : ""))
        return false;
    return true;
  };
  visitCandidates(
      reader, target->threads,
      [&](const Offer &offer) {
        if (offer.name != candidate->algorithm ||
            !same(candidate->input_layouts, offer.layouts.in) ||
            !same(candidate->output_layouts, offer.layouts.out))
          return true;
        matched = true;
        made = Kernel::make(provider->library, reader, offer.product, offer.call, *args,
                            offer.team > 1 && args->threads ? args->threads : offer.team, reason);
        return false;
      },
      reason);
  if (made) {
    *kernel = new dvt_kernel{std::move(made)};
    return DVT_OK;
  }
  if (matched)
    return fail(error, DVT_FAILED, std::string("blas: ") + candidate->algorithm + ": " + reason);
  return fail(error, DVT_UNSUPPORTED,
              std::string("blas: nothing is called ") + candidate->algorithm +
                  " with these layouts" + (reason.empty() ? "" : ": " + reason));
}

uint64_t workspaceBytes(const dvt_kernel *kernel) { return kernel->kernel->workspaceBytes(); }

dvt_code run(dvt_kernel *kernel, const dvt_run_args *args, dvt_error *error) {
  std::string reason;
  dvt_code code = kernel->kernel->run(*args, reason);
  return code == DVT_OK ? code : fail(error, code, "blas: " + reason);
}

void destroyKernel(dvt_kernel *kernel) { delete kernel; }

const dvt_provider_api kApi = {sizeof(dvt_provider_api),
                               DVT_PROVIDER_ABI_VERSION,
                               "blas",
                               create,
                               destroy,
                               info,
                               propose,
                               nullptr,
                               prepare,
                               workspaceBytes,
                               run,
                               destroyKernel};

} // namespace

const dvt_provider_api *dvt_provider_entry(uint32_t host_abi_version) {
  return host_abi_version == DVT_PROVIDER_ABI_VERSION ? &kApi : nullptr;
}
