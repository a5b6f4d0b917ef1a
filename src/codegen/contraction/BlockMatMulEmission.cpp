// SPDX-License-Identifier: Apache-2.0
//
// Emits products with quantised weights. A task computes some rows of one panel of columns. Of few
// rows, sums of a block are scaled when the block ends; of some more, weights are scaled before
// they are multiplied; of many, the panel is widened to f32 first and multiplied as any other.
// Where the number of rows is known at run time only, all three are there.
#include "codegen/contraction/ProductRows.h"
#include "codegen/contraction/TileEmission.h"

#include "codegen/Families.h"
#include "codegen/schedule/contraction/BlockMatMul.h"

namespace dovetail::codegen {
namespace {

class BlockMatMulEmitter {
public:
  BlockMatMulEmitter(Emitter &e, const BlockMatMul &m, const BlockMatMulPlan &plan)
      : e(e), m(m), p(m.product), plan(plan), sizes(m, plan, e.machine), lanes(e.lanes()),
        depthsPerGroup(m.bits == 4 ? kDepthsPerWord : 4) {
    leftType = e.problem.value(p.left.value).type;
    leftBytes = elementBytes(leftType);
    rows = emitProduct(e, p.rows);
    rowBlocks = plan.blockRows ? e.ceilDiv(rows, plan.blockRows) : e.index(1);
    fixedZero = m.zero.value ? 0 : m.zero.all - double(m.centre());
  }

  Value taskCount() { return e.mul(e.index(sizes.panels), rowBlocks); }

  void computeTasks(Value begin, Value end) {
    weights = packedPointer(p.right.value, uint64_t(sizes.weightBytes()), packBlockWeights);
    uint64_t parameters = uint64_t(m.blocks() * sizes.panels * sizes.width);
    if (m.scale.value)
      scales = packedPointer(*m.scale.value, 4 * parameters, packBlockScales);
    if (m.zero.value)
      zeros = packedPointer(*m.zero.value, parameters, packBlockZeros);
    e.loop(begin, end, 1, [&](Value task) {
      Value panel = e.div(task, rowBlocks), block = e.rem(task, rowBlocks);
      Value from = plan.blockRows ? e.mul(block, plan.blockRows) : e.index(0);
      Value to = plan.blockRows ? e.minimum(e.add(from, plan.blockRows), rows) : rows;
      panelTask(panel, from, to);
    });
  }

private:
  using Pack = void (*)(const BlockMatMul &, const BlockMatMulPlan &, const Machine &, const void *,
                        void *);

  /// Where a constant lies in packed form: what is part of the problem is packed here.
  Value packedPointer(uint32_t value, uint64_t bytes, Pack pack) {
    if (e.problem.inputOf(value) >= 0)
      return e.pointerOf(value);
    std::vector<char> packed(bytes);
    pack(m, plan, e.machine, e.problem.value(value).literal, packed.data());
    return e.embed(packed);
  }

  bool isFolded(unsigned rowCount) const { return rowCount <= BlockMatMulPlan::kFoldedRows; }

  void panelTask(Value panel, Value from, Value to) {
    column = e.mul(panel, sizes.width);
    panelWeights = e.advance(weights, e.mul(panel, sizes.width * sizes.placesPerColumn),
                             unsigned(sizes.placeBytes));
    panelParameters = e.mul(panel, m.blocks() * sizes.width);
    masks.assign(plan.vectors, Value());
    if (m.columns % sizes.width)
      masks = emitTailMasks(e, e.sub(e.index(m.columns), column), plan.vectors);
    leftRow = emitProduct(e, p.left.row);
    Value count = e.sub(to, from);
    unsigned few = BlockMatMulPlan::kWidenedRows;
    if (p.rows.isStatic()) {
      if (p.rows.constant == 0)
        return;
      if (p.rows.constant <= few)
        return fewRows(from, unsigned(p.rows.constant));
      return manyRows(from, to);
    }
    e.ifElse(
        e.le(count, e.index(few)),
        [&] {
          e.ifTrue(e.gt(count, e.index(0)), [&] {
            emitForRows(e, p.rows, count, few, [&](unsigned rowCount) { fewRows(from, rowCount); });
          });
          return Values();
        },
        [&] {
          manyRows(from, to);
          return Values();
        });
  }

