// SPDX-License-Identifier: Apache-2.0
//
// Shape-rule cases as text, such as
//   Conv(f32[N=1,3,H=224,224], f32[64,3,7,7]) strides=2,2 pads=3,3,3,3 kernel_shape=7,7 /1
// with `_` for an absent operand, i64[2]{3,4} for a constant, and the number of results last (one
// if not given). Extents with a name are numbers in the static form and symbols in the symbolic
// one.
#pragma once

#include <string>
#include <vector>

#include "graph/shapes/ShapeRules.h"

namespace dovetail::graph {

struct ShapeCase {
  struct Operand {
    bool absent = false;
    dvt_type type = DVT_F32;
    std::vector<int64_t> extents;
    std::vector<std::string> names; ///< empty where static
    bool constant = false;
    std::vector<double> numbers;
    std::vector<char> bytes;
  };
  std::string op;
  std::vector<Operand> operands;
  AttributeMap attributes;
  size_t results = 1;
  SymbolValues symbols;

  static ShapeCase parse(std::string_view text);
  /// Runs the rule; symbolic: with named extents as symbols.
  Expected<std::vector<ValueFacts>> infer(bool symbolic) const;
};

/// Types and extents as libonnx infers them: "f32[1,64,112,112]", ? for an extent it does not know,
/// empty where it knows nothing.
std::vector<std::string> inferByOnnx(const ShapeCase &shapeCase);

} // namespace dovetail::graph
