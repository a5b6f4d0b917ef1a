// SPDX-License-Identifier: Apache-2.0
//
// Lends a problem to providers as the plain structs of provider.h.
#include <deque>

#include "support/Problem.h"

namespace dovetail {

struct ProblemView::Storage {
  dvt_problem problem{};
  std::string text;
  std::vector<dvt_value> values;
  std::vector<dvt_op> ops;
  // Deques: their elements stay where they are while more are added.
  std::deque<std::vector<dvt_extent>> extents;
  std::deque<std::vector<dvt_attribute>> attributes;
  std::deque<std::string> symbols;
};

namespace {

dvt_attribute lend(const std::string &name, const AttributeValue &value) {
  dvt_attribute out{};
  out.struct_size = sizeof(out);
  out.name = name.c_str();
  if (const auto *i = std::get_if<int64_t>(&value)) {
    out.kind = DVT_ATTRIBUTE_INT;
    out.i = *i;
  } else if (const auto *f = std::get_if<double>(&value)) {
    out.kind = DVT_ATTRIBUTE_FLOAT;
    out.f = *f;
  } else if (const auto *s = std::get_if<std::string>(&value)) {
    out.kind = DVT_ATTRIBUTE_STRING;
    out.s = s->c_str();
  } else if (const auto *ints = std::get_if<std::vector<int64_t>>(&value)) {
    out.kind = DVT_ATTRIBUTE_INTS;
    out.ints = ints->data();
    out.count = ints->size();
  } else {
    const auto &floats = std::get<std::vector<double>>(value);
    out.kind = DVT_ATTRIBUTE_FLOATS;
    out.floats = floats.data();
    out.count = floats.size();
  }
  return out;
}

} // namespace

ProblemView::ProblemView(const Problem &problem) : storage(std::make_unique<Storage>()) {
  Storage &s = *storage;
  s.text = problem.text();
  for (const ProblemValue &value : problem.values) {
    std::vector<dvt_extent> &extents = s.extents.emplace_back();
    for (const Extent &extent : value.extents) {
      if (auto number = extent.staticValue()) {
        extents.push_back({*number, nullptr, *number, *number, 1});
        continue;
      }
      SymbolRange range = extent.range(problem.ranges);
      const std::string &text = s.symbols.emplace_back(extent.text());
      extents.push_back(
          {-1, text.c_str(), std::max<int64_t>(range.min, 0), range.max, range.divisor});
    }
    dvt_value out{};
    out.struct_size = sizeof(out);
    out.type = value.type;
    if (value.constant || value.isLiteral || value.uniform)
      out.flags |= DVT_VALUE_CONSTANT;
    if (value.uniform)
      out.flags |= DVT_VALUE_UNIFORM;
    else if (value.isLiteral)
      out.flags |= DVT_VALUE_LITERAL;
    out.rank = value.extents.size();
    out.extents = extents.data();
    out.literal = value.literal.empty() ? nullptr : value.literal.data();
    out.literal_bytes = value.literal.size();
    out.strides = value.strides.empty() ? nullptr : value.strides.data();
    out.may_alias = value.mayAlias;
    s.values.push_back(out);
  }
  for (const ProblemOp &op : problem.ops) {
    std::vector<dvt_attribute> &attributes = s.attributes.emplace_back();
    for (const auto &[name, value] : op.attributes)
      attributes.push_back(lend(name, value));
    dvt_op out{};
    out.struct_size = sizeof(out);
    out.version = op.version;
    out.name = op.name.c_str();
    out.inputs = op.inputs.data();
    out.outputs = op.outputs.data();
    out.attributes = attributes.data();
    out.input_count = op.inputs.size();
    out.output_count = op.outputs.size();
    out.attribute_count = attributes.size();
    s.ops.push_back(out);
  }
  dvt_problem &out = s.problem;
  out.struct_size = sizeof(out);
  out.value_count = s.values.size();
  out.op_count = s.ops.size();
  out.input_count = problem.inputs.size();
  out.output_count = problem.outputs.size();
  out.values = s.values.data();
  out.ops = s.ops.data();
  out.inputs = problem.inputs.data();
  out.outputs = problem.outputs.data();
  out.text = s.text.c_str();
}

ProblemView::~ProblemView() = default;
ProblemView::ProblemView(ProblemView &&) noexcept = default;
const dvt_problem *ProblemView::get() const { return &storage->problem; }

} // namespace dovetail
