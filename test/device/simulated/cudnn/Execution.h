// SPDX-License-Identifier: Apache-2.0
//
// A graph with the memory that it runs on, and how it gets to the device.
#pragma once

#include "Objects.h"

namespace cudnn_double {

struct Run {
  api::Graph graph;
  std::vector<void *> addresses; ///< by tensor; null of those without memory
  std::vector<simulated::Range> ranges;
  void *workspace = nullptr;
  uint64_t workspaceBytes = 0;
  Rounding rounding;
};

/// From the first element to behind the last.
uint64_t spanBytes(const api::Tensor &tensor);
/// The tensor lies there from now on.
void bindMemory(Entry &entry, Run &run, size_t tensor, const std::string &name, void *address);
/// Checks the workspace of the run, where it has some.
void checkWorkspace(Entry &entry, Run &run);
/// Gives the work to the handle's stream; what it gives lies apart from what it reads.
void enqueue(Entry &entry, const char *name, const Handle &handle, std::shared_ptr<Run> run);

} // namespace cudnn_double
