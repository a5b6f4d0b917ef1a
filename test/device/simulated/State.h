// SPDX-License-Identifier: Apache-2.0
//
// What the simulated device remembers, and what all its calls begin with.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "DeviceMemory.h"
#include "HostImage.h"
#include "Simulation.h"

namespace simulated {

struct Operation {
  std::function<Code()> run;
};

struct StreamState {
  std::deque<Operation> waiting;
  std::optional<std::vector<Operation>> recorded; ///< where it records
  std::thread::id recorder;                       ///< that began to
  int mode = 0;                                   ///< of recording, as Simulation.h has them
  Code unrecordable = Success;                    ///< what was given that cannot be
  uint64_t given = 0, done = 0;                   ///< operations
};

struct EventState {
  bool timed = false, recorded = false;
  uint64_t stream = 0, position = 0; ///< of the stream, when it was recorded
  uint64_t tick = 0;                 ///< when the device came to it; 0: not yet
};

struct ModuleState {
  std::unique_ptr<HostImage> image;
};

struct FunctionState {
  HostFunction function;
  uint64_t module = 0;
  uint32_t allowedShared = 0;
};

struct GraphState {
  std::vector<Operation> operations;
  bool ready = false; ///< to be launched
};

struct PoolState {
  uint64_t keptBytes = 0;
  unsigned live = 0; ///< blocks that were not freed
};

/// A block out of a pool, and when it is there: once its stream has done so many operations.
struct OrderedBlock {
  uint64_t pool, stream, position;
  bool isFreed = false; ///< the freeing was given to a stream
};

struct Pinned {
  std::vector<uint8_t> bytes;
  unsigned pending = 0; ///< transfers that will read or write it
};

struct State {
  std::mutex mutex;
  Limits limits;
  bool initialised = false;
  int retained = 0;
  Code broken = Success;
  std::string brokenReason;
  DeviceMemory memory;
  std::map<void *, Pinned> pinned;
  std::map<uint64_t, PoolState> pools;
  std::map<uint64_t, OrderedBlock> ordered; ///< by address
  std::map<uint64_t, StreamState> streams;  ///< 0: the driver's own
  std::map<uint64_t, EventState> events;
  std::map<uint64_t, ModuleState> modules;
  std::map<uint64_t, FunctionState> functions;
  std::map<uint64_t, GraphState> graphs;
  uint64_t nextHandle = 0x51000001, ticks = 0;
  std::map<std::string, uint64_t> counts;
};

State &state();

inline thread_local bool isCurrent = false;
inline thread_local int lastCode = Success;
inline thread_local std::string lastReason;

template <typename... Args>
Code refuse(Code code, fmt::format_string<Args...> format, Args &&...args) {
  lastCode = code;
  lastReason = fmt::format(format, std::forward<Args>(args)...);
  ++state().counts["refusals"];
  return code;
}

inline uint64_t numberOf(Handle handle) { return reinterpret_cast<uint64_t>(handle); }
inline Handle handleOf(uint64_t number) { return reinterpret_cast<Handle>(number); }

/// A failure after which the device does nothing any more.
Code breakDown(Code code, std::string reason);
/// What every call but those that come before a context needs.
Code checkContext();
/// Null, with the reason, where there is none.
StreamState *findStream(Handle handle);
/// Works off a stream up to an operation.
Code drain(StreamState &stream, uint64_t upTo);
Code drainAll();
void give(StreamState &stream, std::function<Code()> run);
/// For calls that no stream can record: spoils what one records that holds for this thread; Success
/// where none does.
Code spoilRecording(const char *what);
/// For what is asked of a stream that records.
Code spoil(StreamState &stream, const char *what);
/// Of work on a stream that the device has come to: bytes of a pool's block are there for it.
Code checkOrdered(const char *what, uint64_t address);

} // namespace simulated
