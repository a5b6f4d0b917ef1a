// SPDX-License-Identifier: Apache-2.0
// RUN: dovetail-opt --dvt-infer-shapes --split-input-file %s | FileCheck %s --check-prefix=SHAPES
// RUN: dovetail-opt --dvt-simplify --split-input-file %s | FileCheck %s

// What is carried grows in each iteration, what is stacked up is as many as there were iterations.
// SHAPES-LABEL: func.func @main
// SHAPES: "dvt.loop"
// SHAPES: ^bb0({{.*}}: tensor<i64>, {{.*}}: tensor<i1>, %{{.*}}: tensor<?x4xf32, ["carried.0", "4"]>):
// SHAPES: -> (tensor<?x4xf32, ["carried.1", "4"]>, tensor<?x2x4xf32, ["iterations.0", "2", "4"]>)
// CHECK-LABEL: func.func @main
// CHECK: "dvt.loop"
func.func @main(%m: tensor<i64>, %c: tensor<i1>, %x: tensor<2x4xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %z:2 = "dvt.loop"(%m, %c, %x) ({
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %v: tensor<2x4xf32>):
    %a = dvt.concat(%v, %x) {axis = 0 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<*xf32>
    %b = dvt.relu(%x) : (tensor<2x4xf32>) -> tensor<*xf32>
    dvt.yield(%go, %a, %b) : tensor<i1>, tensor<*xf32>, tensor<*xf32>
  }) : (tensor<i64>, tensor<i1>, tensor<2x4xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  return %z#0, %z#1 : tensor<*xf32>, tensor<*xf32>
}

// -----

// A trip count that is an extent is the length of what is stacked up.
// SHAPES-LABEL: func.func @main
// SHAPES: tensor<?x4xf32, ["N", "4"]>)
// CHECK-LABEL: func.func @main
// CHECK: "dvt.loop"
func.func @main(%x: tensor<?x4xf32, ["N", "4"]>, %w: tensor<4xf32>) -> tensor<*xf32> {
  %none = dvt.none
  %s = dvt.shape(%x) {start = 0 : i64, end = 1 : i64} : (tensor<?x4xf32, ["N", "4"]>) -> tensor<*xi64>
  %z = "dvt.loop"(%s, %none) ({
  ^bb0(%i: tensor<i64>, %go: tensor<i1>):
    %b = dvt.relu(%w) : (tensor<4xf32>) -> tensor<*xf32>
    dvt.yield(%go, %b) : tensor<i1>, tensor<*xf32>
  }) : (tensor<*xi64>, none) -> tensor<*xf32>
  return %z : tensor<*xf32>
}

// -----

// Elements of a scan lack the axis; results have the scanned extent where they say.
// SHAPES-LABEL: func.func @main
// SHAPES: ^bb0(%{{.*}}: tensor<2xf32>, %{{.*}}: tensor<2xf32>):
// SHAPES: -> (tensor<2xf32>, tensor<2x?xf32, ["2", "N"]>)
// CHECK-LABEL: func.func @main
// CHECK: "dvt.scan"
func.func @main(%s: tensor<2xf32>, %x: tensor<?x2xf32, ["N", "2"]>) -> (tensor<*xf32>, tensor<*xf32>) {
  %z:2 = "dvt.scan"(%s, %x) ({
  ^bb0(%v: tensor<2xf32>, %e: tensor<2xf32>):
    %a = dvt.add(%v, %e) : (tensor<2xf32>, tensor<2xf32>) -> tensor<*xf32>
    %b = dvt.relu(%a) : (tensor<*xf32>) -> tensor<*xf32>
    dvt.yield(%a, %b) : tensor<*xf32>, tensor<*xf32>
  }) {scan_input_axes = array<i64: 0>, scan_input_directions = array<i64: 0>,
      scan_output_axes = array<i64: 1>, scan_output_directions = array<i64: 0>}
      : (tensor<2xf32>, tensor<?x2xf32, ["N", "2"]>) -> (tensor<*xf32>, tensor<*xf32>)
  return %z#0, %z#1 : tensor<*xf32>, tensor<*xf32>
}

// -----

// The branch of a known condition takes the place of the conditional.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[A:.*]] = dvt.relu(%arg0)
// CHECK-NEXT: return %[[A]]
// SHAPES-LABEL: func.func @main
func.func @main(%x: tensor<2xf32>) -> tensor<*xf32> {
  %c = dvt.constant {value = dense<true> : tensor<i1>} : tensor<i1>
  %z = "dvt.if"(%c) ({
    %a = dvt.relu(%x) : (tensor<2xf32>) -> tensor<*xf32>
    dvt.yield(%a) : tensor<*xf32>
  }, {
    %b = dvt.neg(%x) : (tensor<2xf32>) -> tensor<*xf32>
    dvt.yield(%b) : tensor<*xf32>
  }) : (tensor<i1>) -> tensor<*xf32>
  return %z : tensor<*xf32>
}

// -----

// No iteration, no loop; and what is carried along unchanged is what it was.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: return %arg0
// SHAPES-LABEL: func.func @main
func.func @main(%x: tensor<2xf32>) -> tensor<*xf32> {
  %none = dvt.none
  %m = dvt.constant {value = dense<0> : tensor<i64>} : tensor<i64>
  %z = "dvt.loop"(%m, %none, %x) ({
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %v: tensor<2xf32>):
    %a = dvt.neg(%v) : (tensor<2xf32>) -> tensor<*xf32>
    dvt.yield(%go, %a) : tensor<i1>, tensor<*xf32>
  }) : (tensor<i64>, none, tensor<2xf32>) -> tensor<*xf32>
  return %z : tensor<*xf32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK: "dvt.loop"
// CHECK: ^bb0({{.*}}: tensor<i64>, {{.*}}: tensor<i1>, %{{.*}}: tensor<2xf32>):
// CHECK: dvt.add({{.*}}, %arg1)
// CHECK: return {{.*}}, %arg1
// SHAPES-LABEL: func.func @main
func.func @main(%m: tensor<i64>, %x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %none = dvt.none
  %z:2 = "dvt.loop"(%m, %none, %y, %x) ({
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %v: tensor<2xf32>, %same: tensor<2xf32>):
    %a = dvt.add(%v, %same) : (tensor<2xf32>, tensor<2xf32>) -> tensor<*xf32>
    dvt.yield(%go, %a, %same) : tensor<i1>, tensor<*xf32>, tensor<2xf32>
  }) : (tensor<i64>, none, tensor<2xf32>, tensor<2xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  return %z#0, %z#1 : tensor<*xf32>, tensor<*xf32>
}
