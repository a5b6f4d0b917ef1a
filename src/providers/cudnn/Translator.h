// SPDX-License-Identifier: Apache-2.0
//
// One translation under way: what is known of the problem's values, and the graph so far. The ops
// themselves are translated in files by family.
#pragma once

#include <map>
#include <string>

#include "providers/OperandView.h"
#include "providers/cudnn/Translate.h"

namespace dovetail::cudnn {

using providers::OpReader;
using providers::ProblemReader;
using providers::View;

/// How tensors of the problem become tensors of a graph, all of one rank.
enum class Domain {
  Image, ///< batch, channels and at least two spatial dimensions
  Rows,  ///< products whose leading dimensions are one: [1, rows, columns]
  Batch, ///< products with all dimensions but the last two as one: [batch, rows, columns]
  Norm,  ///< [rows, normalised elements, 1, 1]
  Plain  ///< at least four dimensions, the last one where an image has its channels
};

class Translator {
public:
  Translator(const ProblemReader &problem, Domain domain, bool channelsLast, std::string &reason)
      : problem(problem), domain(domain), channelsLast(channelsLast), reason(reason) {}

  /// Whether it worked; the graph is then complete.
  bool run();
  Graph graph;

  const ProblemReader &problem;

  bool refuse(const std::string &why) {
    reason = why;
    return false;
  }

  /// The value as a tensor of the graph: an operand, a number, or what an operation gave. kAbsent
  /// with a reason where it cannot be one.
  size_t operand(uint32_t value);
  /// Memory under dimensions of the graph.
  size_t operand(const View &view);
  /// How the value lies in memory, through the views in front of it; nothing where it is computed
  /// inside.
  std::optional<View> memoryOf(uint32_t value) const;
  size_t number(double number);
  /// A tensor for the result of an operation: the problem's result or a virtual one. kAbsent with
  /// a reason.
  size_t result(uint32_t value);
  size_t result(uint32_t value, const View &view);
  /// Gives what an operation computed, where `tensor` is that, the type of `like`: engines multiply
  /// elements of one type.
  void alignType(size_t tensor, size_t like) {
    if (graph.tensors[tensor].isVirtual())
      graph.tensors[tensor].type = graph.tensors[like].type;
  }
  /// A virtual tensor of these extents.
  size_t temporary(const Dims &dims);
  const Dims &dimsOf(size_t tensor) const { return graph.tensors[tensor].dims; }

  /// Appends an element-wise operation and gives its result, a new temporary unless stated.
  size_t pointwise(PointwiseMode mode, std::vector<size_t> operands,
                   size_t into = Operation::kAbsent);
  void append(Operation operation) { graph.operations.push_back(std::move(operation)); }
  /// Whether the operand has the result's extents, or 1 where it is repeated.
  bool broadcasts(size_t operand, size_t into) const;
  /// The dimensions of the problem as those of the graph; nothing where they do not fit.
  std::optional<View> place(const View &view) const;
  bool isStored(uint32_t value) const;
  View memory(uint32_t value) const;

  Domain domainOfAll() const { return domain; }
  /// Where a dimension of the graph's rank, counted as in ONNX, is in the graph's order.
  size_t placedAxis(size_t axis) const {
    return domain != Domain::Plain || axis == 0 ? axis : axis + 1 == rank ? 1 : axis + 1;
  }
  size_t graphRank() const { return rank; }

private:
  bool checkWhole();
  bool readDomain();
  bool readTrailingViews();
  void chooseLayouts();
  bool translate(const OpReader &op);
  bool takeView(const OpReader &op);
  size_t tensor(const View &view, DataType type);
  /// Whether channels come first among the strides.
  bool channelsInside() const { return channelsLast || domain == Domain::Plain; }
  void settleUnitStrides(Dims &strides, const Dims &dims) const;

  Domain domain;
  bool channelsLast;
  std::string &reason;
  size_t rank = 4;
  int64_t columns = 0;                 ///< Norm: elements normalised together
  size_t normalised = 1;               ///< Norm: in how many dimensions, the last ones
  std::map<uint32_t, View> views;      ///< results of views of memory
  std::map<uint32_t, View> stored;     ///< values that lie in the memory of a result
  std::map<uint32_t, size_t> computed; ///< values that operations gave
  std::map<uint32_t, std::string> layouts;
};

// By family; each takes the op whole, or refuses with a reason.
bool translateConvolution(Translator &to, const OpReader &op);
bool translateProduct(Translator &to, const OpReader &op);
bool translatePool(Translator &to, const OpReader &op);
bool translateNorm(Translator &to, const OpReader &op);
bool translateSoftmax(Translator &to, const OpReader &op);
bool translateReduction(Translator &to, const OpReader &op);
bool translateAttention(Translator &to, const OpReader &op);
bool translatePointwise(Translator &to, const OpReader &op);
/// Whether the op is element-wise as far as this provider is concerned.
bool isPointwise(std::string_view name);

/// Type of elements; nothing where no kernel of this provider takes them.
std::optional<DataType> dataType(dvt_type type);

} // namespace dovetail::cudnn
