// SPDX-License-Identifier: Apache-2.0
//
// The decisions of a Winograd convolution: windows of 3x3, stride 1, outputs in tiles of 2x2 or 4x4
// (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015). Each tile's part of
// the image becomes 16 or 36 numbers for each channel; for each of these places a matrix product of
// tiles with weights over the channels follows, and what it gives becomes the tile's outputs. That
// rounds more than the plain sum does, so it is a numerics class of its own.
#pragma once

#include "codegen/schedule/Schedule.h"
#include "codegen/schedule/contraction/Convolution.h"

namespace dovetail::codegen {

/// Points of interpolation: 0, 1, -1 and infinity for tiles of 2x2; for 4x4 0, infinity and these
/// two with both signs. 1 and 2 would save three products and cost two bits more (Barabasz et al.,
/// Error Analysis and Improving the Accuracy of Winograd Convolution, 2020). All that is made of
/// them is exact in f32.
constexpr double kWinogradInner = 0.625, kWinogradOuter = 1.5;

struct WinogradPlan {
  ImageLayout layout = ImageLayout::Blocked; ///< of image and outputs; not Plain
  int64_t size = 4;                          ///< of an output tile, 2 or 4
  RegisterTile tile;                         ///< rows are tiles
  int64_t chunk = 1;                         ///< tiles of a task, over all images
  /// Transformed tiles go to the workspace in a phase of their own, so that tasks that share them
  /// may split the output channels; otherwise each task transforms its own into its scratch.
  bool shared = false;

  int64_t reach() const { return size + 2; } ///< of a tile in the image
  int64_t places() const { return reach() * reach(); }
  static WinogradPlan read(const Schedule &schedule);
  std::string text() const;
};

/// Why Winograd cannot serve the convolution; empty where it can.
std::string refuseWinograd(const Convolution &conv, const Machine &machine);

/// Sizes that follow from convolution and plan; elements unless said otherwise.
struct WinogradSizes {
  int64_t lanes;
  int64_t blocks;          ///< of input channels, the last of which may be cut
  int64_t vectors, panels; ///< of output channels
  int64_t placePitch;      ///< from one place of the transformed image to the next
  int64_t imageElements;   ///< of a chunk's transformed image
  int64_t sumElements;     ///< of a chunk's sums, for one panel
  int64_t outputElements;  ///< of a tile's outputs, for one panel
  int64_t weightElements;  ///< of all panels

  WinogradSizes(const Convolution &conv, const WinogradPlan &plan, const Machine &machine);
  uint64_t scratchBytes(const WinogradPlan &plan) const;
};

/// Chunks of tiles where all extents are static.
int64_t chunksOf(const Convolution &conv, const WinogradPlan &plan);

} // namespace dovetail::codegen
