// SPDX-License-Identifier: Apache-2.0
//
// The position along one dimension for all lanes of a vector: the same for all, evenly spaced, or
// any. Keeping track of which it is decides whether an operand is read as one element, as a vector
// or element by element.
#pragma once

#include "codegen/Emitter.h"

namespace dovetail::codegen {

struct PulledIndex {
  Value scalar;      ///< i64; of lane 0 where evenly spaced
  int64_t step = 0;  ///< from lane to lane
  Value vector = {}; ///< all lanes, i64; null where evenly spaced

  bool uniform() const { return !vector && step == 0; }
};

/// Arithmetic on positions; results are evenly spaced where that can be told.
class PulledArithmetic {
public:
  explicit PulledArithmetic(Emitter &emitter) : e(emitter) {}
  PulledIndex constant(int64_t number) { return {e.index(number)}; }
  PulledIndex add(const PulledIndex &a, const PulledIndex &b);
  PulledIndex add(const PulledIndex &a, Value b);
  PulledIndex mul(const PulledIndex &a, Value factor);
  /// By a positive number; positions not negative.
  PulledIndex div(const PulledIndex &a, Value divisor);
  PulledIndex rem(const PulledIndex &a, Value divisor);
  /// Applies `map` to the scalar or to all lanes.
  PulledIndex apply(const PulledIndex &a, llvm::function_ref<Value(Value)> map);
  Value lanes(const PulledIndex &a);
  /// Whether 0 <= position < extent: i1, or a vector of them.
  Value within(const PulledIndex &a, Value extent);

private:
  Emitter &e;
};

} // namespace dovetail::codegen
