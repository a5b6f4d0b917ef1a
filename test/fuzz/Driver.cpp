// SPDX-License-Identifier: Apache-2.0
//
// Runs a fuzz target without libFuzzer:
//     fuzz-NAME ROUNDS [SEED]     the seeds, then as many mutations of them, always the same ones
//     fuzz-NAME FILE...           these inputs, to reproduce what was found
//     fuzz-NAME --seeds FOLDER    writes the seeds as a corpus for libFuzzer
// A crash leaves the input that led to it in ./crash-input.
#include <charconv>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "fuzz/FuzzTarget.h"
#include "support/File.h"

using namespace dovetail;

namespace {

const std::string *current = nullptr;

void keepInput(int signal) {
  int file = current ? ::open("crash-input", O_WRONLY | O_CREAT | O_TRUNC, 0644) : -1;
  if (file >= 0) {
    ssize_t ignored = ::write(file, current->data(), current->size());
    (void)ignored;
    ::close(file);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void runOne(const std::string &bytes) {
  current = &bytes;
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
  current = nullptr;
}

int runRounds(uint64_t rounds, uint64_t seed) {
  std::vector<std::string> seeds = fuzz::seeds();
  for (const std::string &bytes : seeds)
    runOne(bytes);
  fuzz::require(fuzz::accepted() == seeds.size(), "a seed was refused");
  fuzz::Random random(seed);
  for (uint64_t round = 0; round < rounds; ++round) {
    std::string bytes = seeds[random() % seeds.size()];
    fuzz::mutate(bytes, random);
    runOne(bytes);
  }
  uint64_t accepted = fuzz::accepted() - seeds.size();
  std::printf("%llu of %llu damaged inputs were accepted\n",
              static_cast<unsigned long long>(accepted), static_cast<unsigned long long>(rounds));
  // Some damage is harmless. If nothing came through, only the first check was tested.
  fuzz::require(accepted > rounds / 200, "the mutations are too coarse");
  fuzz::require(accepted < rounds, "the mutations do nothing");
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  for (int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL})
    std::signal(signal, keepInput);
  if (argc == 3 && std::strcmp(argv[1], "--seeds") == 0) {
    unsigned number = 0;
    for (const std::string &bytes : fuzz::seeds())
      if (!writeFile(std::string(argv[2]) + "/seed" + std::to_string(number++), bytes))
        return 1;
    return 0;
  }
  uint64_t rounds = 0;
  const char *end = argc > 1 ? argv[1] + std::strlen(argv[1]) : nullptr;
  if (argc > 1 && std::from_chars(argv[1], end, rounds).ptr == end && rounds > 0)
    return runRounds(rounds, argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  for (int i = 1; i < argc; ++i) {
    auto bytes = readFile(argv[i]);
    if (!bytes) {
      std::fprintf(stderr, "%s\n", bytes.error().message.c_str());
      return 1;
    }
    runOne(*bytes);
  }
  return argc > 1 ? 0 : 1;
}
