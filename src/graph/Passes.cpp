// SPDX-License-Identifier: Apache-2.0
//
// The stages as MLIR passes, and their order when a graph is optimised.
#include "graph/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

#include "graph/GraphDialect.h"
#include "graph/InferShapes.h"

using namespace mlir;

namespace dovetail::graph {
namespace {

/// Turns an error into a diagnostic at the module.
LogicalResult report(ModuleOp module, const Error &error) {
  return module.emitError() << error.message;
}

Expected<SymbolValues> readDims(ArrayRef<std::string> texts) {
  SymbolValues values;
  for (StringRef text : texts) {
    auto [name, number] = text.split('=');
    int64_t value;
    if (name.empty() || number.getAsInteger(10, value))
      return badInput("cannot read '{}', expected a symbol and a number such as N=1", text.str());
    values[name.str()] = value;
  }
  return values;
}

struct InferShapesPass : PassWrapper<InferShapesPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InferShapesPass)
  InferShapesPass() = default;
  InferShapesPass(const InferShapesPass &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "dvt-infer-shapes"; }
  StringRef getDescription() const override { return "set the types of all values"; }
  void runOnOperation() override {
    Expected<SymbolValues> values = readDims(dims);
    Status status = !values ? Status(values.takeError()) : Status::success();
    if (status && !values->empty())
      status = setDims(getOperation(), *values);
    else if (status)
      if (Expected<GraphFacts> facts = inferShapes(getOperation()); !facts)
        status = facts.takeError();
    if (!status && failed(report(getOperation(), status.error())))
      signalPassFailure();
  }
  ListOption<std::string> dims{*this, "dims", llvm::cl::desc("symbols to fix, such as N=1")};
};

struct FoldConstantsPass : PassWrapper<FoldConstantsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FoldConstantsPass)
  explicit FoldConstantsPass(Evaluator evaluator) : evaluator(std::move(evaluator)) {}
  StringRef getArgument() const override { return "dvt-fold-constants"; }
  StringRef getDescription() const override { return "evaluate ops on constants"; }
  void runOnOperation() override {
    if (Expected<bool> changed = foldConstants(getOperation(), GraphOptions(), evaluator); !changed)
      if (failed(report(getOperation(), changed.error())))
        signalPassFailure();
  }
  Evaluator evaluator;
};

struct SimplifyPass : PassWrapper<SimplifyPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SimplifyPass)
  StringRef getArgument() const override { return "dvt-simplify"; }
  StringRef getDescription() const override { return "rewrite to fewer and simpler ops"; }
  void runOnOperation() override {
    if (Status status = simplify(getOperation()); !status)
      if (failed(report(getOperation(), status.error())))
        signalPassFailure();
  }
};

struct RecognizePass : PassWrapper<RecognizePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RecognizePass)
  StringRef getArgument() const override { return "dvt-recognize"; }
  StringRef getDescription() const override { return "wrap patterns into composites"; }
  void runOnOperation() override {
    if (Status status = recognize(getOperation()); !status)
      if (failed(report(getOperation(), status.error())))
        signalPassFailure();
  }
};

struct OptimizePass : PassWrapper<OptimizePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(OptimizePass)
  explicit OptimizePass(Evaluator evaluator) : evaluator(std::move(evaluator)) {}
  StringRef getArgument() const override { return "dvt-optimize"; }
  StringRef getDescription() const override { return "all stages to a fixed point"; }
  void runOnOperation() override {
    if (Status status = optimizeGraph(getOperation(), GraphOptions(), evaluator); !status)
      if (failed(report(getOperation(), status.error())))
        signalPassFailure();
  }
  Evaluator evaluator;
};

} // namespace

Status optimizeGraph(ModuleOp module, const GraphOptions &options, const Evaluator &evaluator) {
  if (!options.dims.empty()) {
    if (Status status = setDims(module, options.dims); !status)
      return status;
  } else if (Expected<GraphFacts> facts = inferShapes(module); !facts) {
    return facts.takeError();
  }
  // Folding makes operands constant that simplification looks at, and the reverse. Each round takes
  // in at least one op, and real models need three.
  constexpr int kMostRounds = 8;
  bool folded = options.fold;
  for (int round = 0; round < kMostRounds; ++round) {
    if (options.simplify)
      if (Status status = simplify(module); !status)
        return status;
    if (!folded)
      break;
    Expected<bool> changed = foldConstants(module, options, evaluator);
    if (!changed)
      return changed.takeError();
    folded = *changed;
    if (!folded)
      break;
  }
  if (!options.states.empty()) {
    if (Status status = growStates(module, options.states); !status)
      return status;
    if (Status status = simplify(module); !status)
      return status;
  }
  if (options.recognize)
    if (Status status = recognize(module); !status)
      return status;
  if (Expected<GraphFacts> facts = inferShapes(module); !facts)
    return facts.takeError();
  if (failed(verify(module)))
    return internalError("the graph does not verify after it was simplified");
  return Status::success();
}

std::unique_ptr<Pass> createInferShapesPass() { return std::make_unique<InferShapesPass>(); }
std::unique_ptr<Pass> createFoldConstantsPass(Evaluator evaluator) {
  return std::make_unique<FoldConstantsPass>(std::move(evaluator));
}
std::unique_ptr<Pass> createSimplifyPass() { return std::make_unique<SimplifyPass>(); }
std::unique_ptr<Pass> createRecognizePass() { return std::make_unique<RecognizePass>(); }
std::unique_ptr<Pass> createOptimizePass(Evaluator evaluator) {
  return std::make_unique<OptimizePass>(std::move(evaluator));
}

void registerGraphPasses(const Evaluator &evaluator) {
  registerPass(createInferShapesPass);
  registerPass([evaluator] { return createFoldConstantsPass(evaluator); });
  registerPass(createSimplifyPass);
  registerPass(createRecognizePass);
  registerPass([evaluator] { return createOptimizePass(evaluator); });
}

} // namespace dovetail::graph
