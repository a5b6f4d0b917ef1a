// SPDX-License-Identifier: Apache-2.0
//
// A problem as a graph of cuDNN's operations: plain data, made without the library and compared in
// tests without it. Tensors that are no operand or result of the problem are virtual and live
// inside the kernel, in f32.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "providers/ProblemReader.h"
#include "providers/cudnn/Backend.h"

namespace dovetail::cudnn {

using providers::Dims;

struct Tensor {
  DataType type = DataType::Float;
  Dims dims, strides;               ///< strides in elements
  uint32_t value = DVT_NO_VALUE;    ///< of the problem, whose memory it is; absent when virtual
  std::optional<float> number = {}; ///< a scalar handed over by value
  int64_t alignment = 16;           ///< of its memory, in bytes
  bool isVirtual() const { return value == DVT_NO_VALUE && !number; }
};

struct Operation {
  enum class Kind { Convolution, Matmul, Pointwise, Reduction, Resample, Norm, Attention };
  static constexpr size_t kAbsent = SIZE_MAX;
  Kind kind = Kind::Pointwise;
  /// Indices of tensors. Convolution: image, weights. Matmul: left, right. Pointwise: one or two.
  /// Norm: x, scale, bias or kAbsent, epsilon. Attention: q, k, v, scale.
  std::vector<size_t> operands;
  size_t result = kAbsent;
  // Convolution and Resample, a number for each spatial dimension.
  Dims strides = {}, dilations = {}, prePads = {}, postPads = {}, window = {};
  PointwiseMode pointwise = PointwiseMode::Identity;
  /// Of the pointwise modes that have some: slope and clips of Relu, alpha of Elu, beta of Swish.
  std::optional<double> lowerClip = {}, upperClip = {}, slope = {}, alpha = {};
  ReductionOperator reduction = ReductionOperator::Add;
  ResampleMode resample = ResampleMode::Max;
  NormMode norm = NormMode::Layer;
};

struct Graph {
  std::vector<Tensor> tensors; ///< the unique id of one is its index + 1
  std::vector<Operation> operations;
  std::string family; ///< of the algorithms that compute it: "implicit-gemm", "gemm", "pooling"...
  std::vector<std::string> inputLayouts, outputLayouts; ///< of the problem's
  static int64_t uniqueId(size_t tensor) { return static_cast<int64_t>(tensor) + 1; }
};

/// The graph as the library has it. Descriptors refer to each other, so all of them are kept.
struct OperationGraph {
  Object graph;
  std::vector<Object> parts;
};

/// What is wrong, the library's own words included, is in `backend`.
OperationGraph build(Backend &backend, const Graph &graph);

} // namespace dovetail::cudnn
