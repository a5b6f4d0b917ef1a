// SPDX-License-Identifier: Apache-2.0
//
// The only source that sees the headers of oneDNN 2.x. Handles cross as they are, except primitive
// descriptors, which here keep the op descriptor and the iterator that 3.x hides.
#include "providers/onednn/generation2/Translation.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include <oneapi/dnnl/dnnl.h>

#include "providers/onednn/Numbers.h"

static_assert(DNNL_VERSION_MAJOR == 2, "these are to be the headers of oneDNN 2.x");

namespace dovetail::onednn::generation2 {
namespace {

// clang-format off
#define DOVETAIL_ONEDNN2_FUNCTIONS(F) \
  F(memory_desc_init_by_strides) F(memory_desc_init_by_tag) F(post_ops_append_eltwise) \
  F(post_ops_append_binary) F(post_ops_append_sum_v2) F(primitive_desc_iterator_create) \
  F(primitive_desc_iterator_next) F(primitive_desc_iterator_fetch) \
  F(primitive_desc_iterator_destroy) F(primitive_desc_destroy) F(primitive_desc_query) \
  F(primitive_desc_query_md) F(primitive_create) F(primitive_execute) \
  F(dilated_convolution_forward_desc_init) F(dilated_deconvolution_forward_desc_init) \
  F(matmul_desc_init) F(inner_product_forward_desc_init) F(pooling_v2_forward_desc_init) \
  F(reorder_primitive_desc_create) F(vanilla_rnn_forward_desc_init) F(lstm_forward_desc_init_v3) \
  F(gru_forward_desc_init) F(lbr_gru_forward_desc_init) F(primitive_attr_set_zero_points) \
  F(get_effective_cpu_isa)
// clang-format on

struct Functions {
#define DOVETAIL_ONEDNN2_MEMBER(name) decltype(&dnnl_##name) name = nullptr;
  DOVETAIL_ONEDNN2_FUNCTIONS(DOVETAIL_ONEDNN2_MEMBER)
#undef DOVETAIL_ONEDNN2_MEMBER
};

Functions lib;

#define DOVETAIL_ONEDNN2_NUMBER(name) dnnl_##name,
constexpr dnnl_alg_kind_t kAlgorithms[] = {DOVETAIL_ONEDNN_ALGORITHMS(DOVETAIL_ONEDNN2_NUMBER)};
constexpr dnnl_rnn_direction_t kDirections[] = {
    DOVETAIL_ONEDNN_DIRECTIONS(DOVETAIL_ONEDNN2_NUMBER)};
constexpr dnnl_cpu_isa_t kByteIsas[] = {DOVETAIL_ONEDNN_BYTE_ISAS(DOVETAIL_ONEDNN2_NUMBER)};
constexpr dnnl_query_t kQueries[] = {DOVETAIL_ONEDNN_QUERIES(DOVETAIL_ONEDNN2_NUMBER)};
#undef DOVETAIL_ONEDNN2_NUMBER

/// A number that 2.x does not know becomes dnnl_alg_kind_undef, which it refuses.
dnnl_alg_kind_t algorithm(int number) {
  const int *found =
      std::find(std::begin(kNumbers.algorithms), std::end(kNumbers.algorithms), number);
  return found == std::end(kNumbers.algorithms) ? dnnl_alg_kind_undef
                                                : kAlgorithms[found - kNumbers.algorithms];
}

/// Element-wise ones; 2.x has fewer parameters.
dnnl_alg_kind_t algorithm(int number, float alpha, float beta) {
  const dnnl_alg_kind_t kind = algorithm(number);
  const bool fits = kind != dnnl_eltwise_hardswish ||
                    (std::abs(alpha * 6 - 1) < 1e-6F && std::abs(beta * 2 - 1) < 1e-6F);
  return fits ? kind : dnnl_alg_kind_undef;
}

/// All that the adapter asks for are known; others become the first.
dnnl_rnn_direction_t direction(int number) {
  const int *found =
      std::find(std::begin(kNumbers.directions), std::end(kNumbers.directions), number);
  return kDirections[found == std::end(kNumbers.directions) ? 0 : found - kNumbers.directions];
}

dnnl_query_t query(int number) {
  const int *found = std::find(std::begin(kNumbers.queries), std::end(kNumbers.queries), number);
  return found == std::end(kNumbers.queries) ? dnnl_query_undef
                                             : kQueries[found - kNumbers.queries];
}

int argument(int number) {
  if (number >= kNumbers.postOpBase)
    return number / kNumbers.postOpBase * DNNL_ARG_ATTR_MULTIPLE_POST_OP_BASE +
           number % kNumbers.postOpBase;
  return number < kNumbers.zeroPointBase
             ? number
             : number - kNumbers.zeroPointBase + DNNL_ARG_ATTR_ZERO_POINTS;
}

/// What 3.x calls a primitive descriptor. The iterator reads the op descriptor as long as it lives.
struct Description {
  union {
    dnnl_convolution_desc_t convolution;
    dnnl_matmul_desc_t matmul;
    dnnl_inner_product_desc_t innerProduct;
    dnnl_pooling_v2_desc_t pooling;
    dnnl_rnn_desc_t recurrent;
  } op = {};
  dnnl_primitive_desc_iterator_t iterator = nullptr; ///< none for reorder
  dnnl_primitive_desc_t current = nullptr;

