// SPDX-License-Identifier: Apache-2.0
//
// A problem as calls of the library: the first computes from operands, those behind it change its
// result in place. Tensors are described in the way that the library computes rightly with in all
// its versions, which for element-wise calls is another one than the problem's.
#pragma once

#include <string>
#include <vector>

#include "providers/ProblemReader.h"
#include "providers/miopen/Api.h"

namespace dovetail::miopen {

using providers::Dims;

/// As a tensor descriptor has it: logical dimensions with strides in elements.
struct Tensor {
  DataType type = DataType::Float;
  Dims dims, strides;
};

struct Activation {
  ActivationMode mode = ActivationMode::Relu;
  double alpha = 0, beta = 0;
};

struct Call {
  enum class Kind {
    Convolution, ///< operands x, w
    Pool,        ///< operand x
    Softmax,     ///< operand x, over the second of four dimensions
    BatchNorm,   ///< operands x, scale, bias, mean, variance
    LayerNorm,   ///< operands x, scale, bias, over the second of two dimensions
    Activate,    ///< operand x, or in place
    AddBias,     ///< operand: a number for each channel; in place
    AddTensor    ///< operand of the result's elements; in place
  };
  Kind kind = Kind::Activate;
  std::vector<uint32_t> operands; ///< positions among the problem's inputs
  std::vector<Tensor> tensors;    ///< of the operands, in their order
  Tensor result;
  Dims pads, strides, dilations; ///< Convolution, Pool; as many as spatial dimensions
  Dims window;                   ///< Pool
  int64_t groups = 1;            ///< Convolution
  PoolingMode pooling = PoolingMode::Max;
  bool logarithm = false; ///< Softmax
  Activation activation;
  double epsilon = 0;

  bool isInPlace() const { return kind >= Kind::AddBias || operands.empty(); }
};

struct Form {
  std::string family; ///< first part of the candidates' names
  std::vector<Call> calls;
  std::vector<std::string> inputLayouts, outputLayouts;

  bool isConvolution() const { return calls.front().kind == Call::Kind::Convolution; }
  /// Whether the library has algorithms for this convolution that round in a class of their own.
  bool mayTransform() const;
};

/// One form for each layout worth having, the same in every process: row-major and channels last
/// for convolutions and for element-wise ops on images, row-major for others. Empty with `reason`
/// where an op, a type or a shape has no counterpart.
std::vector<Form> translate(const providers::ProblemReader &problem, std::string &reason);

/// The workspace that a form may take. For a convolution what its algorithms that unfold the image,
/// or bring operands into another layout and type, take; those that want more are not used.
uint64_t workspaceBound(const Form &form);
/// Of a mean, or a scale, for each row of a layer normalisation; a multiple of 256.
uint64_t rowNumbersBytes(const Call &layerNorm);

/// Bytes of one element; "f32", "f16" or "bf16".
uint64_t elementBytes(DataType type);
const char *nameOf(DataType type);

} // namespace dovetail::miopen
