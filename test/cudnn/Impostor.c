/* SPDX-License-Identifier: Apache-2.0
 *
 * A library by cuDNN's name that has next to nothing of it. */
#include <stddef.h>

__attribute__((visibility("default"))) size_t cudnnGetVersion(void) { return 90501; }
