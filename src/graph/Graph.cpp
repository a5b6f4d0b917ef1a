// SPDX-License-Identifier: Apache-2.0
//
// Owns context and module, in the order in which they must be destroyed.
#include "graph/Graph.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include "graph/GraphDialect.h"

namespace dovetail::graph {

struct Graph::Storage {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

Graph::Graph() : storage(std::make_unique<Storage>()) {
  storage->context.loadDialect<GraphDialect, mlir::func::FuncDialect>();
}
Graph::~Graph() = default;
Graph::Graph(Graph &&) noexcept = default;
Graph &Graph::operator=(Graph &&) noexcept = default;

mlir::MLIRContext &Graph::context() const { return storage->context; }
bool Graph::hasModule() const { return bool(storage->module); }
mlir::ModuleOp Graph::module() const { return *storage->module; }
void Graph::setModule(mlir::ModuleOp module) { storage->module = module; }

std::string Graph::text() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  mlir::OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(16).elideLargeResourceString(64);
  storage->module->print(stream, flags);
  return text;
}

} // namespace dovetail::graph
