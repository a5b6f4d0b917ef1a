// SPDX-License-Identifier: Apache-2.0
//
// Sizes at which kernels for free extents are tried and timed. What the user says of a symbol
// holds; the others get modest values by their places in the model's inputs, then values under
// which the model makes sense: its requirements hold and no extent is negative. The same table
// gives the same sizes.
#pragma once

#include <set>
#include <string>

#include "plan/OpTable.h"

namespace dovetail::plan {

/// A value for every symbol of the table and of its bodies. `given`: by the symbol's name, or by
/// the model's name for the dimension. BadInput where it names no symbol of the model, is outside
/// the symbol's range, or breaks a requirement whatever the other symbols are.
Expected<SymbolValues> typicalSizes(const OpTable &table, const SymbolValues &given);

/// Those of `sizes` under which this table, its bodies left aside, makes sense: without the symbols
/// of what cannot be under them. A branch for other sizes lacks theirs.
SymbolValues usableSizes(const OpTable &table, SymbolValues sizes);

/// Symbols that keep their value from one run to the next as far as anybody knows: extents of the
/// model's inputs, but for those along which a state grows.
std::set<std::string> lastingSymbols(const OpTable &model);

/// "batch=1, length=64"
std::string sizesText(const SymbolValues &sizes);

} // namespace dovetail::plan
