// SPDX-License-Identifier: Apache-2.0
//
// A row to each block. COLUMNS comes from the manifest.
#include "rms_norm.h"

extern "C" __global__ void rms_norm(const float *x, const float *scale, float *y, float epsilon) {
  __shared__ float sums[THREADS];
  const float *row = x + (long long)blockIdx.x * COLUMNS;
  float sum = 0;
  for (int i = threadIdx.x; i < COLUMNS; i += THREADS)
    sum += square(row[i]);
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half)
      sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  float factor = rsqrtf(sums[0] / COLUMNS + epsilon);
  for (int i = threadIdx.x; i < COLUMNS; i += THREADS)
    y[(long long)blockIdx.x * COLUMNS + i] = row[i] * factor * scale[i];
}
