// SPDX-License-Identifier: Apache-2.0
//
// Reads the emitted module, places its literals and shared memory, makes a SPIR-V module around
// each function (SpirvFunction.h) and serialises it.
#include "SpirvTranslation.h"

#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Target/SPIRV/Serialization.h"

#include "SpirvFunction.h"
#include "codegen/Lowering.h"
#include "codegen/gpu/Threads.h"

namespace dovetail::test {

using namespace mlir;

/// What surrounds a shader's body. Of the array in shared memory at least one word is there.
static std::string skeleton(const DeviceLaunch &launch, const SharedPlan &shared, bool float16) {
  return fmt::format(
      R"(spirv.module PhysicalStorageBuffer64 GLSL450 requires #spirv.vce<v1.3,
          [Shader, Int64, Int16, Int8, {0}PhysicalStorageBufferAddresses, StorageBuffer16BitAccess,
           StorageBuffer8BitAccess],
          [SPV_KHR_physical_storage_buffer, SPV_KHR_16bit_storage, SPV_KHR_8bit_storage]> {{
  spirv.GlobalVariable @thread built_in("LocalInvocationId") : !spirv.ptr<vector<3xi32>, Input>
  spirv.GlobalVariable @block built_in("WorkgroupId") : !spirv.ptr<vector<3xi32>, Input>
  spirv.GlobalVariable @arguments : !spirv.ptr<!spirv.struct<(i64 [0])>, PushConstant>
  spirv.GlobalVariable @shared : !spirv.ptr<!spirv.array<{1} x i{2}>, Workgroup>
  spirv.func @{3}() "None" {{
    spirv.Return
  }}
  spirv.EntryPoint "GLCompute" @{3}, @thread, @block
  spirv.ExecutionMode @{3} "LocalSize", {4}, 1, 1
}})",
      float16 ? "Float16, " : "", std::max<uint64_t>(1, shared.bytes / shared.unitBytes),
      8 * shared.unitBytes, launch.entry, launch.threads);
}

static bool usesFloat16(LLVM::LLVMFuncOp function) {
  return function
      .walk([](Operation *operation) {
        for (Type type : operation->getResultTypes())
          if (getElementTypeOrSelf(type).isF16())
            return WalkResult::interrupt();
        return WalkResult::advance();
      })
      .wasInterrupted();
}

static Expected<SpirvEntry> translateEntry(LLVM::LLVMFuncOp function, const DeviceLaunch &launch,
                                           const LiteralOffsets &literals) {
  SpirvEntry entry;
  entry.usesFloat16 = usesFloat16(function);
  SharedPlan shared = SharedPlan::of(function);
  ParserConfig config(function.getContext());
  auto module =
      parseSourceString<spirv::ModuleOp>(skeleton(launch, shared, entry.usesFloat16), config);
  if (!module)
    return internalError("the module around a shader is not taken");
  auto body = *module->getOps<spirv::FuncOp>().begin();
  if (Status status = translateBody(function, body, launch, shared, literals); !status)
    return status.takeError();
  SmallVector<uint32_t, 0> words;
  if (failed(verify(*module)) || failed(spirv::serialize(*module, words)))
    return internalError("the shader of {} is not taken", launch.entry);
  entry.words.assign(words.begin(), words.end());
  return entry;
}

/// Literals one after the other, each at a multiple of 64 bytes.
static LiteralOffsets placeLiterals(ModuleOp module, std::vector<char> &data) {
  LiteralOffsets offsets;
  for (auto global : module.getOps<LLVM::GlobalOp>()) {
    auto bytes = dyn_cast_or_null<StringAttr>(global.getValueOrNull());
    if (global.getAddrSpace() == codegen::kSharedSpace || !bytes)
      continue;
    data.resize((data.size() + 63) / 64 * 64);
    offsets[global.getSymName()] = data.size();
    data.insert(data.end(), bytes.getValue().begin(), bytes.getValue().end());
  }
  return offsets;
}

Expected<SpirvKernel> translateToSpirv(const std::string &emitted, const DeviceKernel &kernel) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  codegen::loadKernelDialects(context);
  context.loadDialect<spirv::SPIRVDialect>();
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    said += diagnostic.str() + "\n";
    return success();
  });
  ParserConfig config(&context);
  auto module = parseSourceString<ModuleOp>(emitted, config);
  if (!module)
    return internalError("the emitted text is no module: {}", said);
  SpirvKernel made;
  LiteralOffsets literals = placeLiterals(*module, made.data);
  for (const DeviceLaunch &launch : kernel.launches) {
    auto function = module->lookupSymbol<LLVM::LLVMFuncOp>(launch.entry);
    if (!function)
      return internalError("no function {}", launch.entry);
    auto entry = translateEntry(function, launch, literals);
    if (!entry)
      return said.empty() ? entry.takeError()
                          : internalError("{}: {}", entry.error().message, said);
    made.entries.push_back(std::move(*entry));
  }
  return made;
}

} // namespace dovetail::test
