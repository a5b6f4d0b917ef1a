// SPDX-License-Identifier: Apache-2.0
//
// Lowers kernels: scf to branches, everything else to the LLVM dialect in one conversion, then LLVM
// IR, a short optimisation pipeline and code generation. Kernels are vectorised and unrolled by
// their emission already, so the loop vectorisers are left out, and so is the recognition of memory
// idioms, which would call the C library.
#include "codegen/Lowering.h"

#include <mutex>

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace dovetail::codegen {

using namespace mlir;

void loadKernelDialects(MLIRContext &context) {
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, LLVM::LLVMDialect, math::MathDialect,
                  scf::SCFDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

static Status lowerToLlvmDialect(ModuleOp module) {
  MLIRContext *context = module.getContext();
  std::string reason;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (reason.empty())
      reason = diagnostic.str();
    return success();
  });
  {
    RewritePatternSet patterns(context);
    populateSCFToControlFlowConversionPatterns(patterns);
    ConversionTarget target(*context);
    target.addIllegalDialect<scf::SCFDialect>();
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      return internalError("a kernel's control flow does not lower: {}", reason);
  }
  LowerToLLVMOptions options(context);
  LLVMTypeConverter converter(context, options);
  RewritePatternSet patterns(context);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns, /*reassociateFPReductions=*/true,
                                         /*force32BitVectorIndices=*/true);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  if (failed(applyFullConversion(module, target, std::move(patterns))))
    return internalError("a kernel does not lower to LLVM: {}", reason);
  return Status::success();
}

static const char *cpuName(Isa::Level level) {
  return level == Isa::Avx512 ? "x86-64-v4" : level == Isa::Avx2 ? "x86-64-v3" : "generic";
}

/// VNNI only where a kernel asks for it, so that others are the same with and without.
static const char *featureNames(const Isa &isa) {
  if (isa.level == Isa::Avx512)
    return isa.vnni ? "-prefer-256-bit,+avx512vnni" : "-prefer-256-bit";
  return isa.vnni ? "+avxvnni" : "";
}

static const char *tripleName(Isa::Level level) {
  return level == Isa::Neon ? "aarch64-unknown-linux-gnu" : "x86_64-unknown-linux-gnu";
}

static Expected<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(const Isa &isa) {
  static std::once_flag initialised;
  std::call_once(initialised, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  llvm::Triple triple(tripleName(isa.level));
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return unavailable("this LLVM has no code generator for {}: {}", triple.str(), error);
  llvm::TargetOptions options;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, cpuName(isa.level), featureNames(isa), options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (!machine)
    return internalError("LLVM makes no target machine for {}", triple.str());
  return machine;
}

/// One for each level, with and without VNNI, and thread: a target machine is not for several
/// threads at once.
static Expected<llvm::TargetMachine *> targetMachine(const Isa &isa) {
  thread_local std::map<std::pair<uint32_t, bool>, std::unique_ptr<llvm::TargetMachine>> machines;
  auto &machine = machines[{isa.level, isa.vnni}];
  if (!machine) {
    auto made = createTargetMachine(isa);
    if (!made)
      return made.takeError();
    machine = std::move(*made);
  }
  return machine.get();
}

static Status optimise(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::ModulePassManager passes;
  // InstCombine is asked not to check that it reached a fixed point; once is enough here.
  const char *pipeline = "function(early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,"
                         "loop-mssa(loop-rotate,licm),gvn<no-pre>,"
                         "instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),early-cse)";
  if (llvm::Error error = builder.parsePassPipeline(passes, pipeline))
    return internalError("LLVM pipeline: {}", llvm::toString(std::move(error)));
  passes.run(module, modules);
  return Status::success();
}

static void generate(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType kind,
                     llvm::SmallVectorImpl<char> &bytes) {
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  machine.addPassesToEmitFile(passes, stream, nullptr, kind);
  passes.run(module);
}

Expected<std::unique_ptr<llvm::Module>> translateKernels(ModuleOp module,
                                                         llvm::LLVMContext &context) {
  if (Status status = lowerToLlvmDialect(module); !status)
    return status.takeError();
  std::unique_ptr<llvm::Module> lowered = translateModuleToLLVMIR(module, context);
  if (!lowered)
    return internalError("a kernel does not translate to LLVM IR");
  return lowered;
}

Expected<llvm::SmallVector<char, 0>> objectOf(llvm::Module &module, const Isa &isa,
                                              LoweringTexts *texts) {
  auto machine = targetMachine(isa);
  if (!machine)
    return machine.takeError();
  module.setTargetTriple((*machine)->getTargetTriple());
  module.setDataLayout((*machine)->createDataLayout());
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("prefer-vector-width", isa.level == Isa::Avx512 ? "512" : "256");
    function.addFnAttr("min-legal-vector-width", isa.level == Isa::Avx512 ? "512" : "256");
    function.addFnAttr("no-builtins");
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  }
  if (Status status = optimise(module, **machine); !status)
    return status.takeError();
  if (texts) {
    llvm::raw_string_ostream stream(texts->optimised);
    module.print(stream, nullptr);
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
    llvm::SmallVector<char, 0> assembly;
    generate(*copy, **machine, llvm::CodeGenFileType::AssemblyFile, assembly);
    texts->assembly.assign(assembly.begin(), assembly.end());
  }
  llvm::SmallVector<char, 0> object;
  generate(module, **machine, llvm::CodeGenFileType::ObjectFile, object);
  return object;
}

Expected<llvm::SmallVector<char, 0>> lowerToObject(ModuleOp module, const Isa &isa,
                                                   LoweringTexts *texts) {
  llvm::LLVMContext context;
  auto lowered = translateKernels(module, context);
  if (!lowered)
    return lowered.takeError();
  return objectOf(**lowered, isa, texts);
}

} // namespace dovetail::codegen
