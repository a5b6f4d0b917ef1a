// SPDX-License-Identifier: Apache-2.0
//
// A problem as this build knows it. A newer host's structs may be larger than ours, so arrays of
// them are stepped by their own struct_size once, here, and everything behind the door indexes them
// plainly.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "codegen/schedule/LocalExtents.h"
#include "dovetail/provider.h"

namespace dovetail::native {

class CompactProblem {
public:
  explicit CompactProblem(const dvt_problem &from) {
    take(problem, from);
    copyArray(values, from.values, from.value_count);
    copyArray(ops, from.ops, from.op_count);
    attributes.resize(ops.size());
    for (size_t i = 0; i < ops.size(); ++i) {
      copyArray(attributes[i], ops[i].attributes, ops[i].attribute_count);
      ops[i].attributes = attributes[i].data();
    }
    problem.values = values.data();
    restateExtents();
    problem.ops = ops.data();
  }
  CompactProblem(const CompactProblem &) = delete;
  const dvt_problem *get() const { return &problem; }

private:
  /// Over symbols that kernels can read.
  void restateExtents() {
    const codegen::LocalExtents local(problem);
    extents.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      extents[i].assign(values[i].extents, values[i].extents + values[i].rank);
      for (dvt_extent &extent : extents[i])
        if (extent.value < 0)
          extent.symbol = texts.emplace_back(local.rewritten(extent).text()).c_str();
      values[i].extents = extents[i].data();
    }
  }

  template <typename T> static void take(T &to, const T &from) {
    to = T{};
    std::memcpy(static_cast<void *>(&to), &from, std::min<size_t>(sizeof(T), from.struct_size));
    to.struct_size = sizeof(T);
  }
  template <typename T> static void copyArray(std::vector<T> &to, const T *from, uint32_t count) {
    to.resize(count);
    const char *at = reinterpret_cast<const char *>(from);
    for (uint32_t i = 0; i < count; ++i) {
      const T *element = reinterpret_cast<const T *>(at);
      take(to[i], *element);
      at += element->struct_size;
    }
  }

  dvt_problem problem;
  std::vector<dvt_value> values;
  std::vector<dvt_op> ops;
  std::vector<std::vector<dvt_attribute>> attributes;
  std::vector<std::vector<dvt_extent>> extents;
  std::deque<std::string> texts;
};

} // namespace dovetail::native
