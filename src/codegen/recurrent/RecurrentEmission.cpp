// SPDX-License-Identifier: Apache-2.0
//
// Emits recurrent ops as scheduled. A task is a direction of some sequences. It takes steps one
// after the other: sums of the input's share and of the state times the recurrent weights, panel by
// panel, then the gates on those registers. States of two steps lie in the worker's scratch, and so
// do the input's sums of a chunk of steps, unless a phase before has computed them all.
#include "codegen/Families.h"
#include "codegen/contraction/TileEmission.h"
#include "codegen/recurrent/CellEmission.h"

namespace dovetail::codegen {
namespace {

constexpr unsigned kTileRowsWide = 6, kTileRows = 3; ///< with 32 vector registers, with 16

class RecurrentEmitter {
public:
  RecurrentEmitter(Emitter &e, const Recurrent &net, const RecurrentShape &shape,
                   const RecurrentPlan &plan)
      : e(e), net(net), shape(shape), plan(plan),
        tileRows(e.machine.isa.vectorRegisters >= 32 ? kTileRowsWide : kTileRows) {
    steps = e.extentOf(net.steps);
    batch = e.extentOf(net.batch);
    blocks = e.ceilDiv(batch, plan.sequences);
  }

  Value taskCount() { return e.mul(blocks, net.directions); }

  void tasks(Value begin, Value end) {
    e.loop(begin, end, 1, [&](Value task) {
      direction = e.div(task, blocks);
      first = e.mul(e.rem(task, blocks), plan.sequences);
      rows = e.minimum(e.sub(batch, first), plan.sequences);
      forDirection([&] { sequences(); });
    });
  }

  Value beforehandCount() { return e.mul(rowBlocks(), net.directions); }

  /// The input's sums of all steps, a block of rows for each task; rows lie as the input has them.
  void beforehand(Value begin, Value end) {
    e.loop(begin, end, 1, [&](Value task) {
      direction = e.div(task, rowBlocks());
      Value from = e.mul(e.rem(task, rowBlocks()), kRowBlock);
      Value count = e.minimum(e.sub(e.mul(steps, batch), from), kRowBlock);
      Value base = e.add(e.mul(direction, e.mul(steps, batch)), from);
      inputSums(count, e.advance(e.workspace(), e.mul(base, shape.sumRow), 4),
                [&](Value row) { return e.add(from, row); });
    });
  }

private:
  static constexpr int64_t kRowBlock = 24;
  Value rowBlocks() { return e.ceilDiv(e.mul(steps, batch), kRowBlock); }

  /// Code for each direction where their functions differ.
  void forDirection(llvm::function_ref<void()> body) {
    functions = net.functions.data();
    if (net.sameFunctions())
      return body();
    Value which = direction;
    e.ifElse(
        e.eq(which, e.index(0)),
        [&] {
          direction = e.index(0);
          body();
          return Values();
        },
        [&] {
          direction = e.index(1);
          functions = net.functions.data() + net.functionCount;
          body();
          return Values();
        });
  }

  /// Calls body(first row, number of rows) for tiles that cover `count` rows.
  void forTiles(Value count, llvm::function_ref<void(Value, unsigned)> body) {
    Value done = e.index(0);
    for (unsigned size : {tileRows, (tileRows + 1) / 2, 1u}) {
      Value end = e.sub(count, e.rem(e.sub(count, done), int64_t(size)));
      e.loop(done, end, size, [&](Value row) { body(row, size); });
      done = end;
    }
  }

  Values zeros(unsigned count) { return Values(count, e.constant(e.f32Vector(), 0)); }

