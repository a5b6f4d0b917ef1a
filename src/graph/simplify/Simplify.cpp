// SPDX-License-Identifier: Apache-2.0
//
// Simplification: small integer tensors whose elements the shape rules know become constants, then
// all rewrites run greedily and equal ops become one, until nothing changes. What nobody uses goes.
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include "graph/InferShapes.h"
#include "graph/Passes.h"
#include "graph/simplify/Rewrite.h"

using namespace mlir;

namespace dovetail::graph {
namespace {

std::optional<std::vector<int64_t>> knownNumbers(const ValueFacts &facts) {
  if (!facts.elements || facts.constant)
    return std::nullopt;
  std::vector<int64_t> numbers;
  for (const std::optional<Extent> &element : *facts.elements) {
    if (!element || !element->isStatic())
      return std::nullopt;
    numbers.push_back(element->value());
  }
  return numbers;
}

bool makeConstant(Operation *op, OpResult result, const ValueFacts &facts) {
  std::optional<std::vector<int64_t>> numbers = knownNumbers(facts);
  RankedTensorType type = typeOf(result);
  if (!numbers || result.use_empty() || !type || !type.hasStaticShape())
    return false;
  OpBuilder builder(op);
  unsigned bits = type.getElementTypeBitWidth();
  SmallVector<APInt> elements;
  for (int64_t number : *numbers)
    elements.emplace_back(bits, uint64_t(number), /*isSigned=*/true, /*implicitTrunc=*/true);
  auto value = DenseElementsAttr::get(type, ArrayRef<APInt>(elements));
  result.replaceAllUsesWith(ConstantOp::create(builder, op->getLoc(), type, value).getResult());
  return true;
}

bool replaceKnownValues(ModuleOp module, const GraphFacts &facts) {
  std::vector<Operation *> ops;
  module.walk([&](Operation *op) {
    if (infoOf(op))
      ops.push_back(op);
  });
  bool changed = false;
  for (Operation *op : ops)
    for (OpResult result : op->getResults())
      if (auto known = facts.find(result); known != facts.end())
        changed |= makeConstant(op, result, known->second);
  return changed;
}

FrozenRewritePatternSet makeRewrites(MLIRContext *context) {
  RewritePatternSet set(context);
  addViewRewrites(set);
  addMovementRewrites(set);
  addAttentionRewrites(set);
  addUnitExtentRewrites(set);
  addArithmeticRewrites(set);
  addQuantizationRewrites(set);
  addScaleRewrites(set);
  addControlFlowRewrites(set);
  return FrozenRewritePatternSet(std::move(set));
}

} // namespace

Status simplify(ModuleOp module) {
  FrozenRewritePatternSet rewrites = makeRewrites(module.getContext());
  GreedyRewriteConfig config;
  // Merging constants by content would hash all weights again and again; CSE below does it once.
  config.enableConstantCSE(false).enableFolding(false);
  constexpr int kMostRounds = 16;
  for (int round = 0; round < kMostRounds; ++round) {
    Expected<GraphFacts> facts = inferShapes(module);
    if (!facts)
      return facts.takeError();
    bool known = replaceKnownValues(module, *facts), rewritten = false, merged = false;
    (void)applyPatternsGreedily(module, rewrites, config, &rewritten);
    IRRewriter rewriter(module.getContext());
    DominanceInfo dominance(module);
    eliminateCommonSubExpressions(rewriter, dominance, module, &merged);
    if (!known && !rewritten && !merged)
      break;
  }
  Expected<GraphFacts> facts = inferShapes(module);
  return facts ? Status::success() : Status(facts.takeError());
}

} // namespace dovetail::graph
