/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs an artifact in two sessions and prints, as one JSON object, what that took of memory and
 * which files were mapped: run-artifact MODEL.dvt THREADS
 * Calls of malloc and its kin are counted in the whole process, plug-ins and their libraries
 * included, as this program's stand before those of the C library. What the runtime asks the host's
 * allocator for is counted apart. Inputs are f32; element i of each is (7 i mod 17 - 8) / 8.
 */
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dovetail/dovetail.h>

enum { SESSIONS = 2, WARM_UPS = 3, RUNS = 20 };

/* What glibc's own functions are known by when others stand before them. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

/* Calls so far, bytes held. */
static atomic_llong malloc_calls, malloc_bytes, host_calls, host_bytes;

static void *taken(void *memory) {
  atomic_fetch_add(&malloc_calls, 1);
  atomic_fetch_add(&malloc_bytes, (long long)malloc_usable_size(memory));
  return memory;
}

void *malloc(size_t bytes) { return taken(__libc_malloc(bytes)); }
void *calloc(size_t count, size_t bytes) { return taken(__libc_calloc(count, bytes)); }
void *memalign(size_t alignment, size_t bytes) { return taken(__libc_memalign(alignment, bytes)); }
void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  *memory = memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}
void *realloc(void *memory, size_t bytes) {
  atomic_fetch_sub(&malloc_bytes, (long long)malloc_usable_size(memory));
  return taken(__libc_realloc(memory, bytes));
}
void free(void *memory) {
  atomic_fetch_sub(&malloc_bytes, (long long)malloc_usable_size(memory));
  __libc_free(memory);
}

static void *host_allocate(void *context, uint64_t bytes, uint64_t alignment) {
  (void)context;
  atomic_fetch_add(&host_calls, 1);
  atomic_fetch_add(&host_bytes, (long long)bytes);
  return __libc_memalign(alignment, bytes);
}
static void host_release(void *context, void *memory, uint64_t bytes) {
  (void)context;
  atomic_fetch_sub(&host_bytes, (long long)bytes);
  __libc_free(memory);
}

static dvt_error error;

static void check(dvt_code code) {
  if (code == DVT_OK)
    return;
  fprintf(stderr, "run-artifact: %s\n", error.message);
  exit(1);
}

static int64_t count_of(const int64_t *extents, uint32_t rank) {
  int64_t count = 1;
  for (uint32_t d = 0; d < rank; ++d)
    count *= extents[d];
  return count;
}

/* The inputs of a model, on the border that is bound without a copy. */
struct inputs {
  uint32_t count;
  dvt_tensor *tensors;
};

static struct inputs make_inputs(const dvt_model *model) {
  struct inputs inputs = {.count = dvt_model_input_count(model)};
  inputs.tensors = calloc(inputs.count, sizeof(dvt_tensor));
  for (uint32_t i = 0; i < inputs.count; ++i) {
    dvt_port port = {.struct_size = sizeof port};
    check(dvt_model_input(model, i, &port, &error));
    const int64_t count = count_of(port.extents, port.rank);
    if (port.type != DVT_F32 || count < 1) {
      fprintf(stderr, "run-artifact: input %s is not f32 of fixed extents\n", port.name);
      exit(1);
    }
    float *data = aligned_alloc(64, ((size_t)count * sizeof(float) + 63) / 64 * 64);
    for (int64_t k = 0; k < count; ++k)
      data[k] = (float)(7 * k % 17 - 8) / 8;
    inputs.tensors[i] =
        (dvt_tensor){.data = data, .extents = port.extents, .rank = port.rank, .type = port.type};
  }
  return inputs;
}

static void run(dvt_session *session, const struct inputs *inputs, int times) {
  for (int i = 0; i < times; ++i) {
    for (uint32_t k = 0; k < inputs->count; ++k)
      check(dvt_session_bind_input(session, k, &inputs->tensors[k], &error));
    check(dvt_session_run(session, &error));
  }
}

/* Names of files that are mapped into this process, some of them more than once. */
static void print_files(void) {
  char line[4096];
  FILE *maps = fopen("/proc/self/maps", "r");
  if (!maps)
    exit(1);
  const char *separator = "";
  printf("\"files\": [");
  while (fgets(line, sizeof line, maps)) {
    const char *slash = strrchr(line, '/');
    if (!slash)
      continue;
    printf("%s\"%.*s\"", separator, (int)strcspn(slash + 1, "\n"), slash + 1);
    separator = ", ";
  }
  printf("], ");
  fclose(maps);
}

static void print_steps(const dvt_model *model) {
  printf("\"running\": [");
  for (uint32_t i = 0; i < dvt_model_step_count(model); ++i) {
    dvt_step step = {.struct_size = sizeof step};
    check(dvt_model_step(model, i, &step, &error));
    printf("%s\"%s\"", i ? ", " : "", step.running);
  }
  printf("], ");
}

static void print_outputs(dvt_session *const *sessions) {
  dvt_tensor outputs[SESSIONS];
  for (int s = 0; s < SESSIONS; ++s)
    check(dvt_session_output(sessions[s], 0, &outputs[s], &error));
  const int64_t count = count_of(outputs[0].extents, outputs[0].rank);
  printf("\"outputs\": [");
  for (int s = 0; s < SESSIONS; ++s) {
    printf("%s[", s ? ", " : "");
    for (int64_t i = 0; i < count; ++i)
      printf("%s%.9g", i ? ", " : "", (double)((const float *)outputs[s].data)[i]);
    printf("]");
  }
  printf("], ");
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: run-artifact MODEL.dvt THREADS\n");
    return 2;
  }
  dvt_load_options options = {.struct_size = sizeof options,
                              .threads = (uint32_t)atoi(argv[2]),
                              .allocate = host_allocate,
                              .release = host_release};
  dvt_model *model;
  dvt_session *sessions[SESSIONS];
  check(dvt_model_load(argv[1], &options, &model, &error));
  printf("{\"load\": {\"malloc_calls\": %lld, \"host_bytes\": %lld}, ", malloc_calls, host_bytes);
  const struct inputs inputs = make_inputs(model), others = make_inputs(model);

  printf("\"sessions\": [");
  for (int s = 0; s < SESSIONS; ++s) {
    const long long malloc_before = malloc_bytes, host_before = host_bytes;
    check(dvt_session_create(model, &sessions[s], &error));
    run(sessions[s], &inputs, WARM_UPS);
    printf("%s{\"malloc_bytes\": %lld, \"host_bytes\": %lld}", s ? ", " : "",
           malloc_bytes - malloc_before, host_bytes - host_before);
  }
  printf("], ");

  const long long malloc_before = malloc_calls, host_before = host_calls;
  for (int i = 0; i < RUNS; ++i)
    for (int s = 0; s < SESSIONS; ++s)
      run(sessions[s], i % 2 ? &inputs : &others, 1);
  printf("\"runs\": {\"malloc_calls\": %lld, \"host_calls\": %lld}, ", malloc_calls - malloc_before,
         host_calls - host_before);

  print_files();
  print_steps(model);
  print_outputs(sessions);
  dvt_model_release(model);
  for (int s = 0; s < SESSIONS; ++s)
    dvt_session_release(sessions[s]);
  printf("\"host_bytes_left\": %lld}\n", host_bytes);
  return 0;
}
