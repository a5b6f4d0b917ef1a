// SPDX-License-Identifier: Apache-2.0
//
// Offers schedules of products with quantised weights, and packs weights, scales and zero points.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "codegen/schedule/Families.h"
#include "codegen/schedule/contraction/BlockMatMul.h"

namespace dovetail::codegen {
namespace {

double estimateMicros(const Machine &machine, const BlockMatMul &m, const BlockMatMulPlan &plan,
                      double rows) {
  constexpr double kCyclesPerMicro = 3600, kBytesPerMicro = 20000;
  BlockMatMulSizes sizes(m, plan, machine);
  double vectors = double(sizes.panels) * plan.vectors, depth = double(m.depth);
  double widening = machine.isa.level == Isa::Avx512 ? 1.5 : 2;
  double again = 1, perRow = 1.1;
  if (rows > BlockMatMulPlan::kWidenedRows)
    again = plan.blockRows ? std::ceil(rows / double(plan.blockRows)) : 1;
  double cycles = vectors * depth * (widening * again + rows * perRow);
  double tasks = double(sizes.panels) * again;
  double threads = std::min<double>(machine.threads, tasks);
  double parameters = double(m.blocks()) * double(sizes.panels * sizes.width) *
                      (4.0 * (m.scale.value ? 1 : 0) + (m.zero.value ? 1 : 0));
  double bytes = double(sizes.weightBytes()) + parameters + 4 * rows * (depth + double(m.columns));
  return std::max(cycles / kCyclesPerMicro / threads,
                  bytes / kBytesPerMicro / std::min(threads, 2.0)) +
         2;
}

uint64_t parameterBytes(const BlockMatMul &m, const BlockMatMulSizes &sizes, uint64_t element) {
  return uint64_t(m.blocks()) * uint64_t(sizes.panels * sizes.width) * element;
}

/// Calls body(place among the packed, column, block) for every column, also those past the end.
template <typename Body>
void forParameters(const BlockMatMul &m, const BlockMatMulSizes &sizes, Body body) {
  int64_t at = 0;
  for (int64_t panel = 0; panel < sizes.panels; ++panel)
    for (int64_t block = 0; block < m.blocks(); ++block)
      for (int64_t j = 0; j < sizes.width; ++j)
        body(at++, panel * sizes.width + j, block);
}

} // namespace

void proposeBlockMatMul(const ProblemReader &problem, const Machine &machine,
                        const ScheduleSink &sink) {
  auto found = BlockMatMul::find(problem);
  if (!found)
    return;
  if (!*found)
    return sink.refuse("blockmatmul", found->error().message);
  const BlockMatMul &m = **found;
  const MatMul &p = m.product;
  int64_t lanes = machine.isa.f32Lanes, vectors = (m.columns + lanes - 1) / lanes;
  double rows = p.rows.typical();

  std::vector<unsigned> widths{4, 3, 2};
  auto padded = [&](unsigned width) { return (vectors + width - 1) / width * width; };
  std::stable_sort(widths.begin(), widths.end(),
                   [&](unsigned a, unsigned b) { return padded(a) < padded(b); });
  widths.resize(2);
  for (unsigned width : widths) {
    BlockMatMulPlan plan;
    plan.vectors = unsigned(std::min<int64_t>(width, vectors));
    BlockMatMulSizes sizes(m, plan, machine);
    // Few panels for many threads: tasks share them, each widening for itself.
    constexpr int64_t kTaskRows = 96;
    if (machine.threads > 1 && sizes.panels < 4 * int64_t(machine.threads) &&
        rows > 1.5 * kTaskRows)
      plan.blockRows = kTaskRows;
    Schedule schedule = Schedule::rowMajor(plan.text(), problem.problem());
    auto packs = [&](uint32_t value, uint64_t bytes) {
      if (problem.inputOf(value) >= 0)
        schedule.packedBytes[uint32_t(problem.inputOf(value))] = bytes;
    };
    packs(p.right.value, uint64_t(sizes.weightBytes()));
    if (m.scale.value)
      packs(*m.scale.value, parameterBytes(m, sizes, 4));
    if (m.zero.value)
      packs(*m.zero.value, parameterBytes(m, sizes, 1));
    bool widens = !p.rows.isStatic() || p.rows.constant > BlockMatMulPlan::kWidenedRows;
    int64_t panelRows = widens ? m.depth : 0;
    schedule.scratchBytes =
        4 * uint64_t(sizes.width) * uint64_t(panelRows + BlockMatMulPlan::kWidenedRows);
    schedule.estimateMicros = estimateMicros(machine, m, plan, rows);
    sink.offer(std::move(schedule));
    if (plan.vectors == vectors)
      break;
  }
}

void packBlockWeights(const BlockMatMul &m, const BlockMatMulPlan &plan, const Machine &machine,
                      const void *weights, void *packed) {
  BlockMatMulSizes sizes(m, plan, machine);
  const auto *from = static_cast<const uint8_t *>(weights);
  int64_t column = m.product.right.row.constant, depth = m.product.right.depth.constant;
  auto flip = uint8_t(m.centre());
  if (m.bits == 8) {
    auto *to = static_cast<uint8_t *>(packed);
    for (int64_t panel = 0; panel < sizes.panels; ++panel)
      for (int64_t k = 0; k < m.depth; ++k)
        for (int64_t j = 0; j < sizes.width; ++j) {
          int64_t n = panel * sizes.width + j;
          *to++ = n < m.columns ? from[k * depth + n * column] ^ flip : 0;
        }
    return;
  }
  auto *to = static_cast<char *>(packed);
  bool wholeWords = depth == 1 && column % kDepthsPerWord == 0 && m.block % kDepthsPerWord == 0;
  auto wordAt = [&](int64_t n, int64_t k, int64_t count) {
    uint32_t word = 0;
    if (wholeWords && count == kDepthsPerWord) {
      std::memcpy(&word, from + (n * column + k) / 2, 4);
      return word ^ (flip ? 0x88888888u : 0);
    }
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = n * column + (k + i) * depth;
      word |= uint32_t((from[at / 2] >> (at % 2 * 4) & 15) ^ flip) << (4 * i);
    }
    return word;
  };
  for (int64_t panel = 0; panel < sizes.panels; ++panel)
    for (int64_t block = 0; block < m.blocks(); ++block) {
      int64_t end = std::min(m.depth, (block + 1) * m.block);
      for (int64_t k = block * m.block; k < end; k += kDepthsPerWord)
        for (int64_t j = 0; j < sizes.width; ++j, to += 4) {
          int64_t n = panel * sizes.width + j;
          uint32_t word =
              n < m.columns ? wordAt(n, k, std::min<int64_t>(kDepthsPerWord, end - k)) : 0;
          std::memcpy(to, &word, 4);
        }
    }
}