  /// Sums over k of left[row, k] times the vectors of a panel.
  Values product(Value left, Values rowOffsets, Value panel, int64_t depth, unsigned vectors,
                 const Values &initial) {
    const int64_t width = int64_t(vectors) * shape.lanes;
    if (rowOffsets.size() > 1 || 2 * vectors > 8) {
      TileOperands operands;
      operands.left = left;
      operands.right = panel;
      operands.rowOffsets = std::move(rowOffsets);
      TileNest nest;
      nest.loops = {{e.index(depth), e.index(1), e.index(width)}};
      return emitTile(e, vectors, operands, nest, initial);
    }
    // One row alone waits for its own sums; twice as many wait half as long.
    Values sums = initial;
    sums.append(zeros(vectors));
    auto step = [&](Value k, unsigned half, Values &next) {
      Value element = e.loadSplat(DVT_F32, left, e.add(rowOffsets[0], k), e.lanes());
      for (unsigned v = 0; v < vectors; ++v) {
        Value at = e.add(e.mul(k, width), int64_t(v) * shape.lanes);
        Value right = e.loadVector(DVT_F32, panel, at, e.lanes());
        next[half * vectors + v] = e.fma(element, right, next[half * vectors + v]);
      }
    };
    sums = e.loop(e.index(0), e.index(depth / 2 * 2), 2, sums, [&](Value k, ValueRange carried) {
      Values next(carried);
      step(k, 0, next);
      step(e.add(k, 1), 1, next);
      return next;
    });
    if (depth % 2)
      step(e.index(depth - 1), 0, sums);
    Values total;
    for (unsigned v = 0; v < vectors; ++v)
      total.push_back(e.add(sums[v], sums[vectors + v]));
    return total;
  }

  Value packedPanel(uint32_t value, const RecurrentShape::Pass &pass, Value panel, int64_t depth) {
    Value base = e.add(e.mul(direction, shape.packedElements(depth)), pass.column * depth);
    return e.advance(e.pointerOf(value),
                     e.add(base, e.mul(panel, int64_t(pass.vectors()) * shape.lanes * depth)), 4);
  }

  /// Bias plus weights times input, for `count` rows; rowOf says which row of the input each is.
  void inputSums(Value count, Value to, llvm::function_ref<Value(Value)> rowOf) {
    for (const RecurrentShape::Pass &pass : shape.passes) {
      const unsigned vectors = pass.vectors();
      const int64_t width = int64_t(vectors) * shape.lanes;
      e.loop(e.index(0), e.index(pass.panels), 1, [&](Value panel) {
        Value column = e.add(e.mul(panel, width), pass.column);
        Values bias;
        for (unsigned v = 0; v < vectors; ++v)
          bias.push_back(biasVector(pass.gates[v % pass.gates.size()],
                                    e.add(column, int64_t(v) * shape.lanes)));
        Value weights = packedPanel(net.w, pass, panel, net.input);
        forTiles(count, [&](Value row, unsigned size) {
          Values offsets, initial;
          for (unsigned r = 0; r < size; ++r) {
            offsets.push_back(e.mul(rowOf(e.add(row, int64_t(r))), net.input));
            initial.append(bias);
          }
          Values sums = product(e.pointerOf(net.x), offsets, weights, net.input, vectors, initial);
          for (unsigned i = 0; i < sums.size(); ++i) {
            Value at = e.add(e.mul(e.add(row, int64_t(i / vectors)), shape.sumRow), column);
            e.storeVector(DVT_F32, sums[i], to, e.add(at, int64_t(i % vectors) * shape.lanes));
          }
        });
      });
    }
  }

  Value biasVector(unsigned gate, Value column) {
    if (!net.bias.value) {
      const bool alone = net.cell == Recurrent::Cell::GruLinear && gate == 2;
      return e.constant(e.f32Vector(), net.bias.uniform * (alone ? 1 : 2));
    }
    return e.loadVector(DVT_F32, e.pointerOf(*net.bias.value),
                        e.add(e.mul(direction, shape.sumRow), column), e.lanes());
  }

  // --- A direction of some sequences ---

  Value scratch(int64_t elements) { return e.advance(e.workerScratch(), e.index(elements), 4); }

  void sequences() {
    const int64_t state = plan.sequences * shape.stateRow;
    hidden = scratch(0); // of two steps, taking turns
    if (net.cell == Recurrent::Cell::Lstm)
      cells = scratch(2 * state);
    if (net.cell == Recurrent::Cell::Gru) {
      updates = scratch(2 * state);
      resets = scratch(3 * state);
    }
    RecurrentPlan statesOnly = plan;
    statesOnly.chunk = 0;
    chunkSums = scratch(statesOnly.scratchElements(net, shape));
    loadStates(net.hidden0, hidden);
    if (cells)
      loadStates(net.cell0, cells);
    if (!plan.chunk) {
      e.loop(e.index(0), steps, 1, [&](Value step) { takeStep(step, {}); });
    } else {
      e.loop(e.index(0), steps, plan.chunk, [&](Value from) {
        Value count = e.minimum(e.sub(steps, from), plan.chunk);
        inputSums(e.mul(count, rows), chunkSums, [&](Value row) {
          Value step = e.add(from, e.div(row, rows)), sequence = e.rem(row, rows);
          return inputRow(timeOf(step, sequence).time, sequence);
        });
        e.loop(from, e.add(from, count), 1, [&](Value step) { takeStep(step, from); });
      });
    }
    if (net.lastH)
      storeStates(*net.lastH, e.advance(hidden, e.mul(e.rem(steps, 2), state), 4));
    if (net.lastC)
      storeStates(*net.lastC, cells);
  }

