// SPDX-License-Identifier: Apache-2.0
//
// The stages of the graph room: as passes for dovetail-opt, and as the one function the driver
// calls. A pass has the same name in its file, its factory, its flag and its test.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "support/Expected.h"
#include "support/Problem.h"

namespace mlir {
class ModuleOp;
class Pass;
} // namespace mlir

namespace dovetail::graph {

/// Computes a problem of one op from the elements of its inputs (in the order of Problem::inputs);
/// gives the elements of its outputs. Extents of the problem are static.
using Evaluator = std::function<Expected<std::vector<std::vector<uint8_t>>>(
    const Problem &problem, std::vector<const void *> inputs)>;

struct GraphOptions {
  SymbolValues dims;                                 ///< symbols to fix before anything else
  bool fold = true;                                  ///< evaluate ops on constants
  bool simplify = true;                              ///< rewrite to fewer and simpler ops
  bool recognize = true;                             ///< wrap patterns into composites
  std::vector<std::pair<uint32_t, uint32_t>> states; ///< for growStates
  /// A folded result may be larger than the constants it replaces by this much.
  uint64_t mostGrowthBytes = 1 << 20;
};

/// Shape inference, folding, simplification and recognition, to a fixed point. Without an evaluator
/// nothing is folded.
Status optimizeGraph(mlir::ModuleOp module, const GraphOptions &options,
                     const Evaluator &evaluator);

/// Folds once over the module; says whether anything changed.
Expected<bool> foldConstants(mlir::ModuleOp module, const GraphOptions &options,
                             const Evaluator &evaluator);
/// Rewrites until nothing changes.
Status simplify(mlir::ModuleOp module);
/// Names of the inputs and outputs of a module's @main.
void borderNames(mlir::ModuleOp module, std::vector<std::string> &inputs,
                 std::vector<std::string> &outputs);

/// An input that an output becomes after each run.
struct GraphState {
  uint32_t input = 0, output = 0;
  bool grows = false; ///< the output is the input and something behind it, along the first axis
  /// Dimension of the model's tensors that is each dimension of the graph's; empty where none
  /// moved.
  std::vector<int64_t> order;
};
/// Turns the borders of those pairs of an input and an output that grow, so that they do so along
/// the outermost dimension, and notes all pairs in the module.
Status growStates(mlir::ModuleOp module, const std::vector<std::pair<uint32_t, uint32_t>> &pairs);
/// What growStates noted.
std::vector<GraphState> statesOf(mlir::ModuleOp module);

/// Wraps patterns into composites.
Status recognize(mlir::ModuleOp module);

/// --dvt-infer-shapes, with option dims=N=1,H=224
std::unique_ptr<mlir::Pass> createInferShapesPass();
/// --dvt-fold-constants
std::unique_ptr<mlir::Pass> createFoldConstantsPass(Evaluator evaluator);
/// --dvt-simplify
std::unique_ptr<mlir::Pass> createSimplifyPass();
/// --dvt-recognize
std::unique_ptr<mlir::Pass> createRecognizePass();
/// --dvt-optimize: all of them
std::unique_ptr<mlir::Pass> createOptimizePass(Evaluator evaluator);
/// Registers the passes' flags.
void registerGraphPasses(const Evaluator &evaluator);

} // namespace dovetail::graph
