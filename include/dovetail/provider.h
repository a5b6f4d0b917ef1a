/* SPDX-License-Identifier: Apache-2.0
 *
 * The plug-in door: how a provider of kernels is found, asked and used.
 *
 * A provider is a shared object that exports dvt_provider_entry(). It is given problems (a set of
 * tensor ops made self-contained) and answers with candidates; a chosen candidate is compiled (may
 * need a tool chain), prepared (loads the kernel and packs constants; needs no tool chain), run and
 * destroyed. A provider neither decides nor remembers. Every struct starts with its size in bytes,
 * so that either side may be older: read only fields that lie inside struct_size, and treat missing
 * ones as zero. An op or attribute added later changes no struct: a provider refuses ops whose name
 * or version it does not know.
 *
 * Op names are ONNX op names in snake case (Conv -> conv, MatMul -> mat_mul, HardSwish ->
 * hard_swish, PRelu -> p_relu), with operands and attributes exactly as in the ONNX op set version
 * given with the op, all defaults filled in and auto_pad resolved into pads. Own ops carry the
 * prefix "dvt_": dvt_reorder changes layout only.
 *
 * Threads: create, info, propose, compile and prepare are called by one thread at a time for one
 * provider, but for prepare where dvt_provider_info.concurrent_prepare allows more; run may be
 * called by several threads at once on one kernel, each with its own workspace and outputs. Strings
 * and arrays passed in live until the call returns unless stated otherwise.
 */
#ifndef DOVETAIL_PROVIDER_H
#define DOVETAIL_PROVIDER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DVT_PROVIDER_ABI_VERSION 1u
#define DVT_NO_VALUE UINT32_MAX

/* Element types, numbered as ONNX TensorProto.DataType. */
typedef enum dvt_type {
  DVT_UNDEFINED = 0,
  DVT_F32 = 1,
  DVT_U8 = 2,
  DVT_I8 = 3,
  DVT_U16 = 4,
  DVT_I16 = 5,
  DVT_I32 = 6,
  DVT_I64 = 7,
  DVT_STRING = 8,
  DVT_BOOL = 9, /* one byte, 0 or 1 */
  DVT_F16 = 10,
  DVT_F64 = 11,
  DVT_U32 = 12,
  DVT_U64 = 13,
  DVT_BF16 = 16,
  DVT_U4 = 21, /* two to a byte, low nibble first */
  DVT_I4 = 22
} dvt_type;

typedef enum dvt_code {
  DVT_OK = 0,
  DVT_UNSUPPORTED = 1, /* the provider has no kernel for this; data, not an error */
  DVT_BAD_INPUT = 2,   /* the caller's data is wrong */
  DVT_UNAVAILABLE = 3, /* a library, tool or device is missing or too old */
  DVT_FAILED = 4,      /* building or running went wrong */
  DVT_OUT_OF_MEMORY = 5,
  DVT_CANCELLED = 6
} dvt_code;

/* Filled by a call that returns other than DVT_OK: what was found, what is supported, what to try.
 */
typedef struct dvt_error {
  char message[1024]; /* zero-terminated */
} dvt_error;

typedef enum dvt_memory_kind {
  DVT_MEMORY_HOST = 0,
  DVT_MEMORY_DEVICE = 1,
  DVT_MEMORY_PINNED = 2
} dvt_memory_kind;

/* ---- Problems ---- */

typedef struct dvt_extent {
  int64_t value;      /* >= 0 when static, -1 when symbolic */
  const char *symbol; /* expression text when symbolic, such as "N" or "2*H+1"; NULL when static */
  int64_t min, max;   /* inclusive bounds of a symbolic extent */
  int64_t divisor;    /* a symbolic extent is a multiple of this, at least 1 */
} dvt_extent;

enum {
  DVT_VALUE_CONSTANT = 1u << 0, /* the same bytes at every run, handed over by prepare */
  DVT_VALUE_LITERAL = 1u << 1,  /* constant whose bytes are part of the problem, see literal */
  DVT_VALUE_UNIFORM = 1u << 2   /* constant, all elements equal; literal holds one element */
};

