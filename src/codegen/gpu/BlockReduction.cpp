// SPDX-License-Identifier: Apache-2.0
//
// A tree in shared memory: half of the threads that are left take over from the other half.
#include "codegen/gpu/BlockReduction.h"

namespace dovetail::codegen {
namespace {

/// One place for each thread in shared memory, for registers of one type.
struct SharedArray {
  SharedArray(Emitter &e, uint32_t threads, mlir::Type type)
      : e(e), type(type), pointer(e.sharedMemory(8 * uint64_t(threads))) {}

  dvt_type memoryType() const {
    return type.isF32()         ? DVT_F32
           : type.isInteger(64) ? DVT_I64
           : type.isInteger(1)  ? DVT_BOOL
                                : DVT_I32;
  }
  Value load(Value thread) { return e.load(memoryType(), pointer, thread); }
  void store(Value value, Value thread) { e.store(memoryType(), value, pointer, thread); }

  Emitter &e;
  mlir::Type type;
  Value pointer;
};

} // namespace

Values combineInBlock(Emitter &e, uint32_t threads, const Values &own,
                      llvm::function_ref<Values(const Values &, const Values &)> combine) {
  std::vector<SharedArray> arrays;
  for (Value value : own)
    arrays.emplace_back(e, threads, value.getType());
  Value thread = e.threadIndex();
  auto load = [&](Value from) {
    Values values;
    for (SharedArray &array : arrays)
      values.push_back(array.load(from));
    return values;
  };
  auto store = [&](const Values &values) {
    for (size_t i = 0; i < arrays.size(); ++i)
      arrays[i].store(values[i], thread);
  };
  store(own);
  e.barrier();
  for (uint32_t half = threads / 2; half > 0; half /= 2) {
    e.ifTrue(e.lt(thread, e.index(half)),
             [&] { store(combine(load(thread), load(e.add(thread, int64_t(half))))); });
    e.barrier();
  }
  return load(e.index(0));
}

} // namespace dovetail::codegen
