// SPDX-License-Identifier: Apache-2.0
//
// The text form of problems round trips exactly; verification; the view lent to providers; mutated
// text never crashes.
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "support/Problem.h"

using namespace dovetail;

namespace {

const char *const kTexts[] = {
    "problem(%0: f32[1,64,56,56], %1: const f32[64,64,3,3], %2: f32[] {0.5}) %3: f32[1,64,56,56] = "
    "conv@22(%0, %1, _) {dilations=[1,1], group=1, kernel_shape=[3,3], pads=[1,1,1,1], "
    "strides=[1,1]}; %4: f32[1,64,56,56] = mul@14(%3, %2) return(%4)",
    "problem(%0: f32[N,floordiv(H+1,2),16*W]) %1: f32[N,floordiv(H+1,2),16*W] = relu@14(%0) "
    "return(%1) "
    "where H in 1..2147483648, N in 1..64/8, W in 1..100",
    "problem(%0: f32[4] strides[2], %1: f32[4] {1..}) %2: f32[4] alias(0) = add@14(%0, %1) "
    "return(%2)",
    "problem(%0: f32[8], %1: const f32[8] {0.25..}) %2: f32[8] = add@14(%0, %1) return(%2)",
    "problem(%0: f32[2], %1: i64[3] {-1,0,9223372036854775807}, %2: i64[0] {}, %3: u4[3] {1,15,0}, "
    "%4: bool[2] {0,1}) %5: f32[2], _, %6: i8[] = foo.bar@1(%0, %1, %2, %3, %4) "
    "{a=1, b=1.0, c=0.1f, d=\"x\\\"y\\\\\\x0a\", e=[], f=[]f, g=[0.5,1e-05f,-inf], h=nan, "
    "i=0.1} return(%5, %6)",
    "problem() %0: f32[2,2] = dvt_nothing@1() return(%0)",
    "problem(%0: f32[]) return(%0)",
};

TEST(Problem, TextRoundTrips) {
  for (const char *text : kTexts) {
    auto problem = Problem::parse(text);
    ASSERT_TRUE(problem) << text << "\n" << problem.error().message;
    EXPECT_EQ(problem->text(), text);
    EXPECT_TRUE(problem->verify());
  }
}

TEST(Problem, LiteralBitsSurvive) {
  Problem p;
  std::vector<uint32_t> bits{0x3dcccccd, 0x80000000, 0x7f800000, 0xff800000,
                             0x7fc00000, 0xffc00001, 0x00000001, 0x7f7fffff};
  std::mt19937 random(3);
  while (bits.size() < 200)
    bits.push_back(random());
  ProblemValue literal;
  literal.extents = {Extent(int64_t(bits.size()))};
  literal.isLiteral = true;
  literal.literal.resize(bits.size() * 4);
  std::memcpy(literal.literal.data(), bits.data(), literal.literal.size());
  p.values = {literal};
  p.outputs = {0};
  p.canonicalize();
  auto again = Problem::parse(p.text());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->values[0].literal, literal.literal);
  EXPECT_TRUE(again->values[0].constant);
}

TEST(Problem, CanonicalNumbering) {
  // Values 5: input, 2: literal, 0: result, 1 and 3 unused.
  Problem p;
  p.values.resize(6);
  p.values[2].isLiteral = p.values[2].uniform = true;
  p.values[2].literal = {0, 0, 0, 0x40};
  p.values[2].extents = p.values[5].extents = p.values[0].extents = {Extent::symbol("N")};
  p.inputs = {5};
  p.outputs = {0};
  p.ops = {{"mul", 14, {2, 5}, {0}, {}}};
  p.ranges["unused"] = {};
  p.canonicalize();
  EXPECT_EQ(p.text(),
            "problem(%0: f32[N], %1: f32[N] {2..}) %2: f32[N] = mul@14(%1, %0) return(%2) "
            "where N in 1..2147483648");
  EXPECT_EQ(p.values.size(), 3u);
  Problem s = p.specialize({{"N", 4}});
  EXPECT_FALSE(s.hasSymbols());
  EXPECT_EQ(s.text(),
            "problem(%0: f32[4], %1: f32[4] {2..}) %2: f32[4] = mul@14(%1, %0) return(%2)");
}

