// SPDX-License-Identifier: Apache-2.0
//
// Reads MLIR's ways of storing elements and writes the ones used here.
#include "graph/ConstantData.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace dovetail::graph {
namespace {

/// Above this, a constant is a blob: attributes are hashed and compared by content.
constexpr size_t kInlineBytes = 1024;
constexpr int64_t kMostComparedElements = 4096;

ConstantBytes own(std::vector<uint8_t> bytes, bool uniform) {
  auto holder = std::make_shared<std::vector<uint8_t>>(std::move(bytes));
  return {holder->data(), holder->size(), uniform, holder};
}

/// Types that MLIR stores otherwise than the door has them.
ConstantBytes repacked(DenseElementsAttr value, dvt_type type) {
  int64_t count = value.isSplat() ? 1 : value.getNumElements();
  std::vector<uint8_t> bytes(bytesOf(type, count));
  if (type == DVT_BOOL) {
    auto values = value.getValues<bool>();
    for (int64_t i = 0; i < count; ++i)
      bytes[i] = values[i];
  } else {
    auto values = value.getValues<APInt>();
    for (int64_t i = 0; i < count; ++i)
      bytes[i / 2] |= uint8_t((values[i].getZExtValue() & 15) << (i % 2 * 4));
  }
  return own(std::move(bytes), value.isSplat());
}

} // namespace

ConstantBytes rawConstantBytes(ElementsAttr value) {
  dvt_type type = elementType(value.getElementType());
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return {};
    return {blob->getData().data(), blob->getData().size(), false, nullptr};
  }
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense)
    return {};
  if (typeBits(type) < 8 || type == DVT_BOOL)
    return repacked(dense, type);
  ArrayRef<char> data = dense.getRawData();
  return {data.data(), data.size(), dense.isSplat(), nullptr};
}

ConstantBytes constantBytes(ElementsAttr value) {
  ConstantBytes raw = rawConstantBytes(value);
  if (!raw.uniform)
    return raw;
  dvt_type type = elementType(value.getElementType());
  int64_t count = value.getNumElements();
  std::vector<uint8_t> bytes(bytesOf(type, count));
  const auto *element = static_cast<const uint8_t *>(raw.data);
  if (typeBits(type) < 8) {
    std::fill(bytes.begin(), bytes.end(), uint8_t((element[0] & 15) * 17));
  } else {
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = element[i % raw.size];
  }
  return own(std::move(bytes), false);
}

ConstantBytes constantBytes(ConstantOp constant) { return constantBytes(constant.getValue()); }

ConstantOp constantOf(Value value) { return value.getDefiningOp<ConstantOp>(); }

namespace {

template <typename T, typename Read>
std::optional<std::vector<T>> readAll(Value value, int64_t most, Read read) {
  ConstantOp constant = constantOf(value);
  if (!constant || constant.getValue().getNumElements() > most)
    return std::nullopt;
  ConstantBytes bytes = rawConstantBytes(constant.getValue());
  dvt_type type = elementType(constant.getValue().getElementType());
  if (!bytes.data && bytes.size)
    return std::nullopt;
  std::vector<T> values;
  for (int64_t i = 0, count = constant.getValue().getNumElements(); i < count; ++i) {
    std::optional<T> element =
        read(type, static_cast<const char *>(bytes.data), bytes.uniform ? 0 : size_t(i));
    if (!element)
      return std::nullopt;
    values.push_back(*element);
  }
  return values;
}

} // namespace

std::optional<std::vector<double>> constantNumbers(Value value) {
  return readAll<double>(value, INT64_MAX, numberAt);
}

std::optional<std::vector<int64_t>> constantIntegers(Value value) {
  return readAll<int64_t>(value, INT64_MAX, integerAt);
}

std::optional<double> uniformNumber(Value value) {
  ConstantOp constant = constantOf(value);
  if (!constant)
    return std::nullopt;
  if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()); dense && dense.isSplat()) {
    ConstantBytes bytes = rawConstantBytes(dense);
    return numberAt(elementType(dense.getElementType()), static_cast<const char *>(bytes.data), 0);
  }
  std::optional<std::vector<double>> all = readAll<double>(value, kMostComparedElements, numberAt);
  if (!all || all->empty() ||
      llvm::any_of(*all, [&](double element) { return !(element == all->front()); }))
    return std::nullopt;
  return all->front();
}

ElementsAttr elementsAttribute(RankedTensorType type, std::vector<uint8_t> bytes, StringRef name) {
  dvt_type element = elementType(type);
  assert(bytes.size() == bytesOf(element, type.getNumElements()));
  ArrayRef<char> chars(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  if (element == DVT_BOOL) {
    SmallVector<bool> values(llvm::map_range(bytes, [](uint8_t byte) { return byte != 0; }));
    return DenseElementsAttr::get(type, ArrayRef<bool>(values));
  }
  if (typeBits(element) < 8) {
    SmallVector<APInt> values;
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      values.emplace_back(4, uint64_t(bytes[i / 2] >> (i % 2 * 4)) & 15);
    return DenseElementsAttr::get(type, ArrayRef<APInt>(values));
  }
  if (bytes.size() <= kInlineBytes)
    return DenseElementsAttr::getFromRawBuffer(type, chars);
  auto holder = std::make_shared<std::vector<uint8_t>>(std::move(bytes));
  AsmResourceBlob blob = UnmanagedAsmResourceBlob::allocateWithAlign(
      ArrayRef<char>(reinterpret_cast<const char *>(holder->data()), holder->size()),
      alignof(std::max_align_t), [holder](void *, size_t, size_t) mutable { holder.reset(); });
  return DenseResourceElementsAttr::get(type, name, std::move(blob));
}

Value createConstant(OpBuilder &builder, Location loc, RankedTensorType type,
                     std::vector<uint8_t> bytes) {
  return ConstantOp::create(builder, loc, type, elementsAttribute(type, std::move(bytes), "made"));
}

Value createIntegers(OpBuilder &builder, Location loc, ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get({int64_t(values.size())}, builder.getI64Type());
  return ConstantOp::create(builder, loc, type, DenseElementsAttr::get(type, values));
}

Value createUniform(OpBuilder &builder, Location loc, Type element, ArrayRef<int64_t> shape,
                    double number) {
  auto type = RankedTensorType::get(shape, element);
  Attribute attribute;
  if (isa<FloatType>(element))
    attribute = FloatAttr::get(element, number);
  else
    attribute = IntegerAttr::get(
        element, APInt(element.getIntOrFloatBitWidth(), uint64_t(int64_t(number)), true, true));
  return ConstantOp::create(builder, loc, type,
                            DenseElementsAttr::get(type, ArrayRef<Attribute>(attribute)));
}

} // namespace dovetail::graph