typedef struct dvt_value {
  uint32_t struct_size;
  dvt_type type;
  uint32_t flags;
  uint32_t rank;
  const dvt_extent *extents; /* rank of them, in logical order */
  const void
      *literal; /* DVT_VALUE_LITERAL: all elements, row-major; DVT_VALUE_UNIFORM: one element */
  uint64_t literal_bytes;
  const int64_t *strides; /* in elements, when the caller binds strided memory; NULL when dense */
  int32_t may_alias;      /* index of an input whose memory this output may share, or -1 */
} dvt_value;

typedef enum dvt_attribute_kind {
  DVT_ATTRIBUTE_INT = 1,
  DVT_ATTRIBUTE_FLOAT = 2,
  DVT_ATTRIBUTE_STRING = 3,
  DVT_ATTRIBUTE_INTS = 4,
  DVT_ATTRIBUTE_FLOATS = 5
} dvt_attribute_kind;

typedef struct dvt_attribute {
  uint32_t struct_size;
  dvt_attribute_kind kind;
  const char *name;
  int64_t i;
  double f;
  const char *s;
  const int64_t *ints;
  const double *floats;
  uint64_t count; /* of ints or floats */
} dvt_attribute;

typedef struct dvt_op {
  uint32_t struct_size;
  uint32_t
      version; /* ONNX op set version at which the op's definition last changed; 1 for own ops */
  const char *name;
  const uint32_t *inputs; /* value indices; DVT_NO_VALUE where an optional operand is absent */
  const uint32_t *outputs;
  const dvt_attribute *attributes; /* sorted by name */
  uint32_t input_count, output_count, attribute_count;
} dvt_op;

typedef struct dvt_problem {
  uint32_t struct_size;
  uint32_t value_count, op_count, input_count, output_count;
  const dvt_value *values;
  const dvt_op *ops;      /* in an order in which they can be evaluated */
  const uint32_t *inputs; /* value indices, constants that are not literals included */
  const uint32_t *outputs;
  const char *text; /* the canonical one-line form: the problem's identity */
} dvt_problem;

typedef struct dvt_target {
  uint32_t struct_size;
  uint32_t threads;
  const char *device;       /* "cpu", "cuda" or "rocm" */
  const char *architecture; /* "x86-64", "sm_90", "gfx942" */
  const char *features;     /* comma-separated, sorted: "avx2,avx512bw,avx512f,...,fma" */
  uint64_t l1_bytes, l2_bytes, l3_bytes;
  const char *description; /* what is known of the device, as a JSON object; NULL on the CPU */
} dvt_target;

/* ---- Candidates ---- */

typedef enum dvt_packing {
  DVT_PACKING_NONE = 0,
  DVT_PACKING_PORTABLE =
      1, /* packed bytes may be stored and moved (same provider version and target) */
  DVT_PACKING_AT_LOAD = 2 /* must be made in the process that runs; must not move */
} dvt_packing;

typedef enum dvt_threading {
  DVT_THREADING_SERIAL = 0,
  DVT_THREADING_PARALLEL_FOR = 1, /* uses dvt_run_args.parallel only */
  DVT_THREADING_OPENMP = 2        /* brings an OpenMP team */
} dvt_threading;

/* Layout text: logical dimensions named a, b, c, ... in physical order, outermost first; upper case
 * where inner blocks of that dimension follow as <size><letter>. "abcd" is NCHW for an image,
 * "acdb" NHWC, "aBcd16b" nChw16c. The empty string is row-major. Blocked extents are rounded up and
 * the padding is zero. */
