// SPDX-License-Identifier: Apache-2.0
//
// Several operations in one kernel. There are kernels for convolutions without groups, row-major,
// with a bias, an activation or both behind them.
#include <algorithm>

#include "Arithmetic.h"
#include "Convolution.h"

using namespace miopen_double;

namespace {

using Kind = FusionOp::Kind;

/// The operation where it is one of the plan's and of that kind.
FusionOp *opOf(Entry &entry, Ref op, Kind kind) {
  FusionOp *found = entry.find(state().ops, op, "operation");
  if (found)
    entry.need(found->kind == kind, BadParm, "the operation is of another kind");
  return found;
}

void append(Entry &entry, Ref plan, Ref *op, FusionOp made) {
  FusionPlan *found = entry.find(state().plans, plan, "fusion plan");
  if (!entry.isFine() || !entry.need(op, BadParm, "there is no place for the operation"))
    return;
  entry.need(!found->compiledFor, BadParm, "the plan is compiled already");
  *op = state().ops.add(std::move(made));
  found->ops.push_back(*op);
}

/// The shape of what a convolution gives.
Tensor resultOf(const Tensor &x, const Tensor &w, const Convolution &c) {
  Tensor result = x;
  result.dims[1] = w.dims[0];
  for (size_t i = 0; i < c.pads.size(); ++i)
    result.dims[i + 2] =
        (x.dims[i + 2] + 2 * c.pads[i] - (w.dims[i + 2] - 1) * c.dilations[i] - 1) / c.strides[i] +
        1;
  int64_t stride = 1;
  for (size_t i = result.dims.size(); i-- > 0; stride *= result.dims[i])
    result.strides[i] = stride;
  return result;
}

} // namespace

MIOPEN_ENTRY int miopenCreateFusionPlan(Ref *plan, int direction, Ref input) {
  Entry entry("miopenCreateFusionPlan");
  const Tensor *found = entry.tensor(input, "the input");
  entry.need(plan && direction == 0, BadParm, "direction {} is not vertical", direction);
  if (entry.isFine())
    *plan = state().plans.add({*found, {}, nullptr});
  return entry.end();
}

MIOPEN_ENTRY int miopenDestroyFusionPlan(Ref plan) {
  Entry entry("miopenDestroyFusionPlan");
  if (FusionPlan *found = entry.find(state().plans, plan, "fusion plan")) {
    for (Ref op : found->ops)
      state().ops.remove(op);
    state().plans.remove(plan);
  }
  return entry.end();
}

MIOPEN_ENTRY int miopenCreateOpConvForward(Ref plan, Ref *op, Ref convolution, Ref w) {
  Entry entry("miopenCreateOpConvForward");
  const Convolution *found = entry.described(state().convolutions, convolution, "the convolution");
  const Tensor *weights = entry.tensor(w, "w");
  if (entry.isFine())
    append(entry, plan, op, {Kind::Convolution, *found, *weights, -1});
  return entry.end();
}

MIOPEN_ENTRY int miopenCreateOpBiasForward(Ref plan, Ref *op, Ref bias) {
  Entry entry("miopenCreateOpBiasForward");
  const Tensor *found = entry.tensor(bias, "the bias");
  if (entry.isFine())
    append(entry, plan, op, {Kind::Bias, {}, *found, -1});
  return entry.end();
}

MIOPEN_ENTRY int miopenCreateOpActivationForward(Ref plan, Ref *op, int mode) {
  Entry entry("miopenCreateOpActivationForward");
  append(entry, plan, op, {Kind::Activation, {}, {}, mode});
  return entry.end();
}

MIOPEN_ENTRY int miopenCompileFusionPlan(Ref handle, Ref plan) {
  Entry entry("miopenCompileFusionPlan");
  entry.handle(handle);
  FusionPlan *found = entry.find(state().plans, plan, "fusion plan");
  if (!entry.isFine())
    return entry.end();
  std::vector<Kind> kinds;
  for (Ref op : found->ops)
    kinds.push_back(state().ops.find(op)->kind);
  const std::vector<std::vector<Kind>> known{{Kind::Convolution, Kind::Bias},
                                             {Kind::Convolution, Kind::Activation},
                                             {Kind::Convolution, Kind::Bias, Kind::Activation}};
  const bool isKnown = std::find(known.begin(), known.end(), kinds) != known.end();
  if (entry.need(isKnown, UnsupportedOp, "there is no kernel for these operations")) {
    const FusionOp &head = *state().ops.find(found->ops[0]);
    entry.need(head.convolution.groups == 1 && found->input.isRowMajor() &&
                   found->input.type != kBFloat16,
               UnsupportedOp, "there is no fused kernel for this convolution");
  }
  if (entry.isFine())
    found->compiledFor = handle;
  return entry.end();
}

