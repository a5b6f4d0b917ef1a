// SPDX-License-Identifier: Apache-2.0
//
// The door of the test provider: offers the algorithms of TestKernels.cpp. Kernel bytes are a mark
// and the algorithm's name, which is enough to see whether those of one kernel reach another.
#include <cstring>
#include <memory>

#include "TestKernels.h"

using namespace dovetail::test_provider;
using dovetail::providers::fail;
using dovetail::providers::ProblemReader;

struct dvt_provider {
  dvt_provider_info info = {sizeof(dvt_provider_info), "test", "1", nullptr, 0, 1, 1};
};

struct dvt_kernel {
  const Algorithm *algorithm;
  KernelState state;
  uint32_t inputCount, outputCount;
};

namespace {

std::string kernelBytes(const Algorithm &algorithm) {
  return std::string("dovetail-test ") + algorithm.name;
}

/// Why `algorithm` cannot serve the problem; empty where it can.
std::string refusal(const Algorithm &algorithm, const dvt_problem *problem) {
  if (auto why = ProblemReader::check(problem))
    return *why;
  ProblemReader reader(*problem);
  if (reader.opCount() != 1 || reader.op(0).name() != algorithm.op)
    return "only a lone " + std::string(algorithm.op) + " is known";
  if (reader.op(0).version() != algorithm.version)
    return "another version of " + std::string(algorithm.op) + " than " +
           std::to_string(algorithm.version);
  for (uint32_t i = 0; i < reader.op(0).inputCount(); ++i)
    if (reader.inputPosition(reader.op(0).input(i)) != static_cast<int32_t>(i))
      return "operands that are literals or come twice";
  return algorithm.refuse(reader);
}

dvt_code create(const dvt_host *, dvt_provider **provider, dvt_error *) {
  *provider = new dvt_provider;
  return DVT_OK;
}

void destroy(dvt_provider *provider) { delete provider; }
const dvt_provider_info *info(dvt_provider *provider) { return &provider->info; }

dvt_code propose(dvt_provider *, const dvt_target *, const dvt_problem *problem,
                 const dvt_candidate_sink *sink, dvt_error *error) {
  bool any = false;
  for (const Algorithm &algorithm : algorithms()) {
    std::string why = refusal(algorithm, problem);
    if (!why.empty()) {
      sink->refusal(sink->context, algorithm.name, why.c_str());
      continue;
    }
    std::vector<const char *> inputs(problem->input_count, algorithm.inputLayout);
    std::vector<const char *> outputs(problem->output_count, algorithm.outputLayout);
    dvt_candidate candidate = {};
    candidate.struct_size = sizeof candidate;
    candidate.algorithm = algorithm.name;
    candidate.input_layouts = inputs.data();
    candidate.output_layouts = outputs.data();
    candidate.workspace_bytes = algorithm.workspaceBytes;
    candidate.packing = algorithm.packing;
    candidate.threading = algorithm.threading;
    candidate.numerics = "f32";
    candidate.deterministic = 1;
    candidate.runtime_extents = 1;
    candidate.estimate_micros = -1;
    sink->candidate(sink->context, &candidate);
    any = true;
  }
  return any ? DVT_OK : fail(error, DVT_UNSUPPORTED, "test: no algorithm for this problem");
}

/// The algorithm a candidate names, where propose would give it as it is; nullptr otherwise.
const Algorithm *find(const dvt_problem *problem, const dvt_candidate *candidate) {
  for (const Algorithm &algorithm : algorithms()) {
    if (!candidate->algorithm || std::strcmp(candidate->algorithm, algorithm.name) != 0)
      continue;
    auto same = [](const char *const *layouts, uint32_t count, const char *expected) {
      for (uint32_t i = 0; i < count; ++i)
        if (std::strcmp(layouts && layouts[i] ? layouts[i] : "", expected) != 0)
          return false;
      return true;
    };
    if (refusal(algorithm, problem).empty() && candidate->packing == algorithm.packing &&
        same(candidate->input_layouts, problem->input_count, algorithm.inputLayout) &&
        same(candidate->output_layouts, problem->output_count, algorithm.outputLayout))
      return &algorithm;
  }
  return nullptr;
}

dvt_code compile(dvt_provider *, const dvt_target *, const dvt_problem *problem,
                 const dvt_candidate *candidate, const dvt_bytes_sink *sink, dvt_error *error) {
  const Algorithm *algorithm = find(problem, candidate);
  if (!algorithm)
    return fail(error, DVT_UNSUPPORTED, "test: this candidate was not proposed");
  if (algorithm->needsKernel) {
    std::string bytes = kernelBytes(*algorithm);
    sink->bytes(sink->context, bytes.data(), bytes.size());
  }
  return DVT_OK;
}

dvt_code prepare(dvt_provider *, const dvt_target *, const dvt_problem *problem,
                 const dvt_candidate *candidate, const dvt_prepare_args *args, dvt_kernel **kernel,
                 dvt_error *error) {
  const Algorithm *algorithm = find(problem, candidate);
  if (!algorithm)
    return fail(error, DVT_UNSUPPORTED, "test: this candidate was not proposed");
  std::string bytes = kernelBytes(*algorithm);
  if (algorithm->needsKernel && (args->kernel_bytes != bytes.size() ||
                                 std::memcmp(args->kernel, bytes.data(), bytes.size()) != 0))
    return fail(error, DVT_BAD_INPUT, std::string("test: not the kernel of ") + algorithm->name);
  auto made = std::make_unique<dvt_kernel>(
      dvt_kernel{algorithm, {}, problem->input_count, problem->output_count});
  if (algorithm->prepare) {
    std::string why = algorithm->prepare(ProblemReader(*problem), *args, made->state);
    if (!why.empty())
      return fail(error, DVT_BAD_INPUT, "test: " + why);
  }
  *kernel = made.release();
  return DVT_OK;
}

uint64_t workspaceBytes(const dvt_kernel *kernel) { return kernel->state.workspaceBytes; }

dvt_code run(dvt_kernel *kernel, const dvt_run_args *args, dvt_error *error) {
  if (args->input_count != kernel->inputCount || args->output_count != kernel->outputCount)
    return fail(error, DVT_BAD_INPUT, "test: another number of operands than the problem has");
  std::string why = kernel->algorithm->run(kernel->state, *args);
  return why.empty() ? DVT_OK : fail(error, DVT_FAILED, "test: " + why);
}

void destroyKernel(dvt_kernel *kernel) { delete kernel; }

} // namespace

extern "C" const dvt_provider_api *dvt_provider_entry(uint32_t hostAbiVersion) {
  static const dvt_provider_api api = {sizeof(dvt_provider_api),
                                       DVT_PROVIDER_ABI_VERSION,
                                       "test",
                                       create,
                                       destroy,
                                       info,
                                       propose,
                                       compile,
                                       prepare,
                                       workspaceBytes,
                                       run,
                                       destroyKernel};
  return hostAbiVersion == DVT_PROVIDER_ABI_VERSION ? &api : nullptr;
}
