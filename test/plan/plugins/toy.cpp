// SPDX-License-Identifier: Apache-2.0
//
// A provider for tests of the planner: plain loops over a few f32 ops, any number of them in one
// problem, so that every region of a small graph has a candidate. Its estimates follow a rule that
// tests can reckon with: 5 us for each kernel, 20 us for each mat_mul and exp, 1 us for each other
// op. Built under several names it has one fault each, named by TOY_FAULT; as "blocked" it changes
// layout; as "slow_prepare" it is quick, by its word, and takes kSlowMillis to prepare, of which
// kPackingMillis are for packing.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "providers/Stateless.h"

using namespace stateless;

namespace {

struct Step {
  std::string op;
  std::vector<uint32_t> inputs;
  uint32_t output;
};

} // namespace

struct dvt_kernel {
  std::vector<Step> steps;
  std::vector<std::vector<int64_t>> extents; ///< of all values
  std::vector<std::vector<float>> literals;  ///< of all values, empty where none
  std::vector<uint32_t> inputs, outputs;
};

namespace {

const std::string fault = TOY_FAULT;
const dvt_provider_info information{sizeof(dvt_provider_info), TOY_NAME, "1.0", nullptr, 0, 1, 0};

constexpr int kSlowMillis = 60, kPackingMillis = 30;

void misbehave(const char *phase) {
  if (fault == std::string("crash_") + phase)
    std::abort();
  while (fault == std::string("hang_") + phase)
    ::pause();
}

const dvt_provider_info *info(dvt_provider *) { return &information; }

bool isKnown(const std::string &op) {
  if (op == "dvt_reorder")
    return fault == "blocked";
  for (const char *known : {"relu", "exp", "add", "mul", "mat_mul"})
    if (op == known)
      return true;
  return false;
}

/// Why the problem is none of ours; empty where it is one.
std::string refuse(const dvt_problem *problem) {
  for (uint32_t i = 0; i < problem->op_count; ++i)
    if (!isKnown(problem->ops[i].name))
      return std::string("does not know ") + problem->ops[i].name;
  for (uint32_t v = 0; v < problem->value_count; ++v)
    if (problem->values[v].type != DVT_F32)
      return "only f32 is known";
  return isStatic(problem) ? "" : "extents must be known";
}

dvt_code propose(dvt_provider *, const dvt_target *, const dvt_problem *problem,
                 const dvt_candidate_sink *sink, dvt_error *error) {
  misbehave("propose");
  if (std::string why = refuse(problem); !why.empty())
    return fail(error, why, DVT_UNSUPPORTED);
  dvt_candidate candidate{};
  candidate.struct_size = sizeof(candidate);
  candidate.algorithm = "interpret";
  candidate.numerics = "f32";
  candidate.deterministic = 1;
  candidate.estimate_micros = 5;
  for (uint32_t i = 0; i < problem->op_count; ++i) {
    std::string op = problem->ops[i].name;
    candidate.estimate_micros += op == "mat_mul" || op == "exp" ? 20 : 1;
  }
  const char *from = "aBcd4b", *to = "acdb";
  if (fault == "blocked") {
    candidate.input_layouts = &from;
    candidate.output_layouts = &to;
  }
  if (fault == "slow_prepare")
    candidate.estimate_micros = 1;
  if (fault == "hungry") { // quick, by its word, and in need of much memory
    candidate.estimate_micros = 1;
    candidate.packing = DVT_PACKING_AT_LOAD;
    candidate.packed_bytes = 3 << 20;
    candidate.process_bytes = 1 << 20;
    candidate.process_group = "pantry";
  }
  sink->candidate(sink->context, &candidate);
  return DVT_OK;
}

dvt_code compile(dvt_provider *, const dvt_target *, const dvt_problem *, const dvt_candidate *,
                 const dvt_bytes_sink *sink, dvt_error *) {
  misbehave("compile");
  sink->bytes(sink->context, "toy", 3);
  return DVT_OK;
}

dvt_code prepare(dvt_provider *, const dvt_target *, const dvt_problem *problem,
                 const dvt_candidate *, const dvt_prepare_args *args, dvt_kernel **out,
                 dvt_error *error) {
  if (args->kernel_bytes != 3)
    return fail(error, "the kernel is not what was compiled");
  if (fault == "slow_prepare") {
    std::this_thread::sleep_for(std::chrono::milliseconds(kSlowMillis));
    if (args->packing_micros)
      *args->packing_micros += 1000.0 * kPackingMillis;
  }
  auto *kernel = new dvt_kernel();
  for (uint32_t v = 0; v < problem->value_count; ++v) {
    const dvt_value &value = problem->values[v];
    kernel->extents.emplace_back();
    int64_t count = 1;
    for (uint32_t d = 0; d < value.rank; ++d) {
      kernel->extents.back().push_back(value.extents[d].value);
      count *= value.extents[d].value;
    }
    kernel->literals.emplace_back();
    const auto *literal = static_cast<const float *>(value.literal);
    if (value.flags & DVT_VALUE_UNIFORM)
      kernel->literals.back().assign(static_cast<size_t>(count), *literal);
    else if (value.flags & DVT_VALUE_LITERAL)
      kernel->literals.back().assign(literal, literal + count);
  }
  for (uint32_t i = 0; i < problem->op_count; ++i) {
    const dvt_op &op = problem->ops[i];
    kernel->steps.push_back({op.name, {op.inputs, op.inputs + op.input_count}, op.outputs[0]});
  }
  kernel->inputs.assign(problem->inputs, problem->inputs + problem->input_count);
  kernel->outputs.assign(problem->outputs, problem->outputs + problem->output_count);
  *out = kernel;
  return DVT_OK;
}

uint64_t workspaceBytes(const dvt_kernel *) { return 0; }

int64_t countOf(const std::vector<int64_t> &extents) {
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  return count;
}

/// Two operands of equal extents, or one of a single element.
float at(const std::vector<float> &values, int64_t i) {
  return values[values.size() == 1 ? 0 : static_cast<size_t>(i)];
}

void evaluate(const dvt_kernel &kernel, const Step &step, std::vector<std::vector<float>> &values) {
  const std::vector<float> &a = values[step.inputs[0]];
  const std::vector<int64_t> &extents = kernel.extents[step.output];
  std::vector<float> result(static_cast<size_t>(countOf(extents)));
  if (step.op == "mat_mul") {
    const std::vector<float> &b = values[step.inputs[1]];
    int64_t rows = extents[0], columns = extents[1], depth = kernel.extents[step.inputs[0]][1];
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < depth; ++k)
          sum += double(at(a, i * depth + k)) * at(b, k * columns + j);
        result[static_cast<size_t>(i * columns + j)] = static_cast<float>(sum);
      }
  } else {
    for (size_t i = 0; i < result.size(); ++i) {
      auto index = static_cast<int64_t>(i);
      float x = at(a, index);
      float y = step.inputs.size() > 1 ? at(values[step.inputs[1]], index) : 0;
      result[i] = step.op == "relu"  ? std::max(x, 0.0f)
                  : step.op == "exp" ? std::exp(x)
                  : step.op == "add" ? x + y
                                     : x * y;
    }
  }
  values[step.output] = std::move(result);
}

