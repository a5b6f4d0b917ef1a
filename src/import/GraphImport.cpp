// SPDX-License-Identifier: Apache-2.0
//
// The graph as a whole: op sets, functions, arguments, initializers, names and results.
#include "import/GraphImport.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <fmt/ranges.h>
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include "graph/GraphDialect.h"
#include "graph/TensorType.h"
#include "import/GraphOrder.h"
#include "import/TensorTypes.h"

using namespace mlir;

namespace dovetail::importer {
namespace {

constexpr int kOldestOpSet = 7;
constexpr int kOldestFormat = 3; ///< op sets had no versions before

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

/// The tensors that an input consists of: SequenceBorder.cpp.
void addNames(const std::string &name, const onnx::TypeProto &type,
              std::vector<std::string> &names) {
  if (type.has_optional_type()) {
    names.push_back(name + ".has_element");
    addNames(name, type.optional_type().elem_type(), names);
  } else if (type.has_sequence_type()) {
    names.push_back(name + ".data");
    names.push_back(name + ".shapes");
  } else {
    names.push_back(name);
  }
}

bool isNumber(const onnx::TensorShapeProto::Dimension &dimension) {
  return dimension.has_dim_value() && dimension.dim_value() >= 0;
}

bool isNamed(const onnx::TensorShapeProto::Dimension &dimension) {
  return dimension.has_dim_param() && !dimension.dim_param().empty() &&
         dimension.dim_param() != "?";
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
    if (domain.empty() && (import.version() < kOldestOpSet || import.version() > newest))
      return badInput(
          "the model is written for version {} of the ONNX op set; versions {} to {} are "
          "supported; export it for one of them",
          import.version(), kOldestOpSet, newest);
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

void GraphImport::warnOfShape(const onnx::ValueInfoProto &output,
                              const std::vector<Extent> &shape) const {
  const onnx::TypeProto::Tensor &type = output.type().tensor_type();
  if (!type.has_shape() || !options.warn)
    return;
  bool differs = type.shape().dim_size() != int(shape.size());
  for (int i = 0; !differs && i < type.shape().dim_size(); ++i)
    differs = isNumber(type.shape().dim(i)) && shape[size_t(i)].isStatic() &&
              shape[size_t(i)].value() != type.shape().dim(i).dim_value();
  std::vector<std::string> extents;
  for (const Extent &extent : shape)
    extents.push_back(extent.text());
  if (differs)
    options.warn(fmt::format("output '{}' is declared with another shape than it has, which is "
                             "[{}]; what the model declares is ignored",
                             output.name(), fmt::join(extents, ",")));
}

Expected<OwningOpRef<ModuleOp>> GraphImport::run() {
  if (Status status = checkOptions(); !status)
    return status.takeError();
  const onnx::ModelProto &model = file.model();
  const onnx::GraphProto &graph = model.graph();
  if (model.ir_version() < kOldestFormat || model.ir_version() > onnx::IR_VERSION)
    return badInput("the model is stored in version {} of ONNX's format; versions {} to {} are "
                    "supported; export it with one of them",
                    model.ir_version(), kOldestFormat, int(onnx::IR_VERSION));
  Expected<OpSets> sets = readOpSets(model.opset_import());
  if (!sets)
    return sets.takeError();
  opSets = std::move(*sets);
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

  Values values;
  std::vector<std::string> names;
  for (auto [output, result] : llvm::zip(graph.output(), *results)) {
    if (!result)
      return badInput("output '{}' is an operand that was left out", output.name());
    if (Status status = exportResult(output.name(), result, values, names); !status)
      return status.takeError();
    if (sequences.isToken(result))
      continue;
    int declared = output.type().tensor_type().elem_type();
    if (output.type().has_tensor_type() && declared && declared != int(emitter.type(result)))
      return badInput("output '{}' is declared as {} but the graph computes {}", output.name(),
                      elementTypeName(declared), elementTypeName(emitter.type(result)));
    warnOfShape(output, emitter.shape(result));
  }
  func::ReturnOp::create(emitter.builder, UnknownLoc::get(context), values);
  SmallVector<Type> resultTypes;
  for (Value result : values)
    resultTypes.push_back(result.getType());
  main.setFunctionType(emitter.builder.getFunctionType(entry->getArgumentTypes(), resultTypes));
  for (unsigned i = 0; i < argumentNames.size(); ++i)
    main.setArgAttr(i, graph::kNameAttribute, emitter.builder.getStringAttr(argumentNames[i]));
  for (unsigned i = 0; i < names.size(); ++i)
    main.setResultAttr(i, graph::kNameAttribute, emitter.builder.getStringAttr(names[i]));
  graph::setSymbolRanges(*module, symbols.ranges());
  return std::move(module);
}

Expected<graph::ValueFacts> GraphImport::factsOf(const onnx::ValueInfoProto &input, int64_t least) {
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
  if (auto given = options.types.find(name); given != options.types.end() &&
                                             given->second != facts.type &&
                                             !(facts.type == DVT_BF16 && given->second == DVT_U16))
    return badInput("input '{}' is given as {}, the model takes {}; convert it with numpy's astype",
                    name, typeName(given->second), typeName(facts.type));
  if (auto given = options.shapes.find(name); given != options.shapes.end()) {
    facts.shape = given->second;
    return facts;
  }
  if (!type.has_shape())
    return badInput("input '{}' has no shape in the model; give the input itself, as --input "
                    "'{}=FILE.npy', to say which shape it has",
                    name, name);
  for (int i = 0; i < type.shape().dim_size(); ++i) {
    const onnx::TensorShapeProto::Dimension &dimension = type.shape().dim(i);
    if (isNumber(dimension) && dimension.dim_value() > int64_t(1) << 40)
      return badInput("input '{}' has the impossible extent {}", name, dimension.dim_value());
    facts.shape.push_back(isNumber(dimension)  ? Extent(dimension.dim_value())
                          : isNamed(dimension) ? symbols.named(dimension.dim_param(), least)
                                               : symbols.fresh(name, size_t(i), least));
  }
  return facts;
}

Status GraphImport::fixGiven(const onnx::ValueInfoProto &input) {
  auto given = options.shapes.find(input.name());
  const onnx::TypeProto::Tensor &type = input.type().tensor_type();
  if (given == options.shapes.end() || !type.has_shape())
    return Status::success();
  std::vector<std::string> stated, wanted;
  for (const auto &dimension : type.shape().dim())
    stated.push_back(isNumber(dimension)  ? std::to_string(dimension.dim_value())
                     : isNamed(dimension) ? dimension.dim_param()
                                          : "?");
  for (const Extent &extent : given->second)
    wanted.push_back(extent.text());
  bool fits = stated.size() == wanted.size();
  for (size_t axis = 0; fits && axis < stated.size(); ++axis)
    fits = !isNumber(type.shape().dim(int(axis))) || stated[axis] == wanted[axis];
  if (!fits)
    return badInput("input '{}' is given with the shape [{}], the model takes [{}]", input.name(),
                    fmt::join(wanted, ","), fmt::join(stated, ","));
  for (size_t axis = 0; axis < stated.size(); ++axis)
    if (auto value = given->second[axis].staticValue();
        value && isNamed(type.shape().dim(int(axis))))
      if (Status status = symbols.fix(stated[axis], *value, input.name()); !status)
        return status;
  return Status::success();
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
    if (Status status = fixGiven(input); !status)
      return status;
  }
  std::vector<std::string> parts;
  for (const onnx::ValueInfoProto *input : arguments)
    addNames(input->name(), input->type(), parts);
  seen.insert(parts.begin(), parts.end());
  for (const auto &[name, shape] : options.shapes)
    if (!seen.count(name)) {
      std::vector<std::string> names;
      for (const onnx::ValueInfoProto *input : arguments)
        addNames(input->name(), input->type(), names);
      return badInput("the model has no input '{}'; its inputs are {}", name,
                      names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
    }
  for (const onnx::ValueInfoProto *input : arguments)
    for (const auto &dimension : input->type().tensor_type().shape().dim())
      if (isNamed(dimension) && !options.shapes.count(input->name()))
        symbols.named(dimension.dim_param(), 1);
  for (const onnx::ValueInfoProto *input : arguments) {
    Expected<Value> argument = importArgument(input->name(), input->type(), 1);
    if (!argument)
      return argument.takeError();
    scope.values[input->name()] = *argument;
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
  if (++importedNodes > options.mostNodes)
    return badInput("the model has more than {} nodes once its functions and bodies are expanded",
                    options.mostNodes);
  std::string label = scope.prefix + nodeLabel(node);
  emitter.label = label;
  emitter.location = NameLoc::get(emitter.builder.getStringAttr(label));
  std::string domain = node.domain() == "ai.onnx" ? "" : node.domain();
  auto function = functions.find(functionKey(domain, node.op_type(), node.overload()));
  bool isCall = function != functions.end();
  const ContribOp *contrib =
      isCall || domain.empty() ? nullptr : findContribOp(domain, node.op_type());
  if (!isCall && !domain.empty() && !contrib)
    return emitter.fail(node.op_type(),
                        "the op {}.{} is not known; supported are the ops of ONNX itself, "
                        "functions that the model defines, and {}. Export the model without other "
                        "ops of other domains",
                        node.domain(), node.op_type(), contribOpNames());
  Expected<Values> results = isCall    ? importCall(node, *function->second, scope)
                             : contrib ? importContrib(node, *contrib, scope)
                                       : importStandard(node, scope);
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
