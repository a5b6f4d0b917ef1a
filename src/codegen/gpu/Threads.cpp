// SPDX-License-Identifier: Apache-2.0
//
// The three meanings of a kernel's threads.
#include "codegen/gpu/Threads.h"

#include <algorithm>
#include <cstddef>
#include <functional>

#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ReplaceConstant.h"

#include "codegen/gpu/MatrixBinding.h"
#include "support/DeviceKernel.h"

namespace dovetail::codegen {

using namespace llvm;

/// Replaces each call of `name` by what `make` gives at its place for the call's operands, and
/// forgets the function.
static void replaceCalls(Module &module, StringRef name,
                         function_ref<llvm::Value *(IRBuilder<> &, const CallInst &)> make) {
  Function *function = module.getFunction(name);
  if (!function)
    return;
  for (User *user : make_early_inc_range(function->users())) {
    auto *call = cast<CallInst>(user);
    IRBuilder<> builder(call);
    if (llvm::Value *value = make(builder, *call))
      call->replaceAllUsesWith(value);
    call->eraseFromParent();
  }
  function->eraseFromParent();
}

static void markKernels(Module &module, const std::vector<ThreadEntry> &entries,
                        CallingConv::ID convention) {
  for (const ThreadEntry &entry : entries) {
    Function *function = module.getFunction(entry.name);
    function->setCallingConv(convention);
    function->setLinkage(GlobalValue::ExternalLinkage);
    function->addFnAttr(Attribute::NoUnwind);
  }
}

static void bindMatrixUnits(Module &module) {
  for (const MatrixUnit &unit : MatrixUnit::all())
    replaceCalls(module, unit.function(), [&](IRBuilder<> &builder, const CallInst &call) {
      return emitMatrixInstruction(builder, unit, call.getArgOperand(0), call.getArgOperand(1),
                                   call.getArgOperand(2));
    });
}

void bindToNvptx(Module &module, const std::vector<ThreadEntry> &entries) {
  auto intrinsic = [](Intrinsic::ID id) {
    return [id](IRBuilder<> &builder, const CallInst &) -> llvm::Value * {
      return builder.CreateIntrinsic(id, {});
    };
  };
  replaceCalls(module, kThreadIndexFunction, intrinsic(Intrinsic::nvvm_read_ptx_sreg_tid_x));
  replaceCalls(module, kBlockIndexFunction, intrinsic(Intrinsic::nvvm_read_ptx_sreg_ctaid_x));
  replaceCalls(module, kBarrierFunction,
               [](IRBuilder<> &builder, const CallInst &) -> llvm::Value * {
                 builder.CreateIntrinsic(Intrinsic::nvvm_barrier_cta_sync_aligned_all,
                                         {builder.getInt32(0)});
                 return nullptr;
               });
  bindMatrixUnits(module);
  replaceCalls(module, kRoundToTf32Function,
               [](IRBuilder<> &builder, const CallInst &call) -> llvm::Value * {
                 return builder.CreateIntrinsic(Intrinsic::nvvm_f2tf32_rna,
                                                {call.getArgOperand(0)});
               });
  markKernels(module, entries, CallingConv::PTX_Kernel);
  for (const ThreadEntry &entry : entries)
    module.getFunction(entry.name)->addFnAttr("nvvm.maxntid", std::to_string(entry.threads));
}

void bindToAmdgpu(Module &module, const std::vector<ThreadEntry> &entries) {
  auto intrinsic = [](Intrinsic::ID id) {
    return [id](IRBuilder<> &builder, const CallInst &) -> llvm::Value * {
      return builder.CreateIntrinsic(id, {});
    };
  };
  replaceCalls(module, kThreadIndexFunction, intrinsic(Intrinsic::amdgcn_workitem_id_x));
  replaceCalls(module, kBlockIndexFunction, intrinsic(Intrinsic::amdgcn_workgroup_id_x));
  replaceCalls(module, kBarrierFunction,
               [&](IRBuilder<> &builder, const CallInst &) -> llvm::Value * {
                 SyncScope::ID scope = module.getContext().getOrInsertSyncScopeID("workgroup");
                 builder.CreateFence(AtomicOrdering::Release, scope);
                 builder.CreateIntrinsic(Intrinsic::amdgcn_s_barrier, {});
                 builder.CreateFence(AtomicOrdering::Acquire, scope);
                 return nullptr;
               });
  bindMatrixUnits(module);
  markKernels(module, entries, CallingConv::AMDGPU_KERNEL);
  for (const ThreadEntry &entry : entries) {
    Function *function = module.getFunction(entry.name);
    std::string threads = std::to_string(entry.threads);
    function->addFnAttr("amdgpu-flat-work-group-size", threads + "," + threads);
    function->addFnAttr("uniform-work-group-size", "true");
  }
  module.addModuleFlag(Module::Error, "amdhsa_code_object_version", 500);
}

namespace {

/// One entry: its arguments come from an array of their addresses, what it asks of its thread from
/// the HostThread that is its second argument.
class HostBinder {
public:
  HostBinder(Module &module, Function &from, uint32_t threads)
      : module(module), from(from), threads(threads) {}

  /// Of shared memory, behind that of the kernel's own.
  uint32_t matrixBytes() const { return bytesForMatrices; }

