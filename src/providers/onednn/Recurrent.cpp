// SPDX-License-Identifier: Apache-2.0
//
// LSTM, GRU and RNN. oneDNN wants gates in its own order and one bias for each, which are made of
// the constants while preparing. It puts the two directions side by side in each step's row, where
// ONNX has them apart; unless that is the same memory, the results go through an intermediate and a
// reorder. Sequence lengths, clipping and functions other than ONNX's defaults it does not have.
#include "providers/onednn/Attempt.h"

#include <algorithm>
#include <cctype>

namespace dovetail::onednn {
namespace {

using GateOrder = std::vector<int64_t>; ///< ONNX's number of each gate of oneDNN

class RecurrentMaker {
public:
  explicit RecurrentMaker(Maker &maker)
      : maker(maker), library(maker.library), op(maker.op()), name(op.name()),
        isLstm(name == "lstm"), gates(isLstm          ? 4
                                      : name == "gru" ? 3
                                                      : 1) {}

  bool run() {
    if (!readExtents() || !readRest() || !readActivations())
      return false;
    linear = name == "gru" && op.integer("linear_before_reset", 0) != 0;
    // Input, forget, cell, output there; input, output, forget, cell here. Others agree.
    order = isLstm ? GateOrder{0, 2, 3, 1} : GateOrder{0, 1, 2};
    order.resize(static_cast<size_t>(gates));
    offerAll();
    return true;
  }

private:
  const View &result(size_t index) const {
    static const View absent;
    return index < maker.match.results.size() ? maker.match.results[index] : absent;
  }

  bool readExtents() {
    const View &x = maker.operand(0), &w = maker.operand(1), &r = maker.operand(2);
    for (uint32_t i = 0; i < op.inputCount(); ++i)
      if (i != 4 && !maker.isF32({&maker.operand(i)}))
        return maker.refuse(name + ": f32 operands are supported");
    if (x.dims.size() != 3 || w.dims.size() != 3 || r.dims.size() != 3)
      return maker.refuse(name + ": operands of three dimensions are supported");
    batchFirst = op.integer("layout", 0) != 0;
    const std::string direction = op.string("direction", "forward");
    directions = direction == "bidirectional" ? 2 : 1;
    way = directions == 2          ? dnnl_bidirectional_concat
          : direction == "reverse" ? dnnl_unidirectional_right2left
                                   : dnnl_unidirectional_left2right;
    steps = x.dims[batchFirst ? 1 : 0];
    batch = x.dims[batchFirst ? 0 : 1];
    input = x.dims[2];
    hidden = r.dims[2];
    if (w.dims != Dims{directions, gates * hidden, input} ||
        r.dims != Dims{directions, gates * hidden, hidden})
      return maker.refuse(name + ": weights do not fit the input");
    const Dims states =
        batchFirst ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
    const std::pair<size_t, Dims> others[] = {{3, {directions, 2 * gates * hidden}},
                                              {5, states},
                                              {6, states},
                                              {7, {directions, 3 * hidden}}};
    for (const auto &[index, extents] : others)
      if (maker.operand(index).isPresent() && maker.operand(index).dims != extents)
        return maker.refuse(name + ": operand " + std::to_string(index) +
                            " does not fit the weights");
    if (!maker.isConstant(w) || !maker.isConstant(r) ||
        (maker.operand(3).isPresent() && !maker.isConstant(maker.operand(3))) ||
        (maker.operand(7).isPresent() && !maker.isConstant(maker.operand(7))))
      return maker.refuse(name + ": constant weights, biases and peepholes are supported");
    for (size_t i : {1, 2, 3, 7})
      if (maker.problem.value(maker.operand(i).isPresent() ? maker.operand(i).value : w.value)
              .strides)
        return maker.refuse(name + ": dense constants are supported");
    return true;
  }

  bool readRest() {
    if (const View &lengths = maker.operand(4); lengths.isPresent()) {
      std::optional<std::vector<double>> known = maker.problem.literal(lengths.value);
      if (!known || std::any_of(known->begin(), known->end(), [&](double length) {
            return length != static_cast<double>(steps);
          }))
        return maker.refuse(name + ": sequences of unequal length are not supported");
    }
    if (op.number("clip", 0) > 0)
      return maker.refuse(name + ": clip is not supported");
    if (op.integer("input_forget", 0))
      return maker.refuse(name + ": coupled input and forget gates are not supported");
    for (size_t i = 0; i < maker.match.results.size(); ++i)
      if (const View &view = result(i);
          view.isPresent() && maker.problem.value(view.value).may_alias >= 0)
        return maker.refuse(name + ": results may not share an operand's memory");
    return true;
  }

