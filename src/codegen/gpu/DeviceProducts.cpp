// SPDX-License-Identifier: Apache-2.0
//
// Emits matrix products and convolutions for devices: tiled, on matrix units or without, or with a
// thread for each element.
#include <type_traits>

#include "codegen/Families.h"
#include "codegen/contraction/ConvolutionEmission.h"
#include "codegen/contraction/DepthwiseEmission.h"
#include "codegen/contraction/ProductRows.h"
#include "codegen/contraction/TileEmission.h"
#include "codegen/gpu/MatrixProduct.h"
#include "codegen/gpu/TiledProduct.h"
#include "codegen/schedule/contraction/Convolution.h"

namespace dovetail::codegen {
namespace {

Value ceilTiles(Emitter &e, Value extent, int64_t tile) { return e.ceilDiv(extent, tile); }

void emitBlockProduct(Emitter &e, const DeviceTile &tile, Value firstRow, Value firstColumn,
                      const TiledOperands &operands) {
  emitTiledProduct(e, tile, firstRow, firstColumn, operands);
}
void emitBlockProduct(Emitter &e, const MatrixTile &tile, Value firstRow, Value firstColumn,
                      const TiledOperands &operands) {
  emitMatrixProduct(e, tile, firstRow, firstColumn, operands);
}

bool isMultiple(const Product &product, int64_t of) { return product.constant % of == 0; }

/// Elements of a type that one load of 16 bytes takes at most.
int64_t mostVector(dvt_type type) { return 16 / elementBytes(type); }

class DeviceMatMul {
public:
  DeviceMatMul(Emitter &e, const MatMul &m)
      : e(e), m(m), rows(emitProduct(e, m.rows)), columns(e.extentOf(m.columns)),
        depth(e.extentOf(m.depth)), finishing(e, m.fusion, finishLayouts(e, m)) {}

  Value elements() { return e.mul(emitProduct(e, m.batches()), e.mul(rows, columns)); }
  template <typename Tile> Value blocks(const Tile &tile) {
    return e.mul(emitProduct(e, m.batches()),
                 e.mul(ceilTiles(e, rows, tile.rows), ceilTiles(e, columns, tile.columns)));
  }

  template <typename Tile> void block(const Tile &tile, Value number) {
    Value across = ceilTiles(e, columns, tile.columns), down = ceilTiles(e, rows, tile.rows);
    Value firstColumn = e.mul(e.rem(number, across), tile.columns);
    Value rest = e.div(number, across);
    Value firstRow = e.mul(e.rem(rest, down), tile.rows);
    enter(e.div(rest, down));
    auto left = [&](Value row, Value k) { return loadLeft(row, k); };
    auto right = [&](Value k, Value column) { return loadRight(k, column); };
    auto finish = [&](Value row, Value column, Value sum) { store(row, column, sum); };
    auto leftAddress = [&](Value row, Value k) { return address(m.left, leftStart, row, k); };
    auto rightAddress = [&](Value column, Value k) {
      return address(m.right, rightStart, column, k);
    };
    bits = std::is_same_v<Tile, MatrixTile>;
    bool leftAlongDepth = m.left.depth.is(1);
    emitBlockProduct(
        e, tile, firstRow, firstColumn,
        {rows,
         columns,
         depth,
         left,
         right,
         leftAlongDepth,
         rightAlongDepth(),
         finish,
         {vectorOf(m.left, leftAlongDepth, m.rows), leftAddress},
         {vectorOf(m.right, rightAlongDepth(), Product::of(m.columns)), rightAddress}});
  }

  void element(Value number) {
    Value column = e.rem(number, columns), rest = e.div(number, columns);
    Value row = e.rem(rest, rows);
    enter(e.div(rest, rows));
    Value sum = e.loop(e.index(0), depth, 1, Values{e.f32(0)}, [&](Value k, ValueRange sums) {
      return Values{e.fma(loadLeft(row, k), loadRight(k, column), sums[0])};
    })[0];
    store(row, column, e.splat(sum, 1));
  }

