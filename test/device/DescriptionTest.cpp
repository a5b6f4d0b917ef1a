// SPDX-License-Identifier: Apache-2.0
//
// The descriptions that come with Dovetail, and how those of users are read and refused.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "device/DeviceDescription.h"

using namespace dovetail;
using namespace dovetail::device;
using testing::HasSubstr;

namespace {

const std::string kShipped = DOVETAIL_SOURCE_DIR "/src/device/descriptions";

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(DeviceDescription, ThoseThatCome) {
  auto all = readDescriptions({kShipped});
  ASSERT_TRUE(all) << all.error().message;
  std::vector<std::string> names;
  for (const DeviceDescription &description : *all) {
    names.push_back(description.target().name());
    EXPECT_GT(description.peak("f32"), 1) << names.back();
    EXPECT_GE(description.peak("f16_matrix"), description.peak("f32")) << names.back();
    EXPECT_EQ(description.peak("nonsense"), 0);
    EXPECT_LE(description.sharedBytesPerBlock, description.sharedBytesPerUnit);
    EXPECT_EQ(description.threadsPerUnit % description.warpSize, 0u);
    EXPECT_THAT(description.source, HasSubstr("not read from a device"));
    EXPECT_EQ(description.warpSize, description.api == "cuda" ? 32u : 64u);
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("cuda:sm_80", "cuda:sm_90", "cuda:sm_100",
                                                   "rocm:gfx90a", "rocm:gfx942"));
}

TEST(DeviceDescription, TextIsCanonical) {
  auto all = readDescriptions({kShipped});
  ASSERT_TRUE(all);
  std::set<std::string> texts;
  for (const DeviceDescription &description : *all) {
    auto again = DeviceDescription::parse(description.text(), "again");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->text(), description.text());
    Target target = description.target();
    EXPECT_TRUE(target.isDevice());
    EXPECT_EQ(target.memory(), DVT_MEMORY_DEVICE);
    auto carried = DeviceDescription::of(target.view());
    ASSERT_TRUE(carried) << carried.error().message;
    EXPECT_EQ(carried->text(), description.text());
    EXPECT_TRUE(texts.insert(target.text()).second) << target.text();
    target.description = replaced(target.description, "\"launch_micros\"", "\"launch_micros \"");
    EXPECT_FALSE(texts.contains(target.text()));
    EXPECT_FALSE(DeviceDescription::of(target));
  }
}

TEST(DeviceDescription, WhatIsWrongIsNamed) {
  auto shipped = findDescription("cuda:sm_90", {kShipped});
  ASSERT_TRUE(shipped) << shipped.error().message;
  const std::string text = shipped->text();
  auto refuses = [](const std::string &changed, const std::string &says) {
    auto description = DeviceDescription::parse(changed, "file.json");
    ASSERT_FALSE(description) << changed;
    EXPECT_EQ(description.error().kind, ErrorKind::BadInput);
    EXPECT_THAT(description.error().message, HasSubstr("file.json: "));
    EXPECT_THAT(description.error().message, HasSubstr(says));
  };
  refuses("", "not a JSON object");
  refuses("[1]", "not a JSON object");
  refuses(text.substr(0, text.size() / 2), "not a JSON object");
  refuses(replaced(text, ",\"warp_size\":32", ""), "lacks 'warp_size'");
  refuses(replaced(text, "\"warp_size\":32", "\"warp_size\":\"32\""), "'warp_size' is \"32\"");
  refuses(replaced(text, "\"warp_size\":32", "\"warp_size\":0"), "a number from 1 to 128");
  refuses(replaced(text, "\"launch_micros\":3.0", "\"launch_micros\":-1"), "'launch_micros' is -1");
  refuses(replaced(text, "\"warp_size\":", "\"wrap_size\":1,\"warp_size\":"), "'wrap_size' is no");
  refuses(replaced(text, "\"api\":\"cuda\"", "\"api\":\"metal\""), "cuda and rocm are known");
  refuses(replaced(text, "\"sm_90\"", "\"sm 90\""), "'architecture' is 'sm 90'");
  refuses(replaced(text, "\"f32\":67.0", "\"f32\":0"), "'peak_teraops' of 'f32' is 0");
  refuses(replaced(text, "\"f32\":67.0,", ""), "at least 'f32'");
  refuses(replaced(text, "\"library_properties\":{", "\"library_properties\":1,\"x\":{"),
          "'library_properties' is 1");
}

TEST(DeviceDescription, UnknownOnesListTheKnown) {
  auto found = findDescription("cuda:sm_70", {kShipped});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::BadInput);
  for (const char *known : {"cpu", "cuda:sm_80", "cuda:sm_100", "rocm:gfx942", "--device"})
    EXPECT_THAT(found.error().message, HasSubstr(known));
}

TEST(DeviceDescription, EarlierFoldersCountFirst) {
  auto shipped = findDescription("rocm:gfx942", {kShipped});
  ASSERT_TRUE(shipped);
  auto folder = std::filesystem::temp_directory_path() / fmt::format("devices-{}", ::getpid());
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "mine.json") << replaced(shipped->text(), "MI300X", "of mine");
  auto mine = findDescription("rocm:gfx942", {folder.string(), kShipped});
  std::ofstream(folder / "broken.json") << "{";
  auto broken = findDescription("rocm:gfx942", {folder.string(), kShipped});
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(mine) << mine.error().message;
  EXPECT_THAT(mine->name, HasSubstr("of mine"));
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message, HasSubstr("broken.json"));
}

} // namespace
