/* SPDX-License-Identifier: Apache-2.0
 *
 * A provider in one file of C: mul(softplus(x), y) on f32 of equal extents, fused into one pass
 * over memory. It shows every function of the door: propose looks at the problem and offers a
 * candidate, prepare takes only what propose would give, run computes on whatever extents it gets.
 * There is nothing to compile and nothing to pack.
 */
#include <dovetail/provider.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Family first; the name is stable, since it is stored in plans and caches. */
static const char algorithm_name[] = "fused:softplus_mul";

struct dvt_provider {
  dvt_provider_info info;
};

struct dvt_kernel {
  uint32_t input_count;
  uint32_t x, y;           /* positions among the problem's inputs */
  const void *constant[2]; /* of x and y, where they are constant */
};

static dvt_code fail(dvt_error *error, dvt_code code, const char *message) {
  if (error)
    snprintf(error->message, sizeof error->message, "softplus: %s", message);
  return code;
}

static dvt_code create(const dvt_host *host, dvt_provider **provider, dvt_error *error) {
  (void)host; /* a provider of a vendor library would look for it in host->library_path here */
  *provider = calloc(1, sizeof **provider);
  if (!*provider)
    return fail(error, DVT_OUT_OF_MEMORY, "out of memory");
  (*provider)->info.struct_size = sizeof(dvt_provider_info);
  (*provider)->info.name = "softplus";
  (*provider)->info.version =
      "1.0"; /* part of every cache key: raise it when results or candidates change */
  (*provider)->info.can_compile = 1;
  return DVT_OK;
}

static void destroy(dvt_provider *provider) { free(provider); }

static const dvt_provider_info *info(dvt_provider *provider) { return &provider->info; }

/* Arrays of structs are stepped by the size that the host states: a newer host's structs are
 * longer. */
static const dvt_op *op_at(const dvt_problem *problem, uint32_t index) {
  return (const dvt_op *)((const char *)problem->ops + (size_t)index * problem->ops->struct_size);
}

static const dvt_value *value_at(const dvt_problem *problem, uint32_t index) {
  return (const dvt_value *)((const char *)problem->values +
                             (size_t)index * problem->values->struct_size);
}

static int same_extent(const dvt_extent *a, const dvt_extent *b) {
  return a->value == b->value && (a->value >= 0 || strcmp(a->symbol, b->symbol) == 0);
}

/* Position of a value among the problem's inputs, or DVT_NO_VALUE. */
static uint32_t input_position(const dvt_problem *problem, uint32_t value) {
  for (uint32_t i = 0; i < problem->input_count; ++i)
    if (problem->inputs[i] == value)
      return i;
  return DVT_NO_VALUE;
}

/* Recognises the problem. Returns NULL and fills x and y, or says why this is not one of ours.
 * Symbolic extents are fine: the kernel reads the actual ones when it runs. */
static const char *recognize(const dvt_problem *problem, uint32_t *x, uint32_t *y) {
  if (problem->op_count != 2 || problem->output_count != 1)
    return "only softplus followed by mul is known";
  const dvt_op *softplus = op_at(problem, 0), *mul = op_at(problem, 1);
  if (strcmp(softplus->name, "softplus") != 0 || strcmp(mul->name, "mul") != 0)
    return "only softplus followed by mul is known";
  /* The meaning of an op may change with its version; take only those that were read. */
  if (softplus->version > 22 || mul->version < 7 || mul->version > 14)
    return "softplus up to version 22 and mul of versions 7 to 14 are known";
  uint32_t product = problem->outputs[0], inner = softplus->outputs[0], other;
  if (mul->outputs[0] != product || mul->input_count != 2)
    return "the product must be the result";
  if (mul->inputs[0] == inner && mul->inputs[1] != inner)
    other = mul->inputs[1];
  else if (mul->inputs[1] == inner && mul->inputs[0] != inner)
    other = mul->inputs[0];
  else
    return "mul must multiply the softplus with another operand";
  *x = input_position(problem, softplus->inputs[0]);
  *y = input_position(problem, other);
  if (*x == DVT_NO_VALUE || *y == DVT_NO_VALUE)
    return "operands must be inputs of the problem";
  const uint32_t values[3] = {problem->inputs[*x], problem->inputs[*y], product};
  const dvt_value *first = value_at(problem, values[0]);
  for (int i = 0; i < 3; ++i) {
    const dvt_value *value = value_at(problem, values[i]);
    if (value->type != DVT_F32)
      return "only f32 is known";
    if (value->strides)
      return "only dense memory is known";
    if (value->rank != first->rank)
      return "operands must have equal extents";
    for (uint32_t d = 0; d < value->rank; ++d)
      if (!same_extent(&value->extents[d], &first->extents[d]))
        return "operands must have equal extents";
  }
  return NULL;
}

