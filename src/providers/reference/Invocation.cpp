// SPDX-License-Identifier: Apache-2.0
//
// Attributes, operands and results of one op, checked.
#include "Invocation.h"

#include <algorithm>

namespace dovetail::reference {

const Attribute *Invocation::find(std::string_view name) const {
  auto found = operation.attributes.find(name);
  return found == operation.attributes.end() ? nullptr : &found->second;
}

bool Invocation::hasAttribute(std::string_view name) const { return find(name); }

int64_t Invocation::integer(std::string_view name, int64_t fallback) const {
  const Attribute *attribute = find(name);
  const int64_t *value = attribute ? std::get_if<int64_t>(attribute) : nullptr;
  return value ? *value : fallback;
}

double Invocation::real(std::string_view name, double fallback) const {
  const Attribute *attribute = find(name);
  if (!attribute)
    return fallback;
  if (const int64_t *value = std::get_if<int64_t>(attribute))
    return static_cast<double>(*value);
  const double *value = std::get_if<double>(attribute);
  return value ? *value : fallback;
}

std::string_view Invocation::text(std::string_view name, std::string_view fallback) const {
  const Attribute *attribute = find(name);
  const std::string *value = attribute ? std::get_if<std::string>(attribute) : nullptr;
  return value ? std::string_view(*value) : fallback;
}

std::optional<std::vector<int64_t>> Invocation::integers(std::string_view name) const {
  const Attribute *attribute = find(name);
  if (!attribute)
    return std::nullopt;
  if (const auto *list = std::get_if<std::vector<int64_t>>(attribute))
    return *list;
  if (const auto *single = std::get_if<int64_t>(attribute))
    return std::vector<int64_t>{*single};
  return std::nullopt;
}

std::vector<double> Invocation::reals(std::string_view name) const {
  const Attribute *attribute = find(name);
  const auto *list = attribute ? std::get_if<std::vector<double>>(attribute) : nullptr;
  return list ? *list : std::vector<double>();
}

Status Invocation::integerOperand(size_t input, std::vector<int64_t> &values) const {
  if (kind(input) == NumberKind::Real || in(input).type == DVT_BOOL)
    return bad("operand ", input, " is of ", nameOf(in(input).type), "; it must be of integers");
  values = numbers<int64_t>(input);
  return {};
}

Status Invocation::integerScalar(size_t input, int64_t &value) const {
  std::vector<int64_t> values;
  TRY(integerOperand(input, values));
  if (values.size() != 1)
    return bad("operand ", input, " has ", values.size(), " elements; it must have one");
  value = values[0];
  return {};
}

Status Invocation::realScalar(size_t input, double &value) const {
  if (in(input).count() != 1)
    return bad("operand ", input, " has ", in(input).count(), " elements; it must have one");
  value = numbers<double>(input)[0];
  return {};
}

Status Invocation::integerList(size_t input, std::string_view attribute,
                               std::optional<Extents> &values) const {
  if (!has(input)) {
    values = integers(attribute);
    return {};
  }
  values.emplace();
  return integerOperand(input, *values);
}

Status Invocation::normalizeAxis(int64_t &axis, int64_t rank) const {
  if (axis < -rank || axis >= rank)
    return bad("axis ", axis, " is outside [", -rank, ", ", rank - 1, "]");
  axis += axis < 0 ? rank : 0;
  return {};
}

Status Invocation::normalizeAxes(Extents &axes, int64_t rank) const {
  for (size_t i = 0; i < axes.size(); ++i) {
    TRY(normalizeAxis(axes[i], rank));
    if (std::count(axes.begin(), axes.begin() + static_cast<int64_t>(i), axes[i]))
      return bad("axis ", axes[i], " is given twice");
  }
  return {};
}

Status Invocation::needRank(size_t input, int64_t least) const {
  if (rank(input) < least)
    return bad("operand ", input, " is of rank ", rank(input), "; it must be at least ", least);
  return {};
}

Status Invocation::output(size_t output, const Extents &extents, Tensor *&tensor) {
  if (!elementCount(extents))
    return bad("result ", output, " would have extents ", textOf(extents));
  return allocate(static_cast<uint32_t>(output), extents, tensor);
}

template <typename W>
Status Invocation::store(size_t output, const Extents &extents, const std::vector<W> &values) {
  if (!wants(output))
    return {};
  Tensor *tensor = nullptr;
  TRY(this->output(output, extents, tensor));
  storeNumbers(*tensor, values.data());
  return {};
}

template Status Invocation::store(size_t, const Extents &, const std::vector<double> &);
template Status Invocation::store(size_t, const Extents &, const std::vector<int64_t> &);
template Status Invocation::store(size_t, const Extents &, const std::vector<uint64_t> &);

} // namespace dovetail::reference
