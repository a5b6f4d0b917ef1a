// SPDX-License-Identifier: Apache-2.0
//
// ONNX in, graph dialect out. The result is a module with one function @main, whose ops are those
// of the newest ONNX definitions whatever op set the model was written for. Arguments and results
// carry their ONNX names in the attribute dvt.name; ops carry the node's name as location. Weights
// are not read: constants larger than a few KiB refer to the mapped file (or to the lent bytes),
// unaligned, and keep it mapped for as long as the context lives.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include "dovetail/provider.h"
#include "support/Expected.h"
#include "support/Extent.h"

namespace dovetail::importer {

struct ImportOptions {
  /// Values for symbolic dimensions, by the model's name for them or the graph's symbol ("batch",
  /// "x_0").
  std::map<std::string, int64_t> dims;
  /// Extents of whole inputs, by name; for inputs whose shape the model does not state, too.
  /// They must agree with what it states, and with each other in dimensions of the same name.
  std::map<std::string, std::vector<Extent>> shapes;
  /// Element types of what will be given for inputs, by name, so that a wrong one is refused before
  /// anything is compiled. 16 bits without a sign may stand for bf16.
  std::map<std::string, dvt_type> types;
  /// Inputs that stay inputs although an initializer gives them a default.
  std::set<std::string> keepInputs;
  /// Bounds on nodes once functions and bodies are expanded, and on those in bodies of loops that
  /// are imported again because an iteration changes an extent; such a pass itself counts, too.
  size_t mostNodes = 1'000'000, mostRepeatedNodes = 4'000'000;
  /// Takes what is odd about the model but no reason to refuse it.
  std::function<void(const std::string &)> warn;
};

/// Imports the model in a file, external data beside it included. BadInput with one message that
/// names what is wrong with the model or not supported; the context is left with unused attributes
/// at most.
Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importOnnx(const std::string &path, mlir::MLIRContext &context, const ImportOptions &options = {});

/// Imports a model from memory. The bytes must stay for as long as the context lives, or `owner`
/// keep them. External data are looked for in `folder`; without one they are refused.
Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importOnnx(std::string_view bytes, std::shared_ptr<const void> owner, mlir::MLIRContext &context,
           const ImportOptions &options = {}, const std::string &folder = {});

} // namespace dovetail::importer
