// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "codegen/PulledIndex.h"

namespace dovetail::codegen {

Value PulledArithmetic::lanes(const PulledIndex &a) {
  if (a.vector)
    return a.vector;
  if (a.step == 0)
    return e.splat(a.scalar);
  return e.add(e.mul(e.iota(e.lanes(), e.i64Type()), e.index(a.step)), a.scalar);
}

PulledIndex PulledArithmetic::add(const PulledIndex &a, const PulledIndex &b) {
  if (!a.vector && !b.vector)
    return {e.add(a.scalar, b.scalar), a.step + b.step};
  return {{}, 0, e.add(lanes(a), lanes(b))};
}

PulledIndex PulledArithmetic::add(const PulledIndex &a, Value b) { return add(a, PulledIndex{b}); }

PulledIndex PulledArithmetic::mul(const PulledIndex &a, Value factor) {
  auto known = Emitter::constantIndex(factor);
  if (!a.vector && (a.step == 0 || known))
    return {e.mul(a.scalar, factor), a.step * known.value_or(0)};
  return {{}, 0, e.mul(lanes(a), factor)};
}

PulledIndex PulledArithmetic::apply(const PulledIndex &a, llvm::function_ref<Value(Value)> map) {
  if (a.uniform())
    return {map(a.scalar)};
  return {{}, 0, map(lanes(a))};
}

PulledIndex PulledArithmetic::div(const PulledIndex &a, Value divisor) {
  if (Emitter::constantIndex(divisor) == 1)
    return a;
  return apply(a, [&](Value value) { return e.div(value, divisor); });
}

PulledIndex PulledArithmetic::rem(const PulledIndex &a, Value divisor) {
  return apply(a, [&](Value value) { return e.rem(value, divisor); });
}

Value PulledArithmetic::within(const PulledIndex &a, Value extent) {
  Value position = a.uniform() ? a.scalar : lanes(a);
  Value zero = e.integerConstant(position.getType(), 0);
  return e.bitAnd(e.ge(position, zero), e.lt(position, extent));
}

} // namespace dovetail::codegen
