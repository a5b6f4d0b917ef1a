// SPDX-License-Identifier: Apache-2.0
//
// Emits a phase for each demand, in which a thread looks at one index. Of several bad ones any may
// be the one that is told.
#include "codegen/gpu/IndexChecks.h"

#include "codegen/schedule/IndexDemands.h"

namespace dovetail::codegen {

namespace {

Value extentOf(Emitter &e, const ValueDemand &demand) {
  return demand.extent >= 0 ? e.index(demand.extent)
                            : e.extent(demand.extentOf.tensor, demand.extentOf.dimension);
}

Value elements(Emitter &e, const ValueDemand &demand) {
  const dvt_problem &source = e.problem.problem();
  Value count = e.index(1);
  for (uint32_t d = 0; d < e.problem.value(source.inputs[demand.input]).rank; ++d)
    count = e.mul(count, e.extent(demand.input, d));
  return e.div(count, demand.parts);
}

} // namespace

void emitIndexChecks(const ProblemReader &problem, uint64_t wordsBegin, KernelModule &module) {
  const dvt_problem &source = problem.problem();
  int64_t word = int64_t(wordsBegin) / 8;
  for (const ValueDemand &demand : indexDemands(problem)) {
    dvt_type type = problem.value(source.inputs[demand.input]).type;
    module.addPhase(
        [&](Emitter &e) { return elements(e, demand); },
        [&](Emitter &e, Value number, Value) {
          Value place = e.add(e.mul(number, demand.parts), demand.part);
          Value index = e.convert(e.load(type, e.inputPointer(demand.input), place), e.i64Type());
          Value extent = extentOf(e, demand);
          Value isBad = e.bitOr(e.lt(index, e.sub(e.index(0), extent)), e.ge(index, extent));
          e.ifTrue(isBad,
                   [&] { e.store(DVT_I64, e.add(number, 1), e.workspace(), e.index(word)); });
        });
    ++word;
  }
}

} // namespace dovetail::codegen
