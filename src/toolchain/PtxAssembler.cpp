// SPDX-License-Identifier: Apache-2.0
//
// nvJitLink's few functions, declared here because its header may be missing, and ptxas as a child
// process. nvJitLink's symbols carry the version of CUDA in their names.
#include "toolchain/PtxAssembler.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

#include <dlfcn.h>
#include <unistd.h>

#include "support/File.h"
#include "toolchain/ChildProcess.h"

namespace dovetail::toolchain {

namespace {

constexpr const char *kCudaFolder = "/usr/local/cuda";
constexpr int kPtxInput = 2; ///< NVJITLINK_INPUT_PTX
constexpr std::chrono::seconds kForPtxas{300}, kToAnswer{10};

/// Each returns 0 when it went well.
using Create = int (*)(void **handle, uint32_t count, const char **options);
using Destroy = int (*)(void **handle);
using AddData = int (*)(void *handle, int kind, const void *data, size_t bytes, const char *name);
using Complete = int (*)(void *handle);
using GetSize = int (*)(void *handle, size_t *bytes);
using GetBytes = int (*)(void *handle, void *bytes);
using Version = int (*)(unsigned *major, unsigned *minor);

void *symbolOf(void *library, const std::string &name) {
  if (void *plain = ::dlsym(library, name.c_str()))
    return plain;
  for (int major : {13, 12})
    for (int minor = 0; minor < 10; ++minor)
      if (void *found = ::dlsym(library, fmt::format("__{}_{}_{}", name, major, minor).c_str()))
        return found;
  return nullptr;
}

std::string textOf(void *library, void *handle, const char *what) {
  auto size = reinterpret_cast<GetSize>(symbolOf(library, fmt::format("nvJitLinkGet{}Size", what)));
  auto get = reinterpret_cast<GetBytes>(symbolOf(library, fmt::format("nvJitLinkGet{}", what)));
  size_t bytes = 0;
  if (!size || !get || size(handle, &bytes) || bytes == 0)
    return {};
  std::string text(bytes, '\0');
  if (get(handle, text.data()))
    return {};
  return text;
}

/// The number that ends before `unit` in the line, as in "24 registers".
std::optional<uint32_t> numberBefore(std::string_view line, std::string_view unit) {
  size_t end = line.find(unit);
  if (end == line.npos)
    return std::nullopt;
  size_t start = end;
  while (start > 0 && line[start - 1] >= '0' && line[start - 1] <= '9')
    --start;
  uint32_t number = 0;
  if (std::from_chars(line.data() + start, line.data() + end, number).ec != std::errc())
    return std::nullopt;
  return number;
}

/// Without what differs from one time to the next: the same text must give the same kernel.
std::string withoutTimes(std::string_view log) {
  std::string kept;
  while (!log.empty()) {
    std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(line.size() + 1, log.size()));
    if (line.find("ompile time") == line.npos && !line.empty() && line[0] != '\0')
      kept.append(line) += '\n';
  }
  return kept;
}

} // namespace

std::map<std::string, DeviceResources> resourcesOfLog(std::string_view log) {
  std::map<std::string, DeviceResources> found;
  DeviceResources *current = nullptr;
  while (!log.empty()) {
    std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(line.size() + 1, log.size()));
    constexpr std::string_view kEntry = "Compiling entry function '";
    if (size_t place = line.find(kEntry); place != line.npos) {
      std::string_view name = line.substr(place + kEntry.size());
      current = &found[std::string(name.substr(0, name.find('\'')))];
      continue;
    }
    if (!current)
      continue;
    auto take = [&](std::string_view unit, uint32_t &into) {
      if (auto number = numberBefore(line, unit))
        into = *number;
    };
    take(" registers", current->registers);
    take(" bytes stack frame", current->stackBytes);
    take(" bytes spill stores", current->spillBytes);
    take(" bytes smem", current->sharedBytes);
  }
  return found;
}

bool PtxAssembler::openLibrary() {
  for (const char *folder : {"", "/lib64/"})
    for (const char *name : {"libnvJitLink.so.13", "libnvJitLink.so.12"}) {
      file = *folder ? std::string(kCudaFolder) + folder + name : name;
      library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (!library)
        continue;
      auto version = reinterpret_cast<Version>(symbolOf(library, "nvJitLinkVersion"));
      if (version && !version(&major, &minor) && symbolOf(library, "nvJitLinkCreate")) {
        which = Tool::NvJitLink;
        return true;
      }
    }
  return false;
}

