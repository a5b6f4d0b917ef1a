// SPDX-License-Identifier: Apache-2.0
//
// Offers schedules of convolutions, one or two for each pair of layouts that suits the problem, and
// packs weights: group, panel of output channels, phase (of transposed ones), block of input
// channels, window row, window column, channel of the block, output channel of the panel.
#include <algorithm>
#include <cmath>

#include "codegen/schedule/Families.h"
#include "codegen/schedule/contraction/Convolution.h"

namespace dovetail::codegen {
namespace {

constexpr int64_t kTypical = 64;
constexpr const char *kFamily = "conv";

struct Image {
  int64_t batch, rows, columns;
};

/// What the chosen split costs in cycles on the busiest thread.
struct Cost {
  double cycles = 0;
  ConvolutionPlan plan;
};

class ConvolutionChooser {
public:
  ConvolutionChooser(const Convolution &conv, const Machine &machine,
                     ConvolutionTasks tasks = ConvolutionTasks::Any)
      : conv(conv), machine(machine), tasks(tasks) {
    image = {int64_t(Product::of(conv.batch).typical(4)),
             int64_t(Product::of(conv.outRows).typical(kTypical)),
             int64_t(Product::of(conv.outColumns).typical(kTypical))};
    image.rows = (image.rows + conv.rows.outStep() - 1) / conv.rows.outStep();
    image.columns = (image.columns + conv.columns.outStep() - 1) / conv.columns.outStep();
    staticImage = isStaticExtent(conv.outRows) && isStaticExtent(conv.outColumns);
  }

  Cost best(ConvolutionPlan plan) const {
    Image seen = image;
    if (plan.flat)
      seen = {image.batch, 1, image.rows * image.columns};
    bool knownColumns = plan.flat ? staticImage : isStaticExtent(conv.outColumns);
    Cost best;
    best.cycles = INFINITY;
    for (const auto &[tile, tileRows] : tiles(plan, seen, knownColumns)) {
      plan.tile = tile;
      plan.tileRows = tileRows;
      ConvolutionSizes sizes(conv, plan, machine);
      for (int64_t chunkRows :
           chunkChoices(tileRows, isStaticExtent(conv.outRows) || plan.flat ? seen.rows : 8))
        for (int64_t chunkColumns : columnChoices(plan, seen, knownColumns))
          for (int64_t parts : {int64_t(1), int64_t(machine.threads), sizes.panels}) {
            if (parts > sizes.panels || (parts > 1 && tasks == ConvolutionTasks::WholeRows))
              continue;
            plan.chunkRows = chunkRows;
            plan.chunkColumns = chunkColumns;
            plan.panelsPerTask = (sizes.panels + parts - 1) / parts;
            double cycles = cost(plan, seen);
            if (cycles < best.cycles)
              best = {cycles, plan};
          }
    }
    return best;
  }

private:
  std::vector<std::pair<RegisterTile, int64_t>> tiles(const ConvolutionPlan &plan,
                                                      const Image &seen, bool knownColumns) const {
    std::vector<std::pair<RegisterTile, int64_t>> choices;
    int64_t vectors = (conv.outPerGroup + machine.isa.f32Lanes - 1) / machine.isa.f32Lanes;
    // Every number of columns that a tile can have gets code of its own where it is not known.
    int64_t most = knownColumns ? 28 : 8;
    if (plan.direct && plan.in == ImageLayout::ChannelsLast)
      most = std::min<int64_t>(
          most, rowsWithoutConflict(conv.groups * conv.inPerGroup * conv.columns.inStep()));
    for (unsigned v = 1; v <= 4 && v <= vectors; ++v)
      for (unsigned r = 1; r <= std::min(most, seen.columns); ++r) {
        if (!fitsRegisters(machine.isa, {r, v}))
          continue;
        // Only sizes with which no smaller one needs as few tiles.
        if (r > 1 && (seen.columns + r - 1) / r == (seen.columns + r - 2) / (r - 1))
          continue;
        choices.push_back({{r, v}, 1});
      }
    if (knownColumns && !plan.flat && !conv.transposed && plan.out != ImageLayout::Plain &&
        isStaticExtent(conv.outRows))
      for (unsigned v = 1; v <= 4 && v <= vectors; ++v)
        for (int64_t rows = 2; rows <= seen.rows && rows * seen.columns <= most; ++rows)
          if (fitsRegisters(machine.isa, {unsigned(rows * seen.columns), v}))
            choices.push_back({{unsigned(rows * seen.columns), v}, rows});
    return choices;
  }

  static std::vector<int64_t> chunkChoices(int64_t step, int64_t total) {
    std::vector<int64_t> choices;
    for (int64_t parts : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 512}) {
      int64_t chunk = ((total + parts - 1) / parts + step - 1) / step * step;
      if (choices.empty() || choices.back() != chunk)
        choices.push_back(chunk);
    }
    return choices;
  }

