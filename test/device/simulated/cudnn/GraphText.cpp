// SPDX-License-Identifier: Apache-2.0
//
// A plan carries its graph. Enumerations are written as the interface's numbers.
#include "Graphs.h"

namespace cudnn_double {
namespace {

using api::Operation;
using nlohmann::json;

json toJson(const std::optional<double> &number) { return number ? json(*number) : json(); }

std::optional<double> numberFrom(const json &from) {
  return from.is_null() ? std::nullopt : std::optional<double>(from.get<double>());
}

json operationJson(const Operation &op) {
  json operands = json::array();
  for (size_t operand : op.operands)
    operands.push_back(operand == Operation::kAbsent ? -1 : static_cast<int64_t>(operand));
  return {{"kind", static_cast<int>(op.kind)},
          {"operands", operands},
          {"result", op.result},
          {"windows", {op.strides, op.dilations, op.prePads, op.postPads, op.window}},
          {"modes",
           {static_cast<int>(op.pointwise), static_cast<int>(op.reduction),
            static_cast<int>(op.resample), static_cast<int>(op.norm)}},
          {"numbers",
           {toJson(op.lowerClip), toJson(op.upperClip), toJson(op.slope), toJson(op.alpha)}}};
}

Operation operationFrom(const json &from) {
  Operation op;
  op.kind = static_cast<Operation::Kind>(from.at("kind").get<int>());
  for (const json &operand : from.at("operands"))
    op.operands.push_back(operand.get<int64_t>() < 0 ? Operation::kAbsent : operand.get<size_t>());
  op.result = from.at("result");
  api::Dims *windows[] = {&op.strides, &op.dilations, &op.prePads, &op.postPads, &op.window};
  for (size_t i = 0; i < std::size(windows); ++i)
    from.at("windows").at(i).get_to(*windows[i]);
  const json &modes = from.at("modes"), &numbers = from.at("numbers");
  op.pointwise = static_cast<api::PointwiseMode>(modes.at(0).get<int>());
  op.reduction = static_cast<api::ReductionOperator>(modes.at(1).get<int>());
  op.resample = static_cast<api::ResampleMode>(modes.at(2).get<int>());
  op.norm = static_cast<api::NormMode>(modes.at(3).get<int>());
  op.lowerClip = numberFrom(numbers.at(0));
  op.upperClip = numberFrom(numbers.at(1));
  op.slope = numberFrom(numbers.at(2));
  op.alpha = numberFrom(numbers.at(3));
  return op;
}

} // namespace

json toJson(const KnownGraph &graph) {
  json tensors = json::array(), operations = json::array();
  for (size_t i = 0; i < graph.ids.size(); ++i) {
    const api::Tensor &tensor = graph.graph.tensors[i];
    const char *lies = tensor.number ? "number" : tensor.isVirtual() ? "nowhere" : "memory";
    tensors.push_back({{"id", graph.ids[i]},
                       {"type", static_cast<int>(tensor.type)},
                       {"dims", tensor.dims},
                       {"strides", tensor.strides},
                       {"alignment", tensor.alignment},
                       {"lies", lies}});
  }
  for (const Operation &op : graph.graph.operations)
    operations.push_back(operationJson(op));
  return {{"tensors", tensors}, {"operations", operations}};
}

std::shared_ptr<const KnownGraph> graphFromJson(const json &from) try {
  auto known = std::make_shared<KnownGraph>();
  for (const json &tensor : from.at("tensors")) {
    api::Tensor made;
    made.type = static_cast<api::DataType>(tensor.at("type").get<int>());
    tensor.at("dims").get_to(made.dims);
    tensor.at("strides").get_to(made.strides);
    made.alignment = tensor.at("alignment");
    if (tensor.at("lies") == "number")
      made.number = 0;
    else if (tensor.at("lies") == "memory")
      made.value = static_cast<uint32_t>(known->ids.size());
    known->ids.push_back(tensor.at("id"));
    known->graph.tensors.push_back(std::move(made));
  }
  for (const json &op : from.at("operations"))
    known->graph.operations.push_back(operationFrom(op));
  return known;
} catch (const json::exception &) {
  return nullptr;
}

} // namespace cudnn_double
