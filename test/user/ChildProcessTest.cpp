// SPDX-License-Identifier: Apache-2.0
//
// Children end, are ended, and are heard.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "support/File.h"
#include "toolchain/ChildProcess.h"

namespace dovetail::toolchain {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

ChildResult run(const std::string &script, milliseconds limit = seconds(30)) {
  auto result = runChild({"/bin/sh", "-c", script}, limit);
  EXPECT_TRUE(bool(result)) << result.error().message;
  return result ? *result : ChildResult();
}

TEST(ChildProcess, TellsItsOutputAndItsEnd) {
  ChildResult result = run("echo out; echo err >&2; exit 3");
  EXPECT_EQ(result.exitCode, 3);
  EXPECT_EQ(result.output, "out\nerr\n");
  EXPECT_EQ(result.ending(), "exit code 3");
  EXPECT_TRUE(run("exit 0").succeeded());
}

TEST(ChildProcess, HasNothingToRead) { EXPECT_EQ(run("cat").output, ""); }

TEST(ChildProcess, ArgumentsAreNotRead) {
  auto result = runChild({"/bin/echo", "$HOME", "a b", ";"}, seconds(30));
  ASSERT_TRUE(bool(result));
  EXPECT_EQ(result->output, "$HOME a b ;\n");
}

TEST(ChildProcess, SignalsAreNamed) {
  ChildResult result = run("kill -SEGV $$");
  EXPECT_EQ(result.exitCode, -1);
  EXPECT_EQ(result.signal, SIGSEGV);
  EXPECT_EQ(result.ending().rfind("signal 11", 0), 0u) << result.ending();
}

TEST(ChildProcess, LateOnesEndWithWhatTheyStarted) {
  ChildResult result = run("sleep 100 & echo $!; sleep 100", milliseconds(1000));
  EXPECT_TRUE(result.timedOut);
  if (!result.output.empty()) { // a busy machine may not have come so far
    const pid_t started = std::stoi(result.output);
    auto isGone = [&] { // or left to be reaped
      std::ifstream stat(fmt::format("/proc/{}/stat", started));
      std::string text{std::istreambuf_iterator<char>(stat), {}};
      return text.empty() || text.find(") Z ") != std::string::npos;
    };
    for (int i = 0; i < 1000 && !isGone(); ++i)
      ::usleep(10000);
    EXPECT_TRUE(isGone()) << "what it started goes on";
  }
  EXPECT_EQ(result.ending(), "no end within its time");
  // One that says nothing more and goes on.
  EXPECT_TRUE(run("exec >&- 2>&-; sleep 100", milliseconds(100)).timedOut);
}

TEST(ChildProcess, ALostStatusIsNoSuccess) {
  auto before = std::signal(SIGCHLD, SIG_IGN); // as in a host that waits for nobody
  ChildResult result = run("echo said; exit 3");
  std::signal(SIGCHLD, before);
  EXPECT_FALSE(result.succeeded());
  EXPECT_EQ(result.output, "said\n");
  EXPECT_NE(result.ending().find("another part of this process"), std::string::npos);
}

TEST(ChildProcess, LongOutputIsCut) {
  ChildResult result = run("head -c 3000000 /dev/zero");
  EXPECT_TRUE(result.succeeded());
  EXPECT_EQ(result.output.size(), size_t(1) << 20);
}

TEST(ChildProcess, WhatIsNotThereDoesNotStart) {
  auto result = runChild({"/nowhere/compiler"}, seconds(1));
  ASSERT_FALSE(bool(result));
  EXPECT_EQ(result.error().kind, ErrorKind::Unavailable);
  EXPECT_NE(result.error().message.find("/nowhere/compiler does not start"), std::string::npos);
}

TEST(TemporaryFolder, GoesWithAllItHolds) {
  std::string file;
  {
    auto folder = TemporaryFolder::create();
    ASSERT_TRUE(bool(folder));
    file = folder->file("x");
    ASSERT_TRUE(bool(writeFile(file, "y")));
  }
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(file).parent_path()));
}

} // namespace
} // namespace dovetail::toolchain
