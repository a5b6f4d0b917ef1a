// SPDX-License-Identifier: Apache-2.0
//
// The elementary functions. Each reduces its argument to a short interval, evaluates a fit there
// and puts the parts back together; special values are repaired by selects at the end. Operand
// order in comparisons matters: a comparison with NaN is false, and the selects are arranged so
// that NaN passes through.
#include "codegen/MathEmission.h"

#include <cmath>
#include <initializer_list>

namespace dovetail::codegen {

using namespace mlir;

namespace {

/// f32 or f64 constants shaped like a value.
struct Like {
  Emitter &e;
  Type type;
  Value operator()(double number) const { return e.constant(type, number); }
};

/// Horner's rule, the coefficient of the lowest power first.
Value polynomial(Emitter &e, Value x, std::initializer_list<double> coefficients) {
  Like c{e, x.getType()};
  auto next = std::rbegin(coefficients);
  Value sum = c(*next);
  for (++next; next != std::rend(coefficients); ++next)
    sum = e.fma(sum, x, c(*next));
  return sum;
}

Value clamp(Emitter &e, Value x, double low, double high) {
  Like c{e, x.getType()};
  return e.fastMinimum(c(high), e.fastMaximum(c(low), x));
}

Value integerLike(Emitter &e, Value x, int64_t number, Type element) {
  if (auto vector = dyn_cast<VectorType>(x.getType()))
    return e.integerConstant(e.vectorOf(element, vector.getNumElements()), number);
  return e.integerConstant(element, number);
}

Value copySign(Emitter &e, Value magnitude, Value sign) {
  Value bits = e.bitcast(sign, e.i32Type()),
        mask = integerLike(e, sign, int32_t(0x80000000), e.i32Type());
  return e.bitcast(e.bitOr(e.bitcast(magnitude, e.i32Type()), e.bitAnd(bits, mask)), e.f32Type());
}

/// x * 2^n for a whole number n in [-250, 250].
Value scale(Emitter &e, Value x, Value n) {
  auto vector = dyn_cast<VectorType>(x.getType());
  if (vector && e.machine.isa.level == Isa::Avx512 && vector.getNumElements() == 16)
    return e.intrinsic("llvm.x86.avx512.mask.scalef.ps.512", x.getType(),
                       {x, n, x, e.integerConstant(e.builder.getI16Type(), -1),
                        e.integerConstant(e.i32Type(), 4)});
  if (vector && e.machine.isa.level == Isa::Avx512 && vector.getNumElements() == 8)
    return e.intrinsic("llvm.x86.avx512.mask.scalef.ps.256", x.getType(),
                       {x, n, x, e.integerConstant(e.i8Type(), -1)});
  Type i32 = e.i32Type();
  auto power = [&](Value exponent) {
    Value biased = e.add(exponent, integerLike(e, x, 127, i32));
    return e.bitcast(e.shiftLeft(biased, integerLike(e, x, 23, i32)), e.f32Type());
  };
  Value exponent = e.convert(n, i32),
        half = e.shiftRightSigned(exponent, integerLike(e, x, 1, i32));
  return e.mul(e.mul(x, power(half)), power(e.sub(exponent, half)));
}

struct Reduced {
  Value n, r; ///< x = n ln 2 + r
};

Reduced reduceByLog2(Emitter &e, Value x) {
  Like c{e, x.getType()};
  Value n = e.roundEven(e.mul(x, c(1.44269504088896341)));
  Value r = e.fma(n, c(-0.693359375), x);
  return {n, e.fma(n, c(2.12194440054690583e-4), r)};
}

/// exp(r) - 1 - r over r^2, |r| <= ln 2 / 2.
Value expTail(Emitter &e, Value r) {
  return polynomial(e, r, {0.5, 0.166665182, 0.041666206, 0.00836888794, 0.00139504881});
}

} // namespace

Value emitExp(Emitter &e, Value x) {
  Like c{e, x.getType()};
  Reduced reduced = reduceByLog2(e, clamp(e, x, -104, 89));
  Value r = reduced.r;
  return scale(e, e.add(e.fma(e.mul(r, r), expTail(e, r), r), c(1)), reduced.n);
}

Value emitExpMinus1(Emitter &e, Value x) {
  Like c{e, x.getType()};
  Reduced reduced = reduceByLog2(e, clamp(e, x, -104, 89));
  Value r = reduced.r, q = e.fma(e.mul(r, r), expTail(e, r), r);
  // Half of the result, so that the scale factor does not overflow before the result does.
  Value half = scale(e, c(0.5), reduced.n);
  Value result = e.fma(half, q, e.sub(half, c(0.5)));
  // For tiny x the result is x itself, signed zeros included.
  return e.select(e.lt(e.abs(x), c(1e-12)), x, e.add(result, result));
}

Value emitLog(Emitter &e, Value x) {
  Like c{e, x.getType()};
  Type i32 = e.i32Type();
  Value tiny = e.lt(x, c(1.17549435e-38));
  Value normal = e.select(tiny, e.mul(x, c(8388608)), x);
  Value bits = e.bitcast(normal, i32);
  Value exponent = e.shiftRightSigned(e.sub(bits, integerLike(e, x, 0x3f3504f3, i32)),
                                      integerLike(e, x, 23, i32));
  Value mantissa =
      e.bitcast(e.sub(bits, e.shiftLeft(exponent, integerLike(e, x, 23, i32))), e.f32Type());
  Value n = e.sub(e.convert(exponent, e.f32Type()), e.select(tiny, c(23), c(0)));
  Value f = e.sub(mantissa, c(1)), square = e.mul(f, f);
  Value tail = polynomial(e, f,
                          {0.333333105, -0.249999866, 0.200022265, -0.166692495, 0.142186552,
                           -0.1238437, 0.118730165, -0.117896952, 0.0691514686});
  Value sum = e.fma(n, c(-2.12194440054690583e-4), e.mul(e.mul(square, f), tail));
  sum = e.add(f, e.fma(square, c(-0.5), sum));
  Value result = e.fma(n, c(0.693359375), sum);
  result = e.select(e.lt(x, c(INFINITY)), result, x);
  result = e.select(e.lt(x, c(0)), c(NAN), result);
  return e.select(e.eq(x, c(0)), c(-INFINITY), result);
}

Value emitLog1Plus(Emitter &e, Value x) {
  Like c{e, x.getType()};
  Value u = e.add(x, c(1));
  // What rounding u lost, to first order.
  Value lost = e.fdiv(e.sub(x, e.sub(u, c(1))), u);
  Value inside = e.bitAnd(e.gt(u, c(0)), e.lt(u, c(INFINITY)));
  Value result = e.add(emitLog(e, u), e.select(inside, lost, c(0)));
  return e.select(e.lt(e.abs(x), c(1e-12)), x, result);
}

Value emitTanh(Emitter &e, Value x) {
  Value clamped = clamp(e, x, -9.02, 9.02), z = e.mul(clamped, clamped);
  Value p = polynomial(
      e, z, {1, 0.136799157, 0.00386832817, 2.80074673e-05, 3.05850456e-08, -1.22034821e-11});
  Value q = polynomial(e, z, {1, 0.47013247, 0.0272458401, 0.000393863185, 1.28736724e-06});
  return clamp(e, e.fdiv(e.mul(clamped, p), q), -1, 1);
}

Value emitErf(Emitter &e, Value x) {
  Value clamped = clamp(e, x, -3.93, 3.93), z = e.mul(clamped, clamped);
  Value p = polynomial(
      e, z, {1.12837911, 0.19078438, 0.0527903549, 0.00377963111, 0.000284808804, 2.0419634e-06});
  Value q =
      polynomial(e, z, {1, 0.502410948, 0.114257745, 0.0149974832, 0.00116521737, 3.80040074e-05});
  return clamp(e, e.fdiv(e.mul(clamped, p), q), -1, 1);
}

Value emitSigmoid(Emitter &e, Value x) {
  Like c{e, x.getType()};
  return e.fdiv(c(1), e.add(c(1), emitExp(e, e.neg(x))));
}

Value emitGelu(Emitter &e, Value x) {
  Like c{e, x.getType()};
  Value half = e.mul(x, c(0.5));
  return e.fma(half, emitErf(e, e.mul(x, c(0.70710678118654752))), half);
}

// --- Trigonometry ---

namespace {

struct Quadrant {
  Value n;               ///< i32, the number of quarter turns
  Value sine, cosine, r; ///< of what is left, |r| <= pi / 4
};

/// Quarter turns in x and what is left, for any size of x: multiplies by 2 / pi in pieces of 24
/// bits, each product exact in f64 and taken modulo four quarter turns. The error of what is left
/// is about 1e-15 absolute.
Values reduceLarge(Emitter &e, Value wide) {
  Like d{e, wide.getType()};
  const double pieces[] = {10680707, 7228996,  1387004, 2578385,
                           16069853, 12639074, 9804092, 4427841};
  Value turns = d(0);
  double weight = 1;
  for (double piece : pieces) {
    weight /= 16777216;
    Value product = e.mul(wide, d(piece * weight));
    turns = e.add(turns, e.fma(e.truncate(e.mul(product, d(0.25))), d(-4), product));
  }
  Value n = e.roundEven(turns);
  return {n, e.mul(e.sub(turns, n), d(1.57079632679489661923))};
}

/// The same for |x| up to 1e6.
Values reduceSmall(Emitter &e, Value wide) {
  Like d{e, wide.getType()};
  Value n = e.roundEven(e.mul(wide, d(0.63661977236758134308)));
  Value r = e.fma(n, d(-1.57079632679489655800e+00), wide);
  return {n, e.fma(n, d(-6.12323399573676603587e-17), r)};
}

Quadrant reduceByQuarterTurns(Emitter &e, Value x) {
  Like c{e, x.getType()};
  Value finite = e.select(e.lt(e.abs(x), c(INFINITY)), x, c(0));
  Value wide = e.convert(finite, e.f64Type());
  Value large = e.gt(e.abs(finite), c(1e6));
  if (isa<VectorType>(x.getType()))
    large = e.reduce(Emitter::Reduction::Or, large);
  Values reduced = e.ifElse(
      large, [&] { return reduceLarge(e, wide); }, [&] { return reduceSmall(e, wide); });
  Value r = e.convert(reduced[1], e.f32Type());
  Value z = e.mul(r, r);
  Value sine = polynomial(e, z, {-0.166666672, 0.00833332911, -0.000198393303, 2.71827457e-06});
  Value cosine = polynomial(e, z, {0.0416666456, -0.00138873642, 2.44380917e-05});
  sine = e.fma(e.mul(z, r), sine, r);
  cosine = e.fma(e.mul(z, z), cosine, e.fma(z, c(-0.5), c(1)));
  return {e.convert(reduced[0], e.i32Type()), sine, cosine, r};
}

/// Sine of quadrant n + shift: sine or cosine, negated in the lower half; NaN for infinities.
Value sineOf(Emitter &e, Value x, int64_t shift) {
  Quadrant q = reduceByQuarterTurns(e, x);
  Type i32 = e.i32Type();
  Like c{e, x.getType()};
  Value n = e.add(q.n, integerLike(e, x, shift, i32));
  Value odd = e.ne(e.bitAnd(n, integerLike(e, x, 1, i32)), integerLike(e, x, 0, i32));
  Value lower = e.ne(e.bitAnd(n, integerLike(e, x, 2, i32)), integerLike(e, x, 0, i32));
  Value result = e.select(odd, q.cosine, q.sine);
  result = e.select(lower, e.neg(result), result);
  return e.select(e.lt(e.abs(x), c(INFINITY)), result, c(NAN));
}

/// asin(x) for 0 <= x <= 1/2.
Value asinNearZero(Emitter &e, Value x) {
  Value z = e.mul(x, x);
  Value tail =
      polynomial(e, z, {0.166667536, 0.0749524161, 0.0454770997, 0.0241476018, 0.0422185659});
  return e.fma(e.mul(z, x), tail, x);
}

} // namespace

Value emitSin(Emitter &e, Value x) { return sineOf(e, x, 0); }
Value emitCos(Emitter &e, Value x) { return sineOf(e, x, 1); }

Value emitTan(Emitter &e, Value x) {
  Like c{e, x.getType()};
  Quadrant q = reduceByQuarterTurns(e, x);
  Value odd =
      e.ne(e.bitAnd(q.n, integerLike(e, x, 1, e.i32Type())), integerLike(e, x, 0, e.i32Type()));
  Value result = e.fdiv(e.select(odd, e.neg(q.cosine), q.sine), e.select(odd, q.sine, q.cosine));
  return e.select(e.lt(e.abs(x), c(INFINITY)), result, c(NAN));
}

Value emitAsin(Emitter &e, Value x) {
  Like c{e, x.getType()};
  Value a = e.abs(x), far = e.gt(a, c(0.5));
  Value root = e.sqrt(e.mul(e.sub(c(1), a), c(0.5)));
  Value part = asinNearZero(e, e.select(far, root, a));
  Value result = e.select(far, e.fma(part, c(-2), c(1.57079632679489662)), part);
  return copySign(e, e.abs(result), x);
}

Value emitAcos(Emitter &e, Value x) {
  Like c{e, x.getType()};
  Value a = e.abs(x), far = e.gt(a, c(0.5));
  Value part = asinNearZero(e, e.select(far, e.sqrt(e.mul(e.sub(c(1), a), c(0.5))), a));
  Value negative = e.lt(x, c(0));
  Value near = e.sub(c(1.57079632679489662), e.select(negative, e.neg(part), part));
  Value twice = e.add(part, part);
  return e.select(far, e.select(negative, e.sub(c(3.14159265358979324), twice), twice), near);
}

Value emitAtan(Emitter &e, Value x) {
  Like c{e, x.getType()};
  Value a = e.abs(x), far = e.gt(a, c(1));
  Value t = e.select(far, e.fdiv(c(1), a), a), z = e.mul(t, t);
  Value tail = polynomial(e, z,
                          {-0.333333015, 0.199986383, -0.142652452, 0.109575763, -0.0841945857,
                           0.0582345426, -0.0314556919, 0.0110644354, -0.00182721158});
  Value result = e.fma(e.mul(z, t), tail, t);
  result = e.select(far, e.sub(c(1.57079632679489662), result), result);
  return copySign(e, result, x);
}

// --- Hyperbolic functions ---

Value emitSinh(Emitter &e, Value x) {
  Like c{e, x.getType()};
  Value a = e.abs(x), z = e.mul(x, x);
  Value tail = polynomial(e, z, {0.166666672, 0.00833335053, 0.000198360663, 2.81743951e-06});
  Value near = e.fma(e.mul(z, x), tail, x);
  // exp(a) / 2 as a square, so that it overflows no earlier than the result.
  Value root = emitExp(e, e.mul(a, c(0.5))), half = e.mul(e.mul(root, c(0.5)), root);
  Value result = copySign(e, e.sub(half, e.fdiv(c(0.25), half)), x);
  return e.select(e.lt(a, c(1)), near, result);
}

Value emitCosh(Emitter &e, Value x) {
  Like c{e, x.getType()};
  Value root = emitExp(e, e.mul(e.abs(x), c(0.5))), half = e.mul(e.mul(root, c(0.5)), root);
  return e.add(half, e.fdiv(c(0.25), half));
}

Value emitAsinh(Emitter &e, Value x) {
  Like c{e, x.getType()};
  Value a = e.abs(x), square = e.mul(a, a);
  Value near = emitLog1Plus(e, e.add(a, e.fdiv(square, e.add(c(1), e.sqrt(e.add(square, c(1)))))));
  Value far = e.add(emitLog(e, a), c(0.693147180559945309));
  return copySign(e, e.select(e.lt(a, c(1e9)), near, far), x);
}

Value emitAcosh(Emitter &e, Value x) {
  Like c{e, x.getType()};
  Value t = e.sub(x, c(1));
  Value near = emitLog1Plus(e, e.add(t, e.sqrt(e.mul(t, e.add(t, c(2))))));
  Value far = e.add(emitLog(e, x), c(0.693147180559945309));
  Value result = e.select(e.lt(x, c(1e9)), near, far);
  return e.select(e.lt(x, c(1)), c(NAN), result);
}

Value emitAtanh(Emitter &e, Value x) {
  Like c{e, x.getType()};
  Value a = e.abs(x);
  Value result = e.mul(emitLog1Plus(e, e.fdiv(e.add(a, a), e.sub(c(1), a))), c(0.5));
  result = e.select(e.eq(a, c(1)), c(INFINITY), result);
  return e.select(e.gt(a, c(1)), c(NAN), copySign(e, result, x));
}

// --- Powers and remainders, in f64 inside ---

namespace {

/// Natural logarithm of a finite positive f64 that is normal, within about 1e-13.
Value wideLog(Emitter &e, Value x) {
  Like d{e, x.getType()};
  Type i64 = e.i64Type();
  Value bits = e.bitcast(x, i64);
  Value exponent = e.shiftRightSigned(e.sub(bits, integerLike(e, x, 0x3fe6a09e667f3bcd, i64)),
                                      integerLike(e, x, 52, i64));
  Value mantissa =
      e.bitcast(e.sub(bits, e.shiftLeft(exponent, integerLike(e, x, 52, i64))), e.f64Type());
  Value s = e.fdiv(e.sub(mantissa, d(1)), e.add(mantissa, d(1))), z = e.mul(s, s);
  Value series = polynomial(
      e, z, {2.0, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17});
  Value n = e.convert(e.convert(exponent, e.i32Type()), e.f64Type());
  return e.fma(n, d(0.693147180559945309417), e.mul(s, series));
}

/// exp of an f64 in [-110, 90].
Value wideExp(Emitter &e, Value x) {
  Like d{e, x.getType()};
  Value n = e.roundEven(e.mul(x, d(1.44269504088896340736)));
  Value r = e.fma(n, d(-6.93147180559945286227e-01), x);
  r = e.fma(n, d(-2.31904681384629955842e-17), r);
  double factorial = 1;
  SmallVector<double> coefficients;
  for (int i = 0; i <= 12; ++i) {
    factorial *= i ? i : 1;
    coefficients.push_back(1 / factorial);
  }
  Value sum = d(coefficients.back());
  for (int i = 11; i >= 0; --i)
    sum = e.fma(sum, r, d(coefficients[i]));
  Value exponent = e.convert(e.convert(n, e.i32Type()), e.i64Type());
  Value power = e.shiftLeft(e.add(exponent, integerLike(e, x, 1023, e.i64Type())),
                            integerLike(e, x, 52, e.i64Type()));
  return e.mul(sum, e.bitcast(power, e.f64Type()));
}

} // namespace

Value emitPow(Emitter &e, Value x, Value y) {
  Like c{e, x.getType()};
  Value a = e.abs(x);
  Value regular = e.bitAnd(e.gt(a, c(0)), e.lt(a, c(INFINITY)));
  Value wide = e.convert(e.select(regular, a, c(1)), e.f64Type());
  Like d{e, wide.getType()};
  Value logarithm =
      e.select(regular, wideLog(e, wide), e.select(e.eq(a, c(0)), d(-INFINITY), d(INFINITY)));
  Value exponent = clamp(e, e.mul(logarithm, e.convert(y, e.f64Type())), -110, 90);
  Value result = e.convert(wideExp(e, exponent), e.f32Type());
  // e^-110 and e^90 are out of range, but infinite products must give 0 and infinity exactly.
  result =
      e.select(e.ge(exponent, d(90)), c(INFINITY), e.select(e.le(exponent, d(-110)), c(0), result));

  Value whole = e.eq(e.truncate(y), y), half = e.mul(y, c(0.5));
  Value odd = e.bitAnd(e.bitAnd(whole, e.ne(e.truncate(half), half)), e.lt(e.abs(y), c(16777216)));
  Value sign =
      e.bitAnd(e.bitcast(x, e.i32Type()), integerLike(e, x, int32_t(0x80000000), e.i32Type()));
  Value negative = e.ne(sign, integerLike(e, x, 0, e.i32Type()));
  result = e.select(e.bitAnd(odd, negative), e.neg(result), result);
  Value finiteNegative = e.bitAnd(e.lt(x, c(0)), e.gt(x, c(-INFINITY)));
  Value undefined = e.bitAnd(finiteNegative, e.bitNot(whole));
  result = e.select(undefined, c(NAN), result);
  Value isNan = e.bitOr(e.ne(x, x), e.ne(y, y));
  result = e.select(isNan, c(NAN), result);
  Value minusOneToInfinity = e.bitAnd(e.eq(x, c(-1)), e.eq(e.abs(y), c(INFINITY)));
  Value one = e.bitOr(e.bitOr(e.eq(x, c(1)), e.eq(y, c(0))), minusOneToInfinity);
  return e.select(one, c(1), result);
}

Value emitFloatModulo(Emitter &e, Value x, Value y) {
  Value wideX = e.convert(x, e.f64Type()), wideY = e.convert(y, e.f64Type());
  Like d{e, wideX.getType()}, c{e, x.getType()};
  Value quotient = e.truncate(e.fdiv(wideX, wideY));
  Value r = e.fma(e.neg(quotient), wideY, wideX);
  // A quotient of more than 53 bits leaves a multiple of the divisor; further steps, as exact, take
  // it away. Those of f32 have at most 277 bits.
  Value large = e.ge(e.abs(quotient), d(0x1p53));
  if (isa<VectorType>(x.getType()))
    large = e.reduce(Emitter::Reduction::Or, large);
  auto further = [&] {
    Value rest = r;
    for (int step = 0; step < 5; ++step)
      rest = e.fma(e.neg(e.truncate(e.fdiv(rest, wideY))), wideY, rest);
    return Values{rest};
  };
  r = e.ifElse(large, further, [&] { return Values{r}; })[0];
  // The quotient may have been rounded up across a whole number.
  Value size = e.abs(wideY), wrong = e.lt(e.mul(r, wideX), d(0));
  r = e.select(wrong, e.select(e.lt(r, d(0)), e.add(r, size), e.sub(r, size)), r);
  Value result = copySign(e, e.abs(e.convert(r, e.f32Type())), x);
  // x itself for an infinite divisor; NaN for an infinite dividend or a zero divisor.
  result = e.select(e.bitAnd(e.eq(e.abs(y), c(INFINITY)), e.lt(e.abs(x), c(INFINITY))), x, result);
  Value undefined =
      e.bitOr(e.bitOr(e.eq(y, c(0)), e.eq(e.abs(x), c(INFINITY))), e.bitOr(e.ne(x, x), e.ne(y, y)));
  return e.select(undefined, c(NAN), result);
}

} // namespace dovetail::codegen
