// SPDX-License-Identifier: Apache-2.0
//
// Names of ops: ONNX's own (MatMul) and those used in graphs, problems and at the plug-in door
// (mat_mul).
#pragma once

#include <string>
#include <string_view>

namespace dovetail {

/// Conv -> conv, MatMul -> mat_mul, PRelu -> p_relu, GatherND -> gather_nd, IsNaN -> is_nan.
std::string snakeCase(std::string_view onnxOp);
/// The reverse for ops of ONNX: mat_mul -> MatMul, gather_nd -> GatherND.
std::string onnxName(std::string_view opName);

} // namespace dovetail
