// SPDX-License-Identifier: Apache-2.0
//
// Lane by lane. Booleans are no integers in SPIR-V, and where both are meant by one operation they
// part here.
#include "SpirvArithmetic.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace dovetail::test {

using namespace mlir;
using Lanes = SmallVector<Value>;

Value SpirvScalars::number(Type type, uint64_t value) {
  if (isa<FloatType>(type))
    return constant(type, builder.getFloatAttr(type, double(value)));
  if (type.isInteger(1))
    return constant(type, builder.getBoolAttr(value != 0));
  unsigned bits = type.getIntOrFloatBitWidth();
  return constant(type, builder.getIntegerAttr(type, llvm::APInt(64, value).trunc(bits)));
}

Value SpirvScalars::plus(Value value, int64_t number) {
  if (number == 0)
    return value;
  Type type = value.getType();
  return make<spirv::IAddOp>(type, {value, this->number(type, uint64_t(number))});
}

Value SpirvScalars::resized(Value value, uint64_t bits) {
  if (value.getType().getIntOrFloatBitWidth() == bits)
    return value;
  return make<spirv::UConvertOp>(integer(bits), {value});
}

Value SpirvScalars::resizedSigned(Value value, uint64_t bits) {
  if (value.getType().getIntOrFloatBitWidth() == bits)
    return value;
  return make<spirv::SConvertOp>(integer(bits), {value});
}

Value SpirvScalars::sameBits(Value value, Type type) {
  return value.getType() == type ? value : make<spirv::BitcastOp>(type, {value});
}

Value SpirvScalars::select(Value condition, Value yes, Value no) {
  return make<spirv::SelectOp>(yes.getType(), {condition, yes, no});
}

namespace {

/// One lane of an operation from one lane of each operand; null where there is no counterpart.
class LaneArithmetic {
public:
  LaneArithmetic(SpirvScalars &s, ValueRange operands, Type result)
      : s(s), operands(operands), type(result) {}

  Value of(Operation &operation) {
    return llvm::TypeSwitch<Operation *, Value>(&operation)
        .Case<arith::AddFOp>([&](auto) { return plain<spirv::FAddOp>(); })
        .Case<arith::SubFOp>([&](auto) { return plain<spirv::FSubOp>(); })
        .Case<arith::MulFOp>([&](auto) { return plain<spirv::FMulOp>(); })
        .Case<arith::DivFOp>([&](auto) { return plain<spirv::FDivOp>(); })
        .Case<arith::NegFOp>([&](auto) { return plain<spirv::FNegateOp>(); })
        .Case<arith::MinimumFOp>([&](auto) { return orNan(plain<spirv::GLFMinOp>()); })
        .Case<arith::MaximumFOp>([&](auto) { return orNan(plain<spirv::GLFMaxOp>()); })
        .Case<arith::AddIOp>([&](auto) { return plain<spirv::IAddOp>(); })
        .Case<arith::SubIOp>([&](auto) { return plain<spirv::ISubOp>(); })
        .Case<arith::MulIOp>([&](auto) { return plain<spirv::IMulOp>(); })
        .Case<arith::DivUIOp>([&](auto) { return plain<spirv::UDivOp>(); })
        .Case<arith::RemUIOp>([&](auto) { return plain<spirv::UModOp>(); })
        .Case<arith::DivSIOp>([&](auto) { return plain<spirv::SDivOp>(); })
        .Case<arith::RemSIOp>([&](auto) { return plain<spirv::SRemOp>(); })
        .Case<arith::MinSIOp>([&](auto) { return plain<spirv::GLSMinOp>(); })
        .Case<arith::MaxSIOp>([&](auto) { return plain<spirv::GLSMaxOp>(); })
        .Case<arith::ShLIOp>([&](auto) { return plain<spirv::ShiftLeftLogicalOp>(); })
        .Case<arith::ShRUIOp>([&](auto) { return plain<spirv::ShiftRightLogicalOp>(); })
        .Case<arith::ShRSIOp>([&](auto) { return plain<spirv::ShiftRightArithmeticOp>(); })
        .Case<arith::AndIOp>([&](auto) { return bits<spirv::BitwiseAndOp, spirv::LogicalAndOp>(); })
        .Case<arith::OrIOp>([&](auto) { return bits<spirv::BitwiseOrOp, spirv::LogicalOrOp>(); })
        .Case<arith::XOrIOp>(
            [&](auto) { return bits<spirv::BitwiseXorOp, spirv::LogicalNotEqualOp>(); })
        .Case<arith::CmpFOp>([&](auto op) { return compare(op.getPredicate()); })
        .Case<arith::CmpIOp>([&](auto op) { return compare(op.getPredicate()); })
        .Case<arith::SelectOp>(
            [&](auto) { return s.select(operands[0], operands[1], operands[2]); })
        .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) { return plain<spirv::FConvertOp>(); })
        .Case<arith::FPToSIOp>([&](auto) { return plain<spirv::ConvertFToSOp>(); })
        .Case<arith::SIToFPOp>([&](auto) { return plain<spirv::ConvertSToFOp>(); })
        .Case<arith::UIToFPOp, arith::ExtUIOp>(
            [&](auto op) { return fromUnsigned(isa<arith::ExtUIOp>(op)); })
        .Case<arith::ExtSIOp>([&](auto) { return plain<spirv::SConvertOp>(); })
        .Case<arith::TruncIOp>([&](auto) { return truncated(); })
        .Case<arith::BitcastOp>([&](auto) { return s.sameBits(operands[0], type); })
        .Case<math::SqrtOp>([&](auto) { return plain<spirv::GLSqrtOp>(); })
        .Case<math::FloorOp>([&](auto) { return plain<spirv::GLFloorOp>(); })
        .Case<math::CeilOp>([&](auto) { return plain<spirv::GLCeilOp>(); })
        .Case<math::RoundEvenOp>([&](auto) { return plain<spirv::GLRoundEvenOp>(); })
        .Case<math::AbsFOp>([&](auto) { return plain<spirv::GLFAbsOp>(); })
        .Case<math::AbsIOp>([&](auto) { return plain<spirv::GLSAbsOp>(); })
        .Case<math::TruncOp>([&](auto) { return towardZero(); })
        .Case<math::FmaOp, vector::FMAOp>([&](auto) { return plain<spirv::GLFmaOp>(); })
        .Default([](Operation *) { return Value(); });
  }

