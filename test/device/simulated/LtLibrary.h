// SPDX-License-Identifier: Apache-2.0
//
// A double of cuBLASLt and hipBLASLt over the simulated device. It proves call discipline: handles
// and descriptors and their lifetimes, sizes of attributes, algorithms used for what they were
// asked for, layouts within device memory, alignment, workspace, streams. What it computes is the
// documented formula by plain loops with sums in f64. It does not prove a vendor's semantics: it
// was written after the published interface and was never compared with a library on a device.
//
// The entry points of both (CublasLtEntries.cpp, HipblasLtEntries.cpp) call it, and say by a table
// of their own what their numbers mean. The environment may ask for DOVETAIL_SIMULATED_LT_VERSION,
// or that the heuristics know no algorithm (DOVETAIL_SIMULATED_LT_NO_ALGORITHM).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "dovetail/provider.h"

namespace simulated::lt {

enum class Outcome { Success, NotInitialized, Invalid, NotSupported, Failed };
enum class Kind { Handle, Layout, Matmul, Preference };
enum class Attribute {
  BatchCount,
  BatchStride,
  TransA,
  TransB,
  Epilogue,
  BiasPointer,
  BiasType,
  Workspace,
  Reductions,
  AlignmentA,
  AlignmentB,
  AlignmentC,
  AlignmentD
};

/// What the numbers of one library mean.
struct Numbers {
  std::string prefix; ///< "cublasLt"
  std::string driver; ///< file of the simulated one
  /// By enumerator: meaning, and bytes of the value.
  std::map<std::pair<Kind, int>, std::pair<Attribute, size_t>> attributes;
  std::map<int, dvt_type> types;
  int computeFloat32, computeTf32, none, transpose;
  uint64_t everyReduction;   ///< all ways to add up parts of sums
  uint64_t defaultAlignment; ///< bytes of matrices, where the preference does not say
  size_t answerBytes, workspaceOffset, stateOffset, workspaceAlignment;
  int notSupported; ///< status
};

/// As an object's numbers are given; which count depends on its kind.
struct Object {
  Kind kind = Kind::Handle;
  int type = 0, compute = 0;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0;
  std::map<Attribute, uint64_t> values; ///< of attributes, those of four bytes sign-extended
};

class LtLibrary {
public:
  explicit LtLibrary(Numbers numbers) : numbers(std::move(numbers)) {}

  Outcome createHandle(void **handle);
  Outcome createLayout(void **layout, int type, uint64_t rows, uint64_t columns, int64_t leading);
  Outcome createMatmul(void **matmul, int compute, int scaleType);
  Outcome createPreference(void **preference);
  Outcome destroy(void *object, Kind kind);
  Outcome set(void *object, Kind kind, int attribute, const void *value, size_t bytes);
  /// Layouts of a, b, c and d.
  Outcome findAlgorithms(void *handle, void *matmul, void *const layouts[4], void *preference,
                         int most, void *answers, int *count);
  struct Call {
    void *handle, *matmul;
    const void *alpha, *beta;
    const void *data[4]; ///< of a, b, c and d
    void *layouts[4];
    const void *algorithm;
    void *workspace;
    size_t workspaceBytes;
    void *stream;
  };
  Outcome multiply(const Call &call);
  /// Whether the handle is one.
  Outcome checkHandle(void *handle);

  /// What the last refusal was about.
  const char *reason();
  uint64_t liveObjects();

private:
  struct Algorithm {
    std::string product; ///< that it was asked for
    uint64_t workspace;
    uint64_t alignments[4];
  };
  struct Product;

  Outcome refuse(Outcome outcome, const std::string &why);
  Outcome create(void **to, Object object);
  Object *find(void *object, Kind kind);
  Outcome read(Product &product, void *matmul, void *const layouts[4]);
  Outcome checkMemory(const Product &product, const Call &call, const Algorithm &algorithm);

  Numbers numbers;
  std::mutex mutex;
  std::map<uint64_t, Object> objects; ///< by numbers that are never used again
  std::vector<Algorithm> algorithms;
  uint64_t next = 0x17000001;
  std::string lastReason;
};

} // namespace simulated::lt
