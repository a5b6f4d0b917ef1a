// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "NativeCheck.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "support/Layout.h"
#include "support/Literal.h"

namespace dovetail::test {

const PluginSet &plugins() {
  static const PluginSet set = [] {
    PluginSet::Options options;
    options.folders = {DOVETAIL_BINARY_DIR "/lib/dovetail"};
    options.only = {"native", "reference"};
    return PluginSet::load(options);
  }();
  return set;
}

namespace {

constexpr size_t kGuard = 256;
constexpr uint8_t kPattern = 0xa5;

/// Aligned bytes between two guard zones.
struct Memory {
  explicit Memory(size_t bytes = 0) : bytes(bytes), all(bytes + 2 * kGuard + 64, kPattern) {}
  uint8_t *data() {
    auto address = reinterpret_cast<uintptr_t>(all.data()) + kGuard;
    return all.data() + kGuard + (64 - address % 64) % 64;
  }
  bool intact() {
    for (uint8_t *byte = all.data(); byte < data(); ++byte)
      if (*byte != kPattern)
        return false;
    for (uint8_t *byte = data() + bytes; byte < all.data() + all.size(); ++byte)
      if (*byte != kPattern)
        return false;
    return true;
  }
  size_t bytes;
  std::vector<uint8_t> all;
};

std::vector<int64_t> concrete(const ProblemValue &value, const SymbolValues &symbols) {
  std::vector<int64_t> extents;
  for (const Extent &extent : value.extents)
    extents.push_back(extent.evaluate(symbols).value_or(-1));
  return extents;
}

int64_t count(const std::vector<int64_t> &extents) {
  int64_t product = 1;
  for (int64_t extent : extents)
    product *= extent;
  return product;
}

Memory randomInput(dvt_type type, int64_t elements, const CheckOptions &options,
                   std::mt19937 &random) {
  Memory memory(bytesOf(type, elements));
  std::uniform_real_distribution<double> reals(options.low, options.high);
  std::uniform_int_distribution<int64_t> whole(int64_t(std::ceil(options.low)),
                                               int64_t(std::floor(options.high)));
  const float specials[] = {0.f,   -0.f,   1.f,   -1.f, INFINITY, -INFINITY, NAN, 1e-40f, -1e-40f,
                            1e30f, -1e30f, 88.8f, 0.5f, -0.5f,    1e-10f,    2.f, 3.f,    -88.f};
  for (int64_t i = 0; i < elements; ++i) {
    auto put = [&](auto number) {
      std::memcpy(memory.data() + i * sizeof(number), &number, sizeof(number));
    };
    auto real = [&] {
      if (!options.values.empty())
        return float(options.values[random() % options.values.size()]);
      return options.specials && random() % 4 == 0 ? specials[random() % std::size(specials)]
                                                   : float(reals(random));
    };
    switch (type) {
    case DVT_F32:
      put(real());
      break;
    case DVT_F64:
      put(double(real()));
      break;
    case DVT_F16:
      put(floatToHalf(real()));
      break;
    case DVT_BF16:
      put(floatToBfloat(real()));
      break;
    case DVT_U64:
    case DVT_I64:
      put(int64_t(whole(random)));
      break;
    case DVT_U32:
    case DVT_I32:
      put(int32_t(whole(random)));
      break;
    case DVT_U16:
    case DVT_I16:
      put(int16_t(whole(random)));
      break;
    case DVT_BOOL:
      put(uint8_t(random() % 2));
      break;
    case DVT_U8:
    case DVT_I8:
      put(uint8_t(options.allBytes ? random() : whole(random)));
      break;
    case DVT_U4:
    case DVT_I4:
      memory.data()[i / 2] =
          uint8_t((i % 2 ? memory.data()[i / 2] & 15 : 0) | (random() & 15) << (i % 2 * 4));
      break;
    default:
      ADD_FAILURE() << "no random inputs of this type";
    }
  }
  return memory;
}

void splitRanges(void *, int64_t total, void (*body)(void *, int64_t, int64_t, uint32_t),
                 void *argument) {
  // Last part first: tasks may come in any order.
  for (int64_t part = 2; part >= 0; --part)
    body(argument, total * part / 3, total * (part + 1) / 3, uint32_t(part));
}

struct Run {
  const Problem &problem;
  const SymbolValues &symbols;
  std::vector<std::vector<int64_t>> inputExtents, outputExtents;
  std::vector<Memory> inputs; ///< row-major

