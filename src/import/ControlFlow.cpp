// SPDX-License-Identifier: Apache-2.0
//
// If, Loop and Scan: their bodies become regions that read values around them as they are. A body
// of a loop is imported for the extents with which its first iteration starts; where an iteration
// changes one of what it carries, it is imported again for any value of that extent.
#include "import/GraphImport.h"

#include <onnx/onnx_pb.h>

#include "graph/GraphDialect.h"
#include "graph/TensorType.h"
#include "graph/shapes/BodyShapes.h"

using namespace mlir;

namespace dovetail::importer {
namespace {

const onnx::AttributeProto *findAttribute(const onnx::NodeProto &node, const char *name) {
  for (const onnx::AttributeProto &attribute : node.attribute())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

graph::ValueFacts typeOnly(dvt_type type, graph::Shape shape) {
  graph::ValueFacts facts;
  facts.type = type;
  facts.shape = std::move(shape);
  return facts;
}

} // namespace

/// A Loop or Scan while its body is imported.
struct GraphImport::Iteration {
  const onnx::NodeProto &node;
  const onnx::GraphProto &body;
  Operation *draft; ///< without results
  /// Inputs of the body from `firstCarried` on, `carried` many, are its outputs from `firstYielded`
  /// on.
  size_t firstCarried, carried, firstYielded;
  Values initial; ///< what is carried at first, as ONNX has it
  /// A sequence is carried as the values of a form: none, one or two, or one for each element.
  std::vector<std::optional<SequenceForm>> forms{};
  /// Of the arguments of the region, sequences taken apart: the first inputs, what is carried, and
  /// the other inputs.
  std::vector<graph::ValueFacts> leading{}, arguments{}, trailing{};
  std::set<std::string> outside{}; ///< symbols
  Values yielded{};                ///< sequences taken apart
  size_t carriedValues() const { return arguments.size() - leading.size() - trailing.size(); }
};

Expected<Values> GraphImport::importBody(const onnx::GraphProto &graph, ValueRange arguments,
                                         Scope &scope) {
  constexpr unsigned kDeepestBody = 32;
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
  for (auto [input, argument] : llvm::zip(graph.input(), arguments)) {
    if (input.name().empty() || inner.initializers.count(input.name()) ||
        !inner.values.emplace(input.name(), argument).second)
      return emitter.fail("body", "has no name for an input, or twice '{}'", input.name());
  }
  std::vector<std::string> outputs;
  for (const onnx::ValueInfoProto &output : graph.output())
    outputs.push_back(output.name());
  Expected<Values> results = importNodes(graph.node(), outputs, inner);
  emitter.label = label;
  emitter.location = location;
  if (results)
    for (auto [output, result] : llvm::zip(outputs, *results))
      if (!result)
        return emitter.fail("body", "its output '{}' is an operand that was left out", output);
  return results;
}

Expected<Values> GraphImport::operandsOf(const onnx::NodeProto &node, Scope &scope) {
  Values operands;
  for (const std::string &input : node.input()) {
    Expected<Value> value = input.empty() ? Expected<Value>(Value()) : valueOf(scope, input);
    if (!value)
      return emitter.fail(node.op_type(), "{}", value.error().message);
    operands.push_back(*value);
  }
  return operands;
}

Values GraphImport::finish(Operation *draft, ArrayRef<graph::ValueFacts> facts) {
  OperationState state(draft->getLoc(), draft->getName());
  state.addOperands(draft->getOperands());
  state.addAttributes(draft->getAttrs());
  for (const graph::ValueFacts &fact : facts)
    state.addTypes(graph::tensorType(draft->getContext(), fact.type, fact.shape));
  for (unsigned i = 0; i < draft->getNumRegions(); ++i)
    state.addRegion()->takeBody(draft->getRegion(i));
  Operation *created = emitter.builder.create(state);
  draft->erase();
  Values results;
  for (auto [result, fact] : llvm::zip(created->getResults(), facts)) {
    emitter.declare(result, fact);
    results.push_back(result);
  }
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
  if (!*condition || sequences.isToken(*condition) || emitter.type(*condition) != DVT_BOOL)
    return emitter.fail("If", "the condition must be a bool");
  if (elementCount(emitter.shape(*condition)).staticValue().value_or(1) != 1)
    return emitter.fail("If", "the condition must be one bool");
  if (std::optional<std::vector<int64_t>> known = emitter.knownInts(*condition);
      known && known->size() == 1)
    return importBody(branches[known->front() ? 0 : 1]->g(), {}, scope);

  OperationState state(emitter.location, graph::IfOp::getOperationName());
  state.addOperands(*condition);
  state.addRegion()->emplaceBlock();
  state.addRegion()->emplaceBlock();
  Operation *draft = emitter.builder.create(state);
  Values yielded[2];
  std::optional<Error> refused[2];
  for (unsigned i = 0; i < 2; ++i) {
    OpBuilder::InsertionGuard guard(emitter.builder);
    emitter.builder.setInsertionPointToEnd(&draft->getRegion(i).front());
    emitter.shapesContradict = false;
    Expected<Values> results = importBody(branches[i]->g(), {}, scope);
    if (results) {
      yielded[i] = std::move(*results);
      continue;
    }
    // A branch for other extents than those at hand may be as good as never taken.
    if (!emitter.shapesContradict || refused[0])
      return results;
    refused[i] = results.takeError();
    emitter.shapesContradict = false;
  }
  for (unsigned i = 0; i < 2; ++i)
    if (refused[i]) {
      for (Value other : yielded[1 - i])
        if (sequences.isToken(other))
          return *refused[i];
      yielded[i] = refuseBranch(*draft, i, *refused[i], yielded[1 - i]);
    }
  return joinBranches(draft, yielded[0], yielded[1]);
}

/// The results of a conditional, its branches ended with what they give.
Expected<Values> GraphImport::finishBranches(Operation *draft, ArrayRef<Value> yes,
                                             ArrayRef<Value> no) {
  for (unsigned i : {0u, 1u}) {
    OpBuilder::InsertionGuard guard(emitter.builder);
    emitter.builder.setInsertionPointToEnd(&draft->getRegion(i).front());
    graph::YieldOp::create(emitter.builder, emitter.location, i == 0 ? yes : no);
  }
  std::vector<graph::ValueFacts> joined;
  for (auto [index, a, b] : llvm::enumerate(yes, no)) {
    if (emitter.type(a) != emitter.type(b) || emitter.rank(a) != emitter.rank(b))
      return emitter.fail(
          "If",
          "output {} has other types or numbers of dimensions in the two branches, which is not "
          "supported",
          index);
    graph::ValueFacts facts = typeOnly(emitter.type(a), emitter.shape(a));
    for (size_t d = 0; d < emitter.rank(a); ++d)
      if (emitter.shape(a)[d] != emitter.shape(b)[d])
        facts.shape[d] = symbols.fresh(emitter.label + "_" + std::to_string(index), d, 0);
    joined.push_back(std::move(facts));
  }
  return finish(draft, joined);
}

/// Makes a branch of what is an error to run, with results like those of the other branch.
Values GraphImport::refuseBranch(Operation &draft, unsigned branch, const Error &error,
                                 ArrayRef<Value> others) {
  if (options.warn)
    options.warn(fmt::format("node '{}' (If): its {} branch contradicts the shapes at hand, and to "
                             "take it will be an error: {}",
                             emitter.label, branch == 0 ? "then" : "else", error.message));
  return refusal(draft, branch,
                 "a branch was taken that makes no sense with these extents: " + error.message,
                 others);
}

Values GraphImport::refusal(Operation &draft, unsigned branch, const std::string &message,
                            ArrayRef<Value> others) {
  OpBuilder::InsertionGuard guard(emitter.builder);
  Region &region = draft.getRegion(branch);
  region.getBlocks().clear();
  emitter.builder.setInsertionPointToEnd(&region.emplaceBlock());
  std::set<std::string> outside = graph::symbolsOutside(&draft);
  OperationState state(emitter.location, graph::RefuseOp::getOperationName());
  state.addAttribute("message", emitter.builder.getStringAttr(message));
  std::vector<graph::ValueFacts> facts;
  for (Value other : others) {
    facts.push_back(
        typeOnly(emitter.type(other), graph::knownOutside(emitter.shape(other), outside)));
    state.addTypes(graph::tensorType(draft.getContext(), facts.back().type, facts.back().shape));
  }
  Operation *refused = emitter.builder.create(state);
  Values results;
  for (auto [result, fact] : llvm::zip(refused->getResults(), facts)) {
    emitter.declare(result, fact);
    results.push_back(result);
  }
  return results;
}

/// Checks what the body declares of its inputs against what it gets.
Status GraphImport::checkInputs(const Iteration &iteration) const {
  const std::string &op = iteration.node.op_type();
  size_t next = 0;
  for (int i = 0; i < iteration.body.input_size(); ++i) {
    const onnx::ValueInfoProto &input = iteration.body.input(i);
    const onnx::TypeProto &type = input.type();
    size_t carried = size_t(i) - iteration.firstCarried;
    if (size_t(i) >= iteration.firstCarried && carried < iteration.carried &&
        iteration.forms[carried]) {
      next += iteration.forms[carried]->valueCount();
      continue;
    }
    dvt_type given = iteration.arguments[next++].type;
    int declared = type.tensor_type().elem_type();
    if (type.value_case() != onnx::TypeProto::VALUE_NOT_SET && !type.has_tensor_type())
      return emitter.fail(op, "input '{}' of its body is declared as no tensor and gets one",
                          input.name());
    if (declared && elementType(declared) != given)
      return emitter.fail(op, "input '{}' of its body is declared as {} and gets {}", input.name(),
                          elementTypeName(declared), elementTypeName(int(given)));
  }
  return Status::success();
}

/// Gives the draft its operands, and the region's arguments their facts, by the forms of what is
/// carried.
Status GraphImport::enterIteration(Iteration &iteration) {
  OpBuilder::InsertionGuard guard(emitter.builder);
  emitter.builder.setInsertionPoint(iteration.draft);
  Values operands(iteration.draft->getOperands().take_front(iteration.leading.size()));
  Values behind(iteration.draft->getOperands().take_back(iteration.trailing.size()));
  iteration.arguments = iteration.leading;
  for (auto [value, form] : llvm::zip(iteration.initial, iteration.forms)) {
    Values parts{value};
    if (form) {
      Expected<Values> values = sequences.valuesIn(*sequences.sequence(value), *form);
      if (!values)
        return values.takeError();
      parts = std::move(*values);
    }
    for (Value part : parts) {
      iteration.arguments.push_back(typeOnly(emitter.type(part), emitter.shape(part)));
      operands.push_back(part);
    }
  }
  llvm::append_range(operands, behind);
  llvm::append_range(iteration.arguments, iteration.trailing);
  iteration.draft->setOperands(operands);
  iteration.outside = graph::symbolsOutside(iteration.draft);
  return Status::success();
}

/// Takes the sequences among what the body yields apart. Where one does not fit the form in which
/// it is carried, that form is widened and nothing is given.
Expected<std::optional<Values>> GraphImport::takeApart(Iteration &iteration,
                                                       ArrayRef<Value> yielded) {
  const std::string &op = iteration.node.op_type();
  bool widened = false;
  Values all;
  for (size_t i = 0; i < yielded.size(); ++i) {
    Value value = yielded[i];
    size_t carried = i - iteration.firstYielded;
    bool isCarried = i >= iteration.firstYielded && carried < iteration.carried;
    const Optional *optional = sequences.optional(value);
    if (optional && optional->known == true)
      value = optional->element;
    const Sequence *sequence = sequences.sequence(value);
    if (bool(sequence) != (isCarried && iteration.forms[carried]) ||
        (sequences.isToken(value) && !sequence))
      return emitter.fail(op, "output {} of its body is {}, which is not supported there{}", i,
                          sequences.isToken(value) ? sequences.kindOf(value) : "a tensor",
                          isCarried ? ": what is carried must be of one kind" : "");
    if (!sequence) {
      all.push_back(value);
      continue;
    }
    std::optional<SequenceForm> &form = iteration.forms[carried];
    Expected<SequenceForm> after = sequences.formOf(*sequence);
    if (after)
      after = sequences.join(*form, *after);
    if (!after)
      return after.takeError();
    if (*after != *form) {
      form = std::move(*after);
      widened = true;
      continue;
    }
    Expected<Values> parts = sequences.valuesIn(*sequence, *form);
    if (!parts)
      return parts.takeError();
    llvm::append_range(all, *parts);
  }
  return widened ? std::optional<Values>() : std::optional<Values>(std::move(all));
}

/// For a sequence of which only the body's declaration says how many dimensions its elements have.
bool GraphImport::declareForms(Iteration &iteration) const {
  bool any = false;
  for (size_t i = 0; i < iteration.forms.size(); ++i) {
    std::optional<SequenceForm> &form = iteration.forms[i];
    const onnx::TypeProto &type =
        iteration.body.input(int(iteration.firstCarried + i)).type().sequence_type().elem_type();
    if (!form || !form->isEmpty || !type.tensor_type().has_shape())
      continue;
    form->isEmpty = false;
    form->element.assign(size_t(type.tensor_type().shape().dim_size()), Extent(0));
    any = true;
  }
  return any;
}

/// What the pass before imported is dropped. Loops inside loops multiply their passes, each of
/// which takes its time also where there are few nodes.
Status GraphImport::beginPass(const Iteration &iteration, size_t nodesBefore) {
  iteration.draft->getRegion(0).getBlocks().clear();
  constexpr size_t kNodesLikeAPass = 50;
  if (importedNodes > nodesBefore)
    repeatedNodes += importedNodes - nodesBefore + kNodesLikeAPass;
  importedNodes = nodesBefore;
  if (repeatedNodes > options.mostRepeatedNodes)
    return emitter.fail(iteration.node.op_type(),
                        "the bodies of loops are imported again and again for other extents, with "
                        "more than {} nodes altogether",
                        options.mostRepeatedNodes);
  return Status::success();
}

Status GraphImport::importIteration(Iteration &iteration, Scope &scope) {
  const std::string &op = iteration.node.op_type();
  const onnx::GraphProto &graph = iteration.body;
  if (Status status = enterIteration(iteration); !status)
    return status;
  if (Status status = checkInputs(iteration); !status)
    return status;
  Region &region = iteration.draft->getRegion(0);
  OpBuilder::InsertionGuard guard(emitter.builder);
  const size_t nodesBefore = importedNodes;
  for (bool changed = true; changed;) {
    changed = false;
    if (Status status = beginPass(iteration, nodesBefore); !status)
      return status;
    Block &block = region.emplaceBlock();
    for (const graph::ValueFacts &facts : iteration.arguments)
      emitter.declare(block.addArgument(
                          graph::tensorType(emitter.builder.getContext(), facts.type, facts.shape),
                          emitter.location),
                      facts);
    emitter.builder.setInsertionPointToEnd(&block);
    Values given(block.getArguments().take_front(iteration.leading.size()));
    std::vector<std::string> names; // of the values that are carried
    for (auto [i, form] : llvm::enumerate(iteration.forms)) {
      size_t first = iteration.leading.size() + names.size();
      size_t count = form ? form->valueCount() : 1;
      SmallVector<Value> parts(block.getArguments().slice(first, count));
      given.push_back(form ? sequences.token(sequences.fromValues(*form, parts)) : parts.front());
      names.insert(names.end(), count, graph.input(int(iteration.firstCarried + i)).name());
    }
    llvm::append_range(given, block.getArguments().take_back(iteration.trailing.size()));
    Expected<Values> results = importBody(graph, given, scope);
    Expected<std::optional<Values>> apart =
        results ? takeApart(iteration, *results)
                : Expected<std::optional<Values>>(results.takeError());
    if ((!apart && declareForms(iteration)) || (apart && !*apart)) {
      emitter.shapesContradict = false; // which is over
      if (Status status = enterIteration(iteration); !status)
        return status;
      changed = true;
      continue;
    }
    if (!apart)
      return apart.takeError();
    Values &yielded = **apart;
    for (size_t i = 0; i < names.size(); ++i) {
      graph::ValueFacts &argument = iteration.arguments[iteration.leading.size() + i];
      Value after = yielded[iteration.firstYielded + i];
      if (emitter.type(after) != argument.type)
        return emitter.fail(op, "'{}', carried from iteration to iteration, changes its type",
                            names[i]);
      if (emitter.rank(after) != argument.shape.size())
        return emitter.fail(op,
                            "'{}', carried from iteration to iteration, changes its number of "
                            "dimensions from {} to {}, which is not supported",
                            names[i], argument.shape.size(), emitter.rank(after));
      graph::Shape shape = emitter.shape(after);
      for (size_t d = 0; d < shape.size(); ++d) { // a symbol of the body's own takes any value
        std::vector<std::string> symbolNames = argument.shape[d].symbols();
        if (symbolNames.size() == 1 && argument.shape[d] == Extent::symbol(symbolNames[0]) &&
            !iteration.outside.contains(symbolNames[0]))
          shape[d] = argument.shape[d];
      }
      changed |= graph::generalize(argument.shape, shape, [&](size_t d) {
        return symbols.fresh(emitter.label + "_" + names[i], d, 0);
      });
    }
    if (!changed)
      iteration.yielded = std::move(yielded);
  }
  graph::YieldOp::create(emitter.builder, emitter.location, iteration.yielded);
  return Status::success();
}

/// Facts of what a loop or scan has carried once it is through.
std::vector<graph::ValueFacts> GraphImport::carriedResults(const Iteration &iteration) {
  std::vector<graph::ValueFacts> results;
  for (size_t i = 0; i < iteration.carriedValues(); ++i) {
    size_t place = iteration.leading.size() + i;
    Value initial = iteration.draft->getOperand(unsigned(place));
    results.push_back(
        typeOnly(emitter.type(initial),
                 graph::afterIterations(
                     emitter.shape(initial), iteration.arguments[place].shape, [&](size_t d) {
                       return symbols.fresh(emitter.label + "_" + std::to_string(i), d, 0);
                     })));
  }
  return results;
}

/// What a loop or scan gives that runs not at all, and whose body contradicts what it would get.
/// What would be stacked up has the extents that the body declares.
Expected<Values> GraphImport::withoutIterations(const Iteration &iteration, const Error &error,
                                                ArrayRef<int64_t> axes) {
  Values results = iteration.initial;
  const int first = int(iteration.firstYielded + iteration.carried);
  for (int i = first; i < iteration.body.output_size(); ++i) {
    const onnx::TypeProto::Tensor &declared = iteration.body.output(i).type().tensor_type();
    dvt_type type = elementType(declared.elem_type());
    if (!declared.has_shape() || !graph::toElementType(emitter.builder.getContext(), type) ||
        typeBits(type) < 8)
      return error;
    std::vector<int64_t> extents;
    int64_t count = 1;
    for (const onnx::TensorShapeProto::Dimension &dimension : declared.shape().dim()) {
      extents.push_back(std::max<int64_t>(dimension.dim_value(), 0));
      if (__builtin_mul_overflow(count, std::max<int64_t>(extents.back(), 1), &count))
        return error;
    }
    int64_t axis = axes.empty() ? 0 : axes[size_t(i - first)], rank = int64_t(extents.size()) + 1;
    if (axis < -rank || axis >= rank)
      return error;
    extents.insert(extents.begin() + axis + (axis < 0 ? rank : 0), 0);
    results.push_back(sequences.zeros(type, extents));
  }
  iteration.draft->erase();
  emitter.shapesContradict = false;
  return results;
}

Expected<Values> GraphImport::importLoop(const onnx::NodeProto &node, Scope &scope) {
  const onnx::AttributeProto *attribute = findAttribute(node, "body");
  if (!attribute || !attribute->has_g())
    return emitter.fail("Loop", "lacks its body");
  const onnx::GraphProto &body = attribute->g();
  Expected<Values> operands = operandsOf(node, scope);
  if (!operands)
    return operands;
  operands->resize(std::max<size_t>(operands->size(), 2));
  size_t carried = operands->size() - 2;
  if (size_t(body.input_size()) != carried + 2 || size_t(body.output_size()) < carried + 1 ||
      node.output_size() > body.output_size() - 1)
    return emitter.fail("Loop",
                        "its body has {} inputs and {} outputs; with {} carried values it needs "
                        "{} inputs, and an output for each, for the condition and for what the "
                        "node gives",
                        body.input_size(), body.output_size(), carried, carried + 2);
  auto isOne = [&](Value value, dvt_type type) {
    return !value || (!sequences.isToken(value) && emitter.type(value) == type &&
                      elementCount(emitter.shape(value)).staticValue().value_or(1) == 1);
  };
  if (!isOne((*operands)[0], DVT_I64) || !isOne((*operands)[1], DVT_BOOL))
    return emitter.fail("Loop", "the trip count must be one INT64 and the condition one BOOL");

  Iteration iteration{node, body, nullptr, 2, carried, 1, {}};
  iteration.leading.push_back(typeOnly(DVT_I64, {}));
  iteration.leading.push_back(typeOnly(DVT_BOOL, {}));
  iteration.leading[1].elements = graph::Elements{Extent(1)}; // or there is no iteration
  OperationState state(emitter.location, graph::LoopOp::getOperationName());
  for (auto [i, value] : llvm::enumerate(*operands)) {
    if (i < 2) {
      state.operands.push_back(value ? value
                                     : graph::NoneOp::create(emitter.builder, emitter.location,
                                                             emitter.builder.getNoneType())
                                           .getResult());
      continue;
    }
    if (!value)
      return emitter.fail("Loop", "input {} is absent, which is not supported", i);
    if (const Optional *optional = sequences.optional(value)) {
      if (optional->known != true)
        return emitter.fail("Loop", "input {} is an optional, which is not supported", i);
      value = optional->element;
    }
    iteration.initial.push_back(value);
    std::optional<SequenceForm> &form = iteration.forms.emplace_back();
    if (const Sequence *sequence = sequences.sequence(value)) {
      Expected<SequenceForm> first = sequences.formOf(*sequence);
      if (!first)
        return first.takeError();
      form = std::move(*first);
    }
  }
  // Both forms of a single element are in use; the declared one is what the body's ops expect.
  for (int i : {0, 1})
    if (body.input(i).type().tensor_type().shape().dim_size() == 1)
      iteration.leading[size_t(i)].shape = {Extent(1)};
  state.addRegion();
  iteration.draft = emitter.builder.create(state);
  auto known = [&](Value value) -> std::optional<int64_t> {
    std::optional<std::vector<int64_t>> numbers = emitter.knownInts(value);
    return numbers && numbers->size() == 1 ? std::optional(numbers->front()) : std::nullopt;
  };
  Value trips = (*operands)[0], condition = (*operands)[1];
  std::optional<int64_t> count = trips ? known(trips) : std::nullopt;
  emitter.shapesContradict = false;
  if (Status status = importIteration(iteration, scope); !status) {
    bool neverRuns = count.value_or(1) <= 0 || (condition && known(condition) == 0);
    return neverRuns && emitter.shapesContradict ? withoutIterations(iteration, status.error(), {})
                                                 : status.takeError();
  }
  if (!isOne(iteration.yielded[0], DVT_BOOL))
    return emitter.fail("Loop", "its body gives a condition that is not one BOOL");

  std::vector<graph::ValueFacts> results = carriedResults(iteration);
  size_t carriedValues = results.size();
  auto fresh = [&](size_t result) {
    return [this, result](size_t d) {
      return symbols.fresh(emitter.label + "_" + std::to_string(result), d, 0);
    };
  };
  auto isTrue = [&](Value value) { return !value || known(value) == 1; };
  std::optional<Extent> length;
  if (count && isTrue(condition) && isTrue(iteration.yielded[0]))
    length = Extent(std::max<int64_t>(*count, 0));
  for (size_t i = carriedValues; i + 1 < iteration.yielded.size(); ++i) {
    Value element = iteration.yielded[i + 1];
    if (typeBits(emitter.type(element)) < 8)
      return emitter.fail("Loop", "stacks up elements of less than a byte, which is not supported");
    if (!length)
      length = symbols.fresh(emitter.label + "_iterations", 0, 0);
    results.push_back(
        typeOnly(emitter.type(element),
                 graph::stacked(emitter.shape(element), *length, 0, iteration.outside, fresh(i))));
  }
  Values values = finish(iteration.draft, results), named;
  size_t next = 0;
  for (const std::optional<SequenceForm> &form : iteration.forms) {
    size_t count = form ? form->valueCount() : 1;
    ArrayRef<Value> parts = ArrayRef<Value>(values).slice(next, count);
    named.push_back(form ? sequences.token(sequences.fromValues(*form, parts)) : parts.front());
    next += count;
  }
  named.append(values.begin() + int64_t(next), values.end());
  return named;
}

Expected<Values> GraphImport::importScan(const onnx::NodeProto &node, int version, Scope &scope) {
  if (version < 9)
    return emitter.fail("Scan", "its form of op set 8, with a batch dimension and lengths of "
                                "sequences, is not supported; export the model for op set 9 or "
                                "later");
  const onnx::AttributeProto *attribute = findAttribute(node, "body");
  if (!attribute || !attribute->has_g())
    return emitter.fail("Scan", "lacks its body");
  const onnx::GraphProto &body = attribute->g();
  Expected<OpAttributes> attributes = readAttributes(node, scope);
  if (!attributes)
    return attributes.takeError();
  auto list = [&](const char *name) {
    auto found = attributes->plain.find(name);
    auto *numbers = found == attributes->plain.end()
                        ? nullptr
                        : std::get_if<std::vector<int64_t>>(&found->second);
    return numbers ? *numbers : std::vector<int64_t>();
  };
  auto number = attributes->plain.find("num_scan_inputs");
  int64_t scanned = number == attributes->plain.end() ? 0 : std::get<int64_t>(number->second);
  if (scanned < 1 || scanned > node.input_size() || body.input_size() != node.input_size() ||
      node.output_size() > body.output_size() ||
      body.output_size() < node.input_size() - int(scanned))
    return emitter.fail("Scan",
                        "goes through {} inputs of {}, with a body of {} inputs and {} outputs; it "
                        "needs at least one, and a body with as many inputs as the node and an "
                        "output for each carried value",
                        scanned, node.input_size(), body.input_size(), body.output_size());
  size_t carried = size_t(node.input_size()) - size_t(scanned),
         stacked = size_t(body.output_size()) - carried;
  Expected<Values> operands = operandsOf(node, scope);
  if (!operands)
    return operands;
  // Axes and directions, filled in and counted from the front.
  auto filled = [&](const char *name, size_t count) -> Expected<std::vector<int64_t>> {
    std::vector<int64_t> numbers = list(name);
    if (numbers.size() != count && !numbers.empty())
      return emitter.fail("Scan", "'{}' has {} elements, {} are needed", name, numbers.size(),
                          count);
    numbers.resize(count, 0);
    return numbers;
  };
  auto fromFront = [&](int64_t &axis, size_t rank) -> Status {
    if (axis < -int64_t(rank) || axis >= int64_t(rank))
      return emitter.fail("Scan", "a tensor of {} dimensions has no axis {}", rank, axis);
    axis += axis < 0 ? int64_t(rank) : 0;
    return Status::success();
  };
  auto axes = filled("scan_input_axes", size_t(scanned)),
       directions = filled("scan_input_directions", size_t(scanned)),
       stackedAxes = filled("scan_output_axes", stacked),
       stackedDirections = filled("scan_output_directions", stacked);
  for (auto *numbers : {&axes, &directions, &stackedAxes, &stackedDirections})
    if (!*numbers)
      return numbers->takeError();
  for (auto *numbers : {&directions, &stackedDirections})
    for (int64_t direction : **numbers)
      if (direction != 0 && direction != 1)
        return emitter.fail("Scan", "a direction is {}, where it must be 0 or 1", direction);

  Iteration iteration{node, body, nullptr, 0, carried, 0, {}};
  std::optional<Extent> length;
  for (auto [i, value] : llvm::enumerate(*operands)) {
    if (!value)
      return emitter.fail("Scan", "input {} is absent", i);
    if (sequences.isToken(value))
      return emitter.fail("Scan", "input {} is {}, where it must be a tensor", i,
                          sequences.kindOf(value));
    graph::Shape shape = emitter.shape(value);
    if (i >= carried) {
      int64_t &axis = (*axes)[i - carried];
      if (Status status = fromFront(axis, shape.size()); !status)
        return status.takeError();
      if (typeBits(emitter.type(value)) < 8)
        return emitter.fail("Scan",
                            "goes through elements of less than a byte, which is not supported");
      const Extent &mine = shape[size_t(axis)];
      if (length && length->isStatic() && mine.isStatic() && *length != mine)
        return emitter.fail("Scan",
                            "goes through {} elements of one input and {} of another; both must be "
                            "as many",
                            length->text(), mine.text());
      if (!length || (!length->isStatic() && mine.isStatic()))
        length = mine;
      shape = graph::elementsAlong(shape, size_t(axis));
    }
    if (i >= carried) {
      iteration.trailing.push_back(typeOnly(emitter.type(value), shape));
      continue;
    }
    iteration.initial.push_back(value);
    iteration.forms.emplace_back();
  }
  OperationState state(emitter.location, graph::ScanOp::getOperationName());
  state.addOperands(*operands);
  state.addRegion();
  iteration.draft = emitter.builder.create(state);
  emitter.shapesContradict = false;
  if (Status status = importIteration(iteration, scope); !status)
    return length->staticValue() == 0 && emitter.shapesContradict
               ? withoutIterations(iteration, status.error(), *stackedAxes)
               : status.takeError();

  std::vector<graph::ValueFacts> results = carriedResults(iteration);
  auto fresh = [&](size_t result) {
    return [this, result](size_t d) {
      return symbols.fresh(emitter.label + "_" + std::to_string(result), d, 0);
    };
  };
  for (size_t i = 0; i < stacked; ++i) {
    Value element = iteration.yielded[carried + i];
    int64_t &axis = (*stackedAxes)[i];
    if (Status status = fromFront(axis, emitter.rank(element) + 1); !status)
      return status.takeError();
    if (typeBits(emitter.type(element)) < 8)
      return emitter.fail("Scan", "stacks up elements of less than a byte, which is not supported");
    results.push_back(typeOnly(emitter.type(element),
                               graph::stacked(emitter.shape(element), *length, size_t(axis),
                                              iteration.outside, fresh(carried + i))));
  }
  Builder &builder = emitter.builder;
  iteration.draft->setAttr("scan_input_axes", builder.getDenseI64ArrayAttr(*axes));
  iteration.draft->setAttr("scan_input_directions", builder.getDenseI64ArrayAttr(*directions));
  iteration.draft->setAttr("scan_output_axes", builder.getDenseI64ArrayAttr(*stackedAxes));
  iteration.draft->setAttr("scan_output_directions",
                           builder.getDenseI64ArrayAttr(*stackedDirections));
  return finish(iteration.draft, results);
}

} // namespace dovetail::importer
