/* SPDX-License-Identifier: Apache-2.0
 *
 * Dovetail for programs: load a compiled model, bind tensors, run; and compile one. Plain C, no
 * exceptions, no globals.
 *
 * A model is loaded once and shared; each thread that runs it has a session of its own. Everything
 * a call returns is owned by the model or session it came from unless stated otherwise. Calls that
 * can fail return a code and fill the error, which may be NULL. Structs start with their size: set
 * struct_size and leave the rest zero for defaults.
 *
 *   dvt_model *model; dvt_session *session; dvt_tensor out;
 *   dvt_model_load("resnet50.dvt", NULL, &model, &error);
 *   dvt_session_create(model, &session, &error);
 *   dvt_session_bind_input(session, 0, &image, &error);
 *   dvt_session_run(session, &error);
 *   dvt_session_output(session, 0, &out, &error);
 */
#ifndef DOVETAIL_DOVETAIL_H
#define DOVETAIL_DOVETAIL_H

#include "dovetail/provider.h" /* dvt_type, dvt_code, dvt_error, dvt_tensor, dvt_parallel, DVT_EXPORT */

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0" */
DVT_EXPORT const char *dvt_version(void);

/* ---- Loading ---- */

typedef struct dvt_model dvt_model;
typedef struct dvt_session dvt_session;

/* What all of libdovetail may ask of the host program. Copied by the call it is given to; contexts
 * must stay valid as long as what was made with them. */
typedef struct dvt_load_options {
  uint32_t struct_size;
  uint32_t threads;        /* 0: as compiled, but no more than this process may use */
  const char *plugin_path; /* folders of provider plug-ins, separated by ':'; NULL: lib/dovetail of
                              this library */
  const char *vendor_path; /* folders searched for vendor libraries before the system's own; NULL:
                            * those named when this library was built */
  void *log_context;
  void (*log)(void *log_context, int level, const char *message); /* level 0 debug .. 3 error */
  int32_t log_level;            /* lowest level that is passed on; 0 is all */
  int32_t skip_weight_check;    /* do not compare weights with their digests */
  const dvt_parallel *parallel; /* the host's threads; NULL: an OpenMP team */
  void *memory_context;
  void *(*allocate)(void *memory_context, uint64_t bytes, uint64_t alignment);
  void (*release)(void *memory_context, void *memory, uint64_t bytes);
} dvt_load_options;

DVT_EXPORT dvt_code dvt_model_load(const char *path, const dvt_load_options *options,
                                   dvt_model **model, dvt_error *error);
/* Sessions keep what they need of the model: it may be released before them. */
DVT_EXPORT void dvt_model_release(dvt_model *model);

/* ---- Looking at a model ---- */

typedef struct dvt_port {
  uint32_t struct_size;
  dvt_type type;
  const char *name;
  uint32_t rank;
  const int64_t *extents;          /* -1 where known only at run time */
  const char *const *extent_texts; /* "N", "2*H+1", "224" */
} dvt_port;

DVT_EXPORT uint32_t dvt_model_input_count(const dvt_model *model);
DVT_EXPORT uint32_t dvt_model_output_count(const dvt_model *model);
DVT_EXPORT dvt_code dvt_model_input(const dvt_model *model, uint32_t index, dvt_port *port,
                                    dvt_error *error);
DVT_EXPORT dvt_code dvt_model_output(const dvt_model *model, uint32_t index, dvt_port *port,
                                     dvt_error *error);
/* What the model was compiled to carry from one run to the next, see dvt_compile_options::states.
 */
typedef struct dvt_state {
  uint32_t struct_size;
  uint32_t input, output; /* the output becomes the input: for dvt_session_feed_back */
  int32_t grows; /* the output is the input and something behind it, along one axis; fed back
                    they share memory, and a run writes only what is new */
} dvt_state;

DVT_EXPORT uint32_t dvt_model_state_count(const dvt_model *model);
DVT_EXPORT dvt_code dvt_model_state(const dvt_model *model, uint32_t index, dvt_state *state,
                                    dvt_error *error);
/* Identity of plan and kernels, 32 hexadecimal digits. */
DVT_EXPORT const char *dvt_model_digest(const dvt_model *model);
/* What the model was compiled for, and threads in use here. */
DVT_EXPORT const char *dvt_model_target(const dvt_model *model);
DVT_EXPORT uint32_t dvt_model_threads(const dvt_model *model);

typedef struct dvt_step {
  uint32_t struct_size;
  const char *label;   /* names of the ONNX nodes it covers */
  const char *problem; /* text of its problem; empty for steps without a kernel */
  const char *planned; /* provider:algorithm chosen when compiling */
  const char *running; /* what runs here; empty: bound at first execution */
  const char *note;    /* why they differ; empty where they do not */
  double micros;       /* measured when compiling; negative when it was not */
} dvt_step;

