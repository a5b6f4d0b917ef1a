// SPDX-License-Identifier: Apache-2.0
//
// A provider of a few ops in plain loops, for tests: it packs constants, wants workspace, works in
// another layout, has data-dependent outputs and kernels for any or only for fixed extents. It
// checks what the runtime promises.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "providers/Stateless.h"

using namespace stateless;

struct dvt_kernel {
  std::string op, algorithm;
  std::vector<int64_t> fixed; ///< extents of the first output where the kernel is for fixed ones
  std::vector<float> packed;
  bool isPacked = false;
};

namespace {

constexpr uint64_t kWorkspace = 256;
const bool isConcurrent = std::string_view(TOY_NAME) != "spare";

/// The spare one is as if built before the door had concurrent_prepare: what follows is not read.
const dvt_provider_info information{isConcurrent ? sizeof(dvt_provider_info)
                                                 : offsetof(dvt_provider_info, concurrent_prepare),
                                    TOY_NAME,
                                    TOY_VERSION,
                                    nullptr,
                                    0,
                                    0,
                                    1};

const dvt_provider_info *info(dvt_provider *) { return &information; }

std::string opOf(const dvt_problem *problem) {
  return problem->op_count == 1 ? problem->ops[0].name : "";
}

void offer(const dvt_problem *problem, const dvt_candidate_sink *sink, const char *algorithm,
           const char *layout, bool anyExtents) {
  std::vector<const char *> layouts(problem->input_count + problem->output_count, layout);
  dvt_candidate c{};
  c.struct_size = sizeof(c);
  c.algorithm = algorithm;
  c.input_layouts = layouts.data();
  c.output_layouts = layouts.data();
  c.numerics = "f32";
  c.deterministic = 1;
  c.runtime_extents = anyExtents;
  c.estimate_micros = anyExtents ? 10 : 5;
  c.workspace_bytes = kWorkspace;
  if (opOf(problem) == "mat_mul")
    c.packing = DVT_PACKING_AT_LOAD;
  sink->candidate(sink->context, &c);
}

dvt_code propose(dvt_provider *, const dvt_target *, const dvt_problem *problem,
                 const dvt_candidate_sink *sink, dvt_error *error) {
  std::string op = opOf(problem);
  for (const char *known : {"relu", "add", "mat_mul", "keep_positive", "fail"})
    if (op == known) {
      if (isStatic(problem))
        offer(problem, sink, "fixed", "", false);
      if (op == "relu" && problem->values[problem->inputs[0]].rank == 2)
        offer(problem, sink, "transposed", "ba", true);
      offer(problem, sink, "plain", "", true);
      return DVT_OK;
    }
  return fail(error, "does not know " + op, DVT_UNSUPPORTED);
}

/// An artifact may have any problem in it: what was never offered is not run.
bool isServed(const dvt_problem *problem) {
  const std::string op = opOf(problem);
  const uint32_t wanted = op == "add" || op == "mat_mul" ? 2 : 1;
  if (problem->op_count != 1 || problem->input_count != wanted || problem->output_count != 1)
    return false;
  auto rankOf = [&](uint32_t value) { return problem->values[value].rank; };
  if (op == "mat_mul")
    return rankOf(problem->inputs[0]) == 2 && rankOf(problem->inputs[1]) == 2 &&
           rankOf(problem->outputs[0]) == 2;
  return op == "relu" || op == "add" || op == "keep_positive" || op == "fail";
}

dvt_code prepare(dvt_provider *, const dvt_target *, const dvt_problem *problem,
                 const dvt_candidate *candidate, const dvt_prepare_args *args, dvt_kernel **out,
                 dvt_error *error) {
  static std::atomic<int> inside{0};
  struct Stay {
    int before = inside++;
    ~Stay() { --inside; }
  } stay;
  std::this_thread::yield(); // so that others would come in
  if (!isConcurrent && (stay.before > 0 || inside > 1))
    return fail(error, "is called by two threads at once");
  std::string algorithm = candidate->algorithm;
  if (algorithm != "plain" && algorithm != "fixed" && algorithm != "transposed")
    return fail(error, "knows no such algorithm", DVT_UNSUPPORTED);
  if (!isServed(problem))
    return fail(error, "never offered a kernel for this problem", DVT_UNSUPPORTED);
  auto *kernel = new dvt_kernel();
  kernel->op = opOf(problem);
  kernel->algorithm = algorithm;
  if (algorithm == "fixed") {
    const dvt_value &value = problem->values[problem->outputs[0]];
    for (uint32_t d = 0; d < value.rank; ++d)
      kernel->fixed.push_back(value.extents[d].value);
  }
  if (kernel->op == "mat_mul" && args->constants[1]) {
    const dvt_value &b = problem->values[problem->inputs[1]];
    const auto *data = static_cast<const float *>(args->constants[1]);
    kernel->packed.assign(data, data + b.extents[0].value * b.extents[1].value);
    kernel->isPacked = true;
  }
  *out = kernel;
  return DVT_OK;
}

uint64_t workspaceBytes(const dvt_kernel *) { return kWorkspace; }

int64_t countOf(const dvt_tensor &tensor) {
  int64_t count = 1;
  for (uint32_t d = 0; d < tensor.rank; ++d)
    count *= tensor.extents[d];
  return count;
}

dvt_code run(dvt_kernel *kernel, const dvt_run_args *args, dvt_error *error) {
  if (args->struct_size < sizeof(*args) || args->workspace_bytes < kWorkspace || !args->workspace ||
      reinterpret_cast<uintptr_t>(args->workspace) % 64 != 0)
    return fail(error, "the workspace is not what was asked for");
  std::memset(args->workspace, 0xa5, kWorkspace);
  for (uint32_t i = 0; i < args->input_count; ++i)
    if (reinterpret_cast<uintptr_t>(args->inputs[i].data) % 64 != 0)
      return fail(error, "an input is not aligned");
  if (kernel->op == "fail")
    return fail(error, "this op always fails");
  const dvt_tensor &a = args->inputs[0];
  dvt_tensor &out = args->outputs[0];
  const auto *x = static_cast<const float *>(a.data);
  if (kernel->op == "keep_positive") {
    std::vector<float> kept;
    std::copy_if(x, x + countOf(a), std::back_inserter(kept), [](float v) { return v > 0; });
    int64_t count = kept.size();
    if (out.data || !args->allocate_output)
      return fail(error, "no way to state the extents");
    auto *memory = static_cast<float *>(args->allocate_output(args->output_context, 0, 1, &count));
    if (!memory)
      return fail(error, "no memory for the result");
    std::copy(kept.begin(), kept.end(), memory);
    return DVT_OK;
  }
  for (size_t d = 0; d < kernel->fixed.size(); ++d)
    if (out.extents[d] != kernel->fixed[d])
      return fail(error, "prepared for other extents");
  if (reinterpret_cast<uintptr_t>(out.data) % 64 != 0)
    return fail(error, "an output is not aligned");
  auto *y = static_cast<float *>(out.data);
  int64_t count = countOf(out);
  const bool isProduct = kernel->op == "mat_mul";
  if (isProduct ? args->inputs[1].extents[0] != a.extents[1] || out.extents[0] != a.extents[0] ||
                      out.extents[1] != args->inputs[1].extents[1]
                : countOf(a) != count || (kernel->op == "add" && countOf(args->inputs[1]) != count))
    return fail(error, "operands and result do not fit each other");
  if (kernel->op == "relu") {
    // Through the parallel-for; element-wise, so any layout without padding will do.
    struct Work {
      const float *x;
      float *y;
    } work{x, y};
    args->parallel->run(
        args->parallel->context, count,
        [](void *argument, int64_t begin, int64_t end, uint32_t) {
          auto &w = *static_cast<Work *>(argument);
          for (int64_t i = begin; i < end; ++i)
            w.y[i] = w.x[i] > 0 ? w.x[i] : 0;
        },
        &work);
  } else if (kernel->op == "add") {
    const auto *z = static_cast<const float *>(args->inputs[1].data);
    for (int64_t i = 0; i < count; ++i)
      y[i] = x[i] + z[i];
  } else {
    const float *b =
        kernel->isPacked ? kernel->packed.data() : static_cast<const float *>(args->inputs[1].data);
    int64_t rows = a.extents[0], inner = a.extents[1], columns = out.extents[1];
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < inner; ++k)
          sum += x[i * inner + k] * b[k * columns + j];
        y[i * columns + j] = sum;
      }
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
                           nullptr,
                           prepare,
                           workspaceBytes,
                           run,
                           destroyKernel};

} // namespace

extern "C" const dvt_provider_api *dvt_provider_entry(uint32_t) { return &api; }
