// SPDX-License-Identifier: Apache-2.0
//
// The exact cover: by the frontier where that is small, which it is for most models, else by HiGHS,
// through its C interface, starting from the greedy answer. One thread, a fixed seed and a limit on
// nodes instead of time: the same problem has the same answer on every machine.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "interfaces/highs_c_api.h"
#include "plan/Cover.h"
#include "plan/CoverMemory.h"

namespace dovetail::plan {
namespace {

/// A sparse row: sum of coefficients >= lower.
struct Row {
  std::vector<std::pair<uint32_t, double>> terms;
  double lower = 0;
};

class Model {
public:
  /// `weight`: what counts before cost, as cost.
  Model(const CoverProblem &problem, double weight) : problem(problem), weight(weight) {
    optionCount = static_cast<uint32_t>(problem.options.size());
    for (uint32_t i = 0; i < optionCount; ++i)
      for (LayoutState give : problem.options[i].gives)
        producers[give].push_back(i);
    for (uint32_t i = 0; i < problem.conversions.size(); ++i) {
      const CoverConversion &conversion = problem.conversions[i];
      converters[{conversion.value, conversion.to}].push_back(optionCount + i);
    }
    available.insert(problem.available.begin(), problem.available.end());
    for (LayoutState state : problem.required)
      addDemand(state, {}, 1);
    // Options that give the same value exclude each other, so their needs add up in one row; a row
    // for each option alone would let k halves of alternatives live on one k-th of what they need.
    std::map<uint32_t, std::vector<uint32_t>> givers, groups;
    for (uint32_t i = 0; i < optionCount; ++i) {
      std::set<uint32_t> values;
      for (LayoutState give : problem.options[i].gives)
        values.insert(give.value);
      for (uint32_t value : values)
        givers[value].push_back(i);
      if (!values.empty())
        groups[*values.rbegin()].push_back(i);
    }
    for (const auto &[value, options] : givers)
      addExclusion(options);
    for (const auto &[value, options] : groups) {
      std::map<LayoutState, std::set<uint32_t>> byState;
      std::map<uint32_t, std::set<uint32_t>> byValue;
      for (uint32_t option : options)
        for (LayoutState need : problem.options[option].needs) {
          byState[need].insert(option);
          byValue[need.value].insert(option);
        }
      for (const auto &[state, needing] : byState)
        addDemand(state, needing, 0);
      for (const auto &[needed, needing] : byValue)
        addValueDemand(needed, givers, needing);
    }
    for (uint32_t i = 0; i < problem.conversions.size(); ++i)
      addSource(i);
  }

  void forbid(const std::vector<uint32_t> &circle) {
    Row row;
    for (uint32_t option : circle)
      row.terms.push_back({option, -1});
    row.lower = 1 - static_cast<double>(circle.size());
    rows.push_back(std::move(row));
  }

  /// Memory of at most `most` bytes. What is shared gets a column for each size that it may have,
  /// which is 1 where somebody takes as much.
  void boundMemory(uint64_t most) {
    const double scale = 1 / static_cast<double>(std::max<uint64_t>(most, 1));
    Row sum;
    sum.lower = -1;
    std::map<std::pair<int, uint32_t>, std::map<uint64_t, std::vector<uint32_t>>> shared;
    auto add = [&](uint32_t column, const CoverMemory &memory) {
      if (memory.bytes > 0)
        sum.terms.push_back({column, -scale * static_cast<double>(memory.bytes)});
      for (int kind : {0, 1})
        if (const SharedBytes &part = kind ? memory.process : memory.code;
            part.key != SharedBytes::kNobody && part.bytes > 0)
          shared[{kind, part.key}][part.bytes].push_back(column);
    };
    for (uint32_t i = 0; i < optionCount; ++i)
      add(i, problem.options[i].memory);
    for (uint32_t i = 0; i < problem.conversions.size(); ++i)
      add(optionCount + i, problem.conversions[i].memory);
    uint32_t next = optionCount + static_cast<uint32_t>(problem.conversions.size());
    for (const auto &[key, sizes] : shared) {
      uint64_t before = 0;
      for (auto size = sizes.begin(); size != sizes.end(); ++size, ++next) {
        sum.terms.push_back({next, -scale * static_cast<double>(size->first - before)});
        before = size->first;
        takers.emplace_back();
        for (auto larger = size; larger != sizes.end(); ++larger)
          for (uint32_t column : larger->second) {
            rows.push_back({{{next, 1}, {column, -1}}, 0});
            takers.back().push_back(column);
          }
      }
    }
    rows.push_back(std::move(sum));
  }

