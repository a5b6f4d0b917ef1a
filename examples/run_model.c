/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads a compiled model, feeds it seeded noise, runs it a few times and prints its outputs'
 * extents, least, greatest and mean values, and the least time of a run. Usage: run_model MODEL.dvt
 * [RUNS] [EXTENT] Extents that the model leaves open get the value EXTENT (default: 1).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <dovetail/dovetail.h>

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

static int64_t count_of(const int64_t *extents, uint32_t rank) {
  int64_t count = 1;
  for (uint32_t d = 0; d < rank; ++d)
    count *= extents[d];
  return count;
}

static uint32_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 33);
}

static size_t size_of(dvt_type type) {
  switch (type) {
  case DVT_F32:
  case DVT_I32:
  case DVT_U32:
    return 4;
  case DVT_F64:
  case DVT_I64:
  case DVT_U64:
    return 8;
  case DVT_F16:
  case DVT_BF16:
  case DVT_I16:
  case DVT_U16:
    return 2;
  default:
    return 1;
  }
}

/* Floats in [-1, 1), small integers, zeros for everything else. */
static void fill(void *data, dvt_type type, int64_t count, uint64_t *state) {
  memset(data, 0, count * size_of(type));
  for (int64_t i = 0; i < count; ++i) {
    uint32_t random = next_random(state);
    if (type == DVT_F32)
      ((float *)data)[i] = (float)((random & 0xffff) / 32768.0 - 1);
    else if (type == DVT_F64)
      ((double *)data)[i] = (random & 0xffff) / 32768.0 - 1;
    else if (type == DVT_I64)
      ((int64_t *)data)[i] = random % 2;
    else if (type == DVT_I32)
      ((int32_t *)data)[i] = random % 2;
  }
}

static double element(const dvt_tensor *tensor, int64_t i) {
  switch (tensor->type) {
  case DVT_F32:
    return ((const float *)tensor->data)[i];
  case DVT_F64:
    return ((const double *)tensor->data)[i];
  case DVT_I64:
    return (double)((const int64_t *)tensor->data)[i];
  case DVT_I32:
    return ((const int32_t *)tensor->data)[i];
  case DVT_U8:
  case DVT_BOOL:
    return ((const uint8_t *)tensor->data)[i];
  default:
    return NAN;
  }
}

static void print_output(const char *name, const dvt_tensor *tensor) {
  int64_t count = count_of(tensor->extents, tensor->rank);
  double least = INFINITY, greatest = -INFINITY, sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    double value = element(tensor, i);
    least = value < least ? value : least;
    greatest = value > greatest ? value : greatest;
    sum += value;
  }
  printf("%s [", name);
  for (uint32_t d = 0; d < tensor->rank; ++d)
    printf(d ? ",%lld" : "%lld", (long long)tensor->extents[d]);
  printf("] least %g greatest %g mean %g\n", least, greatest, count ? sum / count : 0);
}

static void print_log(void *context, int level, const char *message) {
  (void)context;
  if (level >= 2)
    fprintf(stderr, "%s\n", message);
}

static int fail(const char *what, const dvt_error *error) {
  fprintf(stderr, "%s: %s\n", what, error->message);
  return 1;
}

static int bind_noise(dvt_session *session, const dvt_model *model, uint32_t index, int64_t open,
                      void **memory, dvt_error *error) {
  uint64_t state = 1 + index;
  dvt_port port = {.struct_size = sizeof(port)};
  if (dvt_model_input(model, index, &port, error) != DVT_OK)
    return 1;
  int64_t *extents = calloc(port.rank + 1, sizeof(int64_t));
  for (uint32_t d = 0; d < port.rank; ++d)
    extents[d] = port.extents[d] < 0 ? open : port.extents[d];
  int64_t count = count_of(extents, port.rank);
  size_t bytes = (count * size_of(port.type) + 64) / 64 * 64;
  *memory = aligned_alloc(64, bytes);
  if (!*memory) {
    free(extents);
    strcpy(error->message, "out of memory");
    return 1;
  }
  fill(*memory, port.type, count, &state);
  dvt_tensor tensor = {.data = *memory, .extents = extents, .rank = port.rank, .type = port.type};
  dvt_code code = dvt_session_bind_input(session, index, &tensor, error);
  free(extents);
  return code != DVT_OK;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s MODEL.dvt [RUNS] [EXTENT]\n", argv[0]);
    return 2;
  }
  int runs = argc > 2 ? atoi(argv[2]) : 3;
  int64_t open = argc > 3 ? atoll(argv[3]) : 1;
  dvt_error error = {{0}};
  dvt_load_options options = {.struct_size = sizeof(options), .log = print_log};
  dvt_model *model = NULL;
  dvt_session *session = NULL;
  if (dvt_model_load(argv[1], &options, &model, &error) != DVT_OK)
    return fail("cannot load", &error);
  if (dvt_session_create(model, &session, &error) != DVT_OK)
    return fail("cannot make a session", &error);
  uint32_t inputs = dvt_model_input_count(model), outputs = dvt_model_output_count(model);
  void **memory = calloc(inputs + 1, sizeof(void *));
  for (uint32_t i = 0; i < inputs; ++i)
    if (bind_noise(session, model, i, open, &memory[i], &error))
      return fail("cannot bind an input", &error);

  double best = INFINITY;
  for (int run = 0; run < runs; ++run) {
    double start = seconds();
    if (dvt_session_run(session, &error) != DVT_OK)
      return fail("cannot run", &error);
    double took = seconds() - start;
    best = took < best ? took : best;
  }
  for (uint32_t i = 0; i < outputs && runs > 0; ++i) {
    dvt_port port = {.struct_size = sizeof(port)};
    dvt_tensor tensor;
    if (dvt_model_output(model, i, &port, &error) != DVT_OK ||
        dvt_session_output(session, i, &tensor, &error) != DVT_OK)
      return fail("cannot read an output", &error);
    print_output(port.name, &tensor);
  }
  printf("best of %d runs: %.3f ms on %u threads\n", runs, best * 1e3, dvt_model_threads(model));

  dvt_session_release(session);
  dvt_model_release(model);
  for (uint32_t i = 0; i < inputs; ++i)
    free(memory[i]);
  free(memory);
  return 0;
}
