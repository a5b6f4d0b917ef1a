# SPDX-License-Identifier: Apache-2.0
#
# Writes a header with one constant, a digest of many sources:
#     cmake -DSOURCES=LISTFILE -DOUTPUT=HEADER -DNAME=kName -P Fingerprint.cmake
# LISTFILE names the sources, one a line, relative to it or absolute. The digest depends on their
# contents and order alone, so that it is the same in every checkout.
file(STRINGS "${SOURCES}" paths)
set(digests "")
foreach(path IN LISTS paths)
  file(SHA256 "${path}" digest)
  string(APPEND digests "${digest}\n")
endforeach()
string(SHA256 digest "${digests}")
string(SUBSTRING "${digest}" 0 12 digest)
file(WRITE "${OUTPUT}" "// SPDX-License-Identifier: Apache-2.0
//
// Digest of the sources that kernels are made by; generated.
#pragma once

namespace dovetail {
inline constexpr char ${NAME}[] = \"${digest}\";
} // namespace dovetail
")
