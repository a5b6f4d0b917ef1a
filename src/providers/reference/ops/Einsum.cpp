// SPDX-License-Identifier: Apache-2.0
//
// einsum with any number of operands, repeated labels and ellipses, and det.
#include "Ops.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

namespace dovetail::reference::ops {

namespace {

/// Labels of the equation with one entry for each dimension; dimensions of an ellipsis are '0',
/// '1', ... from the back, so that they broadcast from the right.
struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

} // namespace

/// Replaces "..." by the labels of `count` dimensions.
static std::string expandEllipsis(const std::string &labels, int64_t count) {
  size_t at = labels.find("...");
  if (at == std::string::npos)
    return labels;
  std::string dimensions;
  for (int64_t i = count; i-- > 0;)
    dimensions += static_cast<char>('0' + i);
  return labels.substr(0, at) + dimensions + labels.substr(at + 3);
}

static Status parseEquation(const Invocation &op, Equation &equation) {
  std::string text;
  for (char c : op.text("equation", ""))
    if (!std::isspace(static_cast<unsigned char>(c)))
      text += c;
  size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  for (size_t begin = 0; begin <= left.size();) {
    size_t end = std::min(left.find(',', begin), left.size());
    equation.operands.push_back(left.substr(begin, end - begin));
    begin = end + 1;
  }
  if (equation.operands.size() != op.inputCount())
    return op.bad("equation ", text, " has ", equation.operands.size(), " operands; ",
                  op.inputCount(), " are given");
  int64_t widest = 0;
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    std::string &labels = equation.operands[i];
    if (!op.has(i))
      return op.bad("operand ", i, " is absent");
    bool ellipsis = labels.find("...") != std::string::npos;
    int64_t named = static_cast<int64_t>(labels.size()) - (ellipsis ? 3 : 0),
            rest = op.rank(i) - named;
    if (rest < 0 || (rest && !ellipsis) || rest > 10)
      return op.bad("labels ", labels, " for an operand ", textOf(op.shape(i)));
    labels = expandEllipsis(labels, rest);
    widest = std::max(widest, ellipsis ? rest : 0);
    for (char c : labels)
      if (!std::isalnum(static_cast<unsigned char>(c)))
        return op.bad("equation ", text, " is malformed");
  }
  if (arrow != std::string::npos) {
    equation.result = expandEllipsis(text.substr(arrow + 2), widest);
    return {};
  }
  // Without a result: the ellipsis, then every label that occurs once, in alphabetical order.
  std::map<char, int> occurrences;
  for (const std::string &labels : equation.operands)
    for (char c : labels)
      ++occurrences[c];
  equation.result = expandEllipsis("...", widest);
  for (auto [label, count] : occurrences)
    if (count == 1 && std::isalpha(static_cast<unsigned char>(label)))
      equation.result += label;
  return {};
}

Status einsum(Invocation &op) {
  Equation equation;
  TRY(parseEquation(op, equation));
  std::map<char, int64_t> extents;
  for (size_t i = 0; i < equation.operands.size(); ++i)
    for (size_t d = 0; d < equation.operands[i].size(); ++d) {
      int64_t &extent = extents.try_emplace(equation.operands[i][d], 1).first->second,
              here = op.shape(i)[d];
      if (extent != here && extent != 1 && here != 1)
        return op.bad("label ", equation.operands[i][d], " has extents ", extent, " and ", here);
      extent = extent == 1 ? here : extent;
    }
  std::string labels = equation.result;
  for (char label : labels)
    if (!extents.count(label) || std::count(labels.begin(), labels.end(), label) != 1)
      return op.bad("label ", label, " of the result is no label of an operand, or comes twice");
  Extents result;
  for (char label : labels)
    result.push_back(extents[label]);
  for (auto [label, extent] : extents)
    if (labels.find(label) == std::string::npos)
      labels += label;
  Extents all;
  for (char label : labels)
    all.push_back(extents[label]);
  if (!elementCount(all))
    return op.bad("the equation has too many terms");
  return withNumbers(op.kind(0), [&](auto kind) -> Status {
    using W = std::conditional_t<std::is_same_v<decltype(kind), double>, double, uint64_t>;
    std::vector<std::vector<W>> operands;
    std::vector<Extents> strides;
    for (size_t i = 0; i < op.inputCount(); ++i) {
      operands.push_back(op.numbers<W>(i));
      Extents dense = rowMajorStrides(op.shape(i)), mine(labels.size(), 0);
      // A label that comes twice walks a diagonal: its strides add up.
      for (size_t d = 0; d < dense.size(); ++d)
        if (op.shape(i)[d] != 1)
          mine[labels.find(equation.operands[i][d])] += dense[d];
      strides.push_back(mine);
    }
    std::vector<W> sums(static_cast<size_t>(elementCount(result).value_or(0)), 0);
    int64_t inner =
        productOf(all, static_cast<int64_t>(result.size()), static_cast<int64_t>(all.size()));
    forEachIndex(all, [&](int64_t linear, const Extents &index) {
      W product = 1;
      for (size_t i = 0; i < operands.size(); ++i) {
        int64_t at = 0;
        for (size_t d = 0; d < index.size(); ++d)
          at += index[d] * strides[i][d];
        product *= operands[i][static_cast<size_t>(at)];
      }
      sums[static_cast<size_t>(linear / inner)] += product;
    });
    return op.store(0, result, sums);
  });
}

Status det(Invocation &op) {
  TRY(op.needRank(0, 2));
  int64_t n = op.shape(0).back();
  Extents result(op.shape(0).begin(), op.shape(0).end() - 2);
  if (op.shape(0)[op.shape(0).size() - 2] != n)
    return op.bad("matrices of ", textOf(op.shape(0)), " are not square");
  std::vector<double> values = op.numbers<double>(0), determinants;
  for (int64_t matrix = 0, count = elementCount(result).value_or(0); matrix < count; ++matrix) {
    // Gaussian elimination with row pivoting.
    double *a = values.data() + matrix * n * n, determinant = 1;
    for (int64_t column = 0; column < n; ++column) {
      int64_t pivot = column;
      for (int64_t row = column + 1; row < n; ++row)
        if (std::fabs(a[row * n + column]) > std::fabs(a[pivot * n + column]))
          pivot = row;
      if (pivot != column) {
        std::swap_ranges(a + pivot * n, a + (pivot + 1) * n, a + column * n);
        determinant = -determinant;
      }
      determinant *= a[column * n + column];
      if (a[column * n + column] == 0)
        break;
      for (int64_t row = column + 1; row < n; ++row) {
        double factor = a[row * n + column] / a[column * n + column];
        for (int64_t k = column; k < n; ++k)
          a[row * n + k] -= factor * a[column * n + k];
      }
    }
    determinants.push_back(determinant);
  }
  return op.store(0, result, determinants);
}

} // namespace dovetail::reference::ops
