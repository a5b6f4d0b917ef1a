// SPDX-License-Identifier: Apache-2.0
//
// Checks how the nodes of a graph hang together and puts them in an order in which they can be
// computed. ONNX wants that order in the file, but many exporters do not keep to it. What no valid
// model has is refused here, by node name: a value produced twice, a value that nothing produces, a
// cycle.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/repeated_ptr_field.h>

#include "support/Expected.h"

namespace onnx {
class NodeProto;
} // namespace onnx

namespace dovetail::importer {

/// How messages and locations name a node: its name, or what it is and produces.
std::string nodeLabel(const onnx::NodeProto &node);

/// The nodes among `nodes` that `outputs` need, in an order in which they can be computed: the
/// given one where it is valid. `isKnown` says whether a value comes from outside (inputs,
/// initializers, enclosing graphs).
Expected<std::vector<const onnx::NodeProto *>>
orderNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
           const std::vector<std::string> &outputs,
           const std::function<bool(const std::string &)> &isKnown);

} // namespace dovetail::importer
