// SPDX-License-Identifier: Apache-2.0
//
// Emits convolutions as scheduled. A task computes a chunk of output pixels for some panels of
// output channels; where windows leave the image, or the image's layout does not suit, it copies
// the chunk's part of the image into a patch first.
#include "codegen/contraction/ConvolutionEmission.h"

#include "codegen/contraction/ConvolutionChunks.h"

#include "codegen/Families.h"

namespace dovetail::codegen {
namespace {

class ConvolutionEmitter {
public:
  ConvolutionEmitter(Emitter &e, const Convolution &conv, const ConvolutionPlan &plan,
                     const Schedule &schedule, const PatchMaker &patch)
      : e(e), conv(conv), plan(plan), sizes(conv, plan, e.machine), schedule(schedule),
        patch(patch) {
    Value rows = e.extentOf(conv.outRows), columns = e.extentOf(conv.outColumns);
    outRows = plan.flat ? e.index(1) : rows;
    outColumns = plan.flat ? e.mul(rows, columns) : columns;
    chunks.emplace(e, conv, plan, sizes, e.extentOf(conv.batch),
                   e.ceilDiv(outRows, conv.rows.outStep()),
                   e.ceilDiv(outColumns, conv.columns.outStep()));
  }

  Value taskCount() { return chunks->taskCount(); }

  void tasks(Value begin, Value end) {
    chunks->forTasks(begin, end, [&](const Chunk &task, Value from, Value to) {
      chunk = task;
      if (patch)
        patch(e, chunk, sizes);
      else if (!plan.direct)
        PatchEmission(e, conv, plan, sizes).copy(chunk);
      chunks->panels().forPanels(
          e, from, to, [&](Value panel, unsigned vectors) { this->panel(panel, vectors); });
    });
  }

private:
  using Chunk = ConvolutionChunks::Chunk;

  void panel(Value panel, unsigned vectors) {
    int64_t width = int64_t(plan.tile.vectors) * sizes.lanes;
    Value channel = e.mul(panel, width);
    Value weights =
        e.add(e.mul(chunk.group, sizes.groupElements), e.mul(panel, sizes.depth * width));
    Value right = e.advance(e.pointerOf(conv.weight), weights, 4);
    std::vector<Convolution::Window::Phase> rowPhases = conv.rows.phases(),
                                            columnPhases = conv.columns.phases();
    int64_t steps = 0; // of the reductions of the phases before
    for (rowPhase = 0; rowPhase < int64_t(rowPhases.size()); ++rowPhase)
      for (columnPhase = 0; columnPhase < int64_t(columnPhases.size()); ++columnPhase) {
        y = rowPhases[size_t(rowPhase)];
        x = columnPhases[size_t(columnPhase)];
        Value weights = e.advance(right, e.index(steps * vectors * sizes.lanes), 4);
        chunks->forTiles(
            chunk,
            [&](Value row, Value column, unsigned pixels) {
              tile(row, column, weights, vectors, pixels);
            },
            [&](Value row, Value column, Value count) {
              finish(row, column, count, channel, vectors);
            });
        steps += conv.inPerGroup * y.count * x.count;
      }
  }

  ConvolutionChunks::Left left() {
    if (!plan.direct)
      return chunks->patch();
    int64_t channels = conv.groups * conv.inPerGroup;
    Value columns = e.extentOf(conv.inColumns), area = e.mul(e.extentOf(conv.inRows), columns);
    Value base = e.pointerOf(conv.input);
    auto at = [&](int64_t stored, Value groupStride) {
      Value offset =
          e.add(e.mul(chunk.image, e.mul(area, stored)), e.mul(chunk.group, groupStride));
      return e.advance(base, offset, 4);
    };
    switch (plan.in) {
    case ImageLayout::Blocked: {
      int64_t block = sizes.lanes, stored = (channels + block - 1) / block * block;
      return {at(stored, e.mul(area, conv.inPerGroup)), e.mul(columns, block), e.index(block),
              e.mul(area, block), e.index(1)};
    }
    case ImageLayout::ChannelsLast:
      return {at(channels, e.index(conv.inPerGroup)), e.mul(columns, channels), e.index(channels),
              e.index(0), e.index(1)};
    case ImageLayout::Plain:
      return {at(channels, e.mul(area, conv.inPerGroup)), columns, e.index(1), e.index(0), area};
    }
    return {};
  }

