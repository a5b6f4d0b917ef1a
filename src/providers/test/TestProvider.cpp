// SPDX-License-Identifier: Apache-2.0
//
// The door of the test provider: offers the algorithms of TestKernels.cpp. Kernel bytes are a mark
// and the algorithm's name, which is enough to see whether those of one kernel reach another.
#include <cstring>
#include <memory>

#include "TestKernels.h"
#include "providers/ProviderTable.h"

using namespace dovetail;
using namespace dovetail::test_provider;
using providers::fail;
using providers::ProblemReader;

namespace {

struct TestKernel {
  uint64_t workspaceBytes() const { return state.workspaceBytes; }
  dvt_code run(const dvt_run_args &args, std::string &reason) const;

  const Algorithm *algorithm;
  KernelState state;
  uint32_t inputCount, outputCount;
};

struct TestProvider {
  using Kernel = TestKernel;
  static constexpr const char *name() { return "test"; }
  explicit TestProvider(const dvt_host *) {}
  dvt_code propose(const dvt_target *target, const dvt_problem *problem,
                   const dvt_candidate_sink *sink, dvt_error *error);
  dvt_code compile(const dvt_target *target, const dvt_problem *problem,
                   const dvt_candidate *candidate, const dvt_bytes_sink *sink, dvt_error *error);
  dvt_code prepare(const dvt_target *target, const dvt_problem *problem,
                   const dvt_candidate *candidate, const dvt_prepare_args *args,
                   std::unique_ptr<Kernel> &made, dvt_error *error);

  dvt_provider_info info = {sizeof(dvt_provider_info), name(), "1", nullptr, 0, 1, 1};
};

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

dvt_code TestProvider::propose(const dvt_target *target, const dvt_problem *problem,
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

dvt_code TestProvider::compile(const dvt_target *target, const dvt_problem *problem,
                               const dvt_candidate *candidate, const dvt_bytes_sink *sink,
                               dvt_error *error) {
  const Algorithm *algorithm = find(problem, candidate);
  if (!algorithm)
    return fail(error, DVT_UNSUPPORTED, "test: this candidate was not proposed");
  if (algorithm->needsKernel) {
    std::string bytes = kernelBytes(*algorithm);
    sink->bytes(sink->context, bytes.data(), bytes.size());
  }
  return DVT_OK;
}

dvt_code TestProvider::prepare(const dvt_target *target, const dvt_problem *problem,
                               const dvt_candidate *candidate, const dvt_prepare_args *args,
                               std::unique_ptr<Kernel> &made, dvt_error *error) {
  const Algorithm *algorithm = find(problem, candidate);
  if (!algorithm)
    return fail(error, DVT_UNSUPPORTED, "test: this candidate was not proposed");
  std::string bytes = kernelBytes(*algorithm);
  if (algorithm->needsKernel && (args->kernel_bytes != bytes.size() ||
                                 std::memcmp(args->kernel, bytes.data(), bytes.size()) != 0))
    return fail(error, DVT_BAD_INPUT, std::string("test: not the kernel of ") + algorithm->name);
  made = std::make_unique<TestKernel>(
      TestKernel{algorithm, {}, problem->input_count, problem->output_count});
  if (algorithm->prepare) {
    std::string why = algorithm->prepare(ProblemReader(*problem), *args, made->state);
    if (!why.empty())
      return fail(error, DVT_BAD_INPUT, "test: " + why);
  }
  return DVT_OK;
}

dvt_code TestKernel::run(const dvt_run_args &args, std::string &reason) const {
  if (args.input_count != inputCount || args.output_count != outputCount) {
    reason = "another number of operands than the problem has";
    return DVT_BAD_INPUT;
  }
  reason = algorithm->run(state, args);
  return reason.empty() ? DVT_OK : DVT_FAILED;
}

} // namespace

const dvt_provider_api *dvt_provider_entry(uint32_t host_abi_version) {
  return providers::ProviderTable<TestProvider>::get(host_abi_version);
}
