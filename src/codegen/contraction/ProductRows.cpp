// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "codegen/contraction/ProductRows.h"

namespace dovetail::codegen {

void emitForRows(Emitter &e, const Product &rows, Value count, unsigned most,
                 llvm::function_ref<void(unsigned)> body) {
  if (rows.isStatic() && rows.constant > 0 && rows.constant < most)
    return body(unsigned(rows.constant));
  emitForCount(e, count, tileCounts(emitProduct(e, rows), most), body);
}

static bool rowsCollapse(const MatMul &m) {
  unsigned first = m.rowDimensions.front(), last = m.rowDimensions.back();
  auto collapses = [&](const Access &access) {
    return access.collapses(first, last, m.fusion.extents);
  };
  return llvm::all_of(m.leaves, collapses) && (!m.addend || collapses(m.addend->access));
}

Values outputIndex(Emitter &e, const MatMul &m, const Values &batch, Value row, Value column) {
  Values index(m.fusion.extents.size(), e.index(0));
  for (unsigned i = 0; i < batch.size(); ++i)
    index[m.batchDimensions[i]] = batch[i];
  if (!m.rowDimensions.empty()) {
    if (rowsCollapse(m)) {
      index[m.rowDimensions.back()] = row;
    } else {
      for (unsigned i = m.rowDimensions.size(); i-- > 0;) {
        Value extent = e.extentOf(m.fusion.extents[m.rowDimensions[i]]);
        index[m.rowDimensions[i]] = i ? e.rem(row, extent) : row;
        row = e.div(row, extent);
      }
    }
  }
  if (m.columnDimension >= 0)
    index[unsigned(m.columnDimension)] = column;
  return index;
}

TileFinish::Layouts finishLayouts(Emitter &e, const MatMul &m) {
  TileFinish::Layouts layouts;
  layouts.leaves = m.leaves;
  layouts.outputs.assign(e.problem.problem().output_count, m.output);
  layouts.addend = m.addend;
  layouts.scale = m.scale;
  layouts.column = m.columnDimension;
  return layouts;
}

} // namespace dovetail::codegen
