// SPDX-License-Identifier: Apache-2.0
//
// LSTM, GRU and RNN as the native kernels see them: what an op and its operands ask for, and how
// sums are arranged. Gates that are computed together form a pass; its hidden units are cut into
// panels of `blocks` vectors, and the vectors of a panel lie by unit block, then by gate. Weights
// are packed by panel, and sums of the whole input lie in the same order, so that one product
// serves the input and the recurrence and gates of one unit meet in registers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/schedule/Schedule.h"

namespace dovetail::codegen {

/// A function of gates, states or candidates; alpha and beta where the function has them.
struct RecurrentFunction {
  enum class Kind {
    Sigmoid,
    Tanh,
    Relu,
    Affine,
    LeakyRelu,
    ThresholdedRelu,
    ScaledTanh,
    HardSigmoid,
    Elu,
    Softsign,
    Softplus
  };
  Kind kind = Kind::Tanh;
  double alpha = 0, beta = 0;
  bool operator==(const RecurrentFunction &) const = default;
};

struct Recurrent {
  /// GruLinear: the reset gate acts after the product with the state (linear_before_reset).
  enum class Cell { Rnn, Gru, GruLinear, Lstm };
  /// An operand that may be absent, or known to hold one number everywhere.
  struct Operand {
    std::optional<uint32_t> value; ///< of the problem, an input of it
    double uniform = 0;            ///< where `value` is not there
  };

  Cell cell = Cell::Rnn;
  dvt_extent steps{}, batch{};
  int64_t input = 0, hidden = 0, directions = 1, gates = 1;
  bool reverseFirst = false, batchFirst = false, coupled = false;
  double clip = 0; ///< 0: none
  unsigned functionCount = 1;
  std::vector<RecurrentFunction> functions; ///< functionCount for each direction
  uint32_t x = 0, w = 0, r = 0;             ///< problem values
  Operand bias, hidden0, cell0, peepholes;
  std::optional<uint32_t> lengths;                ///< an input
  std::vector<int64_t> knownLengths;              ///< of a literal; empty where all are whole
  std::optional<uint32_t> sequence, lastH, lastC; ///< results that are wanted

  /// Nothing where the problem has no such op; BadInput with a reason where it has and native
  /// cannot serve it.
  static std::optional<Expected<Recurrent>> find(const ProblemReader &problem);

  bool sameFunctions() const;
  bool hasLengths() const { return lengths || !knownLengths.empty(); }
};

/// The arrangement of sums, see above. All counts are of f32 elements.
struct RecurrentShape {
  struct Pass {
    std::vector<unsigned> gates; ///< as ONNX numbers them
    unsigned blocks = 1;         ///< of hidden units in a panel
    int64_t panels = 0;
    int64_t column = 0; ///< of its first sum in a row of sums
    unsigned vectors() const { return unsigned(gates.size()) * blocks; }
  };
  int64_t lanes = 16;
  std::vector<Pass> passes;
  int64_t stateRow = 0; ///< hidden units, rounded up
  int64_t sumRow = 0;   ///< all sums of one step of one sequence

  RecurrentShape(const Recurrent &net, const Machine &machine);
  /// Of packed weights with `depth` inputs, for one direction.
  int64_t packedElements(int64_t depth) const { return sumRow * depth; }
};

/// Decisions of a schedule: "recurrent:b24:c4" computes the input's share of four steps of 24
/// sequences before it takes these steps, "recurrent:b24:whole" that of all steps beforehand.
struct RecurrentPlan {
  int64_t sequences = 1; ///< of a task at most
  int64_t chunk = 0;     ///< steps; 0 for whole

  std::string text() const;
  static RecurrentPlan read(const Schedule &schedule);
  /// f32 elements of a worker's scratch.
  int64_t scratchElements(const Recurrent &net, const RecurrentShape &shape) const;
};

} // namespace dovetail::codegen