  Run(const Problem &problem, const SymbolValues &symbols) : problem(problem), symbols(symbols) {
    for (uint32_t value : problem.inputs)
      inputExtents.push_back(concrete(problem.values[value], symbols));
    for (uint32_t value : problem.outputs)
      outputExtents.push_back(concrete(problem.values[value], symbols));
  }

  /// Row-major outputs; empty after a failure.
  std::vector<Memory> execute(const Provider &provider, const Target &target,
                              const Problem &compiledFor, const Candidate &candidate,
                              const std::vector<uint8_t> &kernelBytes, bool parallel) {
    std::vector<Memory> laidOut, outputs;
    std::vector<const void *> constants;
    std::vector<dvt_tensor> inputTensors, outputTensors;
    for (size_t i = 0; i < inputs.size(); ++i) {
      dvt_type type = problem.values[problem.inputs[i]].type;
      Layout layout = *Layout::parse(candidate.inputLayouts[i]);
      laidOut.emplace_back(bytesOf(type, layout.physicalElements(inputExtents[i])));
      reorder(type, inputExtents[i], Layout(), inputs[i].data(), layout, laidOut.back().data());
    }
    for (size_t i = 0; i < outputExtents.size(); ++i) {
      dvt_type type = problem.values[problem.outputs[i]].type;
      outputs.emplace_back(bytesOf(
          type, Layout::parse(candidate.outputLayouts[i])->physicalElements(outputExtents[i])));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ProblemValue &value = problem.values[problem.inputs[i]];
      constants.push_back(value.constant ? laidOut[i].data() : nullptr);
      inputTensors.push_back({laidOut[i].data(), inputExtents[i].data(), nullptr,
                              uint32_t(inputExtents[i].size()), value.type, DVT_MEMORY_HOST});
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      outputTensors.push_back({outputs[i].data(), outputExtents[i].data(), nullptr,
                               uint32_t(outputExtents[i].size()),
                               problem.values[problem.outputs[i]].type, DVT_MEMORY_HOST});
    dvt_target targetView = target.view();
    ProblemView view(compiledFor);
    std::vector<const char *> storage;
    dvt_candidate candidateView = candidate.view(storage);
    dvt_prepare_args prepare{};
    prepare.struct_size = sizeof(prepare);
    prepare.constants = constants.data();
    prepare.kernel = kernelBytes.data();
    prepare.kernel_bytes = kernelBytes.size();
    prepare.threads = target.threads;
    dvt_kernel *kernel = nullptr;
    dvt_error error{};
    const dvt_provider_api &api = provider.functions();
    if (api.prepare(provider.handle(), &targetView, view, &candidateView, &prepare, &kernel,
                    &error) != DVT_OK) {
      ADD_FAILURE() << candidate.label() << ": prepare: " << error.message;
      return {};
    }
    Memory workspace(api.workspace_bytes(kernel));
    EXPECT_LE(workspace.bytes, candidate.workspaceBytes) << candidate.label();
    dvt_parallel ranges{sizeof(dvt_parallel), 3, nullptr, splitRanges};
    dvt_run_args args{};
    args.struct_size = sizeof(args);
    args.input_count = inputTensors.size();
    args.output_count = outputTensors.size();
    args.inputs = inputTensors.data();
    args.outputs = outputTensors.data();
    args.workspace = workspace.data();
    args.workspace_bytes = workspace.bytes;
    args.parallel = parallel ? &ranges : nullptr;
    dvt_code code = api.run(kernel, &args, &error);
    api.destroy_kernel(kernel);
    if (code != DVT_OK) {
      ADD_FAILURE() << candidate.label() << ": run: " << error.message;
      return {};
    }
    EXPECT_TRUE(workspace.intact()) << candidate.label() << " writes outside its workspace";
    std::vector<Memory> rowMajor;
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_TRUE(outputs[i].intact()) << candidate.label() << " writes outside output " << i;
      dvt_type type = problem.values[problem.outputs[i]].type;
      Layout layout = *Layout::parse(candidate.outputLayouts[i]);
      rowMajor.emplace_back(bytesOf(type, count(outputExtents[i])));
      reorder(type, outputExtents[i], layout, outputs[i].data(), Layout(), rowMajor.back().data());
      // Back again: what differs is padding that is not zero.
      Memory again(outputs[i].bytes);
      reorder(type, outputExtents[i], Layout(), rowMajor.back().data(), layout, again.data());
      EXPECT_EQ(std::memcmp(again.data(), outputs[i].data(), again.bytes), 0)
          << candidate.label() << ": the padding of output " << i << " is not zero";
    }
    return rowMajor;
  }