  std::vector<int64_t> columnChoices(const ConvolutionPlan &plan, const Image &seen,
                                     bool knownColumns) const {
    if (plan.tileRows > 1 || tasks == ConvolutionTasks::WholeRows)
      return {seen.columns};
    if (knownColumns && !plan.flat && seen.columns <= 128)
      return {seen.columns};
    return chunkChoices(plan.tile.rows, knownColumns ? seen.columns : 64);
  }

  double cost(const ConvolutionPlan &plan, const Image &seen) const {
    ConvolutionSizes sizes(conv, plan, machine);
    double patchBytes = 4.0 * double(sizes.patchElements);
    double panelBytes = 4.0 * double(sizes.depth * plan.tile.vectors * sizes.lanes);
    double l2 = double(machine.l2Bytes);
    if (patchBytes > l2 * 0.75 && plan.chunkRows > plan.tileRows)
      return INFINITY;
    int64_t rowChunks = (seen.rows + plan.chunkRows - 1) / plan.chunkRows;
    int64_t columnChunks = (seen.columns + plan.chunkColumns - 1) / plan.chunkColumns;
    int64_t parts = (sizes.panels + plan.panelsPerTask - 1) / plan.panelsPerTask;
    double tasks = double(seen.batch * conv.groups * rowChunks * columnChunks * parts);
    double phases = double(conv.rows.outStep() * conv.columns.outStep());
    double finish = 3 + 0.6 * conv.fusion.cost + (plan.out == ImageLayout::Plain ? 4 : 0);
    if (conv.transposed && plan.out == ImageLayout::Plain)
      finish += 12; // outputs of a phase are not neighbours
    finish *= phases;
    double steps = double(sizes.depth);
    // A window row of a panel is read again for each tile; from beyond L2 that is slow.
    double perTile = panelBytes > l2 * 0.75 ? panelBytes / 20 : 0;
    double computed, tilesPerPanel;
    if (plan.tileRows > 1) {
      tilesPerPanel = double((seen.rows + plan.tileRows - 1) / plan.tileRows);
      computed = tiledCycles(machine.isa, plan.tile, seen.rows * seen.columns, sizes.vectors, steps,
                             finish);
    } else {
      tilesPerPanel = double(seen.rows) * std::ceil(double(seen.columns) / plan.tile.rows);
      computed = double(seen.rows) *
                 tiledCycles(machine.isa, plan.tile, seen.columns, sizes.vectors, steps, finish);
    }
    computed += perTile * tilesPerPanel * double(sizes.panels);
    computed *= double(seen.batch * conv.groups);
    double copied = plan.direct ? 0
                                : tasks * double(sizes.patchElements) / double(sizes.lanes) *
                                      (plan.in == ImageLayout::Plain ? 6.0 : 2.5);
    double inBytes = 4.0 * double(conv.inPerGroup) * double(sizes.patchRows * sizes.patchColumns);
    // The chunk of a direct kernel is read again for each panel.
    if (plan.direct && inBytes > l2 / 2)
      computed += double(seen.batch * conv.groups * rowChunks * columnChunks) *
                  double(sizes.panels - 1) * inBytes / 20;
    double weights = tasks / double(parts) * 4.0 * double(sizes.groupElements) / 40;
    double perTask = (computed + copied + weights) / tasks + 150;
    double threads = machine.threads;
    return std::ceil(tasks / threads) * perTask;
  }

  const Convolution &conv;
  const Machine &machine;
  ConvolutionTasks tasks;
  Image image;
  bool staticImage;
};

} // namespace

double completePlan(const Convolution &conv, const Machine &machine, ConvolutionPlan &plan,
                    ConvolutionTasks tasks) {
  Cost best = ConvolutionChooser(conv, machine, tasks).best(plan);
  plan = best.plan;
  return best.cycles;
}

