// SPDX-License-Identifier: Apache-2.0
//
// The split form is a cover of its own, of one region's values by smaller regions; the fused form
// is compared with those of the chosen options that it would replace.
#include "plan/OtherCovers.h"

#include <algorithm>
#include <optional>
#include <set>

namespace dovetail::plan {
namespace {

bool isKernel(const OptionMeaning &meaning) { return meaning.kind == OptionMeaning::Kind::Kernel; }

class Comparison {
public:
  Comparison(const ChosenCover &chosen, uint32_t option)
      : chosen(chosen), cover(*chosen.cover), meanings(*chosen.options), option(option),
        ops(opsOf(option)) {}

  std::optional<Alternative> split() const {
    CoverProblem part;
    part.available = cover.options[option].needs;
    part.required = cover.options[option].gives;
    part.ranks = cover.ranks;
    std::vector<uint32_t> originals;
    std::set<uint32_t> values;
    for (uint32_t i = 0; i < cover.options.size(); ++i) {
      if (!isKernel(meanings[i]) || meanings[i].region == meanings[option].region ||
          !isWithin(opsOf(i), ops))
        continue;
      part.options.push_back(cover.options[i]);
      originals.push_back(i);
      for (LayoutState need : cover.options[i].needs)
        values.insert(need.value);
      for (LayoutState give : cover.options[i].gives)
        values.insert(give.value);
    }
    for (const CoverConversion &conversion : cover.conversions)
      if (values.count(conversion.value))
        part.conversions.push_back(conversion);
    auto solution = solveCoverByFrontier(part, {.relativeGap = 0, .maxStates = 2000});
    if (!solution)
      return std::nullopt;
    Alternative alternative;
    double charged = 0;
    for (uint32_t index : solution->options) {
      alternative.label +=
          (alternative.label.empty() ? "split: " : ", ") + nameOf(originals[index]);
      charged += part.options[index].charged;
    }
    for (uint32_t index : solution->conversions)
      charged += part.conversions[index].charged;
    alternative.micros = solution->cost - charged;
    alternative.outcome =
        verdict({solution->against, solution->cost, charged}, weightOf(cover.options[option]));
    return alternative;
  }

  std::optional<Alternative> fused() const {
    std::optional<Alternative> best;
    double bestGain = 0;
    for (uint32_t i = 0; i < cover.options.size(); ++i) {
      if (!isKernel(meanings[i]) || opsOf(i).size() <= ops.size() || !isWithin(ops, opsOf(i)))
        continue;
      auto parts = chosenWithin(i);
      if (!parts)
        continue;
      double gain = parts->cost - cover.options[i].cost;
      if (best && gain <= bestGain)
        continue;
      bestGain = gain;
      best.emplace();
      best->label = "fused: " + nameOf(i);
      best->micros = cover.options[i].cost - cover.options[i].charged;
      best->outcome =
          verdict(weightOf(cover.options[i]), *parts) +
          fmt::format("; its parts as chosen take {:.1f} us", parts->cost - parts->charged);
    }
    return best;
  }

private:
  struct Weight {
    uint64_t against = 0;
    double cost = 0;    ///< micros
    double charged = 0; ///< of it, for preparing
  };
  static Weight weightOf(const CoverOption &of) { return {of.against, of.cost, of.charged}; }

  const std::vector<uint32_t> &opsOf(uint32_t index) const {
    return (*chosen.regions)[meanings[index].region].ops;
  }
  static bool isWithin(const std::vector<uint32_t> &inner, const std::vector<uint32_t> &outer) {
    return std::includes(outer.begin(), outer.end(), inner.begin(), inner.end());
  }

  std::string nameOf(uint32_t index) const {
    const Candidate &candidate = meanings[index].trial->candidate;
    return fmt::format("{} by {}:{}", summary((*chosen.problems)[meanings[index].region].problem),
                       candidate.provider, candidate.algorithm);
  }

  std::string verdict(const Weight &other, const Weight &own) const {
    if (other.against > own.against)
      return "against the preference, or a last resort";
    if (other.cost - other.charged >= own.cost - own.charged)
      return "slower";
    if (other.cost >= own.cost)
      return fmt::format("faster, but prepares slowly: charged {:.0f} us", other.charged);
    return chosen.weighsMemory ? "cheaper here, but not with its memory and what it needs around"
                               : "cheaper here, but not with what it needs around";
  }

  /// What the chosen options cost that make up exactly the ops of option `index`, with the
  /// conversions of values inside.
  std::optional<Weight> chosenWithin(uint32_t index) const {
    const Region &region = (*chosen.regions)[meanings[index].region];
    std::set<uint32_t> covered;
    Weight weight;
    for (uint32_t part : chosen.solution->options) {
      if (!isKernel(meanings[part]) || !isWithin(opsOf(part), region.ops))
        continue;
      covered.insert(opsOf(part).begin(), opsOf(part).end());
      weight.against += cover.options[part].against;
      weight.cost += cover.options[part].cost;
      weight.charged += cover.options[part].charged;
    }
    if (covered.size() != region.ops.size())
      return std::nullopt;
    for (uint32_t conversion : chosen.solution->conversions) {
      uint32_t value = cover.conversions[conversion].value;
      int32_t producer = chosen.table->values[value].producer;
      bool inside =
          producer >= 0 && covered.count(static_cast<uint32_t>(producer)) &&
          std::find(region.outputs.begin(), region.outputs.end(), value) == region.outputs.end();
      weight.cost += inside ? cover.conversions[conversion].cost : 0;
      weight.charged += inside ? cover.conversions[conversion].charged : 0;
    }
    return weight;
  }

  const ChosenCover &chosen;
  const CoverProblem &cover;
  const std::vector<OptionMeaning> &meanings;
  uint32_t option;
  const std::vector<uint32_t> &ops;
};

} // namespace

std::vector<Alternative> otherCovers(const ChosenCover &chosen, uint32_t option) {
  Comparison comparison(chosen, option);
  std::vector<Alternative> alternatives;
  if (auto split = comparison.split())
    alternatives.push_back(std::move(*split));
  if (auto fused = comparison.fused())
    alternatives.push_back(std::move(*fused));
  return alternatives;
}

} // namespace dovetail::plan
