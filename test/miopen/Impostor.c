/* SPDX-License-Identifier: Apache-2.0
 *
 * A library by MIOpen's name that is too old. */
#include <stddef.h>

__attribute__((visibility("default"))) int miopenGetVersion(size_t *major, size_t *minor,
                                                            size_t *patch) {
  *major = 1;
  *minor = 8;
  *patch = 1;
  return 0;
}
__attribute__((visibility("default"))) const char *miopenGetErrorString(int status) {
  return status == 0 ? "miopenStatusSuccess" : "miopenStatusUnknownError";
}