  /// Sums `rows` pixels from (row, column) on and leaves them in the tile buffer.
  void tile(Value row, Value column, Value right, unsigned vectors, unsigned rows) {
    ConvolutionChunks::Left side = left();
    TileOperands operands = chunks->operands(chunk, side, y, x, row, column, right, vectors, rows);
    Values sums = emitTile(e, vectors, operands, chunks->nests(side, y, x, vectors));
    plan.out == ImageLayout::Plain ? keepTurned(sums, rows, vectors) : keep(sums);
  }

  void keep(const Values &sums) {
    Value buffer = chunks->tileBuffer();
    for (unsigned i = 0; i < sums.size(); ++i)
      e.storeVector(DVT_F32, sums[i], buffer, e.index(int64_t(i) * sizes.lanes));
  }

  /// Keeps a tile with pixels innermost: for each channel, the pixels rounded up to whole vectors.
  void keepTurned(const Values &sums, unsigned rows, unsigned vectors) {
    Value buffer = chunks->tileBuffer();
    int64_t lanes = sizes.lanes, pitch = turnedPitch();
    for (unsigned first = 0; first < rows; first += unsigned(lanes))
      for (unsigned v = 0; v < vectors; ++v) {
        Values square;
        for (unsigned r = first; r < first + lanes; ++r)
          square.push_back(r < rows ? sums[r * vectors + v] : e.constant(e.f32Vector(), 0));
        square = e.transpose(square);
        for (int64_t channel = 0; channel < lanes; ++channel)
          e.storeVector(DVT_F32, square[size_t(channel)], buffer,
                        e.index((v * lanes + channel) * pitch + first));
      }
  }

  int64_t turnedPitch() const {
    return (plan.tile.rows + sizes.lanes - 1) / sizes.lanes * sizes.lanes;
  }

  void finish(Value row, Value column, Value count, Value channel, unsigned vectors) {
    auto emit = [&](Value count) {
      plan.out == ImageLayout::Plain ? finishTurned(row, column, count, channel, vectors)
                                     : finishPixels(row, column, count, channel, vectors);
    };
    if (!conv.transposed)
      return emit(count);
    // The last positions of later phases may lie past the output.
    Value left =
        e.ceilDiv(e.maximum(e.sub(outColumns, outColumn(column)), 0), conv.columns.outStep());
    e.ifTrue(e.lt(outRow(row), outRows), [&] { emit(e.minimum(count, left)); });
  }

  Value outRow(Value position) { return e.add(e.mul(position, conv.rows.outStep()), rowPhase); }
  Value outColumn(Value position) {
    return e.add(e.mul(position, conv.columns.outStep()), columnPhase);
  }

  Values index(Value row, Value column, Value channel) {
    return convolutionIndex(conv, chunk.image, e.add(e.mul(chunk.group, conv.outPerGroup), channel),
                            outRow(row), outColumn(column));
  }

  void finishPixels(Value row, Value column, Value count, Value channel, unsigned vectors) {
    Values masks = chunks->panels().masks(e, conv.outPerGroup, channel, vectors);
    TileFinish finish(e, conv.fusion, layouts(1));
    Value buffer = chunks->tileBuffer();
    e.loop(e.index(0), count, 1, [&](Value r) {
      Values sums;
      for (unsigned v = 0; v < vectors; ++v)
        sums.push_back(
            e.loadVector(DVT_F32, buffer,
                         e.add(e.mul(r, int64_t(vectors) * sizes.lanes), int64_t(v) * sizes.lanes),
                         sizes.lanes));
      auto [atRow, atColumn] = chunks->pixelAt(row, column, r);
      finish.emit(index(atRow, atColumn, channel), sums, masks);
    });
  }

