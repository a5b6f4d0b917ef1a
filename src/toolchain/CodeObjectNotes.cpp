// SPDX-License-Identifier: Apache-2.0
//
// The notes are MessagePack. Code objects of users' kernels come from tools of others, so every
// length is checked.
#include "toolchain/CodeObjectNotes.h"

#include <cstring>

#include <elf.h>
#include <nlohmann/json.hpp>

namespace dovetail::toolchain {

namespace {

using Bytes = std::span<const uint8_t>;
using Metadata = std::map<std::string, DeviceResources>;

constexpr uint32_t kMetadataNote = 32; ///< NT_AMDGPU_METADATA

/// `count` bytes from `offset` on; empty where they are not all there.
Bytes part(Bytes bytes, uint64_t offset, uint64_t count) {
  return offset <= bytes.size() && count <= bytes.size() - offset ? bytes.subspan(offset, count)
                                                                  : Bytes();
}

template <typename T> bool read(Bytes bytes, uint64_t offset, T &into) {
  Bytes from = part(bytes, offset, sizeof(T));
  if (from.empty())
    return false;
  std::memcpy(&into, from.data(), sizeof(T));
  return true;
}

/// What the note of the kernels' metadata describes, in a segment of notes.
Bytes findMetadata(Bytes notes) {
  uint64_t at = 0;
  Elf64_Nhdr header;
  while (read(notes, at, header)) {
    auto aligned = [](uint64_t bytes) { return (bytes + 3) / 4 * 4; };
    const uint64_t name = at + sizeof(header), text = name + aligned(header.n_namesz);
    Bytes owner = part(notes, name, header.n_namesz);
    if (header.n_type == kMetadataNote && owner.size() == 7 &&
        std::memcmp(owner.data(), "AMDGPU", 7) == 0)
      return part(notes, text, header.n_descsz);
    at = text + aligned(header.n_descsz);
  }
  return {};
}

Metadata readMetadata(const nlohmann::json &root) {
  Metadata found;
  auto kernels = root.find("amdhsa.kernels");
  if (kernels == root.end() || !kernels->is_array())
    return found;
  for (const nlohmann::json &kernel : *kernels) {
    auto number = [&](const char *key) {
      auto value = kernel.find(key);
      return value != kernel.end() && value->is_number_unsigned() ? value->get<uint32_t>() : 0u;
    };
    if (!kernel.is_object() || !kernel.contains(".name") || !kernel[".name"].is_string())
      continue;
    DeviceResources &one = found[kernel[".name"].get<std::string>()];
    one.registers = number(".vgpr_count");
    one.spillBytes = 4 * number(".vgpr_spill_count");
    one.stackBytes = number(".private_segment_fixed_size");
    one.sharedBytes = number(".group_segment_fixed_size");
  }
  return found;
}

} // namespace

Expected<Metadata> codeObjectResources(Bytes codeObject) {
  Elf64_Ehdr header;
  if (!read(codeObject, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
    return badInput("{} bytes are no code object", codeObject.size());
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read(codeObject, header.e_phoff + i * sizeof(segment), segment))
      return badInput("a code object has broken program headers");
    if (segment.p_type != PT_NOTE)
      continue;
    Bytes text = findMetadata(part(codeObject, segment.p_offset, segment.p_filesz));
    if (text.empty())
      continue;
    auto root = nlohmann::json::from_msgpack(text.begin(), text.end(), /*strict=*/true,
                                             /*allow_exceptions=*/false);
    if (!root.is_object())
      return badInput("the notes of a code object are broken");
    return readMetadata(root);
  }
  return badInput("a code object says nothing of its kernels");
}

} // namespace dovetail::toolchain
