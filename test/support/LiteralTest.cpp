// SPDX-License-Identifier: Apache-2.0
//
// Half and bfloat16 conversions, all of them one way, and back through text.
#include <cmath>

#include <gtest/gtest.h>

#include "support/Literal.h"

using namespace dovetail;

namespace {

TEST(Literal, EveryHalfRoundTrips) {
  for (dvt_type type : {DVT_F16, DVT_BF16})
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      std::vector<uint8_t> bytes{uint8_t(bits), uint8_t(bits >> 8)}, again;
      ASSERT_TRUE(appendElement(type, elementText(type, bytes, 0), 0, again)) << bits;
      ASSERT_EQ(again, bytes) << bits << " " << elementText(type, bytes, 0);
    }
}

TEST(Literal, HalfRoundsToNearestEven) {
  EXPECT_EQ(floatToHalf(1.0f), 0x3c00);
  EXPECT_EQ(floatToHalf(1.0f + 0x1p-11f), 0x3c00);
  EXPECT_EQ(floatToHalf(1.0f + 0x3p-11f), 0x3c02);
  EXPECT_EQ(floatToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(floatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(floatToHalf(-0x1p-24f), 0x8001);
  EXPECT_EQ(floatToHalf(0x1p-25f), 0);
  EXPECT_EQ(halfToFloat(0x0001), 0x1p-24f);
  EXPECT_EQ(floatToBfloat(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(floatToBfloat(1.0f + 0x3p-8f), 0x3f82);
  EXPECT_TRUE(std::isnan(bfloatToFloat(floatToBfloat(NAN))));
}

} // namespace
