// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores of the Emitter: narrow elements are widened to their register type on the way in
// and cut on the way out; nothing is assumed of alignment beyond that of an element. Elements of
// 16-bit floats travel as integers, which all levels load and store under masks.
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
  if (type == DVT_F16)
    return convert(bitcast(loaded, builder.getF16Type()), f32Type());
  if (type == DVT_BF16) {
    Type wide = i32Type();
    if (auto vector = dyn_cast<VectorType>(loaded.getType()))
      wide = VectorType::get(vector.getShape(), wide);
    Value bits = builder.createOrFold<arith::ExtUIOp>(location(), wide, loaded);
    return bitcast(shiftLeft(bits, integerConstant(wide, 16)), f32Type());
  }
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

/// To the nearest bf16, ties to even, by integers: the instructions for it take tiny numbers for
/// zeros.
Value Emitter::narrowToBfloat(Value value) {
  Value bits = bitcast(value, i32Type());
  auto like = [&](int64_t number) { return integerConstant(bits.getType(), number); };
  Value upper = shiftRight(bits, like(16));
  Value nearest = shiftRight(add(bits, add(bitAnd(upper, like(1)), like(0x7fff))), like(16));
  Value quiet = bitOr(upper, like(0x40));
  return convert(select(ne(value, value), quiet, nearest), builder.getI16Type());
}

Value Emitter::narrow(dvt_type type, Value value) {
  if (type == DVT_F16)
    return bitcast(convert(value, builder.getF16Type()), builder.getI16Type());
  if (type == DVT_BF16)
    return narrowToBfloat(value);
  return convert(value, memoryType(type));
}

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

/// The only lane of a mask that is known, or nothing.
static std::optional<unsigned> onlyLane(Value mask) {
  auto constant = mask ? mask.getDefiningOp<arith::ConstantOp>() : arith::ConstantOp();
  auto bits = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!bits)
    return std::nullopt;
  std::optional<unsigned> only;
  unsigned lane = 0;
  for (bool bit : bits.getValues<bool>()) {
    if (bit && only)
      return std::nullopt;
    if (bit)
      only = lane;
    ++lane;
  }
  return only;
}

void Emitter::storeVector(dvt_type type, Value vector, Value pointer, Value offset, Value mask) {
  // LLVM 22 makes of a cut element that is stored alone a store of the register's whole width.
  if (auto lane = onlyLane(mask))
    return store(type, extract(vector, *lane), pointer, add(offset, int64_t(*lane)));
  Value to = address(pointer, offset, memoryType(type)), value = narrow(type, vector);
  if (mask)
    LLVM::MaskedStoreOp::create(builder, location(), value, to, mask, uint32_t(elementBytes(type)));
  else
    LLVM::StoreOp::create(builder, location(), value, to, elementBytes(type));
}

Value Emitter::gather(dvt_type type, Value pointer, Value offsets, Value mask) {
  Type element = memoryType(type);
  unsigned lanes = cast<VectorType>(offsets.getType()).getNumElements();
  if (lanes == 1) // whose address space devices know
    return loadVector(type, pointer, convert(extract(offsets, 0), i64Type()), 1, mask);
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
  if (lanes == 1)
    return storeVector(type, vector, pointer, convert(extract(offsets, 0), i64Type()), mask);
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
