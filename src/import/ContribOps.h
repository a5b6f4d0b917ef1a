// SPDX-License-Identifier: Apache-2.0
//
// Ops of other domains than ONNX's own that are imported as what they mean, in ops of ONNX. Each is
// a line in one table, which says what libonnx's definitions say of its own ops: how many operands
// and results there are and which attributes. Everything else of such domains is refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/NodeImport.h"

namespace dovetail::importer {

struct ContribOp {
  std::string_view domain, op;
  size_t leastInputs, mostInputs, mostOutputs;
  std::vector<std::string_view> required, optional; ///< attributes
  OpRule rule; ///< sets `replacement`; operands that must be there are
};

/// Null where the op is not known.
const ContribOp *findContribOp(std::string_view domain, std::string_view op);
/// All that are known, for messages: "com.microsoft.MatMulNBits, ...".
std::string contribOpNames();
/// Counts of operands and results, and attributes, as the table has them.
Status checkContribNode(const ContribOp &op, const NodeImport &node);

} // namespace dovetail::importer
