// SPDX-License-Identifier: Apache-2.0
//
// What is asked of a provider for one problem. A problem that it refuses is skipped, since refusing
// is its right.
#include "Demands.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "Execution.h"

namespace dovetail::conformance {

namespace {

namespace fs = std::filesystem;

/// Values for the symbols of a problem's inputs: small, then larger ones.
std::vector<SymbolValues> pickSymbols(const Problem &problem) {
  std::set<std::string> symbols;
  for (uint32_t input : problem.inputs)
    for (const Extent &extent : problem.values[input].extents)
      for (const std::string &symbol : extent.symbols())
        symbols.insert(symbol);
  std::vector<SymbolValues> picks;
  for (int64_t steps : {0, 1, 3}) {
    SymbolValues values;
    for (const std::string &symbol : symbols) {
      auto found = problem.ranges.find(symbol);
      SymbolRange range = found == problem.ranges.end() ? SymbolRange() : found->second;
      int64_t divisor = std::max<int64_t>(range.divisor, 1);
      int64_t least = (std::max<int64_t>(range.min, 1) + divisor - 1) / divisor * divisor;
      values[symbol] = std::min(least + steps * divisor, range.max / divisor * divisor);
    }
    if (picks.empty() || picks.back() != values)
      picks.push_back(std::move(values));
    if (symbols.empty())
      break;
  }
  return picks;
}

class ProblemTest : public testing::Test {
public:
  explicit ProblemTest(const ProblemLine &line) : line(line) {}

protected:
  void SetUp() override {
    Expected<Problem> parsed = Problem::parse(line.text);
    ASSERT_TRUE(parsed) << line.file << ":" << line.line << ": " << parsed.error().message;
    problem = *parsed;
    Proposal proposal = provider().propose(target(), problem);
    for (const Refusal &refusal : proposal.refusals)
      ASSERT_FALSE(refusal.reason.empty()) << "a refusal without a reason";
    if (proposal.candidates.empty())
      GTEST_SKIP() << "refused: " << (proposal.refusals.empty() ? "" : proposal.refusals[0].reason);
    candidates = std::move(proposal.candidates);
  }

  /// Whether a candidate can be run as it is: one that needs numbers in place of symbols cannot.
  bool runsAsIs(const Candidate &candidate) const {
    return !problem.hasSymbols() || candidate.runtimeExtents;
  }

  static std::vector<uint8_t> compileHere(const Problem &problem, const Candidate &candidate) {
    Expected<std::vector<uint8_t>> kernel = provider().compile(target(), problem, candidate);
    EXPECT_TRUE(kernel) << candidate.label() << ": " << (kernel ? "" : kernel.error().message);
    return kernel ? *kernel : std::vector<uint8_t>();
  }

  /// What the reference gives for the same operands.
  static std::vector<HostTensor> truthOf(const Problem &problem,
                                         const std::vector<HostTensor> &inputs,
                                         const SymbolValues &symbols) {
    Problem plain = problem;
    for (ProblemValue &value : plain.values) {
      value.mayAlias = -1;
      value.strides.clear();
    }
    Proposal proposal = reference().propose(target(), plain);
    if (proposal.candidates.empty()) {
      ADD_FAILURE() << "the reference refuses: "
                    << (proposal.refusals.empty() ? "" : proposal.refusals[0].reason);
      return {};
    }
    // Layout changes only layouts: the reference proposes those of the op, and gives row-major
    // results here.
    PreparedCandidate prepared(reference(), target(), plain, proposal.candidates[0], {}, inputs,
                               symbols);
    EXPECT_EQ(prepared.code(), DVT_OK) << prepared.message();
    RunResult result = prepared.run({}, 1);
    EXPECT_EQ(result.code, DVT_OK) << result.message;
    return result.outputs;
  }

  void expectResults(const RunResult &result, const std::vector<HostTensor> &truth,
                     const SymbolValues &symbols, const Candidate &candidate) {
    ASSERT_EQ(result.code, DVT_OK) << candidate.label() << ": " << result.message;
    for (const std::string &violation : result.violations)
      ADD_FAILURE() << candidate.label() << ": " << violation;
    ASSERT_EQ(result.outputs.size(), truth.size());
    bool quantized = line.text.find("quantize") != std::string::npos ||
                     line.text.find("q_linear") != std::string::npos;
    double bound = errorBound(problem, symbols, candidate.numerics);
    for (size_t i = 0; i < truth.size(); ++i) {
      std::string why = compare(truth[i], result.outputs[i], bound, quantized);
      EXPECT_TRUE(why.empty()) << candidate.label() << ", output " << i << ": " << why;
    }
  }