  // --- Few rows: the threads of a block share the depth of some columns ---

  Value slicedBlocks() {
    return e.mul(emitProduct(e, m.batches()), e.mul(rows, ceilTiles(e, columns, slicedColumns())));
  }

  void sliced(Value number) {
    Value across = ceilTiles(e, columns, slicedColumns());
    Value firstColumn = e.mul(e.rem(number, across), slicedColumns());
    Value rest = e.div(number, across), row = e.rem(rest, rows);
    enter(e.div(rest, rows));
    const int64_t slices = DeviceTile::kThreads / slicedColumns();
    Value thread = e.threadIndex(), slice, place;
    if (rightAlongDepth()) {
      slice = e.rem(thread, slices);
      place = e.div(thread, slices);
    } else {
      slice = e.div(thread, slicedColumns());
      place = e.rem(thread, slicedColumns());
    }
    Value column = e.add(firstColumn, place), inside = e.lt(column, columns);
    Value part = e.ifElse(
        inside,
        [&] {
          return e.loop(slice, depth, slices, Values{e.f32(0)}, [&](Value k, ValueRange sums) {
            return Values{e.fma(loadLeft(row, k), loadRight(k, column), sums[0])};
          });
        },
        [&] { return Values{e.f32(0)}; })[0];
    Value shared = e.sharedMemory(4 * uint64_t(DeviceTile::kThreads));
    e.store(DVT_F32, part, shared, e.add(e.mul(slice, slicedColumns()), place));
    e.barrier();
    e.ifTrue(e.bitAnd(inside, e.eq(slice, e.index(0))), [&] {
      Value sum =
          e.loop(e.index(0), e.index(slices), 1, Values{e.f32(0)}, [&](Value i, ValueRange sums) {
            Value from = e.add(e.mul(i, slicedColumns()), place);
            return Values{e.add(sums[0], e.load(DVT_F32, shared, from))};
          })[0];
      store(row, column, e.splat(sum, 1));
    });
  }

private:
  bool rightAlongDepth() const { return m.right.depth.is(1) && !m.right.row.is(1); }
  /// Neighbouring threads read side by side: along columns, or along depth.
  int64_t slicedColumns() const { return rightAlongDepth() ? 8 : 32; }

  void enter(Value batch) {
    indices.assign(m.batchDimensions.size(), Value());
    for (unsigned i = indices.size(); i-- > 0;) {
      Value extent = e.extentOf(m.fusion.extents[m.batchDimensions[i]]);
      indices[i] = i ? e.rem(batch, extent) : batch;
      batch = e.div(batch, extent);
    }
    leftStart = start(m.left);
    rightStart = start(m.right);
  }
  Value start(const MatMul::Side &side) {
    Value offset = e.index(0);
    for (unsigned i = 0; i < indices.size(); ++i)
      if (!side.batch[i].is(0))
        offset = e.add(offset, e.mul(indices[i], emitProduct(e, side.batch[i])));
    return offset;
  }
  dvt_type typeOf(const MatMul::Side &side) const { return e.problem.value(side.value).type; }
  Value place(const MatMul::Side &side, Value start, Value across, Value k) {
    return e.add(start, e.add(e.mul(across, emitProduct(e, side.row)),
                              e.mul(k, emitProduct(e, side.depth))));
  }
  Value load(const MatMul::Side &side, Value start, Value across, Value k) {
    dvt_type type = bits ? matrixLoadType(typeOf(side)) : typeOf(side);
    return e.load(type, e.pointerOf(side.value), place(side, start, across, k));
  }
  Value address(const MatMul::Side &side, Value start, Value across, Value k) {
    return e.advance(e.pointerOf(side.value), place(side, start, across, k),
                     elementBytes(typeOf(side)));
  }

