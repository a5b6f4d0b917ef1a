// SPDX-License-Identifier: Apache-2.0
//
// Makes the functions of a kernel's phases around the bodies that families emit, and the kernel's
// bytes from the linked code.
#include "codegen/KernelModule.h"

#include <cstring>

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include "codegen/Lowering.h"
#include "codegen/ObjectImage.h"
#include "codegen/gpu/DeviceLowering.h"
#include "codegen/schedule/KernelAbi.h"

namespace dovetail::codegen {

using namespace mlir;

struct KernelModule::State {
  struct Phase {
    std::string function, count;
    int64_t staticCount = 0;
  };

  State(const ProblemReader &problem, const Machine &machine)
      : problem(problem), machine(machine), context(MLIRContext::Threading::DISABLED),
        builder(&context), lanes(machine.isa.f32Lanes) {
    loadKernelDialects(context);
    module = ModuleOp::create(builder.getUnknownLoc());
  }

  /// Emits `body` into a function of these argument types that returns what body returns, or
  /// nothing.
  void addFunction(const std::string &name, unsigned integerArguments, Type result,
                   llvm::function_ref<Value(Emitter &, Block &)> body) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(module->getBody());
    Location location = builder.getUnknownLoc();
    SmallVector<Type> arguments(1, LLVM::LLVMPointerType::get(&context));
    arguments.append(integerArguments, builder.getI64Type());
    Type returned = result ? result : LLVM::LLVMVoidType::get(&context);
    auto function = LLVM::LLVMFuncOp::create(builder, location, name,
                                             LLVM::LLVMFunctionType::get(returned, arguments));
    Block *entry = function.addEntryBlock(builder);
    auto *start = new Block;
    function.getBody().push_back(start);
    builder.setInsertionPointToEnd(entry);
    LLVM::BrOp::create(builder, location, ValueRange(), start);
    builder.setInsertionPointToEnd(start);
    Emitter emitter(builder, problem, machine, *entry);
    emitter.vectorLanes = lanes;
    Value value = body(emitter, *entry);
    if (result)
      LLVM::ReturnOp::create(builder, location, value);
    else
      LLVM::ReturnOp::create(builder, location, ValueRange());
    if (failure.empty())
      failure = emitter.failure();
  }

  void addPhaseFunction(Phase &phase, Body body) {
    phase.function = "phase" + std::to_string(phases.size());
    addFunction(phase.function, 3, {}, [&](Emitter &emitter, Block &entry) {
      body(emitter, entry.getArgument(1), entry.getArgument(2));
      return Value();
    });
  }

  const ProblemReader &problem;
  const Machine &machine;
  MLIRContext context;
  OpBuilder builder;
  OwningOpRef<ModuleOp> module;
  unsigned lanes;
  bool vnni = false;
  std::vector<Phase> phases;
  DeviceKernel device; ///< of a device: launches instead of phases
  std::string failure;
};

KernelModule::KernelModule(const ProblemReader &problem, const Machine &machine)
    : state(std::make_unique<State>(problem, machine)) {}
KernelModule::~KernelModule() = default;

void KernelModule::setLanes(unsigned lanes) { state->lanes = lanes; }
void KernelModule::useVnni() { state->vnni = true; }

void KernelModule::addDevicePhase(const DeviceTasks &tasks, Body body) {
  DevicePhaseBuilder phase(state->builder, *state->module, state->problem, state->machine);
  auto launch = phase.build("phase" + std::to_string(state->device.launches.size()), tasks, body);
  if (launch)
    state->device.launches.push_back(std::move(*launch));
  else if (state->failure.empty())
    state->failure = launch.error().message;
}

void KernelModule::addBlockPhase(uint32_t threads, llvm::function_ref<Value(Emitter &)> count,
                                 Body body) {
  assert(state->machine.isDevice());
  addDevicePhase({DeviceTasks::Of::Block, threads, count}, body);
}

