// SPDX-License-Identifier: Apache-2.0
//
// The symbols of a graph: names given to extents that are not known. ONNX names them freely and
// leaves many unnamed; here every one has a name of its own in the alphabet of support::Extent.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/Expected.h"
#include "support/Extent.h"

namespace dovetail::importer {

class Symbols {
public:
  /// `given`: extents the user fixes, by the model's name of a dimension or by the symbol's name
  /// here.
  explicit Symbols(std::map<std::string, int64_t> given) : given(std::move(given)) {}

  /// The extent a model calls `name`; the same one each time, at least the smallest `least` that
  /// was asked for. Names that differ get symbols that differ.
  Extent named(const std::string &name, int64_t least);
  /// Gives what the model calls `name` the value that it has in the given input `input`. BadInput
  /// where it has another one already.
  Status fix(const std::string &name, int64_t value, const std::string &input);
  /// A new symbol for dimension `dimension` of value `value`, at least `least`.
  Extent fresh(const std::string &value, size_t dimension, int64_t least);
  const SymbolRanges &ranges() const { return known; }
  /// BadInput where the user fixed a dimension that was never asked for.
  Status allGivenUsed() const;

private:
  void allow(int64_t least, const std::string &symbol);
  std::string unique(const std::string &wish);
  /// The fixed value for either name.
  std::optional<int64_t> fixed(const std::string &name, const std::string &symbol);

  std::map<std::string, int64_t> given;
  std::set<std::string> used;           ///< names out of `given` that were met
  std::map<std::string, Extent> byName; ///< by the model's name
  std::set<std::string> taken;          ///< symbols in use
  std::map<std::string, int> numbers;   ///< by wish: all below are taken behind it
  std::vector<std::string> asked;       ///< names to show to the user
  SymbolRanges known;
};

} // namespace dovetail::importer
