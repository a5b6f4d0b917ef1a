// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of one step on registers: sums of the gates come in, states go out. Formulas are
// those of ONNX's LSTM, GRU and RNN, version 22.
#pragma once

#include <utility>

#include "codegen/Emitter.h"
#include "codegen/schedule/recurrent/Recurrent.h"

namespace dovetail::codegen {

class CellEmission {
public:
  /// `functions` are those of one direction.
  CellEmission(Emitter &emitter, const Recurrent &net, const RecurrentFunction *functions)
      : e(emitter), net(net), functions(functions) {}

  Value rnn(Value sum) { return apply(functions[0], clipped(sum)); }
  /// Update or reset gate of gru; functions[0] of lstm.
  Value gate(Value sum) { return apply(functions[0], clipped(sum)); }
  Value candidate(Value sum) { return apply(functions[1], clipped(sum)); }
  /// The next state of gru.
  Value gru(Value update, Value candidate, Value before) {
    return e.fma(update, e.sub(before, candidate), candidate);
  }
  /// Sums of input, output, forget and cell gate and the cell's state to hidden and cell state.
  /// `peepholes` are three vectors or none.
  std::pair<Value, Value> lstm(const Values &sums, Value cellBefore, const Values &peepholes);

private:
  Value clipped(Value sum);
  Value apply(const RecurrentFunction &function, Value x);

  Emitter &e;
  const Recurrent &net;
  const RecurrentFunction *functions;
};

} // namespace dovetail::codegen
