// SPDX-License-Identifier: Apache-2.0
//
// Makes primitives, packs constants, and runs. Setting a data handle on a memory object is not
// thread safe, so every concurrent run has its own objects.
#include "providers/onednn/Kernel.h"

#include <cmath>
#include <cstring>

#include <sys/mman.h>

#include "providers/onednn/HalfConversion.h"

namespace dovetail::onednn {

namespace {

/// Memory for a while that goes back to the system at once: what a thread that packs frees, its
/// allocator would keep.
class Scratch {
public:
  explicit Scratch(size_t bytes) : bytes(bytes) {
    if (bytes > 0)
      memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  ~Scratch() {
    if (memory != MAP_FAILED)
      ::munmap(memory, bytes);
  }
  Scratch(const Scratch &) = delete;
  void *get() const { return memory; }
  bool isThere() const { return bytes == 0 || memory != MAP_FAILED; }

private:
  size_t bytes;
  void *memory = MAP_FAILED;
};

} // namespace

bool Kernel::reorder(const Desc &from, const void *source, const Desc &to, void *destination) {
  dnnl_primitive_attr_t attributesHandle = nullptr;
  dnnl_primitive_desc_t description = nullptr;
  dnnl_primitive_t made = nullptr;
  dnnl_stream_t streamHandle = nullptr;
  if (library.primitive_attr_create(&attributesHandle) != dnnl_success)
    return false;
  Attributes attributes(library, attributesHandle);
  if (library.primitive_attr_set_scratchpad_mode(attributesHandle, dnnl_scratchpad_mode_user) !=
          dnnl_success ||
      library.reorder_primitive_desc_create(&description, from.get(), library.engine, to.get(),
                                            library.engine, attributesHandle) != dnnl_success)
    return false;
  PrimitiveDesc ownedDescription(library, description);
  if (library.primitive_create(&made, description) != dnnl_success)
    return false;
  Primitive primitive(library, made);
  if (library.stream_create(&streamHandle, library.engine, dnnl_stream_default_flags) !=
      dnnl_success)
    return false;
  Stream stream(library, streamHandle);
  const Desc scratchDesc = argumentDesc(library, ownedDescription, DNNL_ARG_SCRATCHPAD);
  const Scratch scratch(scratchDesc ? scratchDesc.bytes() : 0);
  std::vector<Memory> memories;
  std::vector<dnnl_exec_arg_t> arguments;
  auto add = [&](int argument, const Desc &desc, void *bytes) {
    dnnl_memory_t memory = nullptr;
    if (library.memory_create(&memory, desc.get(), library.engine, bytes) != dnnl_success)
      return false;
    memories.emplace_back(library, memory);
    arguments.push_back({argument, memory});
    return true;
  };
  return scratch.isThere() && add(DNNL_ARG_FROM, from, const_cast<void *>(source)) &&
         add(DNNL_ARG_TO, to, destination) &&
         (!scratchDesc || add(DNNL_ARG_SCRATCHPAD, scratchDesc, scratch.get())) &&
         library.primitive_execute(made, streamHandle, static_cast<int>(arguments.size()),
                                   arguments.data()) == dnnl_success &&
         library.stream_wait(streamHandle) == dnnl_success;
}

namespace {

/// Writes element `index` of a derived vector.
void storeDerived(const Derived &derived, void *to, size_t index, double value) {
  if (derived.type == dnnl_s32)
    static_cast<int32_t *>(to)[index] = static_cast<int32_t>(value);
  else
    static_cast<float *>(to)[index] = static_cast<float>(value);
}

} // namespace

bool Kernel::derive(const ProblemReader &problem, const Binding &binding,
                    const dvt_prepare_args &args, Argument &argument, std::string &reason) {
  const Derived &derived = binding.derived;
  const uint32_t single = derived.terms.size() == 1 && derived.terms[0].factor == DVT_NO_VALUE &&
                                  derived.terms[0].divisor == DVT_NO_VALUE
                              ? derived.terms[0].base
                              : DVT_NO_VALUE;
  if (single != DVT_NO_VALUE && !problem.isConstant(single)) {
    argument.source = Source::Derived;
    argument.place = static_cast<uint64_t>(problem.inputPosition(single));
    argument.from = problem.type(single);
    argument.derived = derived;
    return true;
  }
  argument.source = Source::Constant;
  argument.constant = constantMemory.take(&args, 4 * static_cast<size_t>(derived.count));
  std::vector<double> sum(static_cast<size_t>(derived.count), derived.shift);
  bool complete = argument.constant != nullptr;
  auto apply = [&](std::vector<double> &numbers, uint32_t value, bool divide) {
    if (value == DVT_NO_VALUE || !complete)
      return;
    std::optional<std::vector<double>> other = numbersOf(problem, value, &args);
    complete = other && (other->size() == 1 || other->size() == numbers.size());
    for (size_t i = 0; complete && i < numbers.size(); ++i) {
      const double number = (*other)[other->size() == 1 ? 0 : i];
      numbers[i] = divide ? numbers[i] / number : numbers[i] * number;
    }
  };
  for (const Derived::Term &term : derived.terms) {
    std::vector<double> product(sum.size(), term.sign);
    apply(product, term.base, false);
    apply(product, term.factor, false);
    apply(product, term.otherFactor, false);
    apply(product, term.divisor, true);
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += product[i];
  }
  for (size_t i = 0; complete && i < sum.size(); ++i) {
    complete = std::isfinite(sum[i]);
    if (complete)
      storeDerived(derived, argument.constant, i, sum[i]);
  }
  if (!complete)
    reason = "scales or zero points came without bytes, in another number than channels, or are "
             "no finite numbers";
  return complete;
}

std::vector<float> Kernel::widen(const ProblemReader &problem, const Binding &binding,
                                 const void *bytes, const dvt_prepare_args &args) const {
  const uint32_t value = binding.view.value;
  const Dims extents = problem.extents(value);
  if (const dvt_type type = problem.type(value); type == DVT_F16 || type == DVT_BF16) {
    std::vector<float> result(static_cast<size_t>(providers::product(extents)));
    widenElements(type, bytes, result.data(), static_cast<int64_t>(result.size()),
                  args.parallel ? args.threads : 1);
    return result;
  }
  auto numbers = [&](uint32_t of, double otherwise) {
    return of == DVT_NO_VALUE ? std::optional(std::vector<double>{otherwise})
                              : numbersOf(problem, of, &args);
  };
  const std::optional<std::vector<double>> scales = numbers(binding.grid.scale, 1),
                                           zeros = numbers(binding.grid.zero, 0);
  const size_t axis = static_cast<size_t>(std::max(binding.grid.axis, 0));
  const auto count = static_cast<size_t>(extents.empty() ? 1 : extents[axis]);
  auto fits = [&](const std::optional<std::vector<double>> &list) {
    return list && (list->size() == 1 || (binding.grid.axis >= 0 && list->size() == count));
  };
  if (!fits(scales) || !fits(zeros))
    return {};
  const auto inner = static_cast<size_t>(providers::product(extents, axis + 1, extents.size()));
  std::vector<float> result(static_cast<size_t>(providers::product(extents)));
  for (size_t i = 0; i < result.size(); ++i) {
    const size_t channel = i / inner % count;
    result[i] = static_cast<float>((providers::elementAsDouble(bytes, problem.type(value), i) -
                                    (*zeros)[zeros->size() == 1 ? 0 : channel]) *
                                   (*scales)[scales->size() == 1 ? 0 : channel]);
  }
  return result;
}

const void *Kernel::givenBytes(const ProblemReader &problem, uint32_t value,
                               const dvt_prepare_args &args, std::string &reason) {
  const void *bytes = nullptr;
  if (int32_t input = problem.inputPosition(value); input >= 0) {
    bytes = args.constants ? args.constants[input] : nullptr;
  } else {
    const dvt_value &literal = problem.value(value);
    const uint64_t element = providers::elementBytes(literal.type);
    const uint64_t count = static_cast<uint64_t>(providers::product(problem.extents(value)));
    const bool uniform = (literal.flags & DVT_VALUE_UNIFORM) != 0;
    if (literal.literal && literal.literal_bytes >= (uniform ? element : element * count)) {
      char *copy = static_cast<char *>(constantMemory.take(&args, element * count));
      for (uint64_t i = 0; copy && i < count; ++i)
        std::memcpy(copy + i * element,
                    static_cast<const char *>(literal.literal) + (uniform ? 0 : i * element),
                    element);
      bytes = copy;
    }
  }
  if (!bytes)
    reason = "a constant operand came without bytes";
  return bytes;
}

void *Kernel::constantBytes(const ProblemReader &problem, const Binding &binding,
                            const dvt_prepare_args &args, std::string &reason) {
  const uint32_t value = binding.view.value;
  std::vector<float> made;
  const void *bytes = nullptr;
  if (binding.assembled) {
    std::vector<const float *> sources;
    for (uint32_t source : binding.assembled->values) {
      sources.push_back(static_cast<const float *>(givenBytes(problem, source, args, reason)));
      if (!sources.back())
        return nullptr;
    }
    made = binding.assembled->make(sources);
    bytes = made.data();
  } else {
    bytes = givenBytes(problem, value, args, reason);
    if (!bytes)
      return nullptr;
  }
  if (!binding.needsPacking && !binding.flipSign && !binding.widen)
    return const_cast<void *>(bytes);
  providers::PackingClock clock(&args);
  std::vector<float> widened;
  if (binding.widen) {
    widened = widen(problem, binding, bytes, args);
    if (widened.empty()) {
      reason = "scales or zero points came without bytes, or in another number than channels";
      return nullptr;
    }
    bytes = widened.data();
  }
  std::vector<uint8_t> flipped;
  if (binding.flipSign) {
    const auto *first = static_cast<const uint8_t *>(bytes);
    flipped.assign(first, first + providers::product(problem.extents(value)));
    for (uint8_t &byte : flipped)
      byte ^= 0x80;
    bytes = flipped.data();
  }
  void *packed = constantMemory.take(&args, binding.desc.bytes());
  if (!packed) {
    reason = "out of memory while packing constants";
    return nullptr;
  }
  if (!binding.needsPacking) {
    std::memcpy(packed, bytes, binding.desc.bytes());
  } else if (!reorder(binding.plain, bytes, binding.desc, packed)) {
    reason = "oneDNN cannot bring a constant into the layout its implementation wants";
    return nullptr;
  }
  return packed;
}

std::shared_ptr<const Program> Program::make(std::shared_ptr<const Library> library,
                                             const Attempt &attempt, const Resolved &resolved,
                                             std::string &reason) {
  auto program = std::make_shared<Program>();
  program->resolved = resolved;
  for (std::vector<Binding> &bindings : program->resolved.bindings)
    for (Binding &binding : bindings)
      if (!binding.needsPacking)
        binding.plain = {}; // descriptors are large
  program->assumed = attempt.assumed;
  program->accumulated = attempt.accumulated;
  program->ownsNumbers = attempt.ownsNumbers;
  for (const Stage &stage : attempt.stages) {
    dnnl_primitive_t made = nullptr;
    dnnl_status_t status = library->primitive_create(&made, stage.description.get());
    if (status != dnnl_success) {
      reason = std::string("oneDNN cannot create the primitive: ") + library->status2str(status);
      return nullptr;
    }
    program->primitives.emplace_back(*library, made);
    program->scratch.push_back(argumentDesc(*library, stage.description, DNNL_ARG_SCRATCHPAD));
  }
  program->library = std::move(library);
  return program;
}

bool Kernel::addStage(const ProblemReader &problem, size_t index, const dvt_prepare_args &args,
                      std::string &reason) {
  Stage stage{program->primitives[index].get(), {}};
  for (const Binding &binding : program->resolved.bindings[index]) {
    Argument argument{binding.id, Source::Workspace, 0, nullptr, binding.desc.get()};
    if (binding.derived.isPresent()) {
      if (!derive(problem, binding, args, argument, reason))
        return false;
    } else if (binding.temporary < 0) {
      if (binding.assembled || problem.isConstant(binding.view.value)) {
        argument.source = Source::Constant;
        argument.constant = constantBytes(problem, binding, args, reason);
        if (!argument.constant)
          return false;
      } else {
        const int32_t input = problem.inputPosition(binding.view.value),
                      output = problem.outputPosition(binding.view.value);
        const auto position = static_cast<uint32_t>(input >= 0 ? input : output);
        argument.source = binding.converts ? Source::Workspace
                          : input >= 0     ? Source::Input
                                           : Source::Output;
        argument.place = binding.converts ? binding.place : position;
        if (binding.converts)
          conversions.push_back({input >= 0, position, binding.place,
                                 static_cast<int64_t>(binding.desc.bytes() / sizeof(float)),
                                 problem.type(binding.view.value)});
      }
    } else {
      argument.place = program->resolved.temporaryPlace(static_cast<size_t>(binding.temporary));
    }
    stage.arguments.push_back(argument);
  }
  if (const Desc &scratch = program->scratch[index])
    stage.arguments.push_back({DNNL_ARG_SCRATCHPAD, Source::Workspace,
                               program->resolved.temporaryPlace(SIZE_MAX), nullptr, scratch.get()});
  stages.push_back(std::move(stage));
  return true;
}

std::unique_ptr<Kernel> Kernel::make(std::shared_ptr<const Program> made,
                                     const ProblemReader &problem, const dvt_prepare_args &args,
                                     std::string &reason) {
  std::unique_ptr<Kernel> kernel(new Kernel(std::move(made)));
  const Program &program = *kernel->program;
  const dvt_problem &raw = problem.raw();
  for (uint32_t i = 0; i < raw.input_count; ++i) {
    kernel->inputExtents.push_back(problem.extents(raw.inputs[i]));
    kernel->inputConstant.push_back(problem.isConstant(raw.inputs[i]));
  }
  for (const auto &[value, expected] : program.assumed) {
    const int32_t input = problem.inputPosition(value);
    const void *bytes = args.constants && input >= 0 ? args.constants[input] : nullptr;
    for (size_t i = 0; i < expected.size(); ++i) {
      const double found =
          bytes ? providers::elementAsDouble(bytes, problem.type(value), i) : std::nan("");
      if (!(std::abs(found - expected[i]) <= 1e-6 * std::abs(expected[i]))) {
        reason = "a constant operand is " + std::to_string(found) + " where " +
                 std::to_string(expected[i]) + " is supported";
        return nullptr;
      }
    }
  }
  for (uint32_t i = 0; i < raw.output_count; ++i)
    kernel->outputExtents.push_back(problem.extents(raw.outputs[i]));
  {
    NoPrimitiveCache noCache(kernel->library); // what packs is of no use afterwards
    TeamSize team(args.parallel ? args.threads : 1);
    for (size_t i = 0; i < program.primitives.size(); ++i)
      if (!kernel->addStage(problem, i, args, reason))
        return nullptr;
  }
  if (program.accumulated.isPresent()) {
    kernel->accumulatedInput = problem.inputPosition(program.accumulated.value);
    for (const Binding &binding : program.resolved.bindings.back())
      if (binding.id == DNNL_ARG_DST)
        kernel->accumulatedBytes = binding.desc.bytes();
  }
  std::unique_ptr<Context> context = kernel->makeContext();
  if (!context) {
    reason = "oneDNN cannot create memory objects";
    return nullptr;
  }
  kernel->putContext(std::move(context));
  return kernel;
}

Kernel::~Kernel() {
  for (std::atomic<Context *> &slot : shelf)
    delete slot.load(std::memory_order_acquire);
}

std::unique_ptr<Kernel::Context> Kernel::makeContext() const {
  std::unique_ptr<Context> context(new Context);
  dnnl_stream_t stream = nullptr;
  if (library.stream_create(&stream, library.engine, dnnl_stream_default_flags) != dnnl_success)
    return nullptr;
  context->stream = Stream(library, stream);
  for (const Stage &stage : stages) {
    context->arguments.emplace_back();
    context->derived.emplace_back();
    for (const Argument &argument : stage.arguments) {
      dnnl_memory_t memory = nullptr;
      void *data = argument.source == Source::Constant ? argument.constant : DNNL_MEMORY_NONE;
      std::vector<char> &derived = context->derived.back().emplace_back();
      if (argument.source == Source::Derived) {
        derived.resize(static_cast<size_t>(4 * argument.derived.count));
        data = derived.data();
      }
      if (library.memory_create(&memory, argument.desc, library.engine, data) != dnnl_success)
        return nullptr;
      context->memories.emplace_back(library, memory);
      context->arguments.back().push_back({argument.id, memory});
    }
  }
  return context;
}

std::unique_ptr<Kernel::Context> Kernel::takeContext() {
  for (std::atomic<Context *> &slot : shelf)
    if (slot.load(std::memory_order_relaxed))
      if (Context *taken = slot.exchange(nullptr, std::memory_order_acq_rel))
        return std::unique_ptr<Context>(taken);
  return makeContext();
}

void Kernel::putContext(std::unique_ptr<Context> context) {
  for (std::atomic<Context *> &slot : shelf) {
    Context *empty = nullptr;
    if (slot.compare_exchange_strong(empty, context.get(), std::memory_order_acq_rel)) {
      context.release();
      return;
    }
  }
}

namespace {

bool fits(const dvt_tensor &tensor, const Dims &extents) {
  if (!tensor.data || tensor.rank != extents.size())
    return false;
  for (size_t i = 0; i < extents.size(); ++i)
    if (tensor.extents && tensor.extents[i] != extents[i])
      return false;
  return true;
}

} // namespace

dvt_code Kernel::run(const dvt_run_args &args, std::string &reason) {
  if (args.input_count != inputExtents.size() || args.output_count != outputExtents.size()) {
    reason = "run: wrong number of operands or results";
    return DVT_BAD_INPUT;
  }
  for (uint32_t i = 0; i < args.input_count; ++i)
    if (!inputConstant[i] && !fits(args.inputs[i], inputExtents[i])) {
      reason =
          "run: operand " + std::to_string(i) + " has no memory or other extents than the problem";
      return DVT_BAD_INPUT;
    }
  for (uint32_t i = 0; i < args.output_count; ++i)
    if (!fits(args.outputs[i], outputExtents[i])) {
      reason =
          "run: result " + std::to_string(i) + " has no memory or other extents than the problem";
      return DVT_BAD_INPUT;
    }
  if (args.workspace_bytes < workspaceBytes() || (workspaceBytes() > 0 && !args.workspace)) {
    reason = "run: the workspace is smaller than workspace_bytes() says";
    return DVT_BAD_INPUT;
  }
  TeamSize team(program->resolved.threads);
  std::unique_ptr<Context> context = takeContext();
  if (!context) {
    reason = "oneDNN cannot create memory objects";
    return DVT_OUT_OF_MEMORY;
  }
  if (accumulatedInput >= 0 && args.outputs[0].data != args.inputs[accumulatedInput].data)
    std::memcpy(args.outputs[0].data, args.inputs[accumulatedInput].data, accumulatedBytes);
  auto convert = [&](bool inputs) {
    for (const Conversion &c : conversions) {
      auto *wide = reinterpret_cast<float *>(static_cast<char *>(args.workspace) + c.place);
      if (c.isInput && inputs)
        widenElements(c.type, args.inputs[c.index].data, wide, c.elements,
                      program->resolved.threads);
      else if (!c.isInput && !inputs)
        narrowElements(c.type, wide, args.outputs[c.index].data, c.elements,
                       program->resolved.threads);
    }
  };
  convert(true);
  dnnl_status_t status = dnnl_success;
  for (size_t s = 0; s < stages.size() && status == dnnl_success; ++s) {
    const std::vector<Argument> &arguments = stages[s].arguments;
    std::vector<dnnl_exec_arg_t> &bound = context->arguments[s];
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Argument &argument = arguments[i];
      if (argument.source == Source::Constant)
        continue;
      if (argument.source == Source::Derived) {
        const void *from = args.inputs[argument.place].data;
        for (size_t k = 0; k < static_cast<size_t>(argument.derived.count); ++k)
          storeDerived(argument.derived, context->derived[s][i].data(), k,
                       argument.derived.shift +
                           argument.derived.terms[0].sign *
                               providers::elementAsDouble(from, argument.from, k));
        continue;
      }
      void *data = argument.source == Source::Input ? args.inputs[argument.place].data
                   : argument.source == Source::Output
                       ? args.outputs[argument.place].data
                       : static_cast<char *>(args.workspace) + argument.place;
      library.memory_set_data_handle(bound[i].memory, data);
    }
    status = library.primitive_execute(stages[s].primitive, context->stream.get(),
                                       static_cast<int>(bound.size()), bound.data());
  }
  if (status == dnnl_success)
    status = library.stream_wait(context->stream.get());
  putContext(std::move(context));
  if (status == dnnl_success) {
    convert(false);
    return DVT_OK;
  }
  reason = std::string("oneDNN failed to run: ") + library.status2str(status);
  return DVT_FAILED;
}

} // namespace dovetail::onednn