  const ProblemLine line;
  Problem problem;
  std::vector<Candidate> candidates;
};

class SameInEveryProcess : public ProblemTest {
  using ProblemTest::ProblemTest;
  void TestBody() override {
    Proposal again = provider().propose(target(), problem);
    Proposal first;
    first.candidates = candidates;
    EXPECT_EQ(serialize(first), serialize(again)) << "asked twice in one process";
    int status = 0;
    std::string other = runChild({"propose", line.text}, status);
    ASSERT_EQ(status, 0);
    EXPECT_EQ(serialize(first), other) << "asked in another process";
  }
};

class NewerHostIsUnderstood : public ProblemTest {
  using ProblemTest::ProblemTest;
  void TestBody() override {
    // A newer host's structs are longer; the provider must step by their size and ignore what it
    // does not know.
    ProblemView view(problem);
    const dvt_problem *plain = view.get();
    auto widen = [](const auto *array, uint32_t count) {
      using T = std::remove_cvref_t<decltype(*array)>;
      std::vector<uint64_t> wide(count * (sizeof(T) / 8 + 3), 0xAAAAAAAAAAAAAAAA);
      for (uint32_t i = 0; i < count; ++i) {
        T element = array[i];
        element.struct_size = sizeof(T) + 24;
        std::memcpy(reinterpret_cast<char *>(wide.data()) + i * (sizeof(T) + 24), &element,
                    sizeof(T));
      }
      return wide;
    };
    std::vector<uint64_t> values = widen(plain->values, plain->value_count), ops;
    std::vector<dvt_op> opList(plain->ops, plain->ops + plain->op_count);
    std::vector<std::vector<uint64_t>> attributes;
    for (dvt_op &op : opList) {
      attributes.push_back(widen(op.attributes, op.attribute_count));
      op.attributes = reinterpret_cast<const dvt_attribute *>(attributes.back().data());
    }
    ops = widen(opList.data(), plain->op_count);
    dvt_problem wide = *plain;
    wide.values = reinterpret_cast<const dvt_value *>(values.data());
    wide.ops = reinterpret_cast<const dvt_op *>(ops.data());
    std::vector<std::string> labels;
    dvt_candidate_sink sink = {};
    sink.struct_size = sizeof sink;
    sink.context = &labels;
    sink.candidate = [](void *context, const dvt_candidate *candidate) {
      static_cast<std::vector<std::string> *>(context)->push_back(candidate->algorithm);
    };
    sink.refusal = [](void *, const char *, const char *) {};
    dvt_error error = {};
    Target here = target();
    dvt_target plainTarget = here.view();
    provider().functions().propose(provider().handle(), &plainTarget, &wide, &sink, &error);
    std::vector<std::string> expected;
    for (const Candidate &candidate : candidates)
      expected.push_back(candidate.algorithm);
    EXPECT_EQ(labels, expected) << error.message;
  }
};

class RightResults : public ProblemTest {
  using ProblemTest::ProblemTest;
  void TestBody() override {
    for (const SymbolValues &symbols : pickSymbols(problem)) {
      std::vector<HostTensor> inputs = makeInputs(problem, symbols, line.positive);
      std::vector<HostTensor> truth = truthOf(problem, inputs, symbols);
      for (const Candidate &candidate : candidates)
        if (runsAsIs(candidate))
          check(candidate, inputs, truth, symbols);
    }
  }

