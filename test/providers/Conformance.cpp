// SPDX-License-Identifier: Apache-2.0
//
// dovetail-conformance PLUGIN.so [--reference FILE] [--library-path FOLDERS] [--problems FILE]...
// [--threads N] [flags of GoogleTest]: what every provider must pass, whoever wrote it. Each line
// of a problem file is a test for each demand. Lines begin with '+' where operands must be
// positive, and with '#' where they are remarks. The executable starts itself to see what a
// provider does in another process.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "Demands.h"

using namespace dovetail;
using namespace dovetail::conformance;

namespace {

namespace fs = std::filesystem;

/// What concerns no problem.
class Door : public testing::Test {
  void TestBody() override {
    const dvt_provider_info &info = provider().info();
    EXPECT_EQ(std::string(info.name), provider().name()) << "dvt_provider_info.name";
    EXPECT_NE(provider().version(), "") << "the version is part of every cache key";
    for (uint32_t i = 0; i < info.library_count; ++i) {
      const dvt_library_info &library = info.libraries[i];
      EXPECT_TRUE(library.name && *library.name);
      bool loaded = library.version && *library.version;
      EXPECT_TRUE(loaded || (library.missing && *library.missing))
          << "a library that is not loaded must say why and how to get it";
    }
    dvt_host host = {};
    host.struct_size = sizeof host;
    host.library_path = settings.libraryPath.c_str();
    dvt_error error = {};
    for (int i = 0; i < 2; ++i) {
      dvt_provider *another = nullptr;
      ASSERT_EQ(provider().functions().create(&host, &another, &error), DVT_OK) << error.message;
      provider().functions().destroy(another);
    }
  }
};

bool readProblems(const std::string &file) {
  std::ifstream stream(file);
  if (!stream) {
    std::fprintf(stderr, "%s: cannot be read\n", file.c_str());
    return false;
  }
  std::string text;
  for (int number = 1; std::getline(stream, text); ++number) {
    bool positive = !text.empty() && text[0] == '+';
    if (text.empty() || text[0] == '#')
      continue;
    registerProblem(
        {positive ? text.substr(text.find_first_not_of("+ ")) : text, file, number, positive});
  }
  return true;
}

} // namespace

int main(int count, char **arguments) {
  testing::InitGoogleTest(&count, arguments);
  settings.program = fs::read_symlink("/proc/self/exe").string();
  std::string childOutput;
  std::vector<std::string> childArguments;
  for (int i = 1; i < count; ++i) {
    std::string argument = arguments[i];
    auto next = [&] { return ++i < count ? std::string(arguments[i]) : std::string(); };
    if (!childOutput.empty())
      childArguments.push_back(argument);
    else if (argument == "--reference")
      settings.reference = next();
    else if (argument == "--library-path")
      settings.libraryPath = next();
    else if (argument == "--problems")
      settings.problemFiles.push_back(next());
    else if (argument == "--threads")
      settings.threads = static_cast<uint32_t>(std::strtoul(next().c_str(), nullptr, 10));
    else if (argument == "--child")
      childOutput = next();
    else
      settings.plugin = argument;
  }
  if (settings.plugin.empty() || settings.threads == 0) {
    std::fprintf(
        stderr, "usage: dovetail-conformance PLUGIN.so [--reference FILE] [--library-path FOLDERS] "
                "[--problems FILE]... [--threads N]\n");
    return 2;
  }
  pluginUnderTest = loadPlugin(settings.plugin);
  if (!pluginUnderTest->find(providerName(settings.plugin))) {
    std::fprintf(stderr, "%s: no provider named %s in it; a plug-in is called dovetail_<name>.so\n",
                 settings.plugin.c_str(), providerName(settings.plugin).c_str());
    return 3;
  }
  if (!childOutput.empty())
    return childArguments.size() < 2 ? 2 : runAsChild(childOutput, childArguments);
  if (settings.reference.empty())
    settings.reference = defaultPluginFolder() + "/dovetail_reference.so";
  referencePlugin = loadPlugin(settings.reference);
  if (!referencePlugin->find("reference")) {
    std::fprintf(stderr, "%s: the reference is needed; name it with --reference\n",
                 settings.reference.c_str());
    return 3;
  }
  if (settings.problemFiles.empty())
    for (const auto &entry : fs::directory_iterator(DOVETAIL_PROBLEM_FOLDER))
      if (entry.path().extension() == ".txt")
        settings.problemFiles.push_back(entry.path().string());
  testing::RegisterTest("Door", "HoldsTogether", nullptr, nullptr, __FILE__, __LINE__,
                        []() -> testing::Test * { return new Door; });
  for (const std::string &file : settings.problemFiles)
    if (!readProblems(file))
      return 2;
  return RUN_ALL_TESTS();
}