private:
  /// Drivers must not put sums in another order or multiply and add at once: approximations of
  /// functions rely on each operation's rounding.
  template <typename Op> Value plain() {
    Value made = s.make<Op>(type, operands);
    if constexpr (llvm::is_one_of<Op, spirv::FAddOp, spirv::FSubOp, spirv::FMulOp,
                                  spirv::FDivOp>::value)
      made.getDefiningOp()->setAttr("no_contraction", UnitAttr::get(made.getContext()));
    return made;
  }
  template <typename OfBits, typename OfBooleans> Value bits() {
    return type.isInteger(1) ? plain<OfBooleans>() : plain<OfBits>();
  }

  Value orNan(Value otherwise) {
    for (Value operand : llvm::reverse(operands))
      otherwise = s.select(s.make<spirv::IsNanOp>(s.i1(), {operand}), operand, otherwise);
    return otherwise;
  }

  Value towardZero() {
    Value size = s.make<spirv::GLFloorOp>(type, {s.make<spirv::GLFAbsOp>(type, operands)});
    Value isNegative = s.make<spirv::FOrdLessThanOp>(s.i1(), {operands[0], s.number(type, 0)});
    return s.select(isNegative, s.make<spirv::FNegateOp>(type, {size}), size);
  }

  Value fromUnsigned(bool toInteger) {
    if (operands[0].getType().isInteger(1))
      return s.select(operands[0], s.number(type, 1), s.number(type, 0));
    return toInteger ? plain<spirv::UConvertOp>() : plain<spirv::ConvertUToFOp>();
  }

  Value truncated() {
    if (!type.isInteger(1))
      return plain<spirv::UConvertOp>();
    Type wide = operands[0].getType();
    Value low = s.make<spirv::BitwiseAndOp>(wide, {operands[0], s.number(wide, 1)});
    return s.make<spirv::INotEqualOp>(s.i1(), {low, s.number(wide, 0)});
  }

  Value compare(arith::CmpFPredicate predicate) {
    switch (predicate) {
    case arith::CmpFPredicate::OLT:
      return plain<spirv::FOrdLessThanOp>();
    case arith::CmpFPredicate::OLE:
      return plain<spirv::FOrdLessThanEqualOp>();
    case arith::CmpFPredicate::OGT:
      return plain<spirv::FOrdGreaterThanOp>();
    case arith::CmpFPredicate::OGE:
      return plain<spirv::FOrdGreaterThanEqualOp>();
    case arith::CmpFPredicate::OEQ:
      return plain<spirv::FOrdEqualOp>();
    case arith::CmpFPredicate::UNE:
      return plain<spirv::FUnordNotEqualOp>();
    default:
      return {};
    }
  }

  Value compare(arith::CmpIPredicate predicate) {
    const bool booleans = operands[0].getType().isInteger(1);
    switch (predicate) {
    case arith::CmpIPredicate::eq:
      return booleans ? plain<spirv::LogicalEqualOp>() : plain<spirv::IEqualOp>();
    case arith::CmpIPredicate::ne:
      return booleans ? plain<spirv::LogicalNotEqualOp>() : plain<spirv::INotEqualOp>();
    case arith::CmpIPredicate::slt:
      return plain<spirv::SLessThanOp>();
    case arith::CmpIPredicate::sle:
      return plain<spirv::SLessThanEqualOp>();
    case arith::CmpIPredicate::sgt:
      return plain<spirv::SGreaterThanOp>();
    case arith::CmpIPredicate::sge:
      return plain<spirv::SGreaterThanEqualOp>();
    case arith::CmpIPredicate::ult:
      return plain<spirv::ULessThanOp>();
    case arith::CmpIPredicate::ule:
      return plain<spirv::ULessThanEqualOp>();
    case arith::CmpIPredicate::ugt:
      return plain<spirv::UGreaterThanOp>();
    case arith::CmpIPredicate::uge:
      return plain<spirv::UGreaterThanEqualOp>();
    }
    return {};
  }

  SpirvScalars &s;
  ValueRange operands;
  Type type; ///< of the result
};

