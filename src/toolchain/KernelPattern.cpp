// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "toolchain/KernelPattern.h"

#include <algorithm>

namespace dovetail::toolchain {

namespace {

constexpr uint32_t kNone = UINT32_MAX;

/// The op that gives each value; kNone for inputs and literals.
std::vector<uint32_t> producersOf(const Problem &problem) {
  std::vector<uint32_t> producers(problem.values.size(), kNone);
  for (uint32_t i = 0; i < problem.ops.size(); ++i)
    for (uint32_t value : problem.ops[i].outputs)
      if (value != kNoValue)
        producers[value] = i;
  return producers;
}

ptrdiff_t resultNumber(const ProblemOp &op, uint32_t value) {
  return std::find(op.outputs.begin(), op.outputs.end(), value) - op.outputs.begin();
}

class Matching {
public:
  Matching(const Problem &pattern, const Problem &problem)
      : pattern(pattern), problem(problem), patternProducers(producersOf(pattern)),
        producers(producersOf(problem)), values(pattern.values.size(), kNone),
        ops(pattern.ops.size(), kNone) {}

  std::optional<PatternMatch> run(std::string &reason) {
    bool matches = matchOps() && matchExtents() && takeAttributes() && takePositions();
    reason = std::move(why);
    return matches ? std::optional(std::move(match)) : std::nullopt;
  }

private:
  bool refuse(std::string text) {
    why = std::move(text);
    return false;
  }
  bool matchOps();
  bool bind(uint32_t of, uint32_t to);
  bool bindOp(uint32_t of, uint32_t to);
  bool matchValue(const ProblemValue &of, const ProblemValue &to);
  bool matchExtents();
  bool takeAttributes();
  bool takePositions();

  const Problem &pattern, &problem;
  const std::vector<uint32_t> patternProducers, producers;
  std::vector<uint32_t> values, ops; ///< of the pattern: those of the problem
  std::vector<uint32_t> waiting;     ///< ops of the pattern whose operands are still to be bound
  PatternMatch match;
  std::string why;
};

bool Matching::matchOps() {
  if (pattern.ops.size() != problem.ops.size() || pattern.outputs.size() != problem.outputs.size())
    return refuse("it has other ops or results");
  for (size_t i = 0; i < pattern.outputs.size(); ++i)
    if (!bind(pattern.outputs[i], problem.outputs[i]))
      return false;
  while (!waiting.empty()) {
    const uint32_t at = waiting.back();
    waiting.pop_back();
    const ProblemOp &of = pattern.ops[at], &to = problem.ops[ops[at]];
    for (size_t i = 0; i < of.inputs.size(); ++i)
      if (!bind(of.inputs[i], to.inputs[i]))
        return false;
  }
  // An op of the pattern that no result depends on would be one too many.
  return std::find(ops.begin(), ops.end(), kNone) == ops.end() ||
         refuse("its ops hang together in another way");
}

bool Matching::bind(uint32_t of, uint32_t to) {
  if (of == kNoValue || to == kNoValue)
    return of == to || refuse("an optional operand is there in one of the two only");
  if (values[of] != kNone)
    return values[of] == to || refuse("its ops hang together in another way");
  // Two values of the pattern may be one of the problem, such as both sides of a product.
  values[of] = to;
  if (!matchValue(pattern.values[of], problem.values[to]))
    return false;
  const uint32_t producer = patternProducers[of];
  if (producer != kNone) {
    if (producers[to] == kNone)
      return refuse("it lacks " + pattern.ops[producer].name);
    return bindOp(producer, producers[to]) && (resultNumber(pattern.ops[producer], of) ==
                                                   resultNumber(problem.ops[producers[to]], to) ||
                                               refuse("another result of an op is used"));
  }
  if (producers[to] != kNone)
    return refuse("an operand is computed inside it");
  if (pattern.values[of].isLiteral)
    return true;
  return !problem.values[to].isLiteral || refuse("an operand is a number in its text");
}

bool Matching::bindOp(uint32_t of, uint32_t to) {
  if (ops[of] != kNone)
    return ops[of] == to || refuse("its ops hang together in another way");
  const ProblemOp &wanted = pattern.ops[of], &found = problem.ops[to];
  if (wanted.name != found.name || wanted.version != found.version)
    return refuse(fmt::format("it has {}@{} where the pattern has {}@{}", found.name, found.version,
                              wanted.name, wanted.version));
  if (wanted.inputs.size() != found.inputs.size())
    return refuse(fmt::format("its {} has {} operands, not {}", found.name, found.inputs.size(),
                              wanted.inputs.size()));
  ops[of] = to;
  waiting.push_back(of);
  return true;
}

bool Matching::matchValue(const ProblemValue &of, const ProblemValue &to) {
  if (of.type != to.type)
    return refuse(
        fmt::format("it has {} where the pattern has {}", typeName(to.type), typeName(of.type)));
  if (of.extents.size() != to.extents.size())
    return refuse(fmt::format("it has rank {} where the pattern has {}", to.extents.size(),
                              of.extents.size()));
  if (!to.strides.empty())
    return refuse("an operand is strided");
  if (of.isLiteral && (!to.isLiteral || of.uniform != to.uniform || of.literal != to.literal))
    return refuse("a number in its text is another");
  for (size_t i = 0; i < of.extents.size(); ++i) {
    // A symbol alone takes the value; what is computed from symbols is compared in the end.
    auto symbols = of.extents[i].symbols();
    if (symbols.size() == 1 && of.extents[i] == Extent::symbol(symbols[0]))
      match.symbols.emplace(symbols[0], to.extents[i].value());
  }
  return true;
}

bool Matching::matchExtents() {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == kNone)
      continue;
    const std::vector<Extent> &wanted = pattern.values[i].extents;
    for (size_t k = 0; k < wanted.size(); ++k) {
      const int64_t found = problem.values[values[i]].extents[k].value();
      if (wanted[k].evaluate(match.symbols) != found)
        return refuse(fmt::format("it has an extent of {} where the pattern has {}", found,
                                  wanted[k].text()));
    }
  }
  for (const auto &[name, range] : pattern.ranges) {
    auto found = match.symbols.find(name);
    if (found != match.symbols.end() && (found->second < range.min || found->second > range.max ||
                                         found->second % std::max<int64_t>(range.divisor, 1) != 0))
      return refuse(fmt::format("{} is {}, which is outside {}..{}/{}", name, found->second,
                                range.min, range.max, range.divisor));
  }
  return true;
}

