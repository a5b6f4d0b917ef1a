// SPDX-License-Identifier: Apache-2.0
//
// Reads conv and conv_transpose into the form of the header.
#include "codegen/schedule/contraction/Convolution.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace dovetail::codegen {

static Expected<Convolution> readConvolution(const ProblemReader &problem, Fusion fusion) {
  const dvt_op &op = problem.op(fusion.anchor);
  Convolution conv;
  conv.transposed = std::string_view(op.name) == "conv_transpose";
  if (!fusion.transposes.empty())
    return badInput("{} after a transpose in one kernel", op.name);
  auto left = fusion.operand(problem, 0), right = fusion.operand(problem, fusion.rightPosition);
  if (!left || !right)
    return badInput("{} without image or weight", op.name);
  const uint32_t *image = &left->value, *weight = &right->value;
  const dvt_value &x = problem.value(*image), &w = problem.value(*weight);
  if (x.rank != 3 && x.rank != 4)
    return badInput("{} on {} spatial dimensions; 1 and 2 are supported", op.name, int(x.rank) - 2);
  if (!problem.isConstant(*weight) || problem.inputOf(*weight) < 0 || !ProblemReader::isStatic(w) ||
      problem.useCount(*weight) != 1 || w.rank != x.rank)
    return badInput("{} whose weight is not a constant of its own", op.name);
  if (!isStaticExtent(x.extents[1]))
    return badInput("{} over {} channels; their number must be known", op.name,
                    extentText(x.extents[1]));
  unsigned spatial = x.rank - 2;
  auto list = [&](const char *name, size_t count, int64_t otherwise) {
    auto found = ProblemReader::integers(op, name);
    return found && found->size() == count ? *found : std::vector<int64_t>(count, otherwise);
  };
  std::vector<int64_t> strides = list("strides", spatial, 1),
                       dilations = list("dilations", spatial, 1),
                       pads = list("pads", 2 * spatial, 0);
  std::string_view automatic = ProblemReader::text(op, "auto_pad", "NOTSET");
  if (automatic != "NOTSET" && automatic != "VALID")
    return badInput("{} with auto_pad {}; explicit pads are supported", op.name, automatic);
  conv.spatial = spatial;
  conv.groups = ProblemReader::integer(op, "group", 1);
  int64_t first = w.extents[0].value, second = w.extents[1].value;
  if (conv.groups < 1 || first < 1 || second < 1 || first % conv.groups ||
      (conv.transposed ? first : second * conv.groups) != x.extents[1].value)
    return badInput("{} of {} with weight {} in {} groups", op.name, valueText(x), valueText(w),
                    conv.groups);
  conv.inPerGroup = conv.transposed ? first / conv.groups : second;
  conv.outPerGroup = conv.transposed ? second : first / conv.groups;
  auto window = [&](unsigned d) {
    return Convolution::Window{w.extents[2 + d].value, strides[d],     dilations[d], pads[d],
                               pads[spatial + d],      conv.transposed};
  };
  conv.columns = window(spatial - 1);
  if (spatial == 2)
    conv.rows = window(0);
  for (const Convolution::Window &v : {conv.rows, conv.columns})
    if (v.size < 1 || v.stride < 1 || v.dilation < 1 || v.padBegin < 0 || v.padEnd < 0)
      return badInput("{} with window {}, stride {}, dilation {}, pads {} and {}", op.name, v.size,
                      v.stride, v.dilation, v.padBegin, v.padEnd);
  constexpr int64_t kMostPhases = 16; // each gets code of its own
  if (conv.transposed && conv.rows.stride * conv.columns.stride > kMostPhases)
    return badInput("conv_transpose with strides {} and {}", conv.rows.stride, conv.columns.stride);
  conv.batch = x.extents[0];
  conv.inRows = spatial == 2 ? x.extents[2] : staticExtent(1);
  conv.inColumns = x.extents[spatial + 1];
  conv.outRows = spatial == 2 ? fusion.extents[2] : staticExtent(1);
  conv.outColumns = fusion.extents[spatial + 1];
  conv.input = *image;
  conv.weight = *weight;
  if (fusion.rightPosition != 1)
    conv.bias = ProblemReader::input(op, 8);
  else if (std::string_view(op.name) != "conv_integer")
    conv.bias = ProblemReader::input(op, 2);
  if (conv.bias && ((problem.inputOf(*conv.bias) < 0 && !problem.isLiteral(*conv.bias)) ||
                    problem.value(*conv.bias).rank != 1))
    return badInput("{} with a computed bias in one kernel", op.name);
  conv.fusion = std::move(fusion);
  return conv;
}

