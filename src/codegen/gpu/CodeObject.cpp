// SPDX-License-Identifier: Apache-2.0
//
// LLD reads and writes files, so what it links passes through temporary ones. It keeps state of the
// process while it runs: one link at a time.
#include "codegen/gpu/CodeObject.h"

#include <mutex>

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/BinaryFormat/MsgPackDocument.h"
#include "llvm/IR/Module.h"
#include "llvm/Object/ELFObjectFile.h"
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

using Metadata = std::map<std::string, DeviceResources>;

static Metadata readMetadata(llvm::msgpack::Document &document) {
  Metadata found;
  llvm::msgpack::DocNode root = document.getRoot();
  if (!root.isMap())
    return found;
  auto child = [](llvm::msgpack::MapDocNode &map, llvm::StringRef key) {
    auto place = map.find(key);
    return place == map.end() ? llvm::msgpack::DocNode() : place->second;
  };
  llvm::msgpack::DocNode kernels = child(root.getMap(), "amdhsa.kernels");
  if (kernels.isEmpty() || !kernels.isArray())
    return found;
  for (llvm::msgpack::DocNode &node : kernels.getArray()) {
    if (!node.isMap())
      continue;
    llvm::msgpack::MapDocNode &kernel = node.getMap();
    auto number = [&](llvm::StringRef key) {
      llvm::msgpack::DocNode value = child(kernel, key);
      return !value.isEmpty() && value.getKind() == llvm::msgpack::Type::UInt
                 ? uint32_t(value.getUInt())
                 : 0u;
    };
    llvm::msgpack::DocNode name = child(kernel, ".name");
    if (name.isEmpty() || !name.isString())
      continue;
    DeviceResources &one = found[name.getString().str()];
    one.registers = number(".vgpr_count");
    one.spillBytes = 4 * number(".vgpr_spill_count");
    one.stackBytes = number(".private_segment_fixed_size");
    one.sharedBytes = number(".group_segment_fixed_size");
  }
  return found;
}

Expected<Metadata> codeObjectResources(std::span<const uint8_t> codeObject) {
  llvm::StringRef bytes(reinterpret_cast<const char *>(codeObject.data()), codeObject.size());
  auto file = llvm::object::ELF64LEFile::create(bytes);
  if (!file) {
    llvm::consumeError(file.takeError());
    return badInput("{} bytes are no code object", bytes.size());
  }
  auto headers = file->program_headers();
  if (!headers) {
    llvm::consumeError(headers.takeError());
    return badInput("a code object has broken program headers");
  }
  for (const auto &header : *headers) {
    if (header.p_type != llvm::ELF::PT_NOTE)
      continue;
    llvm::Error error = llvm::Error::success();
    for (const auto &note : file->notes(header, error)) {
      if (note.getType() != llvm::ELF::NT_AMDGPU_METADATA || note.getName() != "AMDGPU")
        continue;
      llvm::msgpack::Document document;
      llvm::consumeError(std::move(error));
      if (!document.readFromBlob(note.getDescAsStringRef(header.p_align), /*Multi=*/false))
        return badInput("the notes of a code object are broken");
      return readMetadata(document);
    }
    llvm::consumeError(std::move(error));
  }
  return badInput("a code object says nothing of its kernels");
}

} // namespace dovetail::codegen
