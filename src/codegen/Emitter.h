// SPDX-License-Identifier: Apache-2.0
//
// Short names for what kernels are built of: index arithmetic, loops, vectors with masks for tails,
// memory. It sets insertion points and fast-math flags so that families need not. Indices are i64
// throughout; memory is reached through plain pointers and element offsets; vectors are
// one-dimensional, of native width or a fraction of it. Operations fold constants as they are
// built. Values of narrow element types live in registers in a wider form, see registerType().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

#include "codegen/schedule/Machine.h"
#include "codegen/schedule/ProblemReader.h"
#include "support/Expected.h"
#include "support/Extent.h"

namespace dovetail::codegen {

using mlir::Value;
using mlir::ValueRange;
using Values = llvm::SmallVector<Value>;

class Emitter {
public:
  /// Emits into a function (KernelArgs*, i64 begin, i64 end, i64 worker) whose entry block is
  /// `entry`.
  Emitter(mlir::OpBuilder &builder, const ProblemReader &problem, const Machine &machine,
          mlir::Block &entry);

  mlir::OpBuilder &builder;
  const ProblemReader &problem;
  const Machine &machine;
  /// Quotients of quantisations are products with the reciprocal, which may fall on the other side
  /// of a tie.
  bool quantizesByProduct = false;

  /// The first failure is what KernelModule::finish() reports. For problems that the schedule
  /// should have refused.
  void fail(std::string message);
  const std::string &failure() const { return failed; }

  // --- Types ---
  unsigned lanes() const {
    return vectorLanes;
  } ///< of the kernel's f32 vectors, see KernelModule::setLanes
  mlir::Type f32Type(), f64Type(), i64Type(), i32Type(), i8Type(), i1Type(), pointerType();
  mlir::VectorType vectorOf(mlir::Type element, unsigned lanes);
  mlir::VectorType f32Vector() { return vectorOf(f32Type(), lanes()); }
  /// How an element lives in registers: f32 f16 bf16 as f32, bool as i1, i8 u8 i16 u16 i32 as i32,
  /// i64 u32 as i64.
  mlir::Type registerType(dvt_type type);

  // --- Constants ---
  Value index(int64_t number); ///< i64
  Value f32(double number);
  Value boolean(bool number);
  /// A number as a value of `type`, a scalar or vector of floats or integers.
  Value constant(mlir::Type type, double number);
  Value integerConstant(mlir::Type type, int64_t number);
  /// 0, 1, ... as a vector of i32 (or `element`).
  Value iota(unsigned lanes, mlir::Type element = {});
  static std::optional<int64_t> constantIndex(Value value);

  // --- Arithmetic, on floats or integers, scalars or vectors; a scalar meets a vector as its
  // broadcast ---
  Value add(Value a, Value b), sub(Value a, Value b), mul(Value a, Value b);
  Value add(Value a, int64_t b) {
    return add(a, index(b));
  } ///< the int64_t forms are for i64 scalars
  Value sub(Value a, int64_t b) { return sub(a, index(b)); }
  Value mul(Value a, int64_t b) { return mul(a, index(b)); }
  Value fdiv(Value a, Value b);
  Value fma(Value a, Value b, Value c); ///< a * b + c, floats
  Value neg(Value a), abs(Value a), sqrt(Value a), floor(Value a), ceil(Value a),
      roundEven(Value a), truncate(Value a);
  /// Integers, both not negative.
  Value div(Value a, Value b), rem(Value a, Value b), ceilDiv(Value a, Value b);
  Value div(Value a, int64_t b) { return div(a, index(b)); }
  Value rem(Value a, int64_t b) { return rem(a, index(b)); }
  Value ceilDiv(Value a, int64_t b) { return ceilDiv(a, index(b)); }
  Value sdiv(Value a, Value b), srem(Value a, Value b); ///< signed integers, toward zero
  /// Integers: signed. Floats: NaN if either is NaN.
  Value minimum(Value a, Value b), maximum(Value a, Value b);
  Value minimum(Value a, int64_t b) { return minimum(a, index(b)); }
  Value maximum(Value a, int64_t b) { return maximum(a, index(b)); }
  /// Floats: one instruction each; b where either is NaN.
  Value fastMinimum(Value a, Value b), fastMaximum(Value a, Value b);
  Value bitAnd(Value a, Value b), bitOr(Value a, Value b), bitXor(Value a, Value b),
      shiftLeft(Value a, Value b), shiftRight(Value a, Value b),
      shiftRightSigned(Value a, Value b);     ///< shiftRight fills with zeros
  Value bitNot(Value a);                      ///< i1 or integers
  Value bitcast(Value a, mlir::Type element); ///< same bits, element type of the same width
  /// Same bits of a vector as elements of another width.
  Value recast(Value vector, mlir::Type element);
  Value convert(Value a, mlir::Type element); ///< number to number, floats to integers toward zero
  /// A register as it comes back from memory of `type`: the nearest number of that type.
  Value rounded(dvt_type type, Value a) { return widen(type, narrow(type, a)); }
  /// Comparisons give i1; with NaN all are false except ne.
  Value lt(Value a, Value b), le(Value a, Value b), gt(Value a, Value b), ge(Value a, Value b),
      eq(Value a, Value b), ne(Value a, Value b);
  Value select(Value condition, Value a, Value b);