  void bind() {
    LLVMContext &context = module.getContext();
    auto *pointer = PointerType::get(context, 0);
    auto *type = FunctionType::get(llvm::Type::getVoidTy(context), {pointer, pointer}, false);
    std::string name = from.getName().str();
    from.setName("");
    to = Function::Create(type, GlobalValue::ExternalLinkage, name, module);
    to->splice(to->end(), &from);
    IRBuilder<> builder(&to->getEntryBlock(), to->getEntryBlock().begin());
    for (Argument &argument : from.args()) {
      llvm::Value *place =
          builder.CreateConstInBoundsGEP1_64(pointer, to->getArg(0), argument.getArgNo());
      llvm::Value *address = builder.CreateLoad(pointer, place);
      argument.replaceAllUsesWith(builder.CreateLoad(argument.getType(), address));
    }
    threadField = [this](IRBuilder<> &at, size_t offset, llvm::Type *field) {
      return at.CreateLoad(field,
                           at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), to->getArg(1), offset));
    };
    from.eraseFromParent();
    shareMemory(builder);
  }

  void replaceThreadCalls() {
    auto *number = llvm::Type::getInt32Ty(module.getContext());
    auto *pointer = PointerType::get(module.getContext(), 0);
    SmallVector<CallInst *> calls;
    for (BasicBlock &block : *to)
      for (Instruction &instruction : block)
        if (auto *call = dyn_cast<CallInst>(&instruction); call && call->getCalledFunction())
          calls.push_back(call);
    for (CallInst *call : calls) {
      StringRef name = call->getCalledFunction()->getName();
      IRBuilder<> builder(call);
      if (name == kThreadIndexFunction)
        call->replaceAllUsesWith(threadField(builder, offsetof(HostThread, thread), number));
      else if (name == kBlockIndexFunction)
        call->replaceAllUsesWith(threadField(builder, offsetof(HostThread, block), number));
      else if (name == kBarrierFunction)
        builder.CreateCall(FunctionType::get(builder.getVoidTy(), {pointer}, false),
                           threadField(builder, offsetof(HostThread, barrier), pointer),
                           {threadField(builder, offsetof(HostThread, context), pointer)});
      else if (name == kRoundToTf32Function)
        call->replaceAllUsesWith(emitRoundToTf32(builder, call->getArgOperand(0)));
      else if (const MatrixUnit *unit = findMatrixUnit(name))
        call->replaceAllUsesWith(multiply(builder, *unit, *call));
      else
        continue;
      call->eraseFromParent();
    }
  }

private:
  llvm::Value *multiply(IRBuilder<> &builder, const MatrixUnit &unit, const CallInst &call) {
    bytesForMatrices = std::max(bytesForMatrices, uint32_t(hostMatrixBytes(unit, threads)));
    auto *pointer = PointerType::get(module.getContext(), 0);
    llvm::Value *matrices = builder.CreateConstInBoundsGEP1_64(
        builder.getInt8Ty(), threadField(builder, offsetof(HostThread, shared), pointer),
        alignTo(ownSharedBytes, 16));
    return builder.CreateCall(hostMatrixFunction(module, unit),
                              {call.getArgOperand(0), call.getArgOperand(1), call.getArgOperand(2),
                               to->getArg(1), matrices});
  }

  /// Shared variables of this entry lie one after the other in the block's memory.
  void shareMemory(IRBuilder<> &builder) {
    auto *pointer = PointerType::get(module.getContext(), 0);
    llvm::Value *base = nullptr;
    uint64_t &offset = ownSharedBytes;
    for (GlobalVariable &variable : make_early_inc_range(module.globals())) {
      if (variable.getAddressSpace() != kSharedSpace || !isUsedHere(variable))
        continue;
      if (!base)
        base = threadField(builder, offsetof(HostThread, shared), pointer);
      llvm::Value *address = builder.CreateAddrSpaceCast(
          builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), base, offset),
          variable.getType());
      offset = alignTo(offset + variable.getValueType()->getArrayNumElements(), 16);
      convertUsersOfConstantsToInstructions({&variable});
      variable.replaceAllUsesWith(address);
      variable.eraseFromParent();
    }
  }

  bool isUsedHere(const GlobalVariable &variable) {
    SmallVector<const User *> users(variable.users());
    while (!users.empty()) {
      const User *user = users.pop_back_val();
      if (auto *instruction = dyn_cast<Instruction>(user))
        return instruction->getFunction() == to;
      users.append(user->user_begin(), user->user_end());
    }
    return false;
  }

  Module &module;
  Function &from;
  const uint32_t threads; ///< of a block
  Function *to = nullptr;
  uint64_t ownSharedBytes = 0;
  uint32_t bytesForMatrices = 0;
  std::function<llvm::Value *(IRBuilder<> &, size_t, llvm::Type *)> threadField;
};

} // namespace

std::vector<uint32_t> bindToHost(Module &module, const std::vector<ThreadEntry> &entries) {
  std::vector<uint32_t> matrixBytes;
  for (const ThreadEntry &entry : entries) {
    HostBinder binder(module, *module.getFunction(entry.name), entry.threads);
    binder.bind();
    binder.replaceThreadCalls();
    matrixBytes.push_back(binder.matrixBytes());
  }
  std::vector<std::string> answered = {kThreadIndexFunction, kBlockIndexFunction, kBarrierFunction,
                                       kRoundToTf32Function};
  for (const MatrixUnit &unit : MatrixUnit::all())
    answered.push_back(unit.function());
  for (const std::string &name : answered)
    if (Function *function = module.getFunction(name))
      function->eraseFromParent();
  return matrixBytes;
}

} // namespace dovetail::codegen