std::optional<Expected<Convolution>> Convolution::find(const ProblemReader &problem,
                                                       Fusion::Takes takes) {
  auto anchor = takes == Fusion::Takes::Bytes
                    ? Fusion::findAnchor(problem, {"conv", "conv_integer", "q_linear_conv"})
                    : Fusion::findAnchor(problem, {"conv", "conv_transpose"});
  if (!anchor)
    return std::nullopt;
  auto fusion = Fusion::around(problem, *anchor, takes);
  if (!fusion)
    return Expected<Convolution>(fusion.takeError());
  return readConvolution(problem, std::move(*fusion));
}

std::vector<Convolution::Window::Phase> Convolution::Window::phases() const {
  if (!transposed)
    return {{size, 0, 1, -padBegin, dilation}};
  // Output o takes input (o + padBegin - k * dilation) / stride for each k for which that is a
  // whole number.
  std::vector<Phase> phases;
  for (int64_t phase = 0; phase < stride; ++phase) {
    int64_t step = stride / std::gcd(stride, dilation);
    Phase found{0, 0, step, 0, -dilation * step / stride};
    for (int64_t k = 0; k < std::min(size, step); ++k)
      if (int64_t from = phase + padBegin - k * dilation; from % stride == 0) {
        found.weight = k;
        found.in = from / stride;
        found.count = (size - k + step - 1) / step;
      }
    phases.push_back(found);
  }
  return phases;
}

int64_t Convolution::Window::firstInput() const {
  int64_t first = INT64_MAX;
  for (const Phase &phase : phases())
    if (phase.count)
      first = std::min({first, phase.in, phase.in + (phase.count - 1) * phase.inStride});
  return first;
}

int64_t Convolution::Window::lastInput() const {
  int64_t last = INT64_MIN;
  for (const Phase &phase : phases())
    if (phase.count)
      last = std::max({last, phase.in, phase.in + (phase.count - 1) * phase.inStride});
  return last;
}

bool Convolution::isPadded() const {
  // Without pads a transposed window that is no longer than its stride meets one input only. Output
  // padding makes positions past the last input.
  auto leaves = [&](const Window &window, const dvt_extent &in, const dvt_extent &out) {
    if (window.padBegin || window.padEnd)
      return true;
    if (!window.transposed)
      return false;
    bool fits = isStaticExtent(in) && isStaticExtent(out)
                    ? (out.value + window.stride - 1) / window.stride <= in.value
                    : window.size == 1 && window.stride == 1;
    return !fits || window.reach() > window.stride;
  };
  return leaves(rows, inRows, outRows) || leaves(columns, inColumns, outColumns);
}

bool Convolution::isPointwise() const {
  return !transposed && rows.size == 1 && columns.size == 1 && rows.stride == 1 &&
         columns.stride == 1 && !isPadded();
}

std::string imageLayoutText(ImageLayout layout, unsigned spatial, int64_t block) {
  switch (layout) {
  case ImageLayout::Plain:
    return "";
  case ImageLayout::Blocked:
    return (spatial == 2 ? "aBcd" : "aBc") + std::to_string(block) + "b";
  case ImageLayout::ChannelsLast:
    return spatial == 2 ? "acdb" : "acb";
  }
  return "";
}

