// SPDX-License-Identifier: Apache-2.0
//
// The three meanings of a kernel's threads.
#include "codegen/gpu/Threads.h"

#include <cstddef>
#include <functional>

#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ReplaceConstant.h"

#include "support/DeviceKernel.h"

namespace dovetail::codegen {

using namespace llvm;

/// Replaces each call of `name` by what `make` gives at its place, and forgets the function.
static void replaceCalls(Module &module, StringRef name,
                         function_ref<llvm::Value *(IRBuilder<> &)> make) {
  Function *function = module.getFunction(name);
  if (!function)
    return;
  for (User *user : make_early_inc_range(function->users())) {
    auto *call = cast<CallInst>(user);
    IRBuilder<> builder(call);
    if (llvm::Value *value = make(builder))
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

void bindToNvptx(Module &module, const std::vector<ThreadEntry> &entries) {
  auto intrinsic = [](Intrinsic::ID id) {
    return [id](IRBuilder<> &builder) -> llvm::Value * { return builder.CreateIntrinsic(id, {}); };
  };
  replaceCalls(module, kThreadIndexFunction, intrinsic(Intrinsic::nvvm_read_ptx_sreg_tid_x));
  replaceCalls(module, kBlockIndexFunction, intrinsic(Intrinsic::nvvm_read_ptx_sreg_ctaid_x));
  replaceCalls(module, kBarrierFunction, [](IRBuilder<> &builder) -> llvm::Value * {
    builder.CreateIntrinsic(Intrinsic::nvvm_barrier_cta_sync_aligned_all, {builder.getInt32(0)});
    return nullptr;
  });
  markKernels(module, entries, CallingConv::PTX_Kernel);
  for (const ThreadEntry &entry : entries)
    module.getFunction(entry.name)->addFnAttr("nvvm.maxntid", std::to_string(entry.threads));
}

void bindToAmdgpu(Module &module, const std::vector<ThreadEntry> &entries) {
  auto intrinsic = [](Intrinsic::ID id) {
    return [id](IRBuilder<> &builder) -> llvm::Value * { return builder.CreateIntrinsic(id, {}); };
  };
  replaceCalls(module, kThreadIndexFunction, intrinsic(Intrinsic::amdgcn_workitem_id_x));
  replaceCalls(module, kBlockIndexFunction, intrinsic(Intrinsic::amdgcn_workgroup_id_x));
  replaceCalls(module, kBarrierFunction, [&](IRBuilder<> &builder) -> llvm::Value * {
    SyncScope::ID scope = module.getContext().getOrInsertSyncScopeID("workgroup");
    builder.CreateFence(AtomicOrdering::Release, scope);
    builder.CreateIntrinsic(Intrinsic::amdgcn_s_barrier, {});
    builder.CreateFence(AtomicOrdering::Acquire, scope);
    return nullptr;
  });
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
  HostBinder(Module &module, Function &from) : module(module), from(from) {}

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
      else
        continue;
      call->eraseFromParent();
    }
  }

private:
  /// Shared variables of this entry lie one after the other in the block's memory.
  void shareMemory(IRBuilder<> &builder) {
    auto *pointer = PointerType::get(module.getContext(), 0);
    llvm::Value *base = nullptr;
    uint64_t offset = 0;
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
  Function *to = nullptr;
  std::function<llvm::Value *(IRBuilder<> &, size_t, llvm::Type *)> threadField;
};

} // namespace

void bindToHost(Module &module, const std::vector<ThreadEntry> &entries) {
  for (const ThreadEntry &entry : entries) {
    HostBinder binder(module, *module.getFunction(entry.name));
    binder.bind();
    binder.replaceThreadCalls();
  }
  for (const char *name : {kThreadIndexFunction, kBlockIndexFunction, kBarrierFunction})
    if (Function *function = module.getFunction(name))
      function->eraseFromParent();
}

} // namespace dovetail::codegen
