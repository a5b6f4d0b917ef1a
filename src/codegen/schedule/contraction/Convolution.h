// SPDX-License-Identifier: Apache-2.0
//
// conv and conv_transpose over one or two spatial dimensions in one form, and the decisions of a
// convolution schedule. The kernel is a sum over channel blocks, window rows and window columns of
// broadcast inputs times vectors of output channels. A transposed convolution of stride s is s * s
// such sums, each for the output pixels of one phase. Inputs come from the tensor itself where no
// window leaves it, else from a patch that each task copies, padding included.
#pragma once

#include <optional>
#include <vector>

#include "codegen/schedule/Schedule.h"
#include "codegen/schedule/contraction/Access.h"
#include "codegen/schedule/contraction/Fusion.h"
#include "codegen/schedule/contraction/MatMul.h"
#include "codegen/schedule/contraction/RegisterTile.h"

namespace dovetail::codegen {

struct Convolution {
  Fusion fusion;
  uint32_t input, weight; ///< problem inputs; the weight is a static constant
  std::optional<uint32_t> bias;
  int64_t groups, inPerGroup, outPerGroup;
  /// By rows and columns; one spatial dimension is columns, its rows are a single one.
  struct Window {
    int64_t size = 1, stride = 1, dilation = 1, padBegin = 0, padEnd = 0;
    bool transposed = false;
    int64_t reach() const { return (size - 1) * dilation + 1; }

    /// Position q of a phase is output q * outStep() + phase and sums, for i in [0, count), the
    /// inputs q * inStep() + in + i * inStride times the weights weight + i * weightStep.
    struct Phase {
      int64_t count, weight, weightStep, in, inStride;
    };
    std::vector<Phase> phases() const;
    int64_t inStep() const { return transposed ? 1 : stride; }
    int64_t outStep() const { return transposed ? stride : 1; }
    /// First and last input that position 0 needs in any phase.
    int64_t firstInput() const, lastInput() const;
  } rows, columns;
  bool transposed = false;
  unsigned spatial; ///< 1 or 2
  dvt_extent batch, inRows, inColumns, outRows, outColumns;

  int rowDimension() const { return spatial == 2 ? 2 : -1; }
  unsigned columnDimension() const { return spatial + 1; }
  /// Whether some window may leave the image.
  bool isPadded() const;
  bool isDepthwise() const {
    return !transposed && groups > 1 && inPerGroup == 1 && outPerGroup == 1;
  }
  /// A matrix product of pixels with weights.
  bool isPointwise() const;

  /// Nothing where the problem has no convolution; an error with the reason where it cannot be
  /// served.
  static std::optional<Expected<Convolution>> find(const ProblemReader &problem,
                                                   Fusion::Takes takes = Fusion::Takes::Floats);
};

enum class ImageLayout : char { Plain = 'p', Blocked = 'b', ChannelsLast = 'n' };
/// Layout text of a tensor with `spatial` dimensions; blocks of `block` channels.
std::string imageLayoutText(ImageLayout layout, unsigned spatial, int64_t block);
/// Layouts of all inputs and outputs: the image as `in`, outputs and operands of their full extents
/// as `out`.
void setImageLayouts(const ProblemReader &problem, const Fusion &fusion, uint32_t image,
                     unsigned spatial, ImageLayout in, ImageLayout out, int64_t block,
                     Schedule &schedule);

/// Layout `text` for the followers' operands of full extents.
void setLeafLayouts(const ProblemReader &problem, const Fusion &fusion, const std::string &text,
                    Schedule &schedule);

struct ConvolutionPlan {
  ImageLayout in = ImageLayout::Plain, out = ImageLayout::Plain;
  RegisterTile tile;    ///< rows are output columns, or all of tileRows rows of the output
  int64_t tileRows = 1; ///< more than 1: each tile covers so many whole rows
  bool direct = false;  ///< reads the tensor itself
  bool flat = false;    ///< rows and columns of the image are one
  int64_t chunkRows = 1, chunkColumns = 1; ///< output pixels of a task
  int64_t panelsPerTask = 1;

  static ConvolutionPlan read(const Schedule &schedule);
  std::string text() const;
};

/// What tasks may be: any part of an image and of the output channels, or whole rows of all.
enum class ConvolutionTasks { Any, WholeRows };

/// Completes the plan by tile and chunks; gives the cycles that the busiest thread is thought to
/// need.
double completePlan(const Convolution &conv, const Machine &machine, ConvolutionPlan &plan,
                    ConvolutionTasks tasks = ConvolutionTasks::Any);

/// Sizes that follow from problem and plan; elements unless said otherwise.
struct ConvolutionSizes {
  int64_t lanes, channelBlock;          ///< channels summed together
  int64_t fullBlocks, restChannels;     ///< blocks of channelBlock, and what is left
  int64_t pitch;                        ///< from one pixel to the next in a patch
  int64_t vectors;                      ///< of output channels in a group
  int64_t panels, depth, groupElements; ///< of a group's packed weights
  int64_t patchRows, patchColumns, patchBlock, patchElements, tileElements;

  ConvolutionSizes(const Convolution &conv, const ConvolutionPlan &plan, const Machine &machine);
  uint64_t scratchBytes() const;
};

} // namespace dovetail::codegen
