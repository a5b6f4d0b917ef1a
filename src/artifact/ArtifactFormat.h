// SPDX-License-Identifier: Apache-2.0
//
// The first bytes of an artifact: little-endian, at offset 0, followed by the sections it names.
// Changes of any struct here, or of the meaning of the table, need a new kFormatVersion.
#pragma once

#include <array>
#include <cstdint>

#include "support/Hash.h"

namespace dovetail {

constexpr std::array<char, 8> kArtifactMagic{'D', 'O', 'V', 'E', 'T', 'A', 'I', 'L'};
constexpr uint32_t kFormatVersion = 4;
constexpr uint64_t kSectionAlignment = 4096;

enum SectionKind : uint32_t {
  KernelSection = 0,
  WeightSection,
  TableSection,
  MeasuredSection,
  SectionCount
};

struct ArtifactSection {
  uint64_t offset, bytes;
};

struct ArtifactHeader {
  std::array<char, 8> magic;
  uint32_t formatVersion;
  uint32_t sectionCount;
  uint64_t fileBytes;
  ArtifactSection sections[SectionCount]; ///< by kind; bytes 0 where dropped
  Digest planDigest;                      ///< of the table section followed by the kernel section
  Digest measuredDigest;
  Digest headerDigest; ///< of all bytes before it
};
static_assert(sizeof(ArtifactHeader) == 24 + 16 * SectionCount + 48);

} // namespace dovetail
