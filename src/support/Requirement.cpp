// SPDX-License-Identifier: Apache-2.0
//
// Requirements evaluated and put into words.
#include "support/Requirement.h"

namespace dovetail {

namespace {

/// "H+1 is 3", or "3" for a number.
std::string valueText(const Extent &extent, const SymbolValues &values) {
  std::optional<int64_t> value = extent.evaluate(values);
  std::string number = value ? std::to_string(*value) : "unknown";
  return extent.isStatic() ? number : extent.text() + " = " + number;
}

} // namespace

std::optional<bool> holds(const Requirement &requirement, const SymbolValues &values) {
  std::optional<int64_t> left = requirement.left.evaluate(values),
                         right = requirement.right.evaluate(values);
  if (!left || !right)
    return std::nullopt;
  switch (requirement.relation) {
  case Requirement::Relation::AtLeast:
    return *left >= *right;
  case Requirement::Relation::Equal:
    return *left == *right;
  case Requirement::Relation::Broadcast:
    return *left == *right || *left == 1 || *right == 1;
  }
  return std::nullopt;
}

std::string violation(const Requirement &requirement, const SymbolValues &values) {
  std::string left = valueText(requirement.left, values),
              right = valueText(requirement.right, values);
  switch (requirement.relation) {
  case Requirement::Relation::AtLeast:
    return requirement.subject + " has extent " + left + ", at least " + right + " is needed";
  case Requirement::Relation::Equal:
    return requirement.subject + ": " + left + " and " + right + " must be equal";
  case Requirement::Relation::Broadcast:
    return requirement.subject + ": extents " + left + " and " + right + " cannot be broadcast";
  }
  return requirement.subject;
}

Status check(const std::vector<Requirement> &requirements, const SymbolValues &values) {
  for (const Requirement &requirement : requirements)
    if (holds(requirement, values) == false)
      return badInput("{}", violation(requirement, values));
  return Status::success();
}

} // namespace dovetail
