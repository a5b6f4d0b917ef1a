// SPDX-License-Identifier: Apache-2.0
//
// MatMulNBits. Rows of B are padded to whole blocks and those of the zero points to whole bytes;
// where that changes anything, the constant is packed anew, else it is the same bytes under another
// type.
#include "import/BlockQuantizedOps.h"

#include <cmath>
#include <cstring>

#include <fmt/ranges.h>

#include "graph/TensorType.h"
#include "import/TensorTypes.h"

using mlir::Value;

namespace dovetail::importer {
namespace {

class MatMulNBits {
public:
  explicit MatMulNBits(NodeImport &node)
      : node(node), e(node.emitter), depth(node.integer("K", 0)), columns(node.integer("N", 0)),
        block(node.integer("block_size", 0)), bits(node.integer("bits", 4)) {}

  Status run() {
    if (Status status = checkSizes(); !status)
      return status;
    Expected<Value> weights = readWeights();
    if (!weights)
      return weights.takeError();
    Expected<Value> scales = readScales();
    if (!scales)
      return scales.takeError();
    Expected<Value> zeros = readZeroPoints();
    if (!zeros)
      return zeros.takeError();

    auto dequantized = e.emit("DequantizeLinear", {*weights, *scales, *zeros},
                              AttributeMap{{"axis", int64_t(1)}, {"block_size", block}});
    if (!dequantized)
      return dequantized.takeError();
    auto turned =
        e.emit("Transpose", {*dequantized}, AttributeMap{{"perm", std::vector<int64_t>{1, 0}}});
    if (!turned)
      return turned.takeError();
    auto result = e.emit("MatMul", {node.operand(0), *turned});
    if (!result)
      return result.takeError();
    if (Value bias = node.operand(5)) {
      result = e.emit("Add", {*result, bias});
      if (!result)
        return result.takeError();
    }
    node.replacement = Values{*result};
    return Status::success();
  }

private:
  int64_t blocks() const { return (depth + block - 1) / block; }

  Status checkSizes() const {
    constexpr int64_t kMost = int64_t(1) << 31;
    if (depth < 1 || columns < 1 || depth > kMost || columns > kMost)
      return node.fail("has K = {} and N = {}; both must be positive", depth, columns);
    if (bits != 4 && bits != 8)
      return node.fail("has weights of {} bits; 4 and 8 are supported. Quantise the model again "
                       "with one of these",
                       bits);
    if (block < 16 || block > kMost || (block & (block - 1)))
      return node.fail("has block_size {}; a power of two of at least 16 is defined", block);
    if (node.operand(4))
      return node.fail("has an input g_idx, which is not supported; quantise the model without "
                       "reordering its rows (no act-order)");
    dvt_type type = e.type(node.operand(0));
    if (type != DVT_F32 && type != DVT_F16 && type != DVT_BF16)
      return node.fail("multiplies a {}; float, float16 and bfloat16 are defined",
                       onnxTypeName(type));
    const graph::Shape &a = e.shape(node.operand(0));
    if (a.empty() || (a.back().isStatic() && a.back().value() != depth))
      return node.fail("K is {}, but A has {}", depth,
                       a.empty() ? "no extents" : "the last extent " + a.back().text());
    if (Value bias = node.operand(5);
        bias && (e.shape(bias) != graph::Shape{Extent(columns)} || e.type(bias) != type))
      return node.fail("bias must be a {} of [{}]", onnxTypeName(type), columns);
    return Status::success();
  }

  /// A constant operand whose extents are one of `forms`.
  Expected<TensorData> constantOperand(size_t index, std::string_view name, dvt_type type,
                                       const std::vector<std::vector<int64_t>> &forms) const {
    Value value = node.operand(index);
    std::optional<TensorData> data = e.constantData(value);
    if (!data)
      return node.fail("{} is computed by the model; it must be a constant", name);
    bool fits = data->type == type;
    std::string wanted;
    bool extentsFit = false;
    for (const std::vector<int64_t> &form : forms) {
      extentsFit |= data->extents == form;
      wanted += fmt::format("{}[{}]", wanted.empty() ? "" : " or ", fmt::join(form, ","));
    }
    if (!fits || !extentsFit)
      return node.fail("{} is a {} of [{}]; with K = {}, N = {}, block_size = {} and bits = {} it "
                       "must be a {} of {}",
                       name, onnxTypeName(data->type), fmt::join(data->extents, ","), depth,
                       columns, block, bits, onnxTypeName(type), wanted);
    return std::move(*data);
  }

  dvt_type weightType() const { return bits == 4 ? DVT_U4 : DVT_U8; }