void setLeafLayouts(const ProblemReader &problem, const Fusion &fusion, const std::string &text,
                    Schedule &schedule) {
  for (uint32_t leaf : fusion.leaves) {
    const dvt_value &value = problem.value(leaf);
    bool full = value.rank == fusion.extents.size() && !problem.isConstant(leaf);
    for (unsigned d = 0; full && d < value.rank; ++d)
      full = sameExtent(value.extents[d], fusion.extents[d]);
    if (full)
      schedule.inputLayouts[uint32_t(problem.inputOf(leaf))] = text;
  }
}

void setImageLayouts(const ProblemReader &problem, const Fusion &fusion, uint32_t image,
                     unsigned spatial, ImageLayout in, ImageLayout out, int64_t block,
                     Schedule &schedule) {
  std::string outText = imageLayoutText(out, spatial, block);
  for (std::string &text : schedule.outputLayouts)
    text = outText;
  setLeafLayouts(problem, fusion, outText, schedule);
  schedule.inputLayouts[uint32_t(problem.inputOf(image))] = imageLayoutText(in, spatial, block);
}

ConvolutionPlan ConvolutionPlan::read(const Schedule &schedule) {
  ConvolutionPlan plan;
  std::string algorithm = schedule.algorithm;
  char in = 'p', out = 'p', source = 's';
  long long chunkRows = 1, chunkColumns = 1, panels = 1, tileRows = 1;
  size_t colon = algorithm.find(':');
  std::sscanf(algorithm.c_str() + colon + 1, "%c%c:%c:t%ux%u:r%lld:c%lldx%lld:g%lld", &in, &out,
              &source, &plan.tile.rows, &plan.tile.vectors, &tileRows, &chunkRows, &chunkColumns,
              &panels);
  plan.in = ImageLayout(in);
  plan.out = ImageLayout(out);
  plan.direct = source != 's';
  plan.flat = source == 'f';
  plan.tileRows = tileRows;
  plan.chunkRows = chunkRows;
  plan.chunkColumns = chunkColumns;
  plan.panelsPerTask = panels;
  return plan;
}

std::string ConvolutionPlan::text() const {
  return fmt::format("conv:{}{}:{}:t{}x{}:r{}:c{}x{}:g{}", char(in), char(out),
                     flat     ? 'f'
                     : direct ? 'd'
                              : 's',
                     tile.rows, tile.vectors, tileRows, chunkRows, chunkColumns, panelsPerTask);
}

ConvolutionSizes::ConvolutionSizes(const Convolution &conv, const ConvolutionPlan &plan,
                                   const Machine &machine) {
  lanes = machine.isa.f32Lanes;
  bool whole = conv.inPerGroup < lanes || (plan.direct && plan.in != ImageLayout::Blocked);
  channelBlock = whole ? conv.inPerGroup : lanes;
  fullBlocks = conv.inPerGroup / channelBlock;
  restChannels = conv.inPerGroup % channelBlock;
  pitch = channelBlock;
  vectors = (conv.outPerGroup + lanes - 1) / lanes;
  panels = (vectors + plan.tile.vectors - 1) / plan.tile.vectors;
  depth = conv.inPerGroup * conv.rows.size * conv.columns.size;
  groupElements = depth * vectors * lanes;
  auto patch = [](const Convolution::Window &window, int64_t chunk) {
    return (chunk - 1) * window.inStep() + window.lastInput() - window.firstInput() + 1;
  };
  patchRows = patch(conv.rows, plan.chunkRows);
  patchColumns = patch(conv.columns, plan.chunkColumns);
  patchBlock = patchRows * patchColumns * pitch;
  // Squares that are turned while copied may write past the last row.
  patchElements =
      plan.direct ? 0 : patchBlock * (fullBlocks + (restChannels ? 1 : 0)) + lanes * lanes;
  int64_t rows = plan.out == ImageLayout::Plain ? (plan.tile.rows + lanes - 1) / lanes * lanes
                                                : plan.tile.rows;
  tileElements = rows * plan.tile.vectors * lanes;
}

uint64_t ConvolutionSizes::scratchBytes() const {
  return 4 * uint64_t((patchElements + lanes - 1) / lanes * lanes + tileElements);
}

} // namespace dovetail::codegen
