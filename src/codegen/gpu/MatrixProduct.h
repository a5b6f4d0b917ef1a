// SPDX-License-Identifier: Apache-2.0
//
// Tiled products on tensor and matrix cores: as gpu/TiledProduct.h, but the warps of a block
// multiply by the instructions of schedule/contraction/MatrixUnit.h.
#pragma once

#include "codegen/gpu/TiledProduct.h"

namespace dovetail::codegen {

/// How the operands of matrix units are read from memory: f32, or the bits of 16-bit floats as they
/// are, which come as i32.
inline dvt_type matrixLoadType(dvt_type type) { return type == DVT_F32 ? DVT_F32 : DVT_U16; }

/// Emits what the threads of a block do for the tile whose first place is (firstRow, firstColumn).
/// `operands.left` and `.right` give elements as matrixLoadType() says.
void emitMatrixProduct(Emitter &e, const MatrixTile &tile, Value firstRow, Value firstColumn,
                       const TiledOperands &operands);

} // namespace dovetail::codegen
