// SPDX-License-Identifier: Apache-2.0
__device__ inline float square(float x) { return x * x; }
