// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "ElementTypes.h"
#include "Graphs.h"

namespace cudnn_double {
namespace {

using api::Dims;
using api::Graph;
using api::Operation;

std::string textOf(const Dims &dims) {
  std::string text = "[";
  for (int64_t extent : dims)
    text += (text.size() > 1 ? "," : "") + std::to_string(extent);
  return text + "]";
}

/// Whether each extent of `from` is that of `into`, or 1 where it is repeated.
bool broadcasts(const Dims &from, const Dims &into) {
  if (from.size() != into.size())
    return false;
  for (size_t i = 0; i < into.size(); ++i)
    if (from[i] != 1 && from[i] != into[i])
      return false;
  return true;
}

std::string checkTensor(const api::Tensor &tensor) {
  const int64_t element = elementBytes(tensor.type);
  if (tensor.dims.size() != tensor.strides.size() || tensor.dims.size() < 3)
    return fmt::format("{} dimensions and {} strides", tensor.dims.size(), tensor.strides.size());
  for (size_t i = 0; i < tensor.dims.size(); ++i)
    if (tensor.dims[i] < 1 || tensor.strides[i] < 1)
      return fmt::format("dimension {} is {} with stride {}", i, tensor.dims[i], tensor.strides[i]);
  if (tensor.alignment < element || !std::has_single_bit(static_cast<uint64_t>(tensor.alignment)))
    return fmt::format("alignment to {} bytes", tensor.alignment);
  if (tensor.number && dovetail::providers::product(tensor.dims) != 1)
    return "more than one number is handed over by value";
  return {};
}

std::string checkWindow(const Operation &op, const Dims &x, const Dims &window, const Dims &y) {
  if (x.size() != window.size() + 2 || y.size() != x.size() || op.strides.size() != window.size())
    return "the window has another number of dimensions than the image";
  for (size_t i = 0; i < window.size(); ++i) {
    const int64_t dilation = op.dilations.empty() ? 1 : op.dilations[i],
                  room = x[i + 2] + op.prePads[i] + op.postPads[i] - (window[i] - 1) * dilation - 1;
    if (op.strides[i] < 1 || dilation < 1 || op.prePads[i] < 0 || op.postPads[i] < 0)
      return "a stride, dilation or padding is none";
    if (room < 0 || room / op.strides[i] + 1 != y[i + 2])
      return "image " + textOf(x) + " and window " + textOf(window) + " do not give " + textOf(y);
  }
  return {};
}

std::string checkConvolution(const Graph &graph, const Operation &op) {
  const api::Tensor &x = graph.tensors[op.operands[0]], &w = graph.tensors[op.operands[1]],
                    &y = graph.tensors[op.result];
  if (x.type != w.type)
    return "image and weights are of different types";
  if (x.dims.size() < 4 || x.dims.size() > 5 || w.dims.size() != x.dims.size())
    return "images of " + std::to_string(x.dims.size()) + " dimensions are not supported";
  if (x.dims[1] % w.dims[1] != 0 || w.dims[0] % (x.dims[1] / w.dims[1]) != 0 ||
      y.dims.size() != x.dims.size() || y.dims[0] != x.dims[0] || y.dims[1] != w.dims[0])
    return "channels of " + textOf(x.dims) + " and " + textOf(w.dims) + " do not give " +
           textOf(y.dims);
  return checkWindow(op, x.dims, Dims(w.dims.begin() + 2, w.dims.end()), y.dims);
}

std::string checkMatmul(const Graph &graph, const Operation &op) {
  const api::Tensor &left = graph.tensors[op.operands[0]], &right = graph.tensors[op.operands[1]];
  const Dims &a = left.dims, &b = right.dims, &c = graph.tensors[op.result].dims;
  const size_t rank = c.size();
  if (left.type != right.type)
    return "the factors are of different types";
  if (rank < 3 || a.size() != rank || b.size() != rank || a[rank - 2] != c[rank - 2] ||
      b[rank - 1] != c[rank - 1] || a[rank - 1] != b[rank - 2] ||
      !broadcasts(Dims(a.begin(), a.end() - 2), Dims(c.begin(), c.end() - 2)) ||
      !broadcasts(Dims(b.begin(), b.end() - 2), Dims(c.begin(), c.end() - 2)))
    return textOf(a) + " times " + textOf(b) + " is not " + textOf(c);
  return {};
}

std::string checkNorm(const Graph &graph, const Operation &op) {
  auto dims = [&](size_t tensor) -> const Dims & { return graph.tensors[tensor].dims; };
  const Dims &x = dims(op.operands[0]);
  if (x.size() < 3 || dims(op.result) != x)
    return "operand " + textOf(x) + " and result " + textOf(dims(op.result)) + " differ";
  for (size_t i = 1; i < 3; ++i)
    if (op.operands[i] != Operation::kAbsent &&
        (!broadcasts(dims(op.operands[i]), x) || dims(op.operands[i])[0] != 1))
      return "a scale or bias of " + textOf(dims(op.operands[i])) + " for " + textOf(x);
  if (op.norm == api::NormMode::Layer && op.operands[2] == Operation::kAbsent)
    return "a layer normalisation without a bias";
  return graph.tensors[op.operands[3]].number ? "" : "epsilon is not handed over by value";
}

std::string checkAttention(const Graph &graph, const Operation &op) {
  auto dims = [&](size_t tensor) -> const Dims & { return graph.tensors[tensor].dims; };
  const Dims &q = dims(op.operands[0]), &k = dims(op.operands[1]), &v = dims(op.operands[2]),
             &o = dims(op.result);
  for (size_t i = 0; i < 3; ++i)
    if (dims(op.operands[i]).size() != 4 ||
        graph.tensors[op.operands[i]].type == api::DataType::Float)
      return "operands are four-dimensional tensors of 16 bits";
  if (q[0] != k[0] || v[0] != k[0] || q[1] % k[1] != 0 || v[1] != k[1] || q[3] != k[3] ||
      k[2] != v[2] || o != Dims{q[0], q[1], q[2], v[3]})
    return "queries " + textOf(q) + ", keys " + textOf(k) + " and values " + textOf(v) +
           " do not give " + textOf(o);
  return {};
}

std::string checkKind(const Graph &graph, const Operation &op) {
  const Dims &x = graph.tensors[op.operands[0]].dims, &y = graph.tensors[op.result].dims;
  switch (op.kind) {
  case Operation::Kind::Convolution:
    return checkConvolution(graph, op);
  case Operation::Kind::Matmul:
    return checkMatmul(graph, op);
  case Operation::Kind::Pointwise:
    for (size_t operand : op.operands)
      if (!broadcasts(graph.tensors[operand].dims, y))
        return textOf(graph.tensors[operand].dims) + " does not broadcast to " + textOf(y);
    return {};
  case Operation::Kind::Reduction:
    return broadcasts(y, x) ? "" : textOf(x) + " does not reduce to " + textOf(y);
  case Operation::Kind::Resample:
    if (x.size() < 4 || y.size() != x.size() || x[0] != y[0] || x[1] != y[1])
      return textOf(x) + " and " + textOf(y) + " differ in batch or channels";
    return checkWindow(op, x, op.window, y);
  case Operation::Kind::Norm:
    return checkNorm(graph, op);
  case Operation::Kind::Attention:
    return checkAttention(graph, op);
  }
  return {};
}

} // namespace

std::string checkShapes(const api::Graph &graph, const api::Operation &op) {
  std::vector<size_t> all = op.operands;
  all.push_back(op.result);
  for (size_t tensor : all)
    if (tensor != Operation::kAbsent)
      if (std::string wrong = checkTensor(graph.tensors[tensor]); !wrong.empty())
        return wrong;
  return checkKind(graph, op);
}

} // namespace cudnn_double
