// SPDX-License-Identifier: Apache-2.0
//
// Changes of element type and plain copies: cast, bit_cast, identity, where.
#include "Ops.h"

namespace dovetail::reference::ops {

Status cast(Invocation &op) {
  // Floats out of range are undefined in ONNX but for 4-bit types, where its tests truncate, then
  // wrap.
  if (op.wants(0) && isFourBit(op.outputType(0)))
    return op.store(0, op.shape(0), op.numbers<int64_t>(0));
  return withNumbers(op.kind(0), [&](auto kind) {
    return op.store(0, op.shape(0), op.numbers<decltype(kind)>(0));
  });
}

static Status copyBytes(Invocation &op, const Extents &extents) {
  Tensor *result = nullptr;
  TRY(op.output(0, extents, result));
  if (elementBytes(result->type) != elementBytes(op.in(0).type) ||
      isFourBit(result->type) != isFourBit(op.in(0).type))
    return op.bad("from ", nameOf(op.in(0).type), " to ", nameOf(result->type),
                  ": the sizes of elements differ");
  if (*elementCount(extents) != op.in(0).count())
    return op.bad(textOf(op.shape(0)), " does not have as many elements as ", textOf(extents));
  if (result->bytes())
    std::memcpy(result->data, op.in(0).data, result->bytes());
  return {};
}

Status bitCast(Invocation &op) { return copyBytes(op, op.shape(0)); }
Status identity(Invocation &op) { return copyBytes(op, op.shape(0)); }
Status copyAs(Invocation &op, const Extents &extents) { return copyBytes(op, extents); }

Status where(Invocation &op) {
  if (op.in(1).type != op.in(2).type)
    return op.bad("operands are of ", nameOf(op.in(1).type), " and ", nameOf(op.in(2).type));
  Extents extents;
  TRY(broadcastExtents(op, {op.shape(0), op.shape(1), op.shape(2)}, extents));
  Tensor *result = nullptr;
  TRY(op.output(0, extents, result));
  const Tensor &condition = op.in(0);
  walk<3>(extents,
          {broadcastStrides(op.shape(0), extents), broadcastStrides(op.shape(1), extents),
           broadcastStrides(op.shape(2), extents)},
          [&](int64_t linear, const std::array<int64_t, 3> &at) {
            bool first = condition.data[at[0]];
            copyElement(op.in(first ? 1 : 2), at[first ? 1 : 2], *result, linear);
          });
  return {};
}

} // namespace dovetail::reference::ops
