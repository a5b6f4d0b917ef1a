// SPDX-License-Identifier: Apache-2.0
//
//   add:in_place          dense or strided operands of equal extents; the result may lie on either
//   relu:blocked          rank 4 in blocks of 8 channels: wants conversions before and after it
//   relu:plain            any extents at run time
//   non_zero:allocate     extents of the result known only after running
//   identity:strided      a strided view made dense, or the reverse
//   mat_mul:packed        the constant right side packed at load, workspace known after prepare,
//   kernel
//                         bytes, parallel-for
#include "TestKernels.h"

namespace dovetail::test_provider {

using providers::ProblemReader;

namespace {

std::string needFloats(const ProblemReader &problem) {
  for (uint32_t i = 0; i < problem.raw().input_count; ++i)
    if (problem.type(problem.raw().inputs[i]) != DVT_F32)
      return "only f32 is known";
  return {};
}

std::string needDense(const ProblemReader &problem) {
  for (uint32_t i = 0; i < problem.raw().value_count; ++i)
    if (problem.value(i).strides)
      return "only dense operands are known";
  return needFloats(problem);
}

std::string sameExtents(const ProblemReader &problem, uint32_t a, uint32_t b) {
  if (problem.rank(a) != problem.rank(b))
    return "operands of different extents";
  for (uint32_t d = 0; d < problem.rank(a); ++d) {
    const dvt_extent &x = problem.value(a).extents[d], &y = problem.value(b).extents[d];
    bool same = x.value == y.value && (x.value >= 0 || std::strcmp(x.symbol, y.symbol) == 0);
    if (!same)
      return "operands of different extents";
  }
  return {};
}

/// Calls body(offset in a, offset in b, ...) for each index; a tensor without strides is dense.
template <typename Body>
void walk(const dvt_tensor &shape, const std::vector<const dvt_tensor *> &tensors, Body body) {
  providers::Dims extents(shape.extents, shape.extents + shape.rank), index(shape.rank, 0);
  std::vector<providers::Dims> strides;
  for (const dvt_tensor *tensor : tensors)
    strides.push_back(tensor->strides
                          ? providers::Dims(tensor->strides, tensor->strides + tensor->rank)
                          : providers::denseStrides(extents));
  std::vector<int64_t> offsets(tensors.size());
  for (int64_t left = providers::product(extents); left > 0; --left) {
    for (size_t k = 0; k < offsets.size(); ++k) {
      offsets[k] = 0;
      for (size_t d = 0; d < index.size(); ++d)
        offsets[k] += index[d] * strides[k][d];
    }
    body(offsets);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < extents[d])
        break;
      index[d] = 0;
    }
  }
}

float *floats(const dvt_tensor &tensor) { return static_cast<float *>(tensor.data); }

std::string refuseAdd(const ProblemReader &problem) {
  std::string why = needFloats(problem);
  return why.empty() ? sameExtents(problem, problem.op(0).input(0), problem.op(0).input(1)) : why;
}

std::string runAdd(const KernelState &, const dvt_run_args &args) {
  // Element by element at equal indices, so that the result may lie on an operand.
  walk(args.outputs[0], {&args.inputs[0], &args.inputs[1], &args.outputs[0]},
       [&](const std::vector<int64_t> &at) {
         floats(args.outputs[0])[at[2]] =
             floats(args.inputs[0])[at[0]] + floats(args.inputs[1])[at[1]];
       });
  return {};
}

std::string refuseBlocked(const ProblemReader &problem) {
  if (problem.rank(problem.op(0).input(0)) != 4)
    return "blocks of channels need rank 4";
  return needDense(problem);
}

float positivePart(float x) { return x < 0 ? 0 : x; }

std::string runBlockedRelu(const KernelState &, const dvt_run_args &args) {
  const int64_t *extents = args.inputs[0].extents;
  int64_t count = extents[0] * ((extents[1] + 7) / 8 * 8) * extents[2] * extents[3];
  for (int64_t i = 0; i < count; ++i)
    floats(args.outputs[0])[i] = positivePart(floats(args.inputs[0])[i]);
  return {};
}

std::string runRelu(const KernelState &, const dvt_run_args &args) {
  walk(args.inputs[0], {&args.inputs[0]}, [&](const std::vector<int64_t> &at) {
    floats(args.outputs[0])[at[0]] = positivePart(floats(args.inputs[0])[at[0]]);
  });
  return {};
}

std::string runNonZero(const KernelState &, const dvt_run_args &args) {
  const dvt_tensor &input = args.inputs[0];
  providers::Dims extents(input.extents, input.extents + input.rank);
  std::vector<int64_t> found;
  for (int64_t i = 0, count = providers::product(extents); i < count; ++i)
    if (floats(input)[i] != 0)
      found.push_back(i);
  auto count = static_cast<int64_t>(found.size());
  int64_t stated[2] = {static_cast<int64_t>(input.rank), count};
  auto *to = static_cast<int64_t *>(args.outputs[0].data);
  if (!to && args.allocate_output)
    to = static_cast<int64_t *>(args.allocate_output(args.output_context, 0, 2, stated));
  if (!to && count && input.rank)
    return "got no memory for the result";
  providers::Dims strides = providers::denseStrides(extents);
  for (size_t d = 0; d < extents.size(); ++d)
    for (int64_t i = 0; i < count; ++i)
      to[static_cast<int64_t>(d) * count + i] =
          found[static_cast<size_t>(i)] / strides[d] % extents[d];
  return {};
}

