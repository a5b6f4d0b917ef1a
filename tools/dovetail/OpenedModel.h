// SPDX-License-Identifier: Apache-2.0
//
// A model or an artifact on the command line, opened so that it can run: compiled or loaded, inputs
// bound.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "CommandLine.h"
#include "driver/Arrays.h"
#include "driver/Compiler.h"
#include "runtime/Model.h"
#include "runtime/Session.h"

namespace dovetail::cli {

struct InputOptions {
  std::vector<std::string> input; ///< NAME=FILE.npy
  std::string inputs;             ///< FILE.npz
  void addTo(CLI::App &app);
};

struct StageOptions {
  std::string stopAfter;
  std::vector<std::string> dumps;
  void addTo(CLI::App &app);
};

struct OpenedModel {
  std::shared_ptr<Model> model;
  std::shared_ptr<const PluginSet> plugins;
  plan::Planner::Statistics statistics; ///< of a compilation
  bool isArtifact = false;
  bool stopped = false;  ///< --stop-after ended it early: no model
  double loadMillis = 0; ///< reading and preparing, compiling not counted
  double compileMillis = 0;
};

bool isArtifactFile(const std::string &path);

Expected<std::map<std::string, Array>> readInputs(const InputOptions &options);

/// Before anything is computed: whether `output` can be written and is not the model.
Status checkOutput(const std::string &output, const std::string &model);

/// The shapes and types of `given` become those of the model's inputs.
void giveInputs(CompileOptions &options, const std::map<std::string, Array> &given);

CompileOptions compileOptions(const Settings &session, const StageOptions &stages);

/// Compiles or loads. `given` fixes the extents of a model's inputs.
Expected<OpenedModel> openModel(const std::string &path, const CommonOptions &common,
                                const StageOptions &stages,
                                const std::map<std::string, Array> &given);

/// A session with the given inputs bound and noise for the others. `memory` keeps the bytes.
Expected<std::unique_ptr<Session>> bindSession(const OpenedModel &opened,
                                               const CommonOptions &common,
                                               const std::map<std::string, Array> &given,
                                               std::vector<std::shared_ptr<void>> &memory);

} // namespace dovetail::cli
