// SPDX-License-Identifier: Apache-2.0
//
// A problem of the door, copied so that it outlives the call, with every op looked up and checked.
// A problem that becomes a Program is one that the reference accepts; what is wrong with the data
// of one run shows only at run.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "Tensor.h"

namespace dovetail::reference {

class Invocation;

/// One row of the table of ops (Ops.inc).
struct OpEntry {
  const char *name;
  Status (*run)(Invocation &);
  uint32_t minVersion, maxVersion; ///< versions with this meaning
  uint32_t minInputs, maxInputs;   ///< operands that must be there, operands allowed
  uint32_t maxOutputs;
  const char *types; ///< element types of the first operand: letters, see acceptsType()
};

const OpEntry *findOp(std::string_view name);
/// Letters: f floats, i signed integers, u unsigned integers, b bool, q 4-bit integers; "" is every
/// type.
bool acceptsType(const char *letters, dvt_type type);

using Attribute =
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;

struct Operation {
  const OpEntry *entry = nullptr;
  uint32_t version = 0;
  std::vector<uint32_t> inputs, outputs;
  std::map<std::string, Attribute, std::less<>> attributes;
};

struct Value {
  dvt_type type = DVT_UNDEFINED;
  /// Static extents; -1 where symbolic.
  Extents extents;
  std::vector<int64_t> lowest, highest, divisor;
  bool isLiteral = false, uniform = false;
  std::vector<uint8_t> literal;
};

struct Program {
  std::vector<Value> values;
  std::vector<Operation> operations;
  std::vector<uint32_t> inputs, outputs;
  /// Physical layouts of the operands of a lone dvt_reorder; empty (row-major) for everything else.
  std::string inputLayout, outputLayout;
  /// No op draws random numbers without a seed.
  bool deterministic = true;
};

/// Unsupported, with the op's name and what is supported, where the reference cannot run it.
Status makeProgram(const dvt_problem &problem, Program &program);

} // namespace dovetail::reference