MIOPEN_ENTRY int miopenCreateOperatorArgs(Ref *args) {
  Entry entry("miopenCreateOperatorArgs");
  if (entry.need(args, BadParm, "there is no place for the arguments"))
    *args = state().args.add({});
  return entry.end();
}

MIOPEN_ENTRY int miopenDestroyOperatorArgs(Ref args) {
  Entry entry("miopenDestroyOperatorArgs");
  entry.need(state().args.remove(args), BadParm, "there are no such arguments");
  return entry.end();
}

namespace {

int setMemory(const char *name, Ref args, Ref op, Kind kind, const void *alpha, const void *beta,
              const void *memory) {
  Entry entry(name);
  FusionArgs *found = entry.find(state().args, args, "arguments");
  opOf(entry, op, kind);
  entry.scales(alpha, beta);
  entry.need(memory, BadParm, "there is no memory");
  if (entry.isFine())
    found->memory[op] = memory;
  return entry.end();
}

} // namespace

MIOPEN_ENTRY int miopenSetOpArgsConvForward(Ref args, Ref op, const void *alpha, const void *beta,
                                            const void *w) {
  return setMemory("miopenSetOpArgsConvForward", args, op, Kind::Convolution, alpha, beta, w);
}

MIOPEN_ENTRY int miopenSetOpArgsBiasForward(Ref args, Ref op, const void *alpha, const void *beta,
                                            const void *bias) {
  return setMemory("miopenSetOpArgsBiasForward", args, op, Kind::Bias, alpha, beta, bias);
}

MIOPEN_ENTRY int miopenSetOpArgsActivForward(Ref args, Ref op, const void *alpha, const void *beta,
                                             double first, double second, double third) {
  Entry entry("miopenSetOpArgsActivForward");
  FusionArgs *found = entry.find(state().args, args, "arguments");
  const FusionOp *activation = opOf(entry, op, Kind::Activation);
  entry.scales(alpha, beta);
  if (entry.isFine())
    found->activations[op] = {true, activation->mode, first, second, third};
  return entry.end();
}

MIOPEN_ENTRY int miopenExecuteFusionPlan(Ref handle, Ref plan, Ref xDesc, const void *x, Ref yDesc,
                                         void *y, Ref args) {
  Entry entry("miopenExecuteFusionPlan");
  const Handle *with = entry.handle(handle);
  const FusionPlan *found = entry.find(state().plans, plan, "fusion plan");
  const FusionArgs *given = entry.find(state().args, args, "arguments");
  const Tensor *source = entry.tensor(xDesc, "x"), *result = entry.tensor(yDesc, "y");
  if (!entry.isFine())
    return entry.end();
  entry.need(found->compiledFor == handle, BadParm, "the plan was not compiled with this handle");
  entry.need(source->text() == found->input.text(), BadParm, "x is another than the plan's");
  entry.memory(*source, x, "x");
  entry.memory(*result, y, "y");
  entry.apart(*source, x, *result, y);
  std::vector<simulated::Range> touched =
      ranges({{"x", x, source->bytes()}, {"y", y, result->bytes()}});
  std::vector<std::function<void()>> steps;
  for (Ref ref : found->ops) {
    const FusionOp &op = *state().ops.find(ref);
    if (op.kind == Kind::Activation) {
      if (entry.need(given->activations.contains(ref), BadParm, "an activation was not set"))
        steps.push_back([activation = given->activations.at(ref), desc = *result, y] {
          activate(activation, desc, y, desc, y);
        });
      continue;
    }
    if (!entry.need(given->memory.contains(ref), BadParm, "weights or a bias were not set"))
      break;
    const void *memory = given->memory.at(ref);
    touched.push_back({"weights or bias", memory, op.tensor.bytes()});
    if (op.kind == Kind::Convolution) {
      entry.need(resultOf(*source, op.tensor, op.convolution).text() == result->text(), BadParm,
                 "y does not fit the convolution");
      steps.push_back([=, convolution = op.convolution, w = op.tensor, from = *source,
                       desc = *result] { convolve(convolution, from, x, w, memory, desc, y); });
    } else {
      Dims channels(result->dims.size(), 1);
      channels[1] = result->dims[1];
      entry.need(op.tensor.dims == channels, BadParm, "the bias does not fit y");
      steps.push_back(
          [=, bias = op.tensor, desc = *result] { add(desc, y, bias, memory, desc, y); });
    }
  }
  entry.enqueue(*with, touched, [steps] {
    for (const auto &step : steps)
      step();
  });
  return entry.end();
}