  /// Of a sequence's states outside, hidden units lying side by side.
  Value stateOffset(Value sequence) {
    Value n = e.add(first, sequence);
    Value row = net.batchFirst ? e.add(e.mul(n, net.directions), direction)
                               : e.add(e.mul(direction, batch), n);
    return e.mul(row, net.hidden);
  }

  void loadStates(const Recurrent::Operand &from, Value to) {
    e.loop(e.index(0), rows, 1, [&](Value sequence) {
      Value row = e.mul(sequence, shape.stateRow);
      if (!from.value) {
        e.loop(e.index(0), e.index(shape.stateRow), shape.lanes, [&](Value unit) {
          e.storeVector(DVT_F32, e.constant(e.f32Vector(), from.uniform), to, e.add(row, unit));
        });
        return;
      }
      Value outside = stateOffset(sequence);
      e.vectorLoop(e.index(0), e.index(net.hidden), e.lanes(), 1, [&](Value unit, Value mask) {
        Value loaded =
            e.loadVector(DVT_F32, e.pointerOf(*from.value), e.add(outside, unit), e.lanes(), mask);
        e.storeVector(DVT_F32, loaded, to, e.add(row, unit));
      });
    });
  }

  void storeStates(uint32_t value, Value from) {
    e.loop(e.index(0), rows, 1, [&](Value sequence) {
      Value outside = stateOffset(sequence), row = e.mul(sequence, shape.stateRow);
      e.vectorLoop(e.index(0), e.index(net.hidden), e.lanes(), 1, [&](Value unit, Value mask) {
        Value vector = e.loadVector(DVT_F32, from, e.add(row, unit), e.lanes());
        e.storeVector(DVT_F32, vector, e.pointerOf(value), e.add(outside, unit), mask);
      });
    });
  }

  /// When a step of a sequence is; null `active` where every step counts.
  struct Moment {
    Value time, active;
  };
  Moment timeOf(Value step, Value sequence) {
    auto reversed = [&](Value length) { return e.sub(e.sub(length, e.index(1)), step); };
    auto directed = [&](Value length) {
      if (net.directions == 1)
        return net.reverseFirst ? reversed(length) : step;
      return e.select(e.eq(direction, e.index(0)), step, reversed(length));
    };
    if (!net.hasLengths())
      return {directed(steps), {}};
    Value length = lengthOf(e.add(first, sequence));
    Value active = e.lt(step, length);
    // What lies behind the end is visited in order, to be filled with zeros.
    return {e.select(active, directed(length), step), active};
  }

  Value lengthOf(Value sequence) {
    if (!net.lengths) {
      std::vector<int32_t> numbers(net.knownLengths.begin(), net.knownLengths.end());
      Value table = e.embed(llvm::ArrayRef(reinterpret_cast<const char *>(numbers.data()),
                                           numbers.size() * sizeof(int32_t)));
      return e.convert(e.load(DVT_I32, table, sequence), e.i64Type());
    }
    return e.convert(e.load(DVT_I32, e.pointerOf(*net.lengths), sequence), e.i64Type());
  }

  Value inputRow(Value time, Value sequence) {
    Value n = e.add(first, sequence);
    return net.batchFirst ? e.add(e.mul(n, steps), time) : e.add(e.mul(time, batch), n);
  }

  Value sequenceRow(Value time, Value sequence) {
    Value n = e.add(first, sequence);
    Value row = net.batchFirst
                    ? e.add(e.mul(e.add(e.mul(n, steps), time), net.directions), direction)
                    : e.add(e.mul(e.add(e.mul(time, net.directions), direction), batch), n);
    return e.mul(row, net.hidden);
  }

