/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions with names that BLAS libraries have and call themselves, which only count their calls.
 * A test makes them known to the whole process, as a program linked with a BLAS of its own does.
 */
static int calls;

int dvt_test_impostor_calls(void) { return calls; }

#define IMPOSTOR(name)                                                                             \
  void name(void) { ++calls; }

IMPOSTOR(cblas_sgemm)
IMPOSTOR(cblas_sgemv)
IMPOSTOR(cblas_xerbla)
IMPOSTOR(sgemm_)
IMPOSTOR(sgemv_)
IMPOSTOR(xerbla_)
IMPOSTOR(bli_sgemm)
IMPOSTOR(bli_sgemm_ex)
IMPOSTOR(bli_sgemv_ex)
IMPOSTOR(bli_gemmsup)
IMPOSTOR(bli_gemm_ex)
IMPOSTOR(bli_init_auto)
IMPOSTOR(blas_memory_alloc)
IMPOSTOR(blas_memory_free)
IMPOSTOR(exec_blas)
IMPOSTOR(libxsmm_xmmdispatch)
