// SPDX-License-Identifier: Apache-2.0
//
// Recurrent ops through the op-set versions: output_sequence of version 1 only says whether the
// first output is used. The number of hidden units is made explicit.
#include "import/NodeImport.h"

namespace dovetail::importer {
namespace {

Status recurrent(NodeImport &node) {
  node.erase("output_sequence");
  mlir::Value recurrence = node.operand(2);
  if (node.has("hidden_size") || !recurrence || node.emitter.rank(recurrence) != 3)
    return Status::success();
  if (const Extent &hidden = node.emitter.shape(recurrence)[2]; hidden.isStatic())
    node.set("hidden_size", hidden.value());
  return Status::success();
}

} // namespace

std::vector<NamedRule> recurrentRules() {
  return {{"LSTM", recurrent}, {"GRU", recurrent}, {"RNN", recurrent}};
}

} // namespace dovetail::importer
