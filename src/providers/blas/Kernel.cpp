// SPDX-License-Identifier: Apache-2.0
//
// Locates operands at prepare, checks what a run is given, and writes the addend.
#include "providers/blas/Kernel.h"

#include <algorithm>
#include <cstring>

#include "providers/blas/Tiles.h"

namespace dovetail::blas {
namespace {

/// Offset of every batch element, in row-major order of the batch of `result`.
std::vector<int64_t> batchOffsets(const View &view, const View &result) {
  std::vector<int64_t> offsets{0};
  for (size_t i = 0; i + 2 < result.dims.size(); ++i) {
    std::vector<int64_t> next;
    for (int64_t before : offsets)
      for (int64_t k = 0; k < result.dims[i]; ++k)
        next.push_back(before + (view.dims[i] == 1 ? 0 : k * view.strides[i]));
    offsets = std::move(next);
  }
  return offsets;
}

} // namespace

bool Kernel::bind(const ProblemReader &problem, const View &view, const dvt_prepare_args &args,
                  Source &source, std::string &reason) {
  source.offsets = batchOffsets(view, operands.product.c);
  source.input = problem.inputPosition(view.value);
  if (!problem.isConstant(view.value))
    return true;
  if (source.input >= 0) {
    source.constant =
        args.constants ? static_cast<const float *>(args.constants[source.input]) : nullptr;
    source.input = -1;
  } else {
    const dvt_value &literal = problem.value(view.value);
    const bool uniform = (literal.flags & DVT_VALUE_UNIFORM) != 0;
    const uint64_t count = static_cast<uint64_t>(providers::product(problem.extents(view.value)));
    if (literal.literal && literal.literal_bytes >= (uniform ? 1 : count) * sizeof(float)) {
      float *copy = static_cast<float *>(constantMemory.take(&args, count * sizeof(float)));
      if (copy)
        for (uint64_t i = 0; i < count; ++i)
          std::memcpy(copy + i, static_cast<const float *>(literal.literal) + (uniform ? 0 : i),
                      sizeof(float));
      source.constant = copy;
    }
  }
  if (!source.constant)
    reason = "a constant operand came without bytes";
  return source.constant != nullptr;
}

std::unique_ptr<Kernel> Kernel::make(std::shared_ptr<const Libraries> libraries,
                                     const ProblemReader &problem, const Product &product,
                                     const Method &method, const dvt_prepare_args &args,
                                     uint32_t team, std::string &reason) {
  std::unique_ptr<Kernel> kernel(new Kernel(std::move(libraries), method.workspaceBytes));
  Operands &operands = kernel->operands;
  operands.product = product;
  operands.team = team ? team : 1;
  const dvt_problem &raw = problem.raw();
  for (uint32_t i = 0; i < raw.input_count; ++i) {
    kernel->inputExtents.push_back(problem.extents(raw.inputs[i]));
    kernel->inputConstant.push_back(problem.isConstant(raw.inputs[i]));
  }
  kernel->outputExtents = problem.extents(raw.outputs[0]);
  if (!kernel->bind(problem, product.a, args, operands.a, reason) ||
      !kernel->bind(problem, product.b, args, operands.b, reason) ||
      (product.addend && !kernel->bind(problem, *product.addend, args, operands.addend, reason)))
    return nullptr;
  operands.c.offsets = batchOffsets(product.c, product.c);
  operands.a.matrix = *asMatrix(product.a);
  operands.b.matrix = *asMatrix(product.b);
  operands.c.matrix = *asMatrix(product.c);
  kernel->multiplication = multiplicationBy(*kernel->libraries, method, operands,
                                            {problem, args, kernel->constantMemory}, reason);
  return kernel->multiplication ? std::move(kernel) : nullptr;
}

/// The addend, broadcast, into the result.
void Kernel::fillResult(const float *from, float *result, const dvt_parallel *parallel) const {
  const View &view = *operands.product.addend;
  const size_t rank = view.dims.size();
  const int64_t rows = operands.product.rows(), columns = operands.product.columns(),
                all = operands.product.batch() * rows;
  const int64_t rowStride = view.dims[rank - 2] == 1 ? 0 : view.strides[rank - 2],
                columnStride = view.dims[rank - 1] == 1 ? 0 : view.strides[rank - 1];
  // Few elements are written faster by one thread than a team wakes up.
  const int64_t parts = all * columns < 32768 ? 1 : std::min<int64_t>(operands.team, all);
  spread(parallel, static_cast<size_t>(parts), [&](size_t part) {
    const int64_t number = static_cast<int64_t>(part);
    for (int64_t i = all * number / parts; i < all * (number + 1) / parts; ++i) {
      const size_t element = static_cast<size_t>(i / rows);
      const float *source = from + operands.addend.offsets[element] + i % rows * rowStride;
      float *row = result + operands.c.offsets[element] + i % rows * operands.c.matrix.leading;
      if (columnStride == 1)
        std::memcpy(row, source, static_cast<size_t>(columns) * sizeof(float));
      else
        for (int64_t k = 0; k < columns; ++k)
          row[k] = source[k * columnStride];
    }
  });
}

dvt_code Kernel::run(const dvt_run_args &args, std::string &reason) const {
  auto fits = [](const dvt_tensor &tensor, const Dims &extents) {
    if (!tensor.data || tensor.rank != extents.size())
      return false;
    for (size_t i = 0; i < extents.size(); ++i)
      if (tensor.extents && tensor.extents[i] != extents[i])
        return false;
    return true;
  };
  if (args.input_count != inputExtents.size() || args.output_count != 1) {
    reason = "run: wrong number of operands or results";
    return DVT_BAD_INPUT;
  }
  for (uint32_t i = 0; i < args.input_count; ++i)
    if (!inputConstant[i] && !fits(args.inputs[i], inputExtents[i])) {
      reason =
          "run: operand " + std::to_string(i) + " has no memory or other extents than the problem";
      return DVT_BAD_INPUT;
    }
  if (!fits(args.outputs[0], outputExtents) || args.workspace_bytes < workspace ||
      (workspace > 0 && !args.workspace)) {
    reason = "run: the result or the workspace has no memory, or the result has other extents than "
             "the problem";
    return DVT_BAD_INPUT;
  }
  auto memory = [&](const Source &source) {
    return source.constant ? source.constant
                           : static_cast<const float *>(args.inputs[source.input].data);
  };
  float *result = static_cast<float *>(args.outputs[0].data);
  if (operands.product.addend && memory(operands.addend) != result)
    fillResult(memory(operands.addend), result, args.parallel);
  multiplication->run(memory(operands.a), memory(operands.b), result, args.workspace,
                      args.parallel);
  return DVT_OK;
}

} // namespace dovetail::blas
