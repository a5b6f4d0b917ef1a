// SPDX-License-Identifier: Apache-2.0
//
// Walks a parsed model: arguments and initializers, then node by node in an order of evaluation.
// Calls of functions that the model defines are expanded on the way, bodies of conditionals whose
// condition is known are taken in place.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <google/protobuf/repeated_ptr_field.h>

#include "import/ContribOps.h"
#include "import/Importer.h"
#include "import/ModelFile.h"
#include "import/NodeImport.h"
#include "import/OpEmitter.h"
#include "import/Sequences.h"
#include "import/Symbols.h"

namespace onnx {
class AttributeProto;
class FunctionProto;
class GraphProto;
class NodeProto;
class OperatorSetIdProto;
class TypeProto;
class ValueInfoProto;
} // namespace onnx

namespace dovetail::importer {

/// Versions of the op sets in use, by domain; "" is ONNX's own.
using OpSets = std::map<std::string, int>;

/// What names mean at one place: in the main graph, in a body that also sees the enclosing graph,
/// in a function.
struct Scope {
  const Scope *enclosing = nullptr;
  const OpSets *opSets = nullptr;
  std::unordered_map<std::string, mlir::Value> values; ///< null: an operand the caller left out
  std::unordered_map<std::string, const onnx::TensorProto *> initializers;
  /// In a function: what the caller passed for its attributes; null for one that is not given.
  const std::map<std::string, const onnx::AttributeProto *> *arguments = nullptr;
  std::string prefix; ///< of node names
  unsigned depth = 0; ///< of calls and bodies
};

class GraphImport {
public:
  GraphImport(ModelFile &file, mlir::MLIRContext &context, const ImportOptions &options);
  Expected<mlir::OwningOpRef<mlir::ModuleOp>> run();

private:
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
  using ImportedSets = google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>;

