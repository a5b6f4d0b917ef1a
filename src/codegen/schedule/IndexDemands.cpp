// SPDX-License-Identifier: Apache-2.0
//
// Finds the input that holds the numbers of a gather's indices. Kernels clamp indices, so that a
// bad one reads no foreign memory; that none is bad is checked before they run, or by the kernel's
// first launches on a device.
#include "codegen/schedule/IndexDemands.h"

#include <utility>

#include <fmt/format.h>

#include "codegen/schedule/Schedule.h"

namespace dovetail::codegen {
namespace {

bool isIndexType(dvt_type type) { return type == DVT_I32 || type == DVT_I64; }

/// Whether the result holds the numbers of operand 0, each of them, in the same order.
bool keepsNumbers(const ProblemReader &problem, const dvt_op &op) {
  std::string_view name = op.name;
  auto from = ProblemReader::input(op, 0), to = ProblemReader::output(op, 0);
  if (!from || !to || !isIndexType(problem.value(*from).type))
    return false;
  if (name == "cast")
    return problem.value(*to).type == DVT_I64 ||
           problem.value(*to).type == problem.value(*from).type;
  for (const char *view : {"identity", "reshape", "flatten", "squeeze", "unsqueeze"})
    if (name == view)
      return true;
  return false;
}

/// Place of a problem's input that holds the numbers of `indices`, in blocks of the same last
/// extent where `tuples`; -1 where there is none.
int sourceOf(const ProblemReader &problem, uint32_t indices, bool tuples) {
  for (uint32_t steps = 0; steps <= problem.opCount(); ++steps) {
    if (int input = problem.inputOf(indices); input >= 0)
      return isIndexType(problem.value(indices).type) ? input : -1;
    int producer = problem.producerOf(indices);
    if (producer < 0 || !keepsNumbers(problem, problem.op(producer)))
      return -1;
    std::string_view name = problem.op(producer).name;
    if (tuples && name != "cast" && name != "identity")
      return -1;
    indices = *ProblemReader::input(problem.op(producer), 0);
  }
  return -1;
}

void addDemand(const ProblemReader &problem, uint32_t data, int64_t axis, int input, int64_t part,
               int64_t parts, std::vector<ValueDemand> &demands) {
  const dvt_value &source = problem.value(data);
  axis += axis < 0 ? int64_t(source.rank) : 0;
  if (input < 0 || axis < 0 || axis >= int64_t(source.rank))
    return;
  ValueDemand demand;
  demand.input = input;
  demand.extent = source.extents[axis].value;
  demand.what = "index";
  demand.isIndex = true;
  demand.part = part;
  demand.parts = parts;
  if (demand.extent < 0) {
    std::optional<ProblemReader::Place> place = problem.placeOf(source.extents[axis]);
    if (!place)
      return;
    demand.extentOf = *place;
  }
  demands.push_back(demand);
}

/// The data and the indices of a gather.
std::optional<std::pair<uint32_t, uint32_t>> gathered(const dvt_op &op) {
  std::string_view name = op.name;
  if (name != "gather" && name != "gather_elements" && name != "gather_nd")
    return std::nullopt;
  std::optional<uint32_t> data = ProblemReader::input(op, 0), indices = ProblemReader::input(op, 1);
  return data && indices ? std::optional(std::pair(*data, *indices)) : std::nullopt;
}

} // namespace

std::vector<ValueDemand> indexDemands(const ProblemReader &problem) {
  std::vector<ValueDemand> demands;
  for (uint32_t i = 0; i < problem.opCount(); ++i) {
    const dvt_op &op = problem.op(i);
    auto operands = gathered(op);
    if (!operands)
      continue;
    auto [data, indices] = *operands;
    if (std::string_view(op.name) != "gather_nd") {
      addDemand(problem, data, ProblemReader::integer(op, "axis", 0),
                sourceOf(problem, indices, false), 0, 1, demands);
      continue;
    }
    const dvt_value &rows = problem.value(indices);
    if (rows.rank == 0)
      continue;
    int64_t batch = ProblemReader::integer(op, "batch_dims", 0);
    int64_t depth = rows.extents[rows.rank - 1].value;
    for (int64_t part = 0; part < depth; ++part)
      addDemand(problem, data, batch + part, sourceOf(problem, indices, true), part, depth,
                demands);
  }
  return demands;
}

std::optional<std::string> uncheckedIndices(const ProblemReader &problem, const dvt_op &op) {
  auto operands = gathered(op);
  if (!operands || problem.isLiteral(operands->second) ||
      sourceOf(problem, operands->second, std::string_view(op.name) == "gather_nd") >= 0)
    return std::nullopt;
  return fmt::format("{}: its indices are computed here, where nothing could refuse one that "
                     "points nowhere",
                     op.name);
}

} // namespace dovetail::codegen
