// SPDX-License-Identifier: Apache-2.0
//
// Ops that make tensors from extents: the element that ConstantOfShape repeats is a zero of type
// float by default.
#include "import/NodeImport.h"

namespace dovetail::importer {
namespace {

Status constantOfShape(NodeImport &node) {
  auto found = node.attributes.tensors.find("value");
  if (found != node.attributes.tensors.end()) {
    if (found->second.elements != 1)
      return node.fail("has a value of {} elements, expected one", found->second.elements);
    found->second.extents = {1};
    return Status::success();
  }
  TensorData zero;
  zero.type = DVT_F32;
  zero.extents = {1};
  zero.bytes = std::string_view("\0\0\0\0", 4);
  node.attributes.tensors.emplace("value", std::move(zero));
  return Status::success();
}

} // namespace

std::vector<NamedRule> generatorRules() { return {{"ConstantOfShape", constantOfShape}}; }

} // namespace dovetail::importer
