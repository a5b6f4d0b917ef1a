// SPDX-License-Identifier: Apache-2.0
//
// A double of cuDNN 9 over the simulated device, for tests: what Dovetail uses of the C interface
// of graphs (src/providers/cudnn/BackendApi.h, whose numbers are compared with the library's header
// where one is found). It holds every call against what the interface asks for: which descriptors,
// filled in and finalised in which order, types and counts of attributes, shapes, pointers for all
// ids, their alignment, workspace, streams, lifetimes. What graphs compute it finds by plain loops
// in f64. Written from the interface's documentation: it proves that calls are made as they should
// be, not what the library's engines do, which of them there are, or what they refuse.
//
// The environment may say which version it is (DOVETAIL_SIMULATED_CUDNN_VERSION, 91900), how much
// workspace every plan takes (DOVETAIL_SIMULATED_CUDNN_WORKSPACE, bytes), and plans of which engine
// do not load (DOVETAIL_SIMULATED_CUDNN_REFUSES, a number or "all").
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "../LibraryWork.h"
#include "GraphArithmetic.h"

namespace cudnn_double {

using Ref = void *;

enum Status : int {
  Success = 0,
  NotInitialized = 1001,
  SerializationVersionMismatch = 1003,
  BadParam = 2000,
  NullPointer = 2002,
  MisalignedPointer = 2003,
  NotFinalized = 2004,
  SizeInsufficient = 2006,
  ShapeMismatch = 2008,
  DuplicatedEntries = 2009,
  WrongAttributeType = 2010,
  WrongDescriptorType = 2012,
  NotSupported = 3000,
  ArchitectureMismatch = 3007,
  ExecutionFailed = 5000,
};

/// An attribute as it was set.
struct Value {
  api::AttributeType type{};
  int64_t count = 0;
  std::vector<uint8_t> bytes;
};

/// A finalised graph; `ids` are those of its tensors. Tensors that are not virtual have their own
/// number for a value, those handed over by value hold a number that the run replaces.
struct KnownGraph {
  api::Graph graph;
  std::vector<int64_t> ids;
};

/// An engine with settings of its knobs, by kind of knob.
struct Settings {
  int64_t engine = 0;
  std::map<int64_t, int64_t> knobs;
};

struct Plan {
  std::shared_ptr<const KnownGraph> graph;
  Settings settings;
  uint64_t workspaceBytes = 0;
  int architecture = 0; ///< 90 times ten for sm_90
  bool hasHandle = false;
};

struct Descriptor {
  api::DescriptorKind kind{};
  bool isFinal = false;
  std::map<api::Attribute, Value> values;
  // What finalising made of it, or the library filled in.
  std::shared_ptr<const KnownGraph> graph;
  std::vector<Settings> settings; ///< what heuristics found; of an engine and its configuration one
  std::shared_ptr<const Plan> plan;

  template <typename T> std::vector<T> list(api::Attribute attribute) const {
    const auto found = values.find(attribute);
    if (found == values.end())
      return {};
    const T *first = reinterpret_cast<const T *>(found->second.bytes.data());
    return std::vector<T>(first, first + found->second.bytes.size() / sizeof(T));
  }
  template <typename T> std::optional<T> one(api::Attribute attribute) const {
    const std::vector<T> values = list<T>(attribute);
    return values.empty() ? std::nullopt : std::optional<T>(values.front());
  }
  /// Of a value that the rules demand.
  template <typename T> T get(api::Attribute attribute) const {
    return one<T>(attribute).value_or(T{});
  }
  template <typename T>
  void fill(api::Attribute attribute, api::AttributeType type, const T &value) {
    const auto *bytes = reinterpret_cast<const uint8_t *>(&value);
    values[attribute] = {type, 1, std::vector<uint8_t>(bytes, bytes + sizeof value)};
  }
};

struct Handle {
  Ref stream = nullptr;
};

/// Objects are numbers in disguise, never used again.
struct State {
  std::mutex mutex;
  std::map<Ref, Descriptor> descriptors;
  std::map<Ref, Handle> handles;
  uint64_t next = 0x0CD00010;
  Ref newRef() {
    next += 16;
    return reinterpret_cast<Ref>(next);
  }
};
State &state();
size_t version();

/// One call: the lock, and the first thing that is wrong with it.
class Entry {
public:
  explicit Entry(const char *name) : lock(state().mutex), name(name) {}
  Entry(const Entry &) = delete;

  bool isFine() const { return status == Success; }
  /// What the entry point returns; cudnnGetLastErrorString tells the reason afterwards.
  Status end();
  template <typename... Args>
  bool need(bool condition, Status otherwise, fmt::format_string<Args...> format, Args &&...args) {
    if (!condition && isFine()) {
      status = otherwise;
      reason = fmt::format(format, std::forward<Args>(args)...);
    }
    return condition;
  }
  /// Null where there is no such descriptor (any more).
  Descriptor *find(Ref ref);
  /// A finalised one of that kind.
  Descriptor * final(Ref ref, api::DescriptorKind kind, const char *what);
  Handle *handle(Ref ref);

private:
  std::unique_lock<std::mutex> lock;
  const char *name;
  Status status = Success;
  std::string reason;
};

const char *nameOf(api::DescriptorKind kind);

} // namespace cudnn_double

#define CUDNN_ENTRY extern "C" __attribute__((visibility("default")))
