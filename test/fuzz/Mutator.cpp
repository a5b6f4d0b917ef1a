// SPDX-License-Identifier: Apache-2.0
//
// Hands the target's mutations to libFuzzer, in turns with its own.
#include <algorithm>
#include <cstring>

#include "fuzz/FuzzTarget.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t mostBytes);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t mostBytes,
                                          unsigned seed) {
  dovetail::fuzz::Random random(seed);
  if (random() % 2)
    size = LLVMFuzzerMutate(data, size, mostBytes);
  std::string bytes(reinterpret_cast<const char *>(data), size);
  dovetail::fuzz::mutate(bytes, random);
  size = std::min(bytes.size(), mostBytes);
  std::memcpy(data, bytes.data(), size);
  return size;
}
