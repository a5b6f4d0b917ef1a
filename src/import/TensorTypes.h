// SPDX-License-Identifier: Apache-2.0
//
// Element types and tensor types between the forms of ONNX, of the door and of MLIR: the C types of
// provider.h are the common one.
#pragma once

#include <string>

#include "mlir/IR/BuiltinTypes.h"

#include "dovetail/provider.h"
#include "import/ModelFile.h"

namespace dovetail::importer {

/// ONNX's name: "tensor(float)".
std::string onnxTypeName(dvt_type type);

/// Elements up to this many bytes are copied into the attribute; larger ones are referred to.
constexpr size_t kInlineBytes = 4096;

/// The value of a constant. Large data stay where they are, unaligned as they may be, and are kept
/// alive by the attribute's blob; `name` names the blob.
mlir::ElementsAttr elementsOf(mlir::MLIRContext *context, const TensorData &data,
                              llvm::StringRef name);

} // namespace dovetail::importer
