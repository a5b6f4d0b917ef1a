// SPDX-License-Identifier: Apache-2.0
//
// The stages of an import, and the border that libonnx's exceptions do not cross.
#include "import/Importer.h"

#include <new>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

#include "graph/GraphDialect.h"
#include "import/GraphImport.h"
#include "import/ModelFile.h"

namespace dovetail::importer {
namespace {

using Module = mlir::OwningOpRef<mlir::ModuleOp>;

/// What comes out of here is valid; where it is not, the importer or a shape rule has a bug.
Status checkModule(mlir::ModuleOp module) {
  std::string text;
  mlir::ScopedDiagnosticHandler handler(module.getContext(), [&](mlir::Diagnostic &diagnostic) {
    if (text.empty())
      text = diagnostic.str();
    return mlir::success();
  });
  if (mlir::failed(mlir::verify(module)))
    return internalError("the imported graph does not verify: {}", text);
  return Status::success();
}

Expected<Module> importParsed(Expected<std::unique_ptr<ModelFile>> file, mlir::MLIRContext &context,
                              const ImportOptions &options) {
  if (!file)
    return file.takeError();
  Expected<Module> module = GraphImport(**file, context, options).run();
  if (!module)
    return module;
  if (Status status = checkModule(**module); !status)
    return status.takeError();
  return module;
}

template <typename Load>
Expected<Module> guarded(mlir::MLIRContext &context, const ImportOptions &options, Load load) {
  context.loadDialect<mlir::func::FuncDialect, graph::GraphDialect>();
  try {
    return importParsed(load(), context, options);
  } catch (const std::bad_alloc &) {
    return unavailable("out of memory while importing the model");
  } catch (const std::exception &exception) {
    return badInput("the model is not valid: {}", exception.what());
  }
}

} // namespace

Expected<Module> importOnnx(const std::string &path, mlir::MLIRContext &context,
                            const ImportOptions &options) {
  Expected<Module> module = guarded(context, options, [&] { return ModelFile::load(path); });
  if (!module)
    return Error{module.error().kind, path + ": " + module.error().message};
  return module;
}

Expected<Module> importOnnx(std::string_view bytes, std::shared_ptr<const void> owner,
                            mlir::MLIRContext &context, const ImportOptions &options,
                            const std::string &folder) {
  return guarded(context, options, [&] {
    return ModelFile::parse(Bytes{bytes, std::move(owner)}, folder);
  });
}

} // namespace dovetail::importer
