// SPDX-License-Identifier: Apache-2.0
//
// A result is computed straight in the caller's memory where that is dense and overlaps no operand,
// in a temporary otherwise; so in-place operands need no thought in any kernel. A temporary is
// freed after its last use.
#include "Interpreter.h"

#include "Invocation.h"
#include "Operands.h"

namespace dovetail::reference {

namespace {

class Run {
public:
  Run(const Program &program, const dvt_run_args &args) : program(program), args(args) {}
  Status bind(const std::vector<const void *> &constants);
  Status compute();
  Status deliver();

private:
  Status allocate(uint32_t value, const Extents &extents, Tensor *&tensor);
  /// The output bound to memory in which `value` may be computed directly, or -1.
  int64_t directOutput(uint32_t value, const Extents &extents) const;
  bool overlapsInput(const void *data, size_t bytes) const;

  const Program &program;
  const dvt_run_args &args;
  std::vector<Tensor>
      tensors; ///< one for each value; those without data are not there (yet, or any more)
  std::vector<bool> isThere;
};

bool Run::overlapsInput(const void *data, size_t bytes) const {
  auto begin = reinterpret_cast<uintptr_t>(data);
  for (uint32_t index : program.inputs) {
    // A strided or copied operand owns its memory by now; the caller's may be overwritten.
    const Tensor &tensor = tensors[index];
    auto other = reinterpret_cast<uintptr_t>(tensor.data);
    if (!tensor.owned && begin < other + tensor.bytes() && other < begin + bytes)
      return true;
  }
  return false;
}

int64_t Run::directOutput(uint32_t value, const Extents &extents) const {
  if (!program.outputLayout.empty() || isFourBit(program.values[value].type))
    return -1;
  size_t bytes = elementBytes(program.values[value].type);
  for (uint32_t i = 0; i < program.outputs.size(); ++i) {
    const dvt_tensor &operand = args.outputs[i];
    if (program.outputs[i] == value && operand.data && !operand.strides &&
        reinterpret_cast<uintptr_t>(operand.data) % bytes == 0 &&
        !overlapsInput(operand.data, static_cast<size_t>(*elementCount(extents)) * bytes))
      return i;
  }
  return -1;
}

Status Run::bind(const std::vector<const void *> &constants) {
  tensors.resize(program.values.size());
  isThere.resize(program.values.size());
  for (uint32_t i = 0; i < program.values.size(); ++i)
    if (program.values[i].isLiteral) {
      tensors[i] = bindLiteral(program.values[i]);
      isThere[i] = true;
    }
  for (uint32_t i = 0; i < program.inputs.size(); ++i) {
    TRY(bindInput(program, i, args.inputs[i], constants[i], tensors[program.inputs[i]]));
    isThere[program.inputs[i]] = true;
  }
  return {};
}

Status Run::allocate(uint32_t value, const Extents &extents, Tensor *&tensor) {
  for (uint32_t i = 0; i < program.outputs.size(); ++i)
    if (program.outputs[i] == value)
      TRY(checkOutputExtents(program, i, args.outputs[i], extents));
  tensor = &tensors[value];
  isThere[value] = true;
  if (int64_t output = directOutput(value, extents); output >= 0) {
    tensor->type = program.values[value].type;
    tensor->extents = extents;
    tensor->data = static_cast<uint8_t *>(args.outputs[output].data);
    return {};
  }
  *tensor = Tensor::allocate(program.values[value].type, extents);
  return {};
}

Status Run::compute() {
  std::vector<size_t> lastUse(program.values.size(), 0);
  for (size_t i = 0; i < program.operations.size(); ++i)
    for (uint32_t input : program.operations[i].inputs)
      if (input != DVT_NO_VALUE)
        lastUse[input] = i;
  for (uint32_t output : program.outputs)
    lastUse[output] = SIZE_MAX;
  for (size_t i = 0; i < program.operations.size(); ++i) {
    const Operation &operation = program.operations[i];
    std::vector<const Tensor *> inputs;
    for (uint32_t input : operation.inputs) {
      if (input != DVT_NO_VALUE && !isThere[input])
        return {DVT_FAILED,
                join("reference: ", operation.entry->name, " uses a value that was not computed")};
      inputs.push_back(input == DVT_NO_VALUE ? nullptr : &tensors[input]);
    }
    Invocation::Allocate allocateResult = [&](uint32_t index, const Extents &extents,
                                              Tensor *&tensor) {
      return allocate(operation.outputs[index], extents, tensor);
    };
    Invocation invocation(program, operation, std::move(inputs), allocateResult, args.parallel);
    TRY(operation.entry->run(invocation));
    for (uint32_t input : operation.inputs)
      if (input != DVT_NO_VALUE && lastUse[input] == i)
        tensors[input].owned.reset();
  }
  return {};
}

Status Run::deliver() {
  for (uint32_t i = 0; i < program.outputs.size(); ++i) {
    if (!isThere[program.outputs[i]])
      return {DVT_FAILED, join("reference: output ", i, " was not computed")};
    TRY(deliverOutput(program, i, args, tensors[program.outputs[i]]));
  }
  return {};
}

} // namespace

Status interpret(const Program &program, const std::vector<const void *> &constants,
                 const dvt_run_args &args) {
  if (args.input_count != program.inputs.size() || args.output_count != program.outputs.size())
    return {DVT_BAD_INPUT, join("reference: ", args.input_count, " inputs and ", args.output_count,
                                " outputs where the problem has ", program.inputs.size(), " and ",
                                program.outputs.size())};
  Run run(program, args);
  TRY(run.bind(constants));
  TRY(run.compute());
  return run.deliver();
}

} // namespace dovetail::reference
