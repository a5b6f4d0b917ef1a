// SPDX-License-Identifier: Apache-2.0
//
// Offers schedules of Winograd convolutions, the better one for each layout and size of tile, and
// transforms weights as it packs them: panel of output channels, place, input channel, output
// channel of the panel.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "codegen/schedule/Families.h"
#include "codegen/schedule/contraction/Winograd.h"

namespace dovetail::codegen {

constexpr const char *kFamily = "winograd";

WinogradPlan WinogradPlan::read(const Schedule &schedule) {
  WinogradPlan plan;
  std::string_view layout = schedule.parameter("l");
  plan.layout = layout.empty() ? ImageLayout::Blocked : ImageLayout(layout[0]);
  plan.size = schedule.integerParameter("f", 4);
  plan.chunk = schedule.integerParameter("n", 1);
  plan.shared = schedule.integerParameter("s", 0) != 0;
  std::sscanf(std::string(schedule.parameter("t")).c_str(), "%ux%u", &plan.tile.rows,
              &plan.tile.vectors);
  return plan;
}

std::string WinogradPlan::text() const {
  return fmt::format("winograd:f{}:l{}:t{}x{}:n{}:s{}", size, char(layout), tile.rows, tile.vectors,
                     chunk, int(shared));
}

WinogradSizes::WinogradSizes(const Convolution &conv, const WinogradPlan &plan,
                             const Machine &machine) {
  lanes = machine.isa.f32Lanes;
  blocks = (conv.inPerGroup + lanes - 1) / lanes;
  vectors = (conv.outPerGroup + lanes - 1) / lanes;
  panels = (vectors + plan.tile.vectors - 1) / plan.tile.vectors;
  // The extra vector keeps places from meeting in the same sets of the cache.
  placePitch = blocks * plan.chunk * lanes + lanes;
  imageElements = plan.places() * placePitch;
  sumElements = plan.places() * plan.chunk * plan.tile.vectors * lanes;
  outputElements = plan.size * plan.size * plan.tile.vectors * lanes;
  weightElements = plan.places() * conv.inPerGroup * vectors * lanes;
}

uint64_t WinogradSizes::scratchBytes(const WinogradPlan &plan) const {
  return 4 * uint64_t((plan.shared ? 0 : imageElements) + sumElements + outputElements);
}

int64_t chunksOf(const Convolution &conv, const WinogradPlan &plan) {
  int64_t down = (conv.outRows.value + plan.size - 1) / plan.size,
          across = (conv.outColumns.value + plan.size - 1) / plan.size;
  return (conv.batch.value * down * across + plan.chunk - 1) / plan.chunk;
}

std::string refuseWinograd(const Convolution &conv, const Machine &machine) {
  const Convolution::Window &y = conv.rows, &x = conv.columns;
  if (conv.transposed || conv.spatial != 2 || y.size != 3 || x.size != 3)
    return fmt::format("Winograd is for conv with windows of 3x3, not {}x{}{}", y.size, x.size,
                       conv.transposed ? " of conv_transpose" : "");
  if (y.stride != 1 || x.stride != 1 || y.dilation != 1 || x.dilation != 1)
    return fmt::format("Winograd is for stride 1 and dilation 1, not {}x{} and {}x{}", y.stride,
                       x.stride, y.dilation, x.dilation);
  if (conv.groups != 1)
    return fmt::format("Winograd is for conv in one group, not {}", conv.groups);
  int64_t least = machine.isa.f32Lanes;
  if (conv.inPerGroup < least || conv.outPerGroup < least)
    return fmt::format("Winograd pays from {} channels on; these are {} to {}", least,
                       conv.inPerGroup, conv.outPerGroup);
  return {};
}

namespace {

class WinogradChooser {
public:
  WinogradChooser(const Convolution &conv, const Machine &machine)
      : conv(conv), machine(machine), batch(int64_t(Product::of(conv.batch).typical(4))),
        rows(int64_t(Product::of(conv.outRows).typical())),
        columns(int64_t(Product::of(conv.outColumns).typical())),
        isStatic(isStaticExtent(conv.batch) && isStaticExtent(conv.outRows) &&
                 isStaticExtent(conv.outColumns)) {}

  struct Choice {
    double cycles = INFINITY;
    WinogradPlan plan;
  };