  bool readActivations() {
    std::vector<std::string> names(1);
    const std::string standard = isLstm          ? "sigmoid,tanh,tanh"
                                 : name == "gru" ? "sigmoid,tanh"
                                                 : "tanh";
    const std::string text = op.string("activations", standard);
    for (char c : text.empty() ? standard : text)
      if (c == ',')
        names.emplace_back();
      else
        names.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (name == "rnn") {
      if (directions == 2 && names.size() > 1 && names[0] != names[1])
        return maker.refuse(name + ": directions with activations of their own are not supported");
      activation = names[0] == "tanh"      ? dnnl_eltwise_tanh
                   : names[0] == "sigmoid" ? dnnl_eltwise_logistic
                   : names[0] == "relu"    ? dnnl_eltwise_relu
                                           : dnnl_alg_kind_undef;
      return activation != dnnl_alg_kind_undef ||
             maker.refuse(name + ": activations tanh, sigmoid and relu are supported");
    }
    const std::string twice = standard + "," + standard;
    std::string joined;
    for (const std::string &one : names)
      joined += (joined.empty() ? "" : ",") + one;
    return joined == standard || joined == twice ||
           maker.refuse(name + ": activations " + text + " are not supported, only the default");
  }

  // --- Constants in oneDNN's order ---

  /// [1, directions, inputs, gates, hidden], of `depth` inputs.
  std::shared_ptr<const Assembled> weights(const View &view, int64_t depth) const {
    auto made = std::make_shared<Assembled>();
    const int64_t block = hidden * depth, count = gates, sides = directions;
    made->values = {view.value};
    made->dims = {1, sides, depth, count, hidden};
    made->strides = {sides * count * block, count * block, 1, block, depth};
    made->make = [=, gateOrder = order](const std::vector<const float *> &from) {
      std::vector<float> to;
      to.reserve(static_cast<size_t>(sides * count * block));
      for (int64_t d = 0; d < sides; ++d)
        for (int64_t gate : gateOrder)
          to.insert(to.end(), from[0] + (d * count + gate) * block,
                    from[0] + (d * count + gate + 1) * block);
      return to;
    };
    return made;
  }

  std::shared_ptr<const Assembled> bias(const View &view) const {
    auto made = std::make_shared<Assembled>();
    const int64_t count = gates, units = hidden, sides = directions, rows = gates + linear;
    const bool apart = linear;
    made->values = {view.value};
    made->dims = {1, sides, rows, units};
    made->strides = providers::denseStrides(made->dims);
    made->make = [=, gateOrder = order](const std::vector<const float *> &from) {
      std::vector<float> to;
      for (int64_t d = 0; d < sides; ++d) {
        const float *outer = from[0] + d * 2 * count * units, *inner = outer + count * units;
        for (int64_t gate : gateOrder)
          for (int64_t i = gate * units; i < (gate + 1) * units; ++i)
            to.push_back(apart && gate == 2 ? outer[i] : outer[i] + inner[i]);
        if (apart)
          to.insert(to.end(), inner + 2 * units, inner + 3 * units);
      }
      return to;
    };
    return made;
  }

  /// Input, forget, output there; input, output, forget here.
  std::shared_ptr<const Assembled> peepholes(const View &view) const {
    auto made = std::make_shared<Assembled>();
    const int64_t units = hidden, sides = directions;
    made->values = {view.value};
    made->dims = {1, sides, 3, units};
    made->strides = providers::denseStrides(made->dims);
    made->make = [=](const std::vector<const float *> &from) {
      std::vector<float> to;
      for (int64_t d = 0; d < sides; ++d)
        for (int64_t gate : {0, 2, 1})
          to.insert(to.end(), from[0] + (d * 3 + gate) * units,
                    from[0] + (d * 3 + gate + 1) * units);
      return to;
    };
    return made;
  }