Lanes constants(SpirvScalars &s, arith::ConstantOp op) {
  if (auto dense = dyn_cast<DenseElementsAttr>(op.getValue())) {
    Lanes lanes;
    for (Attribute element : dense.getValues<Attribute>())
      lanes.push_back(s.constant(dense.getElementType(), element));
    return lanes;
  }
  return {s.constant(op.getType(), op.getValue())};
}

int64_t lanesOfType(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() : 1;
}

/// What only picks lanes.
Lanes pick(SpirvScalars &s, Operation &operation, ArrayRef<Lanes> operands) {
  return llvm::TypeSwitch<Operation *, Lanes>(&operation)
      .Case<arith::ConstantOp>([&](auto op) { return constants(s, op); })
      .Case<vector::BroadcastOp>([&](vector::BroadcastOp op) {
        auto count = op.getResultVectorType().getNumElements();
        return operands[0].size() == 1 ? Lanes(count, operands[0][0]) : Lanes();
      })
      .Case<vector::ExtractOp>([&](vector::ExtractOp op) {
        return op.getStaticPosition().size() == 1 && op.getDynamicPosition().empty()
                   ? Lanes{operands[0][size_t(op.getStaticPosition()[0])]}
                   : Lanes();
      })
      .Case<vector::InsertOp>([&](vector::InsertOp op) {
        Lanes lanes = operands[1];
        if (op.getStaticPosition().size() != 1 || !op.getDynamicPosition().empty())
          return Lanes();
        lanes[size_t(op.getStaticPosition()[0])] = operands[0][0];
        return lanes;
      })
      .Case<vector::ShuffleOp>([&](vector::ShuffleOp op) {
        Lanes both = operands[0], lanes;
        both.append(operands[1]);
        for (int64_t from : op.getMask())
          lanes.push_back(both[size_t(from)]);
        return lanes;
      })
      .Case<vector::ReductionOp, vector::BitCastOp>([&](auto op) {
        // Of one lane these change nothing but the type.
        return operands[0].size() == 1 && operation.getNumOperands() == 1 &&
                       lanesOfType(op.getType()) == 1
                   ? Lanes{s.sameBits(operands[0][0], getElementTypeOrSelf(op.getType()))}
                   : Lanes();
      })
      .Default([](Operation *) { return Lanes(); });
}

} // namespace

Lanes translateArithmetic(SpirvScalars &s, Operation &operation, ArrayRef<Lanes> operands) {
  if (operation.getNumResults() != 1)
    return {};
  if (Lanes picked = pick(s, operation, operands); !picked.empty())
    return picked;
  Type result = operation.getResult(0).getType();
  Lanes lanes;
  for (size_t lane = 0; lane < size_t(lanesOfType(result)); ++lane) {
    Lanes own;
    for (const Lanes &operand : operands)
      if (lane < operand.size() || operand.size() == 1)
        own.push_back(operand.size() == 1 ? operand[0] : operand[lane]);
    if (own.size() != operands.size())
      return {};
    Value made = LaneArithmetic(s, own, getElementTypeOrSelf(result)).of(operation);
    if (!made)
      return {};
    lanes.push_back(made);
  }
  return lanes;
}

} // namespace dovetail::test