  /// `rows` rows of `length` numbers of a matrix whose rows take `rowBytes` bytes.
  TensorData cropRows(const TensorData &from, int64_t rows, int64_t length,
                      int64_t rowBytes) const {
    TensorData to;
    to.type = weightType();
    to.extents = {rows, length};
    to.elements = rows * length;
    if (rowBytes * 8 == length * bits) {
      to.bytes = from.bytes;
      to.owner = from.owner;
      return to;
    }
    auto owner = std::make_shared<std::string>(bytesOf(to.type, to.elements), '\0');
    for (int64_t row = 0, at = 0; row < rows; ++row)
      for (int64_t i = 0; i < length; ++i, ++at) {
        auto byte = [&](int64_t place) { return uint8_t(from.bytes[size_t(place)]); };
        if (bits == 8)
          (*owner)[size_t(at)] = char(byte(row * rowBytes + i));
        else
          (*owner)[size_t(at / 2)] |=
              char((byte(row * rowBytes + i / 2) >> (i % 2 * 4) & 15) << (at % 2 * 4));
      }
    to.bytes = *owner;
    to.owner = std::move(owner);
    return to;
  }

  Expected<Value> readWeights() {
    int64_t blockBytes = block * bits / 8;
    auto data = constantOperand(1, "B", DVT_U8, {{columns, blocks(), blockBytes}});
    if (!data)
      return data.takeError();
    return e.constant(cropRows(*data, columns, depth, blocks() * blockBytes), nameOf(1));
  }

  Expected<Value> readScales() {
    auto data = constantOperand(2, "scales", e.type(node.operand(0)),
                                {{columns * blocks()}, {columns, blocks()}});
    if (!data)
      return data.takeError();
    data->extents = {columns, blocks()};
    return e.constant(*data, nameOf(2));
  }

  /// Those that are left out stand for the middle of the range.
  Expected<Value> readZeroPoints() {
    if (!node.operand(3)) {
      TensorData middle;
      middle.type = weightType();
      middle.extents = {columns, blocks()};
      middle.elements = columns * blocks();
      auto owner = std::make_shared<std::string>(bytesOf(middle.type, middle.elements),
                                                 bits == 4 ? '\x88' : '\x80');
      if (bits == 4 && middle.elements % 2)
        owner->back() = '\x08';
      middle.bytes = *owner;
      middle.owner = std::move(owner);
      return e.constant(middle, "zero_points");
    }
    if (e.type(node.operand(3)) != DVT_U8)
      return readFloatZeroPoints();
    int64_t rowBytes = (blocks() * bits + 7) / 8;
    auto data =
        constantOperand(3, "zero_points", DVT_U8, {{columns * rowBytes}, {columns, rowBytes}});
    if (!data)
      return data.takeError();
    return e.constant(cropRows(*data, columns, blocks(), rowBytes), nameOf(3));
  }

  Expected<Value> readFloatZeroPoints() {
    dvt_type type = e.type(node.operand(0));
    auto data =
        constantOperand(3, "zero_points", type, {{columns * blocks()}, {columns, blocks()}});
    if (!data)
      return data.takeError();
    auto owner = std::make_shared<std::string>(bytesOf(weightType(), columns * blocks()), '\0');
    for (int64_t i = 0; i < columns * blocks(); ++i) {
      std::optional<double> number = graph::numberAt(type, data->bytes.data(), size_t(i));
      if (!number || *number != std::floor(*number) || *number < 0 || *number >= (1 << bits))
        return node.fail("zero_points has the element {} at [{},{}]; whole numbers from 0 to {} "
                         "are supported",
                         number.value_or(NAN), i / blocks(), i % blocks(), (1 << bits) - 1);
      if (bits == 8)
        (*owner)[size_t(i)] = char(uint8_t(*number));
      else
        (*owner)[size_t(i / 2)] |= char(uint8_t(*number) << (i % 2 * 4));
    }
    data->type = weightType();
    data->extents = {columns, blocks()};
    data->bytes = *owner;
    data->owner = std::move(owner);
    return e.constant(*data, nameOf(3));
  }

  std::string nameOf(size_t operand) const {
    static constexpr const char *names[] = {"A", "B", "scales", "zero_points"};
    return fmt::format("{}:{}", e.label, names[operand]);
  }

  NodeImport &node;
  OpEmitter &e;
  int64_t depth, columns, block, bits;
};

} // namespace

Status importMatMulNBits(NodeImport &node) { return MatMulNBits(node).run(); }

} // namespace dovetail::importer
