// SPDX-License-Identifier: Apache-2.0
//
// Schedules: the decisions that turn a problem into a kernel, made without MLIR so that propose and
// prepare give the same answer in every process. A family of kernels is a line in the tables of
// schedule/Families.cpp (what it offers and how it packs) and Families.cpp (how it is emitted). All
// decisions stand in the algorithm string and the layouts; propose, pack and emit each derive from
// these alone whatever else they need.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/schedule/Machine.h"
#include "codegen/schedule/ProblemReader.h"

namespace dovetail::codegen {

struct Schedule {
  std::string algorithm; ///< "family:parameters", such as "matmul:mr6x64:kc384"; the family comes
                         ///< before the first ':'
  std::vector<std::string> inputLayouts,
      outputLayouts;           ///< one for each problem input and output; "" is row-major
  uint64_t workspaceBytes = 0; ///< shared by all workers, an upper bound over the extents
  uint64_t scratchBytes = 0;   ///< for each worker
  /// For each problem input: bytes that pack() writes in its place, or 0 where it is used as it is.
  /// Only constant inputs are packed. Constants come to pack() row-major, so their layout is "".
  std::vector<uint64_t> packedBytes;
  double estimateMicros = -1;
  const char *numerics = "f32";

  std::string_view family() const {
    return std::string_view(algorithm).substr(0, algorithm.find(':'));
  }
  /// The text after `key` in a ':'-separated part of the algorithm that starts with it:
  /// parameter("kc") is "384".
  std::string_view parameter(std::string_view key) const;
  int64_t integerParameter(std::string_view key, int64_t otherwise) const;
  /// Empty layouts and no packing for all inputs and outputs.
  static Schedule rowMajor(std::string algorithm, const dvt_problem &problem);
};

struct ScheduleSink {
  std::function<void(Schedule)> offer;
  /// Why a family cannot serve a problem that it looked at; not called for problems of other kinds
  /// of op.
  std::function<void(const char *family, std::string reason)> refuse;
};

/// What a kernel relies on and only the values at run time can tell: the elements of an input of
/// i32 or i64 lie in [0, extent], or as indices in [-extent, extent).
struct ValueDemand {
  uint32_t input;                ///< whose elements
  ProblemReader::Place extentOf; ///< where the extent is found,
  int64_t extent = -1;           ///< unless it is known here
  const char *what;              ///< for the message
  bool isIndex = false;
  int64_t part = 0, parts = 1; ///< of each `parts` elements in a row, the one at `part`
};

/// What the gathers of a problem demand of indices that are among its inputs; a gather of computed
/// ones begins a kernel of its own, where they are inputs.
std::vector<ValueDemand> indexDemands(const ProblemReader &problem);

struct ScheduleFamily {
  const char *name;
  /// Offers what the family has for the problem, best guess first. Deterministic.
  void (*propose)(const ProblemReader &problem, const Machine &machine, const ScheduleSink &sink);
  /// Writes the packed form of problem input `input` (packedBytes of it); null where the family
  /// never packs.
  void (*pack)(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
               uint32_t input, const void *constant, void *packed);
  /// Null where the family relies on nothing.
  std::vector<ValueDemand> (*demands)(const ProblemReader &problem) = nullptr;
  /// Where its kernels run.
  enum Places { Cpu, Device, Anywhere } places = Cpu;

  bool serves(const Machine &machine) const {
    return places == Anywhere || machine.isDevice() == (places == Device);
  }
};

/// All families, in the order in which their candidates are listed.
const std::vector<ScheduleFamily> &scheduleFamilies();
const ScheduleFamily *findScheduleFamily(std::string_view name);

} // namespace dovetail::codegen
