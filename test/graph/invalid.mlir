// SPDX-License-Identifier: Apache-2.0
// RUN: dovetail-opt --split-input-file --verify-diagnostics %s

func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{has 1 operands, expected 2}}
  %y = dvt.add(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{has no attribute 'axes'}}
  %y = dvt.softmax(%x) {axes = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{attribute 'axis' is 1 : i32, expected i64}}
  %y = dvt.softmax(%x) {axis = 1 : i32} : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{lacks the attribute 'axis'}}
  %y = dvt.concat(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

func.func @main() -> tensor<3xf32> {
  // expected-error@+1 {{has a value of type}}
  %y = dvt.constant {value = dense<1.0> : tensor<2xf32>} : tensor<3xf32>
  return %y : tensor<3xf32>
}

// -----

func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{stands for 'no_such_op', which is no op of the table}}
  %y = dvt.composite "no_such_op"(%x) {} : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<2xf32>):
    dvt.yield(%a) : tensor<2xf32>
  }
  return %y : tensor<2xf32>
}

// -----

func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{has operands and body arguments of different types}}
  %y = dvt.composite "gelu"(%x) {} : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<3xf32>):
    %b = dvt.relu(%a) : (tensor<3xf32>) -> tensor<2xf32>
    dvt.yield(%b) : tensor<2xf32>
  }
  return %y : tensor<2xf32>
}
