// SPDX-License-Identifier: Apache-2.0
// RUN: dovetail-opt --dvt-simplify --split-input-file %s | FileCheck %s

// Earlier keys and values come before the new ones; attention is left without a cache.
// CHECK-LABEL: func.func @main
// CHECK: %[[K:.*]] = dvt.concat(%arg3, %{{.*}}) {axis = 2 : i64} : {{.*}} -> tensor<?x4x?x16xf32, ["N", "4", "P+S", "16"]>
// CHECK: %[[V:.*]] = dvt.concat(%arg4, %{{.*}}) {axis = 2 : i64}
// CHECK: %[[Y:.*]] = dvt.attention(%arg0, %[[K]], %[[V]]) {{{.*}}kv_num_heads = 4 : i64{{.*}}q_num_heads = 8 : i64
// CHECK: return %[[Y]], %[[K]], %[[V]]
func.func @main(%q: tensor<?x?x128xf32, ["N", "S", "128"]>, %k: tensor<?x?x64xf32, ["N", "S", "64"]>, %v: tensor<?x?x64xf32, ["N", "S", "64"]>, %pk: tensor<?x4x?x16xf32, ["N", "4", "P", "16"]>, %pv: tensor<?x4x?x16xf32, ["N", "4", "P", "16"]>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) {
  %none = dvt.none
  %y, %kk, %vv, %qk = dvt.attention(%q, %k, %v, %none, %pk, %pv) {is_causal = 0 : i64, kv_num_heads = 4 : i64, q_num_heads = 8 : i64} : (tensor<?x?x128xf32, ["N", "S", "128"]>, tensor<?x?x64xf32, ["N", "S", "64"]>, tensor<?x?x64xf32, ["N", "S", "64"]>, none, tensor<?x4x?x16xf32, ["N", "4", "P", "16"]>, tensor<?x4x?x16xf32, ["N", "4", "P", "16"]>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
  return %y, %kk, %vv : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}

// -----

// A causal mask that starts behind the cache is written out.
// CHECK-LABEL: func.func @main
// CHECK: %[[K:.*]] = dvt.concat(%arg3, %arg1)
// CHECK: %[[M:.*]] = dvt.constant {value = dense<{{\[\[}}true, true, true, true, false], [true, true, true, true, true]]>
// CHECK: dvt.attention(%arg0, %[[K]], %{{.*}}, %[[M]]) {is_causal = 0 : i64
func.func @main(%q: tensor<1x8x2x16xf32>, %k: tensor<1x4x2x16xf32>, %v: tensor<1x4x2x16xf32>, %pk: tensor<1x4x3x16xf32>, %pv: tensor<1x4x3x16xf32>) -> tensor<*xf32> {
  %none = dvt.none
  %y, %kk, %vv, %qk = dvt.attention(%q, %k, %v, %none, %pk, %pv) {is_causal = 1 : i64} : (tensor<1x8x2x16xf32>, tensor<1x4x2x16xf32>, tensor<1x4x2x16xf32>, none, tensor<1x4x3x16xf32>, tensor<1x4x3x16xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
  return %y : tensor<*xf32>
}

// -----

// Beside another mask it stays.
// CHECK-LABEL: func.func @main
// CHECK: dvt.attention(%arg0, %arg1, %arg2, %arg5, %arg3, %arg4)
func.func @main(%q: tensor<1x8x2x16xf32>, %k: tensor<1x4x2x16xf32>, %v: tensor<1x4x2x16xf32>, %pk: tensor<1x4x3x16xf32>, %pv: tensor<1x4x3x16xf32>, %mask: tensor<2x5xf32>) -> tensor<*xf32> {
  %y, %kk, %vv, %qk = dvt.attention(%q, %k, %v, %mask, %pk, %pv) {is_causal = 1 : i64} : (tensor<1x8x2x16xf32>, tensor<1x4x2x16xf32>, tensor<1x4x2x16xf32>, tensor<2x5xf32>, tensor<1x4x3x16xf32>, tensor<1x4x3x16xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
  return %y : tensor<*xf32>
}

// -----

// Rows of the caches are taken once for both of its uses; halves of heads are slices.
// CHECK-LABEL: func.func @main
// CHECK: dvt.gather(%arg1, %arg3)
// CHECK: dvt.gather(%arg2, %arg3)
// CHECK-NOT: dvt.gather
// CHECK: dvt.neg
// CHECK: dvt.concat
// CHECK-NOT: dvt.rotary_embedding
func.func @main(%x: tensor<?x?x128xf32, ["N", "S", "128"]>, %cos: tensor<50x8xf32>, %sin: tensor<50x8xf32>, %at: tensor<?x?xi64, ["N", "S"]>, %z: tensor<?x2x?x20xf32, ["N", "2", "S", "20"]>) -> (tensor<*xf32>, tensor<*xf32>) {
  %y = dvt.rotary_embedding(%x, %cos, %sin, %at) {interleaved = 0 : i64, num_heads = 8 : i64, rotary_embedding_dim = 0 : i64} : (tensor<?x?x128xf32, ["N", "S", "128"]>, tensor<50x8xf32>, tensor<50x8xf32>, tensor<?x?xi64, ["N", "S"]>) -> tensor<*xf32>
  %w = dvt.rotary_embedding(%z, %cos, %sin, %at) {interleaved = 0 : i64, rotary_embedding_dim = 16 : i64} : (tensor<?x2x?x20xf32, ["N", "2", "S", "20"]>, tensor<50x8xf32>, tensor<50x8xf32>, tensor<?x?xi64, ["N", "S"]>) -> tensor<*xf32>
  return %y, %w : tensor<*xf32>, tensor<*xf32>
}

// -----

// Pairs side by side stay as they are.
// CHECK-LABEL: func.func @main
// CHECK: dvt.rotary_embedding
func.func @main(%x: tensor<1x2x3x16xf32>, %cos: tensor<1x3x8xf32>, %sin: tensor<1x3x8xf32>) -> tensor<*xf32> {
  %y = dvt.rotary_embedding(%x, %cos, %sin) {interleaved = 1 : i64} : (tensor<1x2x3x16xf32>, tensor<1x3x8xf32>, tensor<1x3x8xf32>) -> tensor<*xf32>
  return %y : tensor<*xf32>
}