typedef struct dvt_candidate {
  uint32_t struct_size;
  const char *algorithm; /* stable name, family first: "direct:brgconv:avx512_core"; never a list
                            position */
  const char *const *input_layouts;  /* one for each problem input; NULL or "" is row-major */
  const char *const *output_layouts; /* one for each problem output */
  uint64_t workspace_bytes; /* upper bound over the extents of the problem; UINT64_MAX: known after
                               prepare */
  uint64_t packed_bytes;    /* memory held by packed constants, for the plan's accounts */
  dvt_packing packing;
  dvt_threading threading;
  const char *numerics;    /* class of rounding: "f32", "f32-winograd", "bf16", "int8", ... */
  int32_t deterministic;   /* same inputs and target give the same bits */
  int32_t runtime_extents; /* one kernel serves every value of the symbolic extents */
  double estimate_micros;  /* negative when unknown */
  /* 0 when unknown. code_bytes: private memory of a prepared kernel beside packed constants, such
   * as code made at run time and descriptors; kernels of equal problems share it. */
  uint32_t registers, shared_bytes, scratch_bytes, code_bytes;
  /* Where operands, results, constants and workspace lie: DVT_MEMORY_DEVICE for a target that is a
   * device, DVT_MEMORY_HOST otherwise. */
  dvt_memory_kind memory;
  /* Private memory that comes with the first kernel of this kind in a process, such as relocations
   * of a library and code that all its kernels share. Of the candidates of one provider and group
   * that a plan uses the largest counts, once. 0 when unknown. */
  uint64_t process_bytes;
  const char *process_group; /* such as the library of several; NULL: the provider has only one */
} dvt_candidate;

/* What propose calls: once for each candidate, and once for each thing that fell out, with its
 * reason. */
typedef struct dvt_candidate_sink {
  uint32_t struct_size;
  void *context;
  void (*candidate)(void *context, const dvt_candidate *candidate);
  void (*refusal)(void *context, const char *algorithm, const char *reason);
} dvt_candidate_sink;

typedef struct dvt_bytes_sink {
  uint32_t struct_size;
  void *context;
  void (*bytes)(void *context, const void *data,
                uint64_t size); /* may be called several times: appended */
} dvt_bytes_sink;

/* ---- Running ---- */

typedef struct dvt_tensor {
  void *data;             /* 64-byte aligned unless strided */
  const int64_t *extents; /* logical */
  const int64_t *strides; /* in elements; NULL when dense in the candidate's layout */
  uint32_t rank;
  dvt_type type;
  dvt_memory_kind memory;
} dvt_tensor;

/* The host's parallel-for: calls body(argument, begin, end, worker) with disjoint ranges that cover
 * [0, count); worker < threads. Returns when all are done. body must not throw and must not call
 * run itself. */
typedef struct dvt_parallel {
  uint32_t struct_size;
  uint32_t threads;
  void *context;
  void (*run)(void *context, int64_t count,
              void (*body)(void *argument, int64_t begin, int64_t end, uint32_t worker),
              void *argument);
} dvt_parallel;

typedef struct dvt_run_args {
  uint32_t struct_size;
  uint32_t input_count, output_count;
  const dvt_tensor *inputs; /* in the order of problem->inputs */
  dvt_tensor *outputs;      /* in the order of problem->outputs; data is NULL where the extents are
                               data-dependent */
  void *workspace;          /* 64-byte aligned */
  uint64_t workspace_bytes;
  const dvt_parallel *parallel;
  /* The device API's stream; NULL on the CPU. Kernels for a device give their work to it and
   * return; all operands, workspace included, are addresses in the device's memory. Its context is
   * current for the calling thread, here as in prepare and destroy_kernel. */
  void *stream;
  /* Data-dependent outputs: states rank extents of an output and returns its memory, or NULL. The
   * extents are copied by the callee. */
  void *output_context;
  void *(*allocate_output)(void *output_context, uint32_t output, uint32_t rank,
                           const int64_t *extents);
} dvt_run_args;

typedef struct dvt_prepare_args {
  uint32_t struct_size;
  const void *const *constants; /* one for each problem input: its bytes in the candidate's layout
                                   (row-major where that is not stated), or NULL. They stay mapped
                                   and valid until the kernel is destroyed. Host memory, for
                                   devices, too: run then gets the address on the device. */
  const void *kernel;           /* what compile gave; stays valid until the kernel is destroyed */
  uint64_t kernel_bytes;
  uint32_t threads;
  const dvt_parallel *parallel; /* for packing; NULL: the calling thread packs alone, as others are
                                   at work beside it */
  /* Memory for packed constants: zero-filled, 64-byte aligned, the host's until the kernel is
   * destroyed; NULL where there is none left. The call-back is for prepare only and may be NULL:
   * the provider then uses memory of its own. All kernels of a model share one region that way. */
  void *memory_context;
  void *(*allocate)(void *memory_context, uint64_t bytes);
  double *packing_micros; /* the time spent on packing is added to it; may be NULL */
  /* Not 0: the bytes at kernel lie, aligned to 64, in memory that may be executed and that no one
   * writes to, such as a mapped file; code needs no copy. */
  int32_t kernel_is_executable;
} dvt_prepare_args;

