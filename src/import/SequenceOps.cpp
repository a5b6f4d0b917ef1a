// SPDX-License-Identifier: Apache-2.0
//
// The ops on sequences and optionals, and what branches that give them have in common. What takes
// a loop is written as ONNX nodes and imported like a function of the model.
#include "import/GraphImport.h"

#include <onnx/onnx_pb.h>

#include "graph/GraphDialect.h"
#include "graph/TensorType.h"
#include "import/Chain.h"

using namespace mlir;

namespace dovetail::importer {
namespace {

constexpr size_t kMostListed = 64; ///< parts of a split that become values of their own

/// Writes ONNX nodes.
struct NodeWriter {
  google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes;
  std::string prefix{}; ///< of values' names, which those of nodes do without

  using Names = std::initializer_list<std::string>;
  onnx::NodeProto &operator()(const char *op, Names inputs, Names outputs) {
    onnx::NodeProto &node = *nodes.Add();
    node.set_op_type(op);
    for (const std::string &input : inputs)
      node.add_input(input);
    for (const std::string &output : outputs)
      node.add_output(output);
    std::string_view first = *outputs.begin();
    if (first.starts_with(prefix))
      first.remove_prefix(prefix.size());
    node.set_name(fmt::format("{} of {}", op, first));
    return node;
  }
  void number(const char *name, int64_t value) {
    set((*this)("Constant", {}, {name}), "value_int", value);
  }
  static void set(onnx::NodeProto &node, const char *name, int64_t value) {
    onnx::AttributeProto &attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
  }
  static onnx::GraphProto &body(onnx::NodeProto &loop, Names inputs, Names outputs) {
    onnx::AttributeProto &attribute = *loop.add_attribute();
    attribute.set_name("body");
    attribute.set_type(onnx::AttributeProto::GRAPH);
    for (const std::string &input : inputs)
      attribute.mutable_g()->add_input()->set_name(input);
    for (const std::string &output : outputs)
      attribute.mutable_g()->add_output()->set_name(output);
    return *attribute.mutable_g();
  }
};

std::shared_ptr<onnx::FunctionProto> makeFunction(std::initializer_list<const char *> inputs,
                                                  const char *output) {
  auto function = std::make_shared<onnx::FunctionProto>();
  onnx::OperatorSetIdProto &set = *function->add_opset_import();
  set.set_version(17);
  for (const char *input : inputs)
    function->add_input(input);
  function->add_output(output);
  return function;
}

} // namespace

/// What two branches give for one result, as values that both can give.
struct GraphImport::Joint {
  enum class Kind : uint8_t { Tensor, List, Packed, Optional } kind = Kind::Tensor;
  dvt_type type = DVT_F32;
  std::vector<size_t> ranks; ///< List: of its elements
  SequenceForm form;         ///< Packed
  std::optional<bool> known; ///< Optional
  bool hasElement = false;   ///< Optional: some branch may have one
  std::shared_ptr<Joint> element;
  size_t rank = 0; ///< Tensor, for a branch without one
};

Expected<Value> GraphImport::expand(std::shared_ptr<const onnx::FunctionProto> function,
                                    ArrayRef<Value> operands) {
  expanded.push_back(function);
  OpSets sets{{"", int(function->opset_import(0).version())}};
  Scope scope;
  scope.opSets = &sets;
  std::string label = emitter.label;
  Location location = emitter.location;
  scope.prefix = label + "/";
  for (auto [name, operand] : llvm::zip(function->input(), operands))
    scope.values[name] = operand;
  Expected<Values> results = importNodes(function->node(), {function->output(0)}, scope);
  emitter.label = label;
  emitter.location = location;
  if (!results)
    return results.takeError();
  return results->front();
}

/// Begins with the first element and appends one after the other.
Expected<Value> GraphImport::joinInLoop(Value sequence, int64_t axis, bool newAxis) {
  auto function = makeFunction({"all"}, "joined");
  NodeWriter add{*function->mutable_node()};
  add.number("zero", 0);
  add.number("one", 1);
  add("SequenceLength", {"all"}, {"length"});
  add("Sub", {"length", "one"}, {"others"});
  auto element = [&](NodeWriter &to, const char *index, const char *name, const char *whole) {
    to("SequenceAt", {"all", index}, {newAxis ? whole : name});
    if (!newAxis)
      return;
    auto &axes = to("Constant", {}, {"axes"});
    onnx::AttributeProto &attribute = *axes.add_attribute();
    attribute.set_name("value_ints");
    attribute.set_type(onnx::AttributeProto::INTS);
    attribute.add_ints(axis);
    axes.set_output(0, std::string(name) + " axes");
    to("Unsqueeze", {whole, axes.output(0)}, {name});
  };
  element(add, "zero", "first", "first element");
  onnx::NodeProto &loop = add("Loop", {"others", "", "first"}, {"joined"});
  onnx::GraphProto &body = NodeWriter::body(loop, {"i", "go", "before"}, {"go on", "after"});
  NodeWriter inner{*body.mutable_node()};
  inner("Identity", {"go"}, {"go on"});
  inner("Add", {"i", "one"}, {"next"});
  element(inner, "next", "part", "element");
  NodeWriter::set(inner("Concat", {"before", "part"}, {"after"}), "axis", axis);
  return expand(function, sequence);
}

/// Parts of `chunk` each, the last of what is left.
Expected<Value> GraphImport::splitInLoop(Value tensor, Value chunk, int64_t axis) {
  auto function = makeFunction({"tensor", "chunk"}, "parts");
  NodeWriter add{*function->mutable_node()};
  auto vector = [&](const char *name, int64_t value) {
    onnx::AttributeProto &attribute = *add("Constant", {}, {name}).add_attribute();
    attribute.set_name("value_ints");
    attribute.set_type(onnx::AttributeProto::INTS);
    attribute.add_ints(value);
  };
  add.number("one", 1);
  vector("axis", axis);
  vector("row", 1);
  onnx::NodeProto &shape = add("Shape", {"tensor"}, {"extents"});
  NodeWriter::set(shape, "start", axis);
  NodeWriter::set(shape, "end", axis + 1);
  add("Squeeze", {"extents"}, {"extent"});
  // Rounded up without a sum, which a large length of parts would make overflow.
  add("Div", {"extent", "chunk"}, {"whole parts"});
  add("Mod", {"extent", "chunk"}, {"rest"});
  add("Min", {"rest", "one"}, {"last part"});
  add("Add", {"whole parts", "last part"}, {"count"});
  NodeWriter::set(add("SequenceEmpty", {}, {"none"}), "dtype", int64_t(emitter.type(tensor)));
  onnx::NodeProto &loop = add("Loop", {"count", "", "none"}, {"parts"});
  onnx::GraphProto &body = NodeWriter::body(loop, {"i", "go", "before"}, {"go on", "after"});
  NodeWriter inner{*body.mutable_node()};
  inner("Identity", {"go"}, {"go on"});
  inner("Mul", {"i", "chunk"}, {"from"});
  inner("Add", {"from", "chunk"}, {"to"});
  inner("Reshape", {"from", "row"}, {"start"});
  inner("Reshape", {"to", "row"}, {"end"});
  inner("Slice", {"tensor", "start", "end", "axis"}, {"part"});
  inner("SequenceInsert", {"before", "part"}, {"after"});
  return expand(function, {tensor, chunk});
}

Expected<bool> GraphImport::concernsSequences(const NodeImport &node) const {
  if (node.op == "Identity")
    return false;
  if (const graph::OpInfo *info = graph::findOnnxOp(node.op);
      (info && info->kind == graph::OpKind::Sequence) || node.op == "Optional")
    return true;
  for (auto [i, operand] : llvm::enumerate(node.operands))
    if (sequences.isToken(operand))
      return node.fail("operand {} is {}, where a tensor is needed", i, sequences.kindOf(operand));
  return false;
}

Expected<Values> GraphImport::importSequenceOp(NodeImport &node) {
  const std::string &op = node.op;
  auto one = [](Expected<Value> value) -> Expected<Values> {
    return value ? Expected<Values>(Values{*value}) : value.takeError();
  };
  auto made = [&](Expected<Sequence> sequence) -> Expected<Values> {
    return sequence ? Expected<Values>(Values{sequences.token(std::move(*sequence))})
                    : sequence.takeError();
  };
  if (op.starts_with("Optional"))
    return importOptional(node);
  if (op == "SequenceEmpty") {
    auto type = dvt_type(node.integer("dtype", DVT_F32));
    if (!graph::toElementType(emitter.builder.getContext(), type))
      return node.fail("a sequence of elements of type {} is not supported", int(type));
    return made(Sequence{type, Sequence::Form::Listed, {}});
  }
  bool fromTensors = op == "SequenceConstruct" || op == "SplitToSequence";
  for (auto [i, operand] : llvm::enumerate(node.operands)) {
    bool isOptional = i > 0 && (op == "SplitToSequence" || op == "SequenceErase" || i > 1);
    if (!operand && (op == "SequenceConstruct" || !isOptional))
      return node.fail("operand {} is absent", i);
    bool wanted = i == 0 && !fromTensors;
    if (operand && bool(sequences.sequence(operand)) != wanted)
      return node.fail("operand {} must be {}", i, wanted ? "a sequence" : "a tensor");
    if (operand && sequences.optional(operand))
      return node.fail("operand {} is an optional; OptionalGetElement gives what is in it", i);
  }
  if (op == "SequenceConstruct") {
    Sequence list{emitter.type(node.operands[0]), Sequence::Form::Listed, node.operands};
    for (Value element : node.operands)
      if (emitter.type(element) != list.type)
        return node.fail("its elements differ in type");
    return made(std::move(list));
  }
  if (op == "SplitToSequence")
    return importSplitToSequence(node);
  if (!node.operand(0))
    return node.fail("needs a sequence");
  const Sequence sequence = *sequences.sequence(node.operand(0));
  if (op == "SequenceLength")
    return one(sequences.length(sequence));
  if (op == "SequenceAt")
    return one(sequences.at(sequence, node.operand(1)));
  if (op == "SequenceInsert")
    return made(sequences.insert(sequence, node.operand(1), node.operand(2)));
  if (op == "SequenceErase")
    return made(sequences.erase(sequence, node.operand(1)));
  if (op != "ConcatFromSequence")
    return node.fail("this op is not supported yet");
  int64_t axis = node.integer("axis", 0);
  bool newAxis = node.integer("new_axis", 0) != 0;
  if (sequence.form != Sequence::Form::Ragged)
    return one(sequences.concat(sequence, axis, newAxis));
  int64_t axes = emitter.shape(sequence.values[1])[1].value() + (newAxis ? 1 : 0);
  if (axis < -axes || axis >= axes)
    return node.fail("axis {} is outside [{}, {}]", axis, -axes, axes - 1);
  return one(joinInLoop(node.operand(0), axis + (axis < 0 ? axes : 0), newAxis));
}

Expected<Values> GraphImport::importSplitToSequence(NodeImport &node) {
  Value tensor = node.operand(0), split = node.operand(1);
  int64_t rank = int64_t(emitter.rank(tensor)), axis = node.integer("axis", 0);
  if (axis < -rank || axis >= rank)
    return node.fail("axis {} is outside [{}, {}]", axis, -rank, rank - 1);
  axis += axis < 0 ? rank : 0;
  bool keep = node.integer("keepdims", 1) != 0 || split;
  std::optional<int64_t> extent = emitter.shape(tensor)[size_t(axis)].staticValue();
  std::optional<std::vector<int64_t>> sizes = split ? emitter.knownInts(split) : std::nullopt;
  bool isChunk =
      split && elementCount(emitter.shape(split)).staticValue() == 1 && emitter.rank(split) == 0;
  if (isChunk && sizes && sizes->front() <= 0)
    return node.fail("parts of {} elements are asked for", sizes->front());
  if (sizes && sizes->empty() && extent != 0) {
    emitter.shapesContradict = true;
    return node.fail("no parts are asked for, of {} elements",
                     emitter.shape(tensor)[size_t(axis)].text());
  }
  if (!split && (!extent || size_t(*extent) > kMostListed)) {
    Expected<Sequence> all = sequences.slices(tensor, axis, keep);
    return all ? Expected<Values>(Values{sequences.token(std::move(*all))}) : all.takeError();
  }
  if (split && !isChunk && !sizes)
    return node.fail("'split' with lengths that only the run tells is not supported; one length "
                     "for all parts is");
  bool areMany = isChunk && sizes && extent && *extent / sizes->front() >= int64_t(kMostListed) &&
                 *extent > sizes->front() * int64_t(kMostListed);
  if (isChunk && (!sizes || !extent || areMany)) {
    Chain chain(emitter);
    Value chunk = chain.take(sequences.scalarOf(split, "length of parts"));
    Value isLength = chain("Greater", {chunk, emitter.intScalar(0)});
    if (chain.error)
      return *chain.error;
    chunk = guarded(emitter, chunk, isLength,
                    node.fail("the length of parts is not above zero").message);
    Value parts = chain.take(splitInLoop(tensor, chunk, axis));
    return chain.error ? Expected<Values>(*chain.error) : Expected<Values>(Values{parts});
  }
  if (!split)
    sizes = std::vector<int64_t>(size_t(*extent), 1);
  if (isChunk) {
    int64_t chunk = sizes->front();
    sizes->assign(size_t(*extent / chunk), chunk);
    if (*extent % chunk)
      sizes->push_back(*extent % chunk);
  }
  Values parts;
  if (!sizes->empty()) {
    OpAttributes attributes;
    attributes.plain["axis"] = axis;
    Expected<Values> split =
        emitter.emit("Split", {tensor, emitter.ints(*sizes)}, std::move(attributes), sizes->size());
    if (!split)
      return split;
    parts = std::move(*split);
  }
  for (Value &part : parts) {
    if (keep)
      break;
    Expected<Value> without = emitter.emit("Squeeze", {part, emitter.ints({axis})});
    if (!without)
      return without.takeError();
    part = *without;
  }
  return Values{sequences.token(Sequence{emitter.type(tensor), Sequence::Form::Listed, parts})};
}

/// The body once for each element where the sequences are listed; else in a loop.
Expected<Values> GraphImport::importSequenceMap(const onnx::NodeProto &node, Scope &scope) {
  const onnx::GraphProto *graph = nullptr;
  for (const onnx::AttributeProto &attribute : node.attribute())
    if (attribute.name() == "body")
      graph = &attribute.g();
  Expected<Values> operands = operandsOf(node, scope);
  if (!operands)
    return operands;
  if (!graph || graph->input_size() != node.input_size() ||
      node.output_size() > graph->output_size() || operands->empty() ||
      !sequences.sequence(operands->front()))
    return emitter.fail("SequenceMap", "needs a sequence first, and a body with an input for each "
                                       "of its inputs and an output for each of its outputs");
  bool listed = true;
  size_t count = sequences.sequence(operands->front())->values.size();
  for (auto [i, operand] : llvm::enumerate(*operands)) {
    if (!operand || sequences.optional(operand))
      return emitter.fail("SequenceMap", "input {} is neither a tensor nor a sequence", i);
    if (const Sequence *sequence = sequences.sequence(operand))
      listed &= sequence->form == Sequence::Form::Listed && sequence->values.size() <= kMostListed;
  }
  for (Value operand : *operands)
    if (const Sequence *sequence = sequences.sequence(operand);
        sequence && listed && sequence->values.size() < count)
      return emitter.fail("SequenceMap", "one of its sequences is shorter than the first");
  size_t outputs = size_t(node.output_size());
  if (count == 0) {
    Values tokens;
    for (size_t k = 0; k < outputs; ++k) {
      dvt_type type = elementType(graph->output(int(k)).type().tensor_type().elem_type());
      if (!graph::toElementType(emitter.builder.getContext(), type))
        return emitter.fail("SequenceMap", "output {} of its body has no declared type", k);
      tokens.push_back(sequences.token(Sequence{type, Sequence::Form::Listed, {}}));
    }
    return tokens;
  }
  if (listed) {
    std::vector<Values> columns(outputs);
    for (size_t i = 0; i < count; ++i) {
      Values given;
      for (Value operand : *operands) {
        const Sequence *sequence = sequences.sequence(operand);
        given.push_back(sequence ? sequence->values[i] : operand);
      }
      Expected<Values> results = importBody(*graph, given, scope);
      if (!results)
        return results;
      for (size_t k = 0; k < outputs; ++k) {
        if (sequences.isToken((*results)[k]))
          return emitter.fail("SequenceMap", "its body gives {}, where it must give a tensor",
                              sequences.kindOf((*results)[k]));
        columns[k].push_back((*results)[k]);
      }
    }
    Values tokens;
    for (Values &column : columns)
      tokens.push_back(sequences.token(
          Sequence{emitter.type(column.front()), Sequence::Form::Listed, std::move(column)}));
    return tokens;
  }
  // A loop whose body is that of the node, between what takes elements out and puts them in. The
  // nodes of the model stand among those made here, whose names must therefore be none of its own.
  const std::string prefix = emitter.label + " ";
  auto own = [&](const char *name) { return prefix + name; };
  auto ownOf = [&](const char *name, auto number) {
    return fmt::format("{}{} {}", prefix, name, number);
  };
  auto function = std::make_shared<onnx::FunctionProto>();
  NodeWriter add{*function->mutable_node(), prefix};
  std::vector<std::string> names;
  for (int i = 0; i < node.input_size(); ++i)
    names.push_back(ownOf("operand", i));
  const std::string length = own("length"), index = own("index"), before = own("go on"),
                    after = own("still go on");
  add("SequenceLength", {names[0]}, {length});
  onnx::NodeProto &loop = add("Loop", {length, ""}, {own("results")});
  loop.clear_output();
  onnx::GraphProto &body = NodeWriter::body(loop, {index, before}, {after});
  NodeWriter inner{*body.mutable_node(), prefix};
  inner("Identity", {before}, {after});
  for (int i = 0; i < node.input_size(); ++i) {
    bool isSequence = sequences.sequence((*operands)[size_t(i)]);
    const std::string &given = names[size_t(i)], &name = graph->input(i).name();
    isSequence ? inner("SequenceAt", {given, index}, {name}) : inner("Identity", {given}, {name});
  }
  body.mutable_initializer()->MergeFrom(graph->initializer());
  for (const onnx::NodeProto &original : graph->node())
    *body.add_node() = original;
  std::vector<std::string> results;
  for (size_t k = 0; k < outputs; ++k) {
    const std::string empty = ownOf("nothing yet of", k), some = ownOf("part of", k),
                      more = ownOf("more of", k), result = ownOf("all of", k);
    int type = graph->output(int(k)).type().tensor_type().elem_type();
    if (!type)
      return emitter.fail("SequenceMap", "output {} of its body has no declared type", k);
    NodeWriter::set(add("SequenceEmpty", {}, {empty}), "dtype", type);
    inner("SequenceInsert", {some, graph->output(int(k)).name()}, {more});
    body.add_input()->set_name(some);
    body.add_output()->set_name(more);
    loop.add_input(empty);
    loop.add_output(result);
    results.push_back(result);
  }
  // SequenceEmpty stands behind the loop in the list; nodes are brought into order anyway.
  expanded.push_back(function);
  Scope mapped;
  mapped.enclosing = &scope;
  mapped.opSets = scope.opSets;
  mapped.arguments = scope.arguments;
  mapped.prefix = emitter.label + "/";
  mapped.depth = scope.depth + 1;
  for (auto [name, operand] : llvm::zip(names, *operands))
    mapped.values[name] = operand;
  std::string label = emitter.label;
  Expected<Values> tokens = importNodes(function->node(), results, mapped);
  emitter.label = label;
  return tokens;
}

Expected<Values> GraphImport::importOptional(NodeImport &node) {
  Value operand = node.operand(0);
  const importer::Optional *optional = sequences.optional(operand);
  if (node.op == "Optional") {
    if (optional)
      return node.fail("an optional in an optional is not supported");
    return Values{sequences.token(importer::Optional{operand != nullptr, {}, operand})};
  }
  if (node.op == "OptionalHasElement") {
    if (optional && !optional->known)
      return Values{optional->has};
    bool has = optional ? *optional->known : operand != nullptr;
    return Values{emitter.scalar(DVT_BOOL, has ? 1 : 0)};
  }
  if (!operand || (optional && optional->known == false)) {
    emitter.shapesContradict = true; // a branch that asks first is never taken
    return node.fail("the optional has no element");
  }
  if (!optional || optional->known)
    return Values{optional ? optional->element : operand};
  // What is not there when running is an error then.
  Value inside = optional->element;
  Expected<Joint> joint = jointOf(inside, inside, 0);
  if (!joint)
    return joint.takeError();
  Values parts;
  if (Status status = divide(*joint, inside, parts); !status)
    return status.takeError();
  OperationState state(emitter.location, graph::IfOp::getOperationName());
  state.addOperands(optional->has);
  state.addRegion()->emplaceBlock();
  state.addRegion()->emplaceBlock();
  Operation *draft = emitter.builder.create(state);
  Values refused = refusal(*draft, 1, node.fail("the optional has no element").message, parts);
  Expected<Values> results = finishBranches(draft, parts, refused);
  if (!results)
    return results;
  ArrayRef<Value> rest = *results;
  return Values{reassemble(*joint, rest)};
}

Expected<GraphImport::Joint> GraphImport::jointOf(Value yes, Value no, size_t output) {
  Joint joint;
  const importer::Optional *a = sequences.optional(yes), *b = sequences.optional(no);
  if (a || b) {
    joint.kind = Joint::Kind::Optional;
    auto known = [](const importer::Optional *optional) {
      return optional ? optional->known : std::optional<bool>(true);
    };
    if (known(a) && known(a) == known(b))
      joint.known = known(a);
    Value inA = a ? a->element : yes, inB = b ? b->element : no;
    joint.hasElement = inA || inB;
    if (joint.hasElement) {
      Expected<Joint> element = jointOf(inA ? inA : inB, inB ? inB : inA, output);
      if (!element)
        return element;
      joint.element = std::make_shared<Joint>(std::move(*element));
    }
    return joint;
  }
  const Sequence *first = sequences.sequence(yes), *second = sequences.sequence(no);
  if (bool(first) != bool(second))
    return emitter.fail("If",
                        "output {} is a sequence in one branch and a tensor in the other, which is "
                        "not supported",
                        output);
  if (!first) {
    if (emitter.type(yes) != emitter.type(no) || emitter.rank(yes) != emitter.rank(no))
      return emitter.fail("If",
                          "output {} has other types or numbers of dimensions in the two branches, "
                          "which is not supported",
                          output);
    joint.type = emitter.type(yes);
    joint.rank = emitter.rank(yes);
    return joint;
  }
  joint.type = first->type;
  bool alike = first->form == Sequence::Form::Listed && second->form == Sequence::Form::Listed &&
               first->values.size() == second->values.size() && first->type == second->type;
  for (size_t i = 0; alike && i < first->values.size(); ++i)
    alike = emitter.rank(first->values[i]) == emitter.rank(second->values[i]);
  if (alike) {
    joint.kind = Joint::Kind::List;
    for (Value element : first->values)
      joint.ranks.push_back(emitter.rank(element));
    return joint;
  }
  joint.kind = Joint::Kind::Packed;
  Expected<SequenceForm> form = sequences.formOf(*first), other = sequences.formOf(*second);
  if (form && other)
    form = sequences.join(*form, *other);
  if (!form || !other)
    return form ? other.takeError() : form.takeError();
  joint.form = std::move(*form);
  return joint;
}

/// The values of a branch, for which the builder stands at its end; null gives placeholders.
Status GraphImport::divide(const Joint &joint, Value value, Values &values) {
  switch (joint.kind) {
  case Joint::Kind::Tensor:
    values.push_back(value ? value
                           : sequences.zeros(joint.type, SmallVector<int64_t>(joint.rank, 0)));
    return Status::success();
  case Joint::Kind::Optional: {
    const importer::Optional *optional = sequences.optional(value);
    Value inside = optional ? optional->element : value;
    if (!joint.known)
      values.push_back(optional && optional->has ? optional->has
                                                 : emitter.scalar(DVT_BOOL, inside ? 1 : 0));
    return joint.hasElement ? divide(*joint.element, inside, values) : Status::success();
  }
  case Joint::Kind::List:
    for (size_t i = 0; i < joint.ranks.size(); ++i)
      values.push_back(value
                           ? sequences.sequence(value)->values[i]
                           : sequences.zeros(joint.type, SmallVector<int64_t>(joint.ranks[i], 0)));
    return Status::success();
  case Joint::Kind::Packed: {
    Sequence none{joint.type, Sequence::Form::Listed, {}};
    Expected<Values> parts =
        sequences.valuesIn(value ? *sequences.sequence(value) : none, joint.form);
    if (!parts)
      return parts.takeError();
    llvm::append_range(values, *parts);
    return Status::success();
  }
  }
  return Status::success();
}

Value GraphImport::reassemble(const Joint &joint, ArrayRef<Value> &values) {
  auto take = [&](size_t count) {
    ArrayRef<Value> taken = values.take_front(count);
    values = values.drop_front(count);
    return taken;
  };
  switch (joint.kind) {
  case Joint::Kind::Tensor:
    return take(1).front();
  case Joint::Kind::List: {
    ArrayRef<Value> parts = take(joint.ranks.size());
    return sequences.token(
        Sequence{joint.type, Sequence::Form::Listed, Values(parts.begin(), parts.end())});
  }
  case Joint::Kind::Packed:
    return sequences.token(sequences.fromValues(joint.form, take(joint.form.valueCount())));
  case Joint::Kind::Optional:
    break;
  }
  importer::Optional optional{joint.known, {}, {}};
  if (!joint.known)
    optional.has = take(1).front();
  if (joint.hasElement)
    optional.element = reassemble(*joint.element, values);
  return sequences.token(optional);
}

Expected<Values> GraphImport::joinBranches(Operation *draft, ArrayRef<Value> yes,
                                           ArrayRef<Value> no) {
  std::vector<Joint> joints;
  for (auto [a, b] : llvm::zip(yes, no)) {
    Expected<Joint> joint = jointOf(a, b, joints.size());
    if (!joint)
      return joint.takeError();
    joints.push_back(std::move(*joint));
  }
  Values given[2];
  for (unsigned i = 0; i < 2; ++i) {
    OpBuilder::InsertionGuard guard(emitter.builder);
    emitter.builder.setInsertionPointToEnd(&draft->getRegion(i).front());
    for (auto [joint, value] : llvm::zip(joints, i == 0 ? yes : no))
      if (Status status = divide(joint, value, given[i]); !status)
        return status.takeError();
  }
  Expected<Values> results = finishBranches(draft, given[0], given[1]);
  if (!results)
    return results;
  ArrayRef<Value> rest = *results;
  Values named;
  for (const Joint &joint : joints)
    named.push_back(reassemble(joint, rest));
  return named;
}

} // namespace dovetail::importer
