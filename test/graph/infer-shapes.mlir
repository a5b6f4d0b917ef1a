// SPDX-License-Identifier: Apache-2.0
// RUN: dovetail-opt --dvt-infer-shapes --split-input-file %s | FileCheck %s
// RUN: not dovetail-opt --dvt-infer-shapes=dims=N=2,H=9 %s --split-input-file > %t 2>&1
// RUN: FileCheck %s --check-prefix=DIMS --input-file=%t
// RUN: FileCheck %s --check-prefix=UNKNOWN --input-file=%t

// CHECK-LABEL: func.func @main
// CHECK-SAME: -> tensor<?x?xf32, ["N", "8*floordiv(H+1,2)*floordiv(W+1,2)"]>
// CHECK: dvt.conv({{.*}} -> tensor<?x8x?x?xf32, ["N", "8", "floordiv(H+1,2)", "floordiv(W+1,2)"]>
// CHECK: dvt.shape({{.*}} -> tensor<4xi64>
// CHECK: dvt.reshape({{.*}} -> tensor<?x?xf32, ["N", "8*floordiv(H+1,2)*floordiv(W+1,2)"]>
// DIMS: dvt.conv({{.*}} -> tensor<2x8x5x?xf32, ["2", "8", "5", "floordiv(W+1,2)"]>
func.func @main(%x: tensor<?x3x?x?xf32, ["N", "3", "H", "W"]>) -> tensor<*xf32> {
  %w = dvt.constant {value = dense<1.0> : tensor<8x3x3x3xf32>} : tensor<8x3x3x3xf32>
  %y = dvt.conv(%x, %w) {pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<?x3x?x?xf32, ["N", "3", "H", "W"]>, tensor<8x3x3x3xf32>) -> tensor<*xf32>
  %shape = dvt.shape(%y) : (tensor<*xf32>) -> tensor<*xi64>
  %zero = dvt.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %batch = dvt.gather(%shape, %zero) : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
  %rest = dvt.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %wanted = dvt.concat(%batch, %rest) {axis = 0 : i64} : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
  %flat = dvt.reshape(%y, %wanted) : (tensor<*xf32>, tensor<*xi64>) -> tensor<*xf32>
  return %flat : tensor<*xf32>
}

// -----

// A composite has the types of its body, and arguments without names get symbols.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%{{.*}}: tensor<?x4xf32, ["arg0.0", "4"]>)
// CHECK: dvt.composite "gelu"({{.*}} -> tensor<?x4xf32, ["arg0.0", "4"]>
// CHECK: ^bb0(%{{.*}}: tensor<?x4xf32, ["arg0.0", "4"]>):
// UNKNOWN: error: the model has no dimension 'H'; it has
func.func @main(%x: tensor<?x4xf32>) -> tensor<*xf32> {
  %y = dvt.composite "gelu"(%x) {approximate = "none"} : (tensor<?x4xf32>) -> tensor<*xf32> {
  ^bb0(%a: tensor<?x4xf32>):
    %e = dvt.erf(%a) : (tensor<?x4xf32>) -> tensor<*xf32>
    dvt.yield(%e) : tensor<*xf32>
  }
  return %y : tensor<*xf32>
}

// -----

// The branches of a conditional agree in what they can.
// CHECK-LABEL: func.func @main
// CHECK: "dvt.if"
// CHECK: -> tensor<?x4xf32, ["if.0", "4"]>
func.func @main(%c: tensor<i1>, %x: tensor<2x4xf32>, %y: tensor<3x4xf32>) -> tensor<*xf32> {
  %z = "dvt.if"(%c) ({
    %a = dvt.relu(%x) : (tensor<2x4xf32>) -> tensor<*xf32>
    dvt.yield(%a) : tensor<*xf32>
  }, {
    %b = dvt.relu(%y) : (tensor<3x4xf32>) -> tensor<*xf32>
    dvt.yield(%b) : tensor<*xf32>
  }) : (tensor<i1>) -> tensor<*xf32>
  return %z : tensor<*xf32>
}
