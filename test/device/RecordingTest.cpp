// SPDX-License-Identifier: Apache-2.0
//
// While one thread records, others work on; and what was recorded is given back by the call that is
// for it.
#include <thread>

#include <dlfcn.h>
#include <gmock/gmock.h>

#include "SimulatedDriver.h"

using namespace dovetail;
using namespace dovetail::device;

namespace {

class Recording : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    device = openSimulated(GetParam());
    ASSERT_NE(device, nullptr);
    auto made = device->createStream();
    ASSERT_TRUE(made) << made.error().message;
    stream = std::move(*made);
  }
  /// The driver's function of that name for the device's kind, with a handle for its argument.
  int call(const char *ofCuda, const char *ofHip, void *handle) {
    void *library = ::dlopen(simulatedPath(GetParam()).c_str(), RTLD_NOW | RTLD_LOCAL);
    auto *function =
        reinterpret_cast<int (*)(void *)>(::dlsym(library, GetParam() == "cuda" ? ofCuda : ofHip));
    return function ? function(handle) : -1;
  }

  std::shared_ptr<Device> device;
  std::unique_ptr<Stream> stream;
};

TEST_P(Recording, OtherThreadsWorkOn) {
  auto memory = device->allocate(400);
  ASSERT_TRUE(memory);
  ASSERT_TRUE(device->driver().beginCapture(stream->handle()));
  Status allocated, ended;
  std::thread([&] {
    allocated = device->makeCurrent();
    if (allocated) {
      auto address = device->driver().allocate(1 << 20);
      allocated = address ? device->driver().free(*address) : Status(address.error());
    }
    auto graph = device->endCapture(*stream);
    ended = graph ? Status::success() : Status(graph.error());
  }).join();
  EXPECT_TRUE(allocated) << allocated.error().message;
  ASSERT_FALSE(ended) << "who began to record ends it";
  EXPECT_THAT(ended.error().message, testing::HasSubstr("another thread began to record"));
  ASSERT_TRUE(device->driver().fill(memory->address(), 0, 400, stream->handle()));
  auto graph = device->endCapture(*stream);
  EXPECT_TRUE(graph) << graph.error().message;
}

TEST_P(Recording, IsGivenBackByTheCallForIt) {
  ASSERT_TRUE(device->driver().beginCapture(stream->handle()));
  auto graph = device->endCapture(*stream);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_GT(call("cuGraphDestroy", "hipGraphDestroy", (*graph)->handle()), 0);
  EXPECT_EQ(simulatedCount(GetParam(), "graphs"), 1u);
  *graph = nullptr;
  EXPECT_EQ(simulatedCount(GetParam(), "graphs"), 0u);
}

INSTANTIATE_TEST_SUITE_P(, Recording, testing::Values("cuda", "rocm"),
                         [](const auto &info) { return info.param; });

} // namespace
