// SPDX-License-Identifier: Apache-2.0
//
// Reads conv into the form of the header.
#include "codegen/schedule/contraction/Convolution.h"

#include <charconv>
#include <cstdio>

namespace dovetail::codegen {

static Expected<Convolution> readConvolution(const ProblemReader &problem, Fusion fusion) {
  const dvt_op &op = problem.op(fusion.anchor);
  Convolution conv;
  if (!fusion.transposes.empty())
    return badInput("conv after a transpose in one kernel");
  auto image = ProblemReader::input(op, 0), weight = ProblemReader::input(op, 1);
  if (!image || !weight)
    return badInput("conv without image or weight");
  const dvt_value &x = problem.value(*image), &w = problem.value(*weight);
  if (x.rank != 3 && x.rank != 4)
    return badInput("conv on {} spatial dimensions; 1 and 2 are supported", int(x.rank) - 2);
  if (!problem.isConstant(*weight) || problem.inputOf(*weight) < 0 || !ProblemReader::isStatic(w) ||
      problem.useCount(*weight) != 1 || w.rank != x.rank)
    return badInput("conv whose weight is not a constant of its own");
  if (!isStaticExtent(x.extents[1]))
    return badInput("conv over {} channels; their number must be known", extentText(x.extents[1]));
  unsigned spatial = x.rank - 2;
  auto list = [&](const char *name, size_t count, int64_t otherwise) {
    auto found = ProblemReader::integers(op, name);
    return found && found->size() == count ? *found : std::vector<int64_t>(count, otherwise);
  };
  std::vector<int64_t> strides = list("strides", spatial, 1), dilations = list("dilations", spatial, 1),
                       pads = list("pads", 2 * spatial, 0);
  std::string_view automatic = ProblemReader::text(op, "auto_pad", "NOTSET");
  if (automatic != "NOTSET" && automatic != "VALID")
    return badInput("conv with auto_pad {}; explicit pads are supported", automatic);
  conv.spatial = spatial;
  conv.groups = ProblemReader::integer(op, "group", 1);
  conv.inPerGroup = w.extents[1].value;
  if (conv.groups < 1 || conv.inPerGroup < 1 || conv.groups * conv.inPerGroup != x.extents[1].value ||
      w.extents[0].value < 1 || w.extents[0].value % conv.groups)
    return badInput("conv of {} with weight {} in {} groups", valueText(x), valueText(w), conv.groups);
  conv.outPerGroup = w.extents[0].value / conv.groups;
  auto window = [&](unsigned d) {
    return Convolution::Window{w.extents[2 + d].value, strides[d], dilations[d], pads[d], pads[spatial + d]};
  };
  conv.columns = window(spatial - 1);
  if (spatial == 2)
    conv.rows = window(0);
  for (const Convolution::Window &v : {conv.rows, conv.columns})
    if (v.size < 1 || v.stride < 1 || v.dilation < 1 || v.padBegin < 0 || v.padEnd < 0)
      return badInput("conv with window {}, stride {}, dilation {}, pads {} and {}", v.size, v.stride, v.dilation,
                      v.padBegin, v.padEnd);
  conv.batch = x.extents[0];
  conv.inRows = spatial == 2 ? x.extents[2] : staticExtent(1);
  conv.inColumns = x.extents[spatial + 1];
  conv.outRows = spatial == 2 ? fusion.extents[2] : staticExtent(1);
  conv.outColumns = fusion.extents[spatial + 1];
  conv.input = *image;
  conv.weight = *weight;
  conv.bias = ProblemReader::input(op, 2);
  if (conv.bias && (problem.inputOf(*conv.bias) < 0 || problem.value(*conv.bias).rank != 1))
    return badInput("conv with a computed bias in one kernel");
  conv.fusion = std::move(fusion);
  return conv;
}

std::optional<Expected<Convolution>> Convolution::find(const ProblemReader &problem) {
  auto anchor = Fusion::findAnchor(problem, {"conv"});
  if (!anchor)
    return std::nullopt;
  auto fusion = Fusion::around(problem, *anchor);
  if (!fusion)
    return Expected<Convolution>(fusion.takeError());
  return readConvolution(problem, std::move(*fusion));
}

bool Convolution::isPointwise() const {
  return rows.size == 1 && columns.size == 1 && rows.stride == 1 && columns.stride == 1 && !isPadded();
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

void setImageLayouts(const ProblemReader &problem, const Fusion &fusion, uint32_t image, unsigned spatial,
                     ImageLayout in, ImageLayout out, int64_t block, Schedule &schedule) {
  std::string outText = imageLayoutText(out, spatial, block);
  for (std::string &text : schedule.outputLayouts)
    text = outText;
  for (uint32_t leaf : fusion.leaves) {
    const dvt_value &value = problem.value(leaf);
    bool full = value.rank == fusion.extents.size() && !problem.isConstant(leaf);
    for (unsigned d = 0; full && d < value.rank; ++d)
      full = sameExtent(value.extents[d], fusion.extents[d]);
    if (full)
      schedule.inputLayouts[uint32_t(problem.inputOf(leaf))] = outText;
  }
  schedule.inputLayouts[uint32_t(problem.inputOf(image))] = imageLayoutText(in, spatial, block);
}

ConvolutionPlan ConvolutionPlan::read(const Schedule &schedule) {
  ConvolutionPlan plan;
  std::string algorithm = schedule.algorithm;
  char in = 'p', out = 'p', source = 's';
  long long chunkRows = 1, chunkColumns = 1, panels = 1, tileRows = 1;
  size_t colon = algorithm.find(':');
  std::sscanf(algorithm.c_str() + colon + 1, "%c%c:%c:t%ux%u:r%lld:c%lldx%lld:g%lld", &in, &out, &source,
              &plan.tile.rows, &plan.tile.vectors, &tileRows, &chunkRows, &chunkColumns, &panels);
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
  return fmt::format("conv:{}{}:{}:t{}x{}:r{}:c{}x{}:g{}", char(in), char(out), flat ? 'f' : direct ? 'd' : 's',
                     tile.rows, tile.vectors, tileRows, chunkRows, chunkColumns, panelsPerTask);
}

ConvolutionSizes::ConvolutionSizes(const Convolution &conv, const ConvolutionPlan &plan, const Machine &machine) {
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
  patchRows = (plan.chunkRows - 1) * conv.rows.stride + conv.rows.reach();
  patchColumns = (plan.chunkColumns - 1) * conv.columns.stride + conv.columns.reach();
  patchBlock = patchRows * patchColumns * pitch;
  // Squares that are turned while copied may write past the last row.
  patchElements = plan.direct ? 0 : patchBlock * (fullBlocks + (restChannels ? 1 : 0)) + lanes * lanes;
  int64_t rows = plan.out == ImageLayout::Plain ? (plan.tile.rows + lanes - 1) / lanes * lanes : plan.tile.rows;
  tileElements = rows * plan.tile.vectors * lanes;
}

uint64_t ConvolutionSizes::scratchBytes() const {
  return 4 * uint64_t((patchElements + lanes - 1) / lanes * lanes + tileElements);
}

} // namespace dovetail::codegen
