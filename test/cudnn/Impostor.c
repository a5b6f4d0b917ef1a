/* SPDX-License-Identifier: Apache-2.0
 *
 * A library by cuDNN's name that is too old to plan without a device. */
#include <stddef.h>

__attribute__((visibility("default"))) size_t cudnnGetVersion(void) { return 90501; }
