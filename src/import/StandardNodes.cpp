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

const onnx::AttributeProto *findAttribute(const onnx::NodeProto &node, const char *name) {
  for (const onnx::AttributeProto &attribute : node.attribute())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
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
      break; // read by the op that has it
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
  if (op == "Loop" || op == "Scan" || op == "SequenceMap")
    return emitter.fail(op, "this op is not supported yet");
  if (Status status = verify(node, *schema, file.model(), emitter); !status)
    return status.takeError();
  if (op == "If")
    return importConditional(node, scope);

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

Expected<Values> GraphImport::importBody(const onnx::GraphProto &graph, Scope &scope) {
  constexpr unsigned kDeepestBody = 64;
  if (scope.depth >= kDeepestBody)
    return emitter.fail("If", "bodies nest more than {} deep", kDeepestBody);
  std::string label = emitter.label;
  Location location = emitter.location;
  Scope inner;
  inner.enclosing = &scope;
  inner.opSets = scope.opSets;
  inner.prefix = label + "/";
  inner.depth = scope.depth + 1;
  if (Status status = addInitializers(graph, inner); !status)
    return status.takeError();
  std::vector<std::string> outputs;
  for (const onnx::ValueInfoProto &output : graph.output())
    outputs.push_back(output.name());
  Expected<Values> results = importNodes(graph.node(), outputs, inner);
  emitter.label = label;
  emitter.location = location;
  return results;
}

/// Where the condition is known, the branch it chooses is imported in place.
Expected<Values> GraphImport::importConditional(const onnx::NodeProto &node, Scope &scope) {
  Expected<Value> condition = valueOf(scope, node.input(0));
  if (!condition)
    return condition.takeError();
  const onnx::AttributeProto *branches[2] = {findAttribute(node, "then_branch"),
                                             findAttribute(node, "else_branch")};
  for (const onnx::AttributeProto *branch : branches)
    if (!branch || !branch->has_g() || branch->g().output_size() != node.output_size() ||
        branch->g().input_size())
      return emitter.fail(
          "If", "needs two branches without inputs, with as many outputs as the node has");
  if (!*condition || emitter.type(*condition) != DVT_BOOL)
    return emitter.fail("If", "the condition must be a bool");
  if (std::optional<std::vector<int64_t>> known = emitter.knownInts(*condition);
      known && known->size() == 1)
    return importBody(branches[known->front() ? 0 : 1]->g(), scope);

  OperationState state(emitter.location, graph::IfOp::getOperationName());
  state.addOperands(*condition);
  Values yielded[2];
  for (int i = 0; i < 2; ++i) {
    OpBuilder::InsertionGuard guard(emitter.builder);
    Block &block = state.addRegion()->emplaceBlock();
    emitter.builder.setInsertionPointToEnd(&block);
    Expected<Values> results = importBody(branches[i]->g(), scope);
    if (!results)
      return results;
    yielded[i] = std::move(*results);
    graph::YieldOp::create(emitter.builder, emitter.location, yielded[i]);
  }
  std::vector<graph::ValueFacts> joined;
  for (auto [index, a, b] : llvm::enumerate(yielded[0], yielded[1])) {
    if (!a || !b || emitter.type(a) != emitter.type(b) || emitter.rank(a) != emitter.rank(b))
      return emitter.fail(
          "If",
          "output {} has other types or numbers of dimensions in the two branches, which is not "
          "supported",
          index);
    graph::ValueFacts facts;
    facts.type = emitter.type(a);
    for (size_t d = 0; d < emitter.rank(a); ++d)
      facts.shape.push_back(emitter.shape(a)[d] == emitter.shape(b)[d]
                                ? emitter.shape(a)[d]
                                : symbols.fresh(emitter.label + "_" + std::to_string(index), d, 0));
    state.addTypes(graph::tensorType(emitter.builder.getContext(), facts.type, facts.shape));
    joined.push_back(std::move(facts));
  }
  Operation *created = emitter.builder.create(state);
  Values results;
  for (auto [result, facts] : llvm::zip(created->getResults(), joined)) {
    emitter.declare(result, std::move(facts));
    results.push_back(result);
  }
  return results;
}

} // namespace dovetail::importer
