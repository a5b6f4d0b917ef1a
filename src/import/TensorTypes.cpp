// SPDX-License-Identifier: Apache-2.0
//
// The mappings themselves. Blobs get their deleter from the data's owner, so a mapped file lives as
// long as the context that holds the last constant in it.
#include "import/TensorTypes.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/DialectResourceBlobManager.h"

#include "graph/TensorType.h"

using namespace mlir;

namespace dovetail::importer {
namespace {

DenseElementsAttr inlineElements(RankedTensorType type, const TensorData &data) {
  unsigned bits = typeBits(data.type);
  if (data.type == DVT_BOOL) {
    SmallVector<bool> values;
    for (char byte : data.bytes)
      values.push_back(byte != 0);
    return DenseElementsAttr::get(type, ArrayRef<bool>(values));
  }
  if (bits < 8) {
    SmallVector<APInt> values;
    for (int64_t i = 0; i < data.elements; ++i)
      values.emplace_back(4, uint64_t(uint8_t(data.bytes[size_t(i / 2)]) >> (i % 2 * 4)) & 15);
    return DenseElementsAttr::get(type, ArrayRef<APInt>(values));
  }
  return DenseElementsAttr::getFromRawBuffer(type,
                                             ArrayRef<char>(data.bytes.data(), data.bytes.size()));
}

} // namespace

std::string onnxTypeName(dvt_type type) {
  switch (type) {
  case DVT_F32:
    return "tensor(float)";
  case DVT_F64:
    return "tensor(double)";
  case DVT_F16:
    return "tensor(float16)";
  case DVT_BF16:
    return "tensor(bfloat16)";
  case DVT_BOOL:
    return "tensor(bool)";
  case DVT_STRING:
    return "tensor(string)";
  default:
    break;
  }
  bool isUnsigned =
      type == DVT_U4 || type == DVT_U8 || type == DVT_U16 || type == DVT_U32 || type == DVT_U64;
  return "tensor(" + std::string(isUnsigned ? "u" : "") + "int" + std::to_string(typeBits(type)) +
         ")";
}

ElementsAttr elementsOf(MLIRContext *context, const TensorData &data, StringRef name) {
  SmallVector<int64_t> extents(data.extents.begin(), data.extents.end());
  auto type = RankedTensorType::get(extents, graph::toElementType(context, data.type));
  if (data.bytes.size() <= kInlineBytes)
    return inlineElements(type, data);
  AsmResourceBlob blob = UnmanagedAsmResourceBlob::allocateWithAlign(
      ArrayRef<char>(data.bytes.data(), data.bytes.size()), /*align=*/1,
      [owner = data.owner](void *, size_t, size_t) mutable { owner.reset(); });
  return DenseResourceElementsAttr::get(type, name, std::move(blob));
}

} // namespace dovetail::importer