void KernelModule::addPhase(int64_t count, Body body) {
  if (state->machine.isDevice())
    return addPhase([&](Emitter &emitter) { return emitter.index(count); }, body);
  State::Phase phase;
  phase.staticCount = count;
  state->addPhaseFunction(phase, body);
  state->phases.push_back(phase);
}

void KernelModule::addPhase(llvm::function_ref<Value(Emitter &)> count, Body body) {
  if (state->machine.isDevice())
    return addDevicePhase({DeviceTasks::Of::Thread, state->machine.blockThreads, count}, body);
  State::Phase phase;
  phase.count = "count" + std::to_string(state->phases.size());
  std::optional<int64_t> known;
  LLVM::LLVMFuncOp function;
  state->addFunction(phase.count, 0, state->builder.getI64Type(),
                     [&](Emitter &emitter, Block &entry) {
                       Value number = count(emitter);
                       known = Emitter::constantIndex(number);
                       function = cast<LLVM::LLVMFuncOp>(entry.getParentOp());
                       return number;
                     });
  if (known) {
    function->erase();
    phase.count.clear();
    phase.staticCount = *known;
  }
  state->addPhaseFunction(phase, body);
  state->phases.push_back(phase);
}

std::string KernelModule::emittedText() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  state->module->print(stream);
  return text;
}

template <typename T> static void append(std::vector<uint8_t> &bytes, const T &item) {
  const auto *from = reinterpret_cast<const uint8_t *>(&item);
  bytes.insert(bytes.end(), from, from + sizeof(T));
}

Expected<std::vector<uint8_t>> KernelModule::finishDevice(const Schedule &schedule) {
  LoweringTexts texts;
  state->device.workspaceBytes = schedule.workspaceBytes;
  Status status = lowerForDevice(*state->module, state->machine.isa, state->device,
                                 keepText ? &texts : nullptr);
  optimisedText = std::move(texts.optimised);
  assemblyText = std::move(texts.assembly);
  if (!status)
    return status.takeError();
  return state->device.serialise();
}

Expected<std::vector<uint8_t>> KernelModule::finish(const Schedule &schedule) {
  if (!state->failure.empty())
    return internalError("kernel {}: {}", schedule.algorithm, state->failure);
  if (state->machine.isDevice())
    return finishDevice(schedule);
  LoweringTexts texts;
  Isa isa = state->machine.isa;
  isa.vnni = state->vnni;
  auto object = lowerToObject(*state->module, isa, keepText ? &texts : nullptr);
  optimisedText = std::move(texts.optimised);
  assemblyText = std::move(texts.assembly);
  if (!object)
    return object.takeError();
  auto image = linkObject(*object);
  if (!image)
    return internalError("kernel {}: {}", schedule.algorithm, image.error().message);

  std::vector<uint8_t> phases;
  for (const State::Phase &phase : state->phases) {
    ImagePhase entry{image->functions.at(phase.function), kNoOffset, phase.staticCount};
    if (!phase.count.empty())
      entry.count = image->functions.at(phase.count);
    append(phases, entry);
  }
  ImageHeader header{};
  header.magic = kImageMagic;
  header.version = kImageVersion;
  header.isa = isa.level | (isa.vnni ? kImageVnni : 0);
  header.phaseCount = state->phases.size();
  header.codeOffset = llvm::alignTo(sizeof(ImageHeader) + phases.size(), kImageAlignment);
  header.codeBytes = image->code.size();
  header.workspaceBytes = schedule.workspaceBytes;
  header.scratchBytes = schedule.scratchBytes;
  phases.resize(header.codeOffset - sizeof(ImageHeader));
  phases.insert(phases.end(), image->code.begin(), image->code.end());
  header.checksum = imageChecksum(header, phases.data(), phases.size());
  std::vector<uint8_t> bytes;
  append(bytes, header);
  bytes.insert(bytes.end(), phases.begin(), phases.end());
  return bytes;
}

} // namespace dovetail::codegen
