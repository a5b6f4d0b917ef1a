// SPDX-License-Identifier: Apache-2.0
//
// See indexDemands in the header.
#include "codegen/schedule/Schedule.h"

namespace dovetail::codegen {
namespace {

void addDemand(const ProblemReader &problem, uint32_t data, int64_t axis, uint32_t indices,
               int64_t part, int64_t parts, std::vector<ValueDemand> &demands) {
  const dvt_value &source = problem.value(data);
  axis += axis < 0 ? int64_t(source.rank) : 0;
  if (problem.inputOf(indices) < 0 || axis < 0 || axis >= int64_t(source.rank))
    return;
  ValueDemand demand;
  demand.input = problem.inputOf(indices);
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

} // namespace

std::vector<ValueDemand> indexDemands(const ProblemReader &problem) {
  std::vector<ValueDemand> demands;
  for (uint32_t i = 0; i < problem.opCount(); ++i) {
    const dvt_op &op = problem.op(i);
    std::string_view name = op.name;
    std::optional<uint32_t> data = ProblemReader::input(op, 0);
    std::optional<uint32_t> indices = ProblemReader::input(op, 1);
    if (!data || !indices)
      continue;
    if (name == "gather" || name == "gather_elements")
      addDemand(problem, *data, ProblemReader::integer(op, "axis", 0), *indices, 0, 1, demands);
    const dvt_value &rows = problem.value(*indices);
    if (name != "gather_nd" || rows.rank == 0)
      continue;
    int64_t batch = ProblemReader::integer(op, "batch_dims", 0);
    for (int64_t part = 0; part < rows.extents[rows.rank - 1].value; ++part)
      addDemand(problem, *data, batch + part, *indices, part, rows.extents[rows.rank - 1].value,
                demands);
  }
  return demands;
}

} // namespace dovetail::codegen