  // --- Few rows: weights are widened in registers ---

  void fewRows(Value from, unsigned rowCount) {
    Value left = e.advance(e.pointerOf(p.left.value), e.mul(from, leftRow), leftBytes);
    unsigned step = isFolded(rowCount) ? plan.vectors : std::min(plan.vectors, 2u);
    for (unsigned first = 0; first < plan.vectors; first += step) {
      unsigned count = std::min(step, plan.vectors - first);
      Values sums(rowCount * count, e.constant(e.f32Vector(), 0));
      int64_t whole = m.depth / m.block, rest = m.depth % m.block;
      auto body = [&](Value block, int64_t depths, const Values &carried) {
        return isFolded(rowCount)
                   ? foldedBlock(left, block, depths, rowCount, first, count, carried)
                   : scaledBlock(left, block, depths, rowCount, first, count, carried);
      };
      sums = e.loop(e.index(0), e.index(whole), 1, sums, [&](Value block, ValueRange carried) {
        return body(block, m.block, Values(carried));
      });
      if (rest)
        sums = body(e.index(whole), rest, sums);
      for (unsigned r = 0; r < rowCount; ++r)
        for (unsigned v = 0; v < count; ++v)
          e.storeVector(DVT_F32, sums[r * count + v], e.workerScratch(),
                        e.index((int64_t(r) * plan.vectors + first + v) * lanes));
    }
    finishRows(from, e.index(rowCount));
  }

  /// Adds the products of `depths` depths of a block, unscaled, to `sums`.
  Values sumBlock(Value left, Value block, int64_t depths, unsigned rowCount, unsigned first,
                  unsigned count, Values sums,
                  llvm::function_ref<Value(Value weight, unsigned v)> finishWeight) {
    Value places = e.mul(block, sizes.placesPerBlock);
    Value blockWeights =
        e.advance(panelWeights, e.mul(places, sizes.width), unsigned(sizes.placeBytes));
    Value blockLeft = e.advance(left, e.mul(block, m.block), leftBytes);
    Values subtracted = subtractedOf(block, first, count);
    auto group = [&](Value number, int64_t depths, Values carried) {
      Value groupLeft = e.advance(blockLeft, e.mul(number, depthsPerGroup), leftBytes);
      Values next(std::move(carried));
      forDepths(blockWeights, number, depths, first, count, subtracted,
                [&](int64_t i, const Values &widened) {
                  Values finished;
                  for (unsigned v = 0; v < count; ++v)
                    finished.push_back(finishWeight(widened[v], v));
                  for (unsigned r = 0; r < rowCount; ++r) {
                    Value x = e.loadSplat(leftType, groupLeft, e.add(e.mul(leftRow, int64_t(r)), i),
                                          lanes);
                    for (unsigned v = 0; v < count; ++v)
                      next[r * count + v] = e.fma(x, finished[v], next[r * count + v]);
                  }
                });
      return next;
    };
    int64_t whole = depths / depthsPerGroup, rest = depths % depthsPerGroup;
    sums = e.loop(e.index(0), e.index(whole), 1, sums, [&](Value number, ValueRange carried) {
      return group(number, depthsPerGroup, Values(carried));
    });
    return rest ? group(e.index(whole), rest, sums) : sums;
  }