  std::shared_ptr<const Assembled> zeros(const Dims &dims) const {
    auto made = std::make_shared<Assembled>();
    made->dims = dims;
    made->strides = providers::denseStrides(dims);
    const size_t count = static_cast<size_t>(providers::product(dims));
    made->make = [count](const std::vector<const float *> &) { return std::vector<float>(count); };
    return made;
  }

  static Argument assembledArgument(int id, std::shared_ptr<const Assembled> made) {
    Argument argument{id, {}, -1};
    argument.assembled = std::move(made);
    return argument;
  }

  // --- Operands and results ---

  Desc dense(const Dims &dims) const {
    return Desc::strided(library, dnnl_f32, dims, providers::denseStrides(dims));
  }

  /// A view whose dimensions of 1 have the strides of a dense tensor.
  static View settled(View view) {
    providers::settleUnitStrides(view.dims, view.strides);
    view.axes.clear();
    return view;
  }

  /// A reorder between a view and an intermediate of the same dimensions, `stands` being the
  /// intermediate's memory.
  bool addReorder(std::vector<Stage> &to, const View &view, const Desc &stands, int32_t temporary,
                  bool isResult) {
    const Desc outside = maker.plain(view);
    dnnl_primitive_desc_t made = nullptr;
    std::vector<Argument> arguments{{isResult ? DNNL_ARG_FROM : DNNL_ARG_TO, {}, temporary},
                                    {isResult ? DNNL_ARG_TO : DNNL_ARG_FROM, view, -1}};
    const Attributes attributes = maker.attributes({}, Style::RowMajor, arguments);
    const Desc &from = isResult ? stands : outside, &into = isResult ? outside : stands;
    if (!outside || !stands || !attributes ||
        library.reorder_primitive_desc_create(&made, from.get(), library.engine, into.get(),
                                              library.engine, attributes.get()) != dnnl_success)
      return false;
    to.push_back({PrimitiveDesc(library, made), std::move(arguments)});
    return true;
  }

  /// A state, hidden or cell's, as [1, directions, batch, hidden].
  bool addState(int id, const View &view, bool isResult) {
    const Dims dims{1, directions, batch, hidden};
    if (!view.isPresent()) {
      if (isResult)
        arguments.push_back({id, {}, temporaries++});
      else
        arguments.push_back(assembledArgument(id, zeros(dims)));
      return true;
    }
    View whole = settled((batchFirst ? view.permuted({1, 0, 2}) : view).withAxis(0));
    if (!batchFirst || directions == 1 || batch == 1) {
      arguments.push_back({id, whole, -1});
      return true;
    }
    const int32_t number = temporaries++;
    arguments.push_back({id, {}, number});
    return addReorder(isResult ? after : before, whole, dense(dims), number, isResult);
  }

  /// The sequence of states: [steps, batch, directions * hidden] in `desc`.
  bool addSequence(Desc &desc) {
    const int64_t width = directions * hidden;
    const View &y = result(0);
    desc = dense({steps, batch, width});
    std::optional<View> same;
    if (y.isPresent() && batchFirst)
      same = y.reshaped({batch, steps, width});
    else if (y.isPresent() && (directions == 1 || batch == 1))
      same = y.reshaped({steps, batch, width});
    if (same) {
      const View whole = settled(batchFirst ? same->permuted({1, 0, 2}) : *same);
      desc = maker.plain(whole);
      arguments.push_back({DNNL_ARG_DST_LAYER, whole, -1});
      return true;
    }
    const int32_t number = temporaries++;
    arguments.push_back({DNNL_ARG_DST_LAYER, {}, number});
    if (!y.isPresent())
      return true;
    const Desc apart = Desc::strided(library, dnnl_f32, {steps, directions, batch, hidden},
                                     {batch * width, hidden, width, 1});
    return addReorder(after, y, apart, number, true);
  }