  Status checkOptions() const;
  Expected<OpSets> readOpSets(const ImportedSets &imports);
  Status importInputs(const onnx::GraphProto &graph, Scope &scope);
  /// Compares the shape given for an input with what the model states; its named dimensions get
  /// their values.
  Status fixGiven(const onnx::ValueInfoProto &input);
  /// Graphs with a wrong declaration of an output exist and run elsewhere: it is said, not refused.
  void warnOfShape(const onnx::ValueInfoProto &output, const std::vector<Extent> &shape) const;
  Expected<graph::ValueFacts> factsOf(const onnx::ValueInfoProto &input, int64_t least);
  Status addInitializers(const onnx::GraphProto &graph, Scope &scope);
  /// Imports what `outputs` need and gives their values.
  Expected<Values> importNodes(const Nodes &nodes, const std::vector<std::string> &outputs,
                               Scope &scope);
  Status importNode(const onnx::NodeProto &node, Scope &scope);
  Expected<Values> importStandard(const onnx::NodeProto &node, Scope &scope);
  /// Nodes of other domains that are imported as what they mean.
  Expected<Values> importContrib(const onnx::NodeProto &node, const ContribOp &op, Scope &scope);
  Expected<Values> importConstant(const onnx::NodeProto &node, const OpAttributes &attributes);
  // Control flow: ControlFlow.cpp.
  /// Imports the nodes of a body at the builder's place and gives the values of its outputs.
  Expected<Values> importBody(const onnx::GraphProto &graph, mlir::ValueRange arguments,
                              Scope &scope);
  Expected<Values> importConditional(const onnx::NodeProto &node, Scope &scope);
  Expected<Values> importLoop(const onnx::NodeProto &node, Scope &scope);
  Expected<Values> importScan(const onnx::NodeProto &node, int version, Scope &scope);
  Values refuseBranch(mlir::Operation &draft, unsigned branch, const Error &error,
                      llvm::ArrayRef<mlir::Value> others);
  Values refusal(mlir::Operation &draft, unsigned branch, const std::string &message,
                 llvm::ArrayRef<mlir::Value> others);
  Expected<Values> finishBranches(mlir::Operation *draft, llvm::ArrayRef<mlir::Value> yes,
                                  llvm::ArrayRef<mlir::Value> no);
  struct Iteration;
  Status checkInputs(const Iteration &iteration) const;
  Status enterIteration(Iteration &iteration);
  Expected<std::optional<Values>> takeApart(Iteration &iteration,
                                            llvm::ArrayRef<mlir::Value> yielded);
  bool declareForms(Iteration &iteration) const;
  std::vector<graph::ValueFacts> carriedResults(const Iteration &iteration);
  Status beginPass(const Iteration &iteration, size_t nodesBefore);
  Status importIteration(Iteration &iteration, Scope &scope);
  Expected<Values> withoutIterations(const Iteration &iteration, const Error &error,
                                     llvm::ArrayRef<int64_t> axes);
  Expected<Values> operandsOf(const onnx::NodeProto &node, Scope &scope);
  /// The op with the results that its bodies lead to, in place of the one they were imported into.
  Values finish(mlir::Operation *draft, llvm::ArrayRef<graph::ValueFacts> results);
  // Sequences and optionals: SequenceOps.cpp.
  /// Whether the node makes, takes or asks for one; else its operands are tensors all.
  Expected<bool> concernsSequences(const NodeImport &node) const;
  Expected<Values> importSequenceOp(NodeImport &node);
  Expected<Values> importSplitToSequence(NodeImport &node);
  Expected<Values> importSequenceMap(const onnx::NodeProto &node, Scope &scope);
  Expected<Values> importOptional(NodeImport &node);
  Expected<mlir::Value> elementOf(mlir::Value value);
  /// Ragged elements one behind the other, and parts of a tensor as long as the run tells: loops.
  Expected<mlir::Value> joinInLoop(mlir::Value sequence, int64_t axis, bool newAxis);
  Expected<mlir::Value> splitInLoop(mlir::Value tensor, mlir::Value chunk, int64_t axis);
  Expected<mlir::Value> expand(std::shared_ptr<const onnx::FunctionProto> function,
                               llvm::ArrayRef<mlir::Value> operands);
  /// The results of a conditional whose branches may give sequences and optionals.
  Expected<Values> joinBranches(mlir::Operation *draft, llvm::ArrayRef<mlir::Value> yes,
                                llvm::ArrayRef<mlir::Value> no);
  struct Joint;
  Expected<Joint> jointOf(mlir::Value yes, mlir::Value no, size_t output);
  Status divide(const Joint &joint, mlir::Value value, Values &values);
  mlir::Value reassemble(const Joint &joint, llvm::ArrayRef<mlir::Value> &values);
  // The border of the model: SequenceBorder.cpp.
  Expected<mlir::Value> importArgument(const std::string &name, const onnx::TypeProto &type,
                                       int64_t least);
  Expected<mlir::Value> addArgument(const std::string &name, graph::ValueFacts facts);
  Status exportResult(const std::string &name, mlir::Value value, Values &values,
                      std::vector<std::string> &names);
  Expected<Values> importCall(const onnx::NodeProto &node, const onnx::FunctionProto &function,
                              Scope &scope);

  /// Whether the name means something at `scope`, without making a value of it.
  bool isKnown(const Scope &scope, const std::string &name) const;
  /// The value of a name, null for an operand left out. Makes the constant of an initializer at its
  /// first use.
  Expected<mlir::Value> valueOf(Scope &scope, const std::string &name);
  Expected<mlir::Value> constantOf(const onnx::TensorProto &tensor, const std::string &name);
  /// Follows a reference to an attribute of the enclosing function; null where that is not given.
  const onnx::AttributeProto *resolve(const onnx::AttributeProto &attribute,
                                      const Scope &scope) const;
  Expected<OpAttributes> readAttributes(const onnx::NodeProto &node, const Scope &scope);

  ModelFile &file;
  const ImportOptions &options;
  Symbols symbols;
  OpEmitter emitter;
  Sequences sequences{emitter};
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::Block *entry = nullptr;
  mlir::Operation *lastConstant =
      nullptr; ///< constants of initializers stand together at the front
  std::unordered_map<std::string, const onnx::FunctionProto *>
      functions; ///< by domain:name:overload
  /// Made here for what ONNX defines by other ops; constants are known by where they stand.
  std::vector<std::shared_ptr<const onnx::FunctionProto>> expanded;
  std::vector<std::string> argumentNames; ///< of @main
  std::unordered_map<const onnx::TensorProto *, mlir::Value> constants;
  OpSets opSets;
  size_t importedNodes = 0; ///< that stay
  size_t repeatedNodes = 0; ///< that were imported again
};

} // namespace dovetail::importer
