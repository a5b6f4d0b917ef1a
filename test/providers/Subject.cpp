// SPDX-License-Identifier: Apache-2.0
//
// Loading of plug-ins and the talk with a second process through a file.
#include "Subject.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dovetail::conformance {

namespace fs = std::filesystem;

Settings settings;
PluginSet *pluginUnderTest, *referencePlugin;

std::string providerName(const std::string &file) {
  std::string stem = fs::path(file).stem().string();
  return stem.rfind("dovetail_", 0) == 0 ? stem.substr(9) : stem;
}

PluginSet *loadPlugin(const std::string &file) {
  PluginSet::Options options;
  options.folders = {fs::absolute(file).parent_path().string()};
  options.vendorPath = settings.libraryPath;
  options.only = {providerName(file)};
  auto *set = new PluginSet(PluginSet::load(options));
  for (const PluginSet::Failure &failure : set->failures())
    if (fs::path(failure.file).filename() == fs::path(file).filename())
      std::fprintf(stderr, "%s: %s\n", failure.file.c_str(), failure.reason.c_str());
  return set;
}

const Provider &provider() { return *pluginUnderTest->find(providerName(settings.plugin)); }
const Provider &reference() { return *referencePlugin->find("reference"); }
Target target() { return Target::host(settings.threads); }

static std::string textOf(const std::vector<std::string> &list) {
  std::string text;
  for (const std::string &entry : list)
    text += "'" + entry + "' ";
  return text;
}

std::string serialize(const Candidate &c) {
  return fmt::format("{} | in {}| out {}| workspace {} packed {} packing {} threading {} numerics "
                     "{} deterministic {} "
                     "runtime extents {} estimate {}",
                     c.algorithm, textOf(c.inputLayouts), textOf(c.outputLayouts), c.workspaceBytes,
                     c.packedBytes, int(c.packing), int(c.threading), c.numerics, c.deterministic,
                     c.runtimeExtents, c.estimateMicros);
}

std::string serialize(const Proposal &proposal) {
  std::string text;
  for (const Candidate &candidate : proposal.candidates)
    text += serialize(candidate) + "\n";
  return text;
}

std::string runChild(const std::vector<std::string> &arguments, int &status) {
  fs::path output =
      fs::temp_directory_path() / fmt::format("dovetail-conformance-{}-{}", ::getpid(), ::rand());
  std::vector<std::string> words{settings.program, settings.plugin,
                                 "--library-path", settings.libraryPath,
                                 "--threads",      std::to_string(settings.threads),
                                 "--child",        output.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char *> command;
  for (std::string &word : words)
    command.push_back(word.data());
  command.push_back(nullptr);
  pid_t child = 0;
  if (::posix_spawn(&child, command[0], nullptr, nullptr, command.data(), environ) != 0 ||
      ::waitpid(child, &status, 0) != child)
    status = -1;
  std::ifstream file(output, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  fs::remove(output);
  return text;
}

int runAsChild(const std::string &output, const std::vector<std::string> &arguments) {
  Expected<Problem> problem = Problem::parse(arguments.at(1));
  if (!problem)
    return 2;
  std::ofstream file(output, std::ios::binary);
  Proposal proposal = provider().propose(target(), *problem);
  if (arguments[0] == "propose") {
    file << serialize(proposal);
    return 0;
  }
  size_t index = std::stoul(arguments.at(2));
  if (index >= proposal.candidates.size())
    return 3;
  Expected<std::vector<uint8_t>> kernel =
      provider().compile(target(), *problem, proposal.candidates[index]);
  if (!kernel) {
    std::fprintf(stderr, "%s\n", kernel.error().message.c_str());
    return 4;
  }
  file.write(reinterpret_cast<const char *>(kernel->data()),
             static_cast<std::streamsize>(kernel->size()));
  return 0;
}

} // namespace dovetail::conformance
