// SPDX-License-Identifier: Apache-2.0
//
// Matrix products, einsum and determinants.
#include "graph/shapes/Broadcasts.h"
#include "graph/shapes/ShapeRules.h"

#include <map>

namespace dovetail::graph {
namespace {

/// Extents of the matrix product of `a` and `b` after numpy's rules.
Expected<Shape> product(const InferContext &c, Shape a, Shape b) {
  if (a.empty() || b.empty())
    return c.fail("has operands of extents {} and {}, expected rank 1 or more", shapeText(a),
                  shapeText(b));
  bool dropRow = a.size() == 1, dropColumn = b.size() == 1;
  if (dropRow)
    a.insert(a.begin(), 1);
  if (dropColumn)
    b.push_back(1);
  if (Status status = c.needEqual(a.back(), b[b.size() - 2], "inner extents"); !status)
    return status.takeError();
  Expected<Shape> result =
      c.broadcast(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  if (!result)
    return result;
  if (!dropRow)
    result->push_back(a[a.size() - 2]);
  if (!dropColumn)
    result->push_back(b.back());
  return result;
}

Status productOf(InferContext &c, size_t a, size_t b, dvt_type type) {
  Expected<Shape> shape = product(c, c.shape(a), c.shape(b));
  if (!shape)
    return shape.takeError();
  c.result(0, type, std::move(*shape));
  return Status::success();
}

Status matMul(InferContext &c) {
  if (c.type(0) != c.type(1))
    return c.fail("multiplies {} by {}, expected one type", typeName(c.type(0)),
                  typeName(c.type(1)));
  return productOf(c, 0, 1, c.type(0));
}

Status matMulInteger(InferContext &c) { return productOf(c, 0, 1, DVT_I32); }

Status qLinearMatMul(InferContext &c) {
  if (Status status = checkScales(c, 6); !status)
    return status;
  return productOf(c, 0, 3, c.type(7));
}

Status gemm(InferContext &c) {
  for (size_t i : {0, 1})
    if (Status status = c.needRank(i, 2); !status)
      return status;
  bool transA = c.integer("transA", 0), transB = c.integer("transB", 0);
  const Shape &a = c.shape(0), &b = c.shape(1);
  if (Status status = c.needEqual(a[transA ? 0 : 1], b[transB ? 1 : 0], "inner extents"); !status)
    return status;
  Shape shape{a[transA ? 1 : 0], b[transB ? 0 : 1]};
  if (c.has(2))
    if (Status status = needBroadcastTo(c, 2, shape); !status)
      return status;
  c.result(0, c.type(0), std::move(shape));
  return Status::success();
}

/// One term of an einsum equation, split where "..." stands.
struct Term {
  std::string before, after;
  bool ellipsis = false;
};

Expected<Term> readTerm(const InferContext &c, std::string_view text) {
  Term term;
  for (size_t i = 0; i < text.size(); ++i) {
    char letter = text[i];
    if (text.substr(i, 3) == "..." && !term.ellipsis) {
      term.ellipsis = true;
      i += 2;
    } else if ((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z')) {
      (term.ellipsis ? term.after : term.before) += letter;
    } else {
      return c.fail("cannot read the term '{}' of the equation", text);
    }
  }
  return term;
}

struct Equation {
  std::vector<Term> operands;
  Term result;
};

Expected<Equation> readEquation(const InferContext &c) {
  std::string text;
  for (char letter : c.text("equation", ""))
    if (letter != ' ')
      text += letter;
  size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  Equation equation;
  std::map<char, int> uses;
  for (size_t begin = 0; begin <= left.size();) {
    size_t end = std::min(left.find(',', begin), left.size());
    Expected<Term> term = readTerm(c, std::string_view(left).substr(begin, end - begin));
    if (!term)
      return term.takeError();
    for (char letter : term->before + term->after)
      ++uses[letter];
    equation.result.ellipsis |= term->ellipsis;
    equation.operands.push_back(std::move(*term));
    begin = end + 1;
  }
  if (arrow == std::string::npos) {
    // Without an arrow: the letters used once, in order of the alphabet, after the broadcast part.
    for (auto [letter, count] : uses)
      if (count == 1)
        equation.result.after += letter;
    return equation;
  }
  Expected<Term> result = readTerm(c, std::string_view(text).substr(arrow + 2));
  if (!result)
    return result.takeError();
  equation.result = std::move(*result);
  return equation;
}

Status einsum(InferContext &c) {
  Expected<Equation> equation = readEquation(c);
  if (!equation)
    return equation.takeError();
  if (equation->operands.size() != c.operandCount())
    return c.fail("the equation '{}' has {} terms for {} operands", c.text("equation", ""),
                  equation->operands.size(), c.operandCount());
  std::map<char, Extent> extents;
  Shape shared;
  for (size_t i = 0; i < c.operandCount(); ++i) {
    const Term &term = equation->operands[i];
    size_t named = term.before.size() + term.after.size();
    if (c.rank(i) < named || (!term.ellipsis && c.rank(i) != named))
      return c.fail("operand {} has the extents {}, which do not fit the equation '{}'", i,
                    shapeText(c.shape(i)), c.text("equation", ""));
    const Shape &shape = c.shape(i);
    auto bind = [&](char letter, const Extent &extent) -> Status {
      auto [place, isNew] = extents.try_emplace(letter, extent);
      if (isNew)
        return Status::success();
      Expected<Extent> joint = c.broadcast(place->second, extent);
      if (!joint)
        return joint.takeError();
      place->second = *joint;
      return Status::success();
    };
    size_t tail = shape.size() - term.after.size();
    for (size_t d = 0; d < term.before.size(); ++d)
      if (Status status = bind(term.before[d], shape[d]); !status)
        return status;
    for (size_t d = 0; d < term.after.size(); ++d)
      if (Status status = bind(term.after[d], shape[tail + d]); !status)
        return status;
    if (term.ellipsis) {
      Expected<Shape> joint =
          c.broadcast(shared, Shape(shape.begin() + term.before.size(), shape.begin() + tail));
      if (!joint)
        return joint.takeError();
      shared = std::move(*joint);
    }
  }
  Shape result;
  auto append = [&](const std::string &letters) {
    for (char letter : letters)
      result.push_back(extents.count(letter) ? extents[letter] : Extent(-1));
  };
  append(equation->result.before);
  if (equation->result.ellipsis)
    result.insert(result.end(), shared.begin(), shared.end());
  append(equation->result.after);
  for (const Extent &extent : result)
    if (extent == Extent(-1))
      return c.fail("the result of the equation '{}' has a letter that no operand has",
                    c.text("equation", ""));
  c.result(0, c.type(0), std::move(result));
  return Status::success();
}

Status determinant(InferContext &c) {
  if (Status status = c.needRankAtLeast(0, 2); !status)
    return status;
  const Shape &shape = c.shape(0);
  if (Status status = c.needEqual(shape.back(), shape[shape.size() - 2], "matrix extents"); !status)
    return status;
  c.result(0, c.type(0), Shape(shape.begin(), shape.end() - 2));
  return Status::success();
}

} // namespace

void addContractionRules(ShapeRules &rules) {
  rules["mat_mul"] = matMul;
  rules["mat_mul_integer"] = matMulInteger;
  rules["q_linear_mat_mul"] = qLinearMatMul;
  rules["gemm"] = gemm;
  rules["einsum"] = einsum;
  rules["det"] = determinant;
}

} // namespace dovetail::graph