  /// `chunkStart` is null where all sums lie in the workspace.
  void takeStep(Value step, Value chunkStart) {
    const int64_t state = plan.sequences * shape.stateRow;
    Value odd = e.rem(step, 2);
    Value before = e.advance(hidden, e.mul(odd, state), 4);
    Value after = e.advance(hidden, e.mul(e.sub(e.index(1), odd), state), 4);
    for (unsigned number = 0; number < shape.passes.size(); ++number) {
      const RecurrentShape::Pass &pass = shape.passes[number];
      Value left = number ? resets : before;
      e.loop(e.index(0), e.index(pass.panels), 1, [&](Value turn) {
        // Weights that do not quite fit the cache are found there at the turn of each step.
        Value panel = e.select(e.eq(odd, e.index(0)), turn, e.sub(e.index(pass.panels - 1), turn));
        Value weights = packedPanel(net.r, pass, panel, net.hidden);
        forTiles(rows, [&](Value row, unsigned size) {
          Tile tile{step, chunkStart, before, after, panel, row, size, {}, {}};
          takeTile(pass, number, left, weights, tile);
        });
      });
    }
  }

  struct Tile {
    Value step, chunkStart, before, after, panel, row;
    unsigned size;
    std::vector<Moment> moments; ///< of each row
    Values sumRows;              ///< offsets of the input's sums
  };

  Value sums(const Tile &tile) { return tile.chunkStart ? chunkSums : e.workspace(); }

  void takeTile(const RecurrentShape::Pass &pass, unsigned number, Value left, Value weights,
                Tile &tile) {
    const unsigned vectors = pass.vectors(), gates = unsigned(pass.gates.size());
    Value column = e.add(e.mul(tile.panel, int64_t(vectors) * shape.lanes), pass.column);
    Values offsets, initial;
    for (unsigned r = 0; r < tile.size; ++r) {
      Value sequence = e.add(tile.row, int64_t(r));
      tile.moments.push_back(timeOf(tile.step, sequence));
      Value row;
      if (tile.chunkStart)
        row = e.add(e.mul(e.sub(tile.step, tile.chunkStart), rows), sequence);
      else
        row =
            e.add(e.mul(direction, e.mul(steps, batch)), inputRow(tile.moments[r].time, sequence));
      tile.sumRows.push_back(e.add(e.mul(row, shape.sumRow), column));
      offsets.push_back(e.index(int64_t(r) * shape.stateRow));
      for (unsigned v = 0; v < vectors; ++v)
        initial.push_back(initialSum(tile, r, pass, v));
    }
    Value at = e.advance(left, e.mul(tile.row, shape.stateRow), 4);
    Values total = product(at, offsets, weights, net.hidden, vectors, initial);
    for (unsigned r = 0; r < tile.size; ++r)
      for (unsigned block = 0; block < pass.blocks; ++block) {
        Values own(total.begin() + r * vectors + block * gates,
                   total.begin() + r * vectors + (block + 1) * gates);
        finish(pass, number, tile, r, block, own);
      }
  }

  Value unitOf(const RecurrentShape::Pass &pass, const Tile &tile, unsigned block) {
    return e.mul(e.add(e.mul(tile.panel, int64_t(pass.blocks)), int64_t(block)), shape.lanes);
  }

  bool isApart(unsigned gate) const { return net.cell == Recurrent::Cell::GruLinear && gate == 2; }

  Value inputSum(const Tile &tile, unsigned r, unsigned vector) {
    return e.loadVector(DVT_F32, sums(tile), e.add(tile.sumRows[r], int64_t(vector) * shape.lanes),
                        e.lanes());
  }

  Value initialSum(const Tile &tile, unsigned r, const RecurrentShape::Pass &pass,
                   unsigned vector) {
    const unsigned gates = unsigned(pass.gates.size());
    if (!isApart(pass.gates[vector % gates]))
      return inputSum(tile, r, vector);
    if (!net.bias.value)
      return e.constant(e.f32Vector(), net.bias.uniform);
    Value base = e.add(e.index(net.directions * shape.sumRow), e.mul(direction, shape.stateRow));
    return e.loadVector(DVT_F32, e.pointerOf(*net.bias.value),
                        e.add(base, unitOf(pass, tile, vector / gates)), e.lanes());
  }