  void compare(const Candidate &candidate, std::vector<Memory> &got, std::vector<Memory> &wanted,
               const CheckOptions &options, const std::string &what) {
    for (size_t i = 0; i < got.size(); ++i) {
      dvt_type type = problem.values[problem.outputs[i]].type;
      int64_t elements = count(outputExtents[i]), wrong = 0;
      std::string first;
      for (int64_t j = 0; j < elements; ++j) {
        bool same;
        std::string difference;
        if (type == DVT_F32) {
          float a, b;
          std::memcpy(&a, got[i].data() + 4 * j, 4);
          std::memcpy(&b, wanted[i].data() + 4 * j, 4);
          same = a == b || (std::isnan(a) && std::isnan(b)) ||
                 std::abs(double(a) - double(b)) <=
                     options.absolute + options.relative * std::abs(double(b));
          difference = std::to_string(a) + " instead of " + std::to_string(b);
        } else if (type == DVT_F16 || type == DVT_BF16) {
          uint16_t bits[2];
          std::memcpy(&bits[0], got[i].data() + 2 * j, 2);
          std::memcpy(&bits[1], wanted[i].data() + 2 * j, 2);
          auto number = type == DVT_F16 ? halfToFloat : bfloatToFloat;
          double a = number(bits[0]), b = number(bits[1]);
          int digits = type == DVT_F16 ? 11 : 8, lowest = type == DVT_F16 ? -13 : -125;
          int exponent = lowest;
          std::frexp(std::isfinite(b) ? std::max(std::abs(b), options.largest) : 0, &exponent);
          double unit = std::ldexp(1.0, std::max(exponent, lowest) - digits);
          same = a == b || (std::isnan(a) && std::isnan(b)) ||
                 std::abs(a - b) <= options.quanta * unit;
          difference = std::to_string(a) + " instead of " + std::to_string(b);
        } else {
          size_t bytes = bytesOf(type, 1);
          same = std::memcmp(got[i].data() + j * bytes, wanted[i].data() + j * bytes, bytes) == 0;
          int64_t a = 0, b = 0;
          std::memcpy(&a, got[i].data() + j * bytes, bytes);
          std::memcpy(&b, wanted[i].data() + j * bytes, bytes);
          difference = std::to_string(a) + " instead of " + std::to_string(b);
          auto signedByte = [](int64_t bits) { return bits > 127 ? bits - 256 : bits; };
          if (type == DVT_I8) {
            a = signedByte(a);
            b = signedByte(b);
          }
          if (type == DVT_I8 || type == DVT_U8)
            same |= std::abs(a - b) <= options.byteQuanta;
        }
        if (!same && wrong++ == 0)
          first = "element " + std::to_string(j) + " is " + difference;
      }
      EXPECT_EQ(wrong, 0) << what << candidate.label() << ": output " << i << ": " << first
                          << ", of " << elements << "\n  " << problem.text();
    }
  }
};

/// The host, less the features that start with `without`, if anything.
Target hostTarget(const std::string &without = "") {
  Target target = Target::host(3);
  if (!without.empty()) {
    std::string kept;
    for (size_t from = 0; from < target.features.size();) {
      size_t comma = std::min(target.features.find(',', from), target.features.size());
      std::string feature = target.features.substr(from, comma - from);
      if (!feature.starts_with(without))
        kept += (kept.empty() ? "" : ",") + feature;
      from = comma + 1;
    }
    target.features = kept;
  }
  return target;
}

void checkTarget(const Problem &problem, const Target &target, const CheckOptions &options,
                 CheckResult &result) {
  const Provider *native = plugins().find("native"), *reference = plugins().find("reference");
  ASSERT_TRUE(native && reference) << "plug-ins are missing";
  Proposal proposal = native->propose(target, problem);
  for (const Refusal &refusal : proposal.refusals)
    result.refusals.push_back(refusal.reason);
  ASSERT_FALSE(proposal.candidates.empty())
      << (result.refusals.empty() ? "nothing offered" : result.refusals[0]) << "\n  "
      << problem.text();
  struct Case {
    Problem specialised;
    SymbolValues symbols;
    std::unique_ptr<Run> run;
    std::vector<Memory> wanted;
  };
  std::vector<std::unique_ptr<Case>> cases;
  std::mt19937 random(options.seed);
  for (const SymbolValues &symbols : options.bindings) {
    cases.push_back(
        std::make_unique<Case>(Case{problem.specialize(symbols), symbols, nullptr, {}}));
    Case &one = *cases.back();
    one.run = std::make_unique<Run>(problem, one.symbols);
    for (size_t i = 0; i < problem.inputs.size(); ++i)
      one.run->inputs.push_back(randomInput(problem.values[problem.inputs[i]].type,
                                            count(one.run->inputExtents[i]), options, random));
    Proposal truth = reference->propose(target, one.specialised);
    ASSERT_FALSE(truth.candidates.empty())
        << "reference offers nothing for " << one.specialised.text();
    one.wanted =
        one.run->execute(*reference, target, one.specialised, truth.candidates[0], {}, false);
    ASSERT_FALSE(one.wanted.empty());
  }
  for (const Candidate &candidate : proposal.candidates) {
    result.candidates.push_back(candidate.label());
    auto bytes = native->compile(target, problem, candidate);
    ASSERT_TRUE(bool(bytes)) << candidate.label() << ": " << bytes.error().message << "\n  "
                             << problem.text();
    for (auto &one : cases)
      for (bool parallel : {false, true}) {
        auto got = one->run->execute(*native, target, problem, candidate, *bytes, parallel);
        std::string what = target.hasFeature("avx512f") ? "avx512 " : "avx2 ";
        one->run->compare(candidate, got, one->wanted, options,
                          what + (parallel ? "in parts " : ""));
      }
  }
}

} // namespace

void checkRunner(const Problem &problem, const std::string &what, const CheckOptions &options,
                 const ProblemRunner &runner) {
  const Provider *reference = plugins().find("reference");
  ASSERT_TRUE(reference) << "plug-ins are missing";
  std::mt19937 random(options.seed);
  for (const SymbolValues &symbols : options.bindings) {
    Problem specialised = problem.specialize(symbols);
    Run run(problem, symbols);
    for (size_t i = 0; i < problem.inputs.size(); ++i)
      run.inputs.push_back(randomInput(problem.values[problem.inputs[i]].type,
                                       count(run.inputExtents[i]), options, random));
    Proposal truth = reference->propose(hostTarget(), specialised);
    ASSERT_FALSE(truth.candidates.empty()) << "reference offers nothing: " << specialised.text();
    auto wanted =
        run.execute(*reference, hostTarget(), specialised, truth.candidates[0], {}, false);
    ASSERT_FALSE(wanted.empty() && !problem.outputs.empty());
    std::vector<Memory> got;
    std::vector<dvt_tensor> inputs, outputs;
    auto tensor = [&](Memory &memory, const std::vector<int64_t> &extents, uint32_t value) {
      return dvt_tensor{memory.data(),
                        extents.data(),
                        nullptr,
                        uint32_t(extents.size()),
                        problem.values[value].type,
                        DVT_MEMORY_DEVICE};
    };
    for (size_t i = 0; i < problem.outputs.size(); ++i)
      got.emplace_back(
          bytesOf(problem.values[problem.outputs[i]].type, count(run.outputExtents[i])));
    for (size_t i = 0; i < problem.inputs.size(); ++i)
      inputs.push_back(tensor(run.inputs[i], run.inputExtents[i], problem.inputs[i]));
    for (size_t i = 0; i < problem.outputs.size(); ++i)
      outputs.push_back(tensor(got[i], run.outputExtents[i], problem.outputs[i]));
    ASSERT_TRUE(runner(inputs, outputs)) << what;
    for (Memory &memory : got)
      EXPECT_TRUE(memory.intact()) << what << " writes outside an output";
    Candidate candidate;
    candidate.algorithm = what;
    run.compare(candidate, got, wanted, options, "");
  }
}

CheckResult checkNative(const std::string &text, const CheckOptions &options) {
  CheckResult result;
  auto problem = Problem::parse(text);
  if (!problem) {
    ADD_FAILURE() << problem.error().message << "\n  " << text;
    return result;
  }
  Target host = hostTarget();
  checkTarget(*problem, host, options, result);
  if (host.hasFeature("avx512f"))
    checkTarget(*problem, hostTarget("avx512"), options, result);
  if (std::any_of(result.candidates.begin(), result.candidates.end(),
                  [](const std::string &label) { return label.find(":vnni") != label.npos; }))
    checkTarget(*problem, hostTarget("avx512_vnni"), options, result);
  return result;
}

std::string refusalOf(const std::string &text) {
  auto problem = Problem::parse(text);
  if (!problem)
    return problem.error().message;
  Proposal proposal = plugins().find("native")->propose(hostTarget(), *problem);
  if (!proposal.candidates.empty())
    return {};
  return proposal.refusals.empty() ? "refused" : proposal.refusals[0].reason;
}

} // namespace dovetail::test
