// SPDX-License-Identifier: Apache-2.0
#define BLOCK_THREADS 256
#include "DeviceShim.h"

#define gelu gelu_of_device
#include "../kernels/gelu.cu"
#undef gelu

HOST_FORM(gelu, 3)
