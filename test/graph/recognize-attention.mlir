// SPDX-License-Identifier: Apache-2.0
// RUN: dovetail-opt --dvt-simplify --dvt-recognize --split-input-file %s | FileCheck %s

// K comes transposed out of [batch, sequence, heads, size]; the composite takes it as [batch, heads, sequence, size].
// CHECK-LABEL: func.func @main
// CHECK: %[[K:.*]] = dvt.transpose(%arg1) {perm = array<i64: 0, 2, 1, 3>}
// CHECK: %[[Y:.*]] = dvt.composite "attention"(%arg0, %[[K]], %arg2, %arg3) {{{.*}}scale = 1.250000e-01 : f32
// CHECK: dvt.transpose(%{{.*}}) {perm = array<i64: 0, 1, 3, 2>}
// CHECK: dvt.mat_mul
// CHECK: dvt.add
// CHECK: dvt.softmax
// CHECK: dvt.mat_mul
// CHECK: dvt.yield
// CHECK-NEXT: }
// CHECK-NEXT: return %[[Y]]
func.func @main(%q: tensor<?x12x7x64xf32, ["N", "12", "7", "64"]>, %k: tensor<?x9x12x64xf32, ["N", "9", "12", "64"]>, %v: tensor<?x12x9x64xf32, ["N", "12", "9", "64"]>, %mask: tensor<?x1x1x9xf32, ["N", "1", "1", "9"]>) -> tensor<*xf32> {
  %kt = dvt.transpose(%k) {perm = array<i64: 0, 2, 3, 1>} : (tensor<?x9x12x64xf32, ["N", "9", "12", "64"]>) -> tensor<*xf32>
  %s = dvt.mat_mul(%q, %kt) : (tensor<?x12x7x64xf32, ["N", "12", "7", "64"]>, tensor<*xf32>) -> tensor<*xf32>
  %eight = dvt.constant {value = dense<8.0> : tensor<f32>} : tensor<f32>
  %d = dvt.div(%s, %eight) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %m = dvt.add(%d, %mask) : (tensor<*xf32>, tensor<?x1x1x9xf32, ["N", "1", "1", "9"]>) -> tensor<*xf32>
  %p = dvt.softmax(%m) {axis = -1 : i64} : (tensor<*xf32>) -> tensor<*xf32>
  %y = dvt.mat_mul(%p, %v) : (tensor<*xf32>, tensor<?x12x9x64xf32, ["N", "12", "9", "64"]>) -> tensor<*xf32>
  return %y : tensor<*xf32>
}

// -----

// The scale is shared between Q and K, and there is no mask.
// CHECK-LABEL: func.func @main
// CHECK: dvt.composite "attention"(%arg0, %arg1, %arg2) {{{.*}}scale = 2.500000e-01 : f32
// CHECK-NOT: dvt.transpose(%arg1)
func.func @main(%q: tensor<1x2x7x16xf32>, %k: tensor<1x2x9x16xf32>, %v: tensor<1x2x9x20xf32>) -> tensor<*xf32> {
  %half = dvt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %qs = dvt.mul(%q, %half) : (tensor<1x2x7x16xf32>, tensor<f32>) -> tensor<*xf32>
  %kt = dvt.transpose(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x9x16xf32>) -> tensor<*xf32>
  %ks = dvt.mul(%kt, %half) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %s = dvt.mat_mul(%qs, %ks) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %p = dvt.softmax(%s) {axis = 3 : i64} : (tensor<*xf32>) -> tensor<*xf32>
  %y = dvt.mat_mul(%p, %v) : (tensor<*xf32>, tensor<1x2x9x20xf32>) -> tensor<*xf32>
  return %y : tensor<*xf32>
}

// -----

