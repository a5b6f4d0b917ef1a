// SPDX-License-Identifier: Apache-2.0
//
// Layout texts, offsets against formulas written out by hand, and conversions.
#include <map>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "support/Layout.h"

using namespace dovetail;

namespace {

Layout layout(const std::string &text) {
  auto result = Layout::parse(text);
  EXPECT_TRUE(result) << text;
  return result ? *result : Layout();
}

TEST(Layout, TextRoundTrips) {
  for (const char *text : {"acdb", "aBcd16b", "ABcd4a16b4a", "ba", "ABcd8b8a", "Acdb16a"})
    EXPECT_EQ(layout(text).text(), text);
  EXPECT_EQ(layout("abcd").text(), "");
  EXPECT_EQ(layout("abcd"), layout(""));
  EXPECT_TRUE(layout("ab").isRowMajor());
}

TEST(Layout, RefusesNonsense) {
  for (const char *text : {"aa", "ac", "aBcd", "abcd16b", "aBcd0b", "aBcd16", "aBcd16e", "aBcd16B",
                           "aBcd70000b", "16b", "a b", "aBcd256b256b256b"})
    EXPECT_FALSE(Layout::parse(text)) << text;
}

TEST(Layout, OffsetsMatchFormulas) {
  std::vector<int64_t> e{2, 20, 3, 5};
  Layout nhwc = layout("acdb"), blocked = layout("aBcd16b"), twice = layout("ABcd4a16b2a");
  EXPECT_EQ(nhwc.physicalElements(e), 2 * 20 * 3 * 5);
  EXPECT_EQ(blocked.physicalElements(e), 2 * 32 * 3 * 5);
  EXPECT_EQ(twice.physicalElements(e), 8 * 32 * 3 * 5);
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t c = 0; c < 20; ++c)
      for (int64_t h = 0; h < 3; ++h)
        for (int64_t w = 0; w < 5; ++w) {
          std::vector<int64_t> i{n, c, h, w};
          EXPECT_EQ(Layout().offset(e, i), ((n * 20 + c) * 3 + h) * 5 + w);
          EXPECT_EQ(nhwc.offset(e, i), ((n * 3 + h) * 5 + w) * 20 + c);
          EXPECT_EQ(blocked.offset(e, i), (((n * 2 + c / 16) * 3 + h) * 5 + w) * 16 + c % 16);
          EXPECT_EQ(twice.offset(e, i),
                    (((((n / 8 * 2 + c / 16) * 3 + h) * 5 + w) * 4 + n % 8 / 2) * 16 + c % 16) * 2 +
                        n % 2);
        }
  std::vector<Extent> symbolic{Extent::symbol("N"), Extent(20), Extent(3), Extent(5)};
  EXPECT_EQ(blocked.physicalElements(symbolic), Extent(32 * 15) * Extent::symbol("N"));
}

TEST(Layout, ReorderThereAndBackWithZeroPadding) {
  std::vector<int64_t> e{2, 20, 3, 5};
  std::vector<float> source(600), back(600, -1);
  std::iota(source.begin(), source.end(), 1.0f);
  Layout blocked = layout("aBcd16b");
  std::vector<float> middle(blocked.physicalElements(e), -7);
  reorder(DVT_F32, e, Layout(), source.data(), blocked, middle.data());
  EXPECT_EQ(middle[blocked.offset(e, {1, 17, 2, 4})], source[((1 * 20 + 17) * 3 + 2) * 5 + 4]);
  EXPECT_EQ(std::count(middle.begin(), middle.end(), 0.0f), 2 * 12 * 15);
  reorder(DVT_F32, e, blocked, middle.data(), layout("acdb"), back.data());
  EXPECT_EQ(back[20], source[1]);
  std::vector<float> again(600);
  reorder(DVT_F32, e, layout("acdb"), back.data(), Layout(), again.data());
  EXPECT_EQ(again, source);
  uint8_t byte = 5, out = 0;
  reorder(DVT_U8, {}, Layout(), &byte, Layout(), &out);
  EXPECT_EQ(out, 5);
  reorder(DVT_F32, {0, 3}, Layout(), nullptr, layout("ba"), nullptr);
}

TEST(Layout, LayoutsOfTheSameBytesAreOne) {
  const Extent n = Extent::symbol("N");
  auto canonical = [](const char *text, const std::vector<Extent> &extents) {
    return canonicalLayout(text, extents);
  };
  EXPECT_EQ(canonical("acdb", {2, 1, 3, 5}), "");
  EXPECT_EQ(canonical("acdb", {n, 1, n, 5}), "");
  EXPECT_EQ(canonical("acdb", {2, 7, 1, 1}), "");
  EXPECT_EQ(canonical("acdb", {2, 7, 1, 5}), "acdb");
  EXPECT_EQ(canonical("adcb", {2, 7, 1, 5}), "acdb");
  EXPECT_EQ(canonical("acdb", {2, n, 3, 5}), "acdb");
  EXPECT_EQ(canonical("aBcd16b", {2, 16, 3, 5}), "acdb");
  EXPECT_EQ(canonical("aBcd16b", {2, 32, 3, 5}), "aBcd16b");
  EXPECT_EQ(canonical("aBcd16b", {2, 1, 3, 5}), "aBcd16b");
  EXPECT_EQ(canonical("aBcd16b", {2, n, 3, 5}), "aBcd16b");
  EXPECT_EQ(canonical("aBcd16b", {n, 16, 1, 1}), "");
  EXPECT_EQ(canonical("aBcd4b4b", {2, 16, 3, 5}), "aBcd4b4b");
  EXPECT_EQ(canonical("nonsense", {2, 3}), "nonsense");
  EXPECT_EQ(canonical("acdb", {2, 3}), "acdb");
  EXPECT_TRUE(isSameLayout("acdb", "aBcd8b", {2, 8, 3, 5}));
  EXPECT_FALSE(isSameLayout("acdb", "aBcd8b", {2, 9, 3, 5}));
}

/// Whatever is said to be the same has every element at the same place, and as many in memory.
TEST(Layout, CanonicalLayoutsKeepEveryElementInItsPlace) {
  const char *texts[] = {"acdb",     "adcb",     "dcba",        "cabd",     "bacd",
                         "aBcd4b",   "ABcd4b2a", "aBcd2b2b",    "BAcd2a4b", "ABcd2a4b2a",
                         "aBCd4b3c", "aBcD5d4b", "ABCD1a4b3c5d"};
  std::map<std::string, int> found;
  for (int64_t a : {1, 2, 4})
    for (int64_t b : {1, 3, 4, 8})
      for (int64_t c : {1, 3})
        for (int64_t d : {1, 5})
          for (const char *text : texts) {
            std::vector<int64_t> extents{a, b, c, d};
            std::string same = canonicalLayout(text, {a, b, c, d});
            Layout from = layout(text), to = layout(same);
            found[same] += same != text;
            ASSERT_EQ(from.physicalElements(extents), to.physicalElements(extents)) << text;
            ASSERT_EQ(canonicalLayout(same, {a, b, c, d}), same) << text;
            for (int64_t i = 0; i < a * b * c * d; ++i) {
              std::vector<int64_t> at{i / (b * c * d), i / (c * d) % b, i / d % c, i % d};
              ASSERT_EQ(from.offset(extents, at), to.offset(extents, at)) << text << " as " << same;
            }
          }
  EXPECT_GT(found[""], 0);
  EXPECT_GT(found["acdb"], 0);
}

} // namespace
