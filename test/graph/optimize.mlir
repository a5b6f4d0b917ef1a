// SPDX-License-Identifier: Apache-2.0
// RUN: dovetail-opt --dvt-optimize %s | FileCheck %s

// All passes to a fixed point: the shape arithmetic folds, the batch normalisation goes into the
// convolution's weights, the transposes cancel, and the layer normalisation is found in what is left.
// CHECK-LABEL: func.func @main
// CHECK-NOT: dvt.batch_normalization
// CHECK-NOT: dvt.transpose
// CHECK: dvt.conv(%arg0,
// CHECK: dvt.composite
// CHECK-SAME: layer_normalization
func.func @main(%x: tensor<1x2x3x4xf32>) -> tensor<*xf32> {
  %w = dvt.constant {value = dense<2.0> : tensor<4x2x1x1xf32>} : tensor<4x2x1x1xf32>
  %c = dvt.conv(%x, %w) : (tensor<1x2x3x4xf32>, tensor<4x2x1x1xf32>) -> tensor<*xf32>
  %g = dvt.constant {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : tensor<4xf32>
  %v = dvt.constant {value = dense<1.0> : tensor<4xf32>} : tensor<4xf32>
  %n = dvt.batch_normalization(%c, %g, %v, %v, %v) {epsilon = 0.0 : f32} : (tensor<*xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<*xf32>
  %a = dvt.transpose(%n) {perm = array<i64: 0, 2, 3, 1>} : (tensor<*xf32>) -> tensor<*xf32>
  %b = dvt.transpose(%a) {perm = array<i64: 0, 3, 1, 2>} : (tensor<*xf32>) -> tensor<*xf32>
  %axes = dvt.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %mean = dvt.reduce_mean(%b, %axes) : (tensor<*xf32>, tensor<1xi64>) -> tensor<*xf32>
  %d = dvt.sub(%b, %mean) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %two = dvt.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %sq = dvt.pow(%d, %two) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %var = dvt.reduce_mean(%sq, %axes) : (tensor<*xf32>, tensor<1xi64>) -> tensor<*xf32>
  %eps = dvt.constant {value = dense<1.0e-5> : tensor<f32>} : tensor<f32>
  %ve = dvt.add(%var, %eps) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %sd = dvt.sqrt(%ve) : (tensor<*xf32>) -> tensor<*xf32>
  %y = dvt.div(%d, %sd) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %scale = dvt.constant {value = dense<[0.5, 1.0, 1.5, 2.0]> : tensor<4xf32>} : tensor<4xf32>
  %z = dvt.mul(%y, %scale) : (tensor<*xf32>, tensor<4xf32>) -> tensor<*xf32>
  return %z : tensor<*xf32>
}
