// SPDX-License-Identifier: Apache-2.0
//
// LLD reads and writes files, so what it links passes through temporary ones. It keeps state of the
// process while it runs: one link at a time.
#include "codegen/gpu/CodeObject.h"

#include <mutex>

#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"

#include "codegen/gpu/Ptx.h"

#ifdef DOVETAIL_LLD
#include "lld/Common/Driver.h"
LLD_HAS_DRIVER(elf)
#endif

namespace dovetail::codegen {

#ifdef DOVETAIL_LLD
static Expected<std::vector<uint8_t>> link(llvm::ArrayRef<char> object) {
  llvm::SmallString<128> from, to;
  if (llvm::sys::fs::createTemporaryFile("dovetail", "o", from) ||
      llvm::sys::fs::createTemporaryFile("dovetail", "hsaco", to))
    return unavailable("no temporary file for linking device code can be made; is there room in "
                       "the folder that TMPDIR names?");
  llvm::FileRemover removeFrom(from), removeTo(to);
  {
    std::error_code error;
    llvm::raw_fd_ostream stream(from, error);
    stream.write(object.data(), object.size());
    stream.close();
    if (error || stream.has_error()) {
      stream.clear_error();
      return unavailable("cannot write {}", from.str().str());
    }
  }
  std::string output, errors;
  llvm::raw_string_ostream outputStream(output), errorStream(errors);
  static std::mutex oneAtATime;
  std::lock_guard lock(oneAtATime);
  lld::Result result = lld::lldMain(
      {"ld.lld", "-shared", "--no-undefined", "--threads=1", "-o", to.c_str(), from.c_str()},
      outputStream, errorStream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    return internalError("device code does not link: {}", errors);
  auto linked = llvm::MemoryBuffer::getFile(to, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!linked)
    return unavailable("cannot read {}: {}", to.str().str(), linked.getError().message());
  llvm::StringRef bytes = (*linked)->getBuffer();
  return std::vector<uint8_t>(bytes.begin(), bytes.end());
}
#else
static Expected<std::vector<uint8_t>> link(llvm::ArrayRef<char>) {
  return unavailable(
      "this Dovetail was built without LLD (Debian: liblld-22-dev), which links code "
      "for ROCm");
}
#endif

Expected<std::vector<uint8_t>> lowerToCodeObject(llvm::Module &module, const char *architecture,
                                                 std::string *assembly) {
  auto object = lowerToAmdgpu(module, architecture, assembly);
  if (!object)
    return object.takeError();
  return link(*object);
}

} // namespace dovetail::codegen
