// SPDX-License-Identifier: Apache-2.0
//
// Runs a step whose operands depend on extents that another step found out, or which finds out some
// itself. Slower than the bound ones: it evaluates extents and fills in arguments at each run.
#include "runtime/UnboundStep.h"

#include <cstring>

#include "artifact/BlockMemory.h"

namespace dovetail {

Status UnboundStep::readOperand(uint32_t number, const std::string &layout, dvt_tensor &tensor) {
  if (Status status = session.resolve(number); !status)
    return status;
  uint32_t root = number;
  while (value(root).storage == Storage::Alias)
    root = value(root).index;
  const std::vector<int64_t> &shape = extents(number);
  tensor = {nullptr,        shape.data(), nullptr, uint32_t(shape.size()), value(number).type,
            DVT_MEMORY_HOST};
  if (value(root).storage == Storage::Constant) {
    if (checkedBytes(value(number).type, shape, Layout()) !=
        model.plan().constants[value(root).index].bytes)
      return badInput("step '{}': '{}' is a view of another size", step.label, value(number).name);
    auto data = model.constantData(value(root).index, shape, layout);
    if (!data)
      return data.takeError();
    tensor.data = const_cast<void *>(*data);
    return Status::success();
  }
  if (!frame.isBound(root) && !session.found[root].known)
    return internalError("step '{}' reads a value that was not written", step.label);
  void *data = session.memoryOf(root);
  auto from = Layout::parse(value(number).layout), to = Layout::parse(layout);
  if (!from || !to)
    return internalError("step '{}': layouts {} and {}", step.label, value(number).layout, layout);
  auto have = checkedBytes(value(number).type, shape, *from);
  auto rootLayout = Layout::parse(value(root).layout);
  const std::vector<int64_t> &strides = value(number).strides;
  if (!strides.empty()) {
    auto whole =
        rootLayout ? checkedBytes(value(root).type, extents(root), *rootLayout) : std::nullopt;
    if (!whole || !to->isRowMajor() ||
        !staysInside(value(number).type, shape, strides, value(number).offset, *whole))
      return badInput("step '{}': '{}' shows more than there is", step.label, value(number).name);
    tensor.data = static_cast<uint8_t *>(data) + value(number).offset;
    tensor.strides = strides.data();
    return Status::success();
  }
  if (!have || !rootLayout || have != checkedBytes(value(root).type, extents(root), *rootLayout))
    return badInput("step '{}': '{}' is a view of another size", step.label, value(number).name);
  tensor.data = data;
  if (*from == *to)
    return Status::success();
  auto bytes = checkedBytes(value(number).type, shape, *to);
  HostBuffer &converted = temporary();
  if (!bytes || !converted.reserve(*bytes))
    return unavailable("step '{}': no memory for a conversion", step.label);
  reorder(value(number).type, shape, *from, data, *to, converted.data());
  tensor.data = converted.data();
  return Status::success();
}

Status UnboundStep::writeOperand(uint32_t number, const std::string &layout, dvt_tensor &tensor) {
  tensor = {
      nullptr,        nullptr, nullptr, uint32_t(value(number).extents.size()), value(number).type,
      DVT_MEMORY_HOST};
  if (value(number).storage == Storage::Dynamic)
    return Status::success();
  if (Status status = session.resolve(number); !status)
    return status;
  const std::vector<int64_t> &shape = extents(number);
  tensor.extents = shape.data();
  auto own = Layout::parse(value(number).layout), wanted = Layout::parse(layout);
  auto bytes = own ? checkedBytes(value(number).type, shape, *own) : std::nullopt;
  auto needed = wanted ? checkedBytes(value(number).type, shape, *wanted) : std::nullopt;
  if (!bytes || !needed)
    return badInput("step '{}': '{}' is too large", step.label, value(number).name);
  if (!frame.isBound(number) && !session.found[number].memory.reserve(*bytes))
    return unavailable("step '{}': no memory for {} bytes", step.label, *bytes);
  tensor.data = session.memoryOf(number);
  if (*own == *wanted)
    return Status::success();
  HostBuffer &converted = temporary();
  if (!converted.reserve(*needed))
    return unavailable("step '{}': no memory for a conversion", step.label);
  tensor.data = converted.data();
  return Status::success();
}

/// What a kernel calls to state the extents of a data-dependent output.
void *UnboundStep::allocate(void *context, uint32_t output, uint32_t rank, const int64_t *extents) {
  auto &self = *static_cast<UnboundStep *>(context);
  if (output >= self.step.outputs.size() || (rank > 0 && !extents))
    return nullptr;
  uint32_t number = self.step.outputs[output];
  const PlanValue &value = self.value(number);
  if (value.storage != Storage::Dynamic || rank != value.extents.size())
    return nullptr;
  Session::Found &found = self.session.found[number];
  found.extents.assign(extents, extents + rank);
  auto layout = Layout::parse(value.layout);
  auto bytes = layout ? checkedBytes(value.type, found.extents, *layout) : std::nullopt;
  if (!bytes || !found.memory.reserve(*bytes))
    return nullptr;
  found.known = true;
  self.stated[output] = true;
  return found.memory.data();
}

/// Symbols whose values the extents of a data-dependent output give.
Status UnboundStep::learn(uint32_t number) {
  const std::vector<int64_t> &shape = session.found[number].extents;
  for (const SymbolSource &source : session.block.symbolSources)
    if (source.value == number)
      session.symbols.try_emplace(source.symbol, shape[source.axis]);
  for (size_t d = 0; d < shape.size(); ++d)
    if (auto expected = value(number).extents[d].evaluate(session.symbols);
        expected && *expected != shape[d])
      return internalError("step '{}': '{}' came out with extent {} of axis {}, {} was expected",
                           step.label, value(number).name, shape[d], d, *expected);
  return check(session.block.requirements, session.symbols);
}

Status UnboundStep::takeResult(uint32_t position, const std::string &layout, dvt_tensor &tensor) {
  uint32_t number = step.outputs[position];
  if (value(number).storage == Storage::Dynamic) {
    if (!stated[position])
      return internalError("step '{}': its kernel never stated the extents of '{}'", step.label,
                           value(number).name);
    if (layout != value(number).layout)
      return internalError("step '{}': data-dependent output in layout {}", step.label, layout);
    return learn(number);
  }
  auto own = Layout::parse(value(number).layout), wanted = Layout::parse(layout);
  if (own && wanted && *own != *wanted) {
    reorder(value(number).type, extents(number), *wanted, tensor.data, *own,
            session.memoryOf(number));
  }
  return Status::success();
}

/// What the kernel itself finds out is left.
Status UnboundStep::checkAgainstProblem() const {
  const Problem &problem = model.problem(step.problem);
  auto check = [&](uint32_t number, uint32_t operand) {
    return checkExtents(step, value(number), extents(number), problem.values[operand],
                        session.symbols);
  };
  for (size_t i = 0; i < step.inputs.size(); ++i)
    if (Status status = check(step.inputs[i], problem.inputs[i]); !status)
      return status;
  for (size_t i = 0; i < step.outputs.size(); ++i)
    if (value(step.outputs[i]).storage != Storage::Dynamic)
      if (Status status = check(step.outputs[i], problem.outputs[i]); !status)
        return status;
  return Status::success();
}

Status UnboundStep::runKernel() {
  auto kernel = model.kernelFor(session.number, action.step, session.symbols);
  if (!kernel)
    return kernel.takeError();
  const Candidate &candidate = (*kernel)->candidate();
  std::vector<dvt_tensor> inputs(step.inputs.size()), outputs(step.outputs.size());
  stated.assign(outputs.size(), false);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (Status status = readOperand(step.inputs[i], candidate.inputLayouts[i], inputs[i]); !status)
      return status;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (Status status = writeOperand(step.outputs[i], candidate.outputLayouts[i], outputs[i]);
        !status)
      return status;
  if (Status status = checkAgainstProblem(); !status)
    return status;
  HostBuffer &workspace = temporary();
  if (!workspace.reserve((*kernel)->workspaceBytes()))
    return unavailable("step '{}': no memory for its workspace", step.label);
  dvt_run_args args{};
  args.struct_size = sizeof(args);
  args.input_count = inputs.size();
  args.output_count = outputs.size();
  args.inputs = inputs.data();
  args.outputs = outputs.data();
  args.workspace = workspace.data();
  args.workspace_bytes = (*kernel)->workspaceBytes();
  args.parallel = model.parallel();
  args.output_context = this;
  args.allocate_output = allocate;
  dvt_error error;
  error.message[0] = 0;
  dvt_code code = (*kernel)->runFunction()((*kernel)->handle(), &args, &error);
  if (code != DVT_OK)
    return session.failure(action, code, error);
  for (uint32_t i = 0; i < outputs.size(); ++i)
    if (Status status = takeResult(i, candidate.outputLayouts[i], outputs[i]); !status)
      return status;
  return Status::success();
}

Status UnboundStep::run() {
  dvt_tensor from, to;
  switch (step.kind) {
  case StepKind::Kernel:
  case StepKind::LateBound:
    return runKernel();
  case StepKind::Copy: {
    const std::string &layout = value(step.inputs[0]).layout;
    if (Status status = readOperand(step.inputs[0], layout, from); !status)
      return status;
    if (Status status = writeOperand(step.outputs[0], layout, to); !status)
      return status;
    auto parsed = Layout::parse(layout);
    auto bytes = checkedBytes(from.type, extents(step.inputs[0]), *parsed);
    if (extents(step.inputs[0]) != extents(step.outputs[0]) || !bytes)
      return internalError("step '{}' copies between different extents", step.label);
    if (*bytes)
      std::memmove(to.data, from.data, *bytes);
    return Status::success();
  }
  case StepKind::Transfer:
    return internalError("step '{}': a transfer of unknown size", step.label);
  case StepKind::Append: {
    if (Status status = session.lendState(step.outputs[0]); !status)
      return status;
    if (Status status = writeOperand(step.outputs[0], "", to); !status)
      return status;
    auto whole = checkedBytes(to.type, extents(step.outputs[0]), Layout());
    uint64_t at = 0;
    for (uint32_t part : step.inputs) {
      if (Status status = readOperand(part, "", from); !status)
        return status;
      auto bytes = checkedBytes(from.type, extents(part), Layout());
      if (!bytes || !whole || at + *bytes > *whole)
        return badInput("step '{}': its parts are longer than what they give", step.label);
      uint8_t *target = static_cast<uint8_t *>(to.data) + at;
      if (*bytes > 0 && target != from.data)
        std::memmove(target, from.data, *bytes);
      at += *bytes;
    }
    return at == whole.value_or(0)
               ? Status::success()
               : badInput("step '{}': its parts are shorter than what they give", step.label);
  }
  case StepKind::ShapeData: {
    if (Status status = writeOperand(step.outputs[0], "", to); !status)
      return status;
    for (size_t i = 0; i < step.data.size(); ++i) {
      auto number = step.data[i].evaluate(session.symbols);
      if (!number)
        return badInput("step '{}': extent {} has no value", step.label, step.data[i].text());
      if (to.type == DVT_I64)
        static_cast<int64_t *>(to.data)[i] = *number;
      else
        static_cast<int32_t *>(to.data)[i] = int32_t(*number);
    }
    return Status::success();
  }
  case StepKind::If:
    return runIf();
  case StepKind::Loop:
    return runLoop();
  case StepKind::Scan:
    return runScan();
  case StepKind::Refuse:
    return badInput("{}", step.label);
  }
  return internalError("step '{}' cannot be run", step.label);
}

Status Session::runUnbound(const Action &action) { return UnboundStep(*this, action).run(); }

} // namespace dovetail
