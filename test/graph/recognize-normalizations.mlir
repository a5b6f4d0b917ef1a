// SPDX-License-Identifier: Apache-2.0
// RUN: dovetail-opt --dvt-simplify --dvt-recognize --split-input-file %s | FileCheck %s

// Layer normalization as exporters before op set 17 write it.
// CHECK-LABEL: func.func @main
// CHECK: %[[Y:.*]] = dvt.composite "layer_normalization"(%arg0, %{{.*}}, %{{.*}}) {axis = 2 : i64, epsilon = 9.99999974E-6 : f32, stash_type = 1 : i64}
// CHECK-SAME: (tensor<?x5x8xf32, ["N", "5", "8"]>, tensor<8xf32>, tensor<8xf32>)
// CHECK: dvt.reduce_mean
// CHECK: dvt.yield
// CHECK-NEXT: }
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<?x5x8xf32, ["N", "5", "8"]>) -> tensor<*xf32> {
  %axes = dvt.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %two = dvt.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %eps = dvt.constant {value = dense<1.0e-05> : tensor<f32>} : tensor<f32>
  %g = dvt.constant {value = dense<3.0> : tensor<8xf32>} : tensor<8xf32>
  %b = dvt.constant {value = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>} : tensor<8xf32>
  %mean = dvt.reduce_mean(%x, %axes) : (tensor<?x5x8xf32, ["N", "5", "8"]>, tensor<1xi64>) -> tensor<*xf32>
  %d = dvt.sub(%x, %mean) : (tensor<?x5x8xf32, ["N", "5", "8"]>, tensor<*xf32>) -> tensor<*xf32>
  %sq = dvt.pow(%d, %two) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %var = dvt.reduce_mean(%sq, %axes) : (tensor<*xf32>, tensor<1xi64>) -> tensor<*xf32>
  %ve = dvt.add(%var, %eps) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %sd = dvt.sqrt(%ve) : (tensor<*xf32>) -> tensor<*xf32>
  %n = dvt.div(%d, %sd) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %s = dvt.mul(%n, %g) : (tensor<*xf32>, tensor<8xf32>) -> tensor<*xf32>
  %y = dvt.add(%s, %b) : (tensor<*xf32>, tensor<8xf32>) -> tensor<*xf32>
  return %y : tensor<*xf32>
}

// -----

// RMS normalization over two dimensions, by a reciprocal; the scale is made where there is none.
// CHECK-LABEL: func.func @main
// CHECK: %[[ONE:.*]] = dvt.constant {value = dense<1.000000e+00> : tensor<5x8xf32>}
// CHECK: dvt.composite "rms_normalization"(%arg0, %[[ONE]]) {axis = 1 : i64, epsilon = 9.99999997E-7 : f32, stash_type = 1 : i64}
func.func @main(%x: tensor<2x5x8xf32>) -> tensor<*xf32> {
  %axes = dvt.constant {value = dense<[1, 2]> : tensor<2xi64>} : tensor<2xi64>
  %eps = dvt.constant {value = dense<1.0e-06> : tensor<f32>} : tensor<f32>
  %sq = dvt.mul(%x, %x) : (tensor<2x5x8xf32>, tensor<2x5x8xf32>) -> tensor<*xf32>
  %var = dvt.reduce_mean(%sq, %axes) : (tensor<*xf32>, tensor<2xi64>) -> tensor<*xf32>
  %ve = dvt.add(%eps, %var) : (tensor<f32>, tensor<*xf32>) -> tensor<*xf32>
  %sd = dvt.sqrt(%ve) : (tensor<*xf32>) -> tensor<*xf32>
  %r = dvt.reciprocal(%sd) : (tensor<*xf32>) -> tensor<*xf32>
  %y = dvt.mul(%x, %r) : (tensor<2x5x8xf32>, tensor<*xf32>) -> tensor<*xf32>
  return %y : tensor<*xf32>
}

// -----

// Channels in the middle are no layer normalization.
// CHECK-LABEL: func.func @main
// CHECK-NOT: dvt.composite
func.func @main(%x: tensor<2x5x8xf32>) -> tensor<*xf32> {
  %axes = dvt.constant {value = dense<1> : tensor<1xi64>} : tensor<1xi64>
  %eps = dvt.constant {value = dense<1.0e-06> : tensor<f32>} : tensor<f32>
  %sq = dvt.mul(%x, %x) : (tensor<2x5x8xf32>, tensor<2x5x8xf32>) -> tensor<*xf32>
  %var = dvt.reduce_mean(%sq, %axes) : (tensor<*xf32>, tensor<1xi64>) -> tensor<*xf32>
  %ve = dvt.add(%eps, %var) : (tensor<f32>, tensor<*xf32>) -> tensor<*xf32>
  %sd = dvt.sqrt(%ve) : (tensor<*xf32>) -> tensor<*xf32>
  %y = dvt.div(%x, %sd) : (tensor<2x5x8xf32>, tensor<*xf32>) -> tensor<*xf32>
  return %y : tensor<*xf32>
}

// -----

// Softmax, its maximum taken off first.
// CHECK-LABEL: func.func @main
// CHECK: %[[Y:.*]] = dvt.composite "softmax"(%arg0) {axis = 1 : i64}
// CHECK: return %[[Y]]
func.func @main(%x: tensor<2x5x8xf32>) -> tensor<*xf32> {
  %axes = dvt.constant {value = dense<1> : tensor<1xi64>} : tensor<1xi64>
  %max = dvt.reduce_max(%x, %axes) : (tensor<2x5x8xf32>, tensor<1xi64>) -> tensor<*xf32>
  %d = dvt.sub(%x, %max) : (tensor<2x5x8xf32>, tensor<*xf32>) -> tensor<*xf32>
  %e = dvt.exp(%d) : (tensor<*xf32>) -> tensor<*xf32>
  %sum = dvt.reduce_sum(%e, %axes) : (tensor<*xf32>, tensor<1xi64>) -> tensor<*xf32>
  %y = dvt.div(%e, %sum) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  return %y : tensor<*xf32>
}
