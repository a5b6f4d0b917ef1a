// SPDX-License-Identifier: Apache-2.0
//
// Code refers only to itself: it runs where the host has it, where that may be, and else in a copy.
// Running checks the tensors against the problem, then calls the phases one after the other through
// the host's parallel-for.
#include "providers/native/LoadedKernel.h"

#include <algorithm>
#include <alloca.h>
#include <cstring>
#include <functional>
#include <numeric>
#include <sys/mman.h>

#include <fmt/format.h>

#include "codegen/schedule/Divisors.h"
#include "providers/native/CompilerDoor.h"
#include "providers/native/ValueChecks.h"

namespace dovetail::native {

using namespace codegen;

static constexpr uint64_t kLine = 64;
static uint64_t roundUp(uint64_t bytes, uint64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

LoadedKernel::~LoadedKernel() {
  if (ownCode)
    ::munmap(ownCode, ownBytes);
}

/// Whether the host lets the kernel's bytes be run where they are.
static bool mayExecute(const dvt_prepare_args &args) {
  constexpr size_t end =
      offsetof(dvt_prepare_args, kernel_is_executable) + sizeof(args.kernel_is_executable);
  return providers::states(&args, end) && args.kernel_is_executable != 0;
}

Status LoadedKernel::copyCode(const uint8_t *from, uint64_t bytes) {
  ownBytes = roundUp(bytes, 4096);
  void *memory =
      ::mmap(nullptr, ownBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return unavailable("no memory for {} bytes of code", ownBytes);
  ownCode = static_cast<uint8_t *>(memory);
  std::memcpy(ownCode, from, bytes);
  if (::mprotect(ownCode, ownBytes, PROT_READ | PROT_EXEC))
    return unavailable("the system does not let memory become executable");
  return Status::success();
}

Status LoadedKernel::mapCode(const dvt_prepare_args &args, const Machine &machine) {
  const auto *bytes = static_cast<const uint8_t *>(args.kernel);
  ImageHeader header;
  if (!bytes || args.kernel_bytes < sizeof(header))
    return badInput("a native kernel of {} bytes has no header", args.kernel_bytes);
  std::memcpy(&header, bytes, sizeof(header));
  if (header.magic != kImageMagic || header.version != kImageVersion)
    return badInput("not a native kernel of version {}; compile it again", kImageVersion);
  uint64_t size = args.kernel_bytes - sizeof(header);
  uint64_t table = uint64_t(header.phaseCount) * sizeof(ImagePhase);
  if (table > size || header.codeOffset < sizeof(header) + table ||
      header.codeOffset > args.kernel_bytes ||
      header.codeBytes != args.kernel_bytes - header.codeOffset || header.codeBytes == 0 ||
      header.checksum != imageChecksum(header, bytes + sizeof(header), size))
    return badInput("a native kernel of {} bytes is damaged; compile it again", args.kernel_bytes);
  const bool vnni = header.isa & kImageVnni;
  if ((header.isa & ~kImageVnni) != machine.isa.level)
    return badInput("the native kernel is for another instruction set than {}", machine.isa.name());
  if (!hostSupports(machine.isa.level, vnni))
    return unavailable("this processor has no {}{}", machine.isa.name(), vnni ? " with VNNI" : "");

  const uint8_t *code = bytes + header.codeOffset;
  if (!mayExecute(args) || reinterpret_cast<uintptr_t>(code) % kImageAlignment != 0) {
    if (Status status = copyCode(code, header.codeBytes); !status)
      return status;
    code = ownCode;
  }
  for (uint32_t i = 0; i < header.phaseCount; ++i) {
    ImagePhase entry;
    std::memcpy(&entry, bytes + sizeof(header) + i * sizeof(entry), sizeof(entry));
    if (entry.function >= header.codeBytes ||
        (entry.count != kNoOffset && entry.count >= header.codeBytes))
      return badInput("a native kernel's phase lies outside its code");
    const auto address = reinterpret_cast<uintptr_t>(code);
    Phase phase{reinterpret_cast<PhaseFunction>(address + entry.function), nullptr,
                entry.staticCount};
    if (entry.count != kNoOffset)
      phase.count = reinterpret_cast<CountFunction>(address + entry.count);
    phases.push_back(phase);
  }
  sharedBytes = roundUp(header.workspaceBytes, kLine);
  scratchStride = roundUp(header.scratchBytes, kLine);
  return Status::success();
}

Status LoadedKernel::packConstants(const ProblemReader &problem, const Machine &machine,
                                   const Schedule &schedule, const dvt_prepare_args &args) {
  const dvt_problem &source = problem.problem();
  const ScheduleFamily *family = findScheduleFamily(schedule.family());
  constants.resize(source.input_count);
  for (uint32_t i = 0; i < source.input_count; ++i) {
    if (!problem.isConstant(source.inputs[i]))
      continue;
    const void *given = args.constants ? args.constants[i] : nullptr;
    constants[i] = given;
    if (schedule.packedBytes[i] == 0)
      continue;
    if (!given)
      return badInput("input {} is a constant that kernel {} packs, but it is not given", i,
                      schedule.algorithm);
    providers::PackingClock clock(&args);
    void *memory = packed.take(&args, schedule.packedBytes[i]);
    if (!memory)
      return unavailable("no memory for {} bytes of packed constants", schedule.packedBytes[i]);
    family->pack(problem, machine, schedule, i, given, memory);
    constants[i] = memory;
  }
  return Status::success();
}

Expected<std::unique_ptr<LoadedKernel>> LoadedKernel::load(const ProblemReader &problem,
                                                           const Machine &machine,
                                                           const Schedule &schedule,
                                                           const dvt_prepare_args &args) {
  std::unique_ptr<LoadedKernel> kernel(new LoadedKernel(problem));
  kernel->threads = std::max({1u, machine.threads, args.threads});
  if (const ScheduleFamily *family = findScheduleFamily(schedule.family()); family->demands)
    kernel->demands = family->demands(problem);
  for (const codegen::ValueDemand &demand : codegen::indexDemands(problem))
    kernel->demands.push_back(demand);
  if (Status status = kernel->mapCode(args, machine); !status)
    return status.takeError();
  if (Status status = kernel->packConstants(problem, machine, schedule, args); !status)
    return status.takeError();
  // What a constant must fulfil under an extent that is known is settled here, once.
  auto isSettled = [&](const ValueDemand &demand) {
    return demand.extent >= 0 && kernel->constants[demand.input];
  };
  for (const ValueDemand &demand : kernel->demands) {
    const TensorShapes::Shape &shape = kernel->shapes[demand.input];
    int64_t count = std::accumulate(shape.extents.begin(), shape.extents.end(), int64_t(1),
                                    std::multiplies<>());
    if (isSettled(demand))
      if (auto broken = firstViolation(demand, shape.type, kernel->constants[demand.input], count,
                                       demand.extent))
        return badInput("{}", *broken);
  }
  std::erase_if(kernel->demands, isSettled);
  for (uint32_t input : codegen::divisorInputs(problem)) {
    if (!kernel->constants[input] || !args.constants || !args.constants[input]) {
      kernel->divisors.push_back(input);
      continue;
    }
    // As they were given: the padding of packed ones is zero.
    const TensorShapes::Shape &shape = kernel->shapes[input];
    const int64_t count = std::accumulate(shape.extents.begin(), shape.extents.end(), int64_t(1),
                                          std::multiplies<>());
    if (auto place = codegen::findZero(shape.type, args.constants[input], count))
      return badInput("integer division by zero: input {} has one at element {}", input, *place);
  }
  return kernel;
}

uint64_t LoadedKernel::workspaceBytes() const { return sharedBytes + scratchStride * threads; }

dvt_code LoadedKernel::checkValues(const dvt_run_args &args, dvt_error *error) const {
  for (const ValueDemand &demand : demands) {
    const dvt_tensor &tensor = args.inputs[demand.input];
    const void *data = constants[demand.input] ? constants[demand.input] : tensor.data;
    auto [number, dimension] = demand.extentOf;
    int64_t count = 1, extent = demand.extent;
    if (extent < 0)
      extent = shapes.of(args, number).extents[dimension];
    for (uint32_t i = 0; i < tensor.rank; ++i)
      count *= tensor.extents[i];
    if (auto broken = firstViolation(demand, tensor.type, data, count, extent))
      return report(error, DVT_BAD_INPUT, *broken);
  }
  for (uint32_t input : divisors) {
    const dvt_tensor &tensor = args.inputs[input];
    int64_t count = std::accumulate(tensor.extents, tensor.extents + tensor.rank, int64_t(1),
                                    std::multiplies<>());
    const void *data = constants[input] ? constants[input] : tensor.data;
    if (auto place = codegen::findZero(tensor.type, data, count))
      return report(error, DVT_BAD_INPUT,
                    fmt::format("integer division by zero: input {} has "
                                "one at element {}",
                                input, *place));
  }
  return DVT_OK;
}

namespace {
struct PhaseCall {
  PhaseFunction function;
  const KernelArgs *args;
};

void runTasks(void *argument, int64_t begin, int64_t end, uint32_t worker) {
  const auto &call = *static_cast<const PhaseCall *>(argument);
  call.function(call.args, begin, end, worker);
}
} // namespace

dvt_code LoadedKernel::run(const dvt_run_args &args, dvt_error *error) const {
  if (dvt_code code = shapes.check(args, false, constants, error); code != DVT_OK)
    return code;
  if (dvt_code code = checkValues(args, error); code != DVT_OK)
    return code;
  if (workspaceBytes() > args.workspace_bytes || (workspaceBytes() && !args.workspace))
    return report(error, DVT_BAD_INPUT,
                  fmt::format("the kernel needs {} bytes of workspace and is given {}",
                              workspaceBytes(), args.workspace_bytes));
  auto *data = static_cast<void **>(alloca((shapes.count() + 1) * sizeof(void *)));
  for (uint32_t i = 0; i < shapes.count(); ++i)
    data[i] = i < shapes.inputs() && constants[i] ? const_cast<void *>(constants[i])
                                                  : shapes.of(args, i).data;
  int64_t *extents = nullptr; // code for fixed extents has them in itself
  if (!shapes.isStatic()) {
    int64_t *next = extents =
        static_cast<int64_t *>(alloca((shapes.dimensions() + 1) * sizeof(int64_t)));
    for (uint32_t i = 0; i < shapes.count(); ++i) {
      const dvt_tensor &tensor = shapes.of(args, i);
      next = std::copy(tensor.extents, tensor.extents + tensor.rank, next);
    }
  }
  char *workspace = static_cast<char *>(args.workspace);
  KernelArgs kernelArgs{data, extents, workspace, workspace + sharedBytes, int64_t(scratchStride)};
  bool parallel = args.parallel && args.parallel->threads > 1 && args.parallel->threads <= threads;
  for (const Phase &phase : phases) {
    int64_t count = phase.count ? phase.count(&kernelArgs) : phase.staticCount;
    if (count <= 0)
      continue;
    if (!parallel || count == 1) {
      phase.function(&kernelArgs, 0, count, 0);
      continue;
    }
    PhaseCall call{phase.function, &kernelArgs};
    args.parallel->run(args.parallel->context, count, runTasks, &call);
  }
  return DVT_OK;
}

} // namespace dovetail::native