std::string runIdentity(const KernelState &, const dvt_run_args &args) {
  walk(args.inputs[0], {&args.inputs[0], &args.outputs[0]}, [&](const std::vector<int64_t> &at) {
    floats(args.outputs[0])[at[1]] = floats(args.inputs[0])[at[0]];
  });
  return {};
}

std::string refuseMatMul(const ProblemReader &problem) {
  uint32_t a = problem.op(0).input(0), b = problem.op(0).input(1);
  if (problem.rank(a) != 2 || problem.rank(b) != 2 || problem.inputPosition(b) != 1 ||
      !problem.isConstant(b))
    return "only matrices with a constant right side are known";
  if (problem.value(b).extents[0].value < 0 || problem.value(b).extents[1].value < 0)
    return "the right side must have static extents";
  return needDense(problem);
}

std::string prepareMatMul(const ProblemReader &problem, const dvt_prepare_args &args,
                          KernelState &state) {
  if (!args.constants || !args.constants[1])
    return "the right side was not handed over";
  providers::Dims extents = problem.extents(problem.op(0).input(1));
  const float *b = static_cast<const float *>(args.constants[1]);
  state.packed.resize(static_cast<size_t>(extents[0] * extents[1]));
  for (int64_t k = 0; k < extents[0]; ++k)
    for (int64_t n = 0; n < extents[1]; ++n)
      state.packed[static_cast<size_t>(n * extents[0] + k)] = b[k * extents[1] + n];
  state.workspaceBytes = static_cast<uint64_t>(extents[0]) * sizeof(double) * args.threads;
  return {};
}

struct MatMulTask {
  const KernelState &state;
  const dvt_run_args &args;
};

void multiplyRows(void *argument, int64_t begin, int64_t end, uint32_t worker) {
  const MatMulTask &task = *static_cast<const MatMulTask *>(argument);
  int64_t depth = task.args.inputs[0].extents[1], columns = task.args.outputs[0].extents[1];
  double *row = static_cast<double *>(task.args.workspace) + worker * depth;
  for (int64_t m = begin; m < end; ++m) {
    for (int64_t k = 0; k < depth; ++k)
      row[k] = floats(task.args.inputs[0])[m * depth + k];
    for (int64_t n = 0; n < columns; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += row[k] * task.state.packed[static_cast<size_t>(n * depth + k)];
      floats(task.args.outputs[0])[m * columns + n] = static_cast<float>(sum);
    }
  }
}

std::string runMatMul(const KernelState &state, const dvt_run_args &args) {
  uint64_t perWorker = static_cast<uint64_t>(args.inputs[0].extents[1]) * sizeof(double);
  uint32_t threads = args.parallel ? args.parallel->threads : 1;
  if (args.workspace_bytes < state.workspaceBytes || perWorker * threads > state.workspaceBytes)
    return "more threads than the kernel was prepared for, or too little workspace";
  MatMulTask task = {state, args};
  int64_t rows = args.inputs[0].extents[0];
  if (args.parallel)
    args.parallel->run(args.parallel->context, rows, multiplyRows, &task);
  else
    multiplyRows(&task, 0, rows, 0);
  return {};
}

} // namespace

const std::vector<Algorithm> &algorithms() {
  static const std::vector<Algorithm> list = {
      {"add:in_place", "add", 14, refuseAdd, "", "", 0, DVT_PACKING_NONE, DVT_THREADING_SERIAL,
       false, nullptr, runAdd},
      {"relu:blocked", "relu", 14, refuseBlocked, "aBcd8b", "aBcd8b", 0, DVT_PACKING_NONE,
       DVT_THREADING_SERIAL, true, nullptr, runBlockedRelu},
      {"relu:plain", "relu", 14, needDense, "", "", 0, DVT_PACKING_NONE, DVT_THREADING_SERIAL,
       false, nullptr, runRelu},
      {"non_zero:allocate", "non_zero", 13, needDense, "", "", 0, DVT_PACKING_NONE,
       DVT_THREADING_SERIAL, false, nullptr, runNonZero},
      {"identity:strided", "identity", 25, needFloats, "", "", 0, DVT_PACKING_NONE,
       DVT_THREADING_SERIAL, false, nullptr, runIdentity},
      {"mat_mul:packed", "mat_mul", 13, refuseMatMul, "", "", UINT64_MAX, DVT_PACKING_AT_LOAD,
       DVT_THREADING_PARALLEL_FOR, true, prepareMatMul, runMatMul},
  };
  return list;
}

} // namespace dovetail::test_provider
