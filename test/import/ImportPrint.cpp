// SPDX-License-Identifier: Apache-2.0
//
// Prints the graph an ONNX file imports to, or what is wrong with it: for people and for tests that
// go through many files. `import-print [--quiet|--values] [--dim NAME=VALUE]... FILE...`; quiet
// gives one line a file, values one line for each result of an op: node, op, number of the result,
// type.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

#include "graph/GraphDialect.h"
#include "import/Importer.h"

namespace {

/// Kibibytes of memory of this process that no file backs, at its highest so far or now.
long anonymousKib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("RssAnon:", 0) == 0)
      return std::atol(line.c_str() + 8);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  dovetail::importer::ImportOptions options;
  bool quiet = false, values = false;
  int failures = 0;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--quiet")) {
      quiet = true;
      continue;
    }
    if (!std::strcmp(argv[i], "--values")) {
      values = true;
      continue;
    }
    if (!std::strcmp(argv[i], "--dim") && i + 1 < argc) {
      std::string text = argv[++i];
      size_t equals = text.find('=');
      options.dims[text.substr(0, equals)] = std::atoll(text.c_str() + equals + 1);
      continue;
    }
    auto start = std::chrono::steady_clock::now();
    mlir::MLIRContext context;
    auto module = dovetail::importer::importOnnx(argv[i], context, options);
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!module) {
      ++failures;
      std::printf("FAIL %s\n", module.error().message.c_str());
      continue;
    }
    size_t ops = 0;
    (*module)->walk([&](mlir::Operation *) { ++ops; });
    if (quiet) {
      std::printf("ok %s: %zu ops, %.3f s, %ld KiB anonymous\n", argv[i], ops, seconds,
                  anonymousKib());
      continue;
    }
    if (values) {
      (*module)->walk([&](mlir::Operation *op) {
        for (mlir::OpResult result : op->getResults())
          llvm::outs() << dovetail::graph::nodeName(op) << '\t' << op->getName() << '\t'
                       << result.getResultNumber() << '\t' << result.getType() << '\n';
      });
      auto main = (*module)->lookupSymbol<mlir::func::FuncOp>("main");
      llvm::outs() << "main\t" << main.getFunctionType() << '\n';
      continue;
    }
    mlir::OpPrintingFlags flags;
    flags.elideLargeElementsAttrs(16).elideLargeResourceString(16);
    (*module)->print(llvm::outs(), flags);
  }
  return failures ? 2 : 0;
}
