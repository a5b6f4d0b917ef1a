// SPDX-License-Identifier: Apache-2.0
//
// The graph as a whole: op sets, functions, arguments, initializers, names and results.
#include "import/GraphImport.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include "graph/GraphDialect.h"
#include "graph/TensorType.h"
#include "import/GraphOrder.h"
#include "import/TensorTypes.h"

using namespace mlir;

namespace dovetail::importer {
namespace {

std::string functionKey(const std::string &domain, const std::string &name,
                        const std::string &overload) {
  return domain + '\0' + name + '\0' + overload;
}

const char *kindName(const onnx::TypeProto &type) {
  switch (type.value_case()) {
  case onnx::TypeProto::kSequenceType:
    return "a sequence";
  case onnx::TypeProto::kMapType:
    return "a map";
  case onnx::TypeProto::kOptionalType:
    return "an optional";
  case onnx::TypeProto::kSparseTensorType:
    return "a sparse tensor";
  case onnx::TypeProto::kOpaqueType:
    return "opaque";
  default:
    return "without a type";
  }
}

} // namespace

GraphImport::GraphImport(ModelFile &file, MLIRContext &context, const ImportOptions &options)
    : file(file), options(options), symbols(options.dims), emitter(OpBuilder(&context), symbols) {}

Expected<OpSets> GraphImport::readOpSets(const ImportedSets &imports) {
  OpSets sets;
  const auto &known = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
  int newest = known.at("").second;
  for (const onnx::OperatorSetIdProto &import : imports) {
    std::string domain = import.domain() == "ai.onnx" ? "" : import.domain();
    if (domain.empty() && (import.version() < 1 || import.version() > newest))
      return badInput(
          "the model is written for version {} of the ONNX op set; versions 1 to {} are supported",
          import.version(), newest);
    int version = int(std::clamp<int64_t>(import.version(), 0, INT32_MAX));
    auto [set, isNew] = sets.emplace(domain, version);
    if (!isNew && set->second != version)
      return badInput("the model imports op set '{}' in the versions {} and {}", import.domain(),
                      set->second, version);
  }
  return sets;
}

Status GraphImport::checkOptions() const {
  for (const auto &[name, value] : options.dims)
    if (value < 0)
      return badInput("dimension '{}' cannot be {}", name, value);
  for (const auto &[name, shape] : options.shapes)
    for (const Extent &extent : shape)
      if (extent.staticValue().value_or(0) < 0)
        return badInput("the shape given for input '{}' has the extent {}", name, extent.text());
  return Status::success();
}

Expected<OwningOpRef<ModuleOp>> GraphImport::run() {
  if (Status status = checkOptions(); !status)
    return status.takeError();
  const onnx::ModelProto &model = file.model();
  const onnx::GraphProto &graph = model.graph();
  Expected<OpSets> sets = readOpSets(model.opset_import());
  if (!sets)
    return sets.takeError();
  opSets = std::move(*sets);
  if (model.ir_version() < 3) // before op sets were named
    opSets.emplace("", 1);
  for (const onnx::FunctionProto &function : model.functions()) {
    std::string domain = function.domain() == "ai.onnx" ? "" : function.domain();
    if (!functions.emplace(functionKey(domain, function.name(), function.overload()), &function)
             .second)
      return badInput("the model defines the function '{}.{}' twice", function.domain(),
                      function.name());
  }

  MLIRContext *context = emitter.builder.getContext();
  module = ModuleOp::create(UnknownLoc::get(context));
  emitter.builder.setInsertionPointToEnd(module->getBody());
  auto main = func::FuncOp::create(emitter.builder, UnknownLoc::get(context), "main",
                                   emitter.builder.getFunctionType({}, {}));
  entry = main.addEntryBlock();
  emitter.builder.setInsertionPointToEnd(entry);

  Scope scope;
  scope.opSets = &opSets;
  if (Status status = addInitializers(graph, scope); !status)
    return status.takeError();
  if (Status status = importInputs(graph, scope); !status)
    return status.takeError();

  std::vector<std::string> outputs;
  std::set<std::string> seen;
  for (const onnx::ValueInfoProto &output : graph.output()) {
    if (output.name().empty() || !seen.insert(output.name()).second)
      return badInput("the graph has {} output{}",
                      output.name().empty() ? "an unnamed" : "twice the",
                      output.name().empty() ? "" : " '" + output.name() + "'");
    outputs.push_back(output.name());
  }
  if (outputs.empty())
    return badInput("the graph has no outputs");
  Expected<Values> results = importNodes(graph.node(), outputs, scope);
  if (!results)
    return results.takeError();
  if (Status status = symbols.allGivenUsed(); !status)
    return status.takeError();

  for (auto [output, result] : llvm::zip(graph.output(), *results)) {
    if (!result)
      return badInput("output '{}' is an operand that was left out", output.name());
    int declared = output.type().tensor_type().elem_type();
    if (output.type().has_tensor_type() && declared && declared != int(emitter.type(result)))
      return badInput("output '{}' is declared as {} but the graph computes {}", output.name(),
                      elementTypeName(declared), elementTypeName(emitter.type(result)));
  }
  func::ReturnOp::create(emitter.builder, UnknownLoc::get(context), *results);
  SmallVector<Type> resultTypes;
  for (Value result : *results)
    resultTypes.push_back(result.getType());
  main.setFunctionType(emitter.builder.getFunctionType(entry->getArgumentTypes(), resultTypes));
  unsigned index = 0;
  for (const onnx::ValueInfoProto &input : graph.input())
    if (auto value = scope.values.find(input.name());
        value != scope.values.end() && isa_and_nonnull<BlockArgument>(value->second))
      main.setArgAttr(index++, graph::kNameAttribute, emitter.builder.getStringAttr(input.name()));
  for (unsigned i = 0; i < outputs.size(); ++i)
    main.setResultAttr(i, graph::kNameAttribute, emitter.builder.getStringAttr(outputs[i]));
  graph::setSymbolRanges(*module, symbols.ranges());
  return std::move(module);
}

Expected<graph::ValueFacts> GraphImport::factsOf(const onnx::ValueInfoProto &input) {
  const std::string &name = input.name();
  if (!input.type().has_tensor_type())
    return badInput("input '{}' is {}; only dense tensors are supported yet", name,
                    kindName(input.type()));
  const onnx::TypeProto::Tensor &type = input.type().tensor_type();
  graph::ValueFacts facts;
  facts.type = elementType(type.elem_type());
  if (!graph::toElementType(emitter.builder.getContext(), facts.type))
    return badInput("input '{}' has the element type {}, which is not supported yet", name,
                    elementTypeName(type.elem_type()));
  if (auto given = options.shapes.find(name); given != options.shapes.end()) {
    if (type.has_shape() && type.shape().dim_size() != int(given->second.size()))
      return badInput("input '{}' has {} dimensions, but a shape of {} was given", name,
                      type.shape().dim_size(), given->second.size());
    facts.shape = given->second;
    return facts;
  }
  if (!type.has_shape())
    return badInput("input '{}' has no shape in the model; give its shape when compiling", name);
  for (int i = 0; i < type.shape().dim_size(); ++i) {
    const onnx::TensorShapeProto::Dimension &dimension = type.shape().dim(i);
    bool isNumber = dimension.has_dim_value() && dimension.dim_value() >= 0;
    bool isNamed =
        dimension.has_dim_param() && !dimension.dim_param().empty() && dimension.dim_param() != "?";
    if (isNumber && dimension.dim_value() > int64_t(1) << 40)
      return badInput("input '{}' has the impossible extent {}", name, dimension.dim_value());
    facts.shape.push_back(isNumber  ? Extent(dimension.dim_value())
                          : isNamed ? symbols.named(dimension.dim_param())
                                    : symbols.fresh(name, size_t(i), 1));
  }
  return facts;
}

Status GraphImport::importInputs(const onnx::GraphProto &graph, Scope &scope) {
  // Named dimensions first, so that they keep their names.
  std::set<std::string> seen;
  std::vector<const onnx::ValueInfoProto *> arguments;
  for (const onnx::ValueInfoProto &input : graph.input()) {
    if (input.name().empty() || !seen.insert(input.name()).second)
      return badInput("the graph has {} input{}", input.name().empty() ? "an unnamed" : "twice the",
                      input.name().empty() ? "" : " '" + input.name() + "'");
    // Up to IR version 3 every initializer was an input, too.
    if (scope.initializers.count(input.name())) {
      if (!options.keepInputs.count(input.name()))
        continue;
      scope.initializers.erase(input.name());
    }
    arguments.push_back(&input);
    for (const auto &dimension : input.type().tensor_type().shape().dim())
      if (dimension.has_dim_param() && !dimension.dim_param().empty() &&
          dimension.dim_param() != "?" && !options.shapes.count(input.name()))
        symbols.named(dimension.dim_param());
  }
  for (const auto &[name, shape] : options.shapes)
    if (!seen.count(name))
      return badInput("a shape was given for the input '{}', which the model does not have", name);
  for (const onnx::ValueInfoProto *input : arguments) {
    Expected<graph::ValueFacts> facts = factsOf(*input);
    if (!facts)
      return facts.takeError();
    Type type = graph::tensorType(emitter.builder.getContext(), facts->type, facts->shape);
    Value argument =
        entry->addArgument(type, NameLoc::get(emitter.builder.getStringAttr(input->name())));
    emitter.declare(argument, std::move(*facts));
    scope.values[input->name()] = argument;
  }
  return Status::success();
}

Status GraphImport::addInitializers(const onnx::GraphProto &graph, Scope &scope) {
  for (const onnx::TensorProto &tensor : graph.initializer()) {
    if (tensor.name().empty())
      return badInput("the graph has an initializer without a name");
    if (!scope.initializers.emplace(tensor.name(), &tensor).second)
      return badInput("the graph has two initializers '{}'", tensor.name());
  }
  if (graph.sparse_initializer_size())
    return badInput(
        "initializer '{}' is sparse, which is not supported yet; store it as a dense tensor",
        graph.sparse_initializer(0).values().name());
  return Status::success();
}

bool GraphImport::isKnown(const Scope &scope, const std::string &name) const {
  for (const Scope *at = &scope; at; at = at->enclosing)
    if (at->values.count(name) || at->initializers.count(name))
      return true;
  return false;
}

Expected<Value> GraphImport::valueOf(Scope &scope, const std::string &name) {
  for (const Scope *at = &scope; at; at = at->enclosing) {
    if (auto value = at->values.find(name); value != at->values.end())
      return value->second;
    if (auto tensor = at->initializers.find(name); tensor != at->initializers.end())
      return constantOf(*tensor->second, name);
  }
  return internalError("the value '{}' is used before it is there", name);
}

Expected<Value> GraphImport::constantOf(const onnx::TensorProto &tensor, const std::string &name) {
  Value &known = constants[&tensor];
  if (known)
    return known;
  Expected<TensorData> data = file.read(tensor);
  if (!data)
    return data.takeError();
  OpBuilder::InsertionGuard guard(emitter.builder);
  Location outer = emitter.location;
  if (lastConstant)
    emitter.builder.setInsertionPointAfter(lastConstant);
  else
    emitter.builder.setInsertionPointToStart(entry);
  emitter.location = NameLoc::get(emitter.builder.getStringAttr(name));
  known = emitter.constant(*data, name.empty() ? "constant" : StringRef(name));
  emitter.location = outer;
  lastConstant = known.getDefiningOp();
  return known;
}

Expected<Values> GraphImport::importNodes(const Nodes &nodes,
                                          const std::vector<std::string> &outputs, Scope &scope) {
  Expected<std::vector<const onnx::NodeProto *>> order =
      orderNodes(nodes, outputs, [&](const std::string &name) { return isKnown(scope, name); });
  if (!order)
    return order.takeError();
  for (const onnx::NodeProto *node : *order)
    if (Status status = importNode(*node, scope); !status)
      return status.takeError();
  Values results;
  for (const std::string &output : outputs) {
    Expected<Value> value = valueOf(scope, output);
    if (!value)
      return value.takeError();
    results.push_back(*value);
  }
  return results;
}

Status GraphImport::importNode(const onnx::NodeProto &node, Scope &scope) {
  constexpr size_t kMostNodes = 1'000'000;
  if (++importedNodes > kMostNodes)
    return badInput("the model has more than {} nodes once its functions are expanded", kMostNodes);
  std::string label = scope.prefix + nodeLabel(node);
  emitter.label = label;
  emitter.location = NameLoc::get(emitter.builder.getStringAttr(label));
  std::string domain = node.domain() == "ai.onnx" ? "" : node.domain();
  auto function = functions.find(functionKey(domain, node.op_type(), node.overload()));
  bool isCall = function != functions.end();
  if (!isCall && !domain.empty())
    return emitter.fail(node.op_type(),
                        "the op {}.{} is not known; supported are the ops of ONNX itself and "
                        "functions that the model "
                        "defines. Export the model without ops of other domains",
                        node.domain(), node.op_type());
  Expected<Values> results =
      isCall ? importCall(node, *function->second, scope) : importStandard(node, scope);
  if (!results)
    return results.takeError();
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty())
      continue;
    if (size_t(i) >= results->size())
      return emitter.fail(node.op_type(), "has {} outputs, {} are defined", node.output_size(),
                          results->size());
    scope.values[node.output(i)] = (*results)[size_t(i)];
  }
  return Status::success();
}

