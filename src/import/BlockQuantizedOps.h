// SPDX-License-Identifier: Apache-2.0
//
// Ops of com.microsoft whose weights are quantised in blocks, imported as DequantizeLinear of the
// packed constant and the plain op. The weights stay where the file has them, two to a byte.
#pragma once

#include "import/NodeImport.h"

namespace dovetail::importer {

/// Y = A * dequantised(B)^T + bias. B holds N rows of K numbers of `bits` bits, in blocks of
/// `block_size`; see onnxruntime's docs/ContribOperators.md.
Status importMatMulNBits(NodeImport &node);

} // namespace dovetail::importer