void proposeConvolution(const ProblemReader &problem, const Machine &machine,
                        const ScheduleSink &sink) {
  auto found = Convolution::find(problem);
  if (!found)
    return;
  if (!*found)
    return sink.refuse(kFamily, found->error().message);
  const Convolution &conv = **found;
  if (conv.isDepthwise())
    return; // the depthwise family's
  int64_t lanes = machine.isa.f32Lanes;
  bool blockedIn = conv.inPerGroup >= lanes && (conv.groups == 1 || conv.inPerGroup % lanes == 0);
  bool blockedOut = conv.groups == 1 || conv.outPerGroup % lanes == 0;
  using L = ImageLayout;
  std::vector<std::pair<L, L>> pairs;
  if (blockedIn && blockedOut)
    pairs.push_back({L::Blocked, L::Blocked});
  else if (blockedOut)
    pairs.push_back({L::Plain, L::Blocked});
  pairs.push_back({L::ChannelsLast, L::ChannelsLast});
  if (conv.inPerGroup < lanes && conv.groups == 1)
    pairs.push_back({L::Plain, L::ChannelsLast});
  pairs.push_back({L::Plain, L::Plain});

  ConvolutionChooser chooser(conv, machine);
  for (auto [in, out] : pairs) {
    Schedule schedule = Schedule::rowMajor("", problem.problem());
    setImageLayouts(problem, conv.fusion, conv.input, conv.spatial, in, out, lanes, schedule);
    auto leaves = conv.fusion.leafAccesses(problem, schedule.inputLayouts);
    if (!leaves) {
      sink.refuse(kFamily,
                  "an operand after the convolution whose extents are not known to broadcast");
      return;
    }
    ConvolutionPlan plan;
    plan.in = in;
    plan.out = out;
    // Patches widen 16-bit floats on the way.
    plan.direct = !conv.isPadded() && problem.value(conv.input).type == DVT_F32;
    // Flat: rows and columns of image, output and all operands run on as one.
    plan.flat = plan.direct && conv.isPointwise() && conv.spatial == 2 &&
                std::all_of(leaves->begin(), leaves->end(), [&](const Access &access) {
                  return access.collapses(2, 3, conv.fusion.extents);
                });
    Cost best = chooser.best(plan);
    if (plan.direct && !conv.isPointwise()) {
      plan.direct = plan.flat = false;
      Cost copied = chooser.best(plan);
      if (copied.cycles < best.cycles)
        best = copied;
    }
    ConvolutionSizes sizes(conv, best.plan, machine);
    schedule.algorithm = best.plan.text();
    schedule.packedBytes[uint32_t(problem.inputOf(conv.weight))] =
        4 * uint64_t(conv.groups * sizes.groupElements);
    schedule.scratchBytes = sizes.scratchBytes();
    constexpr double kCyclesPerMicro = 3500;
    schedule.estimateMicros = best.cycles / kCyclesPerMicro + 2;
    sink.offer(std::move(schedule));
  }
}

/// Channels that are packed together: as many floats as a cache line holds.
static constexpr int64_t kPackedChannels = 16;

void packConvolution(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
                     uint32_t input, const void *constant, void *packed) {
  auto found = Convolution::find(problem);
  if (!found || !*found || uint32_t(problem.inputOf((*found)->weight)) != input)
    return;
  const Convolution &conv = **found;
  ConvolutionPlan plan = ConvolutionPlan::read(schedule);
  ConvolutionSizes sizes(conv, plan, machine);
  const FloatReader from(problem.value(conv.weight).type, constant);
  float *to = static_cast<float *>(packed);
  int64_t rows = conv.rows.size, columns = conv.columns.size;
  auto weight = [&](int64_t group, int64_t output, int64_t channel, int64_t row, int64_t column) {
    int64_t outer =
        conv.transposed ? group * conv.inPerGroup + channel : group * conv.outPerGroup + output;
    int64_t inner = conv.transposed ? output : channel;
    return from[((outer * (conv.transposed ? conv.outPerGroup : conv.inPerGroup) + inner) * rows +
                 row) *
                    columns +
                column];
  };
  auto packPhase = [&](int64_t group, int64_t firstOutput, int64_t width,
                       const Convolution::Window::Phase &y, const Convolution::Window::Phase &x) {
    int64_t real = std::clamp<int64_t>(conv.outPerGroup - firstOutput, 0, width);
    for (int64_t block = 0; block < conv.inPerGroup; block += sizes.channelBlock)
      for (int64_t i = 0; i < y.count; ++i)
        for (int64_t j = 0; j < x.count; ++j) {
          int64_t row = y.weight + i * y.weightStep, column = x.weight + j * x.weightStep;
          int64_t end = std::min(block + sizes.channelBlock, conv.inPerGroup);
          // A few channels at a time: they are read one after the other, and what is written stays
          // in the cache until all outputs are there.
          for (int64_t first = block; first < end; first += kPackedChannels) {
            int64_t channels = std::min(kPackedChannels, end - first);
            for (int64_t output = 0; output < width; ++output)
              for (int64_t channel = 0; channel < channels; ++channel)
                to[channel * width + output] = output < real ? weight(group, firstOutput + output,
                                                                      first + channel, row, column)
                                                             : 0.0f;
            to += channels * width;
          }
        }
  };
  for (int64_t group = 0; group < conv.groups; ++group)
    for (int64_t vector = 0; vector < sizes.vectors; vector += plan.tile.vectors) {
      int64_t width = std::min<int64_t>(plan.tile.vectors, sizes.vectors - vector) * sizes.lanes;
      for (const auto &y : conv.rows.phases())
        for (const auto &x : conv.columns.phases())
          packPhase(group, vector * sizes.lanes, width, y, x);
    }
}

} // namespace dovetail::codegen