  /// The gates of one vector of units of one row.
  void finish(const RecurrentShape::Pass &pass, unsigned number, const Tile &tile, unsigned r,
              unsigned block, const Values &sums) {
    Value unit = unitOf(pass, tile, block);
    Value mask = net.hidden % (shape.lanes * pass.blocks) == 0
                     ? Value()
                     : e.tailMask(e.sub(e.index(net.hidden), unit));
    Value row = e.add(e.mul(e.add(tile.row, int64_t(r)), shape.stateRow), unit);
    auto load = [&](Value from) { return e.loadVector(DVT_F32, from, row, e.lanes()); };
    CellEmission cell(e, net, functions);
    Value old = load(tile.before), next;
    Value active = tile.moments[r].active;
    auto kept = [&](Value now, Value then) { return active ? e.select(active, now, then) : now; };
    switch (net.cell) {
    case Recurrent::Cell::Rnn:
      next = cell.rnn(sums[0]);
      break;
    case Recurrent::Cell::Gru:
      if (number == 0) {
        e.storeVector(DVT_F32, cell.gate(sums[0]), updates, row);
        e.storeVector(DVT_F32, e.mul(cell.gate(sums[1]), old), resets, row);
        return;
      }
      next = cell.gru(load(updates), cell.candidate(sums[0]), old);
      break;
    case Recurrent::Cell::GruLinear: {
      const unsigned third = block * 3 + 2;
      Value reset = e.mul(cell.gate(sums[1]), sums[2]);
      Value candidate = cell.candidate(e.add(inputSum(tile, r, third), reset));
      next = cell.gru(cell.gate(sums[0]), candidate, old);
      break;
    }
    case Recurrent::Cell::Lstm: {
      Value cellBefore = load(cells);
      auto [hiddenNow, cellNow] = cell.lstm(sums, cellBefore, peepholes(unit, mask));
      e.storeVector(DVT_F32, kept(cellNow, cellBefore), cells, row);
      next = hiddenNow;
      break;
    }
    }
    e.storeVector(DVT_F32, kept(next, old), tile.after, row);
    if (net.sequence)
      e.storeVector(DVT_F32, kept(next, e.constant(e.f32Vector(), 0)), e.pointerOf(*net.sequence),
                    e.add(sequenceRow(tile.moments[r].time, e.add(tile.row, int64_t(r))), unit),
                    mask);
  }

  /// Of input, output and forget gate; empty where there are none.
  Values peepholes(Value unit, Value mask) {
    if (!net.peepholes.value)
      return net.peepholes.uniform == 0
                 ? Values()
                 : Values(3, e.constant(e.f32Vector(), net.peepholes.uniform));
    Values vectors;
    for (int64_t gate = 0; gate < 3; ++gate) {
      Value base = e.mul(e.add(e.mul(direction, 3), gate), net.hidden);
      vectors.push_back(e.loadVector(DVT_F32, e.pointerOf(*net.peepholes.value), e.add(base, unit),
                                     e.lanes(), mask));
    }
    return vectors;
  }

  Emitter &e;
  const Recurrent &net;
  const RecurrentShape &shape;
  const RecurrentPlan &plan;
  unsigned tileRows;
  const RecurrentFunction *functions = nullptr; ///< of the direction that is emitted
  Value steps, batch, blocks;
  Value direction, first, rows;                    ///< of the task: its sequences start at `first`
  Value hidden, cells, updates, resets, chunkSums; ///< pointers into the scratch
};

} // namespace

Status emitRecurrentKernel(const ProblemReader &problem, const Machine &machine,
                           const Schedule &schedule, KernelModule &module) {
  auto found = Recurrent::find(problem);
  if (!found || !*found)
    return internalError("schedule {} does not fit its problem", schedule.algorithm);
  const Recurrent &net = **found;
  const RecurrentShape shape(net, machine);
  const RecurrentPlan plan = RecurrentPlan::read(schedule);
  module.setLanes(unsigned(shape.lanes));
  if (!plan.chunk)
    module.addPhase(
        [&](Emitter &e) { return RecurrentEmitter(e, net, shape, plan).beforehandCount(); },
        [&](Emitter &e, Value begin, Value end) {
          RecurrentEmitter(e, net, shape, plan).beforehand(begin, end);
        });
  module.addPhase([&](Emitter &e) { return RecurrentEmitter(e, net, shape, plan).taskCount(); },
                  [&](Emitter &e, Value begin, Value end) {
                    RecurrentEmitter(e, net, shape, plan).tasks(begin, end);
                  });
  return Status::success();
}

} // namespace dovetail::codegen
