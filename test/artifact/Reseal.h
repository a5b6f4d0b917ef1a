// SPDX-License-Identifier: Apache-2.0
//
// Makes the digests of altered artifacts fit again, so that tests get past them to the checks of
// what the artifact says.
#pragma once

#include <cstring>
#include <string>

#include "artifact/ArtifactFormat.h"
#include "support/Hash.h"

namespace dovetail {

/// Leaves bytes alone that are no artifact, or whose sections lie outside.
inline void reseal(std::string &bytes) {
  ArtifactHeader header;
  if (bytes.size() < sizeof(header))
    return;
  std::memcpy(&header, bytes.data(), sizeof(header));
  for (const ArtifactSection &section : header.sections)
    if (section.offset > bytes.size() || section.bytes > bytes.size() - section.offset)
      return;
  Hasher hasher;
  for (SectionKind kind : {TableSection, KernelSection})
    hasher.update(bytes.data() + header.sections[kind].offset, header.sections[kind].bytes);
  header.planDigest = hasher.digest();
  const ArtifactSection &measured = header.sections[MeasuredSection];
  header.measuredDigest = digestOf(bytes.data() + measured.offset, measured.bytes);
  header.headerDigest = digestOf(&header, offsetof(ArtifactHeader, headerDigest));
  std::memcpy(bytes.data(), &header, sizeof(header));
}

} // namespace dovetail
