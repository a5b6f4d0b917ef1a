// SPDX-License-Identifier: Apache-2.0
//
// The oneDNN library as found at run time: its file, its version and the functions used from it.
// Found by dlopen in the host's folders first and then where the system looks; nothing is linked.
// Written against the headers of 3.x. A second plug-in of the same sources speaks to a library of
// 2.x, whose functions generation2/ gives the interface of 3.x.
#pragma once

#include <mutex>
#include <string>

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>

#ifndef DOVETAIL_ONEDNN_GENERATION
#define DOVETAIL_ONEDNN_GENERATION 3
#endif

namespace dovetail::onednn {

/// The major version that this plug-in loads, and the name it goes by.
constexpr int kGeneration = DOVETAIL_ONEDNN_GENERATION;
constexpr const char *kProviderName = kGeneration == 2 ? "onednn2" : "onednn";

// clang-format off
#define DOVETAIL_ONEDNN_FUNCTIONS(F) \
  F(version) F(status2str) F(fmt_tag2str) F(get_effective_cpu_isa) F(engine_create) \
  F(engine_destroy) F(stream_create) F(stream_destroy) F(stream_wait) F(get_primitive_cache_capacity) \
  F(set_primitive_cache_capacity) F(memory_desc_create_with_strides) \
  F(memory_desc_create_with_tag) F(memory_desc_clone) F(memory_desc_destroy) \
  F(memory_desc_query) F(memory_desc_equal) F(memory_desc_get_size) F(memory_create) \
  F(memory_set_data_handle) F(memory_destroy) F(primitive_attr_create) F(primitive_attr_destroy) \
  F(primitive_attr_set_scratchpad_mode) F(primitive_attr_set_post_ops) \
  F(primitive_attr_set_scales_mask) F(primitive_attr_set_zero_points_mask) F(post_ops_create) \
  F(post_ops_destroy) F(post_ops_append_eltwise) F(post_ops_append_binary) \
  F(post_ops_append_sum) F(post_ops_append_prelu) F(primitive_desc_destroy) \
  F(primitive_desc_next_impl) F(primitive_desc_query) F(primitive_desc_query_md) \
  F(primitive_create) F(primitive_destroy) F(primitive_execute) \
  F(convolution_forward_primitive_desc_create) F(deconvolution_forward_primitive_desc_create) \
  F(matmul_primitive_desc_create) F(inner_product_forward_primitive_desc_create) \
  F(pooling_forward_primitive_desc_create) F(softmax_forward_primitive_desc_create) \
  F(layer_normalization_forward_primitive_desc_create) \
  F(batch_normalization_forward_primitive_desc_create) F(binary_primitive_desc_create) \
  F(eltwise_forward_primitive_desc_create) F(reduction_primitive_desc_create) \
  F(resampling_forward_primitive_desc_create) F(concat_primitive_desc_create) \
  F(prelu_forward_primitive_desc_create) F(reorder_primitive_desc_create) \
  F(vanilla_rnn_forward_primitive_desc_create) F(lstm_forward_primitive_desc_create) \
  F(gru_forward_primitive_desc_create) F(lbr_gru_forward_primitive_desc_create)
// clang-format on

/// One loaded library with a CPU engine. Thread safe once loaded: the functions are oneDNN's own.
class Library {
public:
  /// Looks in the folders of `path` (separated by ':'), then where the system does. When nothing
  /// fits, `missing` says what was tried and how to get it, and isLoaded() is false.
  explicit Library(const char *path);
  ~Library();
  Library(const Library &) = delete;
  Library &operator=(const Library &) = delete;

  bool isLoaded() const { return engine != nullptr; }
  /// Whether the library uses instructions for that. It may be held to fewer than the processor has
  /// (ONEDNN_MAX_CPU_ISA).
  bool sumsBytesIn32Bits() const;
  /// Who wants oneDNN's primitive cache off, and its capacity before the first of them.
  struct CacheState {
    std::mutex mutex;
    int users = 0;
    int capacity = 0;
  };
  mutable CacheState cache;
  std::string versionText, file, missing;
  dnnl_engine_t engine = nullptr;

#define DOVETAIL_ONEDNN_MEMBER(name) decltype(&dnnl_##name) name = nullptr;
  DOVETAIL_ONEDNN_FUNCTIONS(DOVETAIL_ONEDNN_MEMBER)
#undef DOVETAIL_ONEDNN_MEMBER
  /// Of 2.x alone, null otherwise: the result, before post-operations, is multiplied by one number
  /// (mask 0) or by one for each index of the dimension whose bit is in `mask`. Copies `scales`.
  dnnl_status_t (*primitive_attr_set_output_scales)(dnnl_primitive_attr_t attr, dnnl_dim_t count,
                                                    int mask, const float *scales) = nullptr;

private:
  /// Empty when the file was loaded; why not otherwise.
  std::string load(const std::string &name);
  void *handle = nullptr;
};

} // namespace dovetail::onednn
