// SPDX-License-Identifier: Apache-2.0
//
// nvJitLink's few functions, declared here because its header may be missing, and ptxas as a child
// process. nvJitLink's symbols carry the version of CUDA in their names.
#include "codegen/gpu/PtxAssembler.h"

#include <dlfcn.h>
#include <optional>

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

namespace dovetail::codegen {

namespace {

constexpr const char *kCudaFolder = "/usr/local/cuda";
constexpr int kPtxInput = 2; ///< NVJITLINK_INPUT_PTX
constexpr unsigned kSecondsForPtxas = 300;

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
std::optional<uint32_t> numberBefore(llvm::StringRef line, llvm::StringRef unit) {
  size_t place = line.find(unit);
  if (place == line.npos)
    return std::nullopt;
  llvm::StringRef before = line.take_front(place).rtrim();
  uint32_t number = 0;
  if (before.take_back(before.size() - (before.find_last_not_of("0123456789") + 1))
          .getAsInteger(10, number))
    return std::nullopt;
  return number;
}

} // namespace

std::map<std::string, DeviceResources> resourcesOfLog(std::string_view log) {
  std::map<std::string, DeviceResources> found;
  DeviceResources *current = nullptr;
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(log.data(), log.size()).split(lines, '\n');
  for (llvm::StringRef line : lines) {
    constexpr llvm::StringLiteral kEntry = "Compiling entry function '";
    if (size_t place = line.find(kEntry); place != line.npos) {
      current = &found[line.drop_front(place + kEntry.size()).split('\'').first.str()];
      continue;
    }
    if (!current)
      continue;
    auto take = [&](llvm::StringRef unit, uint32_t &into) {
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
      std::string file = *folder ? std::string(kCudaFolder) + folder + name : name;
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
  auto found = llvm::sys::findProgramByName("ptxas");
  if (!found)
    found = llvm::sys::findProgramByName("ptxas", {std::string(kCudaFolder) + "/bin"});
  if (!found)
    return false;
  // A file of that name may be what is left of a tool kit that was removed.
  std::optional<llvm::StringRef> silent[] = {llvm::StringRef(""), llvm::StringRef(""),
                                             llvm::StringRef("")};
  if (llvm::sys::ExecuteAndWait(*found, {*found, "--version"}, std::nullopt, silent, 10) != 0)
    return false;
  path = *found;
  which = Tool::Ptxas;
  return true;
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

std::string PtxAssembler::description() const {
  switch (which) {
  case Tool::NvJitLink:
    return fmt::format("nvJitLink {}.{}", major, minor);
  case Tool::Ptxas:
    return fmt::format("ptxas ({})", path);
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
  result.log = textOf(library, handle, "InfoLog");
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
  llvm::SmallString<128> from, to, logFile;
  if (llvm::sys::fs::createTemporaryFile("dovetail", "ptx", from) ||
      llvm::sys::fs::createTemporaryFile("dovetail", "cubin", to) ||
      llvm::sys::fs::createTemporaryFile("dovetail", "log", logFile))
    return unavailable("no temporary file for ptxas can be made; is there room in the folder that "
                       "TMPDIR names?");
  llvm::FileRemover removeFrom(from), removeTo(to), removeLog(logFile);
  if (llvm::Error failed = llvm::writeToOutput(from, [&](llvm::raw_ostream &stream) {
        stream << ptx;
        return llvm::Error::success();
      }))
    return unavailable("the PTX for ptxas cannot be written: {}",
                       llvm::toString(std::move(failed)));
  std::vector<llvm::StringRef> arguments = {path,         "-v", "-O3", "-arch",
                                            architecture, "-o", to,    from};
  if (strict)
    arguments.push_back("--warning-as-error");
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), llvm::StringRef(logFile),
                                                llvm::StringRef(logFile)};
  std::string why;
  int code = llvm::sys::ExecuteAndWait(path, arguments, std::nullopt, redirects, kSecondsForPtxas,
                                       0, &why);
  auto read = [](llvm::StringRef file) {
    auto buffer = llvm::MemoryBuffer::getFile(file, false, /*RequiresNullTerminator=*/false);
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  };
  AssembledPtx result;
  result.log = read(logFile);
  if (code < 0)
    return unavailable("{} does not run: {}", description(), why);
  if (code != 0 && result.log.find("gpu-name") != std::string::npos)
    return unavailable("{} does not know {}: {}", description(), architecture, result.log);
  std::string cubin = code == 0 ? read(to) : "";
  if (cubin.empty())
    return internalError("{} refuses PTX for {}: {}", description(), architecture, result.log);
  result.cubin.assign(cubin.begin(), cubin.end());
  result.resources = resourcesOfLog(result.log);
  return result;
}

} // namespace dovetail::codegen
