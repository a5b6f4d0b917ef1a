// SPDX-License-Identifier: Apache-2.0
//
// Finds what the extents of inputs and outputs tell about symbols and functions of them.
#include "codegen/schedule/LocalExtents.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "support/ExtentParser.h"

namespace dovetail::codegen {
namespace {

/// A factor of a sum of products.
struct Piece {
  std::string_view atom;
  char before; ///< '+', '-' or '*'
};

std::vector<Piece> piecesOf(std::string_view text) {
  std::vector<Piece> pieces;
  int depth = 0;
  char before = '+';
  for (size_t begin = 0, i = 0; i <= text.size(); ++i) {
    if (i < text.size() && (depth || !std::strchr("+-*", text[i]))) {
      depth += (text[i] == '(') - (text[i] == ')');
      continue;
    }
    if (i > begin)
      pieces.push_back({text.substr(begin, i - begin), before});
    if (i < text.size())
      before = text[i];
    begin = i + 1;
  }
  return pieces;
}

bool isFunction(std::string_view atom) { return atom.find('(') != std::string_view::npos; }

} // namespace

LocalExtents::LocalExtents(const dvt_problem &problem) {
  std::vector<Extent> extents;
  std::string all;
  auto collect = [&](const uint32_t *values, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      const dvt_value &value = problem.values[values[i]];
      for (uint32_t d = 0; d < value.rank; ++d)
        if (value.extents[d].value < 0 && value.extents[d].symbol)
          if (auto extent = Extent::parse(value.extents[d].symbol)) {
            all += std::string(value.extents[d].symbol) + ' ';
            extents.push_back(std::move(*extent));
          }
    }
  };
  collect(problem.inputs, problem.input_count);
  collect(problem.outputs, problem.output_count);
  std::string stem = "dim";
  while (all.find(stem) != std::string::npos)
    stem += '_';
  std::set<std::string, std::less<>> known; // that stand alone, once all is rewritten
  auto fresh = [&] {
    std::string name = stem + std::to_string(known.size());
    known.insert(name);
    return Extent::symbol(name);
  };
  auto isUnknown = [&](const std::string &symbol) { return !known.count(symbol); };
  auto hasUnknown = [&](const Extent &extent) {
    std::vector<std::string> names = extent.symbols();
    return std::any_of(names.begin(), names.end(), isUnknown);
  };
  // Symbols that stand alone, then those beside a number.
  for (const Extent &extent : extents)
    for (const std::string &symbol : extent.symbols())
      if (extent == Extent::symbol(symbol)) {
        symbols.try_emplace(symbol, extent);
        known.insert(symbol);
      }
  for (const Extent &extent : extents)
    for (const std::string &symbol : extent.symbols())
      if (Extent rest = extent - Extent::symbol(symbol); rest.isStatic() && !symbols.count(symbol))
        symbols.emplace(symbol, fresh() - rest);
  for (const Extent &extent : extents) {
    Extent replaced = extent.substitute(symbols);
    std::string text = replaced.text();
    for (const Piece &piece : piecesOf(text)) {
      auto function = isFunction(piece.atom) ? Extent::parse(piece.atom) : Extent(0);
      if (!function || function->isStatic() || functions.count(piece.atom))
        continue;
      if (Extent rest = replaced - *function; rest.isStatic() && hasUnknown(*function))
        functions.emplace(piece.atom, fresh() - rest);
    }
  }
  for (const Extent &extent : extents)
    if (Extent whole = rewritten(extent.substitute(symbols)); hasUnknown(whole))
      if (!wholes.count(whole.text()))
        wholes.emplace(whole.text(), fresh());
}

Extent LocalExtents::atom(std::string_view text) const {
  if (auto known = functions.find(text); known != functions.end())
    return known->second;
  auto call = ExtentParser::splitCall(text);
  if (call)
    if (auto made =
            ExtentParser::apply(call->name, rewritten(call->first), rewritten(call->second)))
      return *made;
  auto plain = Extent::parse(text);
  return plain ? *plain : Extent::symbol("?");
}

Extent LocalExtents::rewritten(const Extent &extent) const {
  if (extent.isStatic())
    return extent;
  std::string text = extent.text();
  Extent sum, product(0);
  for (const Piece &piece : piecesOf(text)) {
    if (piece.before == '*') {
      product = product * atom(piece.atom);
      continue;
    }
    sum = sum + product;
    product = piece.before == '-' ? Extent(0) - atom(piece.atom) : atom(piece.atom);
  }
  return sum + product;
}

Extent LocalExtents::rewritten(const dvt_extent &extent) const {
  if (extent.value >= 0)
    return Extent(extent.value);
  auto parsed = Extent::parse(extent.symbol ? extent.symbol : "");
  if (!parsed)
    return Extent::symbol("?");
  Extent result = rewritten(parsed->substitute(symbols));
  auto whole = wholes.find(result.text());
  return whole == wholes.end() ? result : whole->second;
}

} // namespace dovetail::codegen
