// SPDX-License-Identifier: Apache-2.0
//
// A double of MIOpen over the simulated device, for tests. It holds every call against what the
// interface asks for (which objects, in which order, sizes, memory, workspace, streams, lifetimes)
// and computes by plain loops in f64. It refuses what no version of the library computes, or what
// some versions compute wrongly. Written from the interface's documentation: it proves that calls
// are made as they should be, not that a vendor's kernels do what is expected of them.
//
// Built twice: DOUBLE_MAJOR 2 lacks what came with 3. Handles are numbers in disguise, never used
// again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "../LibraryWork.h"
#include "dovetail/provider.h"

namespace miopen_double {

enum Status : int {
  Success = 0,
  BadParm = 3,
  AllocFailed = 4,
  NotImplemented = 6,
  UnknownError = 7,
  UnsupportedOp = 8
};

// The interface's numbers.
enum : int { kHalf = 0, kFloat = 1, kBFloat16 = 5 };
enum : int { kGemm = 0, kDirect = 1, kFft = 2, kWinograd = 3, kImplicitGemm = 5 };

using Dims = std::vector<int64_t>;
using Ref = void *;

struct Tensor {
  bool isSet = false;
  int type = -1;
  Dims dims, strides;

  int64_t elements() const;
  int64_t elementBytes() const { return type == kFloat ? 4 : 2; }
  uint64_t bytes() const { return static_cast<uint64_t>(elements() * elementBytes()); }
  dvt_type elementType() const {
    return type == kHalf ? DVT_F16 : type == kFloat ? DVT_F32 : DVT_BF16;
  }
  bool isPacked() const; ///< no gaps, dimensions in any order
  bool isRowMajor() const;
  bool isChannelsLast() const;
  std::string text() const;
};

struct Convolution {
  bool isSet = false;
  Dims pads, strides, dilations;
  int64_t groups = 1;
  std::string text() const;
};

struct Pool {
  bool isSet = false;
  int mode = -1;
  Dims window, pads, strides;
};

struct Activation {
  bool isSet = false;
  int mode = -1;
  double alpha = 0, beta = 0, gamma = 0;
};

/// What was made ready with it: its kernels are the handle's own.
struct Handle {
  Ref stream = nullptr;
  std::set<std::string> compiled, found;
};

struct ConvProblem {
  Convolution convolution;
  std::map<int, Tensor> tensors;
};
struct FindOptions {
  uint64_t workspaceLimit = UINT64_MAX;
};
struct Solution {
  ConvProblem problem;
  uint64_t id = 0, workspaceBytes = 0;
};
struct FusionOp {
  enum class Kind { Convolution, Bias, Activation } kind = Kind::Convolution;
  Convolution convolution;
  Tensor tensor; ///< weights or bias
  int mode = -1;
};
struct FusionPlan {
  Tensor input;
  std::vector<Ref> ops;
  Ref compiledFor = nullptr;
};
struct FusionArgs {
  std::map<Ref, const void *> memory;
  std::map<Ref, Activation> activations;
};

/// Objects of one kind that are there now.
template <typename T> class Registry {
public:
  Ref add(T object) {
    static uint64_t next = 0x4D000001;
    Ref ref = reinterpret_cast<Ref>(next);
    next += 16;
    objects[ref] = std::make_unique<T>(std::move(object));
    return ref;
  }
  T *find(Ref ref) {
    auto found = objects.find(ref);
    return found == objects.end() ? nullptr : found->second.get();
  }
  bool remove(Ref ref) { return objects.erase(ref) > 0; }
  uint64_t count() const { return objects.size(); }

private:
  std::map<Ref, std::unique_ptr<T>> objects;
};

struct State {
  std::mutex mutex;
  Registry<Handle> handles;
  Registry<Tensor> tensors;
  Registry<Convolution> convolutions;
  Registry<Pool> pools;
  Registry<Activation> activations;
  Registry<ConvProblem> problems;
  Registry<FindOptions> options;
  Registry<Solution> solutions;
  Registry<FusionPlan> plans;
  Registry<FusionOp> ops;
  Registry<FusionArgs> args;
};
State &state();

/// One call: the lock, and the first thing that is wrong with it.
class Entry {
public:
  explicit Entry(const char *name) : lock(state().mutex), name(name) {}
  Entry(const Entry &) = delete;

  bool isFine() const { return status == Success; }
  /// What the entry point returns; miopenGetErrorString tells the reason afterwards.
  Status end();
  template <typename... Args>
  bool need(bool condition, Status otherwise, fmt::format_string<Args...> format, Args &&...args) {
    if (!condition && isFine()) {
      status = otherwise;
      reason = fmt::format(format, std::forward<Args>(args)...);
    }
    return condition;
  }
  template <typename T> T *find(Registry<T> &registry, Ref ref, const char *what) {
    T *found = registry.find(ref);
    need(found, BadParm, "there is no {}; it may have been destroyed", what);
    return found;
  }
  Handle *handle(Ref ref) { return find(state().handles, ref, "handle"); }
  /// A descriptor that was filled in.
  template <typename T> T *described(Registry<T> &registry, Ref ref, const char *what) {
    T *found = find(registry, ref, what);
    if (found)
      need(found->isSet, BadParm, "the descriptor of {} was not filled in", what);
    return found;
  }
  Tensor *tensor(Ref ref, const char *what) { return described(state().tensors, ref, what); }
  /// Of scaling factors, which the library has no others for.
  void scales(const void *alpha, const void *beta);
  void workspace(const void *memory, uint64_t bytes, uint64_t needed);
  void memory(const Tensor &tensor, const void *memory, const char *what);
  void apart(const Tensor &a, const void *first, const Tensor &b, const void *second);
  /// Gives the work to the handle's stream.
  void enqueue(const Handle &handle, const std::vector<simulated::Range> &ranges,
               std::function<void()> run);

private:
  std::unique_lock<std::mutex> lock;
  const char *name;
  Status status = Success;
  std::string reason;
};

/// What a call may touch; null memory of no bytes is none.
std::vector<simulated::Range>
ranges(std::initializer_list<std::tuple<const char *, const void *, uint64_t>> all);

} // namespace miopen_double

#define MIOPEN_ENTRY extern "C" __attribute__((visibility("default")))
