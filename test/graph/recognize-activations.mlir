// SPDX-License-Identifier: Apache-2.0
// RUN: dovetail-opt --dvt-infer-shapes --dvt-recognize --split-input-file %s | FileCheck %s

// GELU by erf, its factors in three orders.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-3: dvt.composite "gelu"({{.*}}) {approximate = "none"}
// CHECK-NOT: dvt.composite
func.func @main(%x: tensor<4xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) {
  %root = dvt.constant {value = dense<1.41421354> : tensor<f32>} : tensor<f32>
  %inverse = dvt.constant {value = dense<0.707106769> : tensor<f32>} : tensor<f32>
  %one = dvt.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %half = dvt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %a0 = dvt.div(%x, %root) : (tensor<4xf32>, tensor<f32>) -> tensor<*xf32>
  %a1 = dvt.erf(%a0) : (tensor<*xf32>) -> tensor<*xf32>
  %a2 = dvt.add(%a1, %one) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %a3 = dvt.mul(%x, %a2) : (tensor<4xf32>, tensor<*xf32>) -> tensor<*xf32>
  %a4 = dvt.mul(%a3, %half) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %y = dvt.relu(%a4) : (tensor<*xf32>) -> tensor<*xf32>
  %b0 = dvt.mul(%y, %inverse) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %b1 = dvt.erf(%b0) : (tensor<*xf32>) -> tensor<*xf32>
  %b2 = dvt.add(%one, %b1) : (tensor<f32>, tensor<*xf32>) -> tensor<*xf32>
  %b3 = dvt.mul(%half, %b2) : (tensor<f32>, tensor<*xf32>) -> tensor<*xf32>
  %b4 = dvt.mul(%b3, %y) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %z = dvt.sqrt(%b4) : (tensor<*xf32>) -> tensor<*xf32>
  %c0 = dvt.div(%z, %root) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %c1 = dvt.erf(%c0) : (tensor<*xf32>) -> tensor<*xf32>
  %c2 = dvt.add(%c1, %one) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %c3 = dvt.mul(%z, %half) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %c4 = dvt.mul(%c3, %c2) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  return %a4, %b4, %c4 : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}

// -----

// Other constants are another function.
// CHECK-LABEL: func.func @main
// CHECK-NOT: dvt.composite
func.func @main(%x: tensor<4xf32>) -> tensor<*xf32> {
  %root = dvt.constant {value = dense<1.5> : tensor<f32>} : tensor<f32>
  %one = dvt.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %half = dvt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %a0 = dvt.div(%x, %root) : (tensor<4xf32>, tensor<f32>) -> tensor<*xf32>
  %a1 = dvt.erf(%a0) : (tensor<*xf32>) -> tensor<*xf32>
  %a2 = dvt.add(%a1, %one) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %a3 = dvt.mul(%x, %a2) : (tensor<4xf32>, tensor<*xf32>) -> tensor<*xf32>
  %a4 = dvt.mul(%a3, %half) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  return %a4 : tensor<*xf32>
}

// -----

// GELU by tanh.
// CHECK-LABEL: func.func @main
// CHECK: dvt.composite "gelu"({{.*}}) {approximate = "tanh"}
// CHECK: dvt.tanh
// CHECK: dvt.yield
// CHECK-NOT: dvt.mul
// CHECK: return
func.func @main(%x: tensor<4xf32>) -> tensor<*xf32> {
  %three = dvt.constant {value = dense<3.0> : tensor<f32>} : tensor<f32>
  %cubic = dvt.constant {value = dense<0.044715> : tensor<f32>} : tensor<f32>
  %c = dvt.constant {value = dense<0.7978845608> : tensor<f32>} : tensor<f32>
  %one = dvt.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %half = dvt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %a0 = dvt.pow(%x, %three) : (tensor<4xf32>, tensor<f32>) -> tensor<*xf32>
  %a1 = dvt.mul(%cubic, %a0) : (tensor<f32>, tensor<*xf32>) -> tensor<*xf32>
  %a2 = dvt.add(%x, %a1) : (tensor<4xf32>, tensor<*xf32>) -> tensor<*xf32>
  %a3 = dvt.mul(%a2, %c) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %a4 = dvt.tanh(%a3) : (tensor<*xf32>) -> tensor<*xf32>
  %a5 = dvt.add(%a4, %one) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %a6 = dvt.mul(%half, %x) : (tensor<f32>, tensor<4xf32>) -> tensor<*xf32>
  %a7 = dvt.mul(%a6, %a5) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  return %a7 : tensor<*xf32>
}

