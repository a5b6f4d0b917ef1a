// SPDX-License-Identifier: Apache-2.0
//
// A convolution with what follows it in one kernel of the library. Which ones it has only shows as
// such a plan is compiled on the device.
#include "providers/miopen/Step.h"

namespace dovetail::miopen {
namespace {

class Fused final : public Step {
public:
  Fused(Turn &turn, const std::vector<Call> &calls)
      : xAt(calls[0].operands[0]), wAt(calls[0].operands[1]),
        x(describe(turn, calls[0].tensors[0])), w(describe(turn, calls[0].tensors[1])),
        y(describe(turn, calls[0].result)), convolution(describeConvolution(turn, calls[0])),
        args(turn, turn.api().CreateOperatorArgs, turn.api().DestroyOperatorArgs,
             "making arguments of a fusion") {
    const Library &api = turn.api();
    FusionPlanRef made = nullptr;
    if (!turn.isFine() ||
        !turn.check(api.CreateFusionPlan(&made, FusionDirection::Vertical, x.get()),
                    "making a fusion"))
      return;
    plan = {made, api.DestroyFusionPlan};
    if (!turn.check(api.CreateOpConvForward(made, &convolutionOp, convolution.get(), w.get()),
                    "fusing a convolution"))
      return;
    for (size_t i = 1; i < calls.size(); ++i)
      if (!add(turn, calls[0], calls[i]))
        return;
    turn.check(api.CompileFusionPlan(turn.handle(), made), "compiling the fusion");
  }

  void run(Turn &turn, const Pointers &pointers) override {
    const Library &api = turn.api();
    bool isSet = turn.check(
        api.SetOpArgsConvForward(args.get(), convolutionOp, &kOne, &kZero, pointers.inputs[wAt]),
        "setting a fusion's weights");
    if (isSet && biasOp)
      isSet = turn.check(
          api.SetOpArgsBiasForward(args.get(), biasOp, &kOne, &kZero, pointers.inputs[biasAt]),
          "setting a fusion's bias");
    if (isSet && activationOp)
      isSet = turn.check(api.SetOpArgsActivForward(args.get(), activationOp, &kOne, &kZero,
                                                   activation.alpha, activation.beta, 0),
                         "setting a fusion's activation");
    if (isSet)
      turn.check(api.ExecuteFusionPlan(turn.handle(), plan.get(), x.get(), pointers.inputs[xAt],
                                       y.get(), pointers.result, args.get()),
                 "convolution and what follows it");
  }

private:
  bool add(Turn &turn, const Call &head, const Call &call) {
    const Library &api = turn.api();
    if (call.kind == Call::Kind::Activate) {
      activation = call.activation;
      return turn.check(api.CreateOpActivationForward(plan.get(), &activationOp, activation.mode),
                        "fusing an activation");
    }
    Tensor channels{head.result.type, Dims(head.result.dims.size(), 1), {}};
    channels.dims[1] = head.result.dims[1];
    channels.strides = providers::denseStrides(channels.dims);
    bias = describe(turn, channels);
    biasAt = call.operands[0];
    return turn.isFine() &&
           turn.check(api.CreateOpBiasForward(plan.get(), &biasOp, bias.get()), "fusing a bias");
  }

  uint32_t xAt, wAt, biasAt = 0; ///< among the problem's inputs
  TensorDescriptor x, w, y, bias;
  ConvolutionDescriptor convolution;
  Owned<OperatorArgsRef> args;
  Owned<FusionPlanRef> plan;
  FusionOpRef convolutionOp = nullptr, biasOp = nullptr, activationOp = nullptr; ///< the plan's
  Activation activation;
};

} // namespace

bool isFusible(const Form &form) {
  const std::vector<Call> &calls = form.calls;
  if (!form.isConvolution() || calls.size() < 2)
    return false;
  size_t next = 1;
  if (calls[next].kind == Call::Kind::AddBias)
    ++next;
  if (next < calls.size() && calls[next].kind == Call::Kind::Activate)
    ++next;
  return next == calls.size();
}

std::unique_ptr<Step> makeFused(Turn &turn, const std::vector<Call> &calls) {
  if (!turn.api().hasFusion()) {
    turn.fail("MIOpen " + turn.api().versionText + " has no fusions");
    return nullptr;
  }
  auto step = std::make_unique<Fused>(turn, calls);
  return turn.isFine() ? std::move(step) : nullptr;
}

} // namespace dovetail::miopen