  void check(const Candidate &candidate, const std::vector<HostTensor> &inputs,
             const std::vector<HostTensor> &truth, const SymbolValues &symbols) {
    PreparedCandidate prepared(provider(), target(), problem, candidate,
                               compileHere(problem, candidate), inputs, symbols);
    ASSERT_EQ(prepared.code(), DVT_OK) << candidate.label() << ": " << prepared.message();
    if (candidate.workspaceBytes != UINT64_MAX) {
      EXPECT_LE(prepared.workspaceBytes(), candidate.workspaceBytes) << candidate.label();
    }
    RunResult result = prepared.run({}, settings.threads);
    expectResults(result, truth, symbols, candidate);
    // What lay in workspace and outputs before must not matter, nor that the kernel ran before.
    RunResult again = prepared.run({.fill = 0}, settings.threads);
    expectResults(again, truth, symbols, candidate);
    for (size_t i = 0; candidate.deterministic && i < result.outputs.size(); ++i) {
      ASSERT_LT(i, again.outputs.size());
      EXPECT_EQ(result.outputs[i].bytes, again.outputs[i].bytes)
          << candidate.label() << " is not deterministic";
    }
    bool mayAlias = false;
    for (uint32_t output : problem.outputs)
      mayAlias = mayAlias || problem.values[output].mayAlias >= 0;
    if (mayAlias)
      expectResults(prepared.run({.inPlace = true}, settings.threads), truth, symbols, candidate);
  }
};

class CompiledElsewhere : public ProblemTest {
  using ProblemTest::ProblemTest;
  void TestBody() override {
    if (!provider().functions().compile)
      GTEST_SKIP() << "the provider compiles nothing";
    SymbolValues symbols = pickSymbols(problem).back();
    std::vector<HostTensor> inputs = makeInputs(problem, symbols, line.positive);
    std::vector<HostTensor> truth = truthOf(problem, inputs, symbols);
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (!runsAsIs(candidates[i]))
        continue;
      int status = 0;
      std::string bytes = runChild({"compile", line.text, std::to_string(i)}, status);
      ASSERT_EQ(status, 0) << candidates[i].label() << " does not compile in another process";
      PreparedCandidate prepared(provider(), target(), problem, candidates[i],
                                 {bytes.begin(), bytes.end()}, inputs, symbols);
      ASSERT_EQ(prepared.code(), DVT_OK) << candidates[i].label() << ": " << prepared.message();
      expectResults(prepared.run({}, settings.threads), truth, symbols, candidates[i]);
    }
  }
};

class RunsConcurrently : public ProblemTest {
  using ProblemTest::ProblemTest;
  void TestBody() override {
    SymbolValues symbols = pickSymbols(problem).back();
    std::vector<HostTensor> inputs = makeInputs(problem, symbols, line.positive);
    std::vector<HostTensor> truth = truthOf(problem, inputs, symbols);
    for (const Candidate &candidate : candidates) {
      if (!runsAsIs(candidate))
        continue;
      PreparedCandidate prepared(provider(), target(), problem, candidate,
                                 compileHere(problem, candidate), inputs, symbols);
      ASSERT_EQ(prepared.code(), DVT_OK) << candidate.label() << ": " << prepared.message();
      std::array<RunResult, 4> results;
      std::array<std::thread, 2> threads;
      for (size_t t = 0; t < 2; ++t)
        threads[t] = std::thread([&, t] {
          results[2 * t] = prepared.run({}, 1);
          results[2 * t + 1] = prepared.run({.fill = 0}, 1);
        });
      for (std::thread &thread : threads)
        thread.join();
      for (const RunResult &result : results)
        expectResults(result, truth, symbols, candidate);
    }
  }
};

class RefusesAlteredCandidates : public ProblemTest {
  using ProblemTest::ProblemTest;
  void TestBody() override {
    SymbolValues symbols = pickSymbols(problem).back();
    std::vector<HostTensor> inputs = makeInputs(problem, symbols, line.positive);
    for (const Candidate &candidate : candidates) {
      if (!runsAsIs(candidate))
        continue;
      std::vector<uint8_t> kernel = compileHere(problem, candidate);
      Candidate other = candidate;
      other.algorithm += ":altered";
      expectRefused(other, kernel, inputs, symbols);
      other = candidate;
      if (reverseLayout(other))
        expectRefused(other, kernel, inputs, symbols);
      if (provider().functions().compile && !kernel.empty()) {
        PreparedCandidate broken(provider(), target(), problem, candidate, {}, inputs, symbols);
        EXPECT_NE(broken.code(), DVT_OK) << candidate.label() << " is prepared without its kernel";
        EXPECT_NE(broken.message(), "") << candidate.label();
      }
    }
  }

  /// Gives the first input of rank 2 or more its dimensions in reverse; false where that is
  /// proposed, too.
  bool reverseLayout(Candidate &candidate) const {
    for (size_t i = 0; i < problem.inputs.size(); ++i) {
      size_t rank = problem.values[problem.inputs[i]].extents.size();
      if (rank < 2)
        continue;
      candidate.inputLayouts[i].clear();
      for (size_t d = rank; d-- > 0;)
        candidate.inputLayouts[i] += static_cast<char>('a' + d);
      for (const Candidate &proposed : candidates)
        if (proposed.algorithm == candidate.algorithm &&
            proposed.inputLayouts == candidate.inputLayouts)
          return false;
      return true;
    }
    return false;
  }

