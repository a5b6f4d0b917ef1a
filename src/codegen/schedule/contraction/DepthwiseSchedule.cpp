// SPDX-License-Identifier: Apache-2.0
//
// Offers one schedule of a depthwise convolution for each image layout, and packs its weights: for
// each block of channels the window, row by row, a vector for each place (where images are plain
// they are used as they are).
#include "codegen/schedule/contraction/Depthwise.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "codegen/schedule/Families.h"

namespace dovetail::codegen {

DepthwisePlan DepthwisePlan::read(const Schedule &schedule) {
  DepthwisePlan plan;
  char layout = 'b';
  long long tile = 1, blocks = 1, rows = 1;
  std::sscanf(schedule.algorithm.c_str(), "depthwise:%c:t%lldx%lld:r%lld", &layout, &tile, &blocks,
              &rows);
  plan.layout = ImageLayout(layout);
  plan.tile = tile;
  plan.blocks = blocks;
  plan.chunkRows = rows;
  return plan;
}

std::string DepthwisePlan::text() const {
  return fmt::format("depthwise:{}:t{}x{}:r{}", char(layout), tile, blocks, chunkRows);
}

InnerColumns innerColumns(const Convolution::Window &window, int64_t columns, int64_t outColumns) {
  int64_t first = std::min((window.padBegin + window.stride - 1) / window.stride, outColumns);
  int64_t room = columns + window.padBegin - window.reach();
  int64_t end = room < 0 ? first : std::clamp(room / window.stride + 1, first, outColumns);
  return {first, end};
}

/// Columns of a tile, at most `most`: as few tiles as may be; long rows take tiles that divide
/// them.
static int64_t columnsOfTile(int64_t most, int64_t columns, bool known) {
  if (!known)
    return std::min<int64_t>(most, 8);
  int64_t best = std::min(most, columns);
  for (int64_t tile = best; tile * 2 > best && tile > 1; --tile)
    if (columns % tile == 0)
      return tile;
  return best;
}

DepthwisePlan chooseDepthwiseTile(const Convolution &conv, const Machine &machine,
                                  ImageLayout layout) {
  int64_t columns = int64_t(Product::of(conv.outColumns).typical());
  bool known = isStaticExtent(conv.outColumns) && isStaticExtent(conv.inColumns);
  DepthwisePlan plan;
  plan.layout = layout;
  if (layout == ImageLayout::Plain) {
    plan.tile = std::clamp<int64_t>(columns / machine.isa.f32Lanes, 1, 4);
    return plan;
  }
  int64_t sums = machine.isa.vectorRegisters >= 32 ? 24 : 12, most = sums * 7 / 12;
  plan.tile = columnsOfTile(most, columns, known);
  if (layout == ImageLayout::Blocked)
    return plan;
  // Several blocks at once make reads run on.
  int64_t lanes = machine.isa.f32Lanes, blocks = (conv.groups + lanes - 1) / lanes;
  plan.blocks = std::min<int64_t>(blocks, machine.isa.vectorRegisters >= 32 ? 4 : 2);
  plan.tile = columnsOfTile(std::min(most, sums / plan.blocks), columns, known);
  return plan;
}

void proposeDepthwise(const ProblemReader &problem, const Machine &machine,
                      const ScheduleSink &sink) {
  auto found = Convolution::find(problem);
  if (!found || !*found || !(*found)->isDepthwise())
    return; // what cannot be served is refused by the convolutions
  const Convolution &conv = **found;
  int64_t lanes = machine.isa.f32Lanes, blocks = (conv.groups + lanes - 1) / lanes;
  int64_t batch = int64_t(Product::of(conv.batch).typical(4));
  int64_t rows = int64_t(Product::of(conv.outRows).typical()),
          columns = int64_t(Product::of(conv.outColumns).typical());
  int64_t window = conv.rows.size * conv.columns.size;
  for (ImageLayout layout : {ImageLayout::Blocked, ImageLayout::ChannelsLast, ImageLayout::Plain}) {
    Schedule schedule = Schedule::rowMajor("", problem.problem());
    setImageLayouts(problem, conv.fusion, conv.input, conv.spatial, layout, layout, lanes,
                    schedule);
    if (!conv.fusion.leafAccesses(problem, schedule.inputLayouts))
      return sink.refuse("depthwise",
                         "an operand after conv whose extents are not known to broadcast");
    bool plain = layout == ImageLayout::Plain;
    DepthwisePlan plan = chooseDepthwiseTile(conv, machine, layout);
    int64_t planes = batch * (plain ? conv.groups : layout == ImageLayout::Blocked ? blocks : 1);
    int64_t wanted = machine.threads == 1 ? 1 : (8 * machine.threads + planes - 1) / planes;
    plan.chunkRows = std::max<int64_t>(1, (rows + wanted - 1) / wanted);
    schedule.algorithm = plan.text();
    if (!plain)
      schedule.packedBytes[uint32_t(problem.inputOf(conv.weight))] =
          4 * uint64_t(blocks * window * lanes);
    schedule.scratchBytes = 4 * uint64_t(plan.tile * plan.blocks * lanes);
    double vectors = plain ? std::ceil(double(columns) / double(lanes)) * double(conv.groups)
                           : double(columns) * double(blocks);
    // Plain images load every input of a window anew, by shuffles or gathers where strided.
    double load = conv.columns.stride == 1 ? 1.8 : conv.columns.stride == 2 ? 4 : 20;
    double perVector = double(window) * (plain ? load : 1.0) + 0.6 + 0.6 * conv.fusion.cost;
    constexpr double kCyclesPerMicro = 3600;
    double threads = double(std::min<int64_t>(
        machine.threads, planes * ((rows + plan.chunkRows - 1) / plan.chunkRows)));
    double cycles = double(batch * rows) * vectors * perVector;
    double bytes = elementBytes(problem.value(conv.input).type) * double(batch * conv.groups) *
                   (double(rows * columns) +
                    Product::of(conv.inRows).typical() * Product::of(conv.inColumns).typical());
    schedule.estimateMicros =
        std::max(cycles / kCyclesPerMicro / threads, bytes / 30000 / threads) + 2;
    sink.offer(std::move(schedule));
  }
}

void packDepthwise(const ProblemReader &problem, const Machine &machine, const Schedule &,
                   uint32_t input, const void *constant, void *packed) {
  auto found = Convolution::find(problem);
  if (!found || !*found || uint32_t(problem.inputOf((*found)->weight)) != input)
    return;
  const Convolution &conv = **found;
  const FloatReader from(problem.value(conv.weight).type, constant);
  float *to = static_cast<float *>(packed);
  int64_t lanes = machine.isa.f32Lanes, window = conv.rows.size * conv.columns.size;
  for (int64_t block = 0; block < conv.groups; block += lanes)
    for (int64_t place = 0; place < window; ++place)
      for (int64_t lane = 0; lane < lanes; ++lane)
        *to++ = block + lane < conv.groups ? from[(block + lane) * window + place] : 0.0f;
}

} // namespace dovetail::codegen
