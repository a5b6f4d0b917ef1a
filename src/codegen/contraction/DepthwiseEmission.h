// SPDX-License-Identifier: Apache-2.0
//
// Depthwise convolutions: rows with channels along vectors, as kernels of their own or for a
// pointwise convolution that reads them where they are made, and kernels with columns along
// vectors.
#pragma once

#include <functional>

#include "codegen/KernelModule.h"
#include "codegen/contraction/TileEmission.h"
#include "codegen/schedule/contraction/Depthwise.h"

namespace dovetail::codegen {

/// Rows of a depthwise convolution in blocked and channels-last images.
class DepthwiseRows {
public:
  /// Takes the sums of one output pixel: a vector for each block of channels from `block` on.
  using Finish = std::function<void(Value block, Value row, Value column, const Values &sums,
                                    const Values &masks)>;
  /// `buffer` has room for tile x blocks vectors of the plan.
  DepthwiseRows(Emitter &e, const Convolution &conv, const DepthwisePlan &plan, Value buffer,
                Finish finish);

  /// Rows [first, end) of all blocks of channels.
  void emit(Value image, Value first, Value end);
  /// The same for one block, in blocked images.
  void emitBlock(Value image, Value block, Value first, Value end);

private:
  /// Places [from, to) of a window along one of its dimensions.
  struct WindowRange {
    Value from, to;
  };
  WindowRange inside(const Convolution::Window &window, Value position, Value extent);
  WindowRange rowRange(Value row);
  void forRows(Value first, Value end);
  void startBlocks(Value number, int64_t count);
  void forBlocks(llvm::function_ref<void()> body);
  void forTileBlocks(llvm::function_ref<void()> body);
  void row(Value row);
  void rowOfAnyLength(Value row, WindowRange range);
  Value lineOf(Value row, Value windowRow);
  Value loadPixel(Value line, Value imageColumn, size_t number);
  Value loadWeight(Value windowRow, Value tap, size_t number);
  void tile(Value row, WindowRange range, Value column, int64_t width);
  void prefetchRows(Value row, Value start, int64_t width);
  void oneColumn(Value row, WindowRange range, Value column);
  void store(Value row, Value column, const Values &sums);

  Emitter &e;
  const Convolution &conv;
  const DepthwisePlan &plan;
  Value buffer;
  Finish finish;
  dvt_type type; ///< of the image; packed weights are f32
  int64_t lanes, blockCount, pixel;
  bool isBlocked, inPlace, blocksOutside;
  Value outColumns, inRows, inColumns;
  Value image, block, source, weights; ///< of the current group of blocks
  Values masks;                        ///< of its blocks
};

/// Columns along vectors, in plain images.
Status emitPlainDepthwise(const Convolution &conv, const DepthwisePlan &plan,
                          const Schedule &schedule, KernelModule &module);

} // namespace dovetail::codegen
