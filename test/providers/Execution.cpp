// SPDX-License-Identifier: Apache-2.0
//
// Binding of operands and the watch over memory.
#include "Execution.h"

#include <algorithm>
#include <cstring>

#include "support/Layout.h"
#include "support/Parallel.h"

namespace dovetail::conformance {

namespace {

constexpr uint64_t kGuard = 4096;
constexpr uint8_t kPattern = 0x5C;

std::vector<int64_t> extentsUnder(const ProblemValue &value, const SymbolValues &symbols,
                                  bool &known) {
  std::vector<int64_t> extents;
  for (const Extent &extent : value.extents) {
    std::optional<int64_t> number = extent.evaluate(symbols);
    known = known && number;
    extents.push_back(number.value_or(0));
  }
  return extents;
}

Layout layoutOf(const std::string &text) {
  Expected<Layout> layout = Layout::parse(text);
  return layout ? *layout : Layout();
}

/// Elements from the lowest to the highest address of strided memory.
int64_t stridedSpan(const std::vector<int64_t> &extents, const std::vector<int64_t> &strides) {
  int64_t last = 0;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (!extents[i])
      return 0;
    last += (extents[i] - 1) * strides[i];
  }
  return last + 1;
}

template <typename Body>
void forEachOffset(const std::vector<int64_t> &extents, const std::vector<int64_t> &strides,
                   Body body) {
  std::vector<int64_t> index(extents.size(), 0);
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  for (int64_t linear = 0; linear < count; ++linear) {
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); ++i)
      offset += index[i] * strides[i];
    body(linear, offset);
    for (size_t i = index.size(); i-- > 0;) {
      if (++index[i] < extents[i])
        break;
      index[i] = 0;
    }
  }
}

/// An output of one run: where it lies and what the provider stated.
struct BoundOutput {
  GuardedMemory memory;
  std::vector<int64_t> extents;
  bool stated = false; ///< by allocate_output
};

struct OutputContext {
  std::vector<BoundOutput> &outputs;
  const Problem &problem;
  uint8_t fill;
};

void *allocateOutput(void *opaque, uint32_t output, uint32_t rank, const int64_t *extents) {
  auto &context = *static_cast<OutputContext *>(opaque);
  BoundOutput &bound = context.outputs[output];
  bound.extents.assign(extents, extents + rank);
  bound.stated = true;
  int64_t count = 1;
  for (int64_t extent : bound.extents)
    count *= extent;
  bound.memory = GuardedMemory(
      bytesOf(context.problem.values[context.problem.outputs[output]].type, count), context.fill);
  return bound.memory.data();
}

} // namespace

int64_t HostTensor::count() const {
  int64_t product = 1;
  for (int64_t extent : extents)
    product *= extent;
  return product;
}

GuardedMemory::GuardedMemory(uint64_t bytes, uint8_t fill) : bytes(bytes) {
  memory.assign(bytes + 2 * kGuard + 64, kPattern);
  start = memory.data() + kGuard;
  start += (64 - reinterpret_cast<uintptr_t>(start) % 64) % 64;
  std::memset(start, fill, bytes);
}

bool GuardedMemory::intact() const {
  auto isPattern = [](uint8_t byte) { return byte == kPattern; };
  auto data = memory.data(), end = memory.data() + memory.size();
  return std::all_of(data, static_cast<const uint8_t *>(start), isPattern) &&
         std::all_of(static_cast<const uint8_t *>(start + bytes), end, isPattern);
}