  Description() = default;
  Description(const Description &) = delete;
  Description &operator=(const Description &) = delete;
  ~Description() {
    if (current)
      lib.primitive_desc_destroy(current);
    if (iterator)
      lib.primitive_desc_iterator_destroy(iterator);
  }
};

/// Fills the op descriptor by `init` and takes the first implementation.
template <typename Init>
dnnl_status_t describe(Description **result, dnnl_engine_t engine, const_dnnl_primitive_attr_t attr,
                       Init init) {
  *result = nullptr;
  auto made = std::make_unique<Description>();
  if (dnnl_status_t status = init(*made); status != dnnl_success)
    return status;
  if (dnnl_status_t status =
          lib.primitive_desc_iterator_create(&made->iterator, &made->op, attr, engine, nullptr);
      status != dnnl_success)
    return status;
  made->current = lib.primitive_desc_iterator_fetch(made->iterator);
  if (!made->current)
    return dnnl_unimplemented;
  *result = made.release();
  return dnnl_success;
}

/// Only those that sums of bytes ask for are told apart; others are 0.
int get_effective_cpu_isa() {
  const auto isa = static_cast<unsigned>(lib.get_effective_cpu_isa());
  unsigned translated = 0;
  for (size_t i = 0; i < Numbers::byteIsaCount; ++i)
    if ((isa & kByteIsas[i]) == static_cast<unsigned>(kByteIsas[i]))
      translated |= static_cast<unsigned>(kNumbers.byteIsas[i]);
  return static_cast<int>(translated);
}

using Desc = const dnnl_memory_desc_t *;
using Attr = const_dnnl_primitive_attr_t;

dnnl_status_t memory_desc_create_with_strides(dnnl_memory_desc_t **desc, int ndims,
                                              const dnnl_dims_t dims, dnnl_data_type_t type,
                                              const dnnl_dims_t strides) {
  auto made = std::make_unique<dnnl_memory_desc_t>();
  dnnl_status_t status = lib.memory_desc_init_by_strides(made.get(), ndims, dims, type, strides);
  *desc = status == dnnl_success ? made.release() : nullptr;
  return status;
}

dnnl_status_t memory_desc_create_with_tag(dnnl_memory_desc_t **desc, int ndims,
                                          const dnnl_dims_t dims, dnnl_data_type_t type,
                                          dnnl_format_tag_t tag) {
  auto made = std::make_unique<dnnl_memory_desc_t>();
  dnnl_status_t status = lib.memory_desc_init_by_tag(made.get(), ndims, dims, type, tag);
  *desc = status == dnnl_success ? made.release() : nullptr;
  return status;
}

dnnl_status_t memory_desc_clone(dnnl_memory_desc_t **desc, Desc from) {
  *desc = new dnnl_memory_desc_t(*from);
  return dnnl_success;
}

dnnl_status_t memory_desc_destroy(dnnl_memory_desc_t *desc) {
  delete desc;
  return dnnl_success;
}

dnnl_status_t memory_desc_query(Desc desc, int what, void *result) {
  const auto &numbers = kNumbers.descQueries;
  const dnnl_blocking_desc_t &blocking = desc->format_desc.blocking;
  const int *found = std::find(std::begin(numbers), std::end(numbers), what);
  auto dims = [&](const dnnl_dims_t &list) {
    *static_cast<const dnnl_dims_t **>(result) = &list;
    return dnnl_success;
  };
  auto number = [&](int value) {
    *static_cast<int *>(result) = value;
    return dnnl_success;
  };
  switch (found - std::begin(numbers)) {
  case Numbers::at_query_ndims_s32:
    return number(desc->ndims);
  case Numbers::at_query_dims:
    return dims(desc->dims);
  case Numbers::at_query_data_type:
    return number(desc->data_type);
  case Numbers::at_query_padded_dims:
    return dims(desc->padded_dims);
  case Numbers::at_query_format_kind:
    // What is kept beside the elements, such as sums of quantised weights, no layout text can tell.
    return number(desc->format_kind == dnnl_blocked && desc->extra.flags != 0
                      ? dnnl_format_kind_undef
                      : desc->format_kind);
  default:
    break;
  }
  if (desc->format_kind != dnnl_blocked)
    return dnnl_invalid_arguments;
  switch (found - std::begin(numbers)) {
  case Numbers::at_query_strides:
    return dims(blocking.strides);
  case Numbers::at_query_inner_nblks_s32:
    return number(blocking.inner_nblks);
  case Numbers::at_query_inner_blks:
    return dims(blocking.inner_blks);
  case Numbers::at_query_inner_idxs:
    return dims(blocking.inner_idxs);
  default:
    return dnnl_invalid_arguments;
  }
}

dnnl_status_t post_ops_append_eltwise(dnnl_post_ops_t chain, int kind, float alpha, float beta) {
  return lib.post_ops_append_eltwise(chain, 1, algorithm(kind, alpha, beta), alpha, beta);
}

dnnl_status_t post_ops_append_binary(dnnl_post_ops_t chain, int kind, Desc operand) {
  return lib.post_ops_append_binary(chain, algorithm(kind), operand);
}

dnnl_status_t post_ops_append_sum(dnnl_post_ops_t chain, float scale, int32_t zeroPoint,
                                  dnnl_data_type_t type) {
  return zeroPoint == 0 ? lib.post_ops_append_sum_v2(chain, scale, type) : dnnl_unimplemented;
}

/// The numbers come when the primitive runs.
dnnl_status_t primitive_attr_set_zero_points_mask(dnnl_primitive_attr_t attr, int which, int mask) {
  const int32_t later = DNNL_RUNTIME_S32_VAL;
  return lib.primitive_attr_set_zero_points(attr, which, 1, mask, &later);
}

dnnl_status_t primitive_desc_destroy(Description *description) {
  delete description;
  return dnnl_success;
}

dnnl_status_t primitive_desc_next_impl(Description *description) {
  if (!description->iterator)
    return dnnl_iterator_ends;
  if (dnnl_status_t status = lib.primitive_desc_iterator_next(description->iterator);
      status != dnnl_success)
    return status;
  dnnl_primitive_desc_t next = lib.primitive_desc_iterator_fetch(description->iterator);
  if (!next)
    return dnnl_iterator_ends;
  lib.primitive_desc_destroy(description->current);
  description->current = next;
  return dnnl_success;
}

dnnl_status_t primitive_desc_query(const Description *description, int what, int index,
                                   void *result) {
  return lib.primitive_desc_query(description->current, query(what), index, result);
}

Desc primitive_desc_query_md(const Description *description, int what, int index) {
  return lib.primitive_desc_query_md(description->current, query(what), argument(index));
}

dnnl_status_t primitive_create(dnnl_primitive_t *primitive, const Description *description) {
  return lib.primitive_create(primitive, description->current);
}

dnnl_status_t primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int count,
                                const dnnl_exec_arg_t *arguments) {
  constexpr int kMost = 48;
  if (std::none_of(arguments, arguments + count,
                   [](const dnnl_exec_arg_t &a) { return argument(a.arg) != a.arg; }))
    return lib.primitive_execute(primitive, stream, count, arguments);
  if (count > kMost)
    return dnnl_invalid_arguments;
  dnnl_exec_arg_t translated[kMost];
  for (int i = 0; i < count; ++i)
    translated[i] = {argument(arguments[i].arg), arguments[i].memory};
  return lib.primitive_execute(primitive, stream, count, translated);
}

/// Convolutions either way: 2.x has one kind of op descriptor for both.
template <auto Init>
dnnl_status_t slide(Description **made, dnnl_engine_t engine, dnnl_prop_kind_t prop, int kind,
                    Desc source, Desc weights, Desc bias, Desc result, const dnnl_dims_t strides,
                    const dnnl_dims_t dilates, const dnnl_dims_t padLeft,
                    const dnnl_dims_t padRight, Attr attr) {
  return describe(made, engine, attr, [&](Description &d) {
    return (lib.*Init)(&d.op.convolution, prop, algorithm(kind), source, weights, bias, result,
                       strides, dilates, padLeft, padRight);
  });
}

constexpr auto convolution_forward_primitive_desc_create =
    &slide<&Functions::dilated_convolution_forward_desc_init>;
constexpr auto deconvolution_forward_primitive_desc_create =
    &slide<&Functions::dilated_deconvolution_forward_desc_init>;

dnnl_status_t matmul_primitive_desc_create(Description **made, dnnl_engine_t engine, Desc source,
                                           Desc weights, Desc bias, Desc result, Attr attr) {
  return describe(made, engine, attr, [&](Description &d) {
    return lib.matmul_desc_init(&d.op.matmul, source, weights, bias, result);
  });
}

dnnl_status_t inner_product_forward_primitive_desc_create(Description **made, dnnl_engine_t engine,
                                                          dnnl_prop_kind_t prop, Desc source,
                                                          Desc weights, Desc bias, Desc result,
                                                          Attr attr) {
  return describe(made, engine, attr, [&](Description &d) {
    return lib.inner_product_forward_desc_init(&d.op.innerProduct, prop, source, weights, bias,
                                               result);
  });
}

dnnl_status_t pooling_forward_primitive_desc_create(
    Description **made, dnnl_engine_t engine, dnnl_prop_kind_t prop, int kind, Desc source,
    Desc result, const dnnl_dims_t strides, const dnnl_dims_t kernel, const dnnl_dims_t dilation,
    const dnnl_dims_t padLeft, const dnnl_dims_t padRight, Attr attr) {
  return describe(made, engine, attr, [&](Description &d) {
    return lib.pooling_v2_forward_desc_init(&d.op.pooling, prop, algorithm(kind), source, result,
                                            strides, kernel, dilation, padLeft, padRight);
  });
}

dnnl_status_t lstm_forward_primitive_desc_create(Description **made, dnnl_engine_t engine,
                                                 dnnl_prop_kind_t prop, int way, Desc source,
                                                 Desc hidden, Desc cell, Desc weights,
                                                 Desc recurrent, Desc peepholes, Desc projection,
                                                 Desc bias, Desc result, Desc lastHidden,
                                                 Desc lastCell, unsigned flags, Attr attr) {
  return describe(made, engine, attr, [&](Description &d) {
    return lib.lstm_forward_desc_init_v3(&d.op.recurrent, prop, direction(way), source, hidden,
                                         cell, weights, recurrent, peepholes, projection, bias,
                                         result, lastHidden, lastCell, flags);
  });
}

dnnl_status_t vanilla_rnn_forward_primitive_desc_create(
    Description **made, dnnl_engine_t engine, dnnl_prop_kind_t prop, int activation, int way,
    Desc source, Desc hidden, Desc weights, Desc recurrent, Desc bias, Desc result, Desc lastHidden,
    unsigned flags, float alpha, float beta, Attr attr) {
  return describe(made, engine, attr, [&](Description &d) {
    return lib.vanilla_rnn_forward_desc_init(&d.op.recurrent, prop, algorithm(activation),
                                             direction(way), source, hidden, weights, recurrent,
                                             bias, result, lastHidden, flags, alpha, beta);
  });
}

dnnl_status_t gru_forward_primitive_desc_create(Description **made, dnnl_engine_t engine,
                                                dnnl_prop_kind_t prop, int way, Desc source,
                                                Desc hidden, Desc weights, Desc recurrent,
                                                Desc bias, Desc result, Desc lastHidden,
                                                unsigned flags, Attr attr) {
  return describe(made, engine, attr, [&](Description &d) {
    return lib.gru_forward_desc_init(&d.op.recurrent, prop, direction(way), source, hidden, weights,
                                     recurrent, bias, result, lastHidden, flags);
  });
}

dnnl_status_t lbr_gru_forward_primitive_desc_create(Description **made, dnnl_engine_t engine,
                                                    dnnl_prop_kind_t prop, int way, Desc source,
                                                    Desc hidden, Desc weights, Desc recurrent,
                                                    Desc bias, Desc result, Desc lastHidden,
                                                    unsigned flags, Attr attr) {
  return describe(made, engine, attr, [&](Description &d) {
    return lib.lbr_gru_forward_desc_init(&d.op.recurrent, prop, direction(way), source, hidden,
                                         weights, recurrent, bias, result, lastHidden, flags);
  });
}

dnnl_status_t reorder_primitive_desc_create(Description **made, Desc source,
                                            dnnl_engine_t sourceEngine, Desc result,
                                            dnnl_engine_t resultEngine, Attr attr) {
  *made = nullptr;
  auto description = std::make_unique<Description>();
  dnnl_status_t status = lib.reorder_primitive_desc_create(
      &description->current, source, sourceEngine, result, resultEngine, attr);
  if (status == dnnl_success)
    *made = description.release();
  return status;
}

} // namespace

