// SPDX-License-Identifier: Apache-2.0
//
// Normalizations keep the extents of their first operand; some give their statistics too.
#include "graph/shapes/Broadcasts.h"
#include "graph/shapes/ShapeRules.h"

namespace dovetail::graph {
namespace {

Status sameAsFirst(InferContext &c) {
  c.result(0, c.type(0), c.shape(0));
  return Status::success();
}

/// Checks the axis attribute.
Status alongAxis(InferContext &c) {
  if (Expected<int64_t> axis = c.axis(c.integer("axis", -1), c.rank(0)); !axis)
    return axis.takeError();
  return sameAsFirst(c);
}

Status lpNormalization(InferContext &c) {
  if (int64_t p = c.integer("p", 2); p != 1 && p != 2)
    return c.fail("p is {}, expected 1 or 2", p);
  return alongAxis(c);
}

Status batch(InferContext &c) {
  if (Status status = c.needRankAtLeast(0, 1); !status)
    return status;
  Extent channels = c.rank(0) > 1 ? c.shape(0)[1] : Extent(1);
  for (size_t i = 1; i < 5; ++i) {
    if (Status status = c.needRank(i, 1); !status)
      return status;
    if (Status status = c.needEqual(c.shape(i)[0], channels, "channels"); !status)
      return status;
  }
  c.result(1, c.type(3), {channels});
  c.result(2, c.type(4), {channels});
  return sameAsFirst(c);
}

Status perChannel(InferContext &c) {
  if (Status status = c.needRankAtLeast(0, 2); !status)
    return status;
  for (size_t i = 1; i < 3; ++i)
    if (Status status = c.needEqual(elementCount(c.shape(i)), c.shape(0)[1], "channels"); !status)
      return status;
  return sameAsFirst(c);
}

/// Layer and RMS normalization; mean and inverse deviation have extent 1 where it normalizes.
Status trailing(InferContext &c) {
  Expected<int64_t> axis = c.axis(c.integer("axis", -1), c.rank(0));
  if (!axis)
    return axis.takeError();
  for (size_t i = 1; i < c.operandCount(); ++i) {
    if (!c.has(i))
      continue;
    if (Status status = needBroadcastTo(c, i, c.shape(0)); !status)
      return status;
  }
  Shape statistics = c.shape(0);
  for (size_t d = *axis; d < statistics.size(); ++d)
    statistics[d] = 1;
  dvt_type type = c.integer("stash_type", 1) == 1 ? DVT_F32 : c.type(0);
  c.result(1, type, statistics);
  c.result(2, type, statistics);
  return sameAsFirst(c);
}

} // namespace

void addNormalizationRules(ShapeRules &rules) {
  for (const char *name : {"softmax", "log_softmax", "hardmax"})
    rules[name] = alongAxis;
  rules["lp_normalization"] = lpNormalization;
  for (const char *name : {"lrn", "mean_variance_normalization"})
    rules[name] = sameAsFirst;
  rules["batch_normalization"] = batch;
  rules["instance_normalization"] = perChannel;
  rules["group_normalization"] = perChannel;
  rules["layer_normalization"] = trailing;
  rules["rms_normalization"] = trailing;
}

} // namespace dovetail::graph