bool PtxAssembler::findProgram() {
  const char *path = std::getenv("PATH");
  std::string folders = fmt::format("{}:{}/bin", path ? path : "", kCudaFolder);
  for (size_t from = 0; from < folders.size();) {
    size_t colon = std::min(folders.find(':', from), folders.size());
    file = folders.substr(from, colon - from) + "/ptxas";
    from = colon + 1;
    if (!file.starts_with("//") && file.starts_with('/') && ::access(file.c_str(), X_OK) == 0)
      // A file of that name may be what is left of a tool kit that was removed.
      if (auto answer = runChild({file, "--version"}, kToAnswer); answer && answer->succeeded()) {
        which = Tool::Ptxas;
        return true;
      }
  }
  return false;
}

const PtxAssembler &PtxAssembler::find() {
  static const PtxAssembler found = [] {
    PtxAssembler assembler;
    if (!assembler.openLibrary())
      assembler.findProgram();
    return assembler;
  }();
  return found;
}

PtxAssembler PtxAssembler::of(Tool tool) {
  PtxAssembler assembler;
  if (tool == Tool::NvJitLink)
    assembler.openLibrary();
  else if (tool == Tool::Ptxas)
    assembler.findProgram();
  return assembler;
}

std::string PtxAssembler::version() const { return fmt::format("{}.{}", major, minor); }

std::string PtxAssembler::description() const {
  switch (which) {
  case Tool::NvJitLink:
    return fmt::format("nvJitLink {}", version());
  case Tool::Ptxas:
    return fmt::format("ptxas ({})", file);
  case Tool::None:
    break;
  }
  return "none";
}

Expected<AssembledPtx> PtxAssembler::assemble(const std::string &ptx,
                                              const std::string &architecture, bool strict) const {
  switch (which) {
  case Tool::NvJitLink:
    return assembleByLibrary(ptx, architecture);
  case Tool::Ptxas:
    return assembleByProgram(ptx, architecture, strict);
  case Tool::None:
    break;
  }
  return unavailable("no assembler for PTX was found (nvJitLink of CUDA 12 or 13, or ptxas); the "
                     "driver will assemble the code when it is loaded");
}

Expected<AssembledPtx> PtxAssembler::assembleByLibrary(const std::string &ptx,
                                                       const std::string &architecture) const {
  auto create = reinterpret_cast<Create>(symbolOf(library, "nvJitLinkCreate"));
  auto destroy = reinterpret_cast<Destroy>(symbolOf(library, "nvJitLinkDestroy"));
  auto addData = reinterpret_cast<AddData>(symbolOf(library, "nvJitLinkAddData"));
  auto complete = reinterpret_cast<Complete>(symbolOf(library, "nvJitLinkComplete"));
  if (!create || !destroy || !addData || !complete)
    return unavailable("{} lacks functions that assembling needs", description());
  std::string option = "-arch=" + architecture;
  const char *options[] = {option.c_str(), "-O3", "-verbose"};
  void *handle = nullptr;
  if (int code = create(&handle, 3, options))
    return unavailable("{} does not know {} (error {})", description(), architecture, code);
  int code = addData(handle, kPtxInput, ptx.c_str(), ptx.size() + 1, "kernel");
  if (code == 0)
    code = complete(handle);
  AssembledPtx result;
  result.log = withoutTimes(textOf(library, handle, "InfoLog").c_str());
  std::string errors = textOf(library, handle, "ErrorLog");
  std::string cubin = code == 0 ? textOf(library, handle, "LinkedCubin") : "";
  destroy(&handle);
  if (cubin.empty())
    return internalError("{} refuses PTX for {} (error {}): {}", description(), architecture, code,
                         errors);
  result.cubin.assign(cubin.begin(), cubin.end());
  result.resources = resourcesOfLog(result.log);
  return result;
}

Expected<AssembledPtx> PtxAssembler::assembleByProgram(const std::string &ptx,
                                                       const std::string &architecture,
                                                       bool strict) const {
  auto folder = TemporaryFolder::create();
  if (!folder)
    return folder.takeError();
  const std::string from = folder->file("kernel.ptx"), to = folder->file("kernel.cubin");
  if (Status status = writeFile(from, ptx); !status)
    return status.takeError();
  std::vector<std::string> arguments = {file, "-v", "-O3", "-arch", architecture, "-o", to, from};
  if (strict)
    arguments.emplace_back("--warning-as-error");
  auto child = runChild(arguments, kForPtxas);
  if (!child)
    return child.takeError();
  AssembledPtx result;
  result.log = withoutTimes(child->output);
  const int code = child->exitCode;
  if (code < 0)
    return unavailable("{} ends with {}", description(), child->ending());
  if (code != 0 && result.log.find("gpu-name") != std::string::npos)
    return unavailable("{} does not know {}: {}", description(), architecture, result.log);
  auto cubin = code == 0 ? readFile(to) : Expected<std::string>(std::string());
  if (!cubin || cubin->empty())
    return internalError("{} refuses PTX for {}: {}", description(), architecture, result.log);
  result.cubin.assign(cubin->begin(), cubin->end());
  result.resources = resourcesOfLog(result.log);
  return result;
}

} // namespace dovetail::toolchain