bool Matching::takeAttributes() {
  for (size_t i = 0; i < ops.size(); ++i) {
    const AttributeMap &wanted = pattern.ops[i].attributes, &found = problem.ops[ops[i]].attributes;
    for (const auto &[name, value] : wanted) {
      auto own = found.find(name);
      if (own == found.end() || own->second != value)
        return refuse(fmt::format("{} of {} is another", name, pattern.ops[i].name));
    }
    for (const auto &[name, value] : found) {
      if (wanted.count(name))
        continue;
      auto [known, isNew] = match.open.emplace(name, value);
      if (!isNew && known->second != value)
        match.ambiguous.push_back(name);
    }
  }
  return true;
}

bool Matching::takePositions() {
  auto positions = [&](const std::vector<uint32_t> &of, const std::vector<uint32_t> &among,
                       std::vector<uint32_t> &into) {
    for (uint32_t value : of) {
      auto found = std::find(among.begin(), among.end(), values[value]);
      if (values[value] == kNone || found == among.end())
        return refuse("an operand of the pattern is not one of it");
      into.push_back(uint32_t(found - among.begin()));
    }
    return true;
  };
  if (!positions(pattern.inputs, problem.inputs, match.inputs) ||
      !positions(pattern.outputs, problem.outputs, match.outputs))
    return false;
  auto count = [&](const char *prefix, const std::vector<uint32_t> &operands) {
    for (size_t i = 0; i < operands.size(); ++i)
      match.symbols[elementsSymbol(prefix, i)] =
          elementCount(problem.values[values[operands[i]]].extents).value();
  };
  count("in", pattern.inputs);
  count("out", pattern.outputs);
  return true;
}

} // namespace

std::string elementsSymbol(const char *prefix, size_t position) {
  return fmt::format("{}{}.elements", prefix, position);
}

std::optional<PatternMatch> matchPattern(const Problem &pattern, const Problem &problem,
                                         std::string &reason) {
  if (problem.hasSymbols()) {
    reason = "it has extents that only the run tells";
    return std::nullopt;
  }
  return Matching(pattern, problem).run(reason);
}

} // namespace dovetail::toolchain
