// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "codegen/contraction/WinogradTransform.h"

#include "codegen/schedule/contraction/Winograd.h"

namespace dovetail::codegen {

Values emitImageLine(Emitter &e, int64_t size, const Values &d) {
  if (size == 2)
    return {e.sub(d[0], d[2]), e.add(d[1], d[2]), e.sub(d[2], d[1]), e.sub(d[1], d[3])};
  auto times = [&](double factor, Value a, Value b) { // factor * a + b
    return e.fma(e.constant(a.getType(), factor), a, b);
  };
  constexpr double p = kWinogradInner, q = kWinogradOuter;
  Value evenInner = times(-q * q, d[2], d[4]), oddInner = times(-q * q, d[1], d[3]);
  Value evenOuter = times(-p * p, d[2], d[4]), oddOuter = times(-p * p, d[1], d[3]);
  return {times(p * p * q * q, d[0], times(-p * p - q * q, d[2], d[4])),
          times(p, oddInner, evenInner),
          times(-p, oddInner, evenInner),
          times(q, oddOuter, evenOuter),
          times(-q, oddOuter, evenOuter),
          times(p * p * q * q, d[1], times(-p * p - q * q, d[3], d[5]))};
}

Values emitOutputLine(Emitter &e, int64_t size, const Values &m) {
  if (size == 2)
    return {e.add(e.add(m[0], m[1]), m[2]), e.sub(e.sub(m[1], m[2]), m[3])};
  constexpr double p = kWinogradInner, q = kWinogradOuter;
  Value inner = e.add(m[1], m[2]), minusInner = e.sub(m[1], m[2]);
  Value outer = e.add(m[3], m[4]), minusOuter = e.sub(m[3], m[4]);
  auto both = [&](double ofInner, Value a, double ofOuter, Value b) {
    return e.fma(e.constant(a.getType(), ofInner), a, e.mul(e.constant(b.getType(), ofOuter), b));
  };
  return {e.add(e.add(m[0], inner), outer), both(p, minusInner, q, minusOuter),
          both(p * p, inner, q * q, outer),
          e.add(both(p * p * p, minusInner, q * q * q, minusOuter), m[5])};
}

} // namespace dovetail::codegen
