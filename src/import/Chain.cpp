// SPDX-License-Identifier: Apache-2.0
//
// A condition is a branch that is an error to take; where it turns out to be known, nothing of it
// is left.
#include "import/Chain.h"

#include "graph/GraphDialect.h"

using namespace mlir;

namespace dovetail::importer {

Value guarded(OpEmitter &emitter, Value value, Value condition, StringRef message) {
  OperationState state(emitter.location, graph::IfOp::getOperationName());
  state.addOperands(condition);
  state.addTypes(value.getType());
  state.addRegion()->emplaceBlock();
  state.addRegion()->emplaceBlock();
  Operation *conditional = emitter.builder.create(state);
  OpBuilder::InsertionGuard guard(emitter.builder);
  emitter.builder.setInsertionPointToEnd(&conditional->getRegion(0).front());
  graph::YieldOp::create(emitter.builder, emitter.location, value);
  emitter.builder.setInsertionPointToEnd(&conditional->getRegion(1).front());
  OperationState refusal(emitter.location, graph::RefuseOp::getOperationName());
  refusal.addAttribute("message", emitter.builder.getStringAttr(message));
  refusal.addTypes(value.getType());
  graph::YieldOp::create(emitter.builder, emitter.location,
                         emitter.builder.create(refusal)->getResults());
  graph::ValueFacts facts;
  facts.type = emitter.type(value);
  facts.shape = emitter.shape(value);
  emitter.declare(conditional->getResult(0), std::move(facts));
  return conditional->getResult(0);
}

} // namespace dovetail::importer
