// SPDX-License-Identifier: Apache-2.0
// RUN: dovetail-opt --dvt-simplify --split-input-file %s | FileCheck %s

// Between equal grids elements move as integers.
// CHECK-LABEL: func.func @main
// CHECK-NOT: quantize_linear
// CHECK: %[[POOLED:.*]] = dvt.max_pool(%arg0){{.*}}tensor<1x4x6x6xi8>
// CHECK: %[[MOVED:.*]] = dvt.transpose(%[[POOLED]])
// CHECK: %[[VIEW:.*]] = dvt.reshape(%[[MOVED]]
// CHECK-NOT: quantize_linear
// CHECK: return %[[VIEW]] : tensor<36x4xi8>
func.func @main(%x: tensor<1x4x6x6xi8>) -> tensor<*xi8> {
  %s = dvt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %z = dvt.constant {value = dense<3> : tensor<i8>} : tensor<i8>
  %a = dvt.dequantize_linear(%x, %s, %z) : (tensor<1x4x6x6xi8>, tensor<f32>, tensor<i8>) -> tensor<*xf32>
  %b = dvt.max_pool(%a) {kernel_shape = array<i64: 3, 3>, pads = array<i64: 1, 1, 1, 1>} : (tensor<*xf32>) -> tensor<*xf32>
  %c = dvt.transpose(%b) {perm = array<i64: 0, 2, 3, 1>} : (tensor<*xf32>) -> tensor<*xf32>
  %shape = dvt.constant {value = dense<[36, 4]> : tensor<2xi64>} : tensor<2xi64>
  %d = dvt.reshape(%c, %shape) : (tensor<*xf32>, tensor<2xi64>) -> tensor<*xf32>
  %e = dvt.quantize_linear(%d, %s, %z) : (tensor<*xf32>, tensor<f32>, tensor<i8>) -> tensor<*xi8>
  return %e : tensor<*xi8>
}

// -----

// Other scales are another grid.
// CHECK-LABEL: func.func @main
// CHECK: dvt.dequantize_linear
// CHECK: dvt.quantize_linear
func.func @main(%x: tensor<4xi8>) -> tensor<*xi8> {
  %s = dvt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %t = dvt.constant {value = dense<0.25> : tensor<f32>} : tensor<f32>
  %z = dvt.constant {value = dense<3> : tensor<i8>} : tensor<i8>
  %a = dvt.dequantize_linear(%x, %s, %z) : (tensor<4xi8>, tensor<f32>, tensor<i8>) -> tensor<*xf32>
  %b = dvt.quantize_linear(%a, %t, %z) : (tensor<*xf32>, tensor<f32>, tensor<i8>) -> tensor<*xi8>
  return %b : tensor<*xi8>
}

// -----

// A scale at which numbers become infinite does not cancel.
// CHECK-LABEL: func.func @main
// CHECK: dvt.quantize_linear
func.func @main(%x: tensor<4xi8>) -> tensor<*xi8> {
  %s = dvt.constant {value = dense<3.0e38> : tensor<f32>} : tensor<f32>
  %a = dvt.dequantize_linear(%x, %s) : (tensor<4xi8>, tensor<f32>) -> tensor<*xf32>
  %z = dvt.constant {value = dense<0> : tensor<i8>} : tensor<i8>
  %b = dvt.quantize_linear(%a, %s, %z) : (tensor<*xf32>, tensor<f32>, tensor<i8>) -> tensor<*xi8>
  return %b : tensor<*xi8>
}

// -----

// The scales of weights move with their axis.
// CHECK-LABEL: func.func @main
// CHECK: dense<{{\[\[}}1, 4], [2, 5], [3, 6]]> : tensor<3x2xi8>
// CHECK: dvt.dequantize_linear({{.*}}axis = 1
func.func @main(%x: tensor<5x3xf32>) -> tensor<*xf32> {
  %w = dvt.constant {value = dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi8>} : tensor<2x3xi8>
  %s = dvt.constant {value = dense<[0.5, 0.25]> : tensor<2xf32>} : tensor<2xf32>
  %a = dvt.dequantize_linear(%w, %s) {axis = 0 : i64} : (tensor<2x3xi8>, tensor<2xf32>) -> tensor<*xf32>
  %b = dvt.transpose(%a) {perm = array<i64: 1, 0>} : (tensor<*xf32>) -> tensor<*xf32>
  %c = dvt.mat_mul(%x, %b) : (tensor<5x3xf32>, tensor<*xf32>) -> tensor<*xf32>
  return %c : tensor<*xf32>
}

// -----

// Max pooling of a falling function is none.
// CHECK-LABEL: func.func @main
// CHECK: dvt.dequantize_linear
// CHECK: dvt.max_pool
func.func @main(%x: tensor<1x4x6x6xi8>) -> tensor<*xf32> {
  %s = dvt.constant {value = dense<-0.5> : tensor<f32>} : tensor<f32>
  %a = dvt.dequantize_linear(%x, %s) : (tensor<1x4x6x6xi8>, tensor<f32>) -> tensor<*xf32>
  %b = dvt.max_pool(%a) {kernel_shape = array<i64: 3, 3>} : (tensor<*xf32>) -> tensor<*xf32>
  return %b : tensor<*xf32>
}

// -----

// Weights written as a product are dequantised ones, by column and by row.
// CHECK-LABEL: func.func @main
// CHECK: dvt.dequantize_linear({{.*}}axis = 1{{.*}}tensor<2x3xi8>, tensor<3xf32>
// CHECK-NOT: dvt.cast
// CHECK: dvt.mat_mul
func.func @main(%x: tensor<5x2xf32>) -> tensor<*xf32> {
  %w = dvt.constant {value = dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi8>} : tensor<2x3xi8>
  %s = dvt.constant {value = dense<[[0.5, 0.25, 2.0]]> : tensor<1x3xf32>} : tensor<1x3xf32>
  %a = dvt.cast(%w) {to = 1 : i64} : (tensor<2x3xi8>) -> tensor<*xf32>
  %b = dvt.mul(%a, %s) : (tensor<*xf32>, tensor<1x3xf32>) -> tensor<*xf32>
  %c = dvt.mat_mul(%x, %b) : (tensor<5x2xf32>, tensor<*xf32>) -> tensor<*xf32>
  return %c : tensor<*xf32>
}

// -----

// Of a table only the rows that are read become numbers.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[ROWS:.*]] = dvt.gather({{.*}}tensor<2x3xi8>
// CHECK-DAG: %[[REAL:.*]] = dvt.cast(%[[ROWS]])
// CHECK-DAG: %[[SCALES:.*]] = dvt.gather({{.*}}tensor<2x1xf32>
// CHECK: dvt.mul(%[[REAL]], %[[SCALES]]){{.*}}tensor<4x3xf32>
func.func @main(%x: tensor<4xi64>) -> tensor<*xf32> {
  %w = dvt.constant {value = dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi8>} : tensor<2x3xi8>
  %s = dvt.constant {value = dense<[[0.5], [0.25]]> : tensor<2x1xf32>} : tensor<2x1xf32>
  %a = dvt.cast(%w) {to = 1 : i64} : (tensor<2x3xi8>) -> tensor<*xf32>
  %b = dvt.mul(%a, %s) : (tensor<*xf32>, tensor<2x1xf32>) -> tensor<*xf32>
  %c = dvt.gather(%b, %x) {axis = 0 : i64} : (tensor<*xf32>, tensor<4xi64>) -> tensor<*xf32>
  return %c : tensor<*xf32>
}