  void offerAll() {
    const View &x = maker.operand(0), &b = maker.operand(3), &h = maker.operand(5),
               &c = isLstm ? maker.operand(6) : maker.operand(SIZE_MAX), &p = maker.operand(7);
    const View source = settled(batchFirst ? x.permuted({1, 0, 2}) : x);
    const Dims stateDims{1, directions, batch, hidden};
    const bool hasStart = h.isPresent() || c.isPresent();
    const bool hasEnd = result(1).isPresent() || (isLstm && result(2).isPresent());
    const Desc from = maker.plain(source), state = dense(stateDims);
    const Desc outer = Desc::any(library, dnnl_f32, {1, directions, input, gates, hidden}),
               inner = Desc::any(library, dnnl_f32, {1, directions, hidden, gates, hidden});
    // Its implementations want a bias, if only of zeros.
    const Dims biasDims{1, directions, gates + linear, hidden};
    const Desc shift = dense(biasDims),
               holes = p.isPresent() ? dense({1, directions, 3, hidden}) : Desc();
    arguments = {{DNNL_ARG_SRC_LAYER, source, -1},
                 assembledArgument(DNNL_ARG_WEIGHTS_LAYER, weights(maker.operand(1), input)),
                 assembledArgument(DNNL_ARG_WEIGHTS_ITER, weights(maker.operand(2), hidden)),
                 assembledArgument(DNNL_ARG_BIAS, b.isPresent() ? bias(b) : zeros(biasDims))};
    if (holes)
      arguments.push_back(assembledArgument(DNNL_ARG_WEIGHTS_PEEPHOLE, peepholes(p)));
    Desc to;
    bool works = addSequence(to);
    if (hasStart)
      works = works && addState(DNNL_ARG_SRC_ITER, h, false) &&
              (!isLstm || addState(DNNL_ARG_SRC_ITER_C, c, false));
    if (hasEnd)
      works = works && addState(DNNL_ARG_DST_ITER, result(1), true) &&
              (!isLstm || addState(DNNL_ARG_DST_ITER_C, result(2), true));
    const Attributes attributes = maker.attributes({}, Style::RowMajor, arguments);
    if (!works || !from || !to || !attributes)
      return;
    const_dnnl_memory_desc_t start = hasStart ? state.get() : nullptr,
                             end = hasEnd ? state.get() : nullptr;
    dnnl_primitive_desc_t made = nullptr;
    dnnl_status_t status = dnnl_unimplemented;
    if (isLstm)
      status = library.lstm_forward_primitive_desc_create(
          &made, library.engine, dnnl_forward_inference, way, from.get(), start, start, outer.get(),
          inner.get(), holes.get(), nullptr, shift.get(), to.get(), end, end, dnnl_rnn_flags_undef,
          attributes.get());
    else if (name == "rnn")
      status = library.vanilla_rnn_forward_primitive_desc_create(
          &made, library.engine, dnnl_forward_inference, activation, way, from.get(), start,
          outer.get(), inner.get(), shift.get(), to.get(), end, dnnl_rnn_flags_undef, 0, 0,
          attributes.get());
    else
      status = (linear ? library.lbr_gru_forward_primitive_desc_create
                       : library.gru_forward_primitive_desc_create)(
          &made, library.engine, dnnl_forward_inference, way, from.get(), start, outer.get(),
          inner.get(), shift.get(), to.get(), end, dnnl_rnn_flags_undef, attributes.get());
    if (status != dnnl_success)
      return;
    Attempt attempt{"recurrent", "f32", {}, {}, {}, {}};
    for (Stage &stage : before)
      attempt.stages.push_back(std::move(stage));
    attempt.namedStage = attempt.stages.size();
    attempt.stages.push_back({PrimitiveDesc(library, made), std::move(arguments)});
    for (Stage &stage : after)
      attempt.stages.push_back(std::move(stage));
    maker.offer(std::move(attempt));
  }

  Maker &maker;
  const Library &library;
  const OpReader op;
  const std::string name;
  const bool isLstm;
  const int64_t gates;
  bool batchFirst = false, linear = false;
  int64_t directions = 1, steps = 0, batch = 0, input = 0, hidden = 0;
  dnnl_rnn_direction_t way = dnnl_unidirectional_left2right;
  dnnl_alg_kind_t activation = dnnl_alg_kind_undef;
  GateOrder order;
  std::vector<Argument> arguments; ///< of the primitive itself
  std::vector<Stage> before, after;
  int32_t temporaries = 0;
};

} // namespace

bool makeRecurrent(Maker &maker) { return RecurrentMaker(maker).run(); }

} // namespace dovetail::onednn
