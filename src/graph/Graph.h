// SPDX-License-Identifier: Apache-2.0
//
// A graph as one value: the context and the module in it. Needs no MLIR header, so that code which
// only carries graphs from stage to stage stays light.
#pragma once

#include <memory>
#include <string>

namespace mlir {
class MLIRContext;
class ModuleOp;
} // namespace mlir

namespace dovetail::graph {

class Graph {
public:
  /// A context with the dialects of graphs loaded, and no module yet.
  Graph();
  ~Graph();
  Graph(Graph &&) noexcept;
  Graph &operator=(Graph &&) noexcept;

  mlir::MLIRContext &context() const;
  bool hasModule() const;
  mlir::ModuleOp module() const;
  /// Takes over a module of this context.
  void setModule(mlir::ModuleOp module);
  /// The textual form; elements of large constants are left out.
  std::string text() const;

private:
  struct Storage;
  std::unique_ptr<Storage> storage;
};

} // namespace dovetail::graph
