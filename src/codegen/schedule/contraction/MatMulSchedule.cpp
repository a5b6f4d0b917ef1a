// SPDX-License-Identifier: Apache-2.0
//
// Offers schedules of matrix products: which register tile, whether tasks share panels of the right
// side or rows of the left, how the right side is read, and whether from several panels at once.
// Also packs constant right sides.
#include <algorithm>
#include <cmath>
#include <optional>

#include "codegen/schedule/Families.h"
#include "codegen/schedule/contraction/BlockMatMul.h"
#include "codegen/schedule/contraction/MatMul.h"

namespace dovetail::codegen {
namespace {

constexpr int64_t kWorkspaceLimit = int64_t(1) << 31;

struct Sizes {
  int64_t batches, rows, columns, depth;
};

Sizes typicalSizes(const MatMul &m) {
  return {int64_t(m.batches().typical()), int64_t(m.rows.typical()),
          int64_t(Product::of(m.columns).typical()), int64_t(Product::of(m.depth).typical())};
}

unsigned rowLimit(const MatMul &m) {
  if (!m.left.row.isStatic() || !m.left.depth.is(1))
    return 28;
  return std::min(28u, rowsWithoutConflict(m.left.row.constant));
}

/// Enough tasks for all threads to end at about the same time, in blocks of whole tiles.
int64_t chooseBlockRows(const Machine &machine, RegisterTile tile, int64_t rows, int64_t others) {
  int64_t tiles = std::max<int64_t>(1, (rows + tile.rows - 1) / tile.rows);
  int64_t wanted = machine.threads == 1
                       ? 1
                       : std::max<int64_t>(1, 8 * machine.threads / std::max<int64_t>(1, others));
  constexpr int64_t kMostTiles = 32;
  int64_t blocks = std::clamp<int64_t>(std::max(wanted, tiles / kMostTiles), 1, tiles);
  if (machine.threads > 1 && blocks > 1)
    blocks = std::min(tiles, (blocks + machine.threads - 1) / machine.threads * machine.threads);
  return (tiles + blocks - 1) / blocks * tile.rows;
}

double estimateMicros(const Machine &machine, const MatMul &m, const MatMulPlan &plan,
                      const Sizes &sizes, double rightElementBytes) {
  constexpr double kCyclesPerMicro = 3600, kBytesPerMicro = 20000;
  unsigned lanes = machine.isa.f32Lanes;
  int64_t vectors = (sizes.columns + lanes - 1) / lanes;
  double finish = 3 + 0.6 * m.fusion.cost;
  double cycles = double(sizes.batches) * tiledCycles(machine.isa, plan.tile, sizes.rows, vectors,
                                                      double(sizes.depth), finish);
  double rightBytes = rightElementBytes * double(sizes.columns) * double(sizes.depth) *
                      (m.oneRight() ? 1 : double(sizes.batches));
  if (plan.right == MatMulPlan::Right::PackedOnRun)
    cycles += rightBytes / 8;
  if (rightElementBytes < 4) // widened again for each tile
    cycles += double(sizes.batches) * double(sizes.rows) / plan.tile.rows * double(vectors) *
              double(sizes.depth) * 0.7;
  double leftBytes = 4.0 * double(sizes.batches) * double(sizes.rows) * double(sizes.depth);
  int64_t panels = (vectors + plan.tile.vectors - 1) / plan.tile.vectors;
  double again = plan.panelsOutside
                     ? leftBytes * double(panels)
                     : rightBytes * std::ceil(double(sizes.rows) / double(plan.blockRows));
  double moved = leftBytes + rightBytes + 0.2 * again;
  double tasks = double(sizes.batches) * double(panels) *
                 std::ceil(double(sizes.rows) / double(plan.blockRows));
  double threads = std::min<double>(machine.threads, tasks);
  return std::max(cycles / kCyclesPerMicro / threads,
                  moved / kBytesPerMicro / std::min(threads, 2.0)) +
         2;
}

/// Places of the packed right side in order; `put` gets the element's place in the constant, or -1
/// for padding.
template <typename Put>
void forPacked(const MatMul &m, const MatMulPlan &plan, const Machine &machine, Put put) {
  int64_t lanes = machine.isa.f32Lanes, columns = m.columns.value, depth = m.depth.value;
  int64_t width = int64_t(plan.panelVectors()) * lanes,
          padded = (columns + lanes - 1) / lanes * lanes;
  for (int64_t panel = 0; panel < padded; panel += width) {
    int64_t panelWidth = std::min(width, padded - panel);
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t j = 0; j < panelWidth; ++j) {
        int64_t column = panel + j;
        put(column < columns ? k * m.right.depth.constant + column * m.right.row.constant : -1);
      }
  }
}

/// A tile for panels read side by side, for one row and weights that come from memory; nothing
/// where others do as well. Where memory is in small pages, each of which a stream has to be found
/// again for, several streams are a third faster; in huge ones a tenth slower.
std::optional<MatMulPlan> chooseStreams(const Machine &machine, const MatMul &m, int64_t vectors) {
  if (!m.rows.is(1) || m.columns.value % machine.isa.f32Lanes ||
      4 * uint64_t(m.depth.value * m.columns.value) < machine.l2Bytes / 2)
    return std::nullopt;
  unsigned most = std::min(16u, machine.isa.vectorRegisters - 1);
  MatMulPlan best;
  int64_t least = INT64_MAX;
  for (unsigned wide : {4u, 2u, 1u})
    for (unsigned streams = std::min(8u, most / wide); streams >= 2; --streams) {
      int64_t tile = wide * streams;
      if (vectors % wide || tile > vectors)
        continue;
      int64_t panels = (vectors + tile - 1) / tile, threads = machine.threads;
      // Of the busiest thread, in vectors; fewer streams cost less than threads that wait.
      int64_t cost = (panels + threads - 1) / threads * tile * 16 - std::min(streams, 4u);
      if (cost >= least)
        continue;
      least = cost;
      best.tile = {1, unsigned(tile)};
      best.streams = streams;
    }
  if (least == INT64_MAX)
    return std::nullopt;
  best.panelsOutside = true;
  return best;
}

} // namespace