/* ---- The provider ---- */

typedef struct dvt_library_info {
  uint32_t struct_size;
  const char *name;    /* "oneDNN" */
  const char *version; /* "3.2.0"; empty when not loaded */
  const char *path;    /* file it was loaded from; empty when not loaded */
  const char *missing; /* why it is not there and how to get it; empty when loaded */
} dvt_library_info;

typedef struct dvt_provider_info {
  uint32_t struct_size;
  const char *name;
  /* Provider and library versions together; part of every cache key. What follows a '#' tells apart
   * how kernels are made: measurements are not shared across it, but kernels load all the same. */
  const char *version;
  const dvt_library_info *libraries;
  uint32_t library_count;
  int32_t can_compile; /* 0 where only prepare and run are there */
  /* Not 0: several threads may call prepare at once, each with arguments and memory of its own. */
  int32_t concurrent_prepare;
} dvt_provider_info;

/* What the host gives at creation. library_path: folders separated by ':' in which vendor libraries
 * are looked for before the system's own; never the current folder. */
typedef struct dvt_host {
  uint32_t struct_size;
  const char *library_path;
  void *log_context;
  void (*log)(void *log_context, int level,
              const char *message); /* level 0 debug .. 3 error; may be NULL */
  /* Not 0: the host runs plans and makes none. Vendor libraries may then be opened when a candidate
   * first asks for them, and info need not tell of them. */
  int32_t runs_only;
  /* Drivers of devices in place of the system's: "cuda=PATH:rocm=PATH"; may be NULL. */
  const char *device_drivers;
} dvt_host;

typedef struct dvt_provider dvt_provider;
typedef struct dvt_kernel dvt_kernel;

typedef struct dvt_provider_api {
  uint32_t struct_size;
  uint32_t abi_version; /* DVT_PROVIDER_ABI_VERSION the provider was built with */
  const char *name;

  dvt_code (*create)(const dvt_host *host, dvt_provider **provider, dvt_error *error);
  void (*destroy)(dvt_provider *provider);
  /* Owned by the provider, valid until destroy. */
  const dvt_provider_info *(*info)(dvt_provider *provider);

  /* DVT_UNSUPPORTED with a reason where there is nothing to offer. Must give the same list in every
   * process. */
  dvt_code (*propose)(dvt_provider *provider, const dvt_target *target, const dvt_problem *problem,
                      const dvt_candidate_sink *sink, dvt_error *error);
  /* NULL where kernels need no compiling: prepare then gets no kernel bytes. The candidate is given
   * back as it was proposed, possibly in another process. */
  dvt_code (*compile)(dvt_provider *provider, const dvt_target *target, const dvt_problem *problem,
                      const dvt_candidate *candidate, const dvt_bytes_sink *sink, dvt_error *error);
  /* Refuses with DVT_UNSUPPORTED a candidate that propose would not give. */
  dvt_code (*prepare)(dvt_provider *provider, const dvt_target *target, const dvt_problem *problem,
                      const dvt_candidate *candidate, const dvt_prepare_args *args,
                      dvt_kernel **kernel, dvt_error *error);
  /* Bytes of workspace each concurrent run needs. */
  uint64_t (*workspace_bytes)(const dvt_kernel *kernel);
  dvt_code (*run)(dvt_kernel *kernel, const dvt_run_args *args, dvt_error *error);
  void (*destroy_kernel)(dvt_kernel *kernel);
} dvt_provider_api;

#if defined(__GNUC__)
#define DVT_EXPORT __attribute__((visibility("default")))
#else
#define DVT_EXPORT
#endif

/* The one symbol a plug-in exports. host_abi_version is the door's version of the caller; returns
 * NULL when the plug-in cannot serve it. */
typedef const dvt_provider_api *(*dvt_provider_entry_fn)(uint32_t host_abi_version);
DVT_EXPORT const dvt_provider_api *dvt_provider_entry(uint32_t host_abi_version);

#ifdef __cplusplus
}
#endif

#endif /* DOVETAIL_PROVIDER_H */