// -----

// Hard-swish with the division last and first, and by hard-sigmoid; swish; mish; hard-sigmoid gating something else.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-3: dvt.composite "hard_swish"
// CHECK: dvt.composite "swish"({{.*}}) {alpha = 1.000000e+00 : f32}
// CHECK: dvt.composite "mish"
// CHECK: dvt.composite "hard_sigmoid"({{.*}}) {alpha = 0.166666672 : f32, beta = 5.000000e-01 : f32}
// CHECK-NOT: dvt.composite
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %zero = dvt.constant {value = dense<0.0> : tensor<f32>} : tensor<f32>
  %three = dvt.constant {value = dense<3.0> : tensor<f32>} : tensor<f32>
  %six = dvt.constant {value = dense<6.0> : tensor<f32>} : tensor<f32>
  %a0 = dvt.add(%x, %three) : (tensor<4xf32>, tensor<f32>) -> tensor<*xf32>
  %a1 = dvt.clip(%a0, %zero, %six) : (tensor<*xf32>, tensor<f32>, tensor<f32>) -> tensor<*xf32>
  %a2 = dvt.mul(%x, %a1) : (tensor<4xf32>, tensor<*xf32>) -> tensor<*xf32>
  %a3 = dvt.div(%a2, %six) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %b0 = dvt.add(%three, %a3) : (tensor<f32>, tensor<*xf32>) -> tensor<*xf32>
  %b1 = dvt.clip(%b0, %zero, %six) : (tensor<*xf32>, tensor<f32>, tensor<f32>) -> tensor<*xf32>
  %b2 = dvt.div(%b1, %six) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %b3 = dvt.mul(%b2, %a3) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %c0 = dvt.hard_sigmoid(%b3) {alpha = 0.16666667 : f32, beta = 0.5 : f32} : (tensor<*xf32>) -> tensor<*xf32>
  %c1 = dvt.mul(%b3, %c0) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %d0 = dvt.sigmoid(%c1) : (tensor<*xf32>) -> tensor<*xf32>
  %d1 = dvt.mul(%c1, %d0) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %e0 = dvt.softplus(%d1) : (tensor<*xf32>) -> tensor<*xf32>
  %e1 = dvt.tanh(%e0) : (tensor<*xf32>) -> tensor<*xf32>
  %e2 = dvt.mul(%d1, %e1) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %f0 = dvt.add(%e2, %three) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %f1 = dvt.clip(%f0, %zero, %six) : (tensor<*xf32>, tensor<f32>, tensor<f32>) -> tensor<*xf32>
  %f2 = dvt.div(%f1, %six) : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %f3 = dvt.mul(%f2, %y) : (tensor<*xf32>, tensor<4xf32>) -> tensor<*xf32>
  return %e2, %f3 : tensor<*xf32>, tensor<*xf32>
}

// -----

// An inner result that is used elsewhere keeps the pattern as it is.
// CHECK-LABEL: func.func @main
// CHECK-NOT: dvt.composite
func.func @main(%x: tensor<4xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %d0 = dvt.sigmoid(%x) : (tensor<4xf32>) -> tensor<*xf32>
  %d1 = dvt.mul(%x, %d0) : (tensor<4xf32>, tensor<*xf32>) -> tensor<*xf32>
  return %d0, %d1 : tensor<*xf32>, tensor<*xf32>
}
