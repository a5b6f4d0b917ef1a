// SPDX-License-Identifier: Apache-2.0
//
// Scales and shifts of channels go into the weights and the bias of the convolution or gemm in
// front: batch normalization, and products and sums with a constant for each channel. A batch
// normalization elsewhere becomes one product and one sum. New weights are computed in double and
// rounded once.
#include <cmath>
#include <cstring>

#include "graph/simplify/Floats.h"
#include "graph/simplify/Rewrite.h"

using namespace mlir;

namespace dovetail::graph {

std::optional<std::vector<float>> constantFloats(Value value) {
  ConstantOp constant = constantOf(value);
  if (!constant || !constant.getValue().getElementType().isF32())
    return std::nullopt;
  ConstantBytes bytes = constantBytes(constant);
  std::vector<float> floats(bytes.size / sizeof(float));
  std::memcpy(floats.data(), bytes.data, floats.size() * sizeof(float));
  return floats;
}

Value createFloats(OpBuilder &builder, Location loc, RankedTensorType type,
                   const std::vector<float> &values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return createConstant(builder, loc, type, std::move(bytes));
}

std::optional<std::vector<float>> channelFloats(Value value, size_t rank, size_t dimension,
                                                int64_t extent) {
  ConstantOp constant = constantOf(value);
  if (!constant)
    return std::nullopt;
  ArrayRef<int64_t> shape = constant.getValue().getShapedType().getShape();
  if (shape.size() > rank)
    return std::nullopt;
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1 && (d + rank - shape.size() != dimension || shape[d] != extent))
      return std::nullopt;
  std::optional<std::vector<float>> floats = constantFloats(value);
  if (floats && floats->size() == 1)
    floats->resize(size_t(extent), floats->front());
  return floats;
}

namespace {

/// y[c] = scale[c] * x[c] + shift[c]
struct Affine {
  std::vector<double> scale, shift;
};

/// The linear op in front of a channel-wise one: how its weights and channels lie.
struct Linear {
  Operation *op;
  int64_t channels;
  size_t channelDimension; ///< of the result
  int64_t outer, inner;    ///< weights are [outer][channels of a group][inner], groups outermost
  int64_t groups;
};

/// The linear op that defines `value`, if all of its uses are this one and its constants can
/// change.
std::optional<Linear> linearOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !op->hasOneUse() || op->getNumOperands() < 2)
    return std::nullopt;
  RankedTensorType weights = typeOf(op->getOperand(1));
  if (!constantOf(op->getOperand(1)) || !weights.getElementType().isF32())
    return std::nullopt;
  if (op->getNumOperands() > 2 && !isAbsent(op->getOperand(2)) && !constantOf(op->getOperand(2)))
    return std::nullopt;
  int64_t count = weights.getNumElements();
  if (count == 0)
    return std::nullopt;
  if (isOp(op, "conv")) {
    int64_t channels = weights.getDimSize(0);
    return Linear{op, channels, 1, 1, count / channels, 1};
  }
  if (isOp(op, "conv_transpose")) {
    int64_t groups = intAttribute(op, "group", 1), perGroup = weights.getDimSize(1);
    int64_t rows = weights.getDimSize(0) / groups;
    return Linear{op, perGroup * groups, 1, rows, count / (groups * rows * perGroup), groups};
  }
  if (isOp(op, "gemm") && floatAttribute(op, "alpha", 1) == 1 &&
      floatAttribute(op, "beta", 1) == 1) {
    bool transposed = intAttribute(op, "transB", 0) != 0;
    int64_t channels = weights.getDimSize(transposed ? 0 : 1);
    return Linear{op,
                  channels,
                  1,
                  transposed ? 1 : weights.getDimSize(0),
                  transposed ? weights.getDimSize(1) : 1,
                  1};
  }
  return std::nullopt;
}

/// The linear op with weights and bias changed, in front of `at`.
std::optional<Value> scaledLinear(const Linear &linear, const Affine &affine,
                                  PatternRewriter &rewriter, Operation *at) {
  Operation *op = linear.op;
  std::optional<std::vector<float>> weights = constantFloats(op->getOperand(1));
  bool hasBias = op->getNumOperands() > 2 && !isAbsent(op->getOperand(2));
  std::optional<std::vector<float>> bias = std::vector<float>(linear.channels, 0.0f);
  if (hasBias)
    bias = channelFloats(op->getOperand(2), isOp(op, "gemm") ? 2 : 1, isOp(op, "gemm") ? 1 : 0,
                         linear.channels);
  if (!weights || !bias)
    return std::nullopt;
  int64_t perGroup = linear.channels / linear.groups;
  size_t element = 0;
  for (int64_t g = 0; g < linear.groups; ++g)
    for (int64_t o = 0; o < linear.outer; ++o)
      for (int64_t c = 0; c < perGroup; ++c)
        for (int64_t i = 0; i < linear.inner; ++i, ++element)
          (*weights)[element] = float((*weights)[element] * affine.scale[g * perGroup + c]);
  for (int64_t c = 0; c < linear.channels; ++c)
    (*bias)[c] = float(double((*bias)[c]) * affine.scale[c] + affine.shift[c]);
  // A scale that leaves the range of float is better applied at run time.
  auto isFinite = [](float value) { return std::isfinite(value); };
  if (!llvm::all_of(*weights, isFinite) || !llvm::all_of(*bias, isFinite))
    return std::nullopt;
  rewriter.setInsertionPoint(at);
  auto biasType = RankedTensorType::get({linear.channels}, rewriter.getF32Type());
  Value operands[] = {op->getOperand(0),
                      createFloats(rewriter, op->getLoc(), typeOf(op->getOperand(1)), *weights),
                      createFloats(rewriter, op->getLoc(), biasType, *bias)};
  return createValue(rewriter, op->getLoc(), op->getName().stripDialect(), operands,
                     op->getResult(0).getType(), op->getAttrs());
}

