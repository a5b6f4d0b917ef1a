// SPDX-License-Identifier: Apache-2.0
//
// The checks themselves. Inputs are small and around zero, so that activations are met on both
// sides; operands that must be positive (variances, radicands) are given as such by the problem's
// ops.
#include "CandidateCheck.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "PlainTruth.h"
#include "support/Layout.h"
#include "support/Literal.h"
#include "support/Parallel.h"

namespace dovetail::test {
namespace {

constexpr size_t kGuard = 256;
constexpr unsigned char kGuardByte = 0xA5;

/// Aligned memory with guard zones that notice writes beyond either end.
class Guarded {
public:
  explicit Guarded(uint64_t bytes)
      : bytes(bytes), memory(2 * kGuard + (bytes + 63) / 64 * 64 + 64) {
    start = memory.data() + kGuard;
    start += (64 - reinterpret_cast<uintptr_t>(start) % 64) % 64;
    std::memset(memory.data(), kGuardByte, memory.size());
  }
  void *data() { return start; }
  bool isIntact() const {
    for (const unsigned char *p = memory.data(); p < start; ++p)
      if (*p != kGuardByte)
        return false;
    for (const unsigned char *p = start + bytes; p < memory.data() + memory.size(); ++p)
      if (*p != kGuardByte)
        return false;
    return true;
  }

private:
  uint64_t bytes;
  std::vector<unsigned char> memory;
  unsigned char *start;
};

std::vector<int64_t> extentsOf(const ProblemValue &value) {
  std::vector<int64_t> extents;
  for (const Extent &extent : value.extents)
    extents.push_back(extent.value());
  return extents;
}

uint64_t layoutBytes(const ProblemValue &value, const std::string &layout) {
  return bytesOf(value.type, Layout::parse(layout)->physicalElements(extentsOf(value)));
}

bool needsPositive(const Problem &problem, uint32_t value) {
  for (const ProblemOp &op : problem.ops)
    for (size_t i = 0; i < op.inputs.size(); ++i)
      if (op.inputs[i] == value &&
          ((op.name == "batch_normalization" && i == 4) || op.name == "sqrt" || op.name == "log" ||
           op.name == "reciprocal" || op.name == "pow" || (op.name == "div" && i == 1)))
        return true;
  return false;
}

/// Numbers as elements of a type of floats, and back.
std::vector<char> elementsOf(dvt_type type, const std::vector<float> &numbers) {
  std::vector<char> bytes(bytesOf(type, int64_t(numbers.size())));
  for (size_t i = 0; i < numbers.size(); ++i) {
    uint16_t half = type == DVT_F16 ? floatToHalf(numbers[i]) : floatToBfloat(numbers[i]);
    if (type == DVT_F16 || type == DVT_BF16)
      std::memcpy(&bytes[i * 2], &half, 2);
    else
      std::memcpy(&bytes[i * 4], &numbers[i], 4);
  }
  return bytes;
}

std::vector<float> numbersOf(dvt_type type, const std::vector<char> &bytes) {
  std::vector<float> numbers(bytes.size() / size_t(bytesOf(type, 1)));
  for (size_t i = 0; i < numbers.size(); ++i) {
    uint16_t half = 0;
    if (type == DVT_F16 || type == DVT_BF16) {
      std::memcpy(&half, &bytes[i * 2], 2);
      numbers[i] = type == DVT_F16 ? halfToFloat(half) : bfloatToFloat(half);
    } else {
      std::memcpy(&numbers[i], &bytes[i * 4], 4);
    }
  }
  return numbers;
}

class Case {
public:
  Case(const Provider &provider, Problem given, double tolerance, uint32_t threads)
      : provider(provider), api(provider.functions()), problem(std::move(given)), view(problem),
        target(Target::host(threads)), targetView(target.view()), tolerance(tolerance) {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(-2, 2);
    for (uint32_t value : problem.inputs) {
      PlainTensor plain{extentsOf(problem.values[value]), {}};
      std::vector<float> numbers;
      const bool positive = needsPositive(problem, value);
      int64_t elements = 1;
      for (int64_t extent : plain.dims)
        elements *= extent;
      for (int64_t i = 0; i < elements; ++i) {
        float x = uniform(random);
        numbers.push_back(positive ? std::abs(x) + 0.5f : x);
      }
      const dvt_type type = problem.values[value].type;
      inputs.push_back(elementsOf(type, numbers));
      for (float x : numbersOf(type, inputs.back()))
        plain.data.push_back(x);
      plainInputs.push_back(std::move(plain));
    }
    truth = plainTruth(problem, plainInputs);
  }

