// SPDX-License-Identifier: Apache-2.0
//
// The scalar and vector arithmetic of the Emitter, its constants, types and kernel arguments.
// Memory and control are in EmitterMemory.cpp and EmitterControl.cpp.
#include "codegen/Emitter.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "codegen/gpu/Threads.h"
#include "codegen/schedule/KernelAbi.h"

namespace dovetail::codegen {

using namespace mlir;

static constexpr arith::FastMathFlags kContract = arith::FastMathFlags::contract;

Emitter::Emitter(OpBuilder &builder, const ProblemReader &problem, const Machine &machine,
                 Block &entry)
    : builder(builder), problem(problem), machine(machine), entry(entry),
      vectorLanes(machine.isa.f32Lanes) {}

void Emitter::fail(std::string message) {
  if (failed.empty())
    failed = std::move(message);
}

Location Emitter::location() { return builder.getUnknownLoc(); }

// --- Types and constants ---

Type Emitter::f32Type() { return builder.getF32Type(); }
Type Emitter::f64Type() { return builder.getF64Type(); }
Type Emitter::i64Type() { return builder.getI64Type(); }
Type Emitter::i32Type() { return builder.getI32Type(); }
Type Emitter::i8Type() { return builder.getI8Type(); }
Type Emitter::i1Type() { return builder.getI1Type(); }
Type Emitter::pointerType() { return LLVM::LLVMPointerType::get(builder.getContext()); }
VectorType Emitter::vectorOf(Type element, unsigned lanes) {
  return VectorType::get({int64_t(lanes)}, element);
}

Type Emitter::registerType(dvt_type type) {
  switch (type) {
  case DVT_F32:
  case DVT_F16:
  case DVT_BF16:
    return f32Type();
  case DVT_BOOL:
    return i1Type();
  case DVT_I64:
  case DVT_U32:
    return i64Type();
  default:
    return i32Type();
  }
}

Value Emitter::index(int64_t number) {
  return arith::ConstantOp::create(builder, location(), builder.getI64IntegerAttr(number));
}
Value Emitter::f32(double number) { return constant(f32Type(), number); }
Value Emitter::boolean(bool number) { return integerConstant(i1Type(), number); }

Value Emitter::constant(Type type, double number) {
  Type element = getElementTypeOrSelf(type);
  if (!isa<FloatType>(element))
    return integerConstant(type, int64_t(number));
  TypedAttr attribute =
      builder.getFloatAttr(element, element.isF32() ? double(float(number)) : number);
  if (auto vector = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(vector, Attribute(attribute));
  return arith::ConstantOp::create(builder, location(), attribute);
}

Value Emitter::integerConstant(Type type, int64_t number) {
  TypedAttr attribute = builder.getIntegerAttr(getElementTypeOrSelf(type), number);
  if (auto vector = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(vector, Attribute(attribute));
  return arith::ConstantOp::create(builder, location(), attribute);
}

Value Emitter::iota(unsigned lanes, Type element) {
  if (!element)
    element = i32Type();
  SmallVector<Attribute> numbers;
  for (unsigned i = 0; i < lanes; ++i)
    numbers.push_back(builder.getIntegerAttr(element, i));
  return arith::ConstantOp::create(builder, location(),
                                   DenseElementsAttr::get(vectorOf(element, lanes), numbers));
}

// Not matchPattern(): it asks for a trait whose identity is made from its name, and that identity
// is not the same in libMLIR and in a plug-in of hidden symbols built by another compiler.
std::optional<int64_t> Emitter::constantIndex(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  auto number = constant ? dyn_cast<IntegerAttr>(constant.getValue()) : IntegerAttr();
  if (!number)
    return std::nullopt;
  return number.getValue().getSExtValue();
}

// --- Arithmetic ---

void Emitter::unify(Value &a, Value &b) {
  auto aVector = dyn_cast<VectorType>(a.getType()), bVector = dyn_cast<VectorType>(b.getType());
  if (aVector && !bVector)
    b = splat(b, aVector.getNumElements());
  else if (bVector && !aVector)
    a = splat(a, bVector.getNumElements());
  assert(a.getType() == b.getType() && "operands of different types");
}

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value)); }

#define ARITHMETIC(name, FloatOp, IntegerOp, flags)                                                \
  Value Emitter::name(Value a, Value b) {                                                          \
    unify(a, b);                                                                                   \
    if (isFloat(a))                                                                                \
      return builder.createOrFold<FloatOp>(location(), a, b, flags);                               \
    return builder.createOrFold<IntegerOp>(location(), a, b);                                      \
  }
