// SPDX-License-Identifier: Apache-2.0
//
// Writes plans by hand for tests, and loads the toy providers.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/Session.h"

namespace dovetail {

/// Memory with the alignment that sessions take without copying.
template <typename T> class Aligned {
public:
  explicit Aligned(size_t count) : count(count) {
    if (!buffer.reserve(count * sizeof(T)))
      std::abort();
    std::memset(static_cast<void *>(buffer.data()), 0, buffer.size());
  }
  T *data() { return reinterpret_cast<T *>(buffer.data()); }
  T &operator[](size_t i) { return data()[i]; }
  size_t size() const { return count; }
  T *begin() { return data(); }
  T *end() { return data() + count; }

private:
  HostBuffer buffer;
  size_t count;
};

class PlanMaker {
public:
  PlanMaker();
  using Extents = std::vector<Extent>;
  uint32_t input(const std::string &name, Extents extents, dvt_type type = DVT_F32);
  uint32_t value(Extents extents, dvt_type type = DVT_F32, const std::string &layout = "");
  uint32_t dynamic(Extents extents, dvt_type type = DVT_F32);
  uint32_t view(uint32_t of, Extents extents);
  uint32_t constant(const std::vector<float> &data, std::vector<int64_t> extents);
  /// A value written straight into the caller's memory.
  uint32_t outputValue(const std::string &name, Extents extents, dvt_type type = DVT_F32);
  /// An output that shows a value made elsewhere.
  void output(const std::string &name, uint32_t value);
  PlanStep &step(const std::string &op, std::vector<uint32_t> inputs, std::vector<uint32_t> outputs,
                 const std::string &algorithm = "plain", const std::string &provider = "toy");
  PlanStep &copy(uint32_t from, uint32_t to);
  PlanStep &shapeData(std::vector<Extent> extents, uint32_t to);
  void symbol(const std::string &name, uint32_t value, uint32_t axis, SymbolRange range);
  static KernelChoice choice(const Problem &problem, const std::string &provider,
                             const std::string &algorithm, const std::string &version = "1.0");
  /// Begins a body of control flow; what is made from here on belongs to it. Gives its number.
  uint32_t beginBody();
  void continueBlock(uint32_t number) { current = number; }
  /// `inputs` and `outputs` as the kind asks for; kNoValue for an absent one.
  PlanStep &control(StepKind kind, std::vector<uint32_t> inputs, std::vector<uint32_t> outputs,
                    std::vector<uint32_t> bodies, uint32_t carried = 0,
                    std::vector<ScanAxis> scanned = {});
  /// Places what is static and gives the plan away.
  Plan take();

  Plan plan;
  PlanBlock &block() { return plan.blocks[current]; }

private:
  uint32_t current = 0;
};

/// Plug-ins of a folder under the build's test folder.
std::shared_ptr<const PluginSet> toys(const std::string &folder = "toys");
ModelOptions toyOptions(const std::string &folder = "toys");

/// relu(x * w + b) for x [4,3], w [3,5], and its truth.
Plan denseLayerPlan();
std::vector<float> denseLayerTruth(const std::vector<float> &x);

/// A run with fresh, aligned memory for one f32 input; returns output 0.
std::vector<float> runOnce(Session &session, const std::vector<float> &x,
                           const std::vector<int64_t> &extents);
std::vector<float> outputOf(const Session &session, uint32_t index = 0);
/// Numbers that differ from each other, both signs.
std::vector<float> noise(size_t count, uint32_t seed = 1);

} // namespace dovetail
