// SPDX-License-Identifier: Apache-2.0
// RUN: dovetail-opt --dvt-simplify --split-input-file %s | FileCheck %s

// Nothing is left of ops that do nothing.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: return %arg0
func.func @main(%x: tensor<?x4xf32, ["N", "4"]>) -> tensor<*xf32> {
  %a = dvt.identity(%x) : (tensor<?x4xf32, ["N", "4"]>) -> tensor<*xf32>
  %b = dvt.dropout(%a) : (tensor<*xf32>) -> tensor<*xf32>
  %c = dvt.cast(%b) {to = 1 : i64} : (tensor<*xf32>) -> tensor<*xf32>
  %d = dvt.transpose(%c) {perm = array<i64: 1, 0>} : (tensor<*xf32>) -> tensor<*xf32>
  %e = dvt.transpose(%d) {perm = array<i64: 1, 0>} : (tensor<*xf32>) -> tensor<*xf32>
  %axes = dvt.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %f = dvt.unsqueeze(%e, %axes) : (tensor<*xf32>, tensor<1xi64>) -> tensor<*xf32>
  %g = dvt.squeeze(%f, %axes) : (tensor<*xf32>, tensor<1xi64>) -> tensor<*xf32>
  %start = dvt.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %end = dvt.constant {value = dense<9223372036854775807> : tensor<1xi64>} : tensor<1xi64>
  %h = dvt.slice(%g, %start, %end, %axes) : (tensor<*xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xf32>
  %i = dvt.concat(%h) {axis = 0 : i64} : (tensor<*xf32>) -> tensor<*xf32>
  %pads = dvt.constant {value = dense<0> : tensor<4xi64>} : tensor<4xi64>
  %j = dvt.pad(%i, %pads) {mode = "constant"} : (tensor<*xf32>, tensor<4xi64>) -> tensor<*xf32>
  return %j : tensor<*xf32>
}

// -----

// A backward slice keeps every extent but not the order.
// CHECK-LABEL: func.func @main
// CHECK: dvt.slice
func.func @main(%x: tensor<4xf32>) -> tensor<*xf32> {
  %start = dvt.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %end = dvt.constant {value = dense<-9> : tensor<1xi64>} : tensor<1xi64>
  %axes = dvt.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %h = dvt.slice(%x, %start, %end, %axes, %start) : (tensor<4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xf32>
  return %h : tensor<*xf32>
}

// -----

// Pads that cancel do move elements.
// CHECK-LABEL: func.func @main
// CHECK: dvt.pad
func.func @main(%x: tensor<4xf32>) -> tensor<*xf32> {
  %pads = dvt.constant {value = dense<[1, -1]> : tensor<2xi64>} : tensor<2xi64>
  %h = dvt.pad(%x, %pads) {mode = "constant"} : (tensor<4xf32>, tensor<2xi64>) -> tensor<*xf32>
  return %h : tensor<*xf32>
}

// -----

// Reshapes of reshapes are one, with a constant shape although two extents are symbolic.
// CHECK-LABEL: func.func @main
// CHECK: %[[SHAPE:.*]] = dvt.constant {value = dense<[0, -1, 4]> : tensor<3xi64>}
// CHECK: %[[VIEW:.*]] = dvt.reshape(%arg0, %[[SHAPE]])
// CHECK: return %[[VIEW]]
func.func @main(%x: tensor<?x4x?xf32, ["N", "4", "L"]>) -> tensor<*xf32> {
  %flat = dvt.flatten(%x) {axis = 1 : i64} : (tensor<?x4x?xf32, ["N", "4", "L"]>) -> tensor<*xf32>
  %shape = dvt.shape(%x) : (tensor<?x4x?xf32, ["N", "4", "L"]>) -> tensor<*xi64>
  %order = dvt.constant {value = dense<[0, 2, 1]> : tensor<3xi64>} : tensor<3xi64>
  %wanted = dvt.gather(%shape, %order) : (tensor<*xi64>, tensor<3xi64>) -> tensor<*xi64>
  %y = dvt.reshape(%flat, %wanted) : (tensor<*xf32>, tensor<*xi64>) -> tensor<*xf32>
  return %y : tensor<*xf32>
}

// -----

// Transposes meet across a reshape that only adds an extent of 1.
// CHECK-LABEL: func.func @main
// CHECK-NOT: dvt.transpose
// CHECK: dvt.reshape(%arg0
// CHECK-NOT: dvt.transpose
// CHECK: return
func.func @main(%x: tensor<5x12x64xf32>) -> tensor<*xf32> {
  %t = dvt.transpose(%x) {perm = array<i64: 1, 2, 0>} : (tensor<5x12x64xf32>) -> tensor<*xf32>
  %axes = dvt.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %u = dvt.unsqueeze(%t, %axes) : (tensor<*xf32>, tensor<1xi64>) -> tensor<*xf32>
  %v = dvt.transpose(%u) {perm = array<i64: 0, 3, 1, 2>} : (tensor<*xf32>) -> tensor<*xf32>
  return %v : tensor<*xf32>
}

// -----

// One of three packed parts is taken before the transpose, which then only moves extents of 1.
// CHECK-LABEL: func.func @main
// CHECK-NOT: dvt.transpose
// CHECK: dvt.gather(%arg0, {{.*}}) {axis = 3 : i64}
// CHECK-NOT: dvt.transpose
// CHECK: return
func.func @main(%x: tensor<1x197x1x3x768xf32>) -> tensor<*xf32> {
  %t = dvt.transpose(%x) {perm = array<i64: 3, 1, 2, 0, 4>} : (tensor<1x197x1x3x768xf32>) -> tensor<*xf32>
  %axes = dvt.constant {value = dense<-2> : tensor<1xi64>} : tensor<1xi64>
  %s = dvt.squeeze(%t, %axes) : (tensor<*xf32>, tensor<1xi64>) -> tensor<*xf32>
  %i = dvt.constant {value = dense<2> : tensor<i64>} : tensor<i64>
  %g = dvt.gather(%s, %i) {axis = 0 : i64} : (tensor<*xf32>, tensor<i64>) -> tensor<*xf32>
  return %g : tensor<*xf32>
}

// -----

// A concat of all parts of a split, and a split of a concat.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: return %arg0, %arg1
func.func @main(%x: tensor<6x4xf32>, %y: tensor<2x4xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %a, %b = dvt.split(%x) {axis = 0 : i64} : (tensor<6x4xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  %c = dvt.concat(%a, %b) {axis = 0 : i64} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %d = dvt.concat(%y, %y) {axis = 1 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<*xf32>
  %e, %f = dvt.split(%d) {axis = -1 : i64} : (tensor<*xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  return %c, %f : tensor<*xf32>, tensor<*xf32>
}

// -----

// constant_of_shape is an expand; equal ops are one.
// CHECK-LABEL: func.func @main
// CHECK: %[[E:.*]] = dvt.expand(
// CHECK-NOT: dvt.constant_of_shape
// CHECK: return %[[E]], %[[E]]
func.func @main(%x: tensor<?x4xf32, ["N", "4"]>) -> (tensor<*xf32>, tensor<*xf32>) {
  %s = dvt.shape(%x) : (tensor<?x4xf32, ["N", "4"]>) -> tensor<*xi64>
  %a = dvt.constant_of_shape(%s) {value = dense<2.5> : tensor<1xf32>} : (tensor<*xi64>) -> tensor<*xf32>
  %b = dvt.constant_of_shape(%s) {value = dense<2.5> : tensor<1xf32>} : (tensor<*xi64>) -> tensor<*xf32>
  return %a, %b : tensor<*xf32>, tensor<*xf32>
}
