# SPDX-License-Identifier: Apache-2.0
"""Writes a model with a cache: present is past and x behind it, y the mean over present. Usage: tiny_decoder.py FILE"""
import sys

import onnx
from onnx import TensorProto, helper

nodes = [helper.make_node("Concat", ["past", "x"], ["present"], axis=1),
         helper.make_node("ReduceMean", ["present", "axes"], ["y"], keepdims=0)]
tensor = helper.make_tensor_value_info
graph = helper.make_graph(
    nodes, "decoder",
    [tensor("past", TensorProto.FLOAT, [2, "length", 4]), tensor("x", TensorProto.FLOAT, [2, 1, 4])],
    [tensor("present", TensorProto.FLOAT, [2, "longer", 4]), tensor("y", TensorProto.FLOAT, [2, 4])],
    [helper.make_tensor("axes", TensorProto.INT64, [1], [1])])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), sys.argv[1])
