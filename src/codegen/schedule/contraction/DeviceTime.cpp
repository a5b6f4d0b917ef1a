// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedule/contraction/DeviceTime.h"

#include <algorithm>
#include <cmath>

#include "codegen/schedule/contraction/DeviceAttention.h"

namespace dovetail::codegen {

namespace {

/// Of kernels that keep a tile of sums in registers: threads of a compute unit for each 128 billion
/// operations per second that it does.
constexpr double kThreadsPerCore = 256, kCoreTeraops = 0.128;

double threadsForPeak(const device::DeviceDescription &device) {
  return std::max(1.0, device.peak("f32") / kCoreTeraops / device.computeUnits) * kThreadsPerCore;
}

/// Blocks that a compute unit holds at once; 0 in a description says nothing.
double residentBlocks(const device::DeviceDescription &device, const BlockWork &work) {
  double most = device.blocksPerUnit > 0 ? device.blocksPerUnit : 32;
  auto hold = [&](double there, double each) {
    if (there > 0 && each > 0)
      most = std::min(most, std::floor(there / each));
  };
  hold(device.threadsPerUnit, work.threads);
  hold(device.sharedBytesPerUnit, work.sharedBytes);
  hold(device.registersPerUnit, work.registers * work.threads);
  return std::max(1.0, most);
}

/// `tileRows` x `tileColumns` for a block, `rows` x `columns` for whatever reads its operands as
/// one: a thread or a warp.
BlockWork tileWork(const DeviceProductSizes &sizes, double tileRows, double tileColumns,
                   double elementBytes) {
  BlockWork work;
  work.blocks =
      sizes.batches * std::ceil(sizes.rows / tileRows) * std::ceil(sizes.columns / tileColumns);
  work.multiplyAdds = tileRows * tileColumns * sizes.depth;
  work.tileBytes = (tileRows + tileColumns) * sizes.depth * elementBytes;
  return work;
}

std::optional<BlockWork> productWork(const ProblemReader &problem, const Machine &machine,
                                     const device::DeviceDescription &device,
                                     const Schedule &schedule) {
  auto sizes = deviceProductSizes(problem);
  if (!sizes)
    return std::nullopt;
  if (auto tile = MatrixTile::read(schedule, machine)) {
    // A warp reads its rows and columns out of shared memory for each step along the depth: larger
    // parts read less for each product.
    constexpr double kEfficiency = 0.25, kUsualReuse = 16, kMost = 0.5, kOtherRegisters = 48;
    static const std::pair<const char *, const char *> kPeaks[] = {{"f16", "f16_matrix"},
                                                                   {"bf16", "bf16_matrix"},
                                                                   {"tf32", "tf32_matrix"},
                                                                   {"f32", "f32_matrix"}};
    BlockWork work = tileWork(*sizes, double(tile->rows), double(tile->columns),
                              4.0 / double(tile->unit->elementsPerWord()));
    const double warpRows = double(tile->warpRows), warpColumns = double(tile->warpColumns);
    for (auto [numerics, peak] : kPeaks)
      if (std::string_view(numerics) == tile->unit->numerics)
        work.peak = peak;
    work.threads = double(MatrixTile::kThreads);
    work.sharedBytes = double(tile->sharedBytes());
    work.registers = warpRows * warpColumns / double(tile->unit->lanes) + kOtherRegisters;
    work.efficiency = std::min(kMost, kEfficiency * warpRows * warpColumns /
                                          (warpRows + warpColumns) / kUsualReuse);
    work.threadsForPeak = threadsForPeak(device);
    return work;
  }
  auto tile = DeviceTile::read(schedule);
  if (!tile)
    return std::nullopt;
  constexpr double kEfficiency = 0.25, kMost = 0.6, kOtherRegisters = 40;
  const double threadRows = double(tile->threadRows), threadColumns = double(tile->threadColumns);
  BlockWork work = tileWork(*sizes, double(tile->rows), double(tile->columns), 4);
  work.threads = double(DeviceTile::kThreads);
  work.sharedBytes = double(tile->sharedBytes());
  work.registers = threadRows * threadColumns + kOtherRegisters;
  work.efficiency =
      std::min(kMost, kEfficiency * threadRows * threadColumns / (threadRows + threadColumns));
  work.threadsForPeak = threadsForPeak(device);
  return work;
}

std::optional<BlockWork> attentionWork(const ProblemReader &problem,
                                       const device::DeviceDescription &device,
                                       const Schedule &schedule) {
  auto found = Attention::find(problem);
  if (!found || !*found)
    return std::nullopt;
  const Attention &a = **found;
  const DeviceAttentionPlan plan = DeviceAttentionPlan::read(schedule);
  // Operands come out of shared memory, and an exponential takes as long as so many products.
  constexpr double kEfficiency = 0.1, kPerExponential = 40, kOtherRegisters = 40;
  constexpr double kQueries = double(DeviceAttentionPlan::kQueries);
  const double queries = Product::of(a.queries).typical(128),
               keys = Product::of(a.keys).typical(128), channels = double(a.size + a.valueSize);
  const double queryBlocks = std::ceil(queries / kQueries);
  // Keys behind a block's last query are left out.
  const double taken = a.causal ? keys * (queryBlocks + 1) / (2 * queryBlocks) : keys;
  BlockWork work;
  work.blocks = double(a.heads) * Product::of(a.batch).typical(1) * queryBlocks;
  work.threads = double(DeviceAttentionPlan::kThreads);
  work.sharedBytes = double(plan.sharedBytes(a));
  work.registers =
      double(plan.keys + a.valueSize) / double(DeviceAttentionPlan::kSharers) + kOtherRegisters;
  work.multiplyAdds = kQueries * taken * (channels + kPerExponential);
  work.tileBytes = taken * channels * elementBytes(problem.value(a.key.value).type);
  work.efficiency = kEfficiency;
  work.threadsForPeak = threadsForPeak(device);
  return work;
}

} // namespace

double blockMicros(const device::DeviceDescription &device, const BlockWork &work) {
  const double peak = device.peak(work.peak);
  if (peak <= 0 || device.computeUnits == 0 || device.memoryGigabytesPerSecond <= 0)
    return -1;
  // Between the level-2 cache and the units fit about three times as many bytes as between it and
  // memory, of which kernels reach a part.
  constexpr double kCacheFactor = 3, kMemoryEfficiency = 0.8;
  const double turns = std::ceil(work.blocks / device.computeUnits);
  const double atOnce = std::min(turns, residentBlocks(device, work));
  const double hiding = std::min(1.0, atOnce * work.threads / std::max(work.threadsForPeak, 1.0));
  // Tera per second is mega per microsecond, and a multiply-add counts as two.
  const double unitPeak = peak * 1e6 / 2 / device.computeUnits;
  const double bytesPerMicro = device.memoryGigabytesPerSecond * 1e3 * kMemoryEfficiency;
  const double busy = std::min(1.0, work.blocks / device.computeUnits);
  return device.launchMicros +
         std::max({turns * work.multiplyAdds / (unitPeak * work.efficiency * hiding),
                   work.blocks * work.tileBytes / (kCacheFactor * bytesPerMicro * busy),
                   work.bytes / bytesPerMicro});
}

std::optional<double> deviceMicros(const ProblemReader &problem, const Machine &machine,
                                   const device::DeviceDescription &device,
                                   const Schedule &schedule) {
  auto work = schedule.family() == "deviceattention"
                  ? attentionWork(problem, device, schedule)
                  : productWork(problem, machine, device, schedule);
  if (!work)
    return std::nullopt;
  work->bytes = deviceOperandBytes(problem);
  const double micros = blockMicros(device, *work);
  return micros < 0 ? std::nullopt : std::optional(micros);
}

} // namespace dovetail::codegen
