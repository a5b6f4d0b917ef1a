// SPDX-License-Identifier: Apache-2.0
//
// Sequences and optionals as inputs and outputs of a model. Programs and files know of tensors
// only, so a sequence `s` is two of them there: `s.data`, all elements flat one behind the other,
// and `s.shapes`, i64[length, rank], a row of extents for each. An optional `o` has
// `o.has_element`, one bool, beside what it is of; that has no elements where there is none.
#include "import/GraphImport.h"

#include <onnx/onnx_pb.h>

#include "graph/GraphDialect.h"
#include "graph/TensorType.h"
#include "import/TensorTypes.h"

using namespace mlir;

namespace dovetail::importer {

Expected<Value> GraphImport::addArgument(const std::string &name, graph::ValueFacts facts) {
  Type type = graph::tensorType(emitter.builder.getContext(), facts.type, facts.shape);
  Value argument = entry->addArgument(type, NameLoc::get(emitter.builder.getStringAttr(name)));
  emitter.declare(argument, std::move(facts));
  argumentNames.push_back(name);
  return argument;
}

/// Symbols are at least `least`: what a sequence or an optional is of may be nothing.
Expected<Value> GraphImport::importArgument(const std::string &name, const onnx::TypeProto &type,
                                            int64_t least) {
  if (type.has_optional_type()) {
    onnx::ValueInfoProto has;
    has.set_name(name + ".has_element");
    has.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::BOOL);
    has.mutable_type()->mutable_tensor_type()->mutable_shape();
    Expected<Value> flag = importArgument(has.name(), has.type(), least);
    if (!flag)
      return flag;
    Expected<Value> element = importArgument(name, type.optional_type().elem_type(), 0);
    if (!element)
      return element;
    return sequences.token(importer::Optional{{}, *flag, *element});
  }
  if (type.has_sequence_type()) {
    const onnx::TypeProto &element = type.sequence_type().elem_type();
    if (!element.has_tensor_type())
      return badInput("input '{}' is a sequence of something else than dense tensors, which is not "
                      "supported",
                      name);
    auto given = options.shapes.find(name + ".shapes");
    if (!element.tensor_type().has_shape() &&
        (given == options.shapes.end() || given->second.size() != 2))
      return badInput("input '{}' is a sequence, and the model does not say how many dimensions "
                      "its elements have; give '{}.data' with all elements flat and '{}.shapes' "
                      "with a row of extents for each",
                      name, name, name);
    onnx::ValueInfoProto part;
    auto *tensor = part.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(element.tensor_type().elem_type());
    tensor->mutable_shape()->add_dim();
    Expected<Value> data = importArgument(name + ".data", part.type(), 0);
    if (!data)
      return data;
    tensor->set_elem_type(onnx::TensorProto::INT64);
    onnx::TensorShapeProto::Dimension &rank = *tensor->mutable_shape()->add_dim();
    if (element.tensor_type().has_shape())
      rank.set_dim_value(element.tensor_type().shape().dim_size());
    else if (given->second[1].isStatic())
      rank.set_dim_value(given->second[1].value());
    else
      return badInput("input '{}.shapes' is given without the number of dimensions", name);
    Expected<Value> shapes = importArgument(name + ".shapes", part.type(), 0);
    if (!shapes)
      return shapes;
    if (elementCount(emitter.shape(*shapes)).isStatic() && emitter.rank(*shapes) != 2)
      return badInput("input '{}.shapes' must have two dimensions", name);
    return sequences.token(Sequence{emitter.type(*data), Sequence::Form::Ragged, {*data, *shapes}});
  }
  onnx::ValueInfoProto input;
  input.set_name(name);
  *input.mutable_type() = type;
  Expected<graph::ValueFacts> facts = factsOf(input, least);
  return facts ? addArgument(name, std::move(*facts)) : facts.takeError();
}

Status GraphImport::exportResult(const std::string &name, Value value, Values &values,
                                 std::vector<std::string> &names) {
  auto give = [&](const std::string &as, Value part) {
    names.push_back(as);
    values.push_back(part);
  };
  emitter.location = NameLoc::get(emitter.builder.getStringAttr(name));
  emitter.label = name;
  if (const importer::Optional *found = sequences.optional(value)) {
    importer::Optional optional = *found;
    give(name + ".has_element",
         optional.known ? emitter.scalar(DVT_BOOL, *optional.known ? 1 : 0) : optional.has);
    return optional.element ? exportResult(name, optional.element, values, names)
                            : Status::success();
  }
  const Sequence *sequence = sequences.sequence(value);
  if (!sequence) {
    give(name, value);
    return Status::success();
  }
  Expected<SequenceForm> form = sequences.formOf(*sequence);
  if (!form)
    return form.takeError();
  if (Status status = sequences.checkPackable(
          *form, "inside a model: an output has one table of extents for all its elements");
      !status)
    return status;
  form->isStacked = false;
  if (form->isEmpty) { // always
    give(name + ".data", sequences.zeros(form->type, {0}));
    give(name + ".shapes", sequences.zeros(DVT_I64, {0, 0}));
    return Status::success();
  }
  Expected<Values> parts = sequences.valuesIn(*sequence, *form);
  if (!parts)
    return parts.takeError();
  give(name + ".data", (*parts)[0]);
  give(name + ".shapes", (*parts)[1]);
  return Status::success();
}

} // namespace dovetail::importer
