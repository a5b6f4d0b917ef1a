// SPDX-License-Identifier: Apache-2.0
//
// The reference as a plug-in: accepts every tensor op, slow and obvious, and is what all other
// providers are compared with. It compiles nothing, packs nothing and takes any extents at run
// time, so this file is also the smallest complete example of the door.
#include <cstring>
#include <new>
#include <vector>

#include "Interpreter.h"
#include "PhysicalLayout.h"

using namespace dovetail::reference;

struct dvt_provider {
  dvt_provider_info info;
};

struct dvt_kernel {
  Program program;
  std::vector<const void *> constants;
};

namespace {

constexpr char kAlgorithm[] = "reference:interpret";

/// Runs `body`, which gives a Status, and keeps failed allocations from leaving the plug-in.
template <typename Body> dvt_code guarded(dvt_error *error, Body body) {
  try {
    return body().report(error);
  } catch (const std::bad_alloc &) {
    return Status(DVT_OUT_OF_MEMORY, "reference: out of memory").report(error);
  } catch (const std::exception &failure) {
    return Status(DVT_FAILED, join("reference: ", failure.what())).report(error);
  }
}

dvt_code create(const dvt_host *, dvt_provider **provider, dvt_error *error) {
  *provider = new (std::nothrow) dvt_provider{};
  if (!*provider)
    return Status(DVT_OUT_OF_MEMORY, "reference: out of memory").report(error);
  (*provider)->info = {sizeof(dvt_provider_info), "reference", "1", nullptr, 0, 1, 0};
  return DVT_OK;
}

void destroy(dvt_provider *provider) { delete provider; }

const dvt_provider_info *info(dvt_provider *provider) { return &provider->info; }

/// Layouts of the one candidate: row-major but for a lone dvt_reorder.
Status checkLayouts(const Program &program) {
  PhysicalLayout layout;
  if (!program.inputLayout.empty())
    TRY(PhysicalLayout::parse(program.inputLayout, program.values[program.inputs[0]].extents.size(),
                              layout));
  if (!program.outputLayout.empty())
    TRY(PhysicalLayout::parse(program.outputLayout,
                              program.values[program.outputs[0]].extents.size(), layout));
  return {};
}

dvt_code propose(dvt_provider *, const dvt_target *target, const dvt_problem *problem,
                 const dvt_candidate_sink *sink, dvt_error *error) {
  if (target && target->device && std::string_view(target->device) != "cpu")
    return Status(DVT_UNSUPPORTED, std::string("reference: serves the CPU, not ") + target->device)
        .report(error);
  return guarded(error, [&]() -> Status {
    Program program;
    TRY(makeProgram(*problem, program));
    TRY(checkLayouts(program));
    std::vector<const char *> inputs(program.inputs.size(), program.inputLayout.c_str());
    std::vector<const char *> outputs(program.outputs.size(), program.outputLayout.c_str());
    dvt_candidate candidate = {};
    candidate.struct_size = sizeof candidate;
    candidate.algorithm = kAlgorithm;
    candidate.input_layouts = inputs.data();
    candidate.output_layouts = outputs.data();
    candidate.packing = DVT_PACKING_NONE;
    candidate.threading = DVT_THREADING_PARALLEL_FOR;
    candidate.numerics = "f64";
    candidate.deterministic = program.deterministic;
    candidate.runtime_extents = 1;
    candidate.estimate_micros = -1;
    sink->candidate(sink->context, &candidate);
    return {};
  });
}

/// Whether the caller's layouts are those proposed; a missing text is row-major, as is "abcd".
bool sameLayouts(const Program &program, const char *const *given,
                 const std::vector<uint32_t> &values, const std::string &proposed) {
  for (size_t i = 0; i < values.size(); ++i) {
    size_t rank = program.values[values[i]].extents.size();
    PhysicalLayout mine, theirs;
    if (!PhysicalLayout::parse(proposed, rank, mine) ||
        !PhysicalLayout::parse(given && given[i] ? given[i] : "", rank, theirs) ||
        !(mine == theirs))
      return false;
  }
  return true;
}

Status checkCandidate(const Program &program, const dvt_candidate &candidate) {
  if (!candidate.algorithm || std::strcmp(candidate.algorithm, kAlgorithm) != 0)
    return {DVT_UNSUPPORTED,
            join("reference: no algorithm ", candidate.algorithm ? candidate.algorithm : "",
                 "; only ", kAlgorithm)};
  if (candidate.packing != DVT_PACKING_NONE)
    return {DVT_UNSUPPORTED, "reference: packs no constants"};
  if (!sameLayouts(program, candidate.input_layouts, program.inputs, program.inputLayout) ||
      !sameLayouts(program, candidate.output_layouts, program.outputs, program.outputLayout))
    return {DVT_UNSUPPORTED, "reference: takes row-major operands only"};
  return {};
}

dvt_code prepare(dvt_provider *, const dvt_target *, const dvt_problem *problem,
                 const dvt_candidate *candidate, const dvt_prepare_args *args, dvt_kernel **kernel,
                 dvt_error *error) {
  return guarded(error, [&]() -> Status {
    auto made = std::make_unique<dvt_kernel>();
    TRY(makeProgram(*problem, made->program));
    TRY(checkLayouts(made->program));
    TRY(checkCandidate(made->program, *candidate));
    made->constants.resize(made->program.inputs.size());
    for (size_t i = 0; args && args->constants && i < made->constants.size(); ++i)
      made->constants[i] = args->constants[i];
    *kernel = made.release();
    return {};
  });
}

uint64_t workspaceBytes(const dvt_kernel *) { return 0; }

dvt_code run(dvt_kernel *kernel, const dvt_run_args *args, dvt_error *error) {
  return guarded(error, [&] { return interpret(kernel->program, kernel->constants, *args); });
}

void destroyKernel(dvt_kernel *kernel) { delete kernel; }

} // namespace

extern "C" const dvt_provider_api *dvt_provider_entry(uint32_t hostAbiVersion) {
  static const dvt_provider_api api = {sizeof(dvt_provider_api),
                                       DVT_PROVIDER_ABI_VERSION,
                                       "reference",
                                       create,
                                       destroy,
                                       info,
                                       propose,
                                       nullptr,
                                       prepare,
                                       workspaceBytes,
                                       run,
                                       destroyKernel};
  return hostAbiVersion == DVT_PROVIDER_ABI_VERSION ? &api : nullptr;
}
