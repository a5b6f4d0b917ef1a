// SPDX-License-Identifier: Apache-2.0
//
// Attention and what belongs to it. Operands have heads as a dimension (rank 4) or packed into the
// last one (rank 3), then attributes say how many there are.
#include <tuple>

#include "graph/shapes/Broadcasts.h"
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

/// A cache is as the operand that is appended to it, but for its length.
Status checkPast(InferContext &c, size_t i, const Heads &heads) {
  if (Status status = c.needRank(i, 4); !status)
    return status;
  const Shape &past = c.shape(i);
  const std::tuple<Extent, Extent, const char *> pairs[] = {
      {past[0], heads.batch, "batches of the cache and what is appended"},
      {past[1], heads.heads, "heads of the cache and what is appended"},
      {past[3], heads.size, "head sizes of the cache and what is appended"}};
  for (const auto &[a, b, what] : pairs)
    if (Status status = c.needEqual(a, b, what); !status)
      return status;
  return Status::success();
}

/// A mask is spread over batches, heads and queries; it may stop short of the last keys.
Status checkMask(InferContext &c, const Heads &query, const Extent &keys) {
  if (!c.has(3) || c.rank(3) == 0)
    return Status::success();
  const Extent last = c.shape(3).back();
  if (Status status = needBroadcastTo(c, 3, {query.batch, query.heads, query.sequence, last});
      !status)
    return status;
  return c.needAtLeast(keys, last, "the keys, to the mask's last axis,");
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
  const std::tuple<Extent, Extent, const char *> pairs[] = {
      {query->batch, key->batch, "batches of query and key"},
      {key->batch, value->batch, "batches of key and value"},
      {key->heads, value->heads, "heads of key and value"}};
  for (const auto &[a, b, what] : pairs)
    if (Status status = c.needEqual(a, b, what); !status)
      return status;
  if (Status status = c.needAtLeast(key->heads, 1, "heads of keys"); !status)
    return status;
  if (Status status = c.needEqual(Extent::mod(query->heads, key->heads), 0,
                                  "heads of queries beyond multiples of those of keys");
      !status)
    return status;
  if (c.has(4) != c.has(5))
    return c.fail("has one of past_key and past_value, expected both or none");
  Extent total = key->sequence;
  if (c.has(4)) {
    if (Status status = checkPast(c, 4, *key); !status)
      return status;
    if (Status status = checkPast(c, 5, *value); !status)
      return status;
    if (Status status = c.needEqual(c.shape(4)[2], c.shape(5)[2], "lengths of past key and value");
        !status)
      return status;
    total = total + c.shape(4)[2];
  }
  if (Status status = checkMask(c, *query, total); !status)
    return status;
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
