// SPDX-License-Identifier: Apache-2.0
#include "providers/native/TensorShapes.h"

#include <algorithm>

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
    dimensionCount += uint32_t(shape.extents.size());
    allStatic &= codegen::ProblemReader::isStatic(problem.value(value));
    shapes.push_back(std::move(shape));
  };
  std::for_each(source.inputs, source.inputs + source.input_count, add);
  std::for_each(source.outputs, source.outputs + source.output_count, add);
}

dvt_code TensorShapes::check(const dvt_run_args &args, bool onDevice,
                             const std::vector<const void *> &given, dvt_error *error) const {
  uint32_t outputs = count() - inputCount;
  if (args.input_count != inputCount || args.output_count != outputs)
    return report(error, DVT_BAD_INPUT,
                  fmt::format("a kernel of {} inputs and {} outputs is run with {} and {}",
                              inputCount, outputs, args.input_count, args.output_count));
  for (uint32_t i = 0; i < count(); ++i) {
    const dvt_tensor &tensor = of(args, i);
    const Shape &wanted = shapes[i];
    auto name = [&] {
      return fmt::format("{} {}", i < inputCount ? "input" : "output",
                         i < inputCount ? i : i - inputCount);
    };
    bool fits = tensor.type == wanted.type && tensor.rank == wanted.extents.size() &&
                !tensor.strides && (tensor.memory == DVT_MEMORY_DEVICE) == onDevice;
    bool empty = false;
    for (uint32_t j = 0; fits && j < tensor.rank; ++j) {
      fits =
          wanted.extents[j] < 0 ? tensor.extents[j] >= 0 : tensor.extents[j] == wanted.extents[j];
      empty |= tensor.extents[j] == 0;
    }
    if (!fits)
      return report(error, DVT_BAD_INPUT,
                    fmt::format("{} does not have the type and extents the kernel was made for, "
                                "is not dense, or lies in other memory",
                                name()));
    if (!tensor.data && !empty && !(i < given.size() && given[i]))
      return report(error, DVT_BAD_INPUT, fmt::format("{} has no memory", name()));
  }
  return DVT_OK;
}

} // namespace dovetail::native