  /// Neighbours along the depth, or along rows or columns (of which there are `count`), that lie
  /// side by side and at a multiple of their number: tensors begin at a multiple of 64 bytes.
  int64_t vectorOf(const MatMul::Side &side, bool alongDepth, const Product &count) const {
    if (!alongDepth && !side.row.is(1))
      return 1;
    int64_t elements = mostVector(typeOf(side));
    auto fits = [&] {
      bool inside =
          alongDepth ? isMultiple(side.row, elements) && isMultiple(Product::of(m.depth), elements)
                     : isMultiple(side.depth, elements) && isMultiple(count, elements);
      return inside && llvm::all_of(side.batch, [&](const Product &stride) {
               return isMultiple(stride, elements);
             });
    };
    while (elements > 1 && !fits())
      elements /= 2;
    return elements;
  }
  Value loadLeft(Value row, Value k) { return load(m.left, leftStart, row, k); }
  Value loadRight(Value k, Value column) { return load(m.right, rightStart, column, k); }
  void store(Value row, Value column, Value sum) {
    finishing.emit(outputIndex(e, m, indices, row, column), {sum}, {Value()});
  }

  Emitter &e;
  const MatMul &m;
  Value rows, columns, depth, leftStart, rightStart;
  TileFinish finishing;
  Values indices;
  bool bits = false; ///< elements are loaded as matrixLoadType() says
};

class DeviceConvolution {
public:
  DeviceConvolution(Emitter &e, const Convolution &conv, const Schedule &schedule)
      : e(e), conv(conv), type(e.problem.value(conv.input).type),
        weightType(e.problem.value(conv.weight).type), inRows(e.extentOf(conv.inRows)),
        inColumns(e.extentOf(conv.inColumns)), outRows(e.extentOf(conv.outRows)),
        outColumns(e.extentOf(conv.outColumns)), pixels(e.mul(outRows, outColumns)),
        finishing(e, conv.fusion,
                  convolutionFinish(e, conv, schedule, int(conv.columnDimension()))) {}

  Value elements() {
    return e.mul(e.mul(e.extentOf(conv.batch), conv.groups * conv.outPerGroup), pixels);
  }
  template <typename Tile> Value blocks(const Tile &tile) {
    int64_t down = (conv.outPerGroup + tile.rows - 1) / tile.rows;
    return e.mul(e.mul(e.extentOf(conv.batch), conv.groups * down),
                 ceilTiles(e, pixels, tile.columns));
  }

  /// Rows of the product are output channels, columns are pixels, depth is input channels by
  /// windows.
  template <typename Tile> void block(const Tile &tile, Value number) {
    if (std::is_same_v<Tile, MatrixTile>) {
      type = matrixLoadType(type);
      weightType = matrixLoadType(weightType);
    }
    int64_t down = (conv.outPerGroup + tile.rows - 1) / tile.rows;
    Value across = ceilTiles(e, pixels, tile.columns);
    Value firstColumn = e.mul(e.rem(number, across), tile.columns);
    Value rest = e.div(number, across);
    Value firstRow = e.mul(e.rem(rest, down), tile.rows);
    rest = e.div(rest, down);
    group = e.rem(rest, conv.groups);
    image = e.div(rest, conv.groups);
    int64_t window = conv.rows.size * conv.columns.size, depth = conv.inPerGroup * window;
    Value firstWeight = e.mul(group, conv.outPerGroup * depth);
    auto left = [&](Value row, Value k) {
      return e.load(weightType, e.pointerOf(conv.weight),
                    e.add(firstWeight, e.add(e.mul(row, depth), k)));
    };
    auto right = [&](Value k, Value pixel) {
      Value place = e.rem(k, window);
      Value y = e.sub(e.add(e.mul(e.div(pixel, outColumns), conv.rows.stride),
                            e.mul(e.div(place, conv.columns.size), conv.rows.dilation)),
                      conv.rows.padBegin);
      Value x = e.sub(e.add(e.mul(e.rem(pixel, outColumns), conv.columns.stride),
                            e.mul(e.rem(place, conv.columns.size), conv.columns.dilation)),
                      conv.columns.padBegin);
      return pixelAt(e.div(k, window), y, x);
    };
    auto finish = [&](Value row, Value pixel, Value sum) {
      store(row, e.div(pixel, outColumns), e.rem(pixel, outColumns), sum);
    };
    auto weightAddress = [&](Value row, Value k) {
      return e.advance(e.pointerOf(conv.weight), e.add(firstWeight, e.add(e.mul(row, depth), k)),
                       elementBytes(weightType));
    };
    auto pixelAddress = [&](Value pixel, Value channel) {
      return e.advance(e.pointerOf(conv.input), e.add(e.mul(planeOf(channel), pixels), pixel),
                       elementBytes(type));
    };
    emitBlockProduct(e, tile, firstRow, firstColumn,
                     {e.index(conv.outPerGroup),
                      pixels,
                      e.index(depth),
                      left,
                      right,
                      true,
                      false,
                      finish,
                      {vectorOf(Product(depth), weightType), weightAddress},
                      {vectorOfPixels(), pixelAddress}});
  }

