/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a model whose cache grows (see tiny_decoder.py) step by step: each state's output is fed
 * back to its input, so that a step writes what is new behind what is there. Step i gets the number
 * i for all elements of x; the mean of what came so far is printed after the last. Usage:
 * decode MODEL.dvt STEPS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dovetail/dovetail.h>

static dvt_error error;

static void check(dvt_code code) {
  if (code == DVT_OK)
    return;
  fprintf(stderr, "decode: %s\n", error.message);
  exit(1);
}

int main(int argc, char **argv) {
  if (argc != 3 || atoi(argv[2]) < 1) {
    fprintf(stderr, "usage: decode MODEL.dvt STEPS\n");
    return 2;
  }
  const int steps = atoi(argv[2]);
  dvt_model *model;
  dvt_session *session;
  check(dvt_model_load(argv[1], NULL, &model, &error));
  check(dvt_session_create(model, &session, &error));

  /* An empty cache: two rows of no positions. */
  const int64_t empty[] = {2, 0, 4}, one[] = {2, 1, 4};
  static _Alignas(64) float x[8];
  const dvt_tensor past = {.data = x, .extents = empty, .rank = 3, .type = DVT_F32};
  const dvt_tensor step = {.data = x, .extents = one, .rank = 3, .type = DVT_F32};
  for (uint32_t i = 0; i < dvt_model_state_count(model); ++i) {
    dvt_state state = {.struct_size = sizeof state};
    check(dvt_model_state(model, i, &state, &error));
    check(dvt_session_feed_back(session, state.output, state.input, &error));
    if (state.grows)
      check(dvt_session_reserve_state(session, state.input, steps, &error));
    check(dvt_session_bind_input(session, state.input, &past, &error));
  }
  check(dvt_session_bind_input(session, 1, &step, &error));
  for (int i = 1; i <= steps; ++i) {
    for (int k = 0; k < 8; ++k)
      x[k] = (float)i;
    check(dvt_session_run(session, &error));
  }
  dvt_tensor present, y;
  check(dvt_session_output(session, 0, &present, &error));
  check(dvt_session_output(session, 1, &y, &error));
  printf("%lld positions, mean %g\n", (long long)present.extents[1], ((const float *)y.data)[0]);
  dvt_session_release(session);
  dvt_model_release(model);
  return 0;
}