ARITHMETIC(add, arith::AddFOp, arith::AddIOp, kContract)
ARITHMETIC(sub, arith::SubFOp, arith::SubIOp, kContract)
ARITHMETIC(mul, arith::MulFOp, arith::MulIOp, kContract)
// Signed zeros are not told apart: doing so takes twice the instructions.
ARITHMETIC(minimum, arith::MinimumFOp, arith::MinSIOp, arith::FastMathFlags::nsz)
ARITHMETIC(maximum, arith::MaximumFOp, arith::MaxSIOp, arith::FastMathFlags::nsz)
#undef ARITHMETIC

#define INTEGER(name, Op)                                                                          \
  Value Emitter::name(Value a, Value b) {                                                          \
    unify(a, b);                                                                                   \
    return builder.createOrFold<Op>(location(), a, b);                                             \
  }
INTEGER(sdiv, arith::DivSIOp)
INTEGER(srem, arith::RemSIOp)
INTEGER(bitAnd, arith::AndIOp)
INTEGER(bitOr, arith::OrIOp)
INTEGER(bitXor, arith::XOrIOp)
INTEGER(shiftLeft, arith::ShLIOp)
INTEGER(shiftRight, arith::ShRUIOp)
INTEGER(shiftRightSigned, arith::ShRSIOp)
#undef INTEGER

#define COMPARISON(name, floatPredicate, integerPredicate)                                         \
  Value Emitter::name(Value a, Value b) {                                                          \
    unify(a, b);                                                                                   \
    if (isFloat(a))                                                                                \
      return builder.createOrFold<arith::CmpFOp>(location(), arith::CmpFPredicate::floatPredicate, \
                                                 a, b);                                            \
    return builder.createOrFold<arith::CmpIOp>(location(), arith::CmpIPredicate::integerPredicate, \
                                               a, b);                                              \
  }
COMPARISON(lt, OLT, slt)
COMPARISON(le, OLE, sle)
COMPARISON(gt, OGT, sgt)
COMPARISON(ge, OGE, sge)
COMPARISON(eq, OEQ, eq)
COMPARISON(ne, UNE, ne)
#undef COMPARISON

#define MATH(name, Op)                                                                             \
  Value Emitter::name(Value a) { return builder.createOrFold<Op>(location(), a); }
MATH(sqrt, math::SqrtOp)
MATH(floor, math::FloorOp)
MATH(ceil, math::CeilOp)
MATH(roundEven, math::RoundEvenOp)
MATH(truncate, math::TruncOp)
#undef MATH

Value Emitter::div(Value a, Value b) {
  unify(a, b);
  if (constantIndex(b) == 1)
    return a;
  return builder.createOrFold<arith::DivUIOp>(location(), a, b);
}

Value Emitter::rem(Value a, Value b) {
  unify(a, b);
  if (constantIndex(b) == 1)
    return integerConstant(a.getType(), 0);
  return builder.createOrFold<arith::RemUIOp>(location(), a, b);
}

Value Emitter::ceilDiv(Value a, Value b) {
  return div(add(a, sub(b, integerConstant(b.getType(), 1))), b);
}

Value Emitter::fdiv(Value a, Value b) {
  unify(a, b);
  return builder.createOrFold<arith::DivFOp>(location(), a, b, kContract);
}

Value Emitter::fma(Value a, Value b, Value c) {
  unify(a, b);
  unify(b, c);
  unify(a, b);
  if (isa<VectorType>(a.getType()))
    return builder.createOrFold<vector::FMAOp>(location(), a, b, c);
  return builder.createOrFold<math::FmaOp>(location(), a, b, c);
}

Value Emitter::neg(Value a) {
  if (isFloat(a))
    return builder.createOrFold<arith::NegFOp>(location(), a);
  return sub(integerConstant(a.getType(), 0), a);
}

Value Emitter::abs(Value a) {
  if (isFloat(a))
    return builder.createOrFold<math::AbsFOp>(location(), a);
  return builder.createOrFold<math::AbsIOp>(location(), a);
}

Value Emitter::fastMinimum(Value a, Value b) {
  unify(a, b);
  return select(lt(a, b), a, b);
}

Value Emitter::fastMaximum(Value a, Value b) {
  unify(a, b);
  return select(gt(a, b), a, b);
}

Value Emitter::bitNot(Value a) { return bitXor(a, integerConstant(a.getType(), -1)); }

static Type withElement(Type like, Type element) {
  if (auto vector = dyn_cast<VectorType>(like))
    return VectorType::get(vector.getShape(), element);
  return element;
}