void proposeMatMul(const ProblemReader &problem, const Machine &machine, const ScheduleSink &sink) {
  if (BlockMatMul::find(problem)) // a family of its own
    return;
  auto found = MatMul::find(problem);
  if (!found)
    return;
  if (!*found)
    return sink.refuse("matmul", found->error().message);
  const MatMul &m = **found;
  Sizes sizes = typicalSizes(m);
  unsigned lanes = machine.isa.f32Lanes;
  int64_t vectors = (sizes.columns + lanes - 1) / lanes;

  std::vector<MatMulPlan::Right> ways;
  bool contiguous = m.right.row.is(1) || m.columns.value == 1;
  if (m.packsRight(problem)) {
    ways = {MatMulPlan::Right::Packed};
    constexpr int64_t kNarrowRows = 32;
    if (elementBytes(problem.value(m.right.value).type) == 2 && sizes.rows <= kNarrowRows)
      ways.insert(ways.begin(), MatMulPlan::Right::PackedNarrow);
  } else {
    ways = {MatMulPlan::Right::PackedOnRun};
    if (contiguous && sizes.rows >= 32)
      ways.push_back(MatMulPlan::Right::Direct);
    else if (contiguous)
      ways.insert(ways.begin(), MatMulPlan::Right::Direct);
  }

  std::vector<RegisterTile> tiles =
      rankTiles(machine.isa, sizes.rows, vectors, double(std::max<int64_t>(1, sizes.depth)),
                3 + 0.6 * m.fusion.cost, rowLimit(m));
  if (!m.rows.isStatic()) // every number of rows up to the tile's gets code of its own
    std::erase_if(tiles, [](RegisterTile tile) { return tile.rows > 8; });
  unsigned offered = 0;
  for (MatMulPlan::Right right : ways) {
    std::vector<MatMulPlan> plans;
    bool packs = right == MatMulPlan::Right::Packed || right == MatMulPlan::Right::PackedNarrow;
    for (const RegisterTile &tile : tiles) {
      if (!plans.empty() && plans.back().streams == 1 && plans.back().tile.vectors == tile.vectors)
        continue;
      MatMulPlan plan;
      plan.tile = tile;
      int64_t panels = (vectors + tile.vectors - 1) / tile.vectors;
      plan.blockRows = chooseBlockRows(machine, tile, sizes.rows, panels * sizes.batches);
      double rightBytes = 4.0 * double(sizes.depth) * double(sizes.columns);
      plan.panelsOutside = rightBytes > double(machine.l2Bytes) / 2;
      plans.push_back(plan);
    }
    if (auto streams = packs ? chooseStreams(machine, m, vectors) : std::nullopt)
      plans.push_back(*streams);
    unsigned ofWay = 0;
    for (MatMulPlan &plan : plans) {
      if (plan.streams == 1 && ofWay == 2)
        continue;
      plan.right = right;
      Schedule schedule = Schedule::rowMajor(plan.text(), problem.problem());
      Product panelElements = Product::of(m.depth) * Product(int64_t(plan.tile.vectors) * lanes);
      double rightElementBytes = right == MatMulPlan::Right::PackedNarrow ? 2 : 4;
      if (right == MatMulPlan::Right::Direct)
        rightElementBytes = elementBytes(problem.value(m.right.value).type);
      if (packs) {
        schedule.packedBytes[uint32_t(problem.inputOf(m.right.value))] =
            uint64_t(rightElementBytes) * uint64_t(m.depth.value) * uint64_t(vectors) * lanes;
      } else if (right == MatMulPlan::Right::PackedOnRun) {
        int64_t bound = (Product::of(m.columns).upperBound() / lanes / plan.tile.vectors + 1);
        int64_t copies = m.oneRight() ? 1 : m.batches().upperBound();
        __int128 bytes = __int128(panelElements.upperBound()) * bound * copies * 4;
        if (bytes > kWorkspaceLimit) {
          sink.refuse(plan.text().c_str(),
                      "packing the right side may need more than 2 GiB of workspace");
          continue;
        }
        schedule.workspaceBytes = uint64_t(bytes);
      }
      schedule.workspaceBytes += 4 * uint64_t(m.widenedLeft(problem));
      schedule.scratchBytes = 4 * uint64_t(plan.tile.rows) * plan.tile.vectors * lanes;
      schedule.estimateMicros = estimateMicros(machine, m, plan, sizes, rightElementBytes);
      if (plan.streams > 1)
        schedule.estimateMicros *= 1.1;
      sink.offer(std::move(schedule));
      ++offered;
      ofWay += plan.streams == 1;
    }
  }
  if (!offered)
    sink.refuse("matmul", "no way to read the right side");
}

void packMatMul(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
                uint32_t input, const void *constant, void *packed) {
  auto found = MatMul::find(problem);
  if (!found || !*found || uint32_t(problem.inputOf((*found)->right.value)) != input)
    return;
  const MatMul &m = **found;
  MatMulPlan plan = MatMulPlan::read(schedule);
  if (plan.right == MatMulPlan::Right::PackedNarrow) {
    const auto *from = static_cast<const uint16_t *>(constant);
    auto *to = static_cast<uint16_t *>(packed);
    return forPacked(m, plan, machine,
                     [&](int64_t at) { *to++ = at < 0 ? uint16_t(0) : from[at]; });
  }
  const FloatReader from(problem.value(m.right.value).type, constant);
  auto *to = static_cast<float *>(packed);
  forPacked(m, plan, machine, [&](int64_t at) { *to++ = at < 0 ? 0.0f : from[at]; });
}

} // namespace dovetail::codegen
