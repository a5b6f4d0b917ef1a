// SPDX-License-Identifier: Apache-2.0
//
// dovetail-opt: reads a graph in MLIR's textual form, runs the passes named on the command line and
// prints the result, as mlir-opt does.
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

#include "graph/GraphDialect.h"
#include "graph/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<dovetail::graph::GraphDialect, mlir::func::FuncDialect>();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  dovetail::graph::registerGraphPasses({});
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Dovetail graph passes\n", registry));
}
