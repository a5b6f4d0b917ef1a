/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles an ONNX model into an artifact, which run_model takes. Usage: compile_model MODEL.onnx
 * MODEL.dvt [SECONDS] With SECONDS of measuring kernels are chosen by their times, else by
 * estimates.
 */
#include <stdio.h>
#include <stdlib.h>

#include <dovetail/dovetail.h>

static void log_line(void *context, int level, const char *message) {
  (void)context;
  (void)level;
  fprintf(stderr, "%s\n", message);
}

int main(int argc, char **argv) {
  dvt_error error = {{0}};
  dvt_compile_options options = {.struct_size = sizeof options, .log = log_line};
  if (argc < 3) {
    fprintf(stderr, "usage: %s MODEL.onnx MODEL.dvt [SECONDS]\n", argv[0]);
    return 2;
  }
  options.measure_seconds = argc > 3 ? atof(argv[3]) : 0;
  options.select = options.measure_seconds > 0 ? "measure" : "estimate";
  if (dvt_compile(argv[1], argv[2], &options, &error) != DVT_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 3;
  }
  printf("%s is compiled into %s\n", argv[1], argv[2]);
  return 0;
}