  /// Calls `body` with the weights of each of `depths` depths of a group, as f32, less what is to
  /// be subtracted by vector of columns, if anything.
  void forDepths(Value blockWeights, Value group, int64_t depths, unsigned first, unsigned count,
                 const Values &subtracted, llvm::function_ref<void(int64_t, const Values &)> body) {
    Value at = e.add(e.mul(group, sizes.width * (m.bits == 4 ? 1 : depthsPerGroup)),
                     int64_t(first) * lanes);
    Values words;
    if (m.bits == 4)
      for (unsigned v = 0; v < count; ++v)
        words.push_back(e.loadVector(DVT_I32, blockWeights, e.add(at, int64_t(v) * lanes), lanes));
    for (int64_t i = 0; i < depths; ++i) {
      Values widened;
      for (unsigned v = 0; v < count; ++v) {
        Value place = e.add(at, i * sizes.width + int64_t(v) * lanes);
        Value weight =
            m.bits == 4 ? widenNibbles(words[v], i)
                        : e.convert(e.loadVector(DVT_I8, blockWeights, place, lanes), e.f32Type());
        widened.push_back(subtracted.empty() ? weight : e.sub(weight, subtracted[v]));
      }
      body(i, widened);
    }
  }

  /// Nibble `i` of each word as a number: where the instruction set has a permutation that looks at
  /// four bits of its indices, by a table, else by shifts.
  Value widenNibbles(Value words, int64_t i) {
    auto shift = [&](int64_t bits) { return e.integerConstant(words.getType(), bits); };
    if (!usesTable())
      return e.convert(e.shiftRightSigned(e.shiftLeft(words, shift(28 - 4 * i)), shift(28)),
                       e.f32Type());
    llvm::SmallVector<mlir::Attribute> numbers;
    for (int n = 0; n < 16; ++n)
      numbers.push_back(e.builder.getF32FloatAttr(float((n < 8 ? n : n - 16) - fixedZero)));
    Value table = mlir::arith::ConstantOp::create(
        e.builder, e.builder.getUnknownLoc(), mlir::DenseElementsAttr::get(e.f32Vector(), numbers));
    return e.intrinsic("llvm.x86.avx512.permvar.sf.512", e.f32Vector(),
                       {table, i ? e.shiftRight(words, shift(4 * i)) : words});
  }

  bool usesTable() const { return e.machine.isa.level == Isa::Avx512 && lanes == 16; }
  bool isCentred() const { return !m.zero.value && fixedZero == 0; }
  /// Whether zero points are left to sums: of 4 bits they cannot be so much larger than what is
  /// left of the weights that f32 sums feel it. From weights of 8 bits they are subtracted first.
  bool hasZeros() const { return m.bits == 4 && !isCentred() && (m.zero.value || !usesTable()); }
  Values subtractedOf(Value block, unsigned first, unsigned count) {
    Values subtracted;
    if (m.bits == 8 && !isCentred())
      for (unsigned v = 0; v < count; ++v)
        subtracted.push_back(zeroOf(block, first + v));
    return subtracted;
  }

  Value scaleOf(Value block, unsigned v) {
    if (!m.scale.value)
      return e.constant(e.f32Vector(), m.scale.all);
    return e.loadVector(DVT_F32, scales, parameterPlace(block, v), lanes);
  }
  Value zeroOf(Value block, unsigned v) {
    if (!m.zero.value)
      return e.constant(e.f32Vector(), fixedZero);
    return e.convert(e.loadVector(DVT_I8, zeros, parameterPlace(block, v), lanes), e.f32Type());
  }
  Value parameterPlace(Value block, unsigned v) {
    return e.add(panelParameters, e.add(e.mul(block, sizes.width), int64_t(v) * lanes));
  }