Expected<Values> GraphImport::importCall(const onnx::NodeProto &node,
                                         const onnx::FunctionProto &function, Scope &scope) {
  constexpr unsigned kDeepestCall = 64;
  if (scope.depth >= kDeepestCall)
    return emitter.fail(node.op_type(), "functions call each other, or nest more than {} deep",
                        kDeepestCall);
  if (node.input_size() > function.input_size() || node.output_size() > function.output_size())
    return emitter.fail(
        node.op_type(), "has {} inputs and {} outputs, the model's function has {} and {}",
        node.input_size(), node.output_size(), function.input_size(), function.output_size());
  Expected<OpSets> sets = readOpSets(function.opset_import());
  if (!sets)
    return sets.takeError();

  Scope inner;
  inner.opSets = &*sets;
  inner.depth = scope.depth + 1;
  inner.prefix = emitter.label + "/";
  for (int i = 0; i < function.input_size(); ++i) {
    Value value;
    if (i < node.input_size() && !node.input(i).empty()) {
      Expected<Value> given = valueOf(scope, node.input(i));
      if (!given)
        return given.takeError();
      value = *given;
    }
    if (!inner.values.emplace(function.input(i), value).second)
      return badInput("function '{}.{}' has two inputs '{}'", function.domain(), function.name(),
                      function.input(i));
  }
  std::map<std::string, const onnx::AttributeProto *> arguments;
  for (const std::string &name : function.attribute())
    arguments[name] = nullptr;
  for (const onnx::AttributeProto &attribute : function.attribute_proto())
    arguments[attribute.name()] = &attribute;
  for (const onnx::AttributeProto &attribute : node.attribute())
    if (const onnx::AttributeProto *given = resolve(attribute, scope);
        given && arguments.count(attribute.name()))
      arguments[attribute.name()] = given;
  inner.arguments = &arguments;

  std::string label = emitter.label;
  std::vector<std::string> outputs;
  for (int i = 0; i < node.output_size(); ++i)
    if (!node.output(i).empty())
      outputs.push_back(function.output(i));
  Expected<Values> computed = importNodes(function.node(), outputs, inner);
  if (!computed)
    return Error{computed.error().kind,
                 fmt::format("in the function '{}' that node '{}' calls: {}", function.name(),
                             label, computed.error().message)};
  Values results;
  size_t next = 0;
  for (const std::string &output : node.output())
    results.push_back(output.empty() ? Value() : (*computed)[next++]);
  emitter.label = label;
  return results;
}

} // namespace dovetail::importer
