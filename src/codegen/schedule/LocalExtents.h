// SPDX-License-Identifier: Apache-2.0
//
// Rewrites the symbolic extents of a problem over symbols that each stand alone as an extent of
// some input or output, since those are all that a kernel can read when it runs.
// "floordiv(H+1,2)-5" of an operand becomes a symbol of its own where nothing shows H itself; what
// else is made of the same part is then stated by that symbol. Families see plain sums and products
// afterwards.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dovetail/provider.h"
#include "support/Extent.h"

namespace dovetail::codegen {

class LocalExtents {
public:
  explicit LocalExtents(const dvt_problem &problem);
  /// The extent in the problem's own terms; as it is where it is a number or nothing is known of
  /// its parts.
  Extent rewritten(const dvt_extent &extent) const;

private:
  Extent rewritten(const Extent &extent) const;
  Extent atom(std::string_view text) const;

  std::map<std::string, Extent, std::less<>> symbols;   ///< by name
  std::map<std::string, Extent, std::less<>> functions; ///< by text, symbols replaced
  std::map<std::string, Extent, std::less<>> wholes;    ///< by text, both replaced
};

} // namespace dovetail::codegen
