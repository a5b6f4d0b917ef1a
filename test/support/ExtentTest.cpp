// SPDX-License-Identifier: Apache-2.0
//
// Extent algebra: canonical forms, division, substitution, and the same values as direct evaluation
// on random expressions.
#include <random>

#include <gtest/gtest.h>

#include "support/Extent.h"

using namespace dovetail;

namespace {

const Extent H = Extent::symbol("H"), W = Extent::symbol("W"), N = Extent::symbol("N");

TEST(Extent, EqualPolynomialsAreEqual) {
  EXPECT_EQ(Extent(2) * H + Extent(2) * H, Extent(4) * H);
  EXPECT_EQ((H + W) * (H - W), H * H - W * W);
  EXPECT_EQ(H - H, Extent(0));
  EXPECT_EQ((Extent(4) * H + Extent(1)).text(), "4*H+1");
  EXPECT_EQ((Extent(3) - H).text(), "-H+3");
  EXPECT_EQ((W * H * Extent(-2)).text(), "-2*H*W");
}

TEST(Extent, FloorDivisionIsCanonical) {
  EXPECT_EQ(Extent::floorDiv(Extent(4) * H, Extent(2)), Extent(2) * H);
  EXPECT_EQ(Extent::floorDiv(Extent(4) * H + Extent(5), Extent(4)), H + Extent(1));
  EXPECT_EQ(Extent::floorDiv(Extent(2) * H + Extent(2), Extent(4)).text(), "floordiv(H+1,2)");
  EXPECT_EQ(Extent::floorDiv(Extent::floorDiv(H, Extent(2)) + Extent(1), Extent(2)).text(),
            "floordiv(H+2,4)");
  EXPECT_EQ(Extent::floorDiv(N * H * W, H * W), N);
  EXPECT_EQ(Extent::floorDiv(Extent(-7), Extent(2)).value(), -4);
  EXPECT_EQ(Extent::ceilDiv(Extent(2) * H, Extent(2)), H);
  EXPECT_EQ(Extent::ceilDiv(H, Extent(16)).text(), "floordiv(H+15,16)");
}

TEST(Extent, ExactDivision) {
  EXPECT_EQ(*Extent::exactDiv(N * H + Extent(2) * N, N), H + Extent(2));
  EXPECT_EQ(*Extent::exactDiv(H * H - W * W, H + W), H - W);
  EXPECT_FALSE(Extent::exactDiv(H + Extent(1), H));
  EXPECT_FALSE(Extent::exactDiv(Extent(3) * H, Extent(2)));
  EXPECT_FALSE(Extent::exactDiv(H, Extent(0)));
}

TEST(Extent, MinMaxMod) {
  EXPECT_EQ(Extent::min(H, H + Extent(3)), H);
  EXPECT_EQ(Extent::max(H, H + Extent(3)), H + Extent(3));
  EXPECT_EQ(Extent::min(H, W), Extent::min(W, H));
  EXPECT_EQ(Extent::max(Extent::min(Extent(512), H), H), H);
  EXPECT_EQ(Extent::max(H + W, Extent::min(H + W, W)), H + W);
  EXPECT_EQ(Extent::min(Extent::max(Extent(512), H), H), H);
  EXPECT_EQ(Extent::max(Extent::max(W, H), H), Extent::max(W, H));
  EXPECT_NE(Extent::max(Extent::min(Extent(512), H), W), W);
  EXPECT_EQ(Extent::mod(Extent(4) * H + Extent(6), Extent(4)).value(), 2);
  EXPECT_EQ(Extent::mod(Extent(-1), Extent(4)).value(), 3);
}

TEST(Extent, EvaluationNoticesWhatHasNoValue) {
  SymbolValues values{{"H", 1LL << 40}, {"W", 0}};
  EXPECT_EQ((H * W).evaluate(values), 0);
  EXPECT_EQ((H * N).evaluate(values), std::nullopt);
  EXPECT_EQ((H * H).evaluate(values), std::nullopt) << "overflow";
  EXPECT_EQ(Extent::floorDiv(H, W).evaluate(values), std::nullopt) << "division by zero";
  EXPECT_EQ((Extent(INT64_MAX) + Extent(1)).staticValue(), std::nullopt);
  EXPECT_EQ((Extent(INT64_MAX) * Extent(2) - Extent(INT64_MAX)).evaluate({}), std::nullopt);
}

TEST(Extent, SubstitutionReachesIntoFunctions) {
  Extent e = Extent::floorDiv(H + W, Extent(2)) + N;
  EXPECT_EQ(e.substitute(SymbolValues{{"W", 3}, {"N", 1}}).text(), "floordiv(H+1,2)+2");
  EXPECT_EQ(e.substitute(std::map<std::string, Extent, std::less<>>{{"W", H}}), H + N);
  EXPECT_EQ(e.symbols(), (std::vector<std::string>{"H", "N", "W"}));
}

TEST(Extent, RangeHolds) {
  SymbolRanges ranges{{"H", {8, 64, 8}}, {"W", {1, 10, 1}}};
  EXPECT_EQ((Extent(2) * H).range(ranges), (SymbolRange{16, 128, 16}));
  EXPECT_EQ((H - W).range(ranges), (SymbolRange{-2, 63, 1}));
  SymbolRange half = Extent::floorDiv(H + Extent(1), Extent(2)).range(ranges);
  EXPECT_LE(half.min, 4);
  EXPECT_GE(half.max, 32);
}

TEST(Extent, SymbolNamesAreCleaned) {
  EXPECT_EQ(Extent::symbol("batch size").text(), "batch_size");
  EXPECT_EQ(Extent::symbol("2x").text(), "_2x");
  EXPECT_EQ(Extent::symbol("").text(), "_");
}

// Random trees, evaluated directly and through Extent, under values for which nothing overflows.
struct Tree {
  Extent extent;
  std::function<std::optional<int64_t>(const SymbolValues &)> value;
};

Tree randomTree(std::mt19937 &random, int depth) {
  auto pick = [&](int n) { return int(random() % n); };
  if (depth == 0 || pick(4) == 0) {
    if (pick(2)) {
      int64_t number = pick(9) - 2;
      return {Extent(number), [=](const SymbolValues &) { return number; }};
    }
    std::string name(1, "HWN"[pick(3)]);
    return {Extent::symbol(name), [=](const SymbolValues &v) { return v.at(name); }};
  }
  Tree a = randomTree(random, depth - 1), b = randomTree(random, depth - 1);
  auto both = [a, b](auto f) {
    return [=](const SymbolValues &v) -> std::optional<int64_t> {
      auto x = a.value(v), y = b.value(v);
      return x && y ? f(*x, *y) : std::nullopt;
    };
  };
  using Result = std::optional<int64_t>;
  auto floored = [](int64_t x, int64_t y) { return x / y - (x % y != 0 && (x < 0) != (y < 0)); };
  switch (pick(8)) {
  case 0:
  case 1:
    return {a.extent + b.extent, both([](int64_t x, int64_t y) -> Result { return x + y; })};
  case 2:
    return {a.extent - b.extent, both([](int64_t x, int64_t y) -> Result { return x - y; })};
  case 3:
    return {a.extent * b.extent, both([](int64_t x, int64_t y) -> Result { return x * y; })};
  case 4:
    return {Extent::floorDiv(a.extent, b.extent), both([=](int64_t x, int64_t y) -> Result {
              return y ? Result(floored(x, y)) : std::nullopt;
            })};
  case 5:
    return {Extent::ceilDiv(a.extent, b.extent), both([=](int64_t x, int64_t y) -> Result {
              return y ? Result(-floored(-x, y)) : std::nullopt;
            })};
  case 6:
    return {Extent::mod(a.extent, b.extent), both([=](int64_t x, int64_t y) -> Result {
              return y ? Result(x - y * floored(x, y)) : std::nullopt;
            })};
  default:
    return {Extent::min(a.extent, b.extent),
            both([](int64_t x, int64_t y) -> Result { return std::min(x, y); })};
  }
}

TEST(Extent, AgreesWithDirectEvaluation) {
  std::mt19937 random(7);
  int compared = 0;
  for (int round = 0; round < 3000; ++round) {
    Tree tree = randomTree(random, 4);
    auto parsed = Extent::parse(tree.extent.text());
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(*parsed, tree.extent) << tree.extent.text();
    for (int k = 0; k < 4; ++k) {
      SymbolValues values{
          {"H", random() % 20 + 1}, {"W", random() % 9 + 1}, {"N", random() % 5 + 1}};
      auto expected = tree.value(values);
      if (!expected) // a division by zero may have cancelled out
        continue;
      EXPECT_EQ(tree.extent.evaluate(values), expected) << tree.extent.text();
      ++compared;
    }
  }
  EXPECT_GT(compared, 5000);
}

TEST(Extent, ParserRefusesGarbage) {
  for (const char *text : {"", "+", "H+", "2**H", "floordiv(H)", "floordiv(H,2", "foo(H,2)", "H W",
                           "99999999999999999999", "(H)", "H,2", "--H", "3H"})
    EXPECT_FALSE(Extent::parse(text)) << text;
  std::string deep;
  for (int i = 0; i < 100000; ++i)
    deep += "min(H,";
  EXPECT_FALSE(Extent::parse(deep));
  EXPECT_EQ(Extent::parse("-9223372036854775808")->value(), INT64_MIN);
}

} // namespace