LogicalResult absorb(Operation *op, Value input, const std::optional<Affine> &affine,
                     PatternRewriter &rewriter) {
  std::optional<Linear> linear = linearOf(input);
  if (!linear || !affine || op->getResult(0).getType() != input.getType())
    return failure();
  std::optional<Value> value = scaledLinear(*linear, *affine, rewriter, op);
  if (!value)
    return failure();
  rewriter.replaceOp(op, *value);
  return success();
}

/// The affine map of mul, div, add or sub with a constant for each channel of `input`, operand
/// `index` of `op`.
std::optional<Affine> affineOf(Operation *op, unsigned index) {
  RankedTensorType type = typeOf(op->getOperand(index));
  std::optional<Linear> linear = linearOf(op->getOperand(index));
  if (!type || !linear)
    return std::nullopt;
  std::optional<std::vector<float>> constant = channelFloats(
      op->getOperand(1 - index), type.getRank(), linear->channelDimension, linear->channels);
  if (!constant)
    return std::nullopt;
  std::vector<double> values(constant->begin(), constant->end());
  std::vector<double> ones(values.size(), 1), zeros(values.size(), 0);
  StringRef name = op->getName().stripDialect();
  if (name == "mul")
    return Affine{values, zeros};
  if (name == "add")
    return Affine{ones, values};
  for (double &value : values)
    value = name == "div" ? 1 / value : -value;
  return name == "div" ? Affine{values, zeros} : Affine{ones, values};
}

LogicalResult absorbChannelwise(Operation *op, PatternRewriter &rewriter) {
  StringRef name = op->getName().stripDialect();
  bool commutes = name == "mul" || name == "add";
  for (unsigned index = 0; index < (commutes ? 2 : 1); ++index)
    if (succeeded(absorb(op, op->getOperand(index), affineOf(op, index), rewriter)))
      return success();
  return failure();
}

LogicalResult lowerBatchNormalization(Operation *op, PatternRewriter &rewriter) {
  Value input = op->getOperand(0);
  RankedTensorType type = typeOf(input);
  if (intAttribute(op, "training_mode", 0) != 0 || type.getRank() < 2 ||
      !type.getElementType().isF32() || input.getType() != op->getResult(0).getType())
    return failure();
  for (Value result : op->getResults().drop_front())
    if (!result.use_empty())
      return failure();
  std::optional<std::vector<float>> parts[4];
  for (unsigned i = 0; i < 4; ++i)
    if (parts[i] = constantFloats(op->getOperand(i + 1)); !parts[i])
      return failure();
  Affine affine;
  double epsilon = floatAttribute(op, "epsilon", 1e-5);
  for (size_t c = 0; c < parts[0]->size(); ++c) {
    double scale = (*parts[0])[c] / std::sqrt(double((*parts[3])[c]) + epsilon);
    affine.scale.push_back(scale);
    affine.shift.push_back((*parts[1])[c] - (*parts[2])[c] * scale);
  }
  if (op->getNumResults() == 1 && succeeded(absorb(op, input, affine, rewriter)))
    return success();
  SmallVector<int64_t> shape(type.getRank() - 1, 1);
  shape[0] = int64_t(affine.scale.size());
  auto constantType = RankedTensorType::get(shape, type.getElementType());
  auto rounded = [](const std::vector<double> &values) {
    return std::vector<float>(values.begin(), values.end());
  };
  Value scale = createFloats(rewriter, op->getLoc(), constantType, rounded(affine.scale));
  Value shift = createFloats(rewriter, op->getLoc(), constantType, rounded(affine.shift));
  Value product = createValue(rewriter, op->getLoc(), "mul", {input, scale}, type);
  Value sum = createValue(rewriter, op->getLoc(), "add", {product, shift}, type);
  rewriter.replaceAllUsesWith(op->getResult(0), sum);
  rewriter.eraseOp(op);
  return success();
}

} // namespace

void addScaleRewrites(RewritePatternSet &set) {
  for (const char *name : {"mul", "div", "add", "sub"})
    addRewrite(set, name, absorbChannelwise);
  addRewrite(set, "batch_normalization", lowerBatchNormalization);
}

} // namespace dovetail::graph
