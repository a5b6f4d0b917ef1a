// SPDX-License-Identifier: Apache-2.0
//
// Schedules of reductions and of what is built on them: softmax, normalisations, global pooling,
// with element-wise ops before, between and after. The ops become one expression whose nodes are
// either full (one value for each element of the reduced tensor) or reduced (one for each row, a
// row being what is reduced together). A row is walked several times: each pass computes what the
// reductions made in passes before it allow.
#pragma once

#include <vector>

#include "codegen/schedule/Expression.h"
#include "codegen/schedule/Schedule.h"
#include "codegen/schedule/Space.h"

namespace dovetail::codegen {

struct RowsPlan {
  Expression expression;
  Space space;
  std::vector<bool> reducedAxis;
  std::vector<uint32_t> keptAxes, reducedAxes; ///< ascending

  struct NodeUse {
    bool full = false;
    bool needed = false;
    int pass = 0; ///< full: the first pass that can compute it; reduced: passes that must have
                  ///< ended before
  };
  std::vector<NodeUse> uses;
  int passes = 0;

  struct Output {
    uint32_t value;   ///< problem value
    uint32_t operand; ///< of the space
    NodeId node;
    bool full;
  };
  std::vector<Output> outputs;
  /// Full nodes that have a place in memory from the pass that first computes them on: in an
  /// output, which for a node other than the output's own holds it until the output's pass
  /// overwrites it.
  struct Home {
    NodeId node;
    uint32_t output; ///< position in outputs
  };
  std::vector<Home> homes;

  std::vector<Axis> taskAxes; ///< the kept ones, at least one
  TaskSplit split;            ///< of taskAxes
  /// Of a device: so many threads share a row and its last axis; 0: each row has a thread of its
  /// own.
  uint32_t blockThreads = 0;
  bool alongRows =
      false; ///< vectors lie along the last axis, which is reduced; else along kept elements

  /// Full nodes that pass `pass` computes or loads.
  std::vector<bool> neededIn(int pass) const;
  /// Whether a full node is loaded from its home in pass `pass`.
  bool atHome(NodeId node, int pass) const;
};

/// BadInput, with the reason, where the ops are not of this kind.
Expected<RowsPlan> planRows(const ProblemReader &problem, const Machine &machine,
                            const Layout &layout);

/// Whether an op reduces or normalises in a way that rows can express.
bool isRowOp(std::string_view name);
/// Axes of a reduction or normalisation of a tensor of `rank`, ascending; BadInput where they are
/// not known.
Expected<std::vector<uint32_t>> rowAxes(const ProblemReader &problem, const dvt_op &op,
                                        uint32_t rank);

} // namespace dovetail::codegen