  /// Solves; false when HiGHS gives no usable answer.
  bool solve(const CoverSolution &start, const CoverLimits &limits, CoverSolution &solution) const {
    std::unique_ptr<void, void (*)(void *)> highs(Highs_create(), Highs_destroy);
    Highs_setBoolOptionValue(highs.get(), "output_flag", 0);
    Highs_setIntOptionValue(highs.get(), "threads", 1);
    Highs_setStringOptionValue(highs.get(), "parallel", "off");
    Highs_setIntOptionValue(highs.get(), "random_seed", 1);
    Highs_setIntOptionValue(highs.get(), "mip_max_start_nodes", 1);
    Highs_setIntOptionValue(highs.get(), "mip_max_nodes", static_cast<HighsInt>(limits.maxNodes));
    Highs_setDoubleOptionValue(highs.get(), "mip_rel_gap", limits.relativeGap);
    Highs_setDoubleOptionValue(highs.get(), "mip_abs_gap", 0.05);
    const size_t choices = optionCount + problem.conversions.size();
    HighsInt columns = static_cast<HighsInt>(choices + takers.size());
    std::vector<double> costs, lower(columns, 0), upper(columns, 1);
    for (const CoverOption &option : problem.options)
      costs.push_back(option.cost + weight * option.against);
    for (const CoverConversion &conversion : problem.conversions)
      costs.push_back(conversion.cost);
    costs.resize(static_cast<size_t>(columns), 0);
    std::vector<HighsInt> starts, indices, integrality(columns, kHighsVarTypeInteger);
    std::vector<double> values, rowLower, rowUpper;
    for (const Row &row : rows) {
      starts.push_back(static_cast<HighsInt>(indices.size()));
      for (auto [column, coefficient] : row.terms) {
        indices.push_back(static_cast<HighsInt>(column));
        values.push_back(coefficient);
      }
      rowLower.push_back(row.lower);
      rowUpper.push_back(Highs_getInfinity(highs.get()));
    }
    HighsInt status = Highs_passMip(
        highs.get(), columns, static_cast<HighsInt>(rows.size()),
        static_cast<HighsInt>(indices.size()), kHighsMatrixFormatRowwise, kHighsObjSenseMinimize, 0,
        costs.data(), lower.data(), upper.data(), rowLower.data(), rowUpper.data(), starts.data(),
        indices.data(), values.data(), integrality.data());
    if (status == kHighsStatusError)
      return false;
    std::vector<double> answer(columns, 0);
    for (uint32_t option : start.options)
      answer[option] = 1;
    for (uint32_t conversion : start.conversions)
      answer[optionCount + conversion] = 1;
    for (size_t i = 0; i < takers.size(); ++i)
      for (uint32_t column : takers[i])
        answer[choices + i] = std::max(answer[choices + i], answer[column]);
    if (!start.options.empty())
      Highs_setSolution(highs.get(), answer.data(), nullptr, nullptr, nullptr);
    if (Highs_run(highs.get()) == kHighsStatusError)
      return false;
    HighsInt primal = 0;
    Highs_getIntInfoValue(highs.get(), "primal_solution_status", &primal);
    if (primal != kHighsSolutionStatusFeasible)
      return false;
    Highs_getSolution(highs.get(), answer.data(), nullptr, nullptr, nullptr);
    Highs_getDoubleInfoValue(highs.get(), "mip_dual_bound", &solution.bound);
    solution.exact = Highs_getModelStatus(highs.get()) == kHighsModelStatusOptimal;
    solution.options.clear();
    solution.conversions.clear();
    solution.cost = 0;
    solution.against = 0;
    for (uint32_t index = 0; index < choices; ++index) {
      if (answer[index] < 0.5)
        continue;
      if (index < optionCount) {
        solution.options.push_back(index);
        solution.cost += problem.options[index].cost;
        solution.against += problem.options[index].against;
      } else {
        solution.conversions.push_back(index - optionCount);
        solution.cost += problem.conversions[index - optionCount].cost;
      }
    }
    solution.bound -= weight * static_cast<double>(solution.against);
    return true;
  }

private:
  /// What gives `state` is at least the sum of `options` plus `least`.
  void addDemand(LayoutState state, const std::set<uint32_t> &options, double least) {
    if (available.count(state))
      return;
    std::map<uint32_t, double> terms;
    for (uint32_t producer : producers[state])
      terms[producer] = 1;
    for (uint32_t converter : converters[state])
      terms[converter] = 1;
    addRow(terms, options, least);
  }

  /// The same for a value in whatever layout: conversions do not make it.
  void addValueDemand(uint32_t value, const std::map<uint32_t, std::vector<uint32_t>> &givers,
                      const std::set<uint32_t> &options) {
    for (LayoutState state : problem.available)
      if (state.value == value)
        return;
    std::map<uint32_t, double> terms;
    if (auto found = givers.find(value); found != givers.end())
      for (uint32_t producer : found->second)
        terms[producer] = 1;
    addRow(terms, options, 0);
  }

