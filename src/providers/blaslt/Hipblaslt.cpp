// SPDX-License-Identifier: Apache-2.0
//
// hipBLASLt from 0.6 (ROCm 6.0) on, by its published header; earlier ones number types otherwise.
#include "providers/blaslt/Dialect.h"

namespace dovetail::blaslt {
namespace {

/// hipblasLtMatmulHeuristicResult_t: an algorithm of 16 bytes and a size, then as in cuBLASLt.
struct Answer {
  uint8_t algorithm[16];
  size_t largestWorkspace;
  size_t workspaceBytes;
  Status state;
  float waves;
  int reserved[4];
};

std::string textOf(long version) {
  return std::to_string(version / 100000) + "." + std::to_string(version % 100000 / 100) + "." +
         std::to_string(version % 100);
}

long versionOf(void *function, LibraryHandle handle) {
  int version = 0;
  const auto call = reinterpret_cast<Status (*)(LibraryHandle, int *)>(function);
  return handle && call(handle, &version) == 0 ? version : 0;
}

} // namespace

const Dialect &dialect() {
  static const Dialect kDialect = {
      .provider = "hipblaslt",
      .device = "rocm",
      .platform = "ROCm",
      .library = "hipBLASLt",
      .prefix = "hipblasLt",
      .files = {"libhipblaslt.so.1", "libhipblaslt.so.0"},
      .howToGet = "hipBLASLt 0.6 or later was not found; ROCm from 6.0 on has it (package "
                  "hipblaslt), put the folder with libhipblaslt.so into the library path",
      .leastVersion = 600,
      .versionText = textOf,
      .versionOf = versionOf,
      .float32 = 0,
      .float16 = 2,
      .bfloat16 = 14,
      .computeFloat32 = 2,
      .computeTf32 = 6,
      .transpose = 112,
      .layout = {0, 1},
      .matmul = {0, 1, 2, 3, 4},
      .preference = {1, kAbsent, {kAbsent, kAbsent, kAbsent, kAbsent}},
      .reductionsInFloat32 = 0,
      .answerBytes = sizeof(Answer),
      .workspaceOffset = offsetof(Answer, workspaceBytes),
      .stateOffset = offsetof(Answer, state),
      .workspaceAlignment = 16,
      .isDeterministic = false, // nothing is promised
      .statusNames = {{1, "HIPBLAS_STATUS_NOT_INITIALIZED"},
                      {2, "HIPBLAS_STATUS_ALLOC_FAILED"},
                      {3, "HIPBLAS_STATUS_INVALID_VALUE"},
                      {4, "HIPBLAS_STATUS_MAPPING_ERROR"},
                      {5, "HIPBLAS_STATUS_EXECUTION_FAILED"},
                      {6, "HIPBLAS_STATUS_INTERNAL_ERROR"},
                      {7, "HIPBLAS_STATUS_NOT_SUPPORTED"},
                      {8, "HIPBLAS_STATUS_ARCH_MISMATCH"},
                      {9, "HIPBLAS_STATUS_HANDLE_IS_NULLPTR"},
                      {10, "HIPBLAS_STATUS_INVALID_ENUM"},
                      {11, "HIPBLAS_STATUS_UNKNOWN"}},
      .driver = {{"libamdhip64.so.7", "libamdhip64.so.6"},
                 "hipMalloc",
                 "hipFree",
                 "hipMemsetD8Async",
                 "hipEventCreateWithFlags",
                 "hipEventDestroy",
                 "hipEventRecord",
                 "hipEventSynchronize",
                 "hipEventElapsedTime"},
  };
  return kDialect;
}

} // namespace dovetail::blaslt
