// SPDX-License-Identifier: Apache-2.0
//
// The graph as plain tables: what region forming and problem building work on, without MLIR. Ops
// are the primitive ones, those inside composites included; a composite names the ops of its body
// and stands for them as one named op. Views (reshape and its kin) carry no kernel. Ops that only
// compute extents are gone: their results are shape data. Bodies of control flow are tables of
// their own; what they read of the table around them is among their inputs.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "artifact/Plan.h"
#include "support/Extent.h"
#include "support/Layout.h"
#include "support/Problem.h"
#include "support/Requirement.h"

namespace dovetail::plan {

enum class OpRole : uint8_t {
  Pointwise,   ///< each output element depends on the operands' elements at the same (broadcast)
               ///< position
  Contraction, ///< convolutions and matrix products
  Reduction,  ///< reductions, poolings, softmax, normalisations: anchors that pointwise ops join on
              ///< both sides
  Movement,   ///< transposes, slices, gathers, pads, concatenations: elements move, values stay
  Quantize,   ///< to integers: joins what gives its operand, and nothing joins behind it
  Dequantize, ///< from integers: so cheap that whoever reads its result computes it again
  View,       ///< same bytes under other extents
  Control,    ///< runs a body of its own: the runtime does it, without a kernel
  Other       ///< runs alone
};

struct TableValue {
  dvt_type type = DVT_F32;
  std::vector<Extent> extents;
  std::string name;
  int32_t producer = -1;       ///< op that defines it
  std::vector<uint32_t> users; ///< ops, ascending, each once
  bool constant = false;
  const void *data = nullptr; ///< bytes of a constant, row-major
  uint64_t dataBytes = 0;
  std::shared_ptr<const void> owner;
  /// Elements of a shape tensor that are extents; such a value needs no kernel.
  std::vector<Extent> shapeData;
  bool isShapeData = false;
  bool absent = false;          ///< stands for an operand that is not there
  bool dataDependent = false;   ///< extents known only after its producer ran
  std::vector<int64_t> strides; ///< in elements: a view of what its producer takes; empty: dense
  int64_t offset = 0;           ///< in elements, of such a view

  /// How plans call the layout in which a kernel takes or gives it: layouts of the same bytes are
  /// one, so that nothing is converted between them.
  std::string storedLayout(const std::string &layout) const {
    return strides.empty() && !dataDependent ? canonicalLayout(layout, extents) : layout;
  }
};

struct TableOp {
  std::string name; ///< snake-case op name
  uint32_t version = 1;
  OpRole role = OpRole::Other;
  std::vector<uint32_t> inputs, outputs; ///< values; kNoValue where absent
  AttributeMap attributes;
  std::string node; ///< ONNX node name, for people
  // Control: as in PlanStep. `inputs` end with what the bodies read of this table.
  StepKind control = StepKind::Kernel;
  std::vector<uint32_t> bodies; ///< into OpTable::bodies
  uint32_t carried = 0;
  std::vector<ScanAxis> scanned;
};

/// A recognised group: an op of its own that stands for the ops of its body.
struct TableComposite {
  std::string name;
  uint32_t version = 1;
  OpRole role = OpRole::Other;
  std::vector<uint32_t> inputs, outputs; ///< values outside the body
  AttributeMap attributes;
  std::vector<uint32_t> body; ///< ops, ascending
  std::string node;
};

struct OpTable {
  std::vector<TableValue> values;
  std::vector<TableOp> ops; ///< in topological order
  std::vector<TableComposite> composites;
  std::vector<uint32_t> inputs, outputs;
  std::vector<std::string> inputNames, outputNames;
  SymbolRanges ranges;
  std::vector<PlanState> states;
  std::vector<Requirement> requirements; ///< on the extents, checked at run time
  std::vector<OpTable> bodies;           ///< of control flow
  std::set<std::string> outerSymbols;    ///< body: that the tables around it know where it runs
};

/// Fills users and producer of every value from the ops.
void linkUsers(OpTable &table);

} // namespace dovetail::plan
