// SPDX-License-Identifier: Apache-2.0
//
// artifact-reseal FILE OLD NEW: replaces every OLD in an artifact by NEW, which is as long, and
// makes its digests fit again. The tests of the command line make artifacts for other machines so.
#include <cstdio>

#include "artifact/Reseal.h"
#include "support/File.h"

int main(int argc, char **argv) {
  if (argc != 4 || std::strlen(argv[2]) != std::strlen(argv[3]))
    return 2;
  auto bytes = dovetail::readFile(argv[1]);
  if (!bytes)
    return 2;
  std::string old = argv[2], fresh = argv[3];
  size_t count = 0;
  for (size_t at = 0; (at = bytes->find(old, at)) != std::string::npos; at += old.size(), ++count)
    bytes->replace(at, old.size(), fresh);
  dovetail::reseal(*bytes);
  if (count == 0 || !dovetail::writeFile(argv[1], *bytes)) {
    std::fprintf(stderr, "artifact-reseal: '%s' does not occur, or %s cannot be written\n", argv[2],
                 argv[1]);
    return 1;
  }
  return 0;
}
