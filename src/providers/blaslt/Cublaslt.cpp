// SPDX-License-Identifier: Apache-2.0
//
// cuBLASLt 11 to 13. CublasltCheck.cpp compares the numbers with the library's header where one is
// found.
#include <algorithm>

#include "providers/blaslt/CublasltNumbers.h"
#include "providers/blaslt/Dialect.h"

namespace dovetail::blaslt {
namespace {

using namespace cublaslt;

/// A major version took a thousand up to 11, takes ten thousand since; 11.11 so is 12100.
std::string textOf(long version) {
  const bool isOld = version < 100000;
  const long major = isOld ? std::min(version / 1000, 11L) : version / 10000,
             rest = version - major * (isOld ? 1000 : 10000);
  return std::to_string(major) + "." + std::to_string(rest / 100) + "." +
         std::to_string(rest % 100);
}

long versionOf(void *function, LibraryHandle) {
  return static_cast<long>(reinterpret_cast<size_t (*)()>(function)());
}

} // namespace

const Dialect &dialect() {
  static const Dialect kDialect = {
      .provider = "cublaslt",
      .device = "cuda",
      .platform = "CUDA",
      .library = "cuBLASLt",
      .prefix = "cublasLt",
      .files = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"},
      .howToGet = "cuBLASLt 11 to 13 was not found; the CUDA toolkit and the Python package "
                  "nvidia-cublas (or nvidia-cublas-cu12) have it, put the folder with "
                  "libcublasLt.so into the library path",
      .leastVersion = 11000,
      .versionText = textOf,
      .versionOf = versionOf,
      .float32 = kFloat32,
      .float16 = kFloat16,
      .bfloat16 = kBfloat16,
      .computeFloat32 = kComputeFloat32,
      .computeTf32 = kComputeTf32,
      .transpose = kTranspose,
      .layout = {kLayoutBatchCount, kLayoutBatchStride},
      .matmul = {kMatmulTransA, kMatmulTransB, kMatmulEpilogue, kMatmulBiasPointer, kAbsent},
      .preference = {kPreferenceWorkspace,
                     kPreferenceReductions,
                     {kPreferenceAlignmentA, kPreferenceAlignmentB, kPreferenceAlignmentC,
                      kPreferenceAlignmentD}},
      .reductionsInFloat32 = kReductionInComputeType,
      .answerBytes = kAnswerBytes,
      .workspaceOffset = kWorkspaceOffset,
      .stateOffset = kStateOffset,
      .workspaceAlignment = 256,
      .isDeterministic = true,
      .statusNames = {{1, "CUBLAS_STATUS_NOT_INITIALIZED"},
                      {3, "CUBLAS_STATUS_ALLOC_FAILED"},
                      {7, "CUBLAS_STATUS_INVALID_VALUE"},
                      {8, "CUBLAS_STATUS_ARCH_MISMATCH"},
                      {11, "CUBLAS_STATUS_MAPPING_ERROR"},
                      {13, "CUBLAS_STATUS_EXECUTION_FAILED"},
                      {14, "CUBLAS_STATUS_INTERNAL_ERROR"},
                      {15, "CUBLAS_STATUS_NOT_SUPPORTED"},
                      {16, "CUBLAS_STATUS_LICENSE_ERROR"}},
      .driver = {{"libcuda.so.1"},
                 "cuMemAlloc_v2",
                 "cuMemFree_v2",
                 "cuMemsetD8Async",
                 "cuEventCreate",
                 "cuEventDestroy_v2",
                 "cuEventRecord",
                 "cuEventSynchronize",
                 "cuEventElapsedTime"},
  };
  return kDialect;
}

} // namespace dovetail::blaslt
