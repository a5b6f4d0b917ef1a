// SPDX-License-Identifier: Apache-2.0
//
// Enumerators and sizes of cuBLASLt's interface, the same in 11, 12 and 13.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dovetail::blaslt::cublaslt {

constexpr int kFloat32 = 0, kFloat16 = 2, kBfloat16 = 14; ///< cudaDataType_t
constexpr int kComputeFloat32 = 68, kComputeTf32 = 77;    ///< cublasComputeType_t
constexpr int kTranspose = 1;                             ///< cublasOperation_t

constexpr int kLayoutBatchCount = 5, kLayoutBatchStride = 6;
constexpr int kMatmulTransA = 3, kMatmulTransB = 4, kMatmulEpilogue = 7, kMatmulBiasPointer = 8;
constexpr int kPreferenceWorkspace = 1, kPreferenceReductions = 3, kPreferenceAlignmentA = 5,
              kPreferenceAlignmentB = 6, kPreferenceAlignmentC = 7, kPreferenceAlignmentD = 8;
constexpr uint32_t kReductionInComputeType = 2;

// cublasLtMatmulHeuristicResult_t
constexpr size_t kAnswerBytes = 96, kWorkspaceOffset = 64, kStateOffset = 72;

} // namespace dovetail::blaslt::cublaslt