  std::vector<CheckedCandidate> run() {
    std::vector<CheckedCandidate> checked;
    Proposal proposal = provider.propose(target, problem);
    for (const Candidate &candidate : proposal.candidates) {
      SCOPED_TRACE(candidate.label() + " of " + problem.text());
      checked.push_back({candidate.algorithm, candidate.inputLayouts, candidate.outputLayouts,
                         candidate.numerics, 0});
      check(candidate, checked.back());
    }
    return checked;
  }

private:
  void check(const Candidate &candidate, CheckedCandidate &result) {
    std::vector<std::unique_ptr<Guarded>> operands;
    std::vector<const void *> constants;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ProblemValue &value = problem.values[problem.inputs[i]];
      operands.push_back(std::make_unique<Guarded>(layoutBytes(value, candidate.inputLayouts[i])));
      reorder(value.type, extentsOf(value), Layout{}, inputs[i].data(),
              *Layout::parse(candidate.inputLayouts[i]), operands.back()->data());
      constants.push_back(value.constant ? operands.back()->data() : nullptr);
    }
    ParallelFor parallel(target.threads);
    std::vector<const char *> storage;
    dvt_candidate asProposed = candidate.view(storage);
    std::vector<std::unique_ptr<Guarded>> lent;
    double packingMicros = 0;
    dvt_prepare_args prepareArgs = {};
    prepareArgs.struct_size = sizeof prepareArgs;
    prepareArgs.constants = constants.data();
    prepareArgs.threads = target.threads;
    prepareArgs.parallel = parallel.get();
    prepareArgs.memory_context = &lent;
    prepareArgs.allocate = [](void *context, uint64_t bytes) {
      auto &all = *static_cast<std::vector<std::unique_ptr<Guarded>> *>(context);
      return std::memset(all.emplace_back(std::make_unique<Guarded>(bytes))->data(), 0, bytes);
    };
    prepareArgs.packing_micros = &packingMicros;
    dvt_error error = {};
    dvt_kernel *kernel = nullptr;
    ASSERT_EQ(api.prepare(provider.handle(), &targetView, view, &asProposed, &prepareArgs, &kernel,
                          &error),
              DVT_OK)
        << error.message;
    if (candidate.packing == DVT_PACKING_AT_LOAD) {
      EXPECT_FALSE(lent.empty()) << "packed constants lie elsewhere than in the memory lent";
      EXPECT_GT(packingMicros, 0);
    }
    const uint64_t workspace = api.workspace_bytes(kernel);
    EXPECT_LE(workspace, candidate.workspaceBytes);
    auto runOnce = [&](std::vector<std::unique_ptr<Guarded>> &outputs) {
      std::vector<dvt_tensor> in, out;
      std::vector<std::vector<int64_t>> extents;
      auto describe = [&](uint32_t value, void *data) {
        extents.push_back(extentsOf(problem.values[value]));
        return dvt_tensor{data,
                          nullptr,
                          nullptr,
                          static_cast<uint32_t>(extents.back().size()),
                          problem.values[value].type,
                          DVT_MEMORY_HOST};
      };
      for (size_t i = 0; i < inputs.size(); ++i)
        in.push_back(describe(problem.inputs[i], operands[i]->data()));
      for (size_t i = 0; i < problem.outputs.size(); ++i) {
        outputs.push_back(std::make_unique<Guarded>(
            layoutBytes(problem.values[problem.outputs[i]], candidate.outputLayouts[i])));
        out.push_back(describe(problem.outputs[i], outputs.back()->data()));
      }
      for (size_t i = 0; i < in.size(); ++i)
        in[i].extents = extents[i].data();
      for (size_t i = 0; i < out.size(); ++i)
        out[i].extents = extents[in.size() + i].data();
      Guarded scratch(workspace);
      dvt_run_args args = {};
      args.struct_size = sizeof args;
      args.input_count = static_cast<uint32_t>(in.size());
      args.output_count = static_cast<uint32_t>(out.size());
      args.inputs = in.data();
      args.outputs = out.data();
      args.workspace = scratch.data();
      args.workspace_bytes = workspace;
      args.parallel = parallel.get();
      dvt_error runError = {};
      EXPECT_EQ(api.run(kernel, &args, &runError), DVT_OK) << runError.message;
      EXPECT_TRUE(scratch.isIntact()) << "wrote outside the workspace";
      for (auto &output : outputs)
        EXPECT_TRUE(output->isIntact()) << "wrote outside the result";
    };
    std::vector<std::unique_ptr<Guarded>> first, second, third;
    runOnce(first);
    compare(candidate, first, result);
    std::thread other([&] { runOnce(third); });
    runOnce(second);
    other.join();
    for (size_t i = 0; i < first.size(); ++i) {
      const uint64_t bytes =
          layoutBytes(problem.values[problem.outputs[i]], candidate.outputLayouts[i]);
      EXPECT_EQ(std::memcmp(first[i]->data(), second[i]->data(), bytes), 0) << "two runs differ";
      EXPECT_EQ(std::memcmp(first[i]->data(), third[i]->data(), bytes), 0)
          << "runs on two threads differ";
    }
    for (auto &operand : operands)
      EXPECT_TRUE(operand->isIntact());
    for (auto &block : lent)
      EXPECT_TRUE(block->isIntact()) << "wrote beside the memory lent for packed constants";
    api.destroy_kernel(kernel);
  }