  void addRow(std::map<uint32_t, double> &terms, const std::set<uint32_t> &options, double least) {
    for (uint32_t option : options)
      terms[option] -= 1;
    Row row;
    row.lower = least;
    for (auto [column, coefficient] : terms)
      if (coefficient != 0)
        row.terms.push_back({column, coefficient});
    if (!row.terms.empty() || least > 0)
      rows.push_back(std::move(row));
  }

  /// A value is put into memory by one kernel; inside others it may be computed again.
  void addExclusion(const std::vector<uint32_t> &options) {
    if (options.size() < 2)
      return;
    Row row;
    for (uint32_t option : options)
      row.terms.push_back({option, -1});
    row.lower = -1;
    rows.push_back(std::move(row));
  }

  void addSource(uint32_t index) {
    const CoverConversion &conversion = problem.conversions[index];
    LayoutState from{conversion.value, conversion.from};
    if (available.count(from))
      return;
    Row row;
    for (uint32_t producer : producers[from])
      row.terms.push_back({producer, 1});
    row.terms.push_back({optionCount + index, -1});
    rows.push_back(std::move(row));
  }

  const CoverProblem &problem;
  double weight;
  uint32_t optionCount = 0;
  std::map<LayoutState, std::vector<uint32_t>> producers, converters;
  std::set<LayoutState> available;
  std::vector<Row> rows;
  /// For each column behind the choices, the choices that need it to be 1.
  std::vector<std::vector<uint32_t>> takers;
};

bool givesTwice(const CoverProblem &problem, const CoverSolution &solution) {
  std::set<uint32_t> given;
  for (uint32_t option : solution.options)
    for (LayoutState give : problem.options[option].gives)
      if (!given.insert(give.value).second)
        return true;
  return false;
}

} // namespace

Expected<CoverSolution> solveCover(const CoverProblem &problem, const CoverLimits &limits) {
  auto solution = solveCoverByFrontier(problem, limits);
  if (solution && (solution->exact || !limits.beyondFrontier))
    return std::move(*solution);
  auto other = solveCoverByProgram(problem, limits);
  if (!solution)
    return other;
  if (other && std::make_pair(other->against, other->cost) <
                   std::make_pair(solution->against, solution->cost))
    return other;
  if (other && other->against == solution->against)
    solution->bound = other->bound;
  return std::move(*solution);
}

Expected<CoverSolution> solveCoverByProgram(const CoverProblem &problem,
                                            const CoverLimits &limits) {
  auto start = solveCoverGreedily(problem);
  bool startIsValid = start && !givesTwice(problem, *start);
  // Beyond what any better cover may cost, yet no larger: coefficients of very different size make
  // the solver's answers wrong.
  Model model(problem, start ? 1000 + 2 * start->cost : 1e5);
  constexpr int kMostCuts = 20;
  for (int cut = 0; cut < kMostCuts; ++cut) {
    CoverSolution solution;
    if (!model.solve(startIsValid ? *start : CoverSolution{}, limits, solution))
      break;
    std::vector<uint32_t> circle;
    if (orderCover(problem, solution, &circle)) {
      if (startIsValid && std::make_pair(solution.against, solution.cost) >
                              std::make_pair(start->against, start->cost))
        break;
      return solution;
    }
    model.forbid(circle);
  }
  if (start && !startIsValid)
    return internalError("the solver found no cover");
  return start;
}

std::optional<CoverSolution> solveWithinByProgram(const CoverProblem &problem,
                                                  const CoverLimits &limits, uint64_t mostBytes,
                                                  const CoverSolution *start) {
  double cost = 0;
  for (const CoverOption &option : problem.options)
    cost += start ? 0 : option.cost;
  Model model(problem, 1000 + 2 * (start ? start->cost : cost));
  model.boundMemory(mostBytes);
  constexpr int kMostCuts = 20;
  auto weight = [](const CoverSolution &of) { return std::make_pair(of.against, of.cost); };
  for (int cut = 0; cut < kMostCuts; ++cut) {
    CoverSolution solution;
    if (!model.solve(start ? *start : CoverSolution{}, limits, solution))
      break;
    std::vector<uint32_t> circle;
    if (!orderCover(problem, solution, &circle)) {
      model.forbid(circle);
      continue;
    }
    bool isSound = memoryOf(problem, solution) <= mostBytes && !givesTwice(problem, solution);
    if (isSound && (!start || !(weight(*start) < weight(solution))))
      return solution;
    break;
  }
  return std::nullopt;
}

} // namespace dovetail::plan
