// SPDX-License-Identifier: Apache-2.0
//
// Small valid models that several tests of the importer share: each uses another part of the
// format.
#pragma once

#include <string>
#include <vector>

namespace dovetail::importer {

struct ModelText {
  const char *name;
  int opSet;
  const char *graph;
};

inline const std::vector<ModelText> &modelTexts() {
  static const std::vector<ModelText> texts = {
      {"convolution", 21,
       R"(g (float[N,3,H,W] x, float[8,3,3,3] w, float[8] b) => (float[N,8,M,K] y) {
            c = Conv <auto_pad="SAME_UPPER", strides=[2,2]> (x, w, b)
            r = Relu (c)
            y = MaxPool <kernel_shape=[2,2], strides=[2,2], ceil_mode=1> (r)
          })"},
      {"transformer", 18,
       R"(g (float[1,S,8] x, float[8,8] w, float[8] s, float[8] b) => (float[1,S,8] y) {
            n = LayerNormalization <axis=-1> (x, s, b)
            q = MatMul (n, w)
            t = Transpose <perm=[0,2,1]> (n)
            a = MatMul (q, t)
            p = Softmax <axis=-1> (a)
            v = MatMul (p, n)
            y = Add (x, v)
          })"},
      {"shapes", 13,
       R"(g (float[N,C,4] x) => (float[N,M] y)
            <int64[1] minus = {-1}, int64 zero = {0}, int64[1] axis = {0}> {
            s = Shape (x)
            n = Gather <axis=0> (s, zero)
            u = Unsqueeze (n, axis)
            d = Concat <axis=0> (u, minus)
            y = Reshape (x, d)
          })"},
      {"split", 11,
       R"(g (float[6,4] x) => (float[2,4] a, float[4,4] b, float[1,6,4] c) {
            a, b = Split <axis=0, split=[2,4]> (x)
            c = Unsqueeze <axes=[0]> (x)
          })"},
      {"resize", 13,
       R"(g (float[1,2,H,W] x) => (float[1,2,A,B] y) <float[4] scales = {1.0, 1.0, 2.0, 2.0}> {
            y = Resize <coordinate_transformation_mode="asymmetric", mode="nearest", nearest_mode="floor">
                  (x, , scales)
          })"},
      {"recurrent", 14,
       R"(g (float[5,2,3] x, float[1,16,3] w, float[1,16,4] r) => (float[5,1,2,4] y, float[1,2,4] h) {
            y, h = LSTM <hidden_size=4> (x, w, r)
          })"},
      {"quantized", 19,
       R"(g (float[2,4] x) => (float[2,4] y) <float s = {0.5}, uint8 z = {128}> {
            q = QuantizeLinear (x, s, z)
            y = DequantizeLinear (q, s, z)
          })"},
      {"conditional", 16,
       R"(g (bool c, float[N] x, float[M] z) => (float[K] y) {
            y = If (c) <
              then_branch = t () => (float[N] a) { a = Neg (x) },
              else_branch = e () => (float[M] b) { b = Abs (z) }
            >
          })"},
      {"loop", 16,
       R"(g (float[N,4] x, int64 m) => (float[M,4] y, float[K] s) {
            y, s = Loop (m, , x) <
              body = b (int64 i, bool c, float[A,4] v) => (bool d, float[B,4] w, float t) {
                d = Identity (c)
                w = Concat <axis=0> (v, x)
                t = ReduceMean <keepdims=0> (v)
              }
            >
          })"},
      {"scan", 11,
       R"(g (float[4] s, float[N,4] x) => (float[4] y, float[4,N] z) {
            y, z = Scan (s, x) <
              num_scan_inputs = 1, scan_output_axes = [1],
              body = b (float[4] v, float[4] e) => (float[4] w, float[4] r) {
                w = Add (v, e)
                r = Relu (w)
              }
            >
          })"},
      {"softmax", 9, R"(g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax <axis=1> (x) })"},
  };
  return texts;
}

} // namespace dovetail::importer
