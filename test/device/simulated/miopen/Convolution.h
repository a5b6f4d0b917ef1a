// SPDX-License-Identifier: Apache-2.0
//
// Algorithms that the double has for a convolution, and how one runs.
#pragma once

#include "Objects.h"

namespace miopen_double {

struct Algorithm {
  uint64_t id;
  int kind;
  uint64_t workspaceBytes;
  float millis;
};

/// The three tensors of a convolution; null where a call did not name them rightly.
struct ConvTensors {
  const Tensor *x = nullptr, *w = nullptr, *y = nullptr;
  const Convolution *convolution = nullptr;
  /// Convolutions of one text have the same kernels.
  std::string text() const;
};

/// Checks that they belong together.
ConvTensors checked(Entry &entry, Ref x, Ref w, Ref convolution, Ref y);
void check(Entry &entry, const ConvTensors &tensors);
/// The fastest first.
std::vector<Algorithm> algorithmsFor(const ConvTensors &tensors);
/// Checks memory and gives the work to the handle's stream.
void run(Entry &entry, const Handle &handle, const ConvTensors &tensors, const void *x,
         const void *w, void *y, void *workspace, uint64_t bytes, uint64_t needed);

} // namespace miopen_double