Value Emitter::bitcast(Value a, Type element) {
  return builder.createOrFold<arith::BitcastOp>(location(), withElement(a.getType(), element), a);
}

Value Emitter::recast(Value vector, Type element) {
  auto from = cast<VectorType>(vector.getType());
  int64_t bits = from.getNumElements() * from.getElementTypeBitWidth();
  VectorType to = vectorOf(element, unsigned(bits / element.getIntOrFloatBitWidth()));
  return builder.createOrFold<vector::BitCastOp>(location(), to, vector);
}

Value Emitter::convert(Value a, Type element) {
  Type from = getElementTypeOrSelf(a), to = withElement(a.getType(), element);
  if (from == element)
    return a;
  if (element.isInteger(1))
    return ne(a, constant(a.getType(), 0));
  if (isa<FloatType>(from) && isa<FloatType>(element))
    return from.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth()
               ? builder.createOrFold<arith::ExtFOp>(location(), to, a)
               : builder.createOrFold<arith::TruncFOp>(location(), to, a);
  if (isa<FloatType>(from))
    return builder.createOrFold<arith::FPToSIOp>(location(), to, a);
  if (isa<FloatType>(element))
    return from.isInteger(1) ? builder.createOrFold<arith::UIToFPOp>(location(), to, a)
                             : builder.createOrFold<arith::SIToFPOp>(location(), to, a);
  unsigned fromBits = from.getIntOrFloatBitWidth(), toBits = element.getIntOrFloatBitWidth();
  if (fromBits > toBits)
    return builder.createOrFold<arith::TruncIOp>(location(), to, a);
  return fromBits == 1 ? builder.createOrFold<arith::ExtUIOp>(location(), to, a)
                       : builder.createOrFold<arith::ExtSIOp>(location(), to, a);
}

Value Emitter::intrinsic(StringRef name, Type result, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(builder, location(), result, builder.getStringAttr(name),
                                       operands)
      .getResult(0);
}

Value Emitter::select(Value condition, Value a, Value b) {
  unify(a, b);
  auto vector = dyn_cast<VectorType>(condition.getType());
  if (vector && !isa<VectorType>(a.getType())) {
    a = splat(a, vector.getNumElements());
    b = splat(b, vector.getNumElements());
  }
  return builder.createOrFold<arith::SelectOp>(location(), condition, a, b);
}

// --- Vectors ---

Value Emitter::splat(Value scalar, unsigned lanes) {
  if (isa<VectorType>(scalar.getType()))
    return scalar;
  return builder.createOrFold<vector::BroadcastOp>(location(), vectorOf(scalar.getType(), lanes),
                                                   scalar);
}

Value Emitter::extract(Value vector, unsigned lane) {
  return builder.createOrFold<vector::ExtractOp>(location(), vector, int64_t(lane));
}

Value Emitter::insert(Value scalar, Value vector, unsigned lane) {
  return builder.createOrFold<vector::InsertOp>(location(), scalar, vector, int64_t(lane));
}

Value Emitter::shuffle(Value a, Value b, ArrayRef<int64_t> lanes) {
  return builder.createOrFold<vector::ShuffleOp>(location(), a, b, lanes);
}

Values Emitter::transpose(const Values &rows) {
  size_t size = rows.size();
  assert(llvm::isPowerOf2_64(size) &&
         cast<VectorType>(rows[0].getType()).getNumElements() == int64_t(size));
  Values current = rows;
  // Swaps bit `step` of the row number with bit `step` of the lane number.
  for (size_t step = 1; step < size; step *= 2) {
    SmallVector<int64_t> low, high;
    for (size_t lane = 0; lane < size; ++lane) {
      low.push_back(lane & step ? size + lane - step : lane);
      high.push_back(lane & step ? size + lane : lane + step);
    }
    for (size_t row = 0; row < size; ++row)
      if (!(row & step)) {
        Value a = current[row], b = current[row + step];
        current[row] = shuffle(a, b, low);
        current[row + step] = shuffle(a, b, high);
      }
  }
  return current;
}

Value Emitter::fold(Value vector, llvm::function_ref<Value(Value, Value)> combine) {
  unsigned count = cast<VectorType>(vector.getType()).getNumElements();
  for (; count > 1; count /= 2) {
    SmallVector<int64_t> low, high;
    for (unsigned lane = 0; lane < count / 2; ++lane) {
      low.push_back(lane);
      high.push_back(count / 2 + lane);
    }
    vector = combine(shuffle(vector, vector, low), shuffle(vector, vector, high));
  }
  return extract(vector, 0);
}

