// SPDX-License-Identifier: Apache-2.0
//
// Extents of tensors, static or symbolic, as integer polynomials in canonical form over symbols and
// over the functions floordiv, ceildiv, mod, min and max. Two extents that are equal as polynomials
// have the same text; the text is part of problems, plans and artifacts, and the runtime's shape
// program evaluates it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/Expected.h"

namespace dovetail {

/// Values of symbols, by name.
using SymbolValues = std::map<std::string, int64_t, std::less<>>;

/// What is known of a symbol: inclusive bounds and a divisor.
struct SymbolRange {
  int64_t min = 1;
  int64_t max = int64_t(1) << 31;
  int64_t divisor = 1;
  friend bool operator==(const SymbolRange &, const SymbolRange &) = default;
};
using SymbolRanges = std::map<std::string, SymbolRange, std::less<>>;

class Extent {
public:
  Extent() = default; // 0
  Extent(int64_t value);
  /// A symbol: letters, digits, '_' and '.', not starting with a digit. Other characters become
  /// '_'.
  static Extent symbol(std::string_view name);
  /// Parses text() output, such as "2*H+floordiv(W+1,2)". BadInput on anything else.
  static Expected<Extent> parse(std::string_view text);

  bool isStatic() const;
  /// Whether computing it went beyond 64 bits, or became too long: then it stands for any number.
  bool isOverflow() const;
  /// The value of a static extent.
  int64_t value() const;
  std::optional<int64_t> staticValue() const;
  std::string text() const;
  /// Names of all symbols in it, sorted, each once.
  std::vector<std::string> symbols() const;
  /// Value under `values`; nothing where a symbol is missing, a divisor is zero or it overflows.
  std::optional<int64_t> evaluate(const SymbolValues &values) const;
  /// Replaces the symbols that `values` names.
  Extent substitute(const SymbolValues &values) const;
  /// Replaces symbols by extents.
  Extent substitute(const std::map<std::string, Extent, std::less<>> &values) const;

  /// Bounds and a divisor that hold under `ranges` (symbols it lacks have the default range). Safe,
  /// not tight.
  SymbolRange range(const SymbolRanges &ranges) const;

  friend Extent operator+(const Extent &a, const Extent &b);
  friend Extent operator-(const Extent &a, const Extent &b);
  friend Extent operator*(const Extent &a, const Extent &b);
  friend bool operator==(const Extent &a, const Extent &b) { return a.terms == b.terms; }
  friend bool operator!=(const Extent &a, const Extent &b) { return !(a == b); }
  friend bool operator<(const Extent &a, const Extent &b) { return a.terms < b.terms; }

  static Extent floorDiv(const Extent &a, const Extent &b);
  static Extent ceilDiv(const Extent &a, const Extent &b);
  static Extent mod(const Extent &a, const Extent &b);
  static Extent min(const Extent &a, const Extent &b);
  static Extent max(const Extent &a, const Extent &b);
  /// a / b where b divides a as a polynomial; nothing otherwise.
  static std::optional<Extent> exactDiv(const Extent &a, const Extent &b);

private:
  /// Product of atoms (symbols or canonical function texts), sorted -> coefficient, never zero. {}
  /// is the constant.
  using Monomial = std::vector<std::string>;
  std::map<Monomial, int64_t> terms;
  static Extent atom(std::string text);
  static Extent function(const char *name, const Extent &a, const Extent &b);
  /// With every symbol for which `symbolValue` has an answer replaced; `complete` becomes false
  /// where it has none.
  Extent mapAtoms(const std::function<std::optional<Extent>(std::string_view)> &symbolValue,
                  bool &complete) const;
  static Extent overflowed();
  friend class ExtentParser;
};

/// Product of extents; 1 for none.
Extent elementCount(const std::vector<Extent> &extents);

} // namespace dovetail
