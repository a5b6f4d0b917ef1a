// SPDX-License-Identifier: Apache-2.0
//
// Kernels as bytes: what prepare refuses, that loading is cheap, and that proposals do not depend
// on anything but the problem and the target.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <tuple>

#include <sys/mman.h>

#include <gtest/gtest.h>

#include "NativeCheck.h"
#include "codegen/schedule/KernelAbi.h"

namespace dovetail::test {
namespace {

const char *kProblem = "problem(%0: f32[64], %1: f32[64]) %2: f32[64] = add@14(%0, %1) return(%2)";

struct Fixture {
  Problem problem = *Problem::parse(kProblem);
  Target target = Target::host(2);
  const Provider &native = *plugins().find("native");
  Candidate candidate = native.propose(target, problem).candidates.at(0);
  std::vector<uint8_t> bytes = *native.compile(target, problem, candidate);

  dvt_code prepare(const std::vector<uint8_t> &kernel, const Candidate &wanted, dvt_kernel **loaded,
                   dvt_error &error) {
    return prepare(kernel.data(), kernel.size(), false, wanted, loaded, error);
  }
  dvt_code prepare(const uint8_t *kernel, size_t kernelBytes, bool executable,
                   const Candidate &wanted, dvt_kernel **loaded, dvt_error &error) {
    ProblemView view(problem);
    std::vector<const char *> storage;
    dvt_candidate wantedView = wanted.view(storage);
    dvt_target targetView = target.view();
    const void *constants[] = {nullptr, nullptr};
    dvt_prepare_args args{};
    args.struct_size = sizeof(args);
    args.constants = constants;
    args.kernel = kernel;
    args.kernel_bytes = kernelBytes;
    args.kernel_is_executable = executable;
    args.threads = 2;
    return native.functions().prepare(native.handle(), &targetView, view, &wantedView, &args,
                                      loaded, &error);
  }
};

TEST(Kernel, DamagedBytesAreRefused) {
  Fixture fixture;
  for (size_t at = 0; at < fixture.bytes.size(); at += 7) {
    std::vector<uint8_t> damaged = fixture.bytes;
    damaged[at] ^= 0x40;
    dvt_kernel *kernel = nullptr;
    dvt_error error{};
    dvt_code code = fixture.prepare(damaged, fixture.candidate, &kernel, error);
    EXPECT_EQ(code, DVT_BAD_INPUT) << at;
    EXPECT_NE(std::strlen(error.message), 0u);
  }
  for (size_t size : {size_t(0), size_t(10), fixture.bytes.size() / 2}) {
    dvt_kernel *kernel = nullptr;
    dvt_error error{};
    EXPECT_EQ(fixture.prepare({fixture.bytes.begin(), fixture.bytes.begin() + size},
                              fixture.candidate, &kernel, error),
              DVT_BAD_INPUT);
  }
}

TEST(Kernel, UnknownCandidatesAreRefused) {
  Fixture fixture;
  Candidate other = fixture.candidate;
  other.algorithm = "pointwise:unheard";
  dvt_kernel *kernel = nullptr;
  dvt_error error{};
  EXPECT_EQ(fixture.prepare(fixture.bytes, other, &kernel, error), DVT_UNSUPPORTED);
  EXPECT_FALSE(bool(fixture.native.compile(fixture.target, fixture.problem, other)));
}

TEST(Kernel, TensorsAreChecked) {
  Fixture fixture;
  dvt_kernel *kernel = nullptr;
  dvt_error error{};
  ASSERT_EQ(fixture.prepare(fixture.bytes, fixture.candidate, &kernel, error), DVT_OK)
      << error.message;
  alignas(64) float memory[3][64] = {};
  int64_t right = 64, wrong = 65;
  dvt_tensor inputs[2] = {{memory[0], &right, nullptr, 1, DVT_F32, DVT_MEMORY_HOST},
                          {memory[1], &wrong, nullptr, 1, DVT_F32, DVT_MEMORY_HOST}};
  dvt_tensor output = {memory[2], &right, nullptr, 1, DVT_F32, DVT_MEMORY_HOST};
  dvt_run_args args{};
  args.struct_size = sizeof(args);
  args.input_count = 2;
  args.output_count = 1;
  args.inputs = inputs;
  args.outputs = &output;
  EXPECT_EQ(fixture.native.functions().run(kernel, &args, &error), DVT_BAD_INPUT);
  inputs[1].extents = &right;
  EXPECT_EQ(fixture.native.functions().run(kernel, &args, &error), DVT_OK);
  fixture.native.functions().destroy_kernel(kernel);
}

/// Pages of code that belong to no file.
size_t anonymousCode() {
  std::ifstream maps("/proc/self/maps");
  size_t pages = 0;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    if (line.find(" r-xp 00000000 00:00 0") != std::string::npos && line.back() != ']' &&
        std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2)
      pages += (end - begin) / 4096;
  }
  return pages;
}

// Where the host lets kernels be executed, code runs where it is; else, or where it is not aligned,
// in a copy.
TEST(Kernel, CodeInExecutableMemoryIsNotCopied) {
  Fixture fixture;
  const size_t room = fixture.bytes.size() + 8;
  for (auto [offset, executable, copies] :
       {std::tuple{0, true, 0u}, std::tuple{0, false, 1u}, std::tuple{8, true, 1u}}) {
    void *memory =
        ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    uint8_t *kernelBytes = static_cast<uint8_t *>(memory) + offset;
    std::memcpy(kernelBytes, fixture.bytes.data(), fixture.bytes.size());
    ASSERT_EQ(::mprotect(memory, room, PROT_READ | PROT_EXEC), 0);
    const size_t before = anonymousCode();
    dvt_kernel *kernel = nullptr;
    dvt_error error{};
    ASSERT_EQ(fixture.prepare(kernelBytes, fixture.bytes.size(), executable, fixture.candidate,
                              &kernel, error),
              DVT_OK)
        << error.message;
    EXPECT_EQ(anonymousCode() > before, copies > 0);
    alignas(64) float memories[3][64] = {};
    std::fill_n(memories[0], 128, 2.5f);
    int64_t extent = 64;
    dvt_tensor inputs[2] = {{memories[0], &extent, nullptr, 1, DVT_F32, DVT_MEMORY_HOST},
                            {memories[1], &extent, nullptr, 1, DVT_F32, DVT_MEMORY_HOST}};
    dvt_tensor output = {memories[2], &extent, nullptr, 1, DVT_F32, DVT_MEMORY_HOST};
    dvt_run_args args{};
    args.struct_size = sizeof(args);
    args.input_count = 2;
    args.output_count = 1;
    args.inputs = inputs;
    args.outputs = &output;
    EXPECT_EQ(fixture.native.functions().run(kernel, &args, &error), DVT_OK) << error.message;
    EXPECT_EQ(memories[2][63], 5.0f);
    fixture.native.functions().destroy_kernel(kernel);
    EXPECT_EQ(anonymousCode(), before);
    ::munmap(memory, room);
  }
}

TEST(Kernel, SameBytesEveryTime) {
  Fixture fixture;
  EXPECT_EQ(*fixture.native.compile(fixture.target, fixture.problem, fixture.candidate),
            fixture.bytes);
}

// In a plug-in, too, emission must see that constants are constant: kernels of static extents count
// their tasks at compile time, and copies are vector moves instead of gathers.
TEST(Kernel, StaticExtentsAreKnownInThePlugIn) {
  Fixture fixture;
  codegen::ImageHeader header;
  codegen::ImagePhase phase;
  std::memcpy(&header, fixture.bytes.data(), sizeof(header));
  ASSERT_EQ(header.phaseCount, 1u);
  std::memcpy(&phase, fixture.bytes.data() + sizeof(header), sizeof(phase));
  EXPECT_EQ(phase.count, codegen::kNoOffset);
  EXPECT_GT(phase.staticCount, 0);
}

TEST(Kernel, LoadingManyIsCheap) {
  Fixture fixture;
  std::vector<dvt_kernel *> kernels(200);
  auto start = std::chrono::steady_clock::now();
  for (dvt_kernel *&kernel : kernels) {
    dvt_error error{};
    ASSERT_EQ(fixture.prepare(fixture.bytes, fixture.candidate, &kernel, error), DVT_OK);
  }
  double millis =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  for (dvt_kernel *kernel : kernels)
    fixture.native.functions().destroy_kernel(kernel);
  RecordProperty("millis", std::to_string(millis));
  EXPECT_LT(millis, 500) << "200 kernels; a few milliseconds on an idle machine";
}

} // namespace
} // namespace dovetail::test