  void element(Value number) {
    Value x = e.rem(number, outColumns), rest = e.div(number, outColumns);
    Value y = e.rem(rest, outRows);
    rest = e.div(rest, outRows);
    Value channel = e.rem(rest, conv.outPerGroup);
    rest = e.div(rest, conv.outPerGroup);
    group = e.rem(rest, conv.groups);
    image = e.div(rest, conv.groups);
    Value sum = byPhase(conv.rows, y, 0, [&](const Phase &rows, Value top) {
      return byPhase(conv.columns, x, 0, [&](const Phase &columns, Value left) {
        return window(channel, rows, columns, top, left);
      });
    });
    store(channel, y, x, e.splat(sum, 1));
  }

private:
  using Phase = Convolution::Window::Phase;

  static int64_t vectorOf(const Product &extent, dvt_type type) {
    int64_t elements = mostVector(type);
    while (!isMultiple(extent, elements))
      elements /= 2;
    return elements;
  }
  /// Those of a plane lie side by side where the product takes them as they are.
  int64_t vectorOfPixels() const {
    Product all = Product::of(conv.outRows) * Product::of(conv.outColumns);
    return conv.isPointwise() ? vectorOf(all, type) : 1;
  }

  /// Number of a channel of the group among all planes of the input.
  Value planeOf(Value channel) {
    return e.add(e.mul(e.add(e.mul(image, conv.groups), group), conv.inPerGroup), channel);
  }

  /// Zero outside of the image; `channel` counts within the group.
  Value pixelAt(Value channel, Value y, Value x) {
    auto in = [&](Value position, Value extent) {
      return e.bitAnd(e.ge(position, e.index(0)), e.lt(position, extent));
    };
    auto load = [&] {
      Value offset = e.add(e.mul(e.add(e.mul(planeOf(channel), inRows), y), inColumns), x);
      return Values{e.load(type, e.pointerOf(conv.input), offset)};
    };
    if (!conv.isPadded())
      return load()[0];
    return e.ifElse(e.bitAnd(in(y, inRows), in(x, inColumns)), load,
                    [&] { return Values{e.constant(e.registerType(type), 0)}; })[0];
  }

  /// Emits `body` for the phase that an output position is in, with the position's number in it.
  Value byPhase(const Convolution::Window &window, Value position, size_t first,
                llvm::function_ref<Value(const Phase &, Value)> body) {
    std::vector<Phase> phases = window.phases();
    Value base = e.mul(e.div(position, window.outStep()), window.inStep());
    if (first + 1 == phases.size())
      return body(phases[first], base);
    Value here = e.eq(e.rem(position, window.outStep()), e.index(int64_t(first)));
    return e.ifElse(
        here, [&] { return Values{body(phases[first], base)}; },
        [&] { return Values{byPhase(window, position, first + 1, body)}; })[0];
  }

  Value window(Value channel, const Phase &rows, const Phase &columns, Value top, Value left) {
    return e.loop(
        e.index(0), e.index(conv.inPerGroup), 1, Values{e.f32(0)}, [&](Value in, ValueRange outer) {
          return e.loop(e.index(0), e.index(rows.count), 1, outer, [&](Value i, ValueRange middle) {
            return windowRow(channel, in, rows, columns, i, top, left, middle);
          });
        })[0];
  }

