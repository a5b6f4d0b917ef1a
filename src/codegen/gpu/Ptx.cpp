// SPDX-License-Identifier: Apache-2.0
//
// Sets up LLVM's NVPTX and AMDGPU code generators and runs them. Kernels are emitted as scalar
// code, so the whole of LLVM's pipeline is run but for its vectorisers.
#include "codegen/gpu/Ptx.h"

#include <map>
#include <mutex>
#include <optional>

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace dovetail::codegen {

/// The PTX version in which the architecture came up.
static const char *ptxVersion(llvm::StringRef architecture) {
  return architecture == "sm_80" ? "+ptx70" : architecture == "sm_90" ? "+ptx78" : "+ptx86";
}

static Expected<std::unique_ptr<llvm::TargetMachine>>
createDeviceMachine(const char *tripleText, const char *architecture, const char *features) {
  static std::once_flag initialised;
  std::call_once(initialised, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
  });
  llvm::Triple triple(tripleText);
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return unavailable("this LLVM has no code generator for {}: {}", tripleText, error);
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, architecture, features, llvm::TargetOptions(),
                                  llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
  if (!machine)
    return internalError("LLVM makes no target machine for {} {}", tripleText, architecture);
  return machine;
}

/// One for each architecture and thread.
static Expected<llvm::TargetMachine *> deviceMachine(const char *triple, const char *architecture,
                                                     const char *features) {
  thread_local std::map<std::string, std::unique_ptr<llvm::TargetMachine>> machines;
  auto &machine = machines[architecture];
  if (!machine) {
    auto made = createDeviceMachine(triple, architecture, features);
    if (!made)
      return made.takeError();
    machine = std::move(*made);
  }
  return machine.get();
}

static void optimise(llvm::Module &module, llvm::TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = false;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

static Status generate(llvm::Module &module, llvm::TargetMachine &machine,
                       llvm::CodeGenFileType kind, llvm::SmallVectorImpl<char> &bytes) {
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, kind))
    return internalError("LLVM generates no code of this kind for {}",
                         machine.getTargetCPU().str());
  passes.run(module);
  return Status::success();
}

Expected<std::string> lowerToPtx(llvm::Module &module, const char *architecture) {
  auto machine = deviceMachine("nvptx64-nvidia-cuda", architecture, ptxVersion(architecture));
  if (!machine)
    return machine.takeError();
  optimise(module, **machine);
  llvm::SmallVector<char, 0> text;
  if (Status status = generate(module, **machine, llvm::CodeGenFileType::AssemblyFile, text);
      !status)
    return status.takeError();
  return std::string(text.begin(), text.end());
}

Expected<llvm::SmallVector<char, 0>> lowerToAmdgpu(llvm::Module &module, const char *architecture,
                                                   std::string *assembly) {
  auto machine = deviceMachine("amdgcn-amd-amdhsa", architecture, "");
  if (!machine)
    return machine.takeError();
  optimise(module, **machine);
  if (assembly) {
    auto copy = llvm::CloneModule(module);
    llvm::SmallVector<char, 0> text;
    if (Status status = generate(*copy, **machine, llvm::CodeGenFileType::AssemblyFile, text);
        !status)
      return status.takeError();
    assembly->assign(text.begin(), text.end());
  }
  llvm::SmallVector<char, 0> object;
  if (Status status = generate(module, **machine, llvm::CodeGenFileType::ObjectFile, object);
      !status)
    return status.takeError();
  return object;
}

} // namespace dovetail::codegen
