// SPDX-License-Identifier: Apache-2.0
//
// Calls into the library on a device. There is one handle for all streams, since the library keeps
// what it compiled with the handle; who uses it takes turns. The device and its context are the
// host's: whatever is current in the calling thread is used.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "providers/LibraryObject.h"
#include "providers/miopen/Form.h"
#include "providers/miopen/Library.h"

namespace dovetail::miopen {

/// The library's handle, made when first needed. May be used by several threads at once.
class Handle {
public:
  explicit Handle(std::shared_ptr<const Library> library) : library(std::move(library)) {}
  ~Handle();
  Handle(const Handle &) = delete;

private:
  friend class Turn;
  std::shared_ptr<const Library> library;
  std::mutex mutex; ///< held while enqueueing only
  LibraryHandle handle = nullptr;
  DeviceStream stream = nullptr; ///< where the handle gives its work
};

/// A thread's turn with the handle. After the first failure nothing more is called.
class Turn {
public:
  Turn(Handle &handle, DeviceStream stream);
  Turn(const Turn &) = delete;

  const Library &api() const { return *shared.library; }
  LibraryHandle handle() const { return shared.handle; }
  bool isFine() const { return why.empty(); }
  /// What failed first, in the library's words.
  const std::string &reason() const { return why; }
  /// Notes a failure of the call `what`; whether there was none.
  bool check(Status status, const char *what);
  bool fail(std::string reason);
  /// What failed is no matter any more.
  void forgive() { why.clear(); }

private:
  Handle &shared;
  std::unique_lock<std::mutex> lock;
  std::string why;
};

using providers::Owned;
using TensorDescriptor = Owned<TensorRef>;
using ConvolutionDescriptor = Owned<ConvolutionRef>;

TensorDescriptor describe(Turn &turn, const Tensor &tensor);
ConvolutionDescriptor describeConvolution(Turn &turn, const Call &call);
/// As the library takes them; translate() has seen to it that they fit.
std::vector<int> asInts(const Dims &dims);

inline constexpr float kOne = 1, kZero = 0; ///< what results and sums are scaled with

} // namespace dovetail::miopen