  /// sums += scale * (products of a block - zero * sum of the left side)
  Values foldedBlock(Value left, Value block, int64_t depths, unsigned rowCount, unsigned first,
                     unsigned count, const Values &sums) {
    Values products(rowCount * count, e.constant(e.f32Vector(), 0));
    products = sumBlock(left, block, depths, rowCount, first, count, products,
                        [](Value weight, unsigned) { return weight; });
    Values next, zeroVectors;
    Values scaleVectors;
    for (unsigned v = 0; v < count; ++v) {
      scaleVectors.push_back(scaleOf(block, first + v));
      if (hasZeros())
        zeroVectors.push_back(zeroOf(block, first + v));
    }
    for (unsigned r = 0; r < rowCount; ++r) {
      Value lessLeft;
      if (hasZeros()) {
        Value row =
            e.advance(left, e.add(e.mul(leftRow, int64_t(r)), e.mul(block, m.block)), leftBytes);
        lessLeft = e.splat(e.neg(sumOf(row, depths)));
      }
      for (unsigned v = 0; v < count; ++v) {
        Value sum = products[r * count + v];
        if (hasZeros())
          sum = e.fma(zeroVectors[v], lessLeft, sum);
        next.push_back(e.fma(scaleVectors[v], sum, sums[r * count + v]));
      }
    }
    return next;
  }

  Value sumOf(Value row, int64_t count) {
    Values total{e.constant(e.f32Vector(), 0)};
    total = e.vectorLoop(e.index(0), e.index(count), unsigned(lanes), 1, total,
                         [&](Value i, Value mask, ValueRange carried) {
                           Value part = e.loadVector(leftType, row, i, unsigned(lanes), mask);
                           return Values{e.add(carried[0], part)};
                         });
    return e.reduce(Emitter::Reduction::Add, total[0]);
  }

  /// sums += (weight * scale - zero * scale) * left
  Values scaledBlock(Value left, Value block, int64_t depths, unsigned rowCount, unsigned first,
                     unsigned count, const Values &sums) {
    Values scaleVectors, lessZero;
    scaledParameters(block, first, count, scaleVectors, lessZero);
    return sumBlock(
        left, block, depths, rowCount, first, count, sums,
        [&](Value weight, unsigned v) { return scaled(weight, scaleVectors[v], lessZero[v]); });
  }

  void scaledParameters(Value block, unsigned first, unsigned count, Values &scaleVectors,
                        Values &lessZero) {
    for (unsigned v = 0; v < count; ++v) {
      scaleVectors.push_back(scaleOf(block, first + v));
      lessZero.push_back(hasZeros() ? e.neg(e.mul(zeroOf(block, first + v), scaleVectors.back()))
                                    : Value());
    }
  }

  Value scaled(Value weight, Value scale, Value lessZero) {
    return lessZero ? e.fma(weight, scale, lessZero) : e.mul(weight, scale);
  }

  // --- Many rows: the panel is widened once ---

  void manyRows(Value from, Value to) {
    Value panel = e.advance(e.workerScratch(), e.index(scratchOfSums()), 4);
    widenPanel(panel);
    TileOperands operands;
    operands.left = e.pointerOf(p.left.value);
    operands.leftType = leftType;
    operands.right = panel;
    TileNest nest;
    nest.loops = {{e.index(m.depth), e.index(1), e.index(sizes.width)}};
    unsigned tileRows = tileRowLimit();
    e.loop(from, to, tileRows, [&](Value first) {
      Value count = e.minimum(e.sub(to, first), tileRows);
      auto tile = [&](unsigned rowCount) {
        TileOperands placed = operands;
        placed.left = e.advance(operands.left, e.mul(first, leftRow), leftBytes);
        for (unsigned r = 0; r < rowCount; ++r)
          placed.rowOffsets.push_back(e.mul(leftRow, int64_t(r)));
        Values sums = emitTile(e, plan.vectors, placed, nest);
        for (unsigned i = 0; i < sums.size(); ++i)
          e.storeVector(DVT_F32, sums[i], e.workerScratch(), e.index(int64_t(i) * lanes));
      };
      emitForRows(e, p.rows, count, tileRows, tile);
      finishRows(first, count);
    });
  }

