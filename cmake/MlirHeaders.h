// SPDX-License-Identifier: Apache-2.0
//
// The precompiled header of every room that uses MLIR: the headers that nearly all of its sources
// include anyway and that take longest to parse. Sources must still include what they use, so that
// they compile with -DDOVETAIL_PCH=OFF and for clang-tidy, which gets no precompiled header.

#ifndef DOVETAIL_CMAKE_MLIRHEADERS_H
#define DOVETAIL_CMAKE_MLIRHEADERS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#endif // DOVETAIL_CMAKE_MLIRHEADERS_H