  Choice best(WinogradPlan plan) const {
    int64_t tiles = tilesOf(plan);
    Choice best;
    for (bool shared : {false, true}) {
      if (shared && !isStatic)
        continue;
      for (int64_t chunks = 1; chunks <= std::max<int64_t>(1, tiles); ++chunks) {
        plan.shared = shared;
        plan.chunk = std::max<int64_t>(1, (tiles + chunks - 1) / chunks);
        if ((tiles + plan.chunk - 1) / plan.chunk != std::max<int64_t>(1, chunks))
          continue;
        plan.tile = {1, 1};
        WinogradSizes least(conv, plan, machine);
        if (4 * uint64_t(plan.shared ? least.sumElements
                                     : least.imageElements + least.sumElements) >
            machine.l2Bytes)
          continue;
        if (plan.chunk < 4 && tiles >= 4 && best.cycles < INFINITY)
          break;
        std::vector<RegisterTile> ranked =
            rankTiles(machine.isa, plan.chunk, least.vectors, double(conv.inPerGroup), 2,
                      isStatic ? 28u : 8u);
        for (size_t i = 0; i < std::min<size_t>(ranked.size(), 4); ++i) {
          plan.tile = ranked[i];
          double cycles = cost(plan);
          if (cycles < best.cycles)
            best = {cycles, plan};
        }
      }
    }
    return best;
  }

private:
  int64_t tilesOf(const WinogradPlan &plan) const {
    return batch * ((rows + plan.size - 1) / plan.size) * ((columns + plan.size - 1) / plan.size);
  }

  double cost(const WinogradPlan &plan) const {
    WinogradSizes sizes(conv, plan, machine);
    uint64_t bytes = sizes.scratchBytes(plan) + (plan.shared ? 4 * sizes.imageElements / 2 : 0);
    if (double(bytes) > 0.8 * double(machine.l2Bytes) && plan.chunk > 4)
      return INFINITY;
    double tiles = double(tilesOf(plan));
    double chunks = std::ceil(tiles / double(plan.chunk));
    double places = double(plan.places()), threads = machine.threads;
    // Measured on Zen 4: loads, adds and stores of a transform, in vectors.
    double transform = places * 5.5;
    double back = places * 3.5 + double(plan.size * plan.size) * (4 + 0.6 * conv.fusion.cost);
    double product = places * tiledCycles(machine.isa, plan.tile, plan.chunk, sizes.vectors,
                                          double(conv.inPerGroup), 2);
    // A panel's weights at a place are read again for each register tile.
    double panelBytes = 4.0 * double(conv.inPerGroup * plan.tile.vectors * sizes.lanes);
    if (panelBytes > 0.75 * double(machine.l1Bytes))
      product += places * double(sizes.panels) * panelBytes / 64 *
                 std::ceil(double(plan.chunk) / plan.tile.rows);
    // Weights come from beyond the second-level cache once for each chunk, or once in all.
    double weightBytes = 4 * double(sizes.weightElements);
    double perByte = weightBytes < double(machine.l2Bytes) / 2   ? 1.0 / 64
                     : weightBytes < double(machine.l3Bytes) / 2 ? 1.0 / 12
                                                                 : 1.0 / 4;
    double chunkTransform = transform * double(plan.chunk * sizes.blocks);
    double chunkBack = back * double(plan.chunk * sizes.vectors);
    if (!plan.shared) {
      double perTask = chunkTransform + chunkBack + std::max(product, weightBytes * perByte) + 200;
      return std::ceil(chunks / threads) * perTask;
    }
    double tasks = chunks * double(sizes.panels);
    double perTask =
        (chunkBack + std::max(product, weightBytes * perByte)) / double(sizes.panels) + 200;
    // Another thread's cache has half of what is read.
    double imageBytes = 4 * double(sizes.imageElements);
    perTask += imageBytes / 40 * (double(sizes.panels) > threads ? 0.5 : 1);
    return std::ceil(tasks / threads) * perTask +
           chunks * (chunkTransform / std::min(threads, chunks * double(sizes.blocks)) +
                     imageBytes / 20) +
           3000;
  }

