// SPDX-License-Identifier: Apache-2.0
//
// Attention and what belongs to it. Operands have heads as a dimension (rank 4) or packed into the
// last one (rank 3), then attributes say how many there are.
#include "graph/shapes/ShapeRules.h"

namespace dovetail::graph {
namespace {

/// Batch, heads, sequence and head size of an operand of rank 3 or 4.
struct Heads {
  Extent batch, heads, sequence, size;
};

Expected<Heads> headsOf(const InferContext &c, size_t i, std::string_view attribute) {
  const Shape &shape = c.shape(i);
  if (shape.size() == 4)
    return Heads{shape[0], shape[1], shape[2], shape[3]};
  if (shape.size() != 3)
    return c.fail("operand {} has the extents {}, expected rank 3 or 4", i, shapeText(shape));
  int64_t heads = c.integer(attribute, 0);
  if (heads < 1)
    return c.fail("operand {} has rank 3, which needs the attribute {}", i, attribute);
  std::optional<Extent> size = Extent::exactDiv(shape[2], heads);
  if (!size && shape[2].isStatic())
    return c.fail("operand {} has the extents {}, which {} heads do not divide", i,
                  shapeText(shape), heads);
  return Heads{shape[0], heads, shape[1], size ? *size : Extent::floorDiv(shape[2], heads)};
}

Status attention(InferContext &c) {
  Expected<Heads> query = headsOf(c, 0, "q_num_heads"), key = headsOf(c, 1, "kv_num_heads"),
                  value = headsOf(c, 2, "kv_num_heads");
  if (!query)
    return query.takeError();
  if (!key)
    return key.takeError();
  if (!value)
    return value.takeError();
  if (Status status = c.needEqual(query->size, key->size, "head sizes of query and key"); !status)
    return status;
  if (Status status = c.needEqual(key->sequence, value->sequence, "lengths of key and value");
      !status)
    return status;
  Extent total = key->sequence;
  if (c.has(4)) {
    if (Status status = c.needRank(4, 4); !status)
      return status;
    total = total + c.shape(4)[2];
  }
  if (c.rank(0) == 4)
    c.result(0, c.type(0), {query->batch, query->heads, query->sequence, value->size});
  else
    c.result(0, c.type(0), {query->batch, query->sequence, query->heads * value->size});
  c.result(1, c.has(4) ? c.type(4) : c.type(1), {key->batch, key->heads, total, key->size});
  c.result(2, c.has(5) ? c.type(5) : c.type(2), {value->batch, value->heads, total, value->size});
  c.result(3, c.type(0), {query->batch, query->heads, query->sequence, total});
  return Status::success();
}

Status linearAttention(InferContext &c) {
  for (size_t i = 0; i < 3; ++i)
    if (Status status = c.needRank(i, 3); !status)
      return status;
  Expected<Heads> query = headsOf(c, 0, "q_num_heads"), key = headsOf(c, 1, "kv_num_heads"),
                  value = headsOf(c, 2, "kv_num_heads");
  if (!query)
    return query.takeError();
  if (!key)
    return key.takeError();
  if (!value)
    return value.takeError();
  c.result(0, c.type(0), {query->batch, query->sequence, query->heads * value->size});
  c.result(1, c.has(3) ? c.type(3) : c.type(0), {key->batch, key->heads, key->size, value->size});
  return Status::success();
}

Status rotary(InferContext &c) {
  if (c.rank(0) != 3 && c.rank(0) != 4)
    return c.fail("the input has the extents {}, expected rank 3 or 4", shapeText(c.shape(0)));
  if (c.rank(0) == 3 && c.integer("num_heads", 0) < 1)
    return c.fail("an input of rank 3 needs the attribute num_heads");
  c.result(0, c.type(0), c.shape(0));
  return Status::success();
}

Status causalConv(InferContext &c) {
  if (Status status = c.needRank(0, 3); !status)
    return status;
  if (Status status = c.needRank(1, 3); !status)
    return status;
  c.result(0, c.type(0), c.shape(0));
  c.result(1, c.type(0), {c.shape(0)[0], c.shape(0)[1], c.shape(1)[2] - 1});
  return Status::success();
}

} // namespace

void addAttentionRules(ShapeRules &rules) {
  rules["attention"] = attention;
  rules["linear_attention"] = linearAttention;
  rules["rotary_embedding"] = rotary;
  rules["causal_conv_with_state"] = causalConv;
}

} // namespace dovetail::graph
