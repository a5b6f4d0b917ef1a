// SPDX-License-Identifier: Apache-2.0
//
// Compares our numbers with cuBLASLt's own header; compiled only where there is one.
#include <cstddef>

#include <cublasLt.h>

#include "providers/blaslt/CublasltNumbers.h"
#include "providers/blaslt/Dialect.h"

namespace dovetail::blaslt::cublaslt {

#define SAME(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))

SAME(kFloat32, CUDA_R_32F);
SAME(kFloat16, CUDA_R_16F);
SAME(kBfloat16, CUDA_R_16BF);
SAME(kComputeFloat32, CUBLAS_COMPUTE_32F);
SAME(kComputeTf32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(kTranspose, CUBLAS_OP_T);
SAME(kLayoutBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(kLayoutBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(kMatmulTransA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(kMatmulTransB, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(kMatmulEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(kMatmulBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(kPreferenceWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(kPreferenceReductions, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(kPreferenceAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(kPreferenceAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(kPreferenceAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(kPreferenceAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(kReductionInComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME(kDefault, CUBLASLT_EPILOGUE_DEFAULT);
SAME(kRelu, CUBLASLT_EPILOGUE_RELU);
SAME(kBias, CUBLASLT_EPILOGUE_BIAS);
SAME(kGelu, CUBLASLT_EPILOGUE_GELU);
SAME(kRelu | kBias, CUBLASLT_EPILOGUE_RELU_BIAS);
SAME(kGelu | kBias, CUBLASLT_EPILOGUE_GELU_BIAS);
SAME(1, CUBLAS_STATUS_NOT_INITIALIZED);
SAME(3, CUBLAS_STATUS_ALLOC_FAILED);
SAME(7, CUBLAS_STATUS_INVALID_VALUE);
SAME(8, CUBLAS_STATUS_ARCH_MISMATCH);
SAME(11, CUBLAS_STATUS_MAPPING_ERROR);
SAME(13, CUBLAS_STATUS_EXECUTION_FAILED);
SAME(14, CUBLAS_STATUS_INTERNAL_ERROR);
SAME(15, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(16, CUBLAS_STATUS_LICENSE_ERROR);

static_assert(kAnswerBytes == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(kWorkspaceOffset == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(kStateOffset == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(offsetof(cublasLtMatmulHeuristicResult_t, algo) == 0);

// Enumerations travel as int, descriptors and handles as pointers.
static_assert(sizeof(cublasStatus_t) == sizeof(Status));
static_assert(sizeof(cudaDataType) == sizeof(int) && sizeof(cublasComputeType_t) == sizeof(int));
static_assert(sizeof(cublasLtMatmulDescAttributes_t) == sizeof(int));
static_assert(sizeof(cublasLtMatmulDesc_t) == sizeof(MatmulDescriptor));

} // namespace dovetail::blaslt::cublaslt