  const Convolution &conv;
  const Machine &machine;
  int64_t batch, rows, columns;
  bool isStatic;
};

/// The weights of one output tile's transform: rows of a window become so many numbers.
void transformLine(int64_t size, const double (&w)[3], double *to) {
  if (size == 2) {
    to[0] = w[0];
    to[1] = (w[0] + w[1] + w[2]) / 2;
    to[2] = (w[0] - w[1] + w[2]) / 2;
    to[3] = w[2];
    return;
  }
  constexpr double p = kWinogradInner, q = kWinogradOuter;
  constexpr double inner = 2 * p * p * (p * p - q * q), outer = 2 * q * q * (q * q - p * p);
  to[0] = w[0] / (p * p * q * q);
  to[1] = (w[0] + p * w[1] + p * p * w[2]) / inner;
  to[2] = (w[0] - p * w[1] + p * p * w[2]) / inner;
  to[3] = (w[0] + q * w[1] + q * q * w[2]) / outer;
  to[4] = (w[0] - q * w[1] + q * q * w[2]) / outer;
  to[5] = w[2];
}

} // namespace

void proposeWinograd(const ProblemReader &problem, const Machine &machine,
                     const ScheduleSink &sink) {
  auto found = Convolution::find(problem);
  if (!found || !*found)
    return; // what cannot be read is refused by the convolutions
  const Convolution &conv = **found;
  if (std::string why = refuseWinograd(conv, machine); !why.empty())
    return sink.refuse(kFamily, why);
  int64_t lanes = machine.isa.f32Lanes;
  WinogradChooser chooser(conv, machine);
  WinogradChooser::Choice choices[2];
  for (int i : {0, 1}) {
    WinogradPlan plan;
    plan.size = i ? 2 : 4;
    choices[i] = chooser.best(plan);
  }
  for (WinogradChooser::Choice &choice : choices) {
    // Small tiles multiply more and move less; clear cases need no trial.
    constexpr double kHopeless = 1.6;
    double least = std::min(choices[0].cycles, choices[1].cycles);
    if (!(choice.cycles < INFINITY) || choice.cycles > kHopeless * least)
      continue;
    for (ImageLayout layout : {ImageLayout::Blocked, ImageLayout::ChannelsLast}) {
      choice.plan.layout = layout;
      Schedule schedule = Schedule::rowMajor(choice.plan.text(), problem.problem());
      setImageLayouts(problem, conv.fusion, conv.input, conv.spatial, layout, layout, lanes,
                      schedule);
      if (!conv.fusion.leafAccesses(problem, schedule.inputLayouts))
        return sink.refuse(kFamily,
                           "an operand after conv whose extents are not known to broadcast");
      WinogradSizes sizes(conv, choice.plan, machine);
      schedule.packedBytes[uint32_t(problem.inputOf(conv.weight))] =
          4 * uint64_t(sizes.weightElements);
      schedule.scratchBytes = sizes.scratchBytes(choice.plan);
      if (choice.plan.shared)
        schedule.workspaceBytes = 4 * uint64_t(sizes.imageElements) * chunksOf(conv, choice.plan);
      constexpr double kCyclesPerMicro = 3500;
      schedule.estimateMicros = choice.cycles / kCyclesPerMicro + 2;
      schedule.numerics = "f32-winograd";
      sink.offer(std::move(schedule));
    }
  }
}

void packWinograd(const ProblemReader &problem, const Machine &machine, const Schedule &schedule,
                  uint32_t input, const void *constant, void *packed) {
  auto found = Convolution::find(problem);
  if (!found || !*found || uint32_t(problem.inputOf((*found)->weight)) != input)
    return;
  const Convolution &conv = **found;
  WinogradPlan plan = WinogradPlan::read(schedule);
  WinogradSizes sizes(conv, plan, machine);
  const FloatReader from(problem.value(conv.weight).type, constant);
  float *to = static_cast<float *>(packed);
  const int64_t reach = plan.reach(), depth = conv.inPerGroup;
  double columns[6][3], line[6];
  for (int64_t vector = 0; vector < sizes.vectors; vector += plan.tile.vectors) {
    int64_t width = std::min<int64_t>(plan.tile.vectors, sizes.vectors - vector) * sizes.lanes;
    int64_t first = vector * sizes.lanes;
    // Neighbours in what is written one after the other; what is read stays in the cache.
    for (int64_t channel = 0; channel < depth; ++channel)
      for (int64_t j = 0; j < width; ++j) {
        float *place = to + channel * width + j;
        bool real = first + j < conv.outPerGroup;
        int64_t window = ((first + j) * depth + channel) * 9;
        for (int64_t x = 0; x < 3; ++x) {
          double column[3] = {0, 0, 0};
          for (int64_t y = 0; y < 3 && real; ++y)
            column[y] = double(from[window + y * 3 + x]);
          transformLine(plan.size, column, line);
          for (int64_t y = 0; y < reach; ++y)
            columns[y][x] = line[y];
        }
        for (int64_t y = 0; y < reach; ++y) {
          transformLine(plan.size, columns[y], line);
          for (int64_t x = 0; x < reach; ++x, place += depth * width)
            *place = float(line[x]);
        }
      }
    to += plan.places() * depth * width;
  }
}

} // namespace dovetail::codegen
