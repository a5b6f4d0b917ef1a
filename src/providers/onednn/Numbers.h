// SPDX-License-Identifier: Apache-2.0
//
// The enumerators that differ in number between generations of oneDNN, by name. Each generation's
// headers are seen by one source file only; these lists let both state their own numbers in the
// same order.
#pragma once

#include <cstddef>

// clang-format off
#define DOVETAIL_ONEDNN_ALGORITHMS(F) \
  F(convolution_direct) F(convolution_winograd) F(deconvolution_direct) \
  F(deconvolution_winograd) F(eltwise_abs) F(eltwise_clip) F(eltwise_elu) F(eltwise_exp) \
  F(eltwise_gelu_erf) F(eltwise_gelu_tanh) F(eltwise_hardswish) F(eltwise_linear) F(eltwise_log) \
  F(eltwise_logistic) F(eltwise_mish) F(eltwise_pow) F(eltwise_relu) F(eltwise_round) \
  F(eltwise_soft_relu) F(eltwise_sqrt) F(eltwise_square) F(eltwise_swish) F(eltwise_tanh) \
  F(binary_add) F(binary_div) F(binary_max) F(binary_min) F(binary_mul) F(binary_sub) \
  F(pooling_max) F(pooling_avg_include_padding) F(pooling_avg_exclude_padding)
#define DOVETAIL_ONEDNN_DIRECTIONS(F) \
  F(unidirectional_left2right) F(unidirectional_right2left) F(bidirectional_concat)
/// Instruction sets with sums of products of bytes in 32 bits.
#define DOVETAIL_ONEDNN_BYTE_ISAS(F) F(cpu_isa_avx2_vnni) F(cpu_isa_avx512_core_vnni)
/// Asked of primitive descriptors.
#define DOVETAIL_ONEDNN_QUERIES(F) F(query_impl_info_str) F(query_scratchpad_md) F(query_exec_arg_md)
/// Asked of memory descriptors, which are structures up to generation 2.
#define DOVETAIL_ONEDNN_DESC_QUERIES(F) \
  F(query_ndims_s32) F(query_dims) F(query_data_type) F(query_padded_dims) F(query_strides) \
  F(query_format_kind) F(query_inner_nblks_s32) F(query_inner_blks) F(query_inner_idxs)
// clang-format on

namespace dovetail::onednn {

/// The numbers of the headers that the adapter is compiled against, generation 3.
struct Numbers {
#define DOVETAIL_ONEDNN_POSITION(name) at_##name,
  enum AlgorithmAt : size_t { DOVETAIL_ONEDNN_ALGORITHMS(DOVETAIL_ONEDNN_POSITION) algorithmCount };
  enum DirectionAt : size_t { DOVETAIL_ONEDNN_DIRECTIONS(DOVETAIL_ONEDNN_POSITION) directionCount };
  enum ByteIsaAt : size_t { DOVETAIL_ONEDNN_BYTE_ISAS(DOVETAIL_ONEDNN_POSITION) byteIsaCount };
  enum QueryAt : size_t { DOVETAIL_ONEDNN_QUERIES(DOVETAIL_ONEDNN_POSITION) queryCount };
  enum DescQueryAt : size_t {
    DOVETAIL_ONEDNN_DESC_QUERIES(DOVETAIL_ONEDNN_POSITION) descQueryCount
  };
#undef DOVETAIL_ONEDNN_POSITION
  int algorithms[algorithmCount];
  int directions[directionCount];
  int byteIsas[byteIsaCount];
  int queries[queryCount];
  int descQueries[descQueryCount];
  int postOpBase;    ///< arguments of post-operation i are base * (i + 1) + what an operation has
  int zeroPointBase; ///< the zero point of an argument is base + the argument
};

extern const Numbers kNumbers;

} // namespace dovetail::onednn