  Values windowRow(Value channel, Value in, const Phase &rows, const Phase &columns, Value i,
                   Value top, Value left, ValueRange sums) {
    Value y = e.add(e.add(top, rows.in), e.mul(i, rows.inStride));
    Value weightRow = e.add(e.mul(i, rows.weightStep), rows.weight);
    return e.loop(e.index(0), e.index(columns.count), 1, sums, [&](Value j, ValueRange inner) {
      Value x = e.add(e.add(left, columns.in), e.mul(j, columns.inStride));
      Value place = e.add(e.mul(weightRow, conv.columns.size),
                          e.add(e.mul(j, columns.weightStep), columns.weight));
      Value weight =
          e.load(weightType, e.pointerOf(conv.weight), e.add(weightOf(channel, in), place));
      return Values{e.fma(weight, pixelAt(in, y, x), inner[0])};
    });
  }

  /// First weight of a pair of channels of this group.
  Value weightOf(Value out, Value in) {
    int64_t window = conv.rows.size * conv.columns.size;
    Value number =
        conv.transposed
            ? e.add(e.mul(e.add(e.mul(group, conv.inPerGroup), in), conv.outPerGroup), out)
            : e.add(e.mul(e.add(e.mul(group, conv.outPerGroup), out), conv.inPerGroup), in);
    return e.mul(number, window);
  }

  void store(Value channel, Value y, Value x, Value sum) {
    Values index{image, e.add(e.mul(group, conv.outPerGroup), channel)};
    if (conv.spatial == 2)
      index.push_back(y);
    index.push_back(x);
    finishing.emit(index, {sum}, {Value()});
  }

  Emitter &e;
  const Convolution &conv;
  dvt_type type, weightType; ///< as elements are loaded
  Value inRows, inColumns, outRows, outColumns, pixels;
  TileFinish finishing;
  Value image, group; ///< of the current task
};

template <typename Tile, typename Make>
void addTiledPhase(KernelModule &module, const Tile &tile, Make make) {
  module.addBlockPhase(
      Tile::kThreads, [&](Emitter &e) { return make(e).blocks(tile); },
      [&](Emitter &e, Value begin, Value) { make(e).block(tile, begin); });
}

/// Phases of a product whose emitter is made by `make`.
template <typename Make>
void addPhases(KernelModule &module, const Machine &machine, const Schedule &schedule, Make make) {
  if (auto tile = MatrixTile::read(schedule, machine))
    return addTiledPhase(module, *tile, make);
  if (auto tile = DeviceTile::read(schedule))
    return addTiledPhase(module, *tile, make);
  module.addPhase([&](Emitter &e) { return make(e).elements(); },
                  [&](Emitter &e, Value begin, Value) { make(e).element(begin); });
}

} // namespace

Status emitDeviceMatMulKernel(const ProblemReader &problem, const Machine &machine,
                              const Schedule &schedule, KernelModule &module) {
  auto found = MatMul::find(problem);
  if (!found || !*found)
    return internalError("schedule {} does not fit its problem", schedule.algorithm);
  auto make = [&](Emitter &e) { return DeviceMatMul(e, **found); };
  if (schedule.algorithm.ends_with(":slices"))
    module.addBlockPhase(
        DeviceTile::kThreads, [&](Emitter &e) { return make(e).slicedBlocks(); },
        [&](Emitter &e, Value begin, Value) { make(e).sliced(begin); });
  else
    addPhases(module, machine, schedule, make);
  return Status::success();
}

Status emitDeviceConvolutionKernel(const ProblemReader &problem, const Machine &machine,
                                   const Schedule &schedule, KernelModule &module) {
  auto found = Convolution::find(problem);
  if (!found || !*found)
    return internalError("schedule {} does not fit its problem", schedule.algorithm);
  addPhases(module, machine, schedule,
            [&](Emitter &e) { return DeviceConvolution(e, **found, schedule); });
  return Status::success();
}

} // namespace dovetail::codegen
