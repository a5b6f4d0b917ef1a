// SPDX-License-Identifier: Apache-2.0
//
// All calls but convolutions. None has a choice of algorithms.
#include "providers/miopen/Step.h"

namespace dovetail::miopen {
namespace {

/// What all of these keep: descriptors of the operands and of the result.
class Described : public Step {
public:
  Described(Turn &turn, const Call &call) : operands(call.operands) {
    for (const Tensor &tensor : call.tensors)
      tensors.push_back(describe(turn, tensor));
    result = describe(turn, call.result);
  }

protected:
  const void *operand(const Pointers &pointers, size_t index) const {
    return pointers.inputs[operands[index]];
  }
  TensorRef tensor(size_t index) const { return tensors[index].get(); }

  std::vector<uint32_t> operands;
  std::vector<TensorDescriptor> tensors;
  TensorDescriptor result;
};

class Pool final : public Described {
public:
  Pool(Turn &turn, const Call &call)
      : Described(turn, call),
        pool(turn, turn.api().CreatePoolingDescriptor, turn.api().DestroyPoolingDescriptor,
             "making a pooling descriptor") {
    const std::vector<int> window = asInts(call.window), pads = asInts(call.pads),
                           strides = asInts(call.strides);
    if (turn.isFine())
      turn.check(turn.api().Set2dPoolingDescriptor(pool.get(), call.pooling, window[0], window[1],
                                                   pads[0], pads[1], strides[0], strides[1]),
                 "describing a pool");
  }
  void run(Turn &turn, const Pointers &pointers) override {
    turn.check(turn.api().PoolingForward(turn.handle(), pool.get(), &kOne, tensor(0),
                                         operand(pointers, 0), &kZero, result.get(),
                                         pointers.result, false, nullptr, 0),
               "pooling");
  }

private:
  Owned<PoolingRef> pool;
};

class Softmax final : public Described {
public:
  Softmax(Turn &turn, const Call &call)
      : Described(turn, call),
        algorithm(call.logarithm ? SoftmaxAlgorithm::Log : SoftmaxAlgorithm::Accurate) {}
  void run(Turn &turn, const Pointers &pointers) override {
    turn.check(turn.api().SoftmaxForward_V2(turn.handle(), &kOne, tensor(0), operand(pointers, 0),
                                            &kZero, result.get(), pointers.result, algorithm,
                                            SoftmaxMode::Channel),
               "softmax");
  }

private:
  SoftmaxAlgorithm algorithm;
};

class BatchNorm final : public Described {
public:
  BatchNorm(Turn &turn, const Call &call) : Described(turn, call), epsilon(call.epsilon) {}
  void run(Turn &turn, const Pointers &pointers) override {
    float one = kOne, zero = kZero;
    // The library takes what it only reads as if it wrote to it.
    auto vector = [&](size_t index) { return const_cast<void *>(operand(pointers, index)); };
    turn.check(turn.api().BatchNormalizationForwardInference(
                   turn.handle(), BatchNormMode::Spatial, &one, &zero, tensor(0),
                   operand(pointers, 0), result.get(), pointers.result, tensor(1), vector(1),
                   vector(2), vector(3), vector(4), epsilon),
               "batch normalisation");
  }

private:
  double epsilon;
};

/// The library also gives mean and scale of each row, for which there is the workspace.
class LayerNorm final : public Described {
public:
  LayerNorm(Turn &turn, const Call &call)
      : Described(turn, call), epsilon(static_cast<float>(call.epsilon)),
        partBytes(rowNumbersBytes(call)),
        perRow(describe(turn, {call.result.type, {call.result.dims[0]}, {1}})) {}
  uint64_t workspaceBytes() const override { return 2 * partBytes; }
  void run(Turn &turn, const Pointers &pointers) override {
    auto *means = static_cast<char *>(pointers.workspace);
    constexpr int32_t kFirstNormalised = 1;
    turn.check(turn.api().LayerNormForward(turn.handle(), NormMode::WeightBias, tensor(0),
                                           operand(pointers, 0), tensor(1), operand(pointers, 1),
                                           tensor(2), operand(pointers, 2), epsilon,
                                           kFirstNormalised, result.get(), pointers.result,
                                           perRow.get(), means, perRow.get(), means + partBytes),
               "layer normalisation");
  }

private:
  float epsilon;
  uint64_t partBytes;
  TensorDescriptor perRow;
};

class Activate final : public Described {
public:
  Activate(Turn &turn, const Call &call)
      : Described(turn, call),
        activation(turn, turn.api().CreateActivationDescriptor,
                   turn.api().DestroyActivationDescriptor, "making an activation descriptor") {
    if (turn.isFine())
      turn.check(turn.api().SetActivationDescriptor(activation.get(), call.activation.mode,
                                                    call.activation.alpha, call.activation.beta, 0),
                 "describing an activation");
  }
  void run(Turn &turn, const Pointers &pointers) override {
    const void *from = operands.empty() ? pointers.result : operand(pointers, 0);
    turn.check(turn.api().ActivationForward(turn.handle(), activation.get(), &kOne, result.get(),
                                            from, &kZero, result.get(), pointers.result),
               "activation");
  }

private:
  Owned<ActivationRef> activation;
};

/// The library reads "beta 0" as: the sum takes the place of what it was added to.
class AddBias final : public Described {
public:
  using Described::Described;
  void run(Turn &turn, const Pointers &pointers) override {
    turn.check(turn.api().ConvolutionForwardBias(turn.handle(), &kOne, tensor(0),
                                                 operand(pointers, 0), &kZero, result.get(),
                                                 pointers.result),
               "adding the bias");
  }
};

class AddTensor final : public Described {
public:
  using Described::Described;
  void run(Turn &turn, const Pointers &pointers) override {
    turn.check(turn.api().OpTensor(turn.handle(), TensorOp::Add, &kOne, result.get(),
                                   pointers.result, &kOne, tensor(0), operand(pointers, 0), &kZero,
                                   result.get(), pointers.result),
               "adding a tensor");
  }
};

std::unique_ptr<Step> make(Turn &turn, const Call &call) {
  switch (call.kind) {
  case Call::Kind::Pool:
    return std::make_unique<Pool>(turn, call);
  case Call::Kind::Softmax:
    return std::make_unique<Softmax>(turn, call);
  case Call::Kind::BatchNorm:
    return std::make_unique<BatchNorm>(turn, call);
  case Call::Kind::LayerNorm:
    if (turn.api().hasLayerNorm())
      return std::make_unique<LayerNorm>(turn, call);
    turn.fail("MIOpen " + turn.api().versionText +
              " has no layer normalisation of this form; it is there from 3.1 on");
    return nullptr;
  case Call::Kind::Activate:
    return std::make_unique<Activate>(turn, call);
  case Call::Kind::AddBias:
    return std::make_unique<AddBias>(turn, call);
  case Call::Kind::AddTensor:
    return std::make_unique<AddTensor>(turn, call);
  case Call::Kind::Convolution:
    break;
  }
  turn.fail("a convolution has a choice of algorithms");
  return nullptr;
}

} // namespace

std::unique_ptr<Step> makeStep(Turn &turn, const Call &call) {
  std::unique_ptr<Step> step = make(turn, call);
  return turn.isFine() ? std::move(step) : nullptr;
}

} // namespace dovetail::miopen