static dvt_code propose(dvt_provider *provider, const dvt_target *target,
                        const dvt_problem *problem, const dvt_candidate_sink *sink,
                        dvt_error *error) {
  uint32_t x, y;
  const char *why = recognize(problem, &x, &y);
  (void)provider;
  (void)target;
  if (why) {
    sink->refusal(sink->context, algorithm_name, why);
    return fail(error, DVT_UNSUPPORTED, why);
  }
  dvt_candidate candidate;
  memset(&candidate, 0, sizeof candidate);
  candidate.struct_size = sizeof candidate;
  candidate.algorithm = algorithm_name; /* layouts stay NULL: row-major operands */
  candidate.packing = DVT_PACKING_NONE;
  candidate.threading = DVT_THREADING_PARALLEL_FOR;
  candidate.numerics = "f32";
  candidate.deterministic = 1;
  candidate.runtime_extents = 1;
  candidate.estimate_micros = -1; /* unknown: it is for the host to measure */
  sink->candidate(sink->context, &candidate);
  return DVT_OK;
}

static int is_row_major(const char *const *layouts, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i)
    if (layouts && layouts[i] && layouts[i][0])
      return 0;
  return 1;
}

static dvt_code prepare(dvt_provider *provider, const dvt_target *target,
                        const dvt_problem *problem, const dvt_candidate *candidate,
                        const dvt_prepare_args *args, dvt_kernel **kernel, dvt_error *error) {
  uint32_t x, y;
  const char *why = recognize(problem, &x, &y);
  (void)provider;
  (void)target;
  if (why)
    return fail(error, DVT_UNSUPPORTED, why);
  /* The candidate may come from a stored plan: take only what propose gives today. */
  if (!candidate->algorithm || strcmp(candidate->algorithm, algorithm_name) != 0 ||
      candidate->packing != DVT_PACKING_NONE ||
      !is_row_major(candidate->input_layouts, problem->input_count) ||
      !is_row_major(candidate->output_layouts, problem->output_count))
    return fail(error, DVT_UNSUPPORTED, "this candidate is not proposed for this problem");
  *kernel = calloc(1, sizeof **kernel);
  if (!*kernel)
    return fail(error, DVT_OUT_OF_MEMORY, "out of memory");
  (*kernel)->input_count = problem->input_count;
  (*kernel)->x = x;
  (*kernel)->y = y;
  if (args->constants) {
    (*kernel)->constant[0] = args->constants[x];
    (*kernel)->constant[1] = args->constants[y];
  }
  return DVT_OK;
}

static uint64_t workspace_bytes(const dvt_kernel *kernel) {
  (void)kernel;
  return 0;
}

struct task {
  const float *x, *y;
  float *result;
};

/* One piece of the work; pieces run at the same time on the host's threads. The result may lie on x
 * or y, because each element is read before it is written. */
static void multiply_range(void *argument, int64_t begin, int64_t end, uint32_t worker) {
  const struct task *task = argument;
  (void)worker;
  for (int64_t i = begin; i < end; ++i) {
    float x = task->x[i];
    float softplus = fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)));
    task->result[i] = softplus * task->y[i];
  }
}

static dvt_code run(dvt_kernel *kernel, const dvt_run_args *args, dvt_error *error) {
  if (args->input_count != kernel->input_count || args->output_count != 1)
    return fail(error, DVT_BAD_INPUT, "another number of operands than the problem has");
  const dvt_tensor *x = &args->inputs[kernel->x], *y = &args->inputs[kernel->y];
  int64_t count = 1;
  for (uint32_t d = 0; d < x->rank; ++d) {
    if (x->extents[d] != y->extents[d])
      return fail(error, DVT_BAD_INPUT, "operands must have equal extents");
    count *= x->extents[d];
  }
  struct task task = {kernel->constant[0] ? kernel->constant[0] : x->data,
                      kernel->constant[1] ? kernel->constant[1] : y->data, args->outputs[0].data};
  if (count && !(task.x && task.y && task.result))
    return fail(error, DVT_BAD_INPUT, "an operand has no memory");
  if (args->parallel && count > 4096)
    args->parallel->run(args->parallel->context, count, multiply_range, &task);
  else
    multiply_range(&task, 0, count, 0);
  return DVT_OK;
}

static void destroy_kernel(dvt_kernel *kernel) { free(kernel); }

DVT_EXPORT const dvt_provider_api *dvt_provider_entry(uint32_t host_abi_version) {
  static const dvt_provider_api api = {
      .struct_size = sizeof(dvt_provider_api),
      .abi_version = DVT_PROVIDER_ABI_VERSION,
      .name = "softplus",
      .create = create,
      .destroy = destroy,
      .info = info,
      .propose = propose,
      .compile = NULL, /* kernels are in this file */
      .prepare = prepare,
      .workspace_bytes = workspace_bytes,
      .run = run,
      .destroy_kernel = destroy_kernel,
  };
  return host_abi_version == DVT_PROVIDER_ABI_VERSION ? &api : NULL;
}
