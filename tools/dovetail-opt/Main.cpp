// SPDX-License-Identifier: Apache-2.0
//
// dovetail-opt: reads a graph in MLIR's textual form, runs the passes named on the command line and
// prints the result, as mlir-opt does. Constants are folded by the reference provider where that is
// installed beside this binary; without it only views of constants fold.
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

#include "driver/ReferenceEvaluator.h"
#include "graph/GraphDialect.h"
#include "graph/Passes.h"

using namespace dovetail;

static graph::Evaluator referenceEvaluator() {
  PluginSet::Options options;
  options.folders = {defaultPluginFolder()};
  options.only = {"reference"};
  auto plugins = std::make_shared<const PluginSet>(PluginSet::load(options));
  if (!plugins->find("reference"))
    return {};
  return [plugins](const Problem &problem, std::vector<const void *> inputs) {
    return evaluateOnce(*plugins->find("reference"), Target::host(1), problem, inputs);
  };
}

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<dovetail::graph::GraphDialect, mlir::func::FuncDialect>();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  dovetail::graph::registerGraphPasses(referenceEvaluator());
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Dovetail graph passes\n", registry));
}
