// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "codegen/recurrent/CellEmission.h"

#include "codegen/MathEmission.h"

namespace dovetail::codegen {

Value CellEmission::clipped(Value sum) {
  if (net.clip == 0)
    return sum;
  return e.maximum(e.minimum(sum, e.f32(net.clip)), e.f32(-net.clip));
}

Value CellEmission::apply(const RecurrentFunction &function, Value x) {
  using Kind = RecurrentFunction::Kind;
  Value zero = e.constant(x.getType(), 0), alpha = e.constant(x.getType(), function.alpha),
        beta = e.constant(x.getType(), function.beta);
  switch (function.kind) {
  case Kind::Sigmoid:
    return emitSigmoid(e, x);
  case Kind::Tanh:
    return emitTanh(e, x);
  case Kind::Relu:
    return e.maximum(x, zero);
  case Kind::Affine:
    return e.fma(x, alpha, beta);
  case Kind::LeakyRelu:
    return e.select(e.lt(x, zero), e.mul(x, alpha), x);
  case Kind::ThresholdedRelu:
    return e.select(e.gt(x, alpha), x, zero);
  case Kind::ScaledTanh:
    return e.mul(alpha, emitTanh(e, e.mul(x, beta)));
  case Kind::HardSigmoid:
    return e.maximum(e.minimum(e.fma(x, alpha, beta), e.f32(1)), zero);
  case Kind::Elu:
    return e.select(e.lt(x, zero), e.mul(alpha, emitExpMinus1(e, x)), x);
  case Kind::Softsign:
    return e.fdiv(x, e.add(e.abs(x), e.f32(1)));
  case Kind::Softplus:
    return e.add(e.maximum(x, zero), emitLog1Plus(e, emitExp(e, e.neg(e.abs(x)))));
  }
  return x;
}

std::pair<Value, Value> CellEmission::lstm(const Values &sums, Value cellBefore,
                                           const Values &peepholes) {
  auto withPeephole = [&](unsigned gate, Value cell) {
    return peepholes.empty() ? sums[gate] : e.fma(peepholes[gate], cell, sums[gate]);
  };
  Value input = gate(withPeephole(0, cellBefore));
  Value forget = net.coupled ? e.sub(e.constant(input.getType(), 1), input)
                             : gate(withPeephole(2, cellBefore));
  Value proposed = apply(functions[1], clipped(sums[3]));
  Value cell = e.fma(forget, cellBefore, e.mul(input, proposed));
  Value output = gate(withPeephole(1, cell));
  return {e.mul(output, apply(functions[2], cell)), cell};
}

} // namespace dovetail::codegen