Value Emitter::combine(Reduction kind, Value a, Value b) {
  switch (kind) {
  case Reduction::Add:
    return add(a, b);
  case Reduction::Mul:
    return mul(a, b);
  case Reduction::Min:
    return minimum(a, b);
  case Reduction::Max:
    return maximum(a, b);
  case Reduction::And:
    return bitAnd(a, b);
  case Reduction::Or:
    return bitOr(a, b);
  }
  return {};
}

Value Emitter::reductionIdentity(Reduction kind, Type type) {
  bool floats = isa<FloatType>(getElementTypeOrSelf(type));
  unsigned bits = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  switch (kind) {
  case Reduction::Add:
  case Reduction::Or:
    return constant(type, 0);
  case Reduction::Mul:
    return constant(type, 1);
  case Reduction::Min:
    return floats ? constant(type, INFINITY) : integerConstant(type, llvm::maxIntN(bits));
  case Reduction::Max:
    return floats ? constant(type, -INFINITY) : integerConstant(type, llvm::minIntN(bits));
  case Reduction::And:
    return integerConstant(type, -1);
  }
  return {};
}

Value Emitter::reduce(Reduction kind, Value vector) {
  bool floats = isFloat(vector);
  vector::CombiningKind combining = vector::CombiningKind::ADD;
  switch (kind) {
  case Reduction::Add:
    break;
  case Reduction::Mul:
    combining = vector::CombiningKind::MUL;
    break;
  case Reduction::Min:
    combining = floats ? vector::CombiningKind::MINIMUMF : vector::CombiningKind::MINSI;
    break;
  case Reduction::Max:
    combining = floats ? vector::CombiningKind::MAXIMUMF : vector::CombiningKind::MAXSI;
    break;
  case Reduction::And:
    combining = vector::CombiningKind::AND;
    break;
  case Reduction::Or:
    combining = vector::CombiningKind::OR;
    break;
  }
  auto flags = floats ? arith::FastMathFlags::reassoc | arith::FastMathFlags::nsz
                      : arith::FastMathFlags::none;
  return vector::ReductionOp::create(builder, location(), combining, vector, flags);
}

Value Emitter::tailMask(Value remaining, unsigned lanes) {
  if (auto known = constantIndex(remaining)) {
    SmallVector<bool> bits;
    for (unsigned i = 0; i < lanes; ++i)
      bits.push_back(int64_t(i) < *known);
    return arith::ConstantOp::create(builder, location(),
                                     DenseElementsAttr::get(vectorOf(i1Type(), lanes), bits));
  }
  Value clamped = convert(maximum(minimum(remaining, lanes), index(0)), i32Type());
  return lt(iota(lanes), clamped);
}

// --- Arguments of the kernel ---

Value Emitter::atEntry(llvm::function_ref<Value()> make) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(entry.getTerminator());
  return make();
}

Value Emitter::generic(Value pointer) {
  if (cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace() == 0)
    return pointer;
  return LLVM::AddrSpaceCastOp::create(builder, location(), pointerType(), pointer);
}

Value Emitter::argsField(unsigned index, Type type) {
  Value address = LLVM::GEPOp::create(builder, location(), pointerType(), i64Type(),
                                      entry.getArgument(0), ArrayRef<LLVM::GEPArg>{int32_t(index)});
  return LLVM::LoadOp::create(builder, location(), type, address, 8, false, false,
                              /*isInvariant=*/true);
}

uint32_t Emitter::deviceExtentArgument(uint32_t number, uint32_t dimension) const {
  const dvt_problem &source = problem.problem();
  uint32_t tensors = source.input_count + source.output_count, position = tensors + 1;
  for (uint32_t tensor = 0; tensor <= number; ++tensor) {
    const dvt_value &value =
        problem.value(tensor < source.input_count ? source.inputs[tensor]
                                                  : source.outputs[tensor - source.input_count]);
    for (uint32_t i = 0; i < (tensor == number ? dimension : value.rank); ++i)
      position += !isStaticExtent(value.extents[i]);
  }
  return position;
}

Value Emitter::tensor(uint32_t number) {
  if (tensors.empty())
    tensors.resize(problem.problem().input_count + problem.problem().output_count);
  assert(number < tensors.size());
  if (!tensors[number])
    tensors[number] = atEntry([&] {
      if (onDevice)
        return generic(entry.getArgument(number));
      if (!dataArray)
        dataArray = argsField(0, pointerType());
      Value address = LLVM::GEPOp::create(builder, location(), pointerType(), pointerType(),
                                          dataArray, ArrayRef<LLVM::GEPArg>{int32_t(number)});
      return Value(
          LLVM::LoadOp::create(builder, location(), pointerType(), address, 8, false, false, true));
    });
  return tensors[number];
}

