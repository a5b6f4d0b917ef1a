// SPDX-License-Identifier: Apache-2.0
//
// Copies what a provider proposes, after looking at it with suspicion: a provider that lies about
// sizes or hands out nonsense loses the candidate, with the reason, and nothing else happens.
#include "support/Candidate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "support/Layout.h"

namespace dovetail {

namespace {

constexpr uint64_t kMostProcessBytes = uint64_t(1) << 40;

/// The struct as this side knows it, zero where the other side is older.
dvt_candidate widen(const dvt_candidate &from) {
  dvt_candidate out{};
  out.estimate_micros = -1;
  std::memcpy(&out, &from, std::min<size_t>(from.struct_size, sizeof(out)));
  return out;
}

const char *layoutAt(const char *const *layouts, uint32_t index) {
  return layouts && layouts[index] ? layouts[index] : "";
}

std::string checkLayouts(const char *side, const char *const *layouts, uint32_t count,
                         const uint32_t *indices, const dvt_problem &problem) {
  for (uint32_t i = 0; i < count; ++i) {
    auto layout = Layout::parse(layoutAt(layouts, i));
    if (!layout)
      return fmt::format("{} {}: {}", side, i, layout.error().message);
    if (layout->isRowMajor() && layout->order.empty())
      continue;
    const dvt_value &value = problem.values[indices[i]];
    if (layout->order.size() != value.rank)
      return fmt::format("{} {}: layout {} does not fit rank {}", side, i, layoutAt(layouts, i),
                         value.rank);
    if (typeBits(value.type) < 8)
      return fmt::format("{} {}: layout {} of a type of less than a byte", side, i,
                         layoutAt(layouts, i));
    if (value.strides)
      return fmt::format("{} {}: layout {} of strided memory", side, i, layoutAt(layouts, i));
  }
  return {};
}

bool isPlainText(const char *text, size_t longest) {
  size_t length = ::strnlen(text, longest + 1);
  return length > 0 && length <= longest &&
         std::all_of(text, text + length, [](char c) { return c > ' ' && c < 0x7f; });
}

std::vector<std::string> copyLayouts(const char *const *layouts, uint32_t count) {
  std::vector<std::string> out;
  for (uint32_t i = 0; i < count; ++i) {
    auto layout = Layout::parse(layoutAt(layouts, i));
    out.push_back(layout ? layout->text() : std::string());
  }
  return out;
}

} // namespace

std::optional<std::string> findNonsense(const dvt_candidate &from, const dvt_problem &problem) {
  if (from.struct_size < offsetof(dvt_candidate, workspace_bytes))
    return fmt::format("the candidate's struct_size is {}", from.struct_size);
  dvt_candidate candidate = widen(from);
  if (!candidate.algorithm || !isPlainText(candidate.algorithm, 200))
    return "the candidate's algorithm has no name of up to 200 printable characters";
  if (!candidate.numerics || !isPlainText(candidate.numerics, 60))
    return "the candidate states no class of numerics";
  unsigned packing, threading, memory; // as numbers: the other side may have written any
  static_assert(sizeof(packing) == sizeof(candidate.packing));
  std::memcpy(&memory, &candidate.memory, sizeof(memory));
  if (memory > DVT_MEMORY_DEVICE)
    return fmt::format("memory of kind {} for its operands", memory);
  std::memcpy(&packing, &candidate.packing, sizeof(packing));
  std::memcpy(&threading, &candidate.threading, sizeof(threading));
  if (packing > DVT_PACKING_AT_LOAD || threading > DVT_THREADING_OPENMP)
    return fmt::format("packing {} or threading {} is unknown", packing, threading);
  if (std::string why = checkLayouts("input", candidate.input_layouts, problem.input_count,
                                     problem.inputs, problem);
      !why.empty())
    return why;
  if (std::string why = checkLayouts("output", candidate.output_layouts, problem.output_count,
                                     problem.outputs, problem);
      !why.empty())
    return why;
  if (candidate.process_group && *candidate.process_group &&
      !isPlainText(candidate.process_group, 60))
    return "the candidate's process_group has no name of up to 60 printable characters";
  constexpr uint64_t most = uint64_t(1) << 40;
  if (candidate.workspace_bytes != UINT64_MAX && candidate.workspace_bytes > most)
    return fmt::format("{} bytes of workspace", candidate.workspace_bytes);
  return std::nullopt;
}

Candidate Candidate::copy(std::string provider, const dvt_candidate &from,
                          const dvt_problem &problem) {
  dvt_candidate c = widen(from);
  Candidate out;
  out.provider = std::move(provider);
  out.algorithm = c.algorithm ? c.algorithm : "";
  out.inputLayouts = copyLayouts(c.input_layouts, problem.input_count);
  out.outputLayouts = copyLayouts(c.output_layouts, problem.output_count);
  out.workspaceBytes = c.workspace_bytes;
  out.packedBytes = c.packed_bytes;
  out.packing = c.packing;
  out.threading = c.threading;
  out.numerics = c.numerics ? c.numerics : "";
  out.deterministic = c.deterministic != 0;
  out.runtimeExtents = c.runtime_extents != 0;
  out.estimateMicros =
      c.estimate_micros >= 0 && std::isfinite(c.estimate_micros) ? c.estimate_micros : -1;
  out.registers = c.registers;
  out.sharedBytes = c.shared_bytes;
  out.scratchBytes = c.scratch_bytes;
  out.codeBytes = c.code_bytes;
  out.memory = c.memory;
  out.processBytes = std::min(c.process_bytes, kMostProcessBytes);
  out.processGroup = c.process_group ? c.process_group : "";
  return out;
}

dvt_candidate Candidate::view(std::vector<const char *> &storage) const {
  storage.clear();
  for (const std::string &layout : inputLayouts)
    storage.push_back(layout.c_str());
  for (const std::string &layout : outputLayouts)
    storage.push_back(layout.c_str());
  dvt_candidate out{};
  out.struct_size = sizeof(out);
  out.algorithm = algorithm.c_str();
  out.input_layouts = storage.data();
  out.output_layouts = storage.data() + inputLayouts.size();
  out.workspace_bytes = workspaceBytes;
  out.packed_bytes = packedBytes;
  out.packing = packing;
  out.threading = threading;
  out.numerics = numerics.c_str();
  out.deterministic = deterministic;
  out.runtime_extents = runtimeExtents;
  out.estimate_micros = estimateMicros;
  out.registers = registers;
  out.shared_bytes = sharedBytes;
  out.scratch_bytes = scratchBytes;
  out.code_bytes = codeBytes;
  out.memory = memory;
  out.process_bytes = processBytes;
  out.process_group = processGroup.c_str();
  return out;
}

std::string Candidate::label() const {
  std::string out = provider + ":" + algorithm;
  auto plain = [](const std::string &layout) { return layout.empty(); };
  if (std::all_of(inputLayouts.begin(), inputLayouts.end(), plain) &&
      std::all_of(outputLayouts.begin(), outputLayouts.end(), plain))
    return out;
  auto join = [&](const std::vector<std::string> &layouts) {
    for (size_t i = 0; i < layouts.size(); ++i)
      out += (i ? "," : "") + (layouts[i].empty() ? std::string("_") : layouts[i]);
  };
  out += '[';
  join(inputLayouts);
  out += "->";
  join(outputLayouts);
  out += ']';
  return out;
}

std::string deviceFacts(const Candidate &candidate) {
  std::string text = candidate.numerics == "f32" ? "" : "rounds as " + candidate.numerics;
  auto add = [&](uint64_t amount, const char *what) {
    if (amount > 0 && amount != UINT64_MAX)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", amount, what);
  };
  add(candidate.workspaceBytes, "bytes of workspace");
  add(candidate.registers, "registers");
  add(candidate.sharedBytes, "bytes shared");
  add(candidate.scratchBytes, "bytes spilled");
  return text;
}

} // namespace dovetail
