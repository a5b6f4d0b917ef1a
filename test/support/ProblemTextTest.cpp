// SPDX-License-Identifier: Apache-2.0
//
// Whatever Dovetail prints as a problem it reads again as the same problem: every problem of the
// conformance lists, and random ones that use all that the text form has.
#include <bit>
#include <filesystem>
#include <fstream>
#include <random>

#include <gtest/gtest.h>

#include "support/Problem.h"

using namespace dovetail;

namespace {

/// Bit for bit, so that NaN equals itself.
bool sameAttribute(const AttributeValue &a, const AttributeValue &b) {
  if (a.index() != b.index())
    return false;
  auto sameBits = [](double x, double y) {
    return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y);
  };
  if (const auto *number = std::get_if<double>(&a))
    return sameBits(*number, std::get<double>(b)) ||
           (*number != *number && std::get<double>(b) != std::get<double>(b));
  if (const auto *numbers = std::get_if<std::vector<double>>(&a))
    return std::ranges::equal(*numbers, std::get<std::vector<double>>(b), sameBits);
  return a == b;
}

void expectSame(const Problem &a, const Problem &b) {
  SCOPED_TRACE(a.text());
  ASSERT_EQ(a.values.size(), b.values.size());
  for (size_t i = 0; i < a.values.size(); ++i) {
    SCOPED_TRACE(i);
    const ProblemValue &x = a.values[i], &y = b.values[i];
    EXPECT_EQ(x.type, y.type);
    EXPECT_EQ(x.extents, y.extents);
    EXPECT_EQ(x.constant, y.constant);
    EXPECT_EQ(x.uniform, y.uniform);
    EXPECT_EQ(x.isLiteral, y.isLiteral);
    EXPECT_EQ(x.literal, y.literal);
    EXPECT_EQ(x.strides, y.strides);
    EXPECT_EQ(x.mayAlias, y.mayAlias);
  }
  ASSERT_EQ(a.ops.size(), b.ops.size());
  for (size_t i = 0; i < a.ops.size(); ++i) {
    EXPECT_EQ(a.ops[i].name, b.ops[i].name);
    EXPECT_EQ(a.ops[i].version, b.ops[i].version);
    EXPECT_EQ(a.ops[i].inputs, b.ops[i].inputs);
    EXPECT_EQ(a.ops[i].outputs, b.ops[i].outputs);
    ASSERT_EQ(a.ops[i].attributes.size(), b.ops[i].attributes.size());
    for (const auto &[name, value] : a.ops[i].attributes) {
      auto found = b.ops[i].attributes.find(name);
      EXPECT_TRUE(found != b.ops[i].attributes.end() && sameAttribute(value, found->second))
          << name;
    }
  }
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.outputs, b.outputs);
  EXPECT_EQ(a.ranges.size(), b.ranges.size());
  for (const auto &[name, range] : a.ranges) {
    auto found = b.ranges.find(name);
    ASSERT_TRUE(found != b.ranges.end()) << name;
    EXPECT_EQ(range.min, found->second.min);
    EXPECT_EQ(range.max, found->second.max);
    EXPECT_EQ(range.divisor, found->second.divisor);
  }
}

void expectReadAgain(const Problem &problem) {
  auto again = Problem::parse(problem.text());
  ASSERT_TRUE(again) << problem.text() << "\n" << again.error().message;
  expectSame(problem, *again);
  EXPECT_EQ(problem.text(), again->text());
}

TEST(ProblemText, conformanceListsAreReadAgain) {
  size_t problems = 0;
  for (const auto &entry :
       std::filesystem::directory_iterator(DOVETAIL_SOURCE_DIR "/test/providers/problems")) {
    std::ifstream lines(entry.path());
    for (std::string line; std::getline(lines, line);) {
      size_t start = line.find("problem(");
      if (line.empty() || line[0] == '#' || start == std::string::npos)
        continue;
      auto problem = Problem::parse(std::string_view(line).substr(start));
      ASSERT_TRUE(problem) << entry.path() << ": " << line << "\n" << problem.error().message;
      expectReadAgain(*problem);
      ++problems;
    }
  }
  EXPECT_GT(problems, 100u);
}

/// A random problem that verifies.
class Maker {
public:
  explicit Maker(uint32_t seed) : random(seed) {}

  Problem make() {
    Problem problem;
    size_t inputs = upTo(4);
    for (size_t i = 0; i < inputs; ++i) {
      problem.values.push_back(value());
      if (problem.values.back().isLiteral)
        continue;
      problem.inputs.push_back(static_cast<uint32_t>(i));
    }
    for (size_t i = upTo(4); i > 0; --i)
      problem.ops.push_back(op(problem));
    for (uint32_t i = 0; i < problem.values.size(); ++i)
      if (upTo(2) == 0)
        problem.outputs.push_back(i);
    for (const char *symbol : {"N", "H"})
      problem.ranges[symbol] = {int64_t(1 + upTo(3)), int64_t(4 + upTo(1000)),
                                int64_t(1 + upTo(2))};
    problem.canonicalize();
    return problem;
  }

private:
  size_t upTo(size_t most) { return std::uniform_int_distribution<size_t>(0, most)(random); }

