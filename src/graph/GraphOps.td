// SPDX-License-Identifier: Apache-2.0
//
// The graph dialect. Tensor ops come from the table Ops.inc and are registered when the dialect is
// loaded: they differ only in data, which the table states, and a class for each would cost minutes
// of compiling. Here are the ops with a structure of their own: constants, absent operands,
// recognised composites with their body, control flow and the terminator of their bodies.

#ifndef DOVETAIL_GRAPH_GRAPHOPS
#define DOVETAIL_GRAPH_GRAPHOPS

include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def GraphDialect : Dialect {
  let name = "dvt";
  let cppNamespace = "::dovetail::graph";
  let summary = "ONNX tensor ops with value semantics and symbolic extents";
  let hasConstantMaterializer = 1;
  let extraClassDeclaration = [{
    /// The table's line for a registered tensor op; nullptr for the ops declared in ODS and for
    /// ops of other dialects.
    const OpInfo *infoOf(::mlir::OperationName name) const;
    void *getRegisteredInterfaceForOp(::mlir::TypeID interface, ::mlir::OperationName name) override;

  private:
    ::llvm::DenseMap<::mlir::OperationName, const OpInfo *> infos;
  }];
}

class Dvt_Op<string mnemonic, list<Trait> traits = []> : Op<GraphDialect, mnemonic, traits>;

def Dvt_ConstantOp : Dvt_Op<"constant", [Pure, ConstantLike]> {
  let summary = "a tensor known at compile time";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs AnyRankedTensor:$result);
  let hasFolder = 1;
  let hasVerifier = 1;
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Dvt_NoneOp : Dvt_Op<"none", [Pure]> {
  let summary = "stands for an absent optional operand";
  let results = (outs NoneType:$result);
  let assemblyFormat = "attr-dict";
}

def Dvt_YieldOp : Dvt_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "ends a body and gives its results";
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "(`(` $operands^ `)`)? attr-dict (`:` type($operands)^)?";
}

def Dvt_CompositeOp : Dvt_Op<"composite", [IsolatedFromAbove, SingleBlock, RecursiveMemoryEffects,
                                           RecursivelySpeculatable]> {
  let summary = "an op of the table together with its split form";
  let description = [{
    Means what the op `name` of the table means with the attributes of the dictionary `attributes` on
    `operands`. The body computes the same from its arguments by simpler ops, so that both forms stay
    on offer. An absent operand is a value of type none, in the body an argument of that type.
  }];
  let arguments = (ins Variadic<AnyType>:$operands, StrAttr:$name);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasVerifier = 1;
  // A getter named as the attribute is would hide the adaptor's own.
  let extraClassDeclaration = [{
    ::mlir::DictionaryAttr getOpAttributes() {
      return (*this)->getAttrOfType<::mlir::DictionaryAttr>("attributes");
    }
  }];
  let hasCustomAssemblyFormat = 1;
}

def Dvt_IfOp : Dvt_Op<"if", [SingleBlock, RecursiveMemoryEffects, NoRegionArguments]> {
  let summary = "ONNX If: one of two bodies";
  let arguments = (ins AnyType:$condition);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$then_branch, SizedRegion<1>:$else_branch);
}

def Dvt_LoopOp : Dvt_Op<"loop", [SingleBlock, RecursiveMemoryEffects]> {
  let summary = "ONNX Loop: operands are trip count, condition and carried values";
  let arguments = (ins Variadic<AnyType>:$operands);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
}

def Dvt_ScanOp : Dvt_Op<"scan", [SingleBlock, RecursiveMemoryEffects]> {
  let summary = "ONNX Scan, with its attributes of the ONNX names";
  let arguments = (ins Variadic<AnyType>:$operands);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
}

def Dvt_RefuseOp : Dvt_Op<"refuse"> {
  let summary = "stands for a branch that contradicts the extents at hand: to run it is an error";
  let arguments = (ins StrAttr:$message);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = "attr-dict `:` type($results)";
}

#endif // DOVETAIL_GRAPH_GRAPHOPS
