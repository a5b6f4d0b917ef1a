// SPDX-License-Identifier: Apache-2.0
//
// Rewrites of single ops as plain functions: a name of the op at the root and what to do with it.
// Families add theirs to one set, which a greedy driver applies until nothing changes.
#pragma once

#include "mlir/IR/PatternMatch.h"

#include "graph/ConstantData.h"
#include "graph/GraphDialect.h"
#include "graph/TensorType.h"

namespace dovetail::graph {

/// Succeeds where it changed the graph.
using Rewrite = llvm::LogicalResult (*)(mlir::Operation *op, mlir::PatternRewriter &rewriter);

/// Adds `rewrite` for the op `name`; `benefit` orders rewrites of one op.
void addRewrite(mlir::RewritePatternSet &set, llvm::StringRef name, Rewrite rewrite,
                unsigned benefit = 1);

void addViewRewrites(mlir::RewritePatternSet &set);
void addMovementRewrites(mlir::RewritePatternSet &set);
void addAttentionRewrites(mlir::RewritePatternSet &set);
void addUnitExtentRewrites(mlir::RewritePatternSet &set);
void addArithmeticRewrites(mlir::RewritePatternSet &set);
void addControlFlowRewrites(mlir::RewritePatternSet &set);
void addQuantizationRewrites(mlir::RewritePatternSet &set);
void addScaleRewrites(mlir::RewritePatternSet &set); ///< into weights and biases

/// Replaces `op`, which has one result, by `value` where the types agree.
llvm::LogicalResult replaceWith(mlir::Operation *op, mlir::Value value,
                                mlir::PatternRewriter &rewriter);
mlir::RankedTensorType typeOf(mlir::Value value);
/// A shape operand for a reshape of `input` to `type`; null where two extents or more cannot be
/// told.
mlir::Value createShape(mlir::PatternRewriter &rewriter, mlir::Location loc, mlir::Value input,
                        mlir::RankedTensorType type);
/// dvt.reshape of `input` to `type`, or null.
mlir::Value createReshape(mlir::PatternRewriter &rewriter, mlir::Location loc, mlir::Value input,
                          mlir::RankedTensorType type);
mlir::Value createTranspose(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value input,
                            llvm::ArrayRef<int64_t> perm);
/// An op with one result of `type`.
mlir::Value createValue(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
                        mlir::ValueRange operands, mlir::Type type,
                        llvm::ArrayRef<mlir::NamedAttribute> attributes = {});
/// perm of a dvt.transpose, filled in where it is absent.
llvm::SmallVector<int64_t> permOf(mlir::Operation *transpose);

} // namespace dovetail::graph
