// SPDX-License-Identifier: Apache-2.0
//
// What a graph of cuDNN's operations means: plain loops in f64 over memory in the layouts that the
// graph states, written from the documentation of the operations. The double of cuDNN computes with
// it, and tests hold translations of problems to it; it proves nothing about a vendor's kernels.
#pragma once

#include <string>

#include "providers/cudnn/Graph.h"

namespace cudnn_double {

namespace api = dovetail::cudnn;

/// Where those tensors of a graph lie that are not virtual. Offsets are in elements.
class GraphMemory {
public:
  virtual ~GraphMemory() = default;
  virtual double load(size_t tensor, int64_t offset) = 0;
  virtual void store(size_t tensor, int64_t offset, double value) = 0;
};

struct Rounding {
  bool operandsToTf32 = false;    ///< of products and convolutions
  bool temporariesToType = false; ///< virtual tensors hold what their type can
};

/// Runs the operations in order. Empty, or which of them has no meaning here.
std::string runGraph(const api::Graph &graph, GraphMemory &memory, const Rounding &rounding = {});

/// One element; nothing where the mode has another number of operands.
std::optional<double> applyUnary(const api::Operation &op, double x);
std::optional<double> applyBinary(api::PointwiseMode mode, double x, double y);

} // namespace cudnn_double
