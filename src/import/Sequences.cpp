// SPDX-License-Identifier: Apache-2.0
//
// Packing and unpacking by ordinary tensor ops: an index out of range is one of Gather's, lengths
// and offsets are numbers like any other, and what the run alone can tell becomes an extent that
// depends on data.
#include "import/Sequences.h"

#include <algorithm>
#include <climits>
#include <functional>

#include <fmt/ranges.h>

#include "graph/GraphDialect.h"
#include "import/Chain.h"

using namespace mlir;

namespace dovetail::importer {
namespace {

bool isStatic(const graph::Shape &shape) {
  return std::all_of(shape.begin(), shape.end(),
                     [](const Extent &extent) { return extent.isStatic(); });
}

/// Numbers of dimensions, "2, 1, 2", of elements that may differ in it.
std::string ranksText(const SequenceForm &form) {
  if (form.isEmpty)
    return "none";
  return form.isListed() ? fmt::format("{}", fmt::join(form.ranks, ", "))
                         : fmt::format("{} each", form.element.size());
}

} // namespace

bool SequenceForm::operator==(const SequenceForm &other) const {
  if (isEmpty || other.isEmpty)
    return isEmpty == other.isEmpty;
  return type == other.type && isStacked == other.isStacked && ranks == other.ranks &&
         element.size() == other.element.size() && (!isStacked || element == other.element);
}

Value Sequences::token(Sequence sequence) {
  Value value =
      graph::NoneOp::create(emitter.builder, emitter.location, emitter.builder.getNoneType());
  optionals.erase(value);
  sequences[value] = std::move(sequence);
  return value;
}

Value Sequences::token(Optional optional) {
  Value value =
      graph::NoneOp::create(emitter.builder, emitter.location, emitter.builder.getNoneType());
  sequences.erase(value);
  optionals[value] = optional;
  return value;
}

const Sequence *Sequences::sequence(Value value) const {
  // A value of a body that was imported again may stand where a token of its first form stood.
  if (!value || !isa<NoneType>(value.getType()))
    return nullptr;
  auto found = sequences.find(value);
  return found == sequences.end() ? nullptr : &found->second;
}

const Optional *Sequences::optional(Value value) const {
  if (!value || !isa<NoneType>(value.getType()))
    return nullptr;
  auto found = optionals.find(value);
  return found == optionals.end() ? nullptr : &found->second;
}

Expected<SequenceForm> Sequences::formOf(const Sequence &sequence) const {
  SequenceForm form;
  form.type = sequence.type;
  if (sequence.form == Sequence::Form::Listed) {
    std::vector<size_t> ranks;
    for (Value element : sequence.values)
      ranks.push_back(emitter.rank(element));
    if (std::adjacent_find(ranks.begin(), ranks.end(), std::not_equal_to<>()) != ranks.end()) {
      form.isEmpty = false;
      form.ranks = std::move(ranks);
      return form;
    }
    for (Value element : sequence.values) {
      SequenceForm one{false, sequence.type, isStatic(emitter.shape(element)),
                       emitter.shape(element)};
      Expected<SequenceForm> both = join(form, one);
      if (!both)
        return both;
      form = std::move(*both);
    }
    return form;
  }
  form.isEmpty = false;
  graph::Shape shape = emitter.shape(sequence.values.back());
  if (sequence.form == Sequence::Form::Ragged) {
    form.element.assign(size_t(shape[1].value()), Extent(0));
    return form;
  }
  shape.erase(shape.begin());
  form.element = shape;
  form.isStacked = isStatic(shape);
  return form;
}

Expected<SequenceForm> Sequences::join(const SequenceForm &a, const SequenceForm &b) const {
  if (a.type != b.type)
    return emitter.fail("sequence", "has elements of the types {} and {}", typeName(a.type),
                        typeName(b.type));
  if (a == b)
    return a;
  if (a.isListed() || b.isListed())
    return emitter.fail("sequence",
                        "has elements whose numbers of dimensions are {} here and {} there; where "
                        "they differ from each other, they must be the same in all iterations and "
                        "branches",
                        ranksText(a), ranksText(b));
  if (a.isEmpty || b.isEmpty)
    return a.isEmpty ? b : a;
  if (a.element.size() != b.element.size())
    return emitter.fail("sequence",
                        "has elements of {} and of {} dimensions, which is supported only where "
                        "each of them is known when compiling",
                        a.element.size(), b.element.size());
  SequenceForm both = a;
  both.isStacked = a.isStacked && b.isStacked && a.element == b.element;
  return both;
}

Status Sequences::checkPackable(const SequenceForm &form, const char *what) const {
  if (!form.isListed())
    return Status::success();
  auto other = std::find_if(form.ranks.begin(), form.ranks.end(),
                            [&](size_t rank) { return rank != form.ranks.front(); });
  return emitter.fail("sequence",
                      "has elements of {} and of {} dimensions, which is supported only {}",
                      form.ranks.front(), *other, what);
}

Value Sequences::zeros(dvt_type type, ArrayRef<int64_t> extents) {
  TensorData data;
  data.type = type;
  data.extents.assign(extents.begin(), extents.end());
  for (int64_t extent : extents)
    data.elements *= extent;
  auto owner = std::make_shared<std::string>(bytesOf(type, data.elements), '\0');
  data.bytes = *owner;
  data.owner = std::move(owner);
  return emitter.constant(data, "zeros");
}

Expected<Value> Sequences::scalarOf(Value value, const char *what) {
  dvt_type type = emitter.type(value);
  if ((type != DVT_I64 && type != DVT_I32) ||
      elementCount(emitter.shape(value)).staticValue().value_or(1) != 1)
    return emitter.fail("sequence", "its {} must be one INT32 or INT64", what);
  Chain chain(emitter);
  if (type != DVT_I64)
    value = chain("Cast", {value}, {{"to", int64_t(DVT_I64)}});
  if (!chain.error && emitter.rank(value) != 0)
    value = chain("Reshape", {value, emitter.ints({})});
  return chain.result(value);
}

std::optional<int64_t> Sequences::knownIndex(Value index) const {
  std::optional<std::vector<int64_t>> known = emitter.knownInts(index);
  return known && known->size() == 1 ? std::optional(known->front()) : std::nullopt;
}

Expected<Values> Sequences::valuesIn(const Sequence &sequence, const SequenceForm &form) {
  if (form.isEmpty)
    return Values{};
  if (form.isListed()) // and so is the sequence
    return sequence.values;
  using Form = Sequence::Form;
  Chain chain(emitter);
  AttributeMap front{{"axis", int64_t(0)}};
  int64_t rank = int64_t(form.element.size());
  if (sequence.form == Form::Listed && form.isStacked) {
    Values rows;
    for (Value element : sequence.values)
      rows.push_back(chain("Unsqueeze", {element, emitter.ints({0})}));
    if (rows.empty()) {
      std::vector<int64_t> extents{0};
      for (const Extent &extent : form.element)
        extents.push_back(extent.value());
      rows.push_back(zeros(form.type, extents));
    }
    Value data = rows.size() == 1 ? rows.front() : chain("Concat", rows, front);
    return chain.error ? Expected<Values>(*chain.error) : Expected<Values>(Values{data});
  }
  if (form.isStacked)
    return sequence.values; // is stacked with the same extents
  Value data, shapes;
  switch (sequence.form) {
  case Form::Ragged:
    return sequence.values;
  case Form::Stacked: {
    Value stack = sequence.values.front();
    data = chain("Reshape", {stack, emitter.ints({-1})});
    Value extents = chain("Shape", {stack}, {{"start", int64_t(1)}});
    Value length = chain("Shape", {stack}, {{"start", int64_t(0)}, {"end", int64_t(1)}});
    Value table = chain("Concat", {length, emitter.ints({rank})}, front);
    shapes = chain("Expand", {extents, table});
    break;
  }
  case Form::Listed: {
    Values flat, rows;
    for (Value element : sequence.values) {
      flat.push_back(chain("Reshape", {element, emitter.ints({-1})}));
      Value extents = chain("Shape", {element});
      rows.push_back(chain("Unsqueeze", {extents, emitter.ints({0})}));
    }
    if (flat.empty()) {
      flat.push_back(zeros(form.type, {0}));
      rows.push_back(zeros(DVT_I64, {0, rank}));
    }
    data = flat.size() == 1 ? flat.front() : chain("Concat", flat, front);
    shapes = rows.size() == 1 ? rows.front() : chain("Concat", rows, front);
    break;
  }
  }
  return chain.error ? Expected<Values>(*chain.error) : Expected<Values>(Values{data, shapes});
}

Sequence Sequences::fromValues(const SequenceForm &form, ArrayRef<Value> values) const {
  Sequence sequence;
  sequence.type = form.type;
  sequence.form = form.isEmpty || form.isListed() ? Sequence::Form::Listed
                  : form.isStacked                ? Sequence::Form::Stacked
                                                  : Sequence::Form::Ragged;
  sequence.values.assign(values.begin(), values.end());
  return sequence;
}

Expected<Sequence> Sequences::packed(const Sequence &sequence) {
  if (sequence.form != Sequence::Form::Listed)
    return sequence;
  Expected<SequenceForm> form = formOf(sequence);
  if (!form)
    return form.takeError();
  if (Status status = checkPackable(*form, "where the position is known when compiling"); !status)
    return status.takeError();
  Expected<Values> values = valuesIn(sequence, *form);
  return values ? Expected<Sequence>(fromValues(*form, *values)) : values.takeError();
}

Expected<Sequence> Sequences::ragged(const Sequence &sequence) {
  if (sequence.form == Sequence::Form::Ragged)
    return sequence;
  Expected<SequenceForm> form = formOf(sequence);
  if (!form)
    return form.takeError();
  if (Status status = checkPackable(*form, "where the position is known when compiling"); !status)
    return status.takeError();
  form->isStacked = false;
  Expected<Values> values = valuesIn(sequence, *form);
  return values ? Expected<Sequence>(fromValues(*form, *values)) : values.takeError();
}

Expected<Value> Sequences::starts(const Sequence &sequence) {
  Chain chain(emitter);
  Value sizes =
      chain("ReduceProd", {sequence.values[1], emitter.ints({1})}, {{"keepdims", int64_t(0)}});
  Value ends = chain("CumSum", {sizes, emitter.intScalar(0)});
  return chain.result(chain("Concat", {emitter.ints({0}), ends}, {{"axis", int64_t(0)}}));
}

Expected<Value> Sequences::slice(Value tensor, Value from, Value to) {
  return emitter.emit("Slice", {tensor, from, to, emitter.ints({0})});
}

Expected<Value> Sequences::length(const Sequence &sequence) {
  if (sequence.form == Sequence::Form::Listed)
    return emitter.intScalar(int64_t(sequence.values.size()));
  Chain chain(emitter);
  Value shape =
      chain("Shape", {sequence.values.back()}, {{"start", int64_t(0)}, {"end", int64_t(1)}});
  return chain.result(chain("Squeeze", {shape, emitter.ints({0})}));
}

Expected<Value> Sequences::at(const Sequence &sequence, Value index) {
  if (sequence.form == Sequence::Form::Listed) {
    int64_t count = int64_t(sequence.values.size());
    std::optional<int64_t> known = knownIndex(index);
    if ((known && (*known < -count || *known >= count)) || count == 0)
      return contradiction("SequenceAt", "the sequence has {} elements, none at {}", count,
                           known ? std::to_string(*known) : "any place");
    if (known)
      return sequence.values[size_t(*known + (*known < 0 ? count : 0))];
  }
  Expected<Sequence> all = packed(sequence);
  if (!all)
    return all.takeError();
  AttributeMap front{{"axis", int64_t(0)}};
  Chain chain(emitter);
  Value count = chain.take(length(*all));
  if (chain.error)
    return *chain.error;
  Value row = chain.take(checkedPosition("SequenceAt", index, count, false));
  Value place = chain("Squeeze", {row, emitter.ints({0})});
  if (all->form == Sequence::Form::Stacked)
    return chain.result(chain("Gather", {all->values[0], place}, front));
  Value begins = chain.take(starts(*all));
  Value extents = chain("Gather", {all->values[1], place}, front);
  Value begin = chain("Gather", {begins, row}, front);
  Value next = chain("Add", {row, emitter.ints({1})});
  Value end = chain("Gather", {begins, next}, front);
  if (chain.error)
    return *chain.error;
  Value flat = chain.take(slice(all->values[0], begin, end));
  return chain.result(chain("Reshape", {flat, extents}, {{"allowzero", int64_t(1)}}));
}

Expected<Value> Sequences::checkedPosition(const char *op, Value position, Value length,
                                           bool pastLast) {
  Expected<Value> given = scalarOf(position, "position");
  if (!given)
    return given;
  Chain chain(emitter);
  Value zero = emitter.intScalar(0);
  Value fromBack = chain("Add", {*given, length});
  Value isBack = chain("Less", {*given, zero});
  Value place = chain("Where", {isBack, fromBack, *given});
  Value isThere = chain("GreaterOrEqual", {place, zero});
  Value ends = chain(pastLast ? "LessOrEqual" : "Less", {place, length});
  Value holds = chain("And", {isThere, ends});
  if (chain.error)
    return *chain.error;
  place = guarded(emitter, place, holds,
                  emitter.fail(op, "the index is out of range of the sequence").message);
  return chain.result(chain("Unsqueeze", {place, emitter.ints({0})}));
}

Expected<Sequence> Sequences::insert(const Sequence &sequence, Value element, Value position) {
  if (emitter.type(element) != sequence.type)
    return emitter.fail("SequenceInsert", "a tensor of {} is put into a sequence of {}",
                        typeName(emitter.type(element)), typeName(sequence.type));
  std::optional<int64_t> known = position ? knownIndex(position) : std::nullopt;
  if (sequence.form == Sequence::Form::Listed && (known || !position)) {
    int64_t count = int64_t(sequence.values.size());
    int64_t place = !position ? count : *known + (*known < 0 ? count : 0);
    if (place < 0 || place > count)
      return contradiction("SequenceInsert", "position {} is outside the sequence of {} elements",
                           *known, count);
    Sequence result = sequence;
    result.values.insert(result.values.begin() + place, element);
    return result;
  }
  Sequence single{sequence.type, Sequence::Form::Listed, {element}};
  Expected<Sequence> all = packed(sequence);
  if (!all)
    return all.takeError();
  bool isAlike = false;
  if (all->form == Sequence::Form::Stacked) {
    graph::Shape shape = emitter.shape(all->values[0]);
    shape.erase(shape.begin());
    isAlike = shape == emitter.shape(element);
    if (shape.size() != emitter.rank(element))
      return emitter.fail("SequenceInsert",
                          "a tensor of {} dimensions is put into a sequence of such of {}, which "
                          "is not supported",
                          emitter.rank(element), shape.size());
  }
  if (all->form == Sequence::Form::Listed && position) {
    // Empty, and where to insert is told by the run: only 0 is right.
    all = ragged(single);
    if (!all)
      return all.takeError();
    Chain chain(emitter);
    Value place =
        chain.take(checkedPosition("SequenceInsert", position, emitter.intScalar(0), true));
    all->values[1] = chain("Add", {all->values[1], place});
    if (chain.error)
      return *chain.error;
    return all;
  }
  if (!isAlike)
    all = ragged(*all);
  if (!all)
    return all.takeError();
  Expected<SequenceForm> form = formOf(single);
  if (!form)
    return form.takeError();
  Chain chain(emitter);
  Values rows;
  if (isAlike) {
    rows.push_back(chain("Unsqueeze", {element, emitter.ints({0})}));
  } else {
    form->isStacked = false;
    if (emitter.shape(all->values[1])[1].value() != int64_t(form->element.size()))
      return emitter.fail("SequenceInsert",
                          "a tensor of {} dimensions is put into a sequence of such of {}, which "
                          "is not supported",
                          form->element.size(), emitter.shape(all->values[1])[1].value());
    Expected<Values> both = valuesIn(single, *form);
    if (!both)
      return both.takeError();
    rows = std::move(*both);
  }
  AttributeMap front{{"axis", int64_t(0)}};
  Value place;
  if (position) {
    Value count = chain.take(length(*all));
    if (!chain.error)
      place = chain.take(checkedPosition("SequenceInsert", position, count, true));
  }
  for (size_t i = 0; i < rows.size() && !chain.error; ++i) {
    Value whole = all->values[i];
    if (!position) {
      all->values[i] = chain("Concat", {whole, rows[i]}, front);
      continue;
    }
    Value cut = place;
    if (i == 0 && !isAlike)
      cut = chain("Gather", {chain.take(starts(*all)), place}, front);
    if (chain.error)
      break;
    Value head = chain.take(slice(whole, emitter.ints({0}), cut));
    Value tail = chain.take(slice(whole, cut, emitter.ints({INT64_MAX})));
    all->values[i] = chain("Concat", {head, rows[i], tail}, front);
  }
  if (chain.error)
    return *chain.error;
  return all;
}

Expected<Sequence> Sequences::erase(const Sequence &sequence, Value position) {
  std::optional<int64_t> known = position ? knownIndex(position) : std::optional<int64_t>(-1);
  if (sequence.form == Sequence::Form::Listed && known) {
    int64_t count = int64_t(sequence.values.size());
    int64_t place = *known + (*known < 0 ? count : 0);
    if (place < 0 || place >= count)
      return contradiction("SequenceErase", "position {} is outside the sequence of {} elements",
                           *known, count);
    Sequence result = sequence;
    result.values.erase(result.values.begin() + place);
    return result;
  }
  Expected<Sequence> all = packed(sequence);
  if (!all)
    return all.takeError();
  if (all->form == Sequence::Form::Listed)
    return contradiction("SequenceErase", "the sequence is empty");
  AttributeMap front{{"axis", int64_t(0)}};
  Chain chain(emitter);
  Value count = chain.take(length(*all));
  Value place = position ? position : emitter.intScalar(-1);
  if (!chain.error)
    place = chain.take(checkedPosition("SequenceErase", place, count, false));
  Value next = chain("Add", {place, emitter.ints({1})});
  bool isRagged = all->form == Sequence::Form::Ragged;
  Value begins = isRagged && !chain.error ? chain.take(starts(*all)) : Value();
  for (size_t i = 0; i < all->values.size() && !chain.error; ++i) {
    Value whole = all->values[i], from = place, to = next;
    if (i == 0 && isRagged) {
      from = chain("Gather", {begins, place}, front);
      to = chain("Gather", {begins, next}, front);
    }
    if (chain.error)
      break;
    Value head = chain.take(slice(whole, emitter.ints({0}), from));
    Value tail = chain.error ? Value() : chain.take(slice(whole, to, emitter.ints({INT64_MAX})));
    all->values[i] = chain("Concat", {head, tail}, front);
  }
  if (chain.error)
    return *chain.error;
  return all;
}

Expected<Value> Sequences::concat(const Sequence &sequence, int64_t axis, bool newAxis) {
  Chain chain(emitter);
  bool isListed = sequence.form == Sequence::Form::Listed;
  if (isListed && sequence.values.empty())
    return contradiction("ConcatFromSequence", "the sequence is empty");
  int64_t rank = int64_t(emitter.rank(sequence.values[0])) - (isListed ? 0 : 1);
  int64_t axes = rank + (newAxis ? 1 : 0);
  if (axis < -axes || axis >= axes)
    return emitter.fail("ConcatFromSequence", "axis {} is outside [{}, {}]", axis, -axes, axes - 1);
  axis += axis < 0 ? axes : 0;
  if (isListed) {
    Values parts;
    for (Value element : sequence.values)
      parts.push_back(newAxis ? chain("Unsqueeze", {element, emitter.ints({axis})}) : element);
    return chain.result(chain("Concat", parts, {{"axis", axis}}));
  }
  std::vector<int64_t> order;
  for (int64_t d = 1; d <= rank; ++d)
    order.push_back(d);
  order.insert(order.begin() + axis, 0);
  Value turned = chain("Transpose", {sequence.values[0]}, {{"perm", order}});
  if (newAxis || chain.error)
    return chain.result(turned);
  auto extents = [&](int64_t from, int64_t to) {
    return chain("Shape", {turned}, {{"start", from}, {"end", to}});
  };
  Value merged = chain("Mul", {extents(axis, axis + 1), extents(axis + 1, axis + 2)});
  Values parts{merged};
  if (axis > 0)
    parts.insert(parts.begin(), extents(0, axis));
  if (axis + 2 <= rank)
    parts.push_back(extents(axis + 2, rank + 1));
  Value shape = parts.size() == 1 ? parts[0] : chain("Concat", parts, {{"axis", int64_t(0)}});
  return chain.result(chain("Reshape", {turned, shape}, {{"allowzero", int64_t(1)}}));
}

Expected<Sequence> Sequences::slices(Value tensor, int64_t axis, bool keep) {
  Chain chain(emitter);
  std::vector<int64_t> order{axis};
  for (int64_t d = 0; d < int64_t(emitter.rank(tensor)); ++d)
    if (d != axis)
      order.push_back(d);
  Value stack = chain("Transpose", {tensor}, {{"perm", order}});
  if (keep)
    stack = chain("Unsqueeze", {stack, emitter.ints({axis + 1})});
  if (chain.error)
    return *chain.error;
  return Sequence{emitter.type(tensor), Sequence::Form::Stacked, {stack}};
}

} // namespace dovetail::importer
