// SPDX-License-Identifier: Apache-2.0
//
// A fuzz target: libFuzzer's entry points, and what Driver.cpp needs to do without libFuzzer. A
// target links either; both use the same seeds and mutations.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace dovetail::fuzz {

using Random = std::mt19937_64;

/// Valid inputs to begin with.
std::vector<std::string> seeds();
/// Damages an input as this kind of file may be damaged. The same state of `random` gives the same.
void mutate(std::string &bytes, Random &random);
/// How many inputs were read with success so far.
uint64_t accepted();

/// Ends the process where a promise is broken, as libFuzzer wants it.
inline void require(bool holds, const char *otherwise) {
  if (holds)
    return;
  std::fprintf(stderr, "broken promise: %s\n", otherwise);
  std::abort();
}

} // namespace dovetail::fuzz

/// Reads one input. Aborts or crashes where the reader does anything but accept or refuse it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