GuardedMemory PreparedCandidate::physicalInput(size_t index) const {
  const HostTensor &tensor = inputs[index];
  const ProblemValue &value = problem.values[problem.inputs[index]];
  uint64_t element = typeBits(tensor.type) / 8;
  if (!value.strides.empty()) {
    GuardedMemory memory(
        static_cast<uint64_t>(stridedSpan(tensor.extents, value.strides)) * element, 0xFF);
    forEachOffset(tensor.extents, value.strides, [&](int64_t linear, int64_t offset) {
      std::memcpy(memory.data() + static_cast<uint64_t>(offset) * element,
                  tensor.bytes.data() + static_cast<uint64_t>(linear) * element, element);
    });
    return memory;
  }
  Layout layout = layoutOf(candidate.inputLayouts[index]);
  if (layout.isRowMajor()) {
    GuardedMemory memory(tensor.bytes.size(), 0);
    std::copy(tensor.bytes.begin(), tensor.bytes.end(), memory.data());
    return memory;
  }
  GuardedMemory memory(static_cast<uint64_t>(layout.physicalElements(tensor.extents)) * element, 0);
  reorder(tensor.type, tensor.extents, Layout(), tensor.bytes.data(), layout, memory.data());
  return memory;
}

PreparedCandidate::PreparedCandidate(const Provider &provider, const Target &target,
                                     const Problem &problem, const Candidate &candidate,
                                     std::vector<uint8_t> kernelBytes,
                                     std::vector<HostTensor> given, const SymbolValues &symbols)
    : provider(provider), problem(problem), candidate(candidate),
      kernelBytes(std::move(kernelBytes)), inputs(std::move(given)), symbols(symbols) {
  std::vector<const void *> pointers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    bool constant = problem.values[problem.inputs[i]].constant;
    constants.push_back(constant ? physicalInput(i) : GuardedMemory());
    pointers.push_back(constants.back().data());
  }
  ParallelFor parallel(target.threads);
  dvt_prepare_args args = {};
  args.struct_size = sizeof args;
  args.constants = pointers.data();
  args.kernel = this->kernelBytes.data();
  args.kernel_bytes = this->kernelBytes.size();
  args.threads = target.threads;
  args.parallel = parallel.get();
  args.memory_context = &lent;
  args.allocate = [](void *context, uint64_t bytes) -> void * {
    return static_cast<std::vector<GuardedMemory> *>(context)->emplace_back(bytes, 0).data();
  };
  ProblemView view(problem);
  std::vector<const char *> strings;
  dvt_candidate plain = candidate.view(strings);
  dvt_target plainTarget = target.view();
  dvt_error error = {};
  prepareCode = provider.functions().prepare(provider.handle(), &plainTarget, view, &plain, &args,
                                             &kernel, &error);
  prepareMessage = error.message;
}

PreparedCandidate::~PreparedCandidate() {
  if (prepareCode == DVT_OK && kernel)
    provider.functions().destroy_kernel(kernel);
}

uint64_t PreparedCandidate::workspaceBytes() const {
  return provider.functions().workspace_bytes(kernel);
}

