// SPDX-License-Identifier: Apache-2.0
// RUN: dovetail-opt --dvt-fold-constants --split-input-file %s | FileCheck %s

// Arithmetic on constants, with broadcasting; what depends on an input stays.
// CHECK-LABEL: func.func @main
// CHECK: %[[SUM:.*]] = dvt.constant {value = dense<{{\[\[}}1.500000e+00, {{.*}}6.500000e+00]]>
// CHECK-NOT: dvt.add
// CHECK: dvt.mul(%arg0, %[[SUM]])
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = dvt.constant {value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>} : tensor<2x3xf32>
  %b = dvt.constant {value = dense<0.5> : tensor<1xf32>} : tensor<1xf32>
  %c = dvt.add(%a, %b) : (tensor<2x3xf32>, tensor<1xf32>) -> tensor<2x3xf32>
  %d = dvt.mul(%x, %c) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %d : tensor<2x3xf32>
}

// -----

// A chain of whole numbers, as exporters write for shapes.
// CHECK-LABEL: func.func @main
// CHECK: %[[END:.*]] = dvt.constant {value = dense<[4, 8]> : tensor<2xi64>}
// CHECK-NEXT: return %[[END]]
func.func @main() -> tensor<2xi64> {
  %shape = dvt.constant {value = dense<[2, 3, 4]> : tensor<3xi64>} : tensor<3xi64>
  %which = dvt.constant {value = dense<[0, 2]> : tensor<2xi64>} : tensor<2xi64>
  %some = dvt.gather(%shape, %which) {axis = 0 : i64} : (tensor<3xi64>, tensor<2xi64>) -> tensor<2xi64>
  %two = dvt.constant {value = dense<2> : tensor<1xi64>} : tensor<1xi64>
  %twice = dvt.mul(%some, %two) : (tensor<2xi64>, tensor<1xi64>) -> tensor<2xi64>
  return %twice : tensor<2xi64>
}

// -----

// Random numbers are drawn at each run, whatever their operands are.
// CHECK-LABEL: func.func @main
// CHECK: dvt.random_normal_like
func.func @main() -> tensor<2xf32> {
  %a = dvt.constant {value = dense<1.0> : tensor<2xf32>} : tensor<2xf32>
  %b = dvt.random_normal_like(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %b : tensor<2xf32>
}

// -----

// Weights in a small form stay in it.
// CHECK-LABEL: func.func @main
// CHECK: dvt.dequantize_linear
func.func @main() -> tensor<2x2xf32> {
  %a = dvt.constant {value = dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>} : tensor<2x2xi8>
  %s = dvt.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %b = dvt.dequantize_linear(%a, %s) : (tensor<2x2xi8>, tensor<f32>) -> tensor<2x2xf32>
  return %b : tensor<2x2xf32>
}

// -----

// A result that is much larger than what it comes from is computed at run time.
// CHECK-LABEL: func.func @main
// CHECK: dvt.expand
func.func @main() -> tensor<1024x1024xf32> {
  %a = dvt.constant {value = dense<1.0> : tensor<1xf32>} : tensor<1xf32>
  %shape = dvt.constant {value = dense<1024> : tensor<2xi64>} : tensor<2xi64>
  %b = dvt.expand(%a, %shape) : (tensor<1xf32>, tensor<2xi64>) -> tensor<1024x1024xf32>
  return %b : tensor<1024x1024xf32>
}