// Heads of K and V that are repeated three times: the composite takes them as they are, its body repeats them.
// CHECK-LABEL: func.func @main
// CHECK: %[[Y:.*]] = dvt.composite "attention"(%arg0, %arg1, %arg2) {{.*}}tensor<?x4x?x64xf32, ["N", "4", "T", "64"]>) -> tensor<?x12x?x64xf32, ["N", "12", "S", "64"]>
// CHECK: dvt.expand
// CHECK: dvt.expand
// CHECK: dvt.softmax
// CHECK: dvt.yield
// CHECK-NEXT: }
// CHECK-NEXT: return %[[Y]]
func.func @main(%q: tensor<?x12x?x64xf32, ["N", "12", "S", "64"]>, %k: tensor<?x4x?x64xf32, ["N", "4", "T", "64"]>, %v: tensor<?x4x?x64xf32, ["N", "4", "T", "64"]>) -> tensor<*xf32> {
  %two = dvt.constant {value = dense<2> : tensor<1xi64>} : tensor<1xi64>
  %three = dvt.constant {value = dense<[1, 1, 3, 1, 1]> : tensor<5xi64>} : tensor<5xi64>
  %joined = dvt.constant {value = dense<[0, 12, -1, 64]> : tensor<4xi64>} : tensor<4xi64>
  %k1 = dvt.unsqueeze(%k, %two) : (tensor<?x4x?x64xf32, ["N", "4", "T", "64"]>, tensor<1xi64>) -> tensor<*xf32>
  %k3 = dvt.expand(%k1, %three) : (tensor<*xf32>, tensor<5xi64>) -> tensor<*xf32>
  %kr = dvt.reshape(%k3, %joined) {allowzero = 0 : i64} : (tensor<*xf32>, tensor<4xi64>) -> tensor<*xf32>
  %v1 = dvt.unsqueeze(%v, %two) : (tensor<?x4x?x64xf32, ["N", "4", "T", "64"]>, tensor<1xi64>) -> tensor<*xf32>
  %v3 = dvt.expand(%v1, %three) : (tensor<*xf32>, tensor<5xi64>) -> tensor<*xf32>
  %vr = dvt.reshape(%v3, %joined) {allowzero = 0 : i64} : (tensor<*xf32>, tensor<4xi64>) -> tensor<*xf32>
  %kt = dvt.transpose(%kr) {perm = array<i64: 0, 1, 3, 2>} : (tensor<*xf32>) -> tensor<*xf32>
  %s = dvt.mat_mul(%q, %kt) : (tensor<?x12x?x64xf32, ["N", "12", "S", "64"]>, tensor<*xf32>) -> tensor<*xf32>
  %p = dvt.softmax(%s) {axis = -1 : i64} : (tensor<*xf32>) -> tensor<*xf32>
  %y = dvt.mat_mul(%p, %vr) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  return %y : tensor<*xf32>
}

// -----

// Softmax along another axis, weights that are a result too, and a mask whose last dimension is broadcast: all stay.
// CHECK-LABEL: func.func @main
// CHECK-NOT: dvt.composite
func.func @main(%q: tensor<1x2x9x16xf32>, %k: tensor<1x2x16x9xf32>, %v: tensor<1x2x9x20xf32>, %mask: tensor<1x2x9x1xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) {
  %s = dvt.mat_mul(%q, %k) : (tensor<1x2x9x16xf32>, tensor<1x2x16x9xf32>) -> tensor<*xf32>
  %p = dvt.softmax(%s) {axis = 2 : i64} : (tensor<*xf32>) -> tensor<*xf32>
  %y = dvt.mat_mul(%p, %v) : (tensor<*xf32>, tensor<1x2x9x20xf32>) -> tensor<*xf32>
  %s1 = dvt.mat_mul(%p, %p) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %p1 = dvt.softmax(%s1) {axis = -1 : i64} : (tensor<*xf32>) -> tensor<*xf32>
  %y1 = dvt.mat_mul(%p1, %v) : (tensor<*xf32>, tensor<1x2x9x20xf32>) -> tensor<*xf32>
  %s2 = dvt.mat_mul(%p1, %p) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %m2 = dvt.add(%s2, %mask) : (tensor<*xf32>, tensor<1x2x9x1xf32>) -> tensor<*xf32>
  %p2 = dvt.softmax(%m2) {axis = -1 : i64} : (tensor<*xf32>) -> tensor<*xf32>
  %y2 = dvt.mat_mul(%p2, %v) : (tensor<*xf32>, tensor<1x2x9x20xf32>) -> tensor<*xf32>
  return %y, %y1, %p1, %y2 : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}