Value Emitter::pointerOf(uint32_t value) {
  if (problem.inputOf(value) >= 0)
    return inputPointer(problem.inputOf(value));
  if (problem.outputOf(value) < 0 && problem.isLiteral(value) && problem.value(value).literal)
    return embedLiteral(value);
  assert(problem.outputOf(value) >= 0 && "a value without memory");
  return outputPointer(problem.outputOf(value));
}

Value Emitter::embed(ArrayRef<char> bytes) {
  auto module = entry.getParentOp()->getParentOfType<ModuleOp>();
  unsigned space = onDevice ? kGlobalSpace : 0;
  std::string name =
      "data" + std::to_string(std::distance(module.getBody()->begin(), module.getBody()->end()));
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    auto type = LLVM::LLVMArrayType::get(i8Type(), bytes.size());
    LLVM::GlobalOp::create(builder, location(), type, /*isConstant=*/true, LLVM::Linkage::Internal,
                           name, builder.getStringAttr(StringRef(bytes.data(), bytes.size())),
                           /*alignment=*/64, space);
  }
  return atEntry([&] {
    auto pointer = LLVM::LLVMPointerType::get(builder.getContext(), space);
    return generic(LLVM::AddressOfOp::create(builder, location(), pointer, name));
  });
}

Value Emitter::embedLiteral(uint32_t value) {
  Value &known = literals[value];
  if (known)
    return known;
  const dvt_value &literal = problem.value(value);
  const char *bytes = static_cast<const char *>(literal.literal);
  llvm::SmallVector<char, 0> data(bytes, bytes + literal.literal_bytes);
  // Where all are known to be equal, one stands for all.
  uint64_t size = uint64_t(ProblemReader::elements(literal)) * elementBytes(literal.type);
  for (uint64_t i = 0; data.size() < size; ++i)
    data.push_back(data[i]);
  return known = embed(data);
}

Value Emitter::extent(uint32_t number, uint32_t dimension) {
  const dvt_problem &source = problem.problem();
  auto valueOf = [&](uint32_t tensor) -> const dvt_value & {
    return problem.value(tensor < source.input_count ? source.inputs[tensor]
                                                     : source.outputs[tensor - source.input_count]);
  };
  const dvt_value &value = valueOf(number);
  if (isStaticExtent(value.extents[dimension]))
    return index(value.extents[dimension].value);
  if (extents.empty())
    extents.resize(source.input_count + source.output_count);
  if (extents[number].empty())
    extents[number].resize(value.rank);
  Value &known = extents[number][dimension];
  if (!known)
    known = atEntry([&] {
      if (onDevice)
        return Value(entry.getArgument(deviceExtentArgument(number, dimension)));
      if (!extentArray)
        extentArray = argsField(1, pointerType());
      int32_t position = dimension;
      for (uint32_t i = 0; i < number; ++i)
        position += valueOf(i).rank;
      Value address = LLVM::GEPOp::create(builder, location(), pointerType(), i64Type(),
                                          extentArray, ArrayRef<LLVM::GEPArg>{position});
      return Value(
          LLVM::LoadOp::create(builder, location(), i64Type(), address, 8, false, false, true));
    });
  return known;
}

Value Emitter::extentOf(const dvt_extent &extent) {
  if (isStaticExtent(extent))
    return index(extent.value);
  if (auto place = problem.placeOf(extent))
    return this->extent(place->tensor, place->dimension);
  fail("extent " + extentText(extent) + " is not one of an input or output");
  return index(1);
}

Value Emitter::workspace() {
  if (!workspacePointer)
    workspacePointer = atEntry([&] {
      uint32_t tensors = problem.problem().input_count + problem.problem().output_count;
      return onDevice ? generic(entry.getArgument(tensors)) : argsField(2, pointerType());
    });
  return workspacePointer;
}

Value Emitter::worker() { return entry.getArgument(3); }

Value Emitter::workerScratch() {
  if (!scratchPointer)
    scratchPointer = atEntry([&] {
      Value base = argsField(3, pointerType()), stride = argsField(4, i64Type());
      return advance(base, mul(worker(), stride), 1);
    });
  return scratchPointer;
}

} // namespace dovetail::codegen