  void finishTurned(Value row, Value column, Value count, Value channel, unsigned vectors) {
    TileFinish::Layouts finishLayouts = layouts(int(conv.columnDimension()));
    finishLayouts.columnStep = conv.columns.outStep();
    TileFinish finish(e, conv.fusion, std::move(finishLayouts));
    Value buffer = chunks->tileBuffer();
    Value channels =
        e.minimum(e.sub(e.index(conv.outPerGroup), channel), int64_t(vectors) * sizes.lanes);
    unsigned pieces = unsigned(turnedPitch() / sizes.lanes);
    Values masks;
    for (unsigned piece = 0; piece < pieces; ++piece)
      masks.push_back(e.tailMask(e.sub(count, int64_t(piece) * sizes.lanes)));
    e.loop(e.index(0), channels, 1, [&](Value c) {
      Values sums;
      for (unsigned piece = 0; piece < pieces; ++piece)
        sums.push_back(e.loadVector(DVT_F32, buffer,
                                    e.add(e.mul(c, turnedPitch()), int64_t(piece) * sizes.lanes),
                                    sizes.lanes));
      finish.emit(index(row, column, e.add(channel, c)), sums, masks);
    });
  }

  TileFinish::Layouts layouts(int column) const {
    return convolutionFinish(e, conv, schedule, column);
  }

  Emitter &e;
  const Convolution &conv;
  const ConvolutionPlan &plan;
  ConvolutionSizes sizes;
  const Schedule &schedule;
  const PatchMaker &patch;
  Value outRows, outColumns;
  std::optional<ConvolutionChunks> chunks; ///< of positions
  Convolution::Window::Phase y, x;         ///< being emitted
  int64_t rowPhase = 0, columnPhase = 0;
  Chunk chunk; ///< of the current task
};

} // namespace

std::optional<Addend> convolutionBias(const Convolution &conv) {
  if (!conv.bias)
    return std::nullopt;
  Addend bias{*conv.bias, {}, 1};
  bias.access.strides.assign(conv.fusion.extents.size(), Product(0));
  bias.access.strides[1] = 1;
  return bias;
}

TileFinish::Layouts convolutionFinish(Emitter &e, const Convolution &conv, const Schedule &schedule,
                                      int column) {
  TileFinish::Layouts layouts;
  layouts.leaves = *conv.fusion.leafAccesses(e.problem, schedule.inputLayouts);
  for (uint32_t i = 0; i < e.problem.problem().output_count; ++i)
    layouts.outputs.push_back(*denseAccess(e.problem.value(e.problem.problem().outputs[i]),
                                           *Layout::parse(schedule.outputLayouts[i])));
  layouts.addend = convolutionBias(conv);
  layouts.column = column;
  return layouts;
}

Values convolutionIndex(const Convolution &conv, Value image, Value channel, Value row,
                        Value column) {
  Values index(conv.fusion.extents.size());
  index[0] = image;
  index[1] = channel;
  if (conv.rowDimension() >= 0)
    index[unsigned(conv.rowDimension())] = row;
  index[conv.columnDimension()] = column;
  return index;
}

void addConvolutionPhase(const Convolution &conv, const ConvolutionPlan &plan,
                         const Schedule &schedule, KernelModule &module, const PatchMaker &patch) {
  module.addPhase(
      [&](Emitter &e) { return ConvolutionEmitter(e, conv, plan, schedule, patch).taskCount(); },
      [&](Emitter &e, Value begin, Value end) {
        ConvolutionEmitter(e, conv, plan, schedule, patch).tasks(begin, end);
      });
}

Status emitConvolutionKernel(const ProblemReader &problem, const Machine &,
                             const Schedule &schedule, KernelModule &module) {
  auto found = Convolution::find(problem);
  if (!found || !*found)
    return internalError("schedule {} does not fit its problem", schedule.algorithm);
  addConvolutionPhase(**found, ConvolutionPlan::read(schedule), schedule, module, {});
  return Status::success();
}

} // namespace dovetail::codegen