TEST(Problem, VerifyFindsFaults) {
  for (const char *text :
       {"problem(%0: f32[1]) %1: f32[1] = relu@14(%1) return(%1)",
        "problem(%0: f32[1], %0: f32[1]) return(%0)", "problem(%0: f32[1]) return(%1)",
        "problem(%0: f32[-1]) return(%0)", "problem(%0: f32[2] {1}) return(%0)",
        "problem(%0: f32[N] {1}) return(%0)", "problem(%0: f32[2] strides[1,1]) return(%0)",
        "problem(%0: f32[2] alias(1)) return(%0)", "problem(%0: string[1] {a}) return(%0)",
        "problem(%0: f99[2]) return(%0)", "problem(%0: i8[1] {128}) return(%0)",
        "problem(%0: f32[N]) return(%0) where N in 5..2",
        "problem(%0: f32[1]) %1: f32[1] = a@1(%0) {x=1, x=2} return(%1)"}) {
    auto problem = Problem::parse(text);
    ASSERT_FALSE(problem) << text;
    EXPECT_EQ(problem.error().kind, ErrorKind::BadInput);
    EXPECT_FALSE(problem.error().message.empty());
  }
}

TEST(Problem, MutatedTextNeverCrashes) {
  std::mt19937 random(11);
  const std::string alphabet = "%0123456789(){}[],.;:@= _-\"\\nafx";
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = kTexts[random() % std::size(kTexts)];
    for (int k = random() % 4; k >= 0; --k) {
      size_t at = random() % text.size();
      switch (random() % 4) {
      case 0:
        text[at] = alphabet[random() % alphabet.size()];
        break;
      case 1:
        text.erase(at, random() % 5);
        break;
      case 2:
        text.insert(at, text.substr(random() % text.size(), random() % 9));
        break;
      default:
        text.resize(at + 1);
      }
      if (text.empty())
        text = "p";
    }
    auto problem = Problem::parse(text);
    if (!problem)
      continue;
    ++accepted;
    auto again = Problem::parse(problem->text());
    ASSERT_TRUE(again) << text << "\n" << problem->text() << "\n" << again.error().message;
    EXPECT_EQ(again->text(), problem->text());
  }
  EXPECT_GT(accepted, 100);
}

TEST(Problem, ViewShowsEverything) {
  auto p = Problem::parse(kTexts[1]);
  ASSERT_TRUE(p);
  ProblemView view(*p);
  const dvt_problem *c = view.get();
  EXPECT_STREQ(c->text, kTexts[1]);
  ASSERT_EQ(c->value_count, 2u);
  EXPECT_EQ(c->values[0].extents[0].value, -1);
  EXPECT_STREQ(c->values[0].extents[0].symbol, "N");
  EXPECT_EQ(c->values[0].extents[0].max, 64);
  EXPECT_EQ(c->values[0].extents[0].divisor, 8);
  EXPECT_EQ(c->values[0].extents[2].divisor, 16);
  EXPECT_STREQ(c->ops[0].name, "relu");
  auto q = Problem::parse(kTexts[4]);
  ASSERT_TRUE(q);
  ProblemView other(*q);
  c = other.get();
  EXPECT_EQ(c->ops[0].outputs[1], DVT_NO_VALUE);
  EXPECT_EQ(c->ops[0].attribute_count, 9u);
  EXPECT_STREQ(c->ops[0].attributes[3].s, "x\"y\\\n");
  EXPECT_EQ(c->ops[0].attributes[2].f, double(0.1f));
  EXPECT_EQ(c->values[1].flags, unsigned(DVT_VALUE_CONSTANT | DVT_VALUE_LITERAL));
  EXPECT_EQ(summary(*q), "foo.bar");
}

} // namespace
