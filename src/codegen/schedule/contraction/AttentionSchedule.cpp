// SPDX-License-Identifier: Apache-2.0
//
// Reads attention into the form of the header and offers its schedules.
#include "codegen/schedule/contraction/Attention.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "codegen/schedule/Families.h"
#include "codegen/schedule/contraction/Fusion.h"

namespace dovetail::codegen {
namespace {

/// An operand or result by batch, head, position and channel.
struct Heads {
  Attention::Side side;
  dvt_extent batch, positions;
  int64_t heads = 0, size = 0;
};

/// `order[i]` is the dimension of the dense value that is dimension i of the operand.
Expected<Heads> readHeads(const ProblemReader &problem, uint32_t value,
                          const std::vector<unsigned> &order, int64_t heads, const char *what) {
  const dvt_value &dense = problem.value(value);
  if (!isFloatType(dense.type))
    return badInput("attention with {} of {}; f32, f16 and bf16 are supported", what,
                    elementTypeName(dense.type));
  std::vector<Product> own = denseAccess(dense, Layout())->strides, strides;
  std::vector<dvt_extent> extents;
  for (unsigned dimension : order) {
    strides.push_back(own[dimension]);
    extents.push_back(dense.extents[dimension]);
  }
  Heads read;
  if (extents.size() == 4) {
    if (!isStaticExtent(extents[1]) || !isStaticExtent(extents[3]))
      return badInput("attention with {} of {}; the numbers of heads and channels must be known",
                      what, valueText(dense));
    read.side = {value, strides[0], strides[1], strides[2], strides[3]};
    read.batch = extents[0];
    read.heads = extents[1].value;
    read.positions = extents[2];
    read.size = extents[3].value;
  } else if (extents.size() == 3 && heads > 0 && isStaticExtent(extents[2]) &&
             extents[2].value % heads == 0) {
    read.heads = heads;
    read.size = extents[2].value / heads;
    read.side = {value, strides[0], strides[2] * Product(read.size), strides[1], strides[2]};
    read.batch = extents[0];
    read.positions = extents[1];
  } else {
    return badInput("attention with {} of {} and {} heads", what, valueText(dense), heads);
  }
  if (read.heads < 1 || read.size < 1)
    return badInput("attention with {} of {}", what, valueText(dense));
  return read;
}

Expected<Attention> readAttention(const ProblemReader &problem, uint32_t anchor) {
  const dvt_op &op = problem.op(anchor);
  for (uint32_t i = 4; i < op.input_count; ++i)
    if (ProblemReader::input(op, i))
      return badInput("attention with past keys or key lengths; masks are supported");
  for (uint32_t i = 1; i < op.output_count; ++i)
    if (ProblemReader::output(op, i))
      return badInput("attention with outputs beside its result");
  if (ProblemReader::real(op, "softcap", 0) != 0 ||
      ProblemReader::integer(op, "left_window_size", -1) >= 0 ||
      ProblemReader::integer(op, "right_window_size", -1) >= 0)
    return badInput("attention with soft cap or window");
  for (uint32_t i = 0; i < problem.valueCount(); ++i)
    if (problem.value(i).strides)
      return badInput("attention on strided memory; dense tensors are supported");

  Fusion fusion; // for its view of transposed operands
  fusion.anchor = anchor;
  std::optional<uint32_t> after;
  for (uint32_t i = 0; i < problem.opCount(); ++i) {
    const dvt_op &other = problem.op(i);
    if (i == anchor)
      continue;
    if (std::string_view(other.name) != "transpose")
      return badInput("attention together with {} in one kernel", other.name);
    if (other.inputs[0] == op.outputs[0])
      after = i;
    else if (problem.inputOf(other.inputs[0]) < 0 || problem.outputOf(other.outputs[0]) >= 0)
      return badInput("a transpose beside attention that does not only feed it");
  }
  auto q = fusion.operand(problem, 0), k = fusion.operand(problem, 1),
       v = fusion.operand(problem, 2);
  auto mask = ProblemReader::input(op, 3);
  if (!q || !k || !v)
    return badInput("attention without query, key or value");
  for (uint32_t value : {q->value, k->value, v->value, mask ? *mask : q->value})
    if (problem.inputOf(value) < 0)
      return badInput("attention with a computed or literal operand in one kernel");

  Fusion::Operand out{op.outputs[0], {}};
  for (unsigned i = 0; i < problem.value(out.value).rank; ++i)
    out.order.push_back(i);
  if (after) {
    const dvt_op &transpose = problem.op(*after);
    auto order = ProblemReader::integers(transpose, "perm");
    if (!order || problem.outputOf(op.outputs[0]) >= 0 || order->size() != out.order.size())
      return badInput("a transpose after attention whose result is needed besides");
    for (unsigned i = 0; i < order->size(); ++i)
      out.order[size_t((*order)[i])] = i;
    out.value = transpose.outputs[0];
  }
  if (problem.problem().output_count != 1 || problem.outputOf(out.value) != 0)
    return badInput("attention with {} outputs", problem.problem().output_count);
  if (problem.value(out.value).may_alias >= 0)
    return badInput("attention in the memory of an operand");

  int64_t queryHeads = ProblemReader::integer(op, "q_num_heads", 0);
  int64_t keyHeads = ProblemReader::integer(op, "kv_num_heads", 0);
  auto query = readHeads(problem, q->value, q->order, queryHeads, "query");
  auto key = readHeads(problem, k->value, k->order, keyHeads, "key");
  auto val = readHeads(problem, v->value, v->order, keyHeads, "value");
  auto result = readHeads(problem, out.value, out.order, queryHeads, "result");
  for (auto *side : {&query, &key, &val, &result})
    if (!*side)
      return side->takeError();
  if (query->size != key->size || key->heads != val->heads || query->heads % key->heads ||
      result->heads != query->heads || result->size != val->size ||
      !sameExtent(key->positions, val->positions) || !sameExtent(query->batch, key->batch) ||
      !sameExtent(query->batch, val->batch) || !sameExtent(result->positions, query->positions) ||
      !val->side.channel.is(1) || !result->side.channel.is(1))
    return badInput("attention with operands {}, {} and {} that do not fit each other",
                    valueText(problem.value(q->value)), valueText(problem.value(k->value)),
                    valueText(problem.value(v->value)));
  Attention a;
  a.query = query->side;
  a.key = key->side;
  a.val = val->side;
  a.result = result->side;
  a.batch = query->batch;
  a.queries = query->positions;
  a.keys = key->positions;
  a.heads = query->heads;
  a.keyHeads = key->heads;
  a.size = query->size;
  a.valueSize = val->size;
  a.scale = ProblemReader::real(op, "scale", 1 / std::sqrt(double(a.size)));
  a.causal = ProblemReader::integer(op, "is_causal", 0);
  a.narrowQueries = problem.value(a.query.value).type != DVT_F32;
  if (mask) {
    const dvt_value &value = problem.value(*mask);
    if (!isFloatType(value.type) && value.type != DVT_BOOL)
      return badInput("attention with a mask of {}; floats and bool are supported",
                      elementTypeName(value.type));
    auto access =
        broadcastAccess(value, Layout(), {a.batch, staticExtent(a.heads), a.queries, a.keys});
    if (!access || value.rank == 0 || !sameExtent(value.extents[value.rank - 1], a.keys))
      return badInput("attention with a mask {} that is not known to fit {} keys", valueText(value),
                      extentText(a.keys));
    a.mask = mask;
    a.maskAccess = std::move(*access);
    a.maskAccess.strides[3] = 1; // also where there is a single key
  }
  return a;
}

} // namespace

std::optional<Expected<Attention>> Attention::find(const ProblemReader &problem) {
  auto anchor = Fusion::findAnchor(problem, {"attention"});
  if (!anchor)
    return std::nullopt;
  return readAttention(problem, *anchor);
}

AttentionPlan AttentionPlan::read(const Schedule &schedule) {
  AttentionPlan plan;
  plan.queries = schedule.integerParameter("q", 1);
  plan.keys = schedule.integerParameter("k", 1);
  plan.rows = unsigned(schedule.integerParameter("r", 1));
  return plan;
}

std::string AttentionPlan::text() const {
  return fmt::format("attention:q{}:k{}:r{}", queries, keys, rows);
}

AttentionScratch::AttentionScratch(const Attention &attention, const AttentionPlan &plan,
                                   const Machine &machine) {
  int64_t lanes = machine.isa.f32Lanes;
  auto whole = [&](int64_t elements) { return (elements + 15) / 16 * 16; };
  panel = int64_t(AttentionPlan::kVectors) * lanes;
  outputPitch = (attention.valueSize + lanes - 1) / lanes * lanes;
  turnedKeys = 0;
  scores = whole(plan.keys * attention.size);
  outputs = scores + whole(plan.queries * plan.keys);
  maxima = outputs + whole(plan.queries * outputPitch);
  sums = maxima + whole(plan.queries);
  queries = sums + whole(plan.queries);
  elements = queries + (attention.narrowQueries ? whole(plan.queries * attention.size) : 0);
}

void proposeAttention(const ProblemReader &problem, const Machine &machine,
                      const ScheduleSink &sink) {
  auto found = Attention::find(problem);
  if (!found)
    return;
  if (!*found)
    return sink.refuse("attention", found->error().message);
  const Attention &a = **found;
  int64_t panel = int64_t(AttentionPlan::kVectors) * machine.isa.f32Lanes;
  int64_t queries = int64_t(Product::of(a.queries).typical(128)),
          keys = int64_t(Product::of(a.keys).typical(128));
  double heads = double(a.heads) * Product::of(a.batch).typical(1);
  for (int64_t most : {64, 32}) {
    AttentionPlan plan;
    plan.rows = machine.isa.vectorRegisters >= 32 ? 8 : 4;
    plan.rows = unsigned(std::clamp<int64_t>(queries, 1, plan.rows));
    int64_t step = plan.rows;
    plan.queries = std::max<int64_t>(step, std::min(most, (queries + step - 1) / step * step));
    plan.keys = std::min<int64_t>(256, (keys + panel - 1) / panel * panel);
    if (isStaticExtent(a.keys) || plan.keys >= 128)
      plan.keys = std::max(plan.keys, panel);
    else
      plan.keys = 128;
    AttentionScratch scratch(a, plan, machine);
    Schedule schedule = Schedule::rowMajor(plan.text(), problem.problem());
    schedule.scratchBytes = 4 * uint64_t(scratch.elements);
    double tasks = heads * std::ceil(double(queries) / double(plan.queries));
    double products = heads * double(queries) * double(keys) * double(a.size + a.valueSize);
    double perCycle = 14; // of either instruction set, exponentials aside
    double cycles = products / perCycle + heads * double(queries) * double(keys) * 1.2 +
                    tasks * 0.4 * double(keys * a.size);
    schedule.estimateMicros = cycles / 3300 / std::min<double>(machine.threads, tasks) + 2;
    sink.offer(std::move(schedule));
    if (queries <= 32)
      break;
  }
}

} // namespace dovetail::codegen
