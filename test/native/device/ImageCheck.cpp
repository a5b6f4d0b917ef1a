// SPDX-License-Identifier: Apache-2.0
//
// See the header.
#include "ImageCheck.h"

#include <algorithm>

#include "llvm-c/Disassembler.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/TargetSelect.h"

#include "toolchain/PtxAssembler.h"

namespace dovetail::test {

using toolchain::PtxAssembler;

std::map<std::string, ImageCounts> &imageCounts() {
  static std::map<std::string, ImageCounts> counts;
  return counts;
}

static bool isCuda(const std::string &architecture) { return architecture.starts_with("sm_"); }

std::string matrixInstruction(const std::string &architecture, const std::string &numerics) {
  if (isCuda(architecture))
    return numerics == "f16"    ? "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
           : numerics == "bf16" ? "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
           : numerics == "tf32" ? "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
                                : "";
  // gfx942 puts an underscore between shape and type.
  const std::string shape = numerics == "f32" ? "v_mfma_f32_16x16x4" : "v_mfma_f32_16x16x16";
  return numerics == "tf32" ? "" : shape + (architecture == "gfx90a" ? "" : "_") + numerics;
}

/// "tf32" of "devicematmul:mma-tf32:128x64x16:32x32"; empty for kernels without a matrix unit.
static std::string unitOf(const std::string &algorithm) {
  constexpr std::string_view kMark = ":mma-";
  size_t begin = algorithm.find(kMark);
  if (begin == algorithm.npos)
    return {};
  begin += kMark.size();
  return algorithm.substr(begin, algorithm.find(':', begin) - begin);
}

Expected<std::string> disassemble(const DeviceImage &image) {
  LLVMInitializeAMDGPUTargetInfo();
  LLVMInitializeAMDGPUTarget();
  LLVMInitializeAMDGPUTargetMC();
  LLVMInitializeAMDGPUDisassembler();
  LLVMDisasmContextRef context = LLVMCreateDisasmCPU(
      "amdgcn-amd-amdhsa", image.architecture.c_str(), nullptr, 0, nullptr, nullptr);
  if (!context)
    return unavailable("this LLVM has no disassembler for {}", image.architecture);
  llvm::StringRef bytes(reinterpret_cast<const char *>(image.bytes.data()), image.bytes.size());
  auto object = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, "kernel"));
  if (!object) {
    LLVMDisasmDispose(context);
    return badInput("no code object: {}", llvm::toString(object.takeError()));
  }
  std::string text;
  for (const llvm::object::SectionRef &section : (*object)->sections()) {
    auto contents = section.getContents();
    if (!contents || !section.isText()) {
      llvm::consumeError(contents.takeError());
      continue;
    }
    std::vector<uint8_t> code(contents->begin(), contents->end());
    char line[256];
    for (size_t at = 0; at < code.size();) {
      size_t taken = LLVMDisasmInstruction(context, code.data() + at, code.size() - at, at, line,
                                           sizeof(line));
      text += taken ? std::string(line) + "\n" : "";
      at += taken ? taken : 4;
    }
  }
  LLVMDisasmDispose(context);
  return text;
}

namespace {

/// One kernel's images, with what to call it in messages.
class ImageCheck {
public:
  ImageCheck(const DeviceKernel &kernel, const std::string &architecture,
             const std::string &algorithm)
      : kernel(kernel), architecture(architecture), algorithm(algorithm) {}

  Status run() {
    if (!kernel.find(DeviceImage::Kind::Host))
      return wrong("no host form");
    if (Status status = isCuda(architecture) ? checkPtx() : checkCodeObject(); !status)
      return status;
    ImageCounts &counts = imageCounts()[architecture];
    ++counts.kernels;
    counts.entries += kernel.launches.size();
    return Status::success();
  }

private:
  Status wrong(const std::string &what) const {
    return internalError("{} {}: {}", architecture, algorithm, what);
  }

