// SPDX-License-Identifier: Apache-2.0
//
// Weights as vectors of float, for rewrites that compute new ones.
#pragma once

#include <optional>
#include <vector>

#include "mlir/IR/Builders.h"

namespace dovetail::graph {

/// Elements of an f32 constant; nothing for any other value.
std::optional<std::vector<float>> constantFloats(mlir::Value value);
/// An f32 constant of `type`.
mlir::Value createFloats(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
                         const std::vector<float> &values);

/// Elements of `value`, a constant that broadcasts along `dimension` only of a tensor of rank
/// `rank`: `extent` of them. Nothing for any other value.
std::optional<std::vector<float>> channelFloats(mlir::Value value, size_t rank, size_t dimension,
                                                int64_t extent);

} // namespace dovetail::graph
