// SPDX-License-Identifier: Apache-2.0
// RUN: dovetail-opt --dvt-simplify --split-input-file %s | FileCheck %s

// Batch normalization, a scale and a shift after a convolution are in its weights and bias:
// w * 2 * 10, (b * 2 + 1 - 3 * 2) * 10 + 7 with b = 5.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[W:.*]] = dvt.constant {value = dense<2.000000e+01> : tensor<1x1x1x1xf32>}
// CHECK-DAG: %[[B:.*]] = dvt.constant {value = dense<5.700000e+01> : tensor<1xf32>}
// CHECK: %[[Y:.*]] = dvt.conv(%arg0, %[[W]], %[[B]])
// CHECK: return %[[Y]]
func.func @main(%x: tensor<?x1x4x4xf32, ["N", "1", "4", "4"]>) -> tensor<*xf32> {
  %w = dvt.constant {value = dense<1.0> : tensor<1x1x1x1xf32>} : tensor<1x1x1x1xf32>
  %b = dvt.constant {value = dense<5.0> : tensor<1xf32>} : tensor<1xf32>
  %y = dvt.conv(%x, %w, %b) : (tensor<?x1x4x4xf32, ["N", "1", "4", "4"]>, tensor<1x1x1x1xf32>, tensor<1xf32>) -> tensor<*xf32>
  %scale = dvt.constant {value = dense<4.0> : tensor<1xf32>} : tensor<1xf32>
  %shift = dvt.constant {value = dense<1.0> : tensor<1xf32>} : tensor<1xf32>
  %mean = dvt.constant {value = dense<3.0> : tensor<1xf32>} : tensor<1xf32>
  %n = dvt.batch_normalization(%y, %scale, %shift, %mean, %scale) {epsilon = 0.0 : f32} : (tensor<*xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<*xf32>
  %ten = dvt.constant {value = dense<10.0> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %seven = dvt.constant {value = dense<7.0> : tensor<f32>} : tensor<f32>
  %p = dvt.mul(%ten, %n) : (tensor<1x1x1xf32>, tensor<*xf32>) -> tensor<*xf32>
  %q = dvt.add(%p, %seven) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  return %q : tensor<*xf32>
}

// -----

// Grouped transposed convolution: weights are [channels in][channels of a group out]; group 0 has channels 0 and 1.
// CHECK-LABEL: func.func @main
// CHECK: dense<{{\[\[\[\[}}1.000000e+01]], {{\[\[}}2.000000e+01]]], {{\[\[\[}}3.000000e+01]], {{\[\[}}4.000000e+01]]]]> : tensor<2x2x1x1xf32>
// CHECK-NOT: dvt.mul
func.func @main(%x: tensor<1x2x4x4xf32>) -> tensor<*xf32> {
  %w = dvt.constant {value = dense<[[[[1.0]], [[1.0]]], [[[1.0]], [[1.0]]]]> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
  %y = dvt.conv_transpose(%x, %w) {group = 2 : i64} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<*xf32>
  %s = dvt.constant {value = dense<[[[10.0]], [[20.0]], [[30.0]], [[40.0]]]> : tensor<4x1x1xf32>} : tensor<4x1x1xf32>
  %p = dvt.mul(%y, %s) : (tensor<*xf32>, tensor<4x1x1xf32>) -> tensor<*xf32>
  return %p : tensor<*xf32>
}

// -----

// A gemm with weights as [channels out][in].
// CHECK-LABEL: func.func @main
// CHECK-DAG: dense<{{\[\[}}1.000000e+00, 1.000000e+00], [2.000000e+00, 2.000000e+00]]> : tensor<2x2xf32>
// CHECK-DAG: dense<[3.000000e+00, 6.000000e+00]> : tensor<2xf32>
// CHECK-NOT: dvt.mul
func.func @main(%x: tensor<5x2xf32>) -> tensor<*xf32> {
  %w = dvt.constant {value = dense<1.0> : tensor<2x2xf32>} : tensor<2x2xf32>
  %b = dvt.constant {value = dense<3.0> : tensor<f32>} : tensor<f32>
  %y = dvt.gemm(%x, %w, %b) {transB = 1 : i64} : (tensor<5x2xf32>, tensor<2x2xf32>, tensor<f32>) -> tensor<*xf32>
  %s = dvt.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>
  %p = dvt.mul(%y, %s) : (tensor<*xf32>, tensor<2xf32>) -> tensor<*xf32>
  return %p : tensor<*xf32>
}

// -----

// Batch normalization of something else is a product and a sum.
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]] = dvt.mul(%arg0, %{{.*}}) : (tensor<2x3x4xf32>, tensor<3x1xf32>)
// CHECK: dvt.add(%[[P]], %{{.*}}) : (tensor<2x3x4xf32>, tensor<3x1xf32>)
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<*xf32> {
  %s = dvt.constant {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : tensor<3xf32>
  %n = dvt.batch_normalization(%x, %s, %s, %s, %s) : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<*xf32>
  return %n : tensor<*xf32>
}

// -----

// The unscaled result of the convolution is used as well, and a scale along a row is none of channels: both stay.
// CHECK-LABEL: func.func @main
// CHECK: dvt.conv
// CHECK: dvt.mul
// CHECK: dvt.conv
// CHECK: dvt.mul
func.func @main(%x: tensor<1x1x4x4xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) {
  %w = dvt.constant {value = dense<3.0> : tensor<1x1x1x1xf32>} : tensor<1x1x1x1xf32>
  %v = dvt.constant {value = dense<4.0> : tensor<1x1x1x1xf32>} : tensor<1x1x1x1xf32>
  %c = dvt.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %r = dvt.constant {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : tensor<4xf32>
  %y = dvt.conv(%x, %w) : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<*xf32>
  %p = dvt.mul(%y, %c) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %z = dvt.conv(%x, %v) : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<*xf32>
  %q = dvt.mul(%z, %r) : (tensor<*xf32>, tensor<4xf32>) -> tensor<*xf32>
  return %y, %p, %q : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}