  /// An LLVM intrinsic by name.
  Value intrinsic(llvm::StringRef name, mlir::Type result, ValueRange operands);

  // --- Vectors ---
  Value splat(Value scalar, unsigned lanes);
  Value splat(Value scalar) { return splat(scalar, lanes()); }
  Value extract(Value vector, unsigned lane);
  Value insert(Value scalar, Value vector, unsigned lane);
  Value shuffle(Value a, Value b, llvm::ArrayRef<int64_t> lanes);
  enum class Reduction { Add, Mul, Min, Max, And, Or };
  /// All lanes into a scalar; float sums in any order. Float Min, Max: NaN if any lane is NaN.
  Value reduce(Reduction kind, Value vector);
  /// All lanes into a scalar by `combine`, which gets two vectors or scalars, in any order.
  Value fold(Value vector, llvm::function_ref<Value(Value, Value)> combine);
  /// Combines two values as `reduce` does.
  Value combine(Reduction kind, Value a, Value b);
  Value reductionIdentity(Reduction kind, mlir::Type type);
  /// Mask of lanes l with l < remaining (i64, may be negative or large).
  Value tailMask(Value remaining, unsigned lanes);
  Value tailMask(Value remaining) { return tailMask(remaining, lanes()); }
  /// rows.size() vectors of as many lanes -> their transpose.
  Values transpose(const Values &rows);

  // --- Memory: `offset` is in elements of `type` ---
  Value load(dvt_type type, Value pointer, Value offset);
  void store(dvt_type type, Value scalar, Value pointer, Value offset);
  /// Consecutive elements; where `mask` is given, false lanes read nothing and give `otherwise`
  /// (zero by default).
  Value loadVector(dvt_type type, Value pointer, Value offset, unsigned lanes, Value mask = {},
                   Value otherwise = {});
  void storeVector(dvt_type type, Value vector, Value pointer, Value offset, Value mask = {});
  /// Element offsets[l] (vector of i64 or i32) in lane l.
  Value gather(dvt_type type, Value pointer, Value offsets, Value mask = {});
  void scatter(dvt_type type, Value vector, Value pointer, Value offsets, Value mask = {});
  Value loadSplat(dvt_type type, Value pointer, Value offset, unsigned lanes) {
    return splat(load(type, pointer, offset), lanes);
  }
  Value advance(Value pointer, Value elements, unsigned elementBytes);
  void prefetch(Value pointer, Value offset, unsigned elementBytes, unsigned locality = 3);

