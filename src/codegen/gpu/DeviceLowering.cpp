// SPDX-License-Identifier: Apache-2.0
//
// One LLVM module becomes the device's code and, from a copy, that for this processor.
#include "codegen/gpu/DeviceLowering.h"

#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include "codegen/ObjectImage.h"
#include "codegen/gpu/CodeObject.h"
#include "codegen/gpu/Ptx.h"
#include "codegen/gpu/Threads.h"
#include "toolchain/CodeObjectNotes.h"
#include "toolchain/PtxAssembler.h"

namespace dovetail::codegen {

static std::vector<ThreadEntry> entriesOf(const DeviceKernel &kernel) {
  std::vector<ThreadEntry> entries;
  for (const DeviceLaunch &launch : kernel.launches)
    entries.push_back({launch.entry, launch.threads});
  return entries;
}

/// What a launch hands over is what its function takes.
static Status checkArguments(const llvm::Module &module, const DeviceKernel &kernel) {
  for (const DeviceLaunch &launch : kernel.launches) {
    const llvm::Function *function = module.getFunction(launch.entry);
    if (!function || function->arg_size() != launch.arguments.size())
      return internalError("a launch of {} has {} arguments, its function {}", launch.entry,
                           launch.arguments.size(), function ? function->arg_size() : 0);
  }
  return Status::success();
}

static Status addHostImage(std::unique_ptr<llvm::Module> module, DeviceKernel &kernel) {
  HostKernels host;
  for (const DeviceLaunch &launch : kernel.launches)
    host.entries.push_back({launch.entry, 0, uint32_t(launch.arguments.size()), launch.threads,
                            launch.sharedBytes, false});
  if (const llvm::Function *barrier = module->getFunction(kBarrierFunction))
    for (const llvm::User *user : barrier->users())
      for (HostKernels::Entry &entry : host.entries)
        entry.barriers |= llvm::cast<llvm::Instruction>(user)->getFunction()->getName() ==
                          llvm::StringRef(entry.name);
  std::vector<uint32_t> more = bindToHost(*module, entriesOf(kernel));
  for (size_t i = 0; i < more.size(); ++i)
    if (more[i] > 0) {
      HostKernels::Entry &entry = host.entries[i];
      entry.sharedBytes = uint32_t(llvm::alignTo(entry.sharedBytes, 16)) + more[i];
      entry.barriers = true;
    }
  auto object = objectOf(*module, Isa{}, nullptr);
  if (!object)
    return object.takeError();
  auto image = linkObject(*object);
  if (!image)
    return image.takeError();
  for (HostKernels::Entry &entry : host.entries)
    entry.offset = image->functions.at(entry.name);
  host.code = std::move(image->code);
  kernel.images.push_back({DeviceImage::Kind::Host, "x86-64", host.serialise(), {}});
  return Status::success();
}

static Status addCudaImages(llvm::Module &module, const Isa &isa, DeviceKernel &kernel,
                            LoweringTexts *texts) {
  bindToNvptx(module, entriesOf(kernel));
  auto ptx = lowerToPtx(module, isa.name());
  if (!ptx)
    return ptx.takeError();
  if (texts)
    texts->assembly = *ptx;
  DeviceImage text{DeviceImage::Kind::Ptx, isa.name(), {ptx->begin(), ptx->end()}, {}};
  text.bytes.push_back(0);
  const toolchain::PtxAssembler &assembler = toolchain::PtxAssembler::find();
  auto assembled = assembler.assemble(*ptx, isa.name());
  if (assembled) {
    DeviceImage cubin{DeviceImage::Kind::Cubin, isa.name(), std::move(assembled->cubin), {}};
    for (const DeviceLaunch &launch : kernel.launches)
      cubin.resources.push_back(assembled->resources[launch.entry]);
    kernel.images.push_back(std::move(cubin));
    kernel.addLog(assembler.description(), assembled->log);
  } else if (assembled.error().kind != ErrorKind::Unavailable) {
    return assembled.takeError();
  }
  kernel.images.push_back(std::move(text));
  return Status::success();
}

static Status addRocmImages(llvm::Module &module, const Isa &isa, DeviceKernel &kernel,
                            LoweringTexts *texts) {
  bindToAmdgpu(module, entriesOf(kernel));
  auto object = lowerToCodeObject(module, isa.name(), texts ? &texts->assembly : nullptr);
  if (!object)
    return object.takeError();
  auto resources = toolchain::codeObjectResources(*object);
  if (!resources)
    return resources.takeError();
  DeviceImage image{DeviceImage::Kind::Hsaco, isa.name(), std::move(*object), {}};
  for (const DeviceLaunch &launch : kernel.launches)
    image.resources.push_back((*resources)[launch.entry]);
  kernel.images.push_back(std::move(image));
  return Status::success();
}

Status lowerForDevice(mlir::ModuleOp module, const Isa &isa, DeviceKernel &kernel,
                      LoweringTexts *texts) {
  llvm::LLVMContext context;
  auto lowered = translateKernels(module, context);
  if (!lowered)
    return lowered.takeError();
  if (Status status = checkArguments(**lowered, kernel); !status)
    return status;
  std::unique_ptr<llvm::Module> host = llvm::CloneModule(**lowered);
  Status status = isa.isCuda() ? addCudaImages(**lowered, isa, kernel, texts)
                               : addRocmImages(**lowered, isa, kernel, texts);
  if (!status)
    return status;
  if (texts) {
    llvm::raw_string_ostream stream(texts->optimised);
    (*lowered)->print(stream, nullptr);
  }
  return addHostImage(std::move(host), kernel);
}

} // namespace dovetail::codegen
