// SPDX-License-Identifier: Apache-2.0
#include "providers/native/TensorShapes.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "providers/native/CompilerDoor.h"

namespace dovetail::native {

TensorShapes::TensorShapes(const codegen::ProblemReader &problem)
    : inputCount(problem.problem().input_count) {
  const dvt_problem &source = problem.problem();
  auto add = [&](uint32_t value) {
    Shape shape{problem.value(value).type, {}};
    for (uint32_t i = 0; i < problem.value(value).rank; ++i)
      shape.extents.push_back(problem.value(value).extents[i].value);
    borders.push_back({shape.type, uint32_t(shape.extents.size()), dimensionCount});
    wanted.insert(wanted.end(), shape.extents.begin(), shape.extents.end());
    dimensionCount += uint32_t(shape.extents.size());
    allStatic &= codegen::ProblemReader::isStatic(problem.value(value));
    shapes.push_back(std::move(shape));
  };
  std::for_each(source.inputs, source.inputs + source.input_count, add);
  std::for_each(source.outputs, source.outputs + source.output_count, add);
}

/// `hasMemory`: somebody else gives it some.
bool TensorShapes::fits(const dvt_tensor &tensor, const Border &border, bool hasMemory,
                        bool onDevice) const {
  if (tensor.type != border.type || tensor.rank != border.rank || tensor.strides ||
      (tensor.memory == DVT_MEMORY_DEVICE) != onDevice)
    return false;
  bool empty = false;
  for (uint32_t i = 0; i < border.rank; ++i) {
    int64_t extent = tensor.extents[i], expected = wanted[border.first + i];
    if (expected < 0 ? extent < 0 : extent != expected)
      return false;
    empty |= extent == 0;
  }
  return tensor.data || hasMemory || empty;
}

dvt_code TensorShapes::refuse(const dvt_run_args &args, uint32_t tensor, dvt_error *error) const {
  std::string name = tensor < inputCount ? fmt::format("input {}", tensor)
                                         : fmt::format("output {}", tensor - inputCount);
  return report(
      error, DVT_BAD_INPUT,
      fits(of(args, tensor), borders[tensor], true, of(args, tensor).memory == DVT_MEMORY_DEVICE)
          ? fmt::format("{} has no memory, or lies in other memory than the kernel "
                        "works on",
                        name)
          : fmt::format("{} does not have the type and extents the kernel was made for, "
                        "or is not dense",
                        name));
}

dvt_code TensorShapes::check(const dvt_run_args &args, bool onDevice,
                             const std::vector<const void *> &given, dvt_error *error) const {
  uint32_t outputs = count() - inputCount;
  if (args.input_count != inputCount || args.output_count != outputs)
    return report(error, DVT_BAD_INPUT,
                  fmt::format("a kernel of {} inputs and {} outputs is run with {} and {}",
                              inputCount, outputs, args.input_count, args.output_count));
  for (uint32_t i = 0; i < inputCount; ++i)
    if (!fits(args.inputs[i], borders[i], i < given.size() && given[i], onDevice)) [[unlikely]]
      return refuse(args, i, error);
  for (uint32_t i = 0; i < outputs; ++i)
    if (!fits(args.outputs[i], borders[inputCount + i], false, onDevice)) [[unlikely]]
      return refuse(args, inputCount + i, error);
  return DVT_OK;
}

} // namespace dovetail::native