  ProblemValue value() {
    constexpr dvt_type kTypes[] = {DVT_F32, DVT_F64, DVT_F16, DVT_BF16, DVT_I8, DVT_U8,
                                   DVT_I32, DVT_I64, DVT_U64, DVT_BOOL, DVT_U4, DVT_I4};
    ProblemValue value;
    value.type = kTypes[upTo(std::size(kTypes) - 1)];
    bool symbolic = upTo(3) == 0;
    int64_t count = 1;
    for (size_t rank = upTo(3); rank > 0; --rank) {
      int64_t extent = static_cast<int64_t>(upTo(4));
      bool symbol = symbolic && upTo(1) == 0;
      value.extents.push_back(symbol ? Extent::symbol(upTo(1) == 0 ? "N" : "H") : Extent(extent));
      count = symbol ? -1 : count < 0 ? -1 : count * extent;
    }
    switch (upTo(4)) {
    case 0:
      value.constant = true;
      break;
    case 1: // uniform, handed over or literal
      value.constant = value.uniform = true;
      value.literal = element(value.type);
      value.isLiteral = upTo(1) == 0;
      break;
    case 2:
      if (count < 0)
        break;
      value.constant = value.isLiteral = true;
      value.literal.resize(bytesOf(value.type, count));
      for (uint8_t &byte : value.literal)
        byte = value.type == DVT_BOOL ? uint8_t(upTo(1)) : uint8_t(upTo(255));
      if (typeBits(value.type) < 8 && count % 2)
        value.literal.back() &= 0xF;
      break;
    default:
      if (count >= 0 && upTo(2) == 0)
        for (size_t i = 0; i < value.extents.size(); ++i)
          value.strides.push_back(static_cast<int64_t>(upTo(64)));
    }
    return value;
  }

  std::vector<uint8_t> element(dvt_type type) {
    std::vector<uint8_t> bytes(bytesOf(type, 1));
    for (uint8_t &byte : bytes)
      byte = type == DVT_BOOL ? uint8_t(upTo(1)) : uint8_t(upTo(255));
    if (typeBits(type) < 8)
      bytes[0] &= 0xF;
    return bytes;
  }

  ProblemOp op(Problem &problem) {
    ProblemOp op;
    op.name = upTo(1) == 0 ? "resize" : "dvt_reorder";
    op.version = static_cast<uint32_t>(1 + upTo(22));
    for (size_t i = upTo(3); i > 0; --i)
      op.inputs.push_back(problem.values.empty() || upTo(3) == 0
                              ? kNoValue
                              : static_cast<uint32_t>(upTo(problem.values.size() - 1)));
    for (size_t i = 1 + upTo(1); i > 0; --i) {
      if (upTo(4) == 0) {
        op.outputs.push_back(kNoValue);
        continue;
      }
      ProblemValue result;
      result.extents = {Extent(int64_t(upTo(9)))};
      if (!problem.inputs.empty() && upTo(3) == 0)
        result.mayAlias = static_cast<int32_t>(upTo(problem.inputs.size() - 1));
      op.outputs.push_back(static_cast<uint32_t>(problem.values.size()));
      problem.values.push_back(std::move(result));
    }
    const AttributeValue kValues[] = {int64_t(-3),
                                      0.1,
                                      double(0.1f),
                                      -0.0,
                                      1e300,
                                      std::string("a\"\\\n,}\x7f"),
                                      std::string(),
                                      std::vector<int64_t>{},
                                      std::vector<int64_t>{1, -2},
                                      std::vector<double>{},
                                      std::vector<double>{1, 2},
                                      std::vector<double>{0.5, -1e-7}};
    for (const char *name : {"a", "b_2", "c.d"})
      if (upTo(2) == 0)
        op.attributes[name] = kValues[upTo(std::size(kValues) - 1)];
    return op;
  }

  std::mt19937 random;
};

TEST(ProblemText, randomProblemsAreReadAgain) {
  size_t made = 0;
  for (uint32_t seed = 0; seed < 3000 && !::testing::Test::HasFailure(); ++seed) {
    Problem problem = Maker(seed).make();
    if (!problem.verify())
      continue;
    ++made;
    expectReadAgain(problem);
  }
  EXPECT_GT(made, 2000u);
}

TEST(ProblemText, constantWithAllItsElementsIsALiteral) {
  auto problem = Problem::parse("problem(%0: f32[1,2], %1: const f32[2] {1,2}) %2: f32[2,2] = "
                                "resize@19(%0, _, %1) return(%2)");
  ASSERT_TRUE(problem) << problem.error().message;
  EXPECT_EQ(problem->inputs, std::vector<uint32_t>{0});
  EXPECT_TRUE(problem->values[1].isLiteral);
  expectReadAgain(*problem);
}

} // namespace
