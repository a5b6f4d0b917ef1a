// SPDX-License-Identifier: Apache-2.0
//
// Offers schedules of contractions of bytes and packs their weights in words of four channels.
#include <algorithm>

#include "codegen/schedule/Families.h"
#include "codegen/schedule/contraction/Int8.h"

namespace dovetail::codegen {
namespace {

constexpr const char *kFamily = "int8";
constexpr int64_t kWorkspaceLimit = int64_t(1) << 31;

/// The machine as the choice of tiles sees it: some registers hold what floats do not need.
Machine machineForTiles(const Int8 &m, const Int8Plan &plan, Machine machine) {
  unsigned &registers = machine.isa.vectorRegisters;
  if (!machine.isa.vnni) // halves of words on both sides
    registers -= machine.isa.level == Isa::Avx512 ? 7 : 4;
  else if (plan.flips(m))
    registers -= 1; // what flips
  if (!m.right.isCentred)
    registers -= registers / 4; // sums of rows
  machine.isa.leftCycles = plan.flips(m) ? 1.25 : 1;
  return machine;
}

Schedule scheduleOf(const ProblemReader &problem, const Int8 &m, const Int8Plan &plan,
                    const Machine &machine, double cycles) {
  Schedule schedule = Schedule::rowMajor(plan.text(machine), problem.problem());
  if (!m.product)
    setImageLayouts(problem, m.fusion(), m.left.value, m.words.spatial, plan.tiles.in,
                    plan.tiles.out, machine.isa.f32Lanes, schedule);
  Int8Sizes sizes(m, plan, machine);
  schedule.numerics = "int8";
  schedule.packedBytes[uint32_t(problem.inputOf(m.right.value))] = sizes.packedBytes();
  schedule.scratchBytes = sizes.allScratchBytes();
  constexpr double kCyclesPerMicro = 3500;
  schedule.estimateMicros = cycles * (machine.isa.vnni ? 1 : 3) / kCyclesPerMicro + 2;
  return schedule;
}

void proposeProduct(const ProblemReader &problem, const Int8 &m, const Machine &machine,
                    const ScheduleSink &sink) {
  // Flipping signed bytes in each tile costs a vector operation beside those of the products; few
  // rows or columns are not worth a copy.
  constexpr int64_t kFewRows = 4, kFewVectors = 8;
  bool few = m.product->rows.typical() <= kFewRows ||
             m.words.outPerGroup <= kFewVectors * machine.isa.f32Lanes;
  for (bool copies : {true, false}) {
    if (copies ? !m.mustCopyLeft() && (!m.left.isSigned || few) : m.mustCopyLeft())
      continue;
    Int8Plan plan;
    plan.tiles.in = plan.tiles.out = ImageLayout::ChannelsLast;
    plan.tiles.direct = true;
    plan.copiesLeft = copies;
    double cycles = completePlan(m.words, machineForTiles(m, plan, machine), plan.tiles);
    uint64_t workspaceBytes = 0;
    if (copies) {
      int64_t words = m.copiedLeftWords().upperBound();
      if (words > kWorkspaceLimit / 4) {
        sink.refuse(kFamily, "copying the left side may need more than 2 GiB");
        continue;
      }
      workspaceBytes = 4 * uint64_t(words);
      cycles += m.copiedLeftWords().typical() / double(machine.isa.f32Lanes) * 2;
    }
    Schedule schedule = scheduleOf(problem, m, plan, machine, cycles);
    schedule.workspaceBytes = workspaceBytes;
    sink.offer(std::move(schedule));
  }
}

void proposeImage(const ProblemReader &problem, const Int8 &m, const Machine &machine,
                  const ScheduleSink &sink) {
  using L = ImageLayout;
  constexpr int64_t kFewChannels = 16;
  for (L in : {L::ChannelsLast, L::Plain}) {
    if (in == L::Plain && m.channels > kFewChannels)
      continue;
    Int8Plan plan;
    plan.tiles.in = in;
    plan.tiles.out = L::ChannelsLast;
    plan.tiles.direct = in == L::ChannelsLast && m.channels % 4 == 0 && !m.words.isPadded();
    Schedule layouts = Schedule::rowMajor("", problem.problem());
    setImageLayouts(problem, m.fusion(), m.left.value, m.words.spatial, in, plan.tiles.out,
                    machine.isa.f32Lanes, layouts);
    auto leaves = m.fusion().leafAccesses(problem, layouts.inputLayouts);
    if (!leaves)
      return sink.refuse(kFamily, "an operand after the convolution whose extents are not known to "
                                  "broadcast");
    plan.tiles.flat = plan.tiles.direct && m.words.isPointwise() && m.words.spatial == 2 &&
                      std::all_of(leaves->begin(), leaves->end(), [&](const Access &access) {
                        return access.collapses(2, 3, m.fusion().extents);
                      });
    auto complete = [&](Int8Plan &plan) {
      return completePlan(m.words, machineForTiles(m, plan, machine), plan.tiles);
    };
    double cycles = complete(plan);
    if (plan.tiles.direct && (!m.words.isPointwise() || m.left.isSigned)) {
      Int8Plan copied = plan;
      copied.tiles.direct = copied.tiles.flat = false;
      double other = complete(copied);
      if (m.left.isSigned) // both: how much flipping costs depends on the processor
        sink.offer(scheduleOf(problem, m, copied, machine, other));
      else if (other < cycles) {
        plan = copied;
        cycles = other;
      }
    }
    sink.offer(scheduleOf(problem, m, plan, machine, cycles));
  }
}

} // namespace

void proposeInt8(const ProblemReader &problem, const Machine &machine, const ScheduleSink &sink) {
  auto found = Int8::find(problem);
  if (!found)
    return;
  if (!*found)
    return sink.refuse(kFamily, found->error().message);
  const Int8 &m = **found;
  if (m.product)
    proposeProduct(problem, m, machine, sink);
  else
    proposeImage(problem, m, machine, sink);
}

void packInt8(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
              uint32_t input, const void *constant, void *packed) {
  auto found = Int8::find(problem);
  if (!found || !*found || uint32_t(problem.inputOf((*found)->right.value)) != input)
    return;
  const Int8 &m = **found;
  Int8Sizes sizes(m, Int8Plan::read(schedule), machine);
  const auto *from = static_cast<const uint8_t *>(constant);
  const Convolution &conv = m.words;
  int64_t rows = conv.rows.size, columns = conv.columns.size, area = rows * columns;
  // Steps through the constant by column, channel and place in the window.
  int64_t columnStep = m.channels * area, channelStep = area;
  if (m.product) {
    columnStep = m.product->right.row.constant;
    channelStep = m.product->right.depth.constant;
  }
  uint8_t flip = m.right.isSigned ? 0 : 0x80;
  auto *to = static_cast<int8_t *>(packed);
  auto *sums = reinterpret_cast<int32_t *>(static_cast<char *>(packed) + 4 * sizes.sumsOffset);
  std::fill_n(sums, sizes.flipOffset - sizes.sumsOffset, 0);
  std::fill_n(sums + (sizes.flipOffset - sizes.sumsOffset), sizes.lanes, int32_t(0x80808080));
  int64_t panelVectors = Int8Plan::read(schedule).tiles.tile.vectors;
  for (int64_t group = 0; group < conv.groups; ++group)
    for (int64_t vector = 0; vector < sizes.vectors; vector += panelVectors) {
      int64_t width = std::min(panelVectors, sizes.vectors - vector) * sizes.lanes;
      int64_t first = vector * sizes.lanes;
      int64_t real = std::clamp<int64_t>(conv.outPerGroup - first, 0, width);
      int32_t *panelSums = sums + group * sizes.vectors * sizes.lanes + first;
      for (int64_t block = 0; block < conv.inPerGroup; block += sizes.channelBlock)
        for (int64_t place = 0; place < area; ++place) {
          int64_t end = std::min(block + sizes.channelBlock, conv.inPerGroup);
          for (int64_t word = block; word < end; ++word, to += 4 * width)
            for (int64_t i = 0; i < 4; ++i) {
              int64_t channel = 4 * word + i;
              const uint8_t *line = from + place + channel * channelStep +
                                    (group * conv.outPerGroup + first) * columnStep;
              bool isThere = channel < m.channels;
              for (int64_t j = 0; j < width; ++j) {
                int8_t byte = isThere && j < real ? int8_t(line[j * columnStep] ^ flip) : int8_t(0);
                to[4 * j + i] = byte;
                panelSums[j] += byte;
              }
            }
        }
    }
}

} // namespace dovetail::codegen
