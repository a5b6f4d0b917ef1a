// SPDX-License-Identifier: Apache-2.0
//
// Small models for the tests of the importer, written in libonnx's text form, and the graph they
// import to as text.
#pragma once

#include <memory>
#include <string>

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>

#include "import/Importer.h"

namespace dovetail::importer {

/// A model from its text form.
inline onnx::ModelProto parseModel(const std::string &text) {
  onnx::ModelProto model;
  auto status = onnx::OnnxParser::Parse(model, text.c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage() << "\n" << text;
  return model;
}

/// The graph given as text, in a model for version `opSet`.
inline onnx::ModelProto graphModel(const std::string &graph, int opSet = 21) {
  return parseModel("<ir_version: 8, opset_import: [\"\" : " + std::to_string(opSet) + "]>\n" +
                    graph);
}

inline Expected<mlir::OwningOpRef<mlir::ModuleOp>> importModel(const onnx::ModelProto &model,
                                                               mlir::MLIRContext &context,
                                                               const ImportOptions &options = {}) {
  auto bytes = std::make_shared<std::string>(model.SerializeAsString());
  return importOnnx(*bytes, bytes, context, options);
}

/// The imported graph as text, or "error: " and the message.
inline std::string importedText(const onnx::ModelProto &model, const ImportOptions &options = {}) {
  mlir::MLIRContext context;
  auto module = importModel(model, context, options);
  if (!module)
    return "error: " + module.error().message;
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*module)->print(stream);
  return text;
}

} // namespace dovetail::importer
