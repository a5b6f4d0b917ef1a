// SPDX-License-Identifier: Apache-2.0
//
// Walks the ops in order. The ops that a problem has decide the rank that its tensors get.
#include "providers/cudnn/Translate.h"

#include <algorithm>
#include <numeric>

#include "providers/ChannelsLast.h"
#include "providers/OpVersions.h"
#include "providers/cudnn/Translator.h"

namespace dovetail::cudnn {

using providers::channelsLastStrides;
using providers::channelsLastText;
using providers::hasOneOrder;

namespace {

bool keepsOrder(std::string_view name) {
  return name == "reshape" || name == "flatten" || name == "squeeze" || name == "unsqueeze" ||
         name == "identity";
}

bool isView(std::string_view name) { return name == "transpose" || keepsOrder(name); }

/// Axes in order; nothing where the attribute is no permutation.
std::optional<std::vector<size_t>> permutation(const OpReader &op, size_t rank) {
  Dims reversed(rank);
  for (size_t i = 0; i < rank; ++i)
    reversed[i] = static_cast<int64_t>(rank - 1 - i);
  const Dims perm = op.integers("perm", reversed);
  std::vector<bool> seen(rank);
  if (perm.size() != rank)
    return std::nullopt;
  for (int64_t axis : perm) {
    if (axis < 0 || axis >= static_cast<int64_t>(rank) || seen[static_cast<size_t>(axis)])
      return std::nullopt;
    seen[static_cast<size_t>(axis)] = true;
  }
  return std::vector<size_t>(perm.begin(), perm.end());
}

bool isImageOp(std::string_view name) {
  return name == "conv" || name == "max_pool" || name == "average_pool" ||
         name == "global_average_pool" || name == "global_max_pool" ||
         name == "batch_normalization";
}
bool isProduct(std::string_view name) { return name == "mat_mul" || name == "gemm"; }
bool isNorm(std::string_view name) {
  return name == "layer_normalization" || name == "rms_normalization";
}

} // namespace

std::optional<DataType> dataType(dvt_type type) {
  switch (type) {
  case DVT_F32:
    return DataType::Float;
  case DVT_F16:
    return DataType::Half;
  case DVT_BF16:
    return DataType::Bfloat16;
  default:
    return std::nullopt;
  }
}

bool Translator::checkWhole() {
  if (std::optional<std::string> unknown = providers::unknownDefinition(problem))
    return refuse(*unknown);
  if (std::optional<std::string> symbol = problem.symbolicExtent())
    return refuse("extents known only at run time (" + *symbol + ") are not supported");
  if (problem.opCount() == 0)
    return refuse("no op");
  for (uint32_t v = 0; v < problem.raw().value_count; ++v) {
    if (providers::product(problem.extents(v)) == 0)
      return refuse("empty tensors are not supported");
    if (problem.outputPosition(v) >= 0 && problem.value(v).may_alias >= 0)
      return refuse("the result may not share an operand's memory");
    for (int64_t stride : problem.strides(v))
      if (stride <= 0)
        return refuse("operands with strides of 0 or below are not supported");
  }
  return true;
}

bool Translator::readDomain() {
  size_t widest = 0;
  for (uint32_t v = 0; v < problem.raw().value_count; ++v)
    widest = std::max<size_t>(widest, problem.rank(v));
  const bool isProduct = domain == Domain::Rows || domain == Domain::Batch;
  rank = isProduct ? 3 : std::max<size_t>(4, widest);
  if (rank > 8)
    return refuse("more than eight dimensions are not supported");
  if (domain == Domain::Image && rank > 5)
    return refuse("images of more than three spatial dimensions are not supported");
  if (domain == Domain::Norm) {
    rank = 4;
    for (uint32_t i = 0; i < problem.opCount(); ++i) {
      const OpReader op = problem.op(i);
      if (!isNorm(op.name()) || !op.hasInput(0))
        continue;
      const Dims dims = problem.extents(op.input(0));
      int64_t axis = op.integer("axis", -1);
      axis += axis < 0 ? static_cast<int64_t>(dims.size()) : 0;
      if (axis < 0 || axis >= static_cast<int64_t>(dims.size()))
        return refuse(std::string(op.name()) + ": the axis is none of the operand's");
      columns = providers::product(dims, static_cast<size_t>(axis), dims.size());
      normalised = dims.size() - static_cast<size_t>(axis);
    }
  }
  return true;
}

bool Translator::isStored(uint32_t value) const {
  return problem.outputPosition(value) >= 0 || stored.count(value) > 0;
}

/// From the results backwards: a value that only a view at the end reads lies where the result
/// does.
bool Translator::readTrailingViews() {
  for (uint32_t i = problem.opCount(); i-- > 0;) {
    const OpReader op = problem.op(i);
    const uint32_t from = op.input(0), to = op.output(0);
    if (!isView(op.name()) || from == DVT_NO_VALUE || to == DVT_NO_VALUE || !isStored(to) ||
        problem.producer(from) < 0 || problem.uses(from) != 1 || problem.outputPosition(from) >= 0)
      continue;
    const View view = memory(to);
    if (op.name() == "transpose") {
      const auto order = permutation(op, problem.rank(from));
      if (!order)
        return refuse("transpose: perm is no permutation of the axes");
      std::vector<size_t> inverse(order->size());
      for (size_t k = 0; k < order->size(); ++k)
        inverse[(*order)[k]] = k;
      stored[from] = view.permuted(inverse);
    } else if (std::optional<View> before = view.reshaped(problem.extents(from))) {
      stored[from] = *before;
    } else {
      return refuse(std::string(op.name()) + " of a transposed result needs a copy");
    }
  }
  return true;
}

/// Images, weights and whatever else has an image's rank lie with channels last, but for what
/// views read or write.
void Translator::chooseLayouts() {
  if (!channelsLast)
    return;
  auto isViewed = [&](uint32_t value) {
    for (uint32_t i = 0; i < problem.opCount(); ++i) {
      const OpReader op = problem.op(i);
      if (isView(op.name()) && (op.input(0) == value || op.output(0) == value))
        return true;
    }
    return false;
  };
  for (uint32_t v = 0; v < problem.raw().value_count; ++v) {
    const Dims dims = problem.extents(v);
    const bool isBorder = problem.inputPosition(v) >= 0 || problem.outputPosition(v) >= 0;
    if (isBorder && dims.size() >= 3 && dims.size() <= 5 && !problem.value(v).strides &&
        !isViewed(v) && !(problem.isConstant(v) && hasOneOrder(dims)))
      layouts[v] = channelsLastText(dims.size());
  }
}

View Translator::memory(uint32_t value) const {
  if (auto found = views.find(value); found != views.end())
    return found->second;
  if (auto found = stored.find(value); found != stored.end())
    return found->second;
  const Dims dims = problem.extents(value);
  return {
      value, dims, layouts.count(value) ? channelsLastStrides(dims) : problem.strides(value), {}};
}

std::optional<View> Translator::memoryOf(uint32_t value) const {
  if (computed.count(value))
    return std::nullopt;
  return memory(value);
}

std::optional<View> Translator::place(const View &view) const {
  switch (domain) {
  case Domain::Image: {
    // ONNX aligns shapes at the right; a single spatial dimension becomes the last of two.
    size_t onnxRank = 0;
    for (uint32_t v = 0; v < problem.raw().value_count; ++v)
      onnxRank = std::max<size_t>(onnxRank, problem.rank(v));
    View placed = view.withRank(onnxRank);
    return onnxRank == 3 ? placed.withAxis(2) : placed;
  }
  case Domain::Rows: {
    const View flat = view.withRank(2);
    const std::optional<View> rows = flat.collapsed(flat.dims.size() - 1);
    return rows ? std::optional(rows->withRank(3)) : std::nullopt;
  }
  case Domain::Norm: {
    // Shapes are aligned at the right; what has as many elements elsewhere runs along other rows.
    const View wide = view.withRank(normalised);
    const size_t first = wide.dims.size() - normalised;
    if (columns == 0 || providers::product(wide.dims, first, wide.dims.size()) != columns)
      return std::nullopt;
    return wide.reshaped({providers::product(wide.dims, 0, first), columns, 1, 1});
  }
  case Domain::Batch: {
    const View wide = view.withRank(3);
    return wide.collapsed(wide.dims.size() - 2);
  }
  case Domain::Plain: {
    // Row-major memory is that of an image with channels last, which the library's compiler wants.
    std::vector<size_t> order{0, rank - 1};
    for (size_t i = 1; i + 1 < rank; ++i)
      order.push_back(i);
    return view.withRank(rank).permuted(order);
  }
  }
  return std::nullopt;
}

/// Extents of 1 get the strides that they have in a dense tensor of the chosen order, since
/// engines look at them.
void Translator::settleUnitStrides(Dims &strides, const Dims &dims) const {
  if (!channelsInside()) {
    providers::settleUnitStrides(dims, strides);
    return;
  }
  std::vector<size_t> inner{1};
  for (size_t i = dims.size(); i-- > 2;)
    inner.push_back(i);
  inner.push_back(0);
  for (size_t k = 0; k < inner.size(); ++k)
    if (dims[inner[k]] == 1)
      strides[inner[k]] = k == 0 ? 1 : dims[inner[k - 1]] * strides[inner[k - 1]];
}

size_t Translator::tensor(const View &view, DataType type) {
  Tensor made;
  made.type = type;
  made.dims = view.dims;
  made.strides = view.strides;
  made.value = view.value;
  settleUnitStrides(made.strides, made.dims);
  // Where views begin inside a larger tensor is known to the runtime only.
  if (problem.value(view.value).strides)
    made.alignment = static_cast<int64_t>(providers::elementBytes(problem.type(view.value)));
  for (size_t i = 0; i < graph.tensors.size(); ++i)
    if (const Tensor &known = graph.tensors[i];
        known.value == made.value && known.dims == made.dims && known.strides == made.strides)
      return i;
  graph.tensors.push_back(std::move(made));
  return graph.tensors.size() - 1;
}

size_t Translator::operand(const View &view) {
  const std::optional<DataType> type = dataType(problem.type(view.value));
  if (!type) {
    refuse("elements other than f32, f16 and bf16 are not supported");
    return Operation::kAbsent;
  }
  if (problem.isLiteral(view.value)) {
    if (std::optional<double> uniform = problem.uniform(view.value))
      return number(*uniform);
    refuse("constants inside the problem of more than one number are not supported");
    return Operation::kAbsent;
  }
  return tensor(view, *type);
}

size_t Translator::operand(uint32_t value) {
  if (value == DVT_NO_VALUE) {
    refuse("an operand is missing");
    return Operation::kAbsent;
  }
  if (auto found = computed.find(value); found != computed.end())
    return found->second;
  if (problem.producer(value) >= 0 && !views.count(value)) {
    refuse("a reshape or transpose between two ops is not supported");
    return Operation::kAbsent;
  }
  const View view = memory(value);
  if (problem.isLiteral(view.value))
    return operand(view);
  const std::optional<View> placed = place(view);
  if (!placed) {
    refuse("an operand's shape does not fit those of the others");
    return Operation::kAbsent;
  }
  return operand(*placed);
}

size_t Translator::number(double number) {
  const float value = static_cast<float>(number);
  for (size_t i = 0; i < graph.tensors.size(); ++i)
    if (graph.tensors[i].number == value)
      return i;
  Tensor made;
  made.dims = Dims(rank, 1);
  made.strides = Dims(rank, 1);
  made.number = value;
  made.alignment = 4;
  graph.tensors.push_back(std::move(made));
  return graph.tensors.size() - 1;
}

size_t Translator::temporary(const Dims &dims) {
  Tensor made;
  made.dims = dims;
  made.strides = channelsInside() ? channelsLastStrides(dims) : providers::denseStrides(dims);
  graph.tensors.push_back(std::move(made));
  return graph.tensors.size() - 1;
}

size_t Translator::result(uint32_t value, const View &view) {
  if (!isStored(value)) {
    const size_t made = temporary(view.dims);
    computed[value] = made;
    return made;
  }
  const std::optional<DataType> type = dataType(problem.type(value));
  if (!type) {
    refuse("results other than f32, f16 and bf16 are not supported");
    return Operation::kAbsent;
  }
  const size_t made = tensor(view, *type);
  computed[value] = made;
  return made;
}

size_t Translator::result(uint32_t value) {
  const std::optional<View> placed = place(memory(value));
  if (!placed) {
    refuse("a result's shape does not fit those of the operands");
    return Operation::kAbsent;
  }
  return result(value, *placed);
}

bool Translator::broadcasts(size_t operand, size_t into) const {
  const Dims &from = dimsOf(operand), &to = dimsOf(into);
  for (size_t i = 0; i < to.size(); ++i)
    if (from[i] != 1 && from[i] != to[i])
      return false;
  return from.size() == to.size();
}

size_t Translator::pointwise(PointwiseMode mode, std::vector<size_t> operands, size_t into) {
  if (into == Operation::kAbsent) {
    Dims dims(rank, 1);
    for (size_t operand : operands)
      for (size_t i = 0; i < dims.size(); ++i)
        dims[i] = std::max(dims[i], dimsOf(operand)[i]);
    into = temporary(dims);
  }
  Operation op;
  op.kind = Operation::Kind::Pointwise;
  op.pointwise = mode;
  op.operands = std::move(operands);
  op.result = into;
  append(std::move(op));
  return into;
}

bool Translator::takeView(const OpReader &op) {
  const uint32_t from = op.input(0), to = op.output(0);
  if (from == DVT_NO_VALUE || to == DVT_NO_VALUE)
    return refuse(std::string(op.name()) + ": an operand is missing");
  if (stored.count(from)) // it lies in the result's memory, nothing is to be done
    return true;
  if (computed.count(from) || problem.outputPosition(to) >= 0)
    return refuse(std::string(op.name()) + " between two ops is not supported");
  const View view = memory(from);
  if (op.name() == "transpose") {
    const auto order = permutation(op, problem.rank(from));
    if (!order)
      return refuse("transpose: perm is no permutation of the axes");
    views[to] = view.permuted(*order);
  } else if (std::optional<View> reshaped = view.reshaped(problem.extents(to))) {
    views[to] = *reshaped;
  } else {
    return refuse(std::string(op.name()) + " of a transposed operand needs a copy");
  }
  return true;
}

bool Translator::translate(const OpReader &op) {
  const std::string_view name = op.name();
  for (uint32_t k = 1; k < op.outputCount(); ++k)
    if (op.output(k) != DVT_NO_VALUE &&
        (problem.uses(op.output(k)) > 0 || problem.outputPosition(op.output(k)) >= 0))
      return refuse(std::string(name) + ": only the first result is supported");
  if (op.output(0) == DVT_NO_VALUE)
    return refuse(std::string(name) + ": no first result");
  if (isView(name))
    return takeView(op);
  if (name == "conv")
    return translateConvolution(*this, op);
  if (isProduct(name))
    return translateProduct(*this, op);
  if (name.ends_with("_pool"))
    return translatePool(*this, op);
  if (isNorm(name) || name == "batch_normalization")
    return translateNorm(*this, op);
  if (name == "softmax")
    return translateSoftmax(*this, op);
  if (name.starts_with("reduce_"))
    return translateReduction(*this, op);
  if (name == "attention")
    return translateAttention(*this, op);
  if (isPointwise(name))
    return translatePointwise(*this, op);
  return refuse("no kernels for " + std::string(name));
}

bool Translator::run() {
  if (!checkWhole() || !readDomain())
    return false;
  chooseLayouts();
  if (!readTrailingViews())
    return false;
  for (uint32_t i = 0; i < problem.opCount(); ++i)
    if (!translate(problem.op(i)))
      return false;
  if (graph.operations.empty())
    return refuse("it only looks at memory in another way");
  const dvt_problem &raw = problem.raw();
  auto layoutOf = [&](uint32_t value) {
    const auto found = layouts.find(value);
    return found == layouts.end() ? std::string() : found->second;
  };
  for (uint32_t i = 0; i < raw.input_count; ++i)
    graph.inputLayouts.push_back(layoutOf(raw.inputs[i]));
  for (uint32_t i = 0; i < raw.output_count; ++i)
    graph.outputLayouts.push_back(layoutOf(raw.outputs[i]));
  return true;
}

std::vector<Graph> translate(const ProblemReader &problem, std::string &reason) {
  Domain domain = Domain::Plain;
  bool isElementWise = true; // on images
  for (uint32_t v = 0; v < problem.raw().value_count; ++v)
    isElementWise &= problem.rank(v) <= 4;
  for (uint32_t i = 0; i < problem.opCount(); ++i) {
    const std::string_view name = problem.op(i).name();
    isElementWise &= isPointwise(name) && problem.op(i).output(0) != DVT_NO_VALUE &&
                     problem.rank(problem.op(i).output(0)) == 4;
    if (isImageOp(name))
      domain = Domain::Image;
    else if (isProduct(name))
      domain = Domain::Rows;
    else if (isNorm(name))
      domain = Domain::Norm;
  }
  std::vector<Graph> graphs;
  auto attempt = [&](Domain as, bool channelsLast) {
    std::string why;
    Translator translator(problem, as, channelsLast, why);
    const bool works = translator.run();
    if (works)
      graphs.push_back(std::move(translator.graph));
    else if (reason.empty())
      reason = why;
    return works;
  };
  if (domain == Domain::Image || isElementWise)
    attempt(Domain::Image, true);
  if (domain == Domain::Rows) {
    // Products of one right side are one product with more rows.
    if (attempt(Domain::Rows, false) || (reason.clear(), attempt(Domain::Batch, false)))
      return graphs;
  } else {
    attempt(domain, false);
  }
  // Without an image in memory the two do not differ.
  if (graphs.size() == 2 && graphs[0].inputLayouts == graphs[1].inputLayouts &&
      graphs[0].outputLayouts == graphs[1].outputLayouts)
    graphs.resize(1);
  return graphs;
}

} // namespace dovetail::cudnn
