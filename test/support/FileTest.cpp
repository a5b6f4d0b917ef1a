// SPDX-License-Identifier: Apache-2.0
//
// Mapping, atomic writing, hashing.
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/File.h"
#include "support/Hash.h"

using namespace dovetail;
namespace fs = std::filesystem;

namespace {

class FileTest : public testing::Test {
protected:
  void SetUp() override {
    folder =
        fs::path(testing::TempDir()) /
        ("dovetail-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder);
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }
  std::string path(const char *name) { return (folder / name).string(); }
  size_t count() { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); }
  fs::path folder;
};

TEST_F(FileTest, WritesAndMaps) {
  auto file = AtomicFile::create(path("a"));
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->write("headbody"));
  ASSERT_TRUE((*file)->pad(4096));
  ASSERT_TRUE((*file)->write("x"));
  ASSERT_TRUE((*file)->rewrite(0, "HEAD", 4));
  EXPECT_EQ((*file)->position(), 4097u);
  EXPECT_FALSE(fs::exists(path("a"))) << "visible before commit";
  ASSERT_TRUE((*file)->commit());
  auto mapped = MappedFile::open(path("a"));
  ASSERT_TRUE(mapped);
  EXPECT_EQ((*mapped)->size(), 4097u);
  EXPECT_EQ(std::string((*mapped)->data(), (*mapped)->data() + 8), "HEADbody");
  (*mapped)->evict(0, 4097);
  EXPECT_EQ((*mapped)->data()[4096], 'x');
  EXPECT_EQ(count(), 1u);
}

TEST_F(FileTest, NothingIsLeftWithoutCommit) {
  ASSERT_TRUE(writeFile(path("b"), "old"));
  {
    auto file = AtomicFile::create(path("b"));
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write("new"));
  }
  EXPECT_EQ(*readFile(path("b")), "old");
  EXPECT_EQ(count(), 1u);
}

TEST_F(FileTest, FailuresNameTheFile) {
  auto missing = MappedFile::open(path("none"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::BadInput);
  EXPECT_NE(missing.error().message.find("none"), std::string::npos);
  EXPECT_FALSE(MappedFile::open(folder.string()));
  EXPECT_FALSE(AtomicFile::create(path("no/such/folder")));
  ASSERT_TRUE(writeFile(path("empty"), ""));
  EXPECT_EQ((*MappedFile::open(path("empty")))->size(), 0u);
  ASSERT_TRUE(writeFile(path("long"), "12345"));
  EXPECT_FALSE(readFile(path("long"), 4));
}

TEST_F(FileTest, OnlyRegularFilesAreReplaced) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  for (const std::string &name :
       {path("pipe"), folder.string(), path("no/such/file"), path("folder/"), std::string()}) {
    Status status = checkWritable(name);
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(status.error().kind, ErrorKind::BadInput);
    EXPECT_FALSE(writeFile(name, "x")) << name;
  }
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  ASSERT_TRUE(writeFile(path("c"), "old"));
  EXPECT_TRUE(checkWritable(path("c")));
  EXPECT_TRUE(checkWritable(path("d")));
  EXPECT_EQ(count(), 2u);
}

TEST(Hash, StreamsAndKnownValue) {
  EXPECT_EQ(hashHex(""), "99aa06d3014798d86001c324468d497f"); // published value of XXH3_128bits
  Hasher hasher;
  hasher.update("ab");
  hasher.update("");
  hasher.update("c");
  EXPECT_EQ(hexText(hasher.digest()), hashHex("abc"));
}

} // namespace
