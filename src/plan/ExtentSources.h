// SPDX-License-Identifier: Apache-2.0
//
// Which values must have been computed before an extent is known. Where a table reads extents and
// not elements (shape data, views, bodies of control flow) no operand says that something must run
// first; an extent that depends on data says so here.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/OpTable.h"
#include "plan/Regions.h"

namespace dovetail::plan {

class ExtentSources {
public:
  /// The table must outlive it.
  explicit ExtentSources(const OpTable &table);

  /// Data-dependent values, ascending, that give symbols in the elements of a value that is shape
  /// data.
  std::vector<uint32_t> ofShapeData(uint32_t value) const;
  /// Those that give symbols in the extents of a view's results, or in a control-flow op's bodies,
  /// without being operands.
  std::vector<uint32_t> ofOp(const TableOp &op) const;

private:
  void add(const std::vector<Extent> &extents, std::vector<uint32_t> &values) const;
  void addAll(const OpTable &body, std::vector<uint32_t> &values) const;

  const OpTable &table;
  std::map<std::string, uint32_t> sources; ///< the first value that has the symbol for an extent
};

/// Whether extents of a region's results depend on data though those of such an op mostly do not:
/// of all kernels only the reference's tell what they found out.
bool findsOutExtents(const OpTable &table, const Region &region);

} // namespace dovetail::plan