  Status checkMatrixUnit(const std::string &code) {
    const std::string unit = unitOf(algorithm);
    if (unit.empty())
      return Status::success();
    const std::string instruction = matrixInstruction(architecture, unit);
    if (instruction.empty() || code.find(instruction) == code.npos)
      return wrong(fmt::format("no instruction {}", instruction));
    ++imageCounts()[architecture].matrixKernels;
    return Status::success();
  }

  Status checkCodeObject() {
    const DeviceImage *image = kernel.find(DeviceImage::Kind::Hsaco);
    if (!image)
      return wrong("no code object");
    if (image->resources.size() != kernel.launches.size())
      return wrong("no resources of every entry");
    for (size_t i = 0; i < kernel.launches.size(); ++i)
      if (image->resources[i].registers == 0 ||
          image->resources[i].sharedBytes != kernel.launches[i].sharedBytes)
        return wrong(fmt::format("registers or shared memory of {}", kernel.launches[i].entry));
    auto code = disassemble(*image);
    if (!code)
      return wrong(code.error().message);
    // Each kernel ends once at least.
    size_t ends = 0;
    for (size_t at = code->find("s_endpgm"); at != code->npos; at = code->find("s_endpgm", at + 1))
      ++ends;
    if (ends < kernel.launches.size())
      return wrong(fmt::format("{} ends of {} kernels", ends, kernel.launches.size()));
    ++imageCounts()[architecture].disassembled;
    return checkMatrixUnit(*code);
  }

  Status checkPtx() {
    const DeviceImage *ptx = kernel.find(DeviceImage::Kind::Ptx);
    if (!ptx || ptx->bytes.empty() || ptx->bytes.back() != 0)
      return wrong("no PTX");
    const std::string text(reinterpret_cast<const char *>(ptx->bytes.data()));
    for (const DeviceLaunch &launch : kernel.launches)
      if (size_t found = parametersOf(text, launch.entry); found != launch.arguments.size())
        return wrong(fmt::format("{} takes {} parameters and is given {}", launch.entry, found,
                                 launch.arguments.size()));
    if (Status status = assemble(text); !status)
      return status;
    return checkMatrixUnit(text);
  }

  static size_t parametersOf(const std::string &text, const std::string &entry) {
    std::string head = text.substr(std::min(text.find(".entry " + entry + "("), text.size()));
    head.resize(std::min(head.find('{'), head.size()));
    size_t parameters = 0;
    for (size_t at = head.find(".param"); at != head.npos; at = head.find(".param", at + 1))
      ++parameters;
    return parameters;
  }

  Status assemble(const std::string &text) {
    static const PtxAssembler assembler = [] {
      PtxAssembler ptxas = PtxAssembler::of(PtxAssembler::Tool::Ptxas);
      return ptxas.tool() == PtxAssembler::Tool::None
                 ? PtxAssembler::of(PtxAssembler::Tool::NvJitLink)
                 : ptxas;
    }();
    if (assembler.tool() == PtxAssembler::Tool::None)
      return Status::success();
    auto assembled = assembler.assemble(text, architecture, /*strict=*/true);
    if (!assembled)
      return wrong(assembled.error().message);
    if (assembled->log.find("warning") != std::string::npos) // nvJitLink goes on
      return wrong(assembled->log);
    for (const DeviceLaunch &launch : kernel.launches)
      if (assembled->resources[launch.entry].registers == 0)
        return wrong(fmt::format("no registers of {}: {}", launch.entry, assembled->log));
    ++imageCounts()[architecture].assembled;
    return Status::success();
  }

  const DeviceKernel &kernel;
  const std::string &architecture, &algorithm;
};

} // namespace

Status checkImages(const DeviceKernel &kernel, const std::string &architecture,
                   const std::string &algorithm) {
  return ImageCheck(kernel, architecture, algorithm).run();
}

} // namespace dovetail::test