void packBlockScales(const BlockMatMul &m, const BlockMatMulPlan &plan, const Machine &machine,
                     const void *scales, void *packed) {
  BlockMatMulSizes sizes(m, plan, machine);
  const FloatReader from(m.scaleType, scales);
  auto *to = static_cast<float *>(packed);
  forParameters(m, sizes, [&](int64_t at, int64_t n, int64_t block) {
    to[at] = n < m.columns ? from[n * m.scale.column + block * m.scale.block] : 0.0f;
  });
}

void packBlockZeros(const BlockMatMul &m, const BlockMatMulPlan &plan, const Machine &machine,
                    const void *zeros, void *packed) {
  BlockMatMulSizes sizes(m, plan, machine);
  const auto *from = static_cast<const uint8_t *>(zeros);
  auto *to = static_cast<int8_t *>(packed);
  forParameters(m, sizes, [&](int64_t at, int64_t n, int64_t block) {
    int64_t place = n * m.zero.column + block * m.zero.block;
    int64_t number = 0;
    if (n < m.columns) {
      number = m.bits == 8 ? from[place] : from[place / 2] >> (place % 2 * 4) & 15;
      if (m.isSigned && number >= int64_t(1) << (m.bits - 1))
        number -= int64_t(1) << m.bits;
      number -= m.centre();
    }
    to[at] = int8_t(number);
  });
}

void packBlockMatMul(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
                     uint32_t input, const void *constant, void *packed) {
  auto found = BlockMatMul::find(problem);
  if (!found || !*found)
    return;
  const BlockMatMul &m = **found;
  BlockMatMulPlan plan = BlockMatMulPlan::read(schedule);
  uint32_t value = problem.problem().inputs[input];
  if (value == m.product.right.value)
    packBlockWeights(m, plan, machine, constant, packed);
  else if (m.scale.value == value)
    packBlockScales(m, plan, machine, constant, packed);
  else if (m.zero.value == value)
    packBlockZeros(m, plan, machine, constant, packed);
}

} // namespace dovetail::codegen
