// SPDX-License-Identifier: Apache-2.0
// RUN: dovetail-opt --dvt-simplify --split-input-file %s | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT: return %arg0
func.func @main(%x: tensor<2x4xf32>) -> tensor<*xf32> {
  %zero = dvt.constant {value = dense<0.0> : tensor<4xf32>} : tensor<4xf32>
  %one = dvt.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %a = dvt.add(%zero, %x) : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<*xf32>
  %b = dvt.mul(%a, %one) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %c = dvt.sub(%b, %zero) : (tensor<*xf32>, tensor<4xf32>) -> tensor<*xf32>
  %d = dvt.div(%c, %one) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %e = dvt.pow(%d, %one) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %f = dvt.sum(%e) : (tensor<*xf32>) -> tensor<*xf32>
  return %f : tensor<*xf32>
}

// -----

// A neutral operand that widens the result stays.
// CHECK-LABEL: func.func @main
// CHECK: dvt.add
func.func @main(%x: tensor<4xf32>) -> tensor<*xf32> {
  %zero = dvt.constant {value = dense<0.0> : tensor<2x4xf32>} : tensor<2x4xf32>
  %a = dvt.add(%x, %zero) : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<*xf32>
  return %a : tensor<*xf32>
}

// -----

// Division by a power of two is a product; by another number it stays.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[C:.*]] = dvt.constant {value = dense<1.250000e-01> : tensor<f32>}
// CHECK-DAG: %[[SIX:.*]] = dvt.constant {value = dense<6.000000e+00> : tensor<f32>}
// CHECK: dvt.mul(%arg0, %[[C]])
// CHECK: dvt.div(%arg0, %[[SIX]])
// CHECK: dvt.mul(%arg0, %arg0)
// CHECK: dvt.sqrt(%arg0)
func.func @main(%x: tensor<4xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) {
  %eight = dvt.constant {value = dense<8.0> : tensor<f32>} : tensor<f32>
  %six = dvt.constant {value = dense<6.0> : tensor<f32>} : tensor<f32>
  %two = dvt.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %half = dvt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %a = dvt.div(%x, %eight) : (tensor<4xf32>, tensor<f32>) -> tensor<*xf32>
  %b = dvt.div(%x, %six) : (tensor<4xf32>, tensor<f32>) -> tensor<*xf32>
  %c = dvt.pow(%x, %two) : (tensor<4xf32>, tensor<f32>) -> tensor<*xf32>
  %d = dvt.pow(%x, %half) : (tensor<4xf32>, tensor<f32>) -> tensor<*xf32>
  return %a, %b, %c, %d : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}

// -----

// Integers are not divided by multiplying.
// CHECK-LABEL: func.func @main
// CHECK: dvt.div
func.func @main(%x: tensor<4xi64>) -> tensor<*xi64> {
  %eight = dvt.constant {value = dense<8> : tensor<i64>} : tensor<i64>
  %a = dvt.div(%x, %eight) : (tensor<4xi64>, tensor<i64>) -> tensor<*xi64>
  return %a : tensor<*xi64>
}

// -----

// alpha and beta go into the constants.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[B:.*]] = dvt.constant {value = dense<{{\[\[}}2.000000e+00, 4.000000e+00]]> : tensor<1x2xf32>}
// CHECK-DAG: %[[C:.*]] = dvt.constant {value = dense<[5.000000e-01, 1.000000e+00]> : tensor<2xf32>}
// CHECK: dvt.gemm(%arg0, %[[B]], %[[C]]) {alpha = 1.000000e+00 : f32, beta = 1.000000e+00 : f32
func.func @main(%x: tensor<3x1xf32>) -> tensor<*xf32> {
  %b = dvt.constant {value = dense<[[1.0, 2.0]]> : tensor<1x2xf32>} : tensor<1x2xf32>
  %c = dvt.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>
  %y = dvt.gemm(%x, %b, %c) {alpha = 2.0 : f32, beta = 0.5 : f32, transA = 0 : i64, transB = 0 : i64} : (tensor<3x1xf32>, tensor<1x2xf32>, tensor<2xf32>) -> tensor<*xf32>
  return %y : tensor<*xf32>
}

// -----

// What is computed from known extents is a constant.
// CHECK-LABEL: func.func @main
// CHECK: %[[C:.*]] = dvt.constant {value = dense<[3, 8]> : tensor<2xi64>}
// CHECK-NEXT: return %[[C]]
func.func @main(%x: tensor<3x4xf32>) -> tensor<*xi64> {
  %s = dvt.shape(%x) : (tensor<3x4xf32>) -> tensor<*xi64>
  %f = dvt.constant {value = dense<[1, 2]> : tensor<2xi64>} : tensor<2xi64>
  %y = dvt.mul(%s, %f) : (tensor<*xi64>, tensor<2xi64>) -> tensor<*xi64>
  return %y : tensor<*xi64>
}