/* Those of the model, followed by those of bodies of control flow. */
DVT_EXPORT uint32_t dvt_model_step_count(const dvt_model *model);
DVT_EXPORT dvt_code dvt_model_step(const dvt_model *model, uint32_t index, dvt_step *step,
                                   dvt_error *error);

/* ---- Running ---- */

DVT_EXPORT dvt_code dvt_session_create(dvt_model *model, dvt_session **session, dvt_error *error);
DVT_EXPORT void dvt_session_release(dvt_session *session);

/* Lends memory to an input until it is bound again or the session is released. The tensor struct
 * and its arrays are copied. Strides are in elements; NULL is dense row-major. Memory that is
 * strided or not aligned to 64 bytes is copied at each run. */
DVT_EXPORT dvt_code dvt_session_bind_input(dvt_session *session, uint32_t index,
                                           const dvt_tensor *tensor, dvt_error *error);
/* Lends memory to an output, which must have the extents that a run gives. tensor NULL: the
 * session's own memory. */
DVT_EXPORT dvt_code dvt_session_bind_output(dvt_session *session, uint32_t index,
                                            const dvt_tensor *tensor, dvt_error *error);
/* State: after each run, what was this output becomes this input, without a copy. Bind the input
 * once to start (with an extent of 0 for an empty cache). Of a pair that grows, see dvt_state, the
 * output comes with strides. */
DVT_EXPORT dvt_code dvt_session_feed_back(dvt_session *session, uint32_t output, uint32_t input,
                                          dvt_error *error);

/* Makes the memory of a state that grows large enough for this length of the axis along which it
 * does. Without it the memory doubles when it is full, which copies it. */
DVT_EXPORT dvt_code dvt_session_reserve_state(dvt_session *session, uint32_t input, int64_t length,
                                              dvt_error *error);

DVT_EXPORT dvt_code dvt_session_run(dvt_session *session, dvt_error *error);
/* As run; micros receives the time of each of the model's steps, count of them at most. That of a
 * step of a body is of all its runs; the step with the body contains it. */
DVT_EXPORT dvt_code dvt_session_run_timed(dvt_session *session, double *micros, uint32_t count,
                                          dvt_error *error);
/* From any thread: the run under way, or else the next one, returns DVT_CANCELLED. */
DVT_EXPORT void dvt_session_cancel(dvt_session *session);
/* An output of the last run: the caller's memory where bound, else valid until the next run. */
DVT_EXPORT dvt_code dvt_session_output(const dvt_session *session, uint32_t index,
                                       dvt_tensor *tensor, dvt_error *error);
/* Bytes of intermediate results the session holds. */
DVT_EXPORT uint64_t dvt_session_memory_bytes(const dvt_session *session);

/* ---- Compiling (libdovetail_compiler) ---- */

typedef struct dvt_compile_options {
  uint32_t struct_size;
  uint32_t threads;       /* that the model will run with; 0: all this process may use */
  const char *select;     /* "measure" (default), "estimate" or "replay" */
  const char *prefer;     /* "library", "native" or NULL */
  const char *only;       /* comma-separated providers that may be used, or NULL */
  const char *dimensions; /* "N=1,H=224": values of symbolic dimensions, comma-separated, or NULL */
  const char *lock_file;  /* must be NULL: "replay" reads the plan cache, see cache_path */
  const char *cache_path; /* plan cache; NULL: the user's */
  double measure_seconds; /* budget; 0: default */
  const char *plugin_path, *vendor_path; /* as in dvt_load_options */
  void *log_context;
  void (*log)(void *log_context, int level, const char *message);
  int32_t log_level;
  int32_t deterministic;
  const char *states; /* "auto" for inputs past_* and outputs present_*, "IN=OUT,IN=OUT", or NULL */
  const char *target; /* "cpu" (or NULL), or a device as "cuda:sm_90", which need not be here */
  const char *typical; /* "N=1,L=128": usual values of dimensions that stay open, at which kernels
                          are timed, or NULL */
  const char *memory; /* private memory that the plan may take: "200MiB" (bytes, KiB, MiB or GiB) or
                         "none"; NULL: 1.3 times weights (halves as large as f32) and
                         intermediate results, less 800KiB for the runtime, but at least
                         768KiB */
  const char *kernels; /* manifests of your own kernels for the target, which is a device: paths of
                          files *.json separated by ':', or NULL. The sources they name are compiled
                          by CUDA's or ROCm's compilers */
  uint32_t runs_per_load; /* inferences that a program makes for each time it loads the model:
                             kernels that load slowly are charged accordingly; 0: 200 */
} dvt_compile_options;

/* Compiles an ONNX model into a file that dvt_model_load takes. */
DVT_EXPORT dvt_code dvt_compile(const char *model_path, const char *artifact_path,
                                const dvt_compile_options *options, dvt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* DOVETAIL_DOVETAIL_H */