RunResult PreparedCandidate::run(const RunOptions &options, uint32_t threads) const {
  std::vector<GuardedMemory> memories;
  std::vector<dvt_tensor> inputViews, outputViews;
  std::vector<bool> overwritten(inputs.size(), false);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ProblemValue &value = problem.values[problem.inputs[i]];
    memories.push_back(value.constant ? GuardedMemory() : physicalInput(i));
    inputViews.push_back(
        {value.constant ? constants[i].data() : memories[i].data(), inputs[i].extents.data(),
         value.strides.empty() ? nullptr : value.strides.data(),
         static_cast<uint32_t>(inputs[i].extents.size()), inputs[i].type, DVT_MEMORY_HOST});
  }
  std::vector<BoundOutput> outputs(problem.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ProblemValue &value = problem.values[problem.outputs[i]];
    Layout layout = layoutOf(candidate.outputLayouts[i]);
    bool known = true;
    outputs[i].extents = extentsUnder(value, symbols, known);
    void *data = nullptr;
    if (known && options.inPlace && value.mayAlias >= 0) {
      data = inputViews[static_cast<size_t>(value.mayAlias)].data;
      overwritten[static_cast<size_t>(value.mayAlias)] = true;
    } else if (known) {
      int64_t elements = !value.strides.empty() ? stridedSpan(outputs[i].extents, value.strides)
                         : layout.isRowMajor()  ? layout.physicalElements(outputs[i].extents)
                                                : layout.physicalElements(outputs[i].extents);
      outputs[i].memory = GuardedMemory(bytesOf(value.type, elements), options.fill);
      data = outputs[i].memory.data();
    }
    outputViews.push_back(
        {data, outputs[i].extents.data(), value.strides.empty() ? nullptr : value.strides.data(),
         static_cast<uint32_t>(outputs[i].extents.size()), value.type, DVT_MEMORY_HOST});
  }
  GuardedMemory workspace(workspaceBytes(), options.fill);
  ParallelFor parallel(threads);
  OutputContext context = {outputs, problem, options.fill};
  dvt_run_args args = {sizeof(dvt_run_args),
                       static_cast<uint32_t>(inputViews.size()),
                       static_cast<uint32_t>(outputViews.size()),
                       inputViews.data(),
                       outputViews.data(),
                       workspace.data(),
                       workspace.size(),
                       parallel.get(),
                       nullptr,
                       &context,
                       allocateOutput};
  RunResult result;
  dvt_error error = {};
  result.code = provider.functions().run(kernel, &args, &error);
  result.message = error.message;

  auto violated = [&](const std::string &what) { result.violations.push_back(what); };
  if (!workspace.intact())
    violated("wrote beside its workspace of " + std::to_string(workspace.size()) + " bytes");
  for (const GuardedMemory &memory : lent)
    if (!memory.intact())
      violated("wrote beside the " + std::to_string(memory.size()) +
               " bytes it was lent for packed constants");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const GuardedMemory &memory =
        problem.values[problem.inputs[i]].constant ? constants[i] : memories[i];
    GuardedMemory before = physicalInput(i);
    if (!memory.intact() ||
        (!overwritten[i] && std::memcmp(before.data(), memory.data(), memory.size())))
      violated("changed input " + std::to_string(i) + " or wrote beside it");
  }
  for (size_t i = 0; i < outputs.size() && result.code == DVT_OK; ++i) {
    const ProblemValue &value = problem.values[problem.outputs[i]];
    HostTensor tensor = {value.type, outputs[i].extents, {}};
    tensor.bytes.resize(bytesOf(value.type, tensor.count()));
    const auto *data = outputs[i].stated ? outputs[i].memory.data()
                                         : static_cast<const uint8_t *>(outputViews[i].data);
    uint64_t element = typeBits(value.type) / 8;
    Layout layout = layoutOf(candidate.outputLayouts[i]);
    if (!data && tensor.count()) {
      violated("did not state the extents of output " + std::to_string(i));
    } else if (!value.strides.empty() && !outputs[i].stated) {
      forEachOffset(tensor.extents, value.strides, [&](int64_t linear, int64_t offset) {
        std::memcpy(tensor.bytes.data() + static_cast<uint64_t>(linear) * element,
                    data + static_cast<uint64_t>(offset) * element, element);
      });
    } else if (layout.isRowMajor()) {
      std::copy(data, data + tensor.bytes.size(), tensor.bytes.begin());
    } else {
      reorder(value.type, tensor.extents, layout, data, Layout(), tensor.bytes.data());
      // Writing the result back into zeroed memory of the layout gives what it must look like,
      // padding included.
      uint64_t physical = static_cast<uint64_t>(layout.physicalElements(tensor.extents)) * element;
      std::vector<uint8_t> expected(physical);
      reorder(value.type, tensor.extents, Layout(), tensor.bytes.data(), layout, expected.data());
      if (std::memcmp(expected.data(), data, physical))
        violated("the padding of output " + std::to_string(i) + " in layout " + layout.text() +
                 " is not zero");
    }
    if (outputs[i].memory.data() && !outputs[i].memory.intact())
      violated("wrote beside output " + std::to_string(i));
    result.outputs.push_back(std::move(tensor));
  }
  return result;
}

} // namespace dovetail::conformance