  void expectRefused(const Candidate &candidate, const std::vector<uint8_t> &kernel,
                     const std::vector<HostTensor> &inputs, const SymbolValues &symbols) {
    PreparedCandidate prepared(provider(), target(), problem, candidate, kernel, inputs, symbols);
    EXPECT_EQ(prepared.code(), DVT_UNSUPPORTED)
        << "prepare takes " << serialize(candidate) << ", which is not proposed";
    if (prepared.code() != DVT_OK) {
      EXPECT_NE(prepared.message(), "") << "a refusal without a reason";
    }
  }
};

class RefusesNewerOps : public ProblemTest {
  using ProblemTest::ProblemTest;
  void TestBody() override {
    for (size_t i = 0; i < problem.ops.size(); ++i) {
      Problem newer = problem;
      newer.ops[i].version += 1000;
      EXPECT_TRUE(provider().propose(target(), newer).candidates.empty())
          << newer.ops[i].name << " of op set version " << newer.ops[i].version;
      Problem unknown = problem;
      unknown.ops[i].name = "no_such_op";
      Proposal proposal = provider().propose(target(), unknown);
      EXPECT_TRUE(proposal.candidates.empty()) << "takes an op that does not exist";
      EXPECT_FALSE(proposal.refusals.empty()) << "says nothing about an op that does not exist";
    }
  }
};

class StridedOperands : public ProblemTest {
  using ProblemTest::ProblemTest;
  void TestBody() override {
    // One input at a time with a gap after every row, one element wide where rows allow no other.
    for (uint32_t input : problem.inputs) {
      ProblemValue &value = problem.values[input];
      size_t rank = value.extents.size();
      if (problem.hasSymbols() || value.constant || rank < 2 || typeBits(value.type) < 8 ||
          !value.strides.empty())
        continue;
      Problem strided = problem;
      std::vector<int64_t> &strides = strided.values[input].strides;
      strides.assign(rank, 1);
      for (size_t d = rank - 1; d-- > 0;)
        strides[d] = strides[d + 1] * value.extents[d + 1].value() + (d == rank - 2 ? 3 : 0);
      for (ProblemValue &other : strided.values)
        other.mayAlias = -1;
      std::vector<HostTensor> inputs = makeInputs(strided, {}, line.positive);
      std::vector<HostTensor> truth = truthOf(strided, inputs, {});
      for (const Candidate &candidate : provider().propose(target(), strided).candidates) {
        PreparedCandidate prepared(provider(), target(), strided, candidate,
                                   compileHere(strided, candidate), inputs, {});
        ASSERT_EQ(prepared.code(), DVT_OK) << candidate.label() << ": " << prepared.message();
        expectResults(prepared.run({}, settings.threads), truth, {}, candidate);
      }
    }
  }
};

template <typename Demand>
void registerFor(const char *suite, const ProblemLine &line, const std::string &name) {
  testing::RegisterTest(suite, name.c_str(), nullptr, line.text.c_str(), line.file.c_str(),
                        line.line, [line]() -> testing::Test * { return new Demand(line); });
}

} // namespace

void registerProblem(const ProblemLine &line) {
  Expected<Problem> problem = Problem::parse(line.text);
  std::string name = fs::path(line.file).stem().string() + "_" + std::to_string(line.line);
  if (problem)
    for (const ProblemOp &op : problem->ops)
      name += "_" + op.name;
  registerFor<SameInEveryProcess>("SameInEveryProcess", line, name);
  registerFor<NewerHostIsUnderstood>("NewerHostIsUnderstood", line, name);
  registerFor<RightResults>("RightResults", line, name);
  registerFor<CompiledElsewhere>("CompiledElsewhere", line, name);
  registerFor<RunsConcurrently>("RunsConcurrently", line, name);
  registerFor<RefusesAlteredCandidates>("RefusesAlteredCandidates", line, name);
  registerFor<RefusesNewerOps>("RefusesNewerOps", line, name);
  registerFor<StridedOperands>("StridedOperands", line, name);
}

} // namespace dovetail::conformance