  int64_t scratchOfSums() const { return sizes.width * BlockMatMulPlan::kWidenedRows; }

  unsigned tileRowLimit() const {
    unsigned most = 1;
    for (unsigned tileRows = 1; tileRows <= BlockMatMulPlan::kWidenedRows; ++tileRows)
      if (fitsRegisters(e.machine.isa, {tileRows, plan.vectors}) && plan.blockRows % tileRows == 0)
        most = tileRows;
    return most;
  }

  void widenPanel(Value to) {
    auto body = [&](Value block, int64_t depths) {
      Values scaleVectors, lessZero;
      scaledParameters(block, 0, plan.vectors, scaleVectors, lessZero);
      Values subtracted = subtractedOf(block, 0, plan.vectors);
      Value blockWeights = e.advance(panelWeights, e.mul(block, sizes.placesPerBlock * sizes.width),
                                     unsigned(sizes.placeBytes));
      Value blockTo = e.advance(to, e.mul(block, m.block * sizes.width), 4);
      auto group = [&](Value number, int64_t depths) {
        Value at = e.mul(number, depthsPerGroup * sizes.width);
        forDepths(blockWeights, number, depths, 0, plan.vectors, subtracted,
                  [&](int64_t i, const Values &widened) {
                    for (unsigned v = 0; v < plan.vectors; ++v)
                      e.storeVector(DVT_F32, scaled(widened[v], scaleVectors[v], lessZero[v]),
                                    blockTo, e.add(at, i * sizes.width + int64_t(v) * lanes));
                  });
      };
      int64_t whole = depths / depthsPerGroup, rest = depths % depthsPerGroup;
      e.loop(e.index(0), e.index(whole), 1, [&](Value number) { group(number, depthsPerGroup); });
      if (rest)
        group(e.index(whole), rest);
    };
    int64_t whole = m.depth / m.block, rest = m.depth % m.block;
    e.loop(e.index(0), e.index(whole), 1, [&](Value block) { body(block, m.block); });
    if (rest)
      body(e.index(whole), rest);
  }

  /// Finishes `count` rows of sums that lie in scratch memory.
  void finishRows(Value first, Value count) {
    TileFinish finish(e, p.fusion, finishLayouts(e, p));
    e.loop(e.index(0), count, 1, [&](Value r) {
      Values sums;
      for (unsigned v = 0; v < plan.vectors; ++v)
        sums.push_back(e.loadVector(DVT_F32, e.workerScratch(),
                                    e.add(e.mul(r, sizes.width), int64_t(v) * lanes),
                                    unsigned(lanes)));
      finish.emit(outputIndex(e, p, {}, e.add(first, r), column), sums, masks);
    });
  }

  Emitter &e;
  const BlockMatMul &m;
  const MatMul &p;
  const BlockMatMulPlan &plan;
  BlockMatMulSizes sizes;
  int64_t lanes, depthsPerGroup;
  dvt_type leftType;
  unsigned leftBytes;
  double fixedZero; ///< where all are equal: less the centre
  Value rows, rowBlocks, weights, scales, zeros;
  // Of the task at hand:
  Value column, panelWeights, panelParameters, leftRow;
  Values masks;
};

} // namespace

Status emitBlockMatMulKernel(const ProblemReader &problem, const Machine &,
                             const Schedule &schedule, KernelModule &module) {
  auto found = BlockMatMul::find(problem);
  if (!found || !*found)
    return internalError("schedule {} does not fit its problem", schedule.algorithm);
  const BlockMatMul &m = **found;
  BlockMatMulPlan plan = BlockMatMulPlan::read(schedule);
  module.addPhase([&](Emitter &e) { return BlockMatMulEmitter(e, m, plan).taskCount(); },
                  [&](Emitter &e, Value begin, Value end) {
                    BlockMatMulEmitter(e, m, plan).computeTasks(begin, end);
                  });
  return Status::success();
}

} // namespace dovetail::codegen
