// SPDX-License-Identifier: Apache-2.0
//
// A provider for devices, for tests: add, relu and products of two matrices in f32, row-major, by
// the kernels of test/device/kernels, which only a simulated device runs. Products want a
// workspace, which they leave alone; what a plan calls "greedy" is the same kernel and wants more
// of it than the simulated device has.
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/Device.h"
#include "dovetail/provider.h"
#include "support/File.h"

using namespace dovetail;
using namespace dovetail::device;

struct dvt_provider {
  dvt_provider_info info;
  std::string drivers;
  std::map<std::string, std::shared_ptr<Device>> devices; ///< by api
};

struct dvt_kernel {
  std::shared_ptr<Device> device;
  std::unique_ptr<Module> module;
  FunctionHandle function;
  std::string op;
  std::vector<uint32_t> operands; ///< of the op, by input of the problem
  uint64_t workspace;
};

namespace {

constexpr uint64_t kWorkspace = 1000, kGreedyWorkspace = uint64_t(64) << 30;

dvt_code fail(dvt_error *error, dvt_code code, const std::string &message) {
  std::strncpy(error->message, message.c_str(), sizeof error->message - 1);
  return code;
}

/// The problem's one op where it can be served; else the reason.
std::optional<std::string> findOp(const dvt_target &target, const dvt_problem &problem,
                                  std::string &why) {
  if (std::strcmp(target.device, "cpu") == 0 || !target.description) {
    why = "serves devices with a description only";
    return std::nullopt;
  }
  std::string op = problem.op_count == 1 ? problem.ops[0].name : "several ops";
  if (op != "add" && op != "relu" && op != "mat_mul") {
    why = op + " is not known";
    return std::nullopt;
  }
  for (uint32_t i = 0; i < problem.value_count; ++i) {
    const dvt_value &value = problem.values[i];
    bool isKnown = value.type == DVT_F32 && !value.strides && !(value.flags & DVT_VALUE_LITERAL) &&
                   value.rank == problem.values[problem.outputs[0]].rank;
    for (uint32_t d = 0; isKnown && d < value.rank; ++d)
      isKnown &= value.extents[d].value == problem.values[problem.outputs[0]].extents[d].value ||
                 (op == "mat_mul" && value.extents[d].value >= 0);
    if (!isKnown || (op == "mat_mul" && value.rank != 2)) {
      why = "takes dense f32 of known and equal extents";
      return std::nullopt;
    }
  }
  return op;
}

dvt_code create(const dvt_host *host, dvt_provider **provider, dvt_error *) {
  *provider = new dvt_provider{{sizeof(dvt_provider_info), "simulated", "1.0", nullptr, 0, 1, 0},
                               host->device_drivers ? host->device_drivers : "",
                               {}};
  return DVT_OK;
}
void destroy(dvt_provider *provider) { delete provider; }
const dvt_provider_info *info(dvt_provider *provider) { return &provider->info; }

dvt_code propose(dvt_provider *, const dvt_target *target, const dvt_problem *problem,
                 const dvt_candidate_sink *sink, dvt_error *error) {
  std::string why;
  auto op = findOp(*target, *problem, why);
  if (!op)
    return fail(error, DVT_UNSUPPORTED, why);
  dvt_candidate candidate{};
  candidate.struct_size = sizeof candidate;
  candidate.algorithm = "plain";
  candidate.numerics = "f32";
  candidate.deterministic = 1;
  candidate.estimate_micros = -1;
  candidate.workspace_bytes = *op == "mat_mul" ? kWorkspace : 0;
  candidate.registers = 16;
  candidate.memory = DVT_MEMORY_DEVICE;
  sink->candidate(sink->context, &candidate);
  return DVT_OK;
}

dvt_code compile(dvt_provider *, const dvt_target *, const dvt_problem *, const dvt_candidate *,
                 const dvt_bytes_sink *sink, dvt_error *error) {
  auto image = readFile(DOVETAIL_BINARY_DIR "/test/kernels/plain.so");
  if (!image)
    return fail(error, DVT_FAILED, image.error().message);
  sink->bytes(sink->context, image->data(), image->size());
  return DVT_OK;
}

dvt_code prepare(dvt_provider *provider, const dvt_target *target, const dvt_problem *problem,
                 const dvt_candidate *candidate, const dvt_prepare_args *args, dvt_kernel **kernel,
                 dvt_error *error) {
  std::string why;
  auto op = findOp(*target, *problem, why);
  if (!op)
    return fail(error, DVT_UNSUPPORTED, why);
  std::shared_ptr<Device> &device = provider->devices[target->device];
  if (!device) {
    auto driver = DeviceDriver::open(target->device,
                                     DeviceDriver::pathFor(provider->drivers, target->device));
    if (!driver)
      return fail(error, DVT_UNAVAILABLE, driver.error().message);
    auto opened = Device::open(*driver, 0);
    if (!opened)
      return fail(error, DVT_UNAVAILABLE, opened.error().message);
    device = *opened;
  }
  auto module = device->loadModule(args->kernel, args->kernel_bytes);
  if (!module)
    return fail(error, DVT_FAILED, module.error().message);
  auto function = (*module)->find(*op);
  if (!function)
    return fail(error, DVT_FAILED, function.error().message);
  std::vector<uint32_t> operands;
  for (uint32_t i = 0; i < problem->ops[0].input_count; ++i)
    for (uint32_t k = 0; k < problem->input_count; ++k)
      if (problem->inputs[k] == problem->ops[0].inputs[i])
        operands.push_back(k);
  uint64_t workspace = *op == "mat_mul" ? kWorkspace : 0;
  if (candidate->algorithm == std::string("greedy"))
    workspace = kGreedyWorkspace;
  *kernel =
      new dvt_kernel{device, std::move(*module), *function, *op, std::move(operands), workspace};
  return DVT_OK;
}

uint64_t workspaceBytes(const dvt_kernel *kernel) { return kernel->workspace; }

dvt_code run(dvt_kernel *kernel, const dvt_run_args *args, dvt_error *error) {
  std::vector<uint64_t> values;
  auto add = [&](const dvt_tensor &tensor) {
    values.push_back(reinterpret_cast<uint64_t>(tensor.data));
    return tensor.memory == DVT_MEMORY_DEVICE;
  };
  bool isThere = true;
  for (uint32_t operand : kernel->operands)
    isThere &= add(args->inputs[operand]);
  const dvt_tensor &result = args->outputs[0];
  isThere &= add(result);
  if (!isThere || !args->stream)
    return fail(error, DVT_BAD_INPUT, "an operand is not on the device, or there is no stream");
  int64_t count = 1;
  for (uint32_t d = 0; d < result.rank; ++d)
    count *= result.extents[d];
  if (kernel->op == "mat_mul")
    values.insert(values.end(), {uint64_t(result.extents[0]), uint64_t(result.extents[1]),
                                 uint64_t(args->inputs[0].extents[1])});
  else
    values.push_back(uint64_t(count));
  std::vector<void *> arguments;
  for (uint64_t &value : values)
    arguments.push_back(&value);
  LaunchShape shape;
  shape.threads[0] = 128;
  shape.blocks[0] = uint32_t((count + 127) / 128);
  Status status = kernel->device->driver().launch(kernel->function, shape, arguments.data(),
                                                  static_cast<StreamHandle>(args->stream));
  return status ? DVT_OK : fail(error, DVT_FAILED, status.error().message);
}

void destroyKernel(dvt_kernel *kernel) { delete kernel; }

const dvt_provider_api kApi = {sizeof(dvt_provider_api),
                               DVT_PROVIDER_ABI_VERSION,
                               "simulated",
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

extern "C" DVT_EXPORT const dvt_provider_api *dvt_provider_entry(uint32_t version) {
  return version == DVT_PROVIDER_ABI_VERSION ? &kApi : nullptr;
}
