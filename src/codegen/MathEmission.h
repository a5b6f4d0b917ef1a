// SPDX-License-Identifier: Apache-2.0
//
// Elementary functions on f32 registers, vectors or scalars, as straight code without branches,
// tables or calls. Errors are within about 2 units in the last place except where stated;
// infinities, zeros and NaN give what the C library gives. Polynomials and rational functions are
// minimax fits made for this file.
#pragma once

#include "codegen/Emitter.h"

namespace dovetail::codegen {

Value emitExp(Emitter &e, Value x);
Value emitExpMinus1(Emitter &e, Value x);
Value emitLog(Emitter &e, Value x);
Value emitLog1Plus(Emitter &e, Value x);
/// Within 4 units in the last place.
Value emitTanh(Emitter &e, Value x);
Value emitErf(Emitter &e, Value x);
Value emitSigmoid(Emitter &e, Value x);
/// x * (1 + erf(x / sqrt(2))) / 2; the error is relative to |x|.
Value emitGelu(Emitter &e, Value x);
Value emitSin(Emitter &e, Value x);
Value emitCos(Emitter &e, Value x);
Value emitTan(Emitter &e, Value x);
Value emitAsin(Emitter &e, Value x);
Value emitAcos(Emitter &e, Value x);
Value emitAtan(Emitter &e, Value x);
Value emitSinh(Emitter &e, Value x);
Value emitCosh(Emitter &e, Value x);
Value emitAsinh(Emitter &e, Value x);
Value emitAcosh(Emitter &e, Value x);
Value emitAtanh(Emitter &e, Value x);
Value emitPow(Emitter &e, Value x, Value y);
/// Remainder of x / y with the sign of x, exact while |x / y| < 2^52.
Value emitFloatModulo(Emitter &e, Value x, Value y);

} // namespace dovetail::codegen
