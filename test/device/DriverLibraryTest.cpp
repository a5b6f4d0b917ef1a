// SPDX-License-Identifier: Apache-2.0
//
// Which of several shared objects a driver is taken from.
#include <gmock/gmock.h>

#include "device/DriverLibrary.h"

using namespace dovetail;
using namespace dovetail::device;
using testing::HasSubstr;

namespace {

// One that opens and that nobody does open, and one that every process has.
const std::string kOther = DOVETAIL_BINARY_DIR "/test/kernels/wrong.so", kLoaded = "libc.so.6";

TEST(DriverLibraries, WhatTheProcessHasComesFirst) {
  auto opened = DriverLibrary::open("", {kOther, kLoaded});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_THAT(opened->path(), HasSubstr(kLoaded));
  EXPECT_TRUE(opened->has("getpid"));
}

TEST(DriverLibraries, AFileThatIsNamedComesBeforeAll) {
  const std::string file = DOVETAIL_BINARY_DIR "/test/kernels/plain.so";
  auto opened = DriverLibrary::open(file, {kLoaded});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->path(), file);
}

TEST(DriverLibraries, WithoutOneAllNamesAreTold) {
  auto opened = DriverLibrary::open("", {"libnone.so.1", "libnone.so.2"});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, ErrorKind::Unavailable);
  EXPECT_THAT(opened.error().message, HasSubstr("none of libnone.so.1, libnone.so.2 opens here"));
}

} // namespace
