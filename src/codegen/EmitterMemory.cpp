// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores of the Emitter: narrow elements are widened to their register type on the way in
// and cut on the way out; nothing is assumed of alignment beyond that of an element.
#include "codegen/Emitter.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace dovetail::codegen {

using namespace mlir;

Type Emitter::memoryType(dvt_type type) {
  unsigned bytes = elementBytes(type);
  assert(bytes && "elements of whole bytes only");
  return type == DVT_F32 ? f32Type() : builder.getIntegerType(8 * bytes);
}

Value Emitter::widen(dvt_type type, Value loaded) {
  Type element = registerType(type);
  if (type == DVT_BOOL)
    return ne(loaded, integerConstant(loaded.getType(), 0));
  if (getElementTypeOrSelf(loaded) == element)
    return loaded;
  Type wide = element;
  if (auto vector = dyn_cast<VectorType>(loaded.getType()))
    wide = VectorType::get(vector.getShape(), element);
  bool isUnsigned = type == DVT_U8 || type == DVT_U16 || type == DVT_U32;
  return isUnsigned ? builder.createOrFold<arith::ExtUIOp>(location(), wide, loaded)
                    : builder.createOrFold<arith::ExtSIOp>(location(), wide, loaded);
}

Value Emitter::narrow(dvt_type type, Value value) { return convert(value, memoryType(type)); }

Value Emitter::address(Value pointer, Value offset, Type element) {
  if (constantIndex(offset) == 0)
    return pointer;
  return LLVM::GEPOp::create(builder, location(), pointerType(), element, pointer,
                             ValueRange{offset});
}

Value Emitter::advance(Value pointer, Value elements, unsigned elementBytes) {
  return address(pointer, elements, builder.getIntegerType(8 * elementBytes));
}

Value Emitter::load(dvt_type type, Value pointer, Value offset) {
  Type element = memoryType(type);
  return widen(type, LLVM::LoadOp::create(builder, location(), element,
                                          address(pointer, offset, element), elementBytes(type)));
}

void Emitter::store(dvt_type type, Value scalar, Value pointer, Value offset) {
  LLVM::StoreOp::create(builder, location(), narrow(type, scalar),
                        address(pointer, offset, memoryType(type)), elementBytes(type));
}

Value Emitter::loadVector(dvt_type type, Value pointer, Value offset, unsigned lanes, Value mask,
                          Value otherwise) {
  Type element = memoryType(type);
  VectorType vector = vectorOf(element, lanes);
  Value from = address(pointer, offset, element);
  if (!mask)
    return widen(type, LLVM::LoadOp::create(builder, location(), vector, from, elementBytes(type)));
  Value fill = constant(vector, 0);
  if (otherwise)
    fill = narrow(type, splat(otherwise, lanes));
  return widen(type, LLVM::MaskedLoadOp::create(builder, location(), vector, from, mask, fill,
                                                uint32_t(elementBytes(type))));
}

void Emitter::storeVector(dvt_type type, Value vector, Value pointer, Value offset, Value mask) {
  Value to = address(pointer, offset, memoryType(type)), value = narrow(type, vector);
  if (mask)
    LLVM::MaskedStoreOp::create(builder, location(), value, to, mask, uint32_t(elementBytes(type)));
  else
    LLVM::StoreOp::create(builder, location(), value, to, elementBytes(type));
}

Value Emitter::gather(dvt_type type, Value pointer, Value offsets, Value mask) {
  Type element = memoryType(type);
  unsigned lanes = cast<VectorType>(offsets.getType()).getNumElements();
  Value addresses = LLVM::GEPOp::create(builder, location(), vectorOf(pointerType(), lanes),
                                        element, pointer, ValueRange{offsets});
  if (!mask)
    mask = integerConstant(vectorOf(i1Type(), lanes), 1);
  VectorType vector = vectorOf(element, lanes);
  return widen(type, LLVM::masked_gather::create(builder, location(), vector, addresses, mask,
                                                 ValueRange{constant(vector, 0)},
                                                 uint32_t(elementBytes(type))));
}

void Emitter::scatter(dvt_type type, Value vector, Value pointer, Value offsets, Value mask) {
  Type element = memoryType(type);
  unsigned lanes = cast<VectorType>(offsets.getType()).getNumElements();
  Value addresses = LLVM::GEPOp::create(builder, location(), vectorOf(pointerType(), lanes),
                                        element, pointer, ValueRange{offsets});
  if (!mask)
    mask = integerConstant(vectorOf(i1Type(), lanes), 1);
  LLVM::masked_scatter::create(builder, location(), narrow(type, vector), addresses, mask,
                               uint32_t(elementBytes(type)));
}

void Emitter::prefetch(Value pointer, Value offset, unsigned elementBytes, unsigned locality) {
  Value to = address(pointer, offset, builder.getIntegerType(8 * elementBytes));
  LLVM::Prefetch::create(builder, location(), to, /*rw=*/uint32_t(0), uint32_t(locality),
                         /*cache=*/uint32_t(1));
}

} // namespace dovetail::codegen
