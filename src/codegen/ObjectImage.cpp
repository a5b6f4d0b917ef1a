// SPDX-License-Identifier: Apache-2.0
//
// A linker for the one case that kernels need: one x86-64 ELF object without undefined symbols. It
// does in memory, in a fraction of a millisecond and for any number of threads at once, what a
// general linker does through files.
#include "codegen/ObjectImage.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"

namespace dovetail::codegen {

using namespace llvm;
using object::ELF64LEObjectFile;

namespace {

class ObjectLinker {
public:
  explicit ObjectLinker(const ELF64LEObjectFile &object) : object(object) {}

  Expected<ObjectImage> link() {
    if (Status status = place(); !status)
      return status.takeError();
    for (const object::SectionRef &section : object.sections())
      if (Status status = relocate(section); !status)
        return status.takeError();
    for (const object::ELFSymbolRef symbol : object.symbols())
      if (symbol.getBinding() == ELF::STB_GLOBAL && symbol.getELFType() == ELF::STT_FUNC)
        if (auto offset = offsetOf(symbol))
          image.functions[cantFail(symbol.getName()).str()] = *offset;
    return std::move(image);
  }

private:
  /// Copies the sections that are loaded into the image, each at its alignment.
  Status place() {
    for (const object::SectionRef &section : object.sections()) {
      uint64_t flags = object::ELFSectionRef(section).getFlags();
      if (!(flags & ELF::SHF_ALLOC) || section.getSize() == 0 ||
          object::ELFSectionRef(section).getType() == ELF::SHT_X86_64_UNWIND)
        continue;
      StringRef name = cantFail(section.getName());
      if (name.starts_with(".eh_frame"))
        continue;
      if (flags & ELF::SHF_WRITE)
        return internalError("a kernel has writable data in section {}", name.str());
      image.code.resize(alignTo(image.code.size(), section.getAlignment()));
      starts[section.getIndex()] = image.code.size();
      StringRef contents = cantFail(section.getContents());
      image.code.insert(image.code.end(), contents.begin(), contents.end());
    }
    return Status::success();
  }

  std::optional<uint32_t> offsetOf(const object::SymbolRef &symbol) {
    auto section = cantFail(symbol.getSection());
    if (section == object.section_end())
      return std::nullopt;
    auto start = starts.find(section->getIndex());
    if (start == starts.end())
      return std::nullopt;
    return start->second + cantFail(symbol.getValue());
  }

  Status relocate(const object::SectionRef &relocations) {
    auto target = cantFail(relocations.getRelocatedSection());
    if (target == object.section_end() || !starts.count(target->getIndex()))
      return Status::success();
    for (const object::ELFRelocationRef relocation : relocations.relocations()) {
      auto symbol = relocation.getSymbol();
      std::optional<uint32_t> value =
          symbol == object.symbol_end() ? std::nullopt : offsetOf(*symbol);
      if (!value)
        return internalError("a kernel refers to symbol '{}', which it does not have",
                             symbol == object.symbol_end() ? ""
                                                           : cantFail(symbol->getName()).str());
      uint64_t place = starts[target->getIndex()] + relocation.getOffset();
      int64_t distance = int64_t(*value) + cantFail(relocation.getAddend()) - int64_t(place);
      switch (relocation.getType()) {
      case ELF::R_X86_64_PC32:
      case ELF::R_X86_64_PLT32:
        support::endian::write32le(&image.code[place], uint32_t(distance));
        break;
      case ELF::R_X86_64_PC64:
        support::endian::write64le(&image.code[place], uint64_t(distance));
        break;
      default:
        return internalError(
            "a kernel has a relocation of kind {}, which depends on the load address",
            relocation.getType());
      }
    }
    return Status::success();
  }

  const ELF64LEObjectFile &object;
  ObjectImage image;
  std::map<uint64_t, uint32_t> starts; ///< section index -> offset in the code
};

} // namespace

Expected<ObjectImage> linkObject(ArrayRef<char> bytes) {
  MemoryBufferRef buffer(StringRef(bytes.data(), bytes.size()), "kernel");
  auto object = ELF64LEObjectFile::create(buffer);
  if (!object)
    return internalError("a kernel's object file: {}", toString(object.takeError()));
  return ObjectLinker(*object).link();
}

} // namespace dovetail::codegen
