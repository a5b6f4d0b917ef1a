// SPDX-License-Identifier: Apache-2.0
//
// Recognition: goes over @main and the bodies in it once for each family, wraps what it finds, and
// simplifies afterwards, so that transposes which met are merged and what is dead goes.
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include "graph/Passes.h"
#include "graph/recognize/Pattern.h"

using namespace mlir;

namespace dovetail::graph {
namespace {

/// From the last op to the first: wholes before what could be a part of them.
void apply(Block &block, Recognizer recognizer) {
  for (Operation *op = &block.back(); op;) {
    Operation *composite = infoOf(op) ? recognizer(op) : nullptr;
    if (!composite && isa<IfOp, LoopOp, ScanOp>(op))
      for (Region &region : op->getRegions())
        apply(region.front(), recognizer);
    op = (composite ? composite : op)->getPrevNode();
  }
}

} // namespace

Status recognize(ModuleOp module) {
  auto function = module.lookupSymbol<func::FuncOp>("main");
  if (!function || function.isExternal())
    return badInput("the module has no function @main with a body");
  Block &block = function.getBody().front();
  for (Recognizer recognizer :
       {recognizeSoftmax, recognizeNormalization, recognizeActivation, recognizeAttention})
    apply(block, recognizer);
  return simplify(module);
}

} // namespace dovetail::graph
