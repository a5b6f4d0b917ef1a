// SPDX-License-Identifier: Apache-2.0
//
// What rules of several ops write: one op after the other, and conditions that a run must fulfil.
#pragma once

#include <optional>
#include <string_view>

#include "import/OpEmitter.h"

namespace dovetail::importer {

/// Runs steps that each give a value, until one fails; later ones see the failure and do nothing.
class Chain {
public:
  explicit Chain(OpEmitter &emitter) : emitter(emitter) {}
  mlir::Value operator()(std::string_view op, llvm::ArrayRef<mlir::Value> operands,
                         AttributeMap attributes = {}) {
    if (error)
      return {};
    return take(emitter.emit(op, operands, std::move(attributes)));
  }
  mlir::Value take(Expected<mlir::Value> value) {
    if (error)
      return {};
    if (value)
      return *value;
    error = value.takeError();
    return {};
  }
  Expected<mlir::Value> result(mlir::Value value) {
    return error ? Expected<mlir::Value>(*error) : Expected<mlir::Value>(value);
  }

  std::optional<Error> error;

private:
  OpEmitter &emitter;
};

/// The value where the condition, bool[], holds; else an error when running, with the message.
mlir::Value guarded(OpEmitter &emitter, mlir::Value value, mlir::Value condition,
                    llvm::StringRef message);

} // namespace dovetail::importer
