// SPDX-License-Identifier: Apache-2.0
//
// What is judged: the plug-in named on the command line, the reference it is compared with, and
// this program started again to see the plug-in in another process.
#pragma once

#include <string>
#include <vector>

#include "support/Plugin.h"

namespace dovetail::conformance {

struct Settings {
  std::string program, plugin, reference, libraryPath;
  std::vector<std::string> problemFiles;
  uint32_t threads = 2;
};

struct ProblemLine {
  std::string text, file;
  int line = 0;
  bool positive = false;
};

extern Settings settings;

/// Name of the provider in .../dovetail_NAME.so.
std::string providerName(const std::string &file);
/// The one plug-in of a file, or an empty set and a line on stderr. Never unloaded.
PluginSet *loadPlugin(const std::string &file);
extern PluginSet *pluginUnderTest, *referencePlugin;
const Provider &provider();
const Provider &reference();
Target target();

/// Everything that must be the same in every process.
std::string serialize(const Candidate &candidate);
std::string serialize(const Proposal &proposal);

/// Runs this program again; gives what it wrote.
std::string runChild(const std::vector<std::string> &arguments, int &status);
/// The other side of runChild: "propose TEXT" or "compile TEXT INDEX".
int runAsChild(const std::string &output, const std::vector<std::string> &arguments);

} // namespace dovetail::conformance
