// SPDX-License-Identifier: Apache-2.0
#define BLOCK_THREADS 128
#include "DeviceShim.h"

#define THREADS 128
#define COLUMNS 64 // of the test's model
#define rms_norm rms_norm_of_device
#include "../kernels/rms_norm.cu"
#undef rms_norm

HOST_FORM(rms_norm, 4)
