// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "Harness.h"

#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "Truth.h"
#include "codegen/Families.h"
#include "codegen/schedule/KernelAbi.h"
#include "codegen/schedule/Schedule.h"
#include "support/Layout.h"

namespace dovetail::test {
namespace {

using namespace codegen;
using Index = std::vector<int64_t>;

/// Memory that starts aligned and ends, up to alignment, at a page that may not be touched.
class GuardedBytes {
public:
  explicit GuardedBytes(size_t bytes) : size(bytes) {
    constexpr size_t kPage = 4096;
    size_t payload = (bytes + 63) / 64 * 64;
    mapped = (payload + kPage - 1) / kPage * kPage + 2 * kPage;
    base = static_cast<char *>(
        mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base, kPage, PROT_NONE);
    mprotect(base + mapped - kPage, kPage, PROT_NONE);
    data = base + mapped - kPage - payload;
    std::memset(data, 0xff, payload); // NaN
  }
  ~GuardedBytes() { munmap(base, mapped); }
  GuardedBytes(const GuardedBytes &) = delete;
  bool tailIntact() const {
    for (size_t i = size; i % 64; ++i)
      if (static_cast<unsigned char>(data[i]) != 0xff)
        return false;
    return true;
  }
  char *data;
  size_t size;

private:
  char *base;
  size_t mapped;
};

class LoadedKernel {
public:
  explicit LoadedKernel(const std::vector<uint8_t> &bytes) : bytes(bytes) {
    std::memcpy(&header, bytes.data(), sizeof header);
    code = static_cast<char *>(mmap(nullptr, header.codeBytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memcpy(code, bytes.data() + header.codeOffset, header.codeBytes);
    mprotect(code, header.codeBytes, PROT_READ | PROT_EXEC);
  }
  ~LoadedKernel() { munmap(code, header.codeBytes); }
  LoadedKernel(const LoadedKernel &) = delete;

  /// Tasks go to `threads` workers in turn, in ranges of uneven length.
  void run(const KernelArgs &args, unsigned threads) const {
    for (uint32_t i = 0; i < header.phaseCount; ++i) {
      ImagePhase phase;
      std::memcpy(&phase, bytes.data() + sizeof header + i * sizeof phase, sizeof phase);
      int64_t count = phase.staticCount;
      if (phase.count != kNoOffset)
        count = reinterpret_cast<CountFunction>(code + phase.count)(&args);
      auto function = reinterpret_cast<PhaseFunction>(code + phase.function);
      int64_t done = 0;
      for (unsigned turn = 0; done < count; ++turn) {
        int64_t to = std::min(count, done + 1 + int64_t(turn) * 2);
        function(&args, done, to, turn % threads);
        done = to;
      }
    }
  }
  ImageHeader header;

private:
  const std::vector<uint8_t> &bytes;
  char *code;
};

truth::Tensor randomTensor(const Index &extents, uint32_t seed) {
  truth::Tensor tensor;
  tensor.extents = extents;
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> numbers(-1, 1);
  int64_t count = tensor.elements();
  for (int64_t i = 0; i < count; ++i)
    tensor.data.push_back(numbers(generator));
  return tensor;
}

void toMemory(const truth::Tensor &tensor, dvt_type type, const Layout &layout, char *to) {
  std::vector<float> floats(tensor.data.begin(), tensor.data.end());
  std::vector<uint8_t> booleans;
  for (double number : tensor.data)
    booleans.push_back(number > 0);
  const void *from = type == DVT_BOOL ? static_cast<const void *>(booleans.data()) : floats.data();
  reorder(type, tensor.extents, Layout(), from, layout, to);
}

int64_t physicalBytes(const Index &extents, dvt_type type, const Layout &layout) {
  return layout.physicalElements(extents) * elementBytes(type);
}

Layout layoutOf(const std::string &text) {
  auto layout = Layout::parse(text);
  EXPECT_TRUE(layout) << text;
  return layout ? *layout : Layout();
}

Index extentsOf(const ProblemValue &value) {
  Index extents;
  for (const Extent &extent : value.extents)
    extents.push_back(extent.value());
  return extents;
}

class Checker {
public:
  Checker(const Problem &problem, const CheckOptions &options)
      : problem(problem), options(options) {}

  void check(const ProblemReader &reader, const Machine &machine, const Schedule &schedule) {
    SCOPED_TRACE(std::string(machine.isa.name()) + " " + schedule.algorithm + " on " +
                 problem.text());
    auto bytes = compileKernel(reader, machine, schedule);
    ASSERT_TRUE(bytes) << bytes.error().message;
    LoadedKernel kernel(*bytes);
    for (const SymbolValues &symbols : options.symbols)
      run(reader, machine, schedule, kernel, problem.specialize(symbols));
  }

private:
  void run(const ProblemReader &reader, const Machine &machine, const Schedule &schedule,
           const LoadedKernel &kernel, const Problem &sized) {
    std::vector<truth::Tensor> inputs;
    std::vector<std::unique_ptr<GuardedBytes>> memory;
    std::vector<void *> data;
    std::vector<int64_t> extents;
    uint32_t seed = 1;
    for (size_t i = 0; i < sized.inputs.size(); ++i) {
      const ProblemValue &value = sized.values[sized.inputs[i]];
      Index shape = extentsOf(value);
      inputs.push_back(randomTensor(shape, seed++));
      if (value.type == DVT_BOOL)
        for (double &number : inputs.back().data)
          number = number > 0;
      Layout layout = layoutOf(schedule.inputLayouts[i]);
      memory.push_back(std::make_unique<GuardedBytes>(physicalBytes(shape, value.type, layout)));
      toMemory(inputs.back(), value.type, layout, memory.back()->data);
      if (schedule.packedBytes[i]) {
        ASSERT_TRUE(value.constant);
        memory.push_back(std::make_unique<GuardedBytes>(schedule.packedBytes[i]));
        findScheduleFamily(schedule.family())
            ->pack(reader, machine, schedule, i, memory[memory.size() - 2]->data,
                   memory.back()->data);
      }
      data.push_back(memory.back()->data);
      extents.insert(extents.end(), shape.begin(), shape.end());
    }
    std::vector<GuardedBytes *> outputs;
    for (size_t i = 0; i < sized.outputs.size(); ++i) {
      const ProblemValue &value = sized.values[sized.outputs[i]];
      Index shape = extentsOf(value);
      memory.push_back(std::make_unique<GuardedBytes>(
          physicalBytes(shape, value.type, layoutOf(schedule.outputLayouts[i]))));
      outputs.push_back(memory.back().get());
      data.push_back(memory.back()->data);
      extents.insert(extents.end(), shape.begin(), shape.end());
    }
    size_t stride = (schedule.scratchBytes + 63) / 64 * 64;
    GuardedBytes workspace(schedule.workspaceBytes), scratch(stride * options.threads);
    kernel.run({data.data(), extents.data(), workspace.data, scratch.data, int64_t(stride)},
               options.threads);

    std::vector<truth::Tensor> wanted = truth::evaluate(sized, inputs);
    for (size_t i = 0; i < sized.outputs.size(); ++i) {
      EXPECT_TRUE(outputs[i]->tailIntact());
      compare(sized.values[sized.outputs[i]], wanted[sized.outputs[i]],
              layoutOf(schedule.outputLayouts[i]), outputs[i]->data, outputs[i]->size);
    }
  }

  void compare(const ProblemValue &value, const truth::Tensor &wanted, const Layout &layout,
               const char *got, size_t bytes) {
    ASSERT_EQ(value.type, DVT_F32);
    Index shape = extentsOf(value);
    std::vector<float> plain(wanted.data.size());
    reorder(DVT_F32, shape, layout, got, Layout(), plain.data());
    size_t wrong = 0;
    for (size_t i = 0; i < plain.size(); ++i)
      if (!(std::abs(plain[i] - wanted.data[i]) <=
            options.tolerance * (1 + std::abs(wanted.data[i]))) &&
          !wrong++)
        ADD_FAILURE() << "element " << i << " is " << plain[i] << ", wanted " << wanted.data[i];
    EXPECT_EQ(wrong, 0u) << "of " << plain.size();
    // Going to plain and back must give the same bytes: the padding is zero.
    std::vector<float> again(bytes / 4);
    reorder(DVT_F32, shape, Layout(), plain.data(), layout, again.data());
    EXPECT_EQ(std::memcmp(again.data(), got, bytes), 0) << "padding is not zero";
  }

  const Problem &problem;
  const CheckOptions &options;
};

std::vector<Machine> machines(unsigned threads) {
  std::vector<Machine> all;
  for (const char *features : {"avx2,fma", "avx2,avx512bw,avx512dq,avx512f,avx512vl,fma"}) {
    dvt_target target{};
    target.struct_size = sizeof target;
    target.threads = threads;
    target.device = "cpu";
    target.architecture = "x86-64";
    target.features = features;
    auto machine = Machine::of(target);
    EXPECT_TRUE(machine);
    if (hostSupports(machine->isa.level))
      all.push_back(*machine);
  }
  return all;
}

} // namespace

Checked checkProblem(const std::string &text, const CheckOptions &options) {
  Checked checked;
  auto problem = Problem::parse(text);
  if (!problem) {
    ADD_FAILURE() << problem.error().message << " in " << text;
    return checked;
  }
  ProblemView view(*problem);
  ProblemReader reader(*view.get());
  Checker checker(*problem, options);
  for (const Machine &machine : machines(options.threads)) {
    std::vector<Schedule> offered;
    ScheduleSink sink{[&](Schedule schedule) { offered.push_back(std::move(schedule)); },
                      [&](const char *family, std::string reason) {
                        checked.refusals.push_back(std::string(family) + ": " + reason);
                      }};
    for (const ScheduleFamily &family : scheduleFamilies())
      if (family.serves(machine))
        family.propose(reader, machine, sink);
    for (const Schedule &schedule : offered) {
      if (schedule.algorithm.find(options.only) == std::string::npos)
        continue;
      checker.check(reader, machine, schedule);
      ++checked.schedules;
      checked.algorithms.push_back(schedule.algorithm);
      checked.inputLayouts.push_back(schedule.inputLayouts);
    }
  }
  if (!checked.schedules)
    ADD_FAILURE() << "no schedule for " << text
                  << (checked.refusals.empty() ? "" : ": " + checked.refusals.front());
  return checked;
}

std::vector<std::string> refusalsOf(const std::string &text) {
  std::vector<std::string> refusals;
  auto problem = Problem::parse(text);
  EXPECT_TRUE(problem) << text;
  if (!problem)
    return refusals;
  ProblemView view(*problem);
  ProblemReader reader(*view.get());
  ScheduleSink sink{[&](Schedule) {},
                    [&](const char *family, std::string reason) {
                      refusals.push_back(std::string(family) + ": " + reason);
                    }};
  Machine machine;
  for (const ScheduleFamily &family : scheduleFamilies())
    if (family.serves(machine))
      family.propose(reader, machine, sink);
  return refusals;
}

} // namespace dovetail::test
