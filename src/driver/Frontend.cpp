// SPDX-License-Identifier: Apache-2.0
//
// Import, optimisation of the graph, tables.
#include "driver/Frontend.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"

#include "artifact/StateNames.h"
#include "graph/Graph.h"
#include "graph/Passes.h"
#include "graph/TensorType.h"
#include "import/Importer.h"
#include "plan/TableBuilder.h"

namespace dovetail {

Expected<plan::OpTable> runFrontend(const std::string &path, const FrontendOptions &options) {
  auto graph = std::make_shared<graph::Graph>();
  importer::ImportOptions importOptions;
  importOptions.dims.insert(options.dims.begin(), options.dims.end());
  for (const auto &[name, extents] : options.inputExtents) {
    importOptions.shapes[name] = std::vector<Extent>(extents.begin(), extents.end());
    importOptions.keepInputs.insert(name);
  }
  importOptions.types = options.inputTypes;
  importOptions.warn = options.warn;
  auto module = importer::importOnnx(path, graph->context(), importOptions);
  if (!module)
    return module.takeError();
  graph->setModule(module->release());
  auto offer = [&](const char *stage) {
    if (options.text && options.wantsText && options.wantsText(stage))
      options.text(stage, graph->text());
  };
  offer("import");
  if (options.stopAfter == "import")
    return plan::OpTable{};
  graph::GraphOptions graphOptions;
  if (!options.states.empty()) {
    std::vector<std::string> inputs, outputs;
    graph::borderNames(graph->module(), inputs, outputs);
    auto states = findStates(options.states, inputs, outputs);
    if (!states)
      return states.takeError();
    graphOptions.states = std::move(*states);
  }
  graphOptions.fold = static_cast<bool>(options.evaluate);
  if (Status status = graph::optimizeGraph(graph->module(), graphOptions, options.evaluate);
      !status)
    return status.takeError();
  offer("graph");
  if (options.stopAfter == "graph")
    return plan::OpTable{};
  SymbolRanges ranges = graph::symbolRanges(graph->module());
  return plan::buildOpTable(graph->module(), graph, std::move(ranges));
}

} // namespace dovetail
