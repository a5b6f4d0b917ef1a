// SPDX-License-Identifier: Apache-2.0
//
// problem_run FOLDER_OF_PLUGINS PROVIDER CASE...: runs one problem per case folder on one provider
// and leaves the results beside it. A case holds problem.txt and input_0, input_1, ...; the first
// line of a tensor file is its type and extents as in problem text ("f32[2,3]"), the rest its
// bytes. Written are output_0, output_1, ..., or refused.txt (nothing was proposed or the run was
// not supported), or failed.txt. Outputs with symbolic extents are allocated when the provider
// states their extents.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/Layout.h"
#include "support/Parallel.h"
#include "support/Plugin.h"

using namespace dovetail;

namespace {

struct HostTensor {
  dvt_type type = DVT_UNDEFINED;
  std::vector<int64_t> extents;
  std::vector<uint8_t> bytes;
};

int64_t countOf(const std::vector<int64_t> &extents) {
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  return count;
}

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void writeFile(const std::string &path, const std::string &text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::optional<HostTensor> readTensor(const std::string &path) {
  std::string text = readFile(path);
  size_t line = text.find('\n'), bracket = text.find('[');
  if (line == std::string::npos || bracket > line)
    return std::nullopt;
  HostTensor tensor;
  tensor.type = parseTypeName(text.substr(0, bracket));
  for (size_t at = bracket + 1; at < line && text[at] != ']';) {
    size_t used = 0;
    tensor.extents.push_back(std::stoll(text.substr(at, line - at), &used));
    at += used + (text[at + used] == ',');
  }
  tensor.bytes.assign(text.begin() + static_cast<int64_t>(line) + 1, text.end());
  if (tensor.bytes.size() != bytesOf(tensor.type, countOf(tensor.extents)))
    return std::nullopt;
  return tensor;
}

void writeTensor(const std::string &path, const HostTensor &tensor) {
  std::string text = std::string(typeName(tensor.type)) + "[";
  for (size_t i = 0; i < tensor.extents.size(); ++i)
    text += (i ? "," : "") + std::to_string(tensor.extents[i]);
  text += "]\n";
  text.append(tensor.bytes.begin(), tensor.bytes.end());
  writeFile(path, text);
}

struct Outcome {
  bool refused = false;
  std::string message; // empty on success
};

void *allocateOutput(void *context, uint32_t output, uint32_t rank, const int64_t *extents) {
  HostTensor &tensor = (*static_cast<std::vector<HostTensor> *>(context))[output];
  tensor.extents.assign(extents, extents + rank);
  // One byte more, so that an empty result has an address, too.
  tensor.bytes.resize(bytesOf(tensor.type, countOf(tensor.extents)) + 1);
  return tensor.bytes.data();
}

struct KernelRelease {
  const dvt_provider_api *api;
  void operator()(dvt_kernel *kernel) const { api->destroy_kernel(kernel); }
};

Outcome runCase(const Provider &provider, const Target &target, const std::string &folder) {
  Expected<Problem> parsed = Problem::parse(readFile(folder + "/problem.txt"));
  if (!parsed)
    return {false, "problem.txt: " + parsed.error().message};
  const Problem &problem = *parsed;
  Proposal proposal = provider.propose(target, problem);
  if (proposal.candidates.empty())
    return {true, proposal.refusals.empty() ? "nothing proposed" : proposal.refusals[0].reason};
  const Candidate &candidate = proposal.candidates[0];
  Expected<std::vector<uint8_t>> kernelBytes = provider.compile(target, problem, candidate);
  if (!kernelBytes)
    return {false, "compile: " + kernelBytes.error().message};

  ProblemView view(problem);
  std::vector<const char *> strings;
  dvt_candidate plain = candidate.view(strings);
  dvt_target plainTarget = target.view();
  ParallelFor parallel(target.threads);
  dvt_prepare_args prepareArgs = {};
  prepareArgs.struct_size = sizeof prepareArgs;
  prepareArgs.kernel = kernelBytes->data();
  prepareArgs.kernel_bytes = kernelBytes->size();
  prepareArgs.threads = target.threads;
  prepareArgs.parallel = parallel.get();
  const dvt_provider_api &api = provider.functions();
  dvt_kernel *prepared = nullptr;
  dvt_error error = {};
  if (dvt_code code = api.prepare(provider.handle(), &plainTarget, view, &plain, &prepareArgs,
                                  &prepared, &error))
    return {code == DVT_UNSUPPORTED, std::string("prepare: ") + error.message};
  std::unique_ptr<dvt_kernel, KernelRelease> kernel(prepared, {&api});

  std::vector<HostTensor> inputs, outputs;
  std::vector<dvt_tensor> inputViews, outputViews;
  for (size_t i = 0; i < problem.inputs.size(); ++i) {
    std::optional<HostTensor> tensor = readTensor(folder + "/input_" + std::to_string(i));
    if (!tensor)
      return {false, "input_" + std::to_string(i) + " is not a tensor file"};
    inputs.push_back(std::move(*tensor));
  }
  for (HostTensor &tensor : inputs) {
    tensor.bytes.reserve(1);
    inputViews.push_back({tensor.bytes.data(), tensor.extents.data(), nullptr,
                          static_cast<uint32_t>(tensor.extents.size()), tensor.type,
                          DVT_MEMORY_HOST});
  }
  for (uint32_t index : problem.outputs) {
    const ProblemValue &value = problem.values[index];
    HostTensor tensor;
    tensor.type = value.type;
    bool known = true;
    for (const Extent &extent : value.extents) {
      known = known && extent.isStatic();
      tensor.extents.push_back(extent.staticValue().value_or(0));
    }
    if (known)
      tensor.bytes.resize(bytesOf(tensor.type, countOf(tensor.extents)) + 1);
    outputs.push_back(std::move(tensor));
  }
  for (HostTensor &tensor : outputs)
    outputViews.push_back(
        {tensor.bytes.empty() ? nullptr : tensor.bytes.data(), tensor.extents.data(), nullptr,
         static_cast<uint32_t>(tensor.extents.size()), tensor.type, DVT_MEMORY_HOST});
  std::vector<uint8_t> workspace(api.workspace_bytes(kernel.get()) + 64);
  void *aligned = workspace.data() + (64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64) % 64;
  dvt_run_args args = {sizeof(dvt_run_args),
                       static_cast<uint32_t>(inputViews.size()),
                       static_cast<uint32_t>(outputViews.size()),
                       inputViews.data(),
                       outputViews.data(),
                       aligned,
                       workspace.size() - 64,
                       parallel.get(),
                       nullptr,
                       &outputs,
                       allocateOutput};
  if (dvt_code code = api.run(kernel.get(), &args, &error))
    return {code == DVT_UNSUPPORTED, std::string("run: ") + error.message};
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].bytes.resize(bytesOf(outputs[i].type, countOf(outputs[i].extents)));
    writeTensor(folder + "/output_" + std::to_string(i), outputs[i]);
  }
  return {};
}

} // namespace

int main(int count, char **arguments) {
  if (count < 4) {
    std::fprintf(stderr, "usage: problem_run FOLDER_OF_PLUGINS PROVIDER CASE...\n");
    return 2;
  }
  PluginSet::Options options;
  options.folders = {arguments[1]};
  options.only = {arguments[2]};
  PluginSet plugins = PluginSet::load(options);
  for (const PluginSet::Failure &failure : plugins.failures())
    std::fprintf(stderr, "%s: %s\n", failure.file.c_str(), failure.reason.c_str());
  const Provider *provider = plugins.find(arguments[2]);
  if (!provider) {
    std::fprintf(stderr, "no provider %s in %s\n", arguments[2], arguments[1]);
    return 3;
  }
  Target target = Target::host(1);
  for (int i = 3; i < count; ++i) {
    std::string folder = arguments[i];
    Outcome outcome = runCase(*provider, target, folder);
    if (!outcome.message.empty())
      writeFile(folder + (outcome.refused ? "/refused.txt" : "/failed.txt"), outcome.message);
    else
      writeFile(folder + "/done", "");
  }
  return 0;
}
