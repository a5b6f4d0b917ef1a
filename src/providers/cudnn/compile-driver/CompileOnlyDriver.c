/* SPDX-License-Identifier: Apache-2.0
 *
 * A stand-in for the CUDA driver (libcuda.so.1) on machines without one, for compiling only. cuDNN
 * loads every kernel that it compiles into the driver before it hands out the plan; this library
 * takes such kernels, counts them and forgets them. There is no device in it: initialising says so,
 * and nothing can be allocated, copied or launched. Its soname is the driver's, so whoever opens
 * that name after it was loaded gets it; only the process that compiles, and only one in which no
 * driver was found, may load it. `dvt_compile_only_driver` tells it from a driver.
 */
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* CUresult, as the driver numbers it. */
enum { SUCCESS = 0, INVALID_VALUE = 1, NO_DEVICE = 100, NOT_SUPPORTED = 801 };

/* The CUDA version whose kernels are taken, as cuDriverGetVersion states it. Every architecture
 * that cuDNN 9 knows is known to it. */
enum { DRIVER_VERSION = 13000 };

EXPORT const int dvt_compile_only_driver = 1;

/* Handles are never looked into; they only differ from NULL. */
static void *handleOf(int kind) { return (void *)(uintptr_t)(0x1000 * kind); }

EXPORT int cuInit(unsigned flags) {
  (void)flags;
  return NO_DEVICE;
}

EXPORT int cuDriverGetVersion(int *version) {
  if (!version)
    return INVALID_VALUE;
  *version = DRIVER_VERSION;
  return SUCCESS;
}

EXPORT int cuDeviceGetCount(int *count) {
  if (!count)
    return INVALID_VALUE;
  *count = 0;
  return NO_DEVICE;
}

EXPORT int cuGetErrorName(int error, const char **text) {
  if (!text)
    return INVALID_VALUE;
  *text = error == SUCCESS         ? "CUDA_SUCCESS"
          : error == INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE"
          : error == NOT_SUPPORTED ? "CUDA_ERROR_NOT_SUPPORTED"
                                   : "CUDA_ERROR_NO_DEVICE";
  return SUCCESS;
}

EXPORT int cuGetErrorString(int error, const char **text) {
  if (!text)
    return INVALID_VALUE;
  *text = error == SUCCESS ? "no error" : "there is no device here, only a driver to compile with";
  return SUCCESS;
}

/* ---- Kernels, taken without being run ---- */

EXPORT int cuLibraryLoadData(void **library, const void *code, void *jitOptions, void **jitValues,
                             unsigned jitCount, void *options, void **values, unsigned count) {
  (void)jitOptions, (void)jitValues, (void)jitCount, (void)options, (void)values, (void)count;
  if (!library || !code)
    return INVALID_VALUE;
  *library = handleOf(1);
  return SUCCESS;
}

EXPORT int cuLibraryUnload(void *library) {
  (void)library;
  return SUCCESS;
}

EXPORT int cuLibraryGetKernel(void **kernel, void *library, const char *name) {
  if (!kernel || !library || !name)
    return INVALID_VALUE;
  *kernel = handleOf(2);
  return SUCCESS;
}

EXPORT int cuKernelGetFunction(void **function, void *kernel) {
  if (!function || !kernel)
    return INVALID_VALUE;
  *function = handleOf(3);
  return SUCCESS;
}

EXPORT int cuKernelSetAttribute(int attribute, int value, void *kernel, int device) {
  (void)attribute, (void)value, (void)kernel, (void)device;
  return SUCCESS;
}

EXPORT int cuFuncSetAttribute(void *function, int attribute, int value) {
  (void)function, (void)attribute, (void)value;
  return SUCCESS;
}

/* ---- What needs a device ---- */

#define WITHOUT_DEVICE(F)                                                                          \
  F(cuCtxGetCurrent)                                                                               \
  F(cuCtxGetDevice)                                                                                \
  F(cuCtxGetLimit)                                                                                 \
  F(cuCtxPopCurrent)                                                                               \
  F(cuCtxPopCurrent_v2)                                                                            \
  F(cuCtxPushCurrent)                                                                              \
  F(cuCtxPushCurrent_v2)                                                                           \
  F(cuCtxSetCurrent)                                                                               \
  F(cuDeviceGet)                                                                                   \
  F(cuDeviceGetAttribute)                                                                          \
  F(cuDevicePrimaryCtxRelease)                                                                     \
  F(cuDevicePrimaryCtxReset)                                                                       \
  F(cuDevicePrimaryCtxRetain)                                                                      \
  F(cuFuncGetAttribute)                                                                            \
  F(cuGetProcAddress)                                                                              \
  F(cuGetProcAddress_v2)                                                                           \
  F(cuKernelGetAttribute)                                                                          \
  F(cuLaunchCooperativeKernel)                                                                     \
  F(cuLaunchKernel)                                                                                \
  F(cuLaunchKernelEx)                                                                              \
  F(cuLibraryLoadFromFile)                                                                         \
  F(cuLinkAddData)                                                                                 \
  F(cuLinkAddData_v2)                                                                              \
  F(cuLinkAddFile_v2)                                                                              \
  F(cuLinkComplete)                                                                                \
  F(cuLinkCreate)                                                                                  \
  F(cuLinkCreate_v2)                                                                               \
  F(cuLinkDestroy)                                                                                 \
  F(cuMemAlloc_v2)                                                                                 \
  F(cuMemcpyDtoH_v2)                                                                               \
  F(cuMemFree_v2)                                                                                  \
  F(cuModuleGetFunction)                                                                           \
  F(cuModuleGetGlobal_v2)                                                                          \
  F(cuModuleLoadData)                                                                              \
  F(cuModuleLoadDataEx)                                                                            \
  F(cuModuleLoadFatBinary)                                                                         \
  F(cuModuleUnload)                                                                                \
  F(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                                   \
  F(cuOccupancyMaxPotentialClusterSize)                                                            \
  F(cuStreamGetCtx)                                                                                \
  F(cuStreamSynchronize)                                                                           \
  F(cuTensorMapEncodeTiled)

#define DEFINE(name)                                                                               \
  EXPORT int name(void) { return NO_DEVICE; }
WITHOUT_DEVICE(DEFINE)