  // --- Control ---
  /// for (i = from; i < to; i += step). A loop whose bounds are equal constants is not built; one
  /// of a single trip is built without a loop.
  void loop(Value from, Value to, int64_t step, llvm::function_ref<void(Value i)> body);
  /// The same with carried values: the body returns their next ones; their last ones come back.
  Values loop(Value from, Value to, int64_t step, ValueRange initial,
              llvm::function_ref<Values(Value i, ValueRange carried)> body);
  /// Steps of one; where there is time for it, `unroll` bodies in each trip.
  Values unrolledLoop(Value from, Value to, unsigned unroll, ValueRange initial,
                      llvm::function_ref<Values(Value i, ValueRange carried)> body);
  void ifTrue(Value condition, llvm::function_ref<void()> then);
  Values ifElse(Value condition, llvm::function_ref<Values()> then,
                llvm::function_ref<Values()> otherwise);
  /// Covers [from, to) by steps of `lanes`: whole steps without a mask (an `unroll` of 2 or more
  /// calls the body so many times in each trip), then at most one with a mask. Static bounds leave
  /// out what cannot happen.
  void vectorLoop(Value from, Value to, unsigned lanes, unsigned unroll,
                  llvm::function_ref<void(Value i, Value mask)> body);
  Values vectorLoop(Value from, Value to, unsigned lanes, unsigned unroll, ValueRange initial,
                    llvm::function_ref<Values(Value i, Value mask, ValueRange carried)> body);

  // --- Arguments of the kernel ---
  /// Tensors are numbered as in KernelArgs::data: inputs, then outputs.
  Value tensor(uint32_t number);
  Value inputPointer(uint32_t input) { return tensor(input); }
  Value outputPointer(uint32_t output) { return tensor(problem.problem().input_count + output); }
  /// Pointer of a problem value that is an input, an output or a literal.
  Value pointerOf(uint32_t value);
  /// Read-only bytes that become part of the kernel, 64-byte aligned.
  Value embed(llvm::ArrayRef<char> bytes);
  /// All elements of a literal, row-major, which become part of the kernel.
  Value embedLiteral(uint32_t value);
  /// Extent of an input or output; a constant where static.
  Value extent(uint32_t tensorNumber, uint32_t dimension);
  /// Any extent that is static or also an extent of some input or output.
  Value extentOf(const dvt_extent &extent);
  /// A polynomial over symbols that are extents of inputs or outputs.
  Value extentOf(const Extent &extent);
  Value workspace();     ///< shared by all workers
  Value workerScratch(); ///< this worker's own
  Value worker();

  // --- Threads of a device, see gpu/Threads.h for what becomes of these ---
  Value threadIndex(); ///< within the block, i64
  Value blockIndex();  ///< within the grid, i64
  /// Waits until all threads of the block are here; what they wrote is seen by all.
  void barrier();
  /// Memory that the threads of a block share, 16-byte aligned; undefined at first.
  Value sharedMemory(uint64_t bytes);

private:
  friend class DevicePhaseBuilder;
  friend class KernelModule;
  mlir::Location location();
  void unify(Value &a, Value &b);
  Value generic(Value pointer); ///< in the address space of all memory
  uint32_t deviceExtentArgument(uint32_t tensorNumber, uint32_t dimension) const;
  Value atEntry(llvm::function_ref<Value()> make);
  Value argsField(unsigned index, mlir::Type type);
  mlir::Type memoryType(dvt_type type);
  Value widen(dvt_type type, Value loaded);
  Value narrow(dvt_type type, Value value);
  Value narrowToBfloat(Value value);
  Value address(Value pointer, Value offset, mlir::Type element);

  mlir::Block &entry;
  unsigned vectorLanes;
  std::string failed;
  /// The function's arguments are those of gpu/DevicePhase.h instead of KernelArgs.
  bool onDevice = false;
  uint64_t sharedBytes = 0;
  std::vector<Value> tensors;
  llvm::DenseMap<uint32_t, Value> literals; ///< pointers of those embedded
  std::vector<std::vector<Value>> extents;
  Value dataArray, extentArray, workspacePointer, scratchPointer, threadNumber, blockNumber;
};

} // namespace dovetail::codegen
