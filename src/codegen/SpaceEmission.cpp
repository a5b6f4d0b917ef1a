// SPDX-License-Identifier: Apache-2.0
//
// Index arithmetic of iteration spaces.
#include "codegen/SpaceEmission.h"

namespace dovetail::codegen {

unsigned lanesAlong(int64_t extent, const Machine &machine) {
  unsigned lanes = machine.isa.f32Lanes;
  while (extent >= 0 && lanes > 4 && extent <= lanes / 2)
    lanes /= 2;
  return lanes;
}

SpaceEmission::SpaceEmission(Emitter &emitter, const Space &space)
    : space(space), e(emitter), extents(space.axes.size()), pointers(space.operands.size()) {
  // Made now, at a place that dominates all uses.
  for (size_t axis = 0; axis < space.axes.size(); ++axis)
    extent(axis);
}

Value SpaceEmission::dimensionExtent(const SpaceDimension &dimension) {
  if (dimension.inside)
    return e.index(dimension.block);
  return e.ceilDiv(e.extentOf(space.shape[dimension.logical]), dimension.block);
}

Value SpaceEmission::extent(uint32_t axis) {
  if (!extents[axis]) {
    Value product = e.index(1);
    for (const SpaceDimension &dimension : space.axes[axis].dimensions)
      product = e.mul(product, dimensionExtent(dimension));
    extents[axis] = product;
  }
  return extents[axis];
}

Value SpaceEmission::ownExtent(uint32_t operand, uint32_t axis) {
  const auto &own = space.operands[operand].own[axis];
  return own ? e.extentOf(*own) : extent(axis);
}

Value SpaceEmission::extentsAreEqual() {
  Value equal;
  for (const auto &[a, b] : space.takenAsEqual) {
    Value pair = e.eq(e.extentOf(a), e.extentOf(b));
    equal = equal ? e.bitAnd(equal, pair) : pair;
  }
  return equal;
}

Value SpaceEmission::stride(uint32_t number, uint32_t axis) {
  const SpaceOperand &operand = space.operands[number];
  if (!operand.present[axis])
    return e.index(0);
  Value product = e.index(1);
  for (uint32_t inner : operand.strideAxes(axis))
    product = e.mul(product, ownExtent(number, inner));
  if (!operand.own[axis])
    return product;
  return e.select(e.eq(ownExtent(number, axis), e.index(1)), e.index(0), product);
}

dvt_type SpaceEmission::type(uint32_t operand) const {
  return e.problem.value(space.operands[operand].value).type;
}

Value SpaceEmission::pointer(uint32_t number) {
  const SpaceOperand &operand = space.operands[number];
  if (pointers[number])
    return pointers[number];
  const dvt_value &value = e.problem.value(operand.value);
  if (e.problem.inputOf(operand.value) >= 0 || e.problem.outputOf(operand.value) >= 0)
    return pointers[number] = e.pointerOf(operand.value);
  if (!e.problem.isLiteral(operand.value) || !value.literal) {
    e.fail("a value inside the problem is read from memory");
    return e.workspace();
  }
  if (!operand.packed)
    return pointers[number] = e.embedLiteral(operand.value);
  llvm::SmallVector<char, 0> data(packedBytesOf(space, operand, value.type).value_or(0));
  packOperand(space, operand, value, value.literal, data.data());
  return pointers[number] = e.embed(data);
}

Value SpaceEmission::offset(uint32_t operand, llvm::ArrayRef<Value> indices, uint32_t count) {
  Value sum = e.index(0);
  for (uint32_t axis = 0; axis < count; ++axis)
    if (space.operands[operand].present[axis])
      sum = e.add(sum, e.mul(indices[axis], stride(operand, axis)));
  return sum;
}

Value SpaceEmission::loadAlongLast(uint32_t number, Value base, Value i, unsigned lanes,
                                   Value mask) {
  const SpaceOperand &operand = space.operands[number];
  uint32_t last = space.axes.size() - 1;
  if (!operand.present[last])
    return e.loadSplat(type(number), pointer(number), base, lanes);
  if (operand.contiguousAlong(last))
    return e.loadVector(type(number), pointer(number), e.add(base, i), lanes, mask);
  Value step = stride(number, last);
  Value offsets = e.add(e.mul(e.iota(lanes, e.i64Type()), step), e.add(base, e.mul(i, step)));
  return e.gather(type(number), pointer(number), offsets, mask);
}

std::vector<uint32_t> SpaceEmission::allAxes() const {
  std::vector<uint32_t> axes;
  for (uint32_t axis = 0; axis < space.axes.size(); ++axis)
    axes.push_back(axis);
  return axes;
}

Value SpaceEmission::taskCount(const TaskSplit &split, llvm::ArrayRef<uint32_t> axes) {
  if (axes.empty())
    return e.index(1);
  Value count = e.ceilDiv(extent(axes[split.axis]), split.chunk);
  for (uint32_t i = 0; i < split.axis; ++i)
    count = e.mul(count, extent(axes[i]));
  return count;
}

SpaceEmission::Task SpaceEmission::decode(const TaskSplit &split, llvm::ArrayRef<uint32_t> axes,
                                          Value task) {
  Task decoded;
  decoded.indices.resize(space.axes.size());
  decoded.from = e.index(0);
  decoded.to = e.index(1);
  if (axes.empty())
    return decoded;
  Value chunks = e.ceilDiv(extent(axes[split.axis]), split.chunk);
  decoded.from = e.mul(e.rem(task, chunks), split.chunk);
  decoded.to = e.add(decoded.from, split.chunk);
  if (split.chunk > 1)
    decoded.to = e.minimum(decoded.to, extent(axes[split.axis]));
  Value rest = e.div(task, chunks);
  for (uint32_t i = split.axis; i-- > 0;) {
    decoded.indices[axes[i]] = i == 0 ? rest : e.rem(rest, extent(axes[i]));
    rest = i == 0 ? rest : e.div(rest, extent(axes[i]));
  }
  return decoded;
}

Value SpaceEmission::padMask(llvm::ArrayRef<Value> indices, Value inner, unsigned lanes) {
  if (space.padInner < 0)
    return {};
  const SpaceDimension &dimension = space.axes[space.padInner].dimensions[0];
  Value outer = space.padOuter >= 0 ? indices[space.padOuter] : e.index(0);
  Value remaining = e.sub(e.extentOf(space.shape[dimension.logical]),
                          e.add(e.mul(outer, dimension.block), inner));
  return e.tailMask(remaining, lanes);
}

} // namespace dovetail::codegen
