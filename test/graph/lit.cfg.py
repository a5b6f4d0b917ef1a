# SPDX-License-Identifier: Apache-2.0
#
# lit suite of the graph passes: each .mlir file says in its RUN lines how dovetail-opt is called and what FileCheck
# expects of the output. The build folder is `build`, or what the parameter `build` names.
import os

import lit.formats

root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
build = os.path.abspath(lit_config.params.get("build", os.environ.get("DOVETAIL_BUILD_DIR", os.path.join(root, "build"))))
llvm = lit_config.params.get("llvm", "/usr/lib/llvm-22/bin")

config.name = "dovetail-graph"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(build, "test", "lit-graph")
config.environment["PATH"] = os.pathsep.join([os.path.join(build, "bin"), llvm, os.environ["PATH"]])
if not os.path.exists(os.path.join(build, "bin", "dovetail-opt")):
    lit_config.fatal(f"there is no dovetail-opt in {build}/bin; build it first")