  void compare(const Candidate &candidate, std::vector<std::unique_ptr<Guarded>> &outputs,
               CheckedCandidate &result) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const ProblemValue &value = problem.values[problem.outputs[i]];
      const std::vector<int64_t> extents = extentsOf(value);
      const Layout layout = *Layout::parse(candidate.outputLayouts[i]);
      std::vector<char> dense(bytesOf(value.type, int64_t(truth[i].data.size())));
      reorder(value.type, extents, layout, outputs[i]->data(), Layout{}, dense.data());
      const std::vector<float> plain = numbersOf(value.type, dense);
      double largest = 1e-3, worst = 0;
      for (double x : truth[i].data)
        largest = std::max(largest, std::abs(x));
      for (size_t k = 0; k < plain.size(); ++k) {
        double off = std::abs(plain[k] - truth[i].data[k]);
        worst = std::isnan(off) ? INFINITY : std::max(worst, off);
      }
      result.worst = std::max(result.worst, worst / largest);
      EXPECT_LE(worst / largest, tolerance);
      // Going there and back gives the same bytes only where the padding is zero.
      std::vector<char> again(layoutBytes(value, candidate.outputLayouts[i]));
      reorder(value.type, extents, Layout{}, dense.data(), layout, again.data());
      EXPECT_EQ(std::memcmp(again.data(), outputs[i]->data(), again.size()), 0)
          << "the padding is not zero";
    }
  }

  const Provider &provider;
  const dvt_provider_api &api;
  Problem problem;
  ProblemView view;
  Target target;
  dvt_target targetView;
  double tolerance;
  std::vector<std::vector<char>> inputs;
  std::vector<PlainTensor> plainInputs, truth;
};

} // namespace

std::vector<CheckedCandidate> checkCandidates(const Provider &provider, std::string_view text,
                                              double tolerance, uint32_t threads) {
  Expected<Problem> problem = Problem::parse(text);
  if (!problem) {
    ADD_FAILURE() << problem.error().message << "\n" << text;
    return {};
  }
  return Case(provider, std::move(*problem), tolerance, threads).run();
}

std::string refusalOf(const Provider &provider, std::string_view text) {
  Expected<Problem> problem = Problem::parse(text);
  if (!problem) {
    ADD_FAILURE() << problem.error().message << "\n" << text;
    return {};
  }
  Proposal proposal = provider.propose(Target::host(2), *problem);
  if (!proposal.candidates.empty())
    return {};
  return proposal.refusals.empty() ? "no reason" : proposal.refusals[0].reason;
}

PluginSet loadPlugin(const std::string &name, const std::string &vendorPath) {
  PluginSet::Options options;
  options.folders = {std::string(DOVETAIL_BINARY_DIR) + "/lib/dovetail"};
  options.vendorPath = vendorPath;
  options.only = {name};
  return PluginSet::load(options);
}

} // namespace dovetail::test
