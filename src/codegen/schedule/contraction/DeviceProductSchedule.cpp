// SPDX-License-Identifier: Apache-2.0
//
// What is offered for products on devices: of tiles on matrix units and of others the two that are
// thought to be the fastest for the sizes at hand, a thread for each element, and for few rows
// blocks that share the depth of a few columns.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "codegen/schedule/Families.h"
#include "codegen/schedule/contraction/Convolution.h"
#include "codegen/schedule/contraction/DeviceProduct.h"
#include "codegen/schedule/contraction/DeviceTime.h"
#include "codegen/schedule/contraction/MatMul.h"

namespace dovetail::codegen {

uint64_t DeviceTile::sharedBytes() const {
  return 4 * uint64_t(std::max((rows + 1 + columns + 1) * depth, rows * columns));
}

std::string DeviceTile::text() const {
  return fmt::format("{}x{}x{}:{}x{}", rows, columns, depth, threadRows, threadColumns);
}

const std::vector<DeviceTile> &DeviceTile::all() {
  static const std::vector<DeviceTile> tiles = {
      {128, 64, 16, 8, 4}, {64, 128, 16, 4, 8}, {64, 64, 16, 4, 4},
      {16, 256, 16, 4, 4}, {32, 32, 32, 2, 2},
  };
  return tiles;
}

std::optional<DeviceTile> DeviceTile::read(const Schedule &schedule) {
  for (const DeviceTile &tile : all())
    if (schedule.algorithm.ends_with(":" + tile.text()))
      return tile;
  return std::nullopt;
}

double deviceProductMicros(const Machine &machine, const DeviceProductSizes &sizes,
                           const std::optional<DeviceTile> &tile, double bytes) {
  double multiplications = sizes.batches * sizes.rows * sizes.columns * sizes.depth;
  double whole = 1, reuse = 1, parts = sizes.batches * sizes.rows * sizes.columns;
  if (tile) {
    double tileRows = double(tile->rows), tileColumns = double(tile->columns);
    double blocks =
        sizes.batches * std::ceil(sizes.rows / tileRows) * std::ceil(sizes.columns / tileColumns);
    whole = blocks * tileRows * tileColumns / parts;
    parts = blocks * double(DeviceTile::kThreads);
    // A thread reads its rows and columns from shared memory for so many multiplications.
    reuse = double(tile->threadRows * tile->threadColumns) /
            double(tile->threadRows + tile->threadColumns);
  }
  // What hides the latency of arithmetic and memory (Little's law): many threads with one sum each,
  // or fewer of which each has a tile of sums that do not wait for each other.
  constexpr double kOperationsPerCore = 128e3;
  const double threadsPerCore = tile ? 256 : 1024;
  double peak = machine.threads * kOperationsPerCore / 2; // multiply-adds in a microsecond
  double busy = std::min(1.0, parts / (machine.threads * threadsPerCore));
  double efficiency = std::min(0.6, tile ? 0.25 * reuse : 0.05);
  double compute = multiplications * whole / (peak * efficiency * std::max(busy, 1e-3));
  return machine.startMicros() + std::max(compute, machine.memoryMicros(bytes));
}

double deviceOperandBytes(const ProblemReader &problem) {
  const dvt_problem &source = problem.problem();
  double bytes = 0;
  auto add = [&](uint32_t value) {
    bytes += ProblemReader::typicalElements(problem.value(value)) *
             elementBytes(problem.value(value).type);
  };
  std::for_each(source.inputs, source.inputs + source.input_count, add);
  std::for_each(source.outputs, source.outputs + source.output_count, add);
  return bytes;
}

constexpr size_t kTiles = 2; ///< offered of each kind

/// What these take follows from the peaks of the device's matrix units (DeviceTime.h).
static void offerMatrixTiles(const ProblemReader &problem, const Machine &machine,
                             const char *family, const DeviceProductSizes &sizes, dvt_type left,
                             dvt_type right, const ScheduleSink &sink) {
  const MatrixUnit *unit = MatrixUnit::find(machine, left, right);
  if (!unit)
    return;
  std::vector<MatrixTile> tiles = matrixTilesFor(machine, *unit, sizes);
  tiles.resize(std::min(tiles.size(), kTiles));
  for (const MatrixTile &tile : tiles) {
    Schedule schedule =
        Schedule::rowMajor(fmt::format("{}:{}", family, tile.text()), problem.problem());
    schedule.numerics = unit->numerics;
    sink.offer(std::move(schedule));
  }
}

/// `slices`: whether the family has blocks that share the depth.
static void offerProducts(const ProblemReader &problem, const Machine &machine, const char *family,
                          const DeviceProductSizes &sizes, bool tiles, bool slices,
                          const ScheduleSink &sink) {
  double bytes = deviceOperandBytes(problem);
  std::vector<Schedule> offers;
  auto offer = [&](const std::optional<DeviceTile> &tile) {
    Schedule schedule = Schedule::rowMajor(
        fmt::format("{}:{}", family, tile ? tile->text() : "direct"), problem.problem());
    schedule.estimateMicros = deviceProductMicros(machine, sizes, tile, bytes);
    offers.push_back(std::move(schedule));
  };
  auto faster = [](const Schedule &a, const Schedule &b) {
    return a.estimateMicros < b.estimateMicros;
  };
  for (const DeviceTile &tile : DeviceTile::all())
    if (tiles)
      offer(tile);
  std::stable_sort(offers.begin(), offers.end(), faster);
  offers.resize(std::min(offers.size(), kTiles));
  offer(std::nullopt);
  constexpr double kFewRows = 16;
  if (slices && sizes.rows <= kFewRows) {
    Schedule schedule = Schedule::rowMajor(fmt::format("{}:slices", family), problem.problem());
    // The right side is read once for each row, the first time from memory.
    schedule.estimateMicros =
        machine.startMicros() + 1.2 * machine.memoryMicros(bytes) * std::max(1.0, 0.5 * sizes.rows);
    offers.push_back(std::move(schedule));
  }
  std::stable_sort(offers.begin(), offers.end(), faster);
  for (Schedule &schedule : offers)
    sink.offer(std::move(schedule));
}

static DeviceProductSizes sizesOf(const MatMul &m) {
  return {m.batches().typical(4), m.rows.typical(), Product::of(m.columns).typical(),
          Product::of(m.depth).typical()};
}

static DeviceProductSizes sizesOf(const Convolution &conv) {
  double pixels = Product::of(conv.outRows).typical() * Product::of(conv.outColumns).typical();
  double window = double(conv.inPerGroup * conv.rows.size * conv.columns.size);
  if (conv.transposed)
    window /= double(conv.rows.stride * conv.columns.stride);
  return {Product::of(conv.batch).typical(4) * double(conv.groups), double(conv.outPerGroup),
          pixels, window};
}

std::optional<DeviceProductSizes> deviceProductSizes(const ProblemReader &problem) {
  if (auto found = MatMul::find(problem); found && *found)
    return sizesOf(**found);
  if (auto found = Convolution::find(problem); found && *found)
    return sizesOf(**found);
  return std::nullopt;
}

void proposeDeviceMatMul(const ProblemReader &problem, const Machine &machine,
                         const ScheduleSink &sink) {
  auto found = MatMul::find(problem);
  if (!found)
    return;
  if (!*found)
    return sink.refuse("devicematmul", found->error().message);
  const MatMul &m = **found;
  DeviceProductSizes sizes = sizesOf(m);
  offerMatrixTiles(problem, machine, "devicematmul", sizes, problem.value(m.left.value).type,
                   problem.value(m.right.value).type, sink);
  offerProducts(problem, machine, "devicematmul", sizes, true, true, sink);
}

void proposeDeviceConvolution(const ProblemReader &problem, const Machine &machine,
                              const ScheduleSink &sink) {
  auto found = Convolution::find(problem);
  if (!found)
    return;
  if (!*found)
    return sink.refuse("deviceconv", found->error().message);
  const Convolution &conv = **found;
  if (!conv.fusion.leafAccesses(problem, std::vector<std::string>(problem.problem().input_count)))
    return sink.refuse("deviceconv",
                       "an operand after conv whose extents are not known to broadcast");
  DeviceProductSizes sizes = sizesOf(conv);
  // A group of few channels leaves most of a tile empty; a transposed window has several kinds of
  // pixel.
  bool tiles = !conv.transposed && conv.outPerGroup > 4;
  if (tiles)
    offerMatrixTiles(problem, machine, "deviceconv", sizes, problem.value(conv.input).type,
                     problem.value(conv.weight).type, sink);
  offerProducts(problem, machine, "deviceconv", sizes, tiles, false, sink);
}

} // namespace dovetail::codegen
