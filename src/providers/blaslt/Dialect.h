// SPDX-License-Identifier: Apache-2.0
//
// The C interface that cuBLASLt and hipBLASLt share, declared here so that no header of either is
// needed, and what tells the two apart: names, numbers of enumerators, sizes of structs. Each
// plug-in is made of the same sources and one dialect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dovetail::blaslt {

using Status = int; ///< 0 is success
using LibraryHandle = void *;
using DeviceStream = void *;
using LayoutDescriptor = void *;
using MatmulDescriptor = void *;
using PreferenceDescriptor = void *;

/// Bits of an epilogue, alike in both; Default stands alone.
enum Epilogue : uint32_t { kDefault = 1, kRelu = 2, kBias = 4, kGelu = 32 };

constexpr int kAbsent = -1; ///< in place of an attribute that a library does not have

struct Dialect {
  const char *provider; ///< name of the plug-in
  const char *device;   ///< of the targets that it serves
  const char *platform; ///< the same in messages
  const char *library;
  const char *prefix;              ///< of the functions' names
  std::vector<const char *> files; ///< by which the library is found, the newest first
  const char *howToGet;

  // Versions are numbers of the library's own making.
  long leastVersion;
  std::string (*versionText)(long version);
  /// `function` is GetVersion. 0: the library says it only to who has a handle, and `handle` is
  /// null.
  long (*versionOf)(void *function, LibraryHandle handle);

  int float32, float16, bfloat16; ///< element types
  int computeFloat32, computeTf32;
  int transpose; ///< of the attributes transA and transB, whose default is none
  struct {
    int batchCount, batchStride; ///< int32_t, int64_t
  } layout;
  struct {
    int transA, transB, epilogue; ///< int32_t, int32_t, uint32_t
    int biasPointer, biasType;    ///< const void *, int32_t
  } matmul;
  struct {
    int workspaceBytes; ///< uint64_t
    int reductions;     ///< uint32_t: allowed ways to add up parts of sums
    int alignments[4];  ///< uint32_t, bytes: of A, B, C and D
  } preference;
  uint32_t reductionsInFloat32; ///< a value of `reductions`: parts of sums stay in f32

  /// Of the struct that holds one answer of the heuristics; an algorithm is at its beginning.
  size_t answerBytes, workspaceOffset, stateOffset;
  size_t workspaceAlignment; ///< bytes
  bool isDeterministic;      ///< the same bits in every run on one kind of device
  std::vector<std::pair<Status, const char *>> statusNames;

  /// Of the device's driver, by which algorithms are timed.
  struct {
    std::vector<const char *> files;
    const char *allocate, *release, *fill;
    const char *createEvent, *destroyEvent, *record, *wait, *elapsed;
  } driver;
};

/// The one of this plug-in.
const Dialect &dialect();

/// The functions used, without their prefix; all return a Status. Element and compute types and
/// attributes are enumerators of the dialect.
#define DOVETAIL_BLASLT_FUNCTIONS(F)                                                               \
  F(Create, (LibraryHandle *))                                                                     \
  F(Destroy, (LibraryHandle))                                                                      \
  F(MatrixLayoutCreate,                                                                            \
    (LayoutDescriptor *, int type, uint64_t rows, uint64_t columns, int64_t leading))              \
  F(MatrixLayoutDestroy, (LayoutDescriptor))                                                       \
  F(MatrixLayoutSetAttribute, (LayoutDescriptor, int attribute, const void *value, size_t bytes))  \
  F(MatmulDescCreate, (MatmulDescriptor *, int computeType, int scaleType))                        \
  F(MatmulDescDestroy, (MatmulDescriptor))                                                         \
  F(MatmulDescSetAttribute, (MatmulDescriptor, int attribute, const void *value, size_t bytes))    \
  F(MatmulPreferenceCreate, (PreferenceDescriptor *))                                              \
  F(MatmulPreferenceDestroy, (PreferenceDescriptor))                                               \
  F(MatmulPreferenceSetAttribute,                                                                  \
    (PreferenceDescriptor, int attribute, const void *value, size_t bytes))                        \
  F(MatmulAlgoGetHeuristic,                                                                        \
    (LibraryHandle, MatmulDescriptor, LayoutDescriptor a, LayoutDescriptor b, LayoutDescriptor c,  \
     LayoutDescriptor d, PreferenceDescriptor, int most, void *answers, int *count))               \
  F(Matmul, (LibraryHandle, MatmulDescriptor, const void *alpha, const void *a,                    \
             LayoutDescriptor layoutA, const void *b, LayoutDescriptor layoutB, const void *beta,  \
             const void *c, LayoutDescriptor layoutC, void *d, LayoutDescriptor layoutD,           \
             const void *algorithm, void *workspace, size_t workspaceBytes, DeviceStream))

} // namespace dovetail::blaslt
