// SPDX-License-Identifier: Apache-2.0
//
// Attributes of graph ops in the form that problems and shape rules have them.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"

#include "support/Problem.h"

namespace dovetail::graph {

/// Plain attributes by ONNX name. Tensors, and names with a dialect prefix, are left out; lists of
/// strings become one text with commas.
AttributeMap plainAttributes(mlir::DictionaryAttr attributes);

} // namespace dovetail::graph