dvt_code run(dvt_kernel *kernel, const dvt_run_args *args, dvt_error *error) {
  misbehave("run");
  if (fault == "fail_run")
    return fail(error, "this kernel always fails");
  if (fault == "blocked") { // aBcd4b to acdb
    const std::vector<int64_t> &extents = kernel->extents[kernel->inputs[0]];
    int64_t channels = extents[1], points = extents[2] * extents[3];
    const auto *x = static_cast<const float *>(args->inputs[0].data);
    auto *y = static_cast<float *>(args->outputs[0].data);
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t p = 0; p < points; ++p)
        y[p * channels + c] = x[(c / 4 * points + p) * 4 + c % 4];
    return DVT_OK;
  }
  std::vector<std::vector<float>> values = kernel->literals;
  for (size_t i = 0; i < kernel->inputs.size(); ++i) {
    const auto *data = static_cast<const float *>(args->inputs[i].data);
    values[kernel->inputs[i]].assign(data, data + countOf(kernel->extents[kernel->inputs[i]]));
  }
  for (const Step &step : kernel->steps)
    evaluate(*kernel, step, values);
  for (size_t i = 0; i < kernel->outputs.size(); ++i) {
    const std::vector<float> &from = values[kernel->outputs[i]];
    auto *to = static_cast<float *>(args->outputs[i].data);
    std::copy(from.begin(), from.end(), to);
    if (fault == "wrong_result")
      to[0] += 1;
    if (fault == "out_of_bounds")
      to[from.size()] = 1;
  }
  return DVT_OK;
}

void destroyKernel(dvt_kernel *kernel) { delete kernel; }

const dvt_provider_api api{sizeof(dvt_provider_api),
                           DVT_PROVIDER_ABI_VERSION,
                           TOY_NAME,
                           create,
                           destroy,
                           info,
                           propose,
                           compile,
                           prepare,
                           workspaceBytes,
                           run,
                           destroyKernel};

} // namespace

extern "C" const dvt_provider_api *dvt_provider_entry(uint32_t) { return &api; }
