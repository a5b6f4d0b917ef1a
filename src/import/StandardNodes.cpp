// SPDX-License-Identifier: Apache-2.0
//
// Nodes whose op is ONNX's own: looked up in libonnx's definitions, attributes read, brought to the
// newest definition by the rule of its family and emitted.
#include "import/GraphImport.h"

#include "mlir/IR/Builders.h"

#include <onnx/checker.h>
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include "graph/GraphDialect.h"
#include "graph/TensorType.h"

using namespace mlir;

namespace dovetail::importer {
namespace {

/// Old files leave the type out.
onnx::AttributeProto::AttributeType typeOf(const onnx::AttributeProto &attribute) {
  if (attribute.type() != onnx::AttributeProto::UNDEFINED)
    return attribute.type();
  if (attribute.has_i())
    return onnx::AttributeProto::INT;
  if (attribute.has_f())
    return onnx::AttributeProto::FLOAT;
  if (attribute.has_s())
    return onnx::AttributeProto::STRING;
  if (attribute.has_t())
    return onnx::AttributeProto::TENSOR;
  if (attribute.has_g())
    return onnx::AttributeProto::GRAPH;
  if (attribute.floats_size())
    return onnx::AttributeProto::FLOATS;
  if (attribute.strings_size())
    return onnx::AttributeProto::STRINGS;
  return onnx::AttributeProto::INTS;
}

/// What libonnx has to say about a node by itself: attributes it does not define, too few inputs
/// and the like.
Status verify(const onnx::NodeProto &node, const onnx::OpSchema &schema,
              const onnx::ModelProto &model, const OpEmitter &emitter) {
  onnx::checker::CheckerContext context;
  context.set_ir_version(int(model.ir_version()));
  context.set_is_main_graph(false); // references to a function's attributes are resolved elsewhere
  try {
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (!attribute.has_t() && !attribute.has_g() && !attribute.tensors_size() &&
          !attribute.graphs_size())
        onnx::checker::check_attribute(attribute, context, onnx::checker::LexicalScopeContext());
    if (!schema.deprecated())
      schema.Verify(node);
  } catch (const std::exception &exception) {
    return emitter.fail(node.op_type(), "{}", exception.what());
  }
  return Status::success();
}

} // namespace

const onnx::AttributeProto *GraphImport::resolve(const onnx::AttributeProto &attribute,
                                                 const Scope &scope) const {
  if (attribute.ref_attr_name().empty())
    return &attribute;
  for (const Scope *at = &scope; at; at = at->enclosing)
    if (at->arguments) {
      auto found = at->arguments->find(attribute.ref_attr_name());
      return found == at->arguments->end() ? nullptr : found->second;
    }
  return nullptr;
}

Expected<OpAttributes> GraphImport::readAttributes(const onnx::NodeProto &node,
                                                   const Scope &scope) {
  OpAttributes attributes;
  for (const onnx::AttributeProto &stated : node.attribute()) {
    const std::string &name = stated.name();
    const onnx::AttributeProto *attribute = resolve(stated, scope);
    if (!attribute)
      continue;
    if (attributes.has(name))
      return emitter.fail(node.op_type(), "has the attribute '{}' twice", name);
    switch (typeOf(*attribute)) {
    case onnx::AttributeProto::INT:
      attributes.plain[name] = int64_t(attribute->i());
      break;
    case onnx::AttributeProto::FLOAT:
      attributes.plain[name] = double(attribute->f());
      break;
    case onnx::AttributeProto::STRING:
      attributes.plain[name] = attribute->s();
      break;
    case onnx::AttributeProto::INTS:
      attributes.plain[name] =
          std::vector<int64_t>(attribute->ints().begin(), attribute->ints().end());
      break;
    case onnx::AttributeProto::FLOATS:
      attributes.plain[name] =
          std::vector<double>(attribute->floats().begin(), attribute->floats().end());
      break;
    case onnx::AttributeProto::STRINGS:
      attributes.strings[name].assign(attribute->strings().begin(), attribute->strings().end());
      break;
    case onnx::AttributeProto::TENSOR: {
      Expected<TensorData> data = file.read(attribute->t());
      if (!data)
        return emitter.fail(node.op_type(), "attribute '{}': {}", name, data.error().message);
      attributes.tensors[name] = std::move(*data);
      break;
    }
    case onnx::AttributeProto::GRAPH:
    case onnx::AttributeProto::TYPE_PROTO:
      break; // read by the op that has it, or said by its operands
    default:
      return emitter.fail(node.op_type(),
                          "attribute '{}' is of a kind ({}) that is not supported yet", name,
                          onnx::AttributeProto::AttributeType_Name(typeOf(*attribute)));
    }
  }
  return attributes;
}

Expected<Values> GraphImport::importStandard(const onnx::NodeProto &node, Scope &scope) {
  const std::string &op = node.op_type();
  auto set = scope.opSets->find("");
  if (set == scope.opSets->end())
    return emitter.fail(
        op, "the model does not state the version of the ONNX op set it is written for");
  const onnx::OpSchema *schema = onnx::OpSchemaRegistry::Schema(op, set->second, "");
  if (!schema) {
    const onnx::OpSchema *newest = onnx::OpSchemaRegistry::Schema(op);
    if (newest)
      return emitter.fail(op,
                          "the op was added after version {} of the op set, which the model states",
                          set->second);
    return emitter.fail(op, "there is no ONNX op of this name");
  }
  if (schema->deprecated() && op != "GroupNormalization")
    return emitter.fail(
        op, "the op was removed in version {} of the op set, and the model states version {}",
        schema->since_version(), set->second);
  if (Status status = verify(node, *schema, file.model(), emitter); !status)
    return status.takeError();
  if (op == "If")
    return importConditional(node, scope);
  if (op == "Loop")
    return importLoop(node, scope);
  if (op == "Scan")
    return importScan(node, schema->since_version(), scope);

  if (op == "SequenceMap")
    return importSequenceMap(node, scope);

  NodeImport import(emitter, op, schema->since_version());
  Expected<OpAttributes> attributes = readAttributes(node, scope);
  if (!attributes)
    return attributes.takeError();
  if (op == "Constant")
    return importConstant(node, *attributes);
  import.attributes = std::move(*attributes);
  for (const std::string &input : node.input()) {
    Expected<Value> value = input.empty() ? Expected<Value>(Value()) : valueOf(scope, input);
    if (!value)
      return emitter.fail(op, "{}", value.error().message);
    import.operands.push_back(*value);
  }
  for (const std::string &output : node.output())
    import.wanted.push_back(!output.empty());

  Expected<bool> concerned = concernsSequences(import);
  if (!concerned)
    return concerned.takeError();
  if (*concerned)
    return importSequenceOp(import);
  if (OpRule rule = findOpRule(op))
    if (Status status = rule(import); !status)
      return status.takeError();
  if (import.replacement)
    return *import.replacement;
  const graph::OpInfo *info = graph::findOnnxOp(import.op);
  size_t results = import.wanted.size();
  while (info && info->mostOutputs >= 0 && results && !import.wanted[results - 1])
    --results;
  return emitter.emit(import.op, import.operands, std::move(import.attributes), results);
}

Expected<Values> GraphImport::importContrib(const onnx::NodeProto &node, const ContribOp &op,
                                            Scope &scope) {
  NodeImport import(emitter, node.op_type(), 1);
  Expected<OpAttributes> attributes = readAttributes(node, scope);
  if (!attributes)
    return attributes.takeError();
  import.attributes = std::move(*attributes);
  Expected<Values> operands = operandsOf(node, scope);
  if (!operands)
    return operands.takeError();
  import.operands = std::move(*operands);
  for (const std::string &output : node.output())
    import.wanted.push_back(!output.empty());
  if (Expected<bool> concerned = concernsSequences(import); !concerned)
    return concerned.takeError();
  if (Status status = checkContribNode(op, import); !status)
    return status.takeError();
  if (Status status = op.rule(import); !status)
    return status.takeError();
  assert(import.replacement && "rules of other domains emit all themselves");
  return *import.replacement;
}

Expected<Values> GraphImport::importConstant(const onnx::NodeProto &node,
                                             const OpAttributes &attributes) {
  if (attributes.plain.size() + attributes.tensors.size() != 1)
    return emitter.fail("Constant",
                        "needs exactly one value; sparse and string values are not supported yet");
  if (attributes.tensors.count("value")) {
    OpBuilder::InsertionGuard guard(emitter.builder);
    if (lastConstant)
      emitter.builder.setInsertionPointAfter(lastConstant);
    else
      emitter.builder.setInsertionPointToStart(entry);
    Value value = emitter.constant(attributes.tensors.at("value"),
                                   node.output_size() ? node.output(0) : "constant");
    lastConstant = value.getDefiningOp();
    return Values{value};
  }
  const AttributeValue &value = attributes.plain.begin()->second;
  if (auto *number = std::get_if<int64_t>(&value))
    return Values{emitter.intScalar(*number)};
  if (auto *number = std::get_if<double>(&value))
    return Values{emitter.scalar(DVT_F32, *number)};
  if (auto *numbers = std::get_if<std::vector<int64_t>>(&value))
    return Values{emitter.ints(*numbers)};
  if (auto *numbers = std::get_if<std::vector<double>>(&value))
    return Values{emitter.floats(*numbers)};
  return emitter.fail("Constant", "holds a string, which is not supported yet");
}

} // namespace dovetail::importer