AnyFunction find(void *opened, std::string_view name) {
  auto loaded = [&](const std::string &function) {
    return dlsym(opened, ("dnnl_" + function).c_str());
  };
  static const bool complete = [&] {
    bool all = true;
#define DOVETAIL_ONEDNN2_LOOKUP(function)                                                          \
  lib.function = reinterpret_cast<decltype(&dnnl_##function)>(loaded(#function));                  \
  all &= lib.function != nullptr;
    DOVETAIL_ONEDNN2_FUNCTIONS(DOVETAIL_ONEDNN2_LOOKUP)
#undef DOVETAIL_ONEDNN2_LOOKUP
    return all;
  }();
  if (!complete)
    return nullptr;
#define DOVETAIL_ONEDNN2_TRANSLATED(function) {#function, reinterpret_cast<AnyFunction>(+function)},
  // clang-format off
  static const struct {
    std::string_view name;
    AnyFunction function;
  } translated[] = {
    DOVETAIL_ONEDNN2_TRANSLATED(get_effective_cpu_isa)
    DOVETAIL_ONEDNN2_TRANSLATED(memory_desc_create_with_strides)
    DOVETAIL_ONEDNN2_TRANSLATED(memory_desc_create_with_tag)
    DOVETAIL_ONEDNN2_TRANSLATED(memory_desc_clone)
    DOVETAIL_ONEDNN2_TRANSLATED(memory_desc_destroy)
    DOVETAIL_ONEDNN2_TRANSLATED(memory_desc_query)
    DOVETAIL_ONEDNN2_TRANSLATED(post_ops_append_eltwise)
    DOVETAIL_ONEDNN2_TRANSLATED(post_ops_append_binary)
    DOVETAIL_ONEDNN2_TRANSLATED(post_ops_append_sum)
    DOVETAIL_ONEDNN2_TRANSLATED(primitive_attr_set_zero_points_mask)
    DOVETAIL_ONEDNN2_TRANSLATED(primitive_desc_destroy)
    DOVETAIL_ONEDNN2_TRANSLATED(primitive_desc_next_impl)
    DOVETAIL_ONEDNN2_TRANSLATED(primitive_desc_query)
    DOVETAIL_ONEDNN2_TRANSLATED(primitive_desc_query_md)
    DOVETAIL_ONEDNN2_TRANSLATED(primitive_create)
    DOVETAIL_ONEDNN2_TRANSLATED(primitive_execute)
    DOVETAIL_ONEDNN2_TRANSLATED(convolution_forward_primitive_desc_create)
    DOVETAIL_ONEDNN2_TRANSLATED(deconvolution_forward_primitive_desc_create)
    DOVETAIL_ONEDNN2_TRANSLATED(matmul_primitive_desc_create)
    DOVETAIL_ONEDNN2_TRANSLATED(inner_product_forward_primitive_desc_create)
    DOVETAIL_ONEDNN2_TRANSLATED(pooling_forward_primitive_desc_create)
    DOVETAIL_ONEDNN2_TRANSLATED(reorder_primitive_desc_create)
    DOVETAIL_ONEDNN2_TRANSLATED(vanilla_rnn_forward_primitive_desc_create)
    DOVETAIL_ONEDNN2_TRANSLATED(lstm_forward_primitive_desc_create)
    DOVETAIL_ONEDNN2_TRANSLATED(gru_forward_primitive_desc_create)
    DOVETAIL_ONEDNN2_TRANSLATED(lbr_gru_forward_primitive_desc_create)
  };
  // clang-format on
#undef DOVETAIL_ONEDNN2_TRANSLATED
  for (const auto &entry : translated)
    if (entry.name == name)
      return entry.function;
  // The same in both generations.
  static constexpr std::string_view kShared[] = {"version",
                                                 "status2str",
                                                 "fmt_tag2str",
                                                 "engine_create",
                                                 "engine_destroy",
                                                 "stream_create",
                                                 "stream_destroy",
                                                 "stream_wait",
                                                 "get_primitive_cache_capacity",
                                                 "set_primitive_cache_capacity",
                                                 "memory_desc_equal",
                                                 "memory_desc_get_size",
                                                 "memory_create",
                                                 "memory_set_data_handle",
                                                 "memory_destroy",
                                                 "primitive_attr_create",
                                                 "primitive_attr_destroy",
                                                 "primitive_attr_set_scratchpad_mode",
                                                 "primitive_attr_set_post_ops",
                                                 "primitive_attr_set_output_scales",
                                                 "post_ops_create",
                                                 "post_ops_destroy",
                                                 "post_ops_append_prelu",
                                                 "primitive_destroy"};
  if (std::find(std::begin(kShared), std::end(kShared), name) == std::end(kShared))
    return nullptr;
  return reinterpret_cast<AnyFunction>(loaded(std::string(name)));
}

} // namespace dovetail::onednn::generation2
