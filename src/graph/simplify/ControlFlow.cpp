// SPDX-License-Identifier: Apache-2.0
//
// Control flow that is none: conditionals whose condition turned out to be known, loops known to
// run not at all, and values that a loop carries along unchanged.
#include "graph/simplify/Rewrite.h"

#include "llvm/ADT/BitVector.h"

using namespace mlir;

namespace dovetail::graph {
namespace {

std::optional<int64_t> knownNumber(Value value) {
  if (isAbsent(value))
    return std::nullopt;
  std::optional<std::vector<int64_t>> numbers = constantIntegers(value);
  return numbers && numbers->size() == 1 ? std::optional(numbers->front()) : std::nullopt;
}

/// Results that have the types of what takes their place.
LogicalResult replaceAll(Operation *op, ValueRange values, PatternRewriter &rewriter) {
  if (op->getResultTypes() != values.getTypes()) {
    // Extents may be known better inside. Users are inferred again.
    for (auto [result, value] : llvm::zip(op->getResults(), values))
      result.setType(value.getType());
  }
  rewriter.replaceOp(op, values);
  return success();
}

LogicalResult takeKnownBranch(Operation *op, PatternRewriter &rewriter) {
  std::optional<int64_t> condition = knownNumber(op->getOperand(0));
  if (!condition)
    return failure();
  Block &branch = op->getRegion(*condition ? 0 : 1).front();
  Operation *yield = branch.getTerminator();
  SmallVector<Value> values(yield->getOperands());
  rewriter.eraseOp(yield);
  rewriter.inlineBlockBefore(&branch, op);
  return replaceAll(op, values, rewriter);
}

/// The op without the carried values of these numbers, which nobody reads.
void dropCarried(Operation *op, PatternRewriter &rewriter, unsigned firstOperand,
                 unsigned firstYielded, const llvm::BitVector &dropped) {
  OperationState state(op->getLoc(), op->getName());
  state.addAttributes(op->getAttrs());
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (i < firstOperand || i - firstOperand >= dropped.size() || !dropped[i - firstOperand])
      state.operands.push_back(operand);
  SmallVector<Value> kept;
  for (OpResult result : op->getResults())
    if (result.getResultNumber() >= dropped.size() || !dropped[result.getResultNumber()]) {
      state.types.push_back(result.getType());
      kept.push_back(result);
    }
  state.addRegion();
  Operation *made = rewriter.create(state);
  Region &region = made->getRegion(0);
  rewriter.inlineRegionBefore(op->getRegion(0), region, region.end());
  Block &body = region.front();
  rewriter.modifyOpInPlace(body.getTerminator(), [&] {
    for (unsigned i = dropped.size(); i-- > 0;)
      if (dropped[i])
        body.getTerminator()->eraseOperand(firstYielded + i);
  });
  for (unsigned i = dropped.size(); i-- > 0;)
    if (dropped[i])
      body.eraseArgument(firstOperand + i);
  for (auto [before, after] : llvm::zip(kept, made->getResults()))
    rewriter.replaceAllUsesWith(before, after);
  rewriter.eraseOp(op);
}

/// What is yielded as it was passed in is the same in all iterations, and after them: users read
/// what was there before.
LogicalResult captureUnchanged(Operation *op, PatternRewriter &rewriter, unsigned firstOperand,
                               unsigned firstYielded, unsigned carried) {
  Block &body = op->getRegion(0).front();
  llvm::BitVector unchanged(carried);
  for (unsigned i = 0; i < carried; ++i) {
    BlockArgument argument = body.getArgument(firstOperand + i);
    Value initial = op->getOperand(firstOperand + i);
    if (body.getTerminator()->getOperand(firstYielded + i) != argument ||
        argument.getType() != initial.getType() || op->getResult(i).getType() != initial.getType())
      continue;
    rewriter.replaceAllUsesWith(op->getResult(i), initial);
    rewriter.replaceAllUsesWith(argument, initial);
    unchanged.set(i);
  }
  if (unchanged.none())
    return failure();
  dropCarried(op, rewriter, firstOperand, firstYielded, unchanged);
  return success();
}

LogicalResult simplifyLoop(Operation *op, PatternRewriter &rewriter) {
  unsigned carried = op->getNumOperands() - 2;
  std::optional<int64_t> trips = knownNumber(op->getOperand(0)),
                         condition = knownNumber(op->getOperand(1));
  bool neverRuns = (trips && *trips <= 0) || (condition && *condition == 0);
  if (neverRuns && op->getNumResults() == carried) {
    SmallVector<Value> values(op->getOperands().drop_front(2));
    return replaceAll(op, values, rewriter);
  }
  return captureUnchanged(op, rewriter, 2, 1, carried);
}

LogicalResult simplifyScan(Operation *op, PatternRewriter &rewriter) {
  auto carried =
      op->getNumOperands() - static_cast<unsigned>(intsAttribute(op, "scan_input_axes").size());
  return captureUnchanged(op, rewriter, 0, 0, carried);
}

} // namespace

void addControlFlowRewrites(RewritePatternSet &set) {
  addRewrite(set, "if", takeKnownBranch);
  addRewrite(set, "loop", simplifyLoop);
  addRewrite(set, "scan", simplifyScan);
}

} // namespace dovetail::graph
