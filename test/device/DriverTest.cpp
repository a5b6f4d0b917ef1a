// SPDX-License-Identifier: Apache-2.0
//
// Both drivers over the simulated device: what is right works, and what is wrong is noticed.
#include <cstring>
#include <numeric>
#include <thread>

#include <gmock/gmock.h>

#include "SimulatedDriver.h"
#include "Surroundings.h"
#include "device/DeviceDescription.h"
#include "device/PtxVersion.h"
#include "support/DeviceKernel.h"

using namespace dovetail;
using namespace dovetail::device;
using test::Surroundings;
using testing::HasSubstr;

namespace {

class Driver : public testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    device = openSimulated(GetParam());
    ASSERT_NE(device, nullptr);
    auto made = device->createStream();
    ASSERT_TRUE(made) << made.error().message;
    stream = std::move(*made);
  }
  void TearDown() override {
    stream = nullptr;
    device = nullptr;
  }
  DeviceDriver &driver() { return device->driver(); }
  uint64_t count(const char *what) { return simulatedCount(GetParam(), what); }

  DeviceMemory upload(const std::vector<float> &values) {
    auto memory = device->allocate(values.size() * 4);
    EXPECT_TRUE(memory) << memory.error().message;
    Status status = driver().copyToDevice(memory->address(), values.data(), values.size() * 4,
                                          stream->handle());
    EXPECT_TRUE(status) << status.error().message;
    return std::move(*memory);
  }
  std::vector<float> download(const DeviceMemory &memory) {
    std::vector<float> values(memory.bytes() / 4);
    Status status =
        driver().copyToHost(values.data(), memory.address(), memory.bytes(), stream->handle());
    EXPECT_TRUE(status) << status.error().message;
    EXPECT_TRUE(stream->synchronize());
    return values;
  }
  FunctionHandle kernel(const std::string &name) {
    std::string image = plainKernels();
    auto made = device->loadModule(image.data(), image.size());
    EXPECT_TRUE(made) << made.error().message;
    modules.push_back(std::move(*made));
    auto function = modules.back()->find(name);
    EXPECT_TRUE(function) << function.error().message;
    return *function;
  }
  Status launch(FunctionHandle function, uint32_t blocks, std::vector<uint64_t> values,
                uint32_t threads = 128, uint32_t sharedBytes = 0) {
    std::vector<void *> arguments;
    for (uint64_t &value : values)
      arguments.push_back(&value);
    return driver().launch(function, {{blocks, 1, 1}, {threads, 1, 1}, sharedBytes},
                           arguments.data(), stream->handle());
  }
  /// Noticed at once or when its result is waited for; the device is as new afterwards.
  void expectFailure(Status status, const std::string &says) {
    if (status)
      status = stream->synchronize();
    ASSERT_FALSE(status) << says;
    EXPECT_EQ(status.error().kind, ErrorKind::Unavailable);
    EXPECT_THAT(status.error().message, HasSubstr(says));
  }

  std::shared_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  std::vector<std::unique_ptr<Module>> modules;
};

std::vector<float> ramp(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.f);
  return values;
}

std::vector<float> floatsAt(const void *memory, size_t count) {
  std::vector<float> values(count);
  std::memcpy(values.data(), memory, count * sizeof(float));
  return values;
}

TEST_P(Driver, SaysWhatItIs) {
  EXPECT_TRUE(driver().isSimulated());
  EXPECT_THAT(driver().path(), HasSubstr("-sim.so"));
  EXPECT_NE(driver().version(), "unknown");
  EXPECT_EQ(*driver().count(), 1u);
  const std::string expected = GetParam() == "cuda" ? "sm_90" : "gfx942";
  EXPECT_EQ(*driver().architecture(0), expected);
  auto like = findDescription(GetParam() + ":" + expected,
                              {DOVETAIL_SOURCE_DIR "/src/device/descriptions"});
  ASSERT_TRUE(like) << like.error().message;
  auto read = driver().describe(0, *like);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->computeUnits, 4u);
  EXPECT_EQ(read->clockMegahertz, 1000);
  EXPECT_EQ(read->memoryGigabytesPerSecond, GetParam() == "cuda" ? 64 : 128);
  EXPECT_EQ(read->warpSize, like->warpSize);
  EXPECT_NEAR(read->peak("f32"),
              like->peak("f32") * 4 * 1000 / (like->computeUnits * like->clockMegahertz), 1e-9);
  EXPECT_THAT(read->source, HasSubstr(like->name));
  EXPECT_TRUE(DeviceDescription::parse(read->text(), "again"));
}

TEST_P(Driver, CopiesAndLaunches) {
  std::vector<float> values = ramp(1000);
  DeviceMemory a = upload(values), b = upload(values), sum = upload(std::vector<float>(1000));
  Status status = launch(kernel("add"), 8, {a.address(), b.address(), sum.address(), 1000});
  ASSERT_TRUE(status) << status.error().message;
  std::vector<float> result = download(sum);
  for (size_t i = 0; i < result.size(); ++i)
    ASSERT_EQ(result[i], 2 * values[i]) << i;
  ASSERT_TRUE(driver().copyOnDevice(b.address(), sum.address(), 4000, stream->handle()));
  EXPECT_EQ(download(b), result);
  ASSERT_TRUE(driver().fill(b.address(), 0, 4000, stream->handle()));
  EXPECT_EQ(download(b), std::vector<float>(1000));
}

TEST_P(Driver, ThreadsOfABlockWaitForEachOther) {
  std::vector<float> values = ramp(512);
  DeviceMemory in = upload(values), out = upload(std::vector<float>(512));
  ASSERT_TRUE(launch(kernel("reverse"), 4, {in.address(), out.address()}, 128, 512));
  std::vector<float> result = download(out);
  for (size_t i = 0; i < 512; ++i)
    ASSERT_EQ(result[i], values[i / 128 * 128 + 127 - i % 128]) << i;
}

TEST_P(Driver, EventsOrderStreams) {
  auto other = device->createStream();
  auto event = device->createEvent(true), last = device->createEvent(true);
  ASSERT_TRUE(other && event && last);
  auto pinned = device->allocatePinned(4000);
  ASSERT_TRUE(pinned);
  DeviceMemory memory = upload(ramp(1000));
  ASSERT_TRUE(driver().record((*event)->handle(), stream->handle()));
  ASSERT_TRUE(driver().wait((*other)->handle(), (*event)->handle()));
  ASSERT_TRUE(driver().copyToHost(pinned->data(), memory.address(), 4000, (*other)->handle()));
  ASSERT_TRUE(driver().record((*last)->handle(), (*other)->handle()));
  EXPECT_FALSE(driver().microsBetween((*event)->handle(), (*last)->handle()));
  ASSERT_TRUE(driver().synchronize((*last)->handle()));
  EXPECT_EQ(floatsAt(pinned->data(), 1000), ramp(1000));
  auto micros = driver().microsBetween((*event)->handle(), (*last)->handle());
  ASSERT_TRUE(micros) << micros.error().message;
  EXPECT_GT(*micros, 0);
}

TEST_P(Driver, WorkIsRecorded) {
  ASSERT_TRUE(driver().hasGraphs());
  DeviceMemory a = upload(ramp(100)), b = upload(ramp(100)), sum = upload(std::vector<float>(100));
  ASSERT_TRUE(driver().beginCapture(stream->handle()));
  ASSERT_TRUE(launch(kernel("add"), 1, {a.address(), b.address(), sum.address(), 100}, 128));
  ASSERT_TRUE(launch(kernel("add"), 1, {sum.address(), b.address(), sum.address(), 100}, 128));
  auto graph = device->endCapture(*stream);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(download(sum), std::vector<float>(100)) << "it is not done yet";
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(driver().launchGraph((*graph)->handle(), stream->handle()));
  std::vector<float> wanted = ramp(100);
  for (float &x : wanted)
    x *= 3;
  EXPECT_EQ(download(sum), wanted);
}

TEST_P(Driver, WhatCannotBeRecordedIsNoticed) {
  DeviceMemory memory = upload(ramp(100));
  auto spoils = [&](auto call, const char *says) {
    ASSERT_TRUE(driver().beginCapture(stream->handle()));
    Status status = call();
    expectFailure(std::move(status), says);
    auto graph = device->endCapture(*stream);
    ASSERT_FALSE(graph);
    EXPECT_THAT(graph.error().message, testing::HasSubstr("cannot be recorded"));
  };
  float data[100];
  spoils([&] { return stream->synchronize(); }, "waiting for a stream");
  spoils([&] { return driver().copyToHost(data, memory.address(), 400, stream->handle()); },
         "a copy to the host");
  spoils(
      [&]() -> Status {
        auto more = device->allocate(1 << 22);
        return more ? Status::success() : Status(more.error());
      },
      "an allocation");
  EXPECT_EQ(download(memory), ramp(100)) << "the stream works again";
  expectFailure(driver().launchGraph(nullptr, stream->handle()), "there is no recorded work");
}

TEST_P(Driver, WhatWasNotWaitedForIsNotThere) {
  auto pinned = device->allocatePinned(4000);
  ASSERT_TRUE(pinned);
  DeviceMemory memory = upload(ramp(1000));
  std::memset(pinned->data(), 0, 4000);
  ASSERT_TRUE(driver().copyToHost(pinned->data(), memory.address(), 4000, stream->handle()));
  EXPECT_NE(floatsAt(pinned->data(), 1000), ramp(1000));
  Status freed = driver().freePinned(pinned->data());
  ASSERT_FALSE(freed);
  EXPECT_THAT(freed.error().message, HasSubstr("were not waited for"));
  ASSERT_TRUE(stream->synchronize());
  EXPECT_EQ(floatsAt(pinned->data(), 1000), ramp(1000));
}

TEST_P(Driver, MemoryIsUsedAgain) {
  uint64_t before = count("allocations");
  DeviceAddress first = 0;
  for (int i = 0; i < 5; ++i) {
    auto memory = device->allocate(100000 + i);
    ASSERT_TRUE(memory);
    EXPECT_EQ(memory->address() % 256, 0u);
    EXPECT_TRUE(first == 0 || first == memory->address());
    first = memory->address();
  }
  EXPECT_EQ(count("allocations"), before + 1);
  EXPECT_GE(device->pooledBytes(), 100000u);
  auto large = device->allocate(uint64_t(3) << 30);
  ASSERT_TRUE(large) << large.error().message;
  auto tooMuch = device->allocate(uint64_t(3) << 30);
  ASSERT_FALSE(tooMuch);
  EXPECT_THAT(tooMuch.error().message, HasSubstr("bytes are wanted"));
  EXPECT_EQ(device->pooledBytes(), 0u) << "what waited was given back first";
}

TEST_P(Driver, MemoryComesInTheOrderOfAStream) {
  ASSERT_TRUE(driver().hasPools(0));
  uint64_t pools = count("pool allocations"), blocks = count("blocks");
  std::shared_ptr<Stream> owner(std::move(*device->createStream()));
  {
    auto memory = device->allocate(400, owner);
    ASSERT_TRUE(memory) << memory.error().message;
    EXPECT_EQ(memory->address() % 256, 0u);
    std::vector<float> values = ramp(100), result(100);
    ASSERT_TRUE(driver().copyToDevice(memory->address(), values.data(), 400, owner->handle()));
    ASSERT_TRUE(driver().copyToHost(result.data(), memory->address(), 400, owner->handle()));
    EXPECT_EQ(result, values);
    ASSERT_TRUE(driver().fill(memory->address(), 0, 400, owner->handle()));
  }
  EXPECT_EQ(count("blocks"), blocks + 1) << "the stream has not come to it";
  ASSERT_TRUE(owner->synchronize());
  EXPECT_EQ(count("blocks"), blocks);
  EXPECT_EQ(count("pool allocations"), pools + 1);
  auto tooMuch = device->allocate(uint64_t(5) << 30, owner);
  ASSERT_FALSE(tooMuch);
  EXPECT_THAT(tooMuch.error().message, HasSubstr("bytes are wanted"));
}

TEST_P(Driver, WithoutPoolsStreamsAreWaitedFor) {
  const Surroundings none("DOVETAIL_SIMULATED_NO_POOLS", "1");
  EXPECT_FALSE(driver().hasPools(0));
  std::shared_ptr<Device> plain = openSimulated(GetParam());
  ASSERT_NE(plain, nullptr);
  std::shared_ptr<Stream> owner(std::move(*plain->createStream()));
  uint64_t before = count("pool allocations"), waits = count("synchronisations");
  {
    auto memory = plain->allocate(400, owner);
    ASSERT_TRUE(memory) << memory.error().message;
    ASSERT_TRUE(driver().fill(memory->address(), 0, 400, owner->handle()));
  }
  EXPECT_EQ(count("synchronisations"), waits + 1);
  EXPECT_EQ(count("pool allocations"), before);
  EXPECT_EQ(plain->pooledBytes(), 512u);
}

TEST_P(Driver, WrongUseOfPoolsIsNoticed) {
  auto pool = driver().createPool(0);
  ASSERT_TRUE(pool) << pool.error().message;
  auto memory = driver().allocate(400, *pool, stream->handle());
  ASSERT_TRUE(memory) << memory.error().message;
  Status early = driver().destroyPool(*pool);
  ASSERT_FALSE(early);
  EXPECT_THAT(early.error().message, HasSubstr("1 blocks of the pool were not freed"));
  Status plain = driver().free(*memory);
  ASSERT_FALSE(plain);
  EXPECT_THAT(plain.error().message, HasSubstr("goes back in a stream's order"));
  ASSERT_TRUE(driver().free(*memory, stream->handle()));
  Status again = driver().free(*memory, stream->handle());
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("was freed before"));
  EXPECT_TRUE(driver().destroyPool(*pool));
  EXPECT_FALSE(driver().destroyPool(*pool));
}

TEST_P(Driver, WrongUseOfPinnedMemoryIsNoticed) {
  DeviceMemory memory = upload(ramp(2000));
  auto pinned = device->allocatePinned(4096);
  ASSERT_TRUE(pinned);
  expectFailure(
      driver().copyToHost(pinned->data() + 2048, memory.address(), 4096, stream->handle()),
      "leave a block of 4096 that is pinned");
  const Surroundings few("DOVETAIL_SIMULATED_PINNED_BYTES", "8192");
  auto fits = device->allocatePinned(4096);
  EXPECT_TRUE(fits);
  auto more = device->allocatePinned(1);
  ASSERT_FALSE(more);
  EXPECT_THAT(more.error().message, HasSubstr("8192 of 8192 are in use"));
}

TEST_P(Driver, NothingIsLeft) {
  { // all that a device has made
    DeviceMemory memory = upload(ramp(10));
    (void)kernel("add");
    modules.clear();
    auto event = device->createEvent(false);
    auto pinned = device->allocatePinned(10);
    ASSERT_TRUE(event && pinned);
  }
  device->trim();
  EXPECT_EQ(count("blocks"), 0u);
  EXPECT_EQ(count("events"), 0u);
  EXPECT_EQ(count("live modules"), 0u);
  EXPECT_EQ(count("streams"), 1u);
}

TEST_P(Driver, OtherThreadsMakeItCurrentFirst) {
  Status without, with;
  std::thread([&] {
    without = driver().synchronize(stream->handle());
    with = device->makeCurrent();
    if (with)
      with = driver().synchronize(stream->handle());
  }).join();
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message, HasSubstr("no device is current"));
  EXPECT_TRUE(with) << with.error().message;
}

TEST_P(Driver, WrongCopiesAreNoticed) {
  DeviceMemory memory = upload(ramp(100));
  std::vector<float> host(1000);
  const uint64_t block = 512; // of the pool
  expectFailure(driver().copyToDevice(memory.address(), host.data(), block + 4, stream->handle()),
                "516 bytes from 0 on leave a block of 512");
  expectFailure(driver().copyToHost(host.data(), memory.address() + 200, 400, stream->handle()),
                "400 bytes from 200 on leave a block of 512");
  expectFailure(driver().copyToHost(nullptr, memory.address(), 4, stream->handle()), "is null");
  expectFailure(driver().copyToDevice(reinterpret_cast<DeviceAddress>(host.data()), host.data(), 4,
                                      stream->handle()),
                "is no device memory");
  expectFailure(driver().copyToHost(reinterpret_cast<void *>(memory.address()), memory.address(), 4,
                                    stream->handle()),
                "the host's memory is the device's");
  expectFailure(driver().copyOnDevice(memory.address() + 4, memory.address(), 8, stream->handle()),
                "overlap");
  expectFailure(driver().fill(memory.address() + 512, 0, 1, stream->handle()), "beside all blocks");
}

TEST_P(Driver, FreedMemoryIsNotUsed) {
  auto address = driver().allocate(400);
  ASSERT_TRUE(address);
  ASSERT_TRUE(driver().free(*address));
  Status again = driver().free(*address);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("may have been freed before"));
  float value = 0;
  expectFailure(driver().copyToHost(&value, *address, 4, stream->handle()), "was freed");
  DeviceMemory other = upload(ramp(100));
  expectFailure(launch(kernel("add"), 1, {*address, other.address(), other.address(), 10}),
                "argument 0");
  expectFailure(launch(modules.empty() ? nullptr : *modules.back()->find("add"), 1,
                       {other.address(), reinterpret_cast<uint64_t>(&value), other.address(), 1}),
                "argument 1");
}

TEST_P(Driver, WrongLaunchesAreNoticed) {
  DeviceMemory memory = upload(ramp(128));
  FunctionHandle add = kernel("add");
  std::vector<uint64_t> values{memory.address(), memory.address(), memory.address(), 128};
  expectFailure(launch(add, 1, values, 1025), "1025 threads in a block of at most 1024");
  expectFailure(launch(add, 0, values), "of at least 1");
  expectFailure(launch(add, 1, values, 0), "of at least 1");
  expectFailure(launch(add, 1, values, 128, 1 << 20), "bytes of shared memory, a block has");
  if (GetParam() == "rocm")
    expectFailure(launch(add, 1 << 25, values), "threads of a grid with 32 bits");
  if (GetParam() == "cuda") {
    expectFailure(launch(add, 1, values, 128, 100 << 10), "not allowed to the function");
    ASSERT_TRUE(driver().allowSharedBytes(add, 100 << 10));
    EXPECT_TRUE(launch(add, 1, values, 128, 100 << 10));
  }
  auto missing = modules.back()->find("subtract");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("no function 'subtract'"));
  modules.clear();
  expectFailure(launch(add, 1, values), "may have been unloaded");
  auto garbage = device->loadModule("garbage", 8);
  ASSERT_FALSE(garbage);
  EXPECT_THAT(garbage.error().message, HasSubstr("not an image of kernels for this processor"));
}

TEST_P(Driver, HandlesThatAreGone) {
  auto made = driver().createStream();
  ASSERT_TRUE(made);
  ASSERT_TRUE(driver().destroyStream(*made));
  EXPECT_FALSE(driver().destroyStream(*made));
  EXPECT_FALSE(driver().synchronize(*made));
  auto event = driver().createEvent(false);
  ASSERT_TRUE(event);
  ASSERT_TRUE(driver().destroyEvent(*event));
  EXPECT_FALSE(driver().record(*event, stream->handle()));
}

/// Errors of kernels stay: each in a process of its own.
using DriverDeathTest = Driver;

void endWith(const Status &status) {
  std::fprintf(stderr, "%s\n", status ? "nothing was noticed" : status.error().message.c_str());
  std::exit(status ? 0 : 1);
}

TEST_P(DriverDeathTest, StraysOfKernels) {
  DeviceMemory memory = upload(ramp(128)); // its block has 512 bytes
  FunctionHandle stray = kernel("stray");
  auto run = [&](uint64_t at) {
    if (Status status = launch(stray, 1, {memory.address(), at}); !status)
      endWith(status);
    endWith(stream->synchronize());
  };
  EXPECT_EXIT(run(128), testing::ExitedWithCode(1), "'stray' wrote behind the block of 512 bytes");
  EXPECT_EXIT(run(uint64_t(-1)), testing::ExitedWithCode(1), "'stray' wrote in front of the block");
  EXPECT_EXIT(run(127), testing::ExitedWithCode(0), "nothing was noticed");
}

TEST_P(DriverDeathTest, UnevenBarriers) {
  FunctionHandle deadlock = kernel("deadlock");
  EXPECT_EXIT(
      {
        if (Status status = launch(deadlock, 1, {}, 4); !status)
          endWith(status);
        endWith(stream->synchronize());
      },
      testing::ExitedWithCode(1), "wait for others that have ended");
}

TEST_P(DriverDeathTest, SourcesStayAsTheyAre) {
  auto pinned = device->allocatePinned(400);
  ASSERT_TRUE(pinned);
  DeviceMemory memory = upload(ramp(100));
  EXPECT_EXIT(
      {
        std::memset(pinned->data(), 1, 400);
        (void)driver().copyToDevice(memory.address(), pinned->data(), 400, stream->handle());
        std::memset(pinned->data(), 2, 400);
        endWith(stream->synchronize());
      },
      testing::ExitedWithCode(1), "changed before its transfer was waited for");
}

TEST_P(DriverDeathTest, NothingRunsAfterAFailure) {
  FunctionHandle deadlock = kernel("deadlock");
  EXPECT_EXIT(
      {
        (void)launch(deadlock, 1, {}, 4);
        (void)stream->synchronize();
        endWith(device->allocate(1 << 20).error());
      },
      testing::ExitedWithCode(1), "an earlier kernel failed: 'deadlock'");
}

TEST_P(DriverDeathTest, PoolMemoryOnAnotherStream) {
  auto pool = driver().createPool(0);
  auto other = device->createStream();
  ASSERT_TRUE(pool && other);
  auto memory = driver().allocate(400, *pool, stream->handle());
  ASSERT_TRUE(memory);
  auto run = [&](bool waits) {
    if (waits)
      (void)stream->synchronize();
    (void)driver().fill(*memory, 0, 400, (*other)->handle());
    endWith((*other)->synchronize());
  };
  EXPECT_EXIT(run(false), testing::ExitedWithCode(1), "has not come to the allocation yet");
  EXPECT_EXIT(run(true), testing::ExitedWithCode(0), "nothing was noticed");
  EXPECT_TRUE(driver().free(*memory, stream->handle()));
  EXPECT_TRUE(driver().destroyPool(*pool));
}

#if defined(__x86_64__)
TEST_P(Driver, RunsHostKernelsOfContainers) {
  HostKernels kernels;
  kernels.entries = {{"mark", 0, 1, 128, 64, false}};
  // The argument's address is in rdi: *(float *)argument = 42.
  kernels.code = {0x48, 0x8b, 0x07, 0x48, 0x8b, 0x00, 0xc7, 0x00, 0x00, 0x00, 0x28, 0x42, 0xc3};
  auto image = kernels.serialise();
  auto module = device->loadModule(image.data(), image.size());
  ASSERT_TRUE(module) << module.error().message;
  auto function = (*module)->find("mark");
  ASSERT_TRUE(function) << function.error().message;
  EXPECT_FALSE((*module)->find("other"));
  DeviceMemory memory = upload({1, 2});
  Status status = launch(*function, 1, {memory.address()});
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(download(memory), (std::vector<float>{42, 2}));
  expectFailure(launch(*function, 1, {memory.address()}, 256), "made for 128");
  // A cut image is none.
  EXPECT_FALSE(device->loadModule(image.data(), image.size() - 1));
}
#endif

INSTANTIATE_TEST_SUITE_P(, Driver, testing::Values("cuda", "rocm"),
                         [](const auto &info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(, DriverDeathTest, testing::Values("cuda", "rocm"),
                         [](const auto &info) { return info.param; });

TEST(Ptx, SaysWhichDriverItNeeds) {
  EXPECT_EQ(driverForPtx("//\n.version 7.0\n.target sm_80\n"), 11000u);
  EXPECT_EQ(driverForPtx(".version 7.8\n"), 11080u);
  EXPECT_EQ(driverForPtx(".version 8.5"), 12050u);
  EXPECT_EQ(driverForPtx(".version 8.6\n"), 12070u);
  EXPECT_EQ(driverForPtx(".version 9.0\n"), 13000u);
  EXPECT_EQ(driverForPtx(".version"), 0u);
  EXPECT_EQ(driverForPtx(".version 8"), 0u);
  EXPECT_EQ(driverForPtx(".version 6.3\n"), 0u);
  EXPECT_EQ(cudaVersionText(12080), "12.8");
}

TEST(NoDriver, IsAMessage) {
  auto missing = DeviceDriver::open("cuda", "/nowhere/libcuda.so.1");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::Unavailable);
  EXPECT_THAT(missing.error().message, HasSubstr("/nowhere/libcuda.so.1"));
  EXPECT_THAT(missing.error().message, HasSubstr("DOVETAIL_DRIVERS"));
  auto other = DeviceDriver::open("cuda", simulatedPath("rocm"));
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("has no function cuInit"));
  auto unknown = DeviceDriver::open("metal", "");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::BadInput);
}

TEST(NoDriver, DeviceNumbersAreChecked) {
  auto driver = DeviceDriver::open("cuda", simulatedPath("cuda"));
  ASSERT_TRUE(driver) << driver.error().message;
  auto device = Device::open(*driver, 3);
  ASSERT_FALSE(device);
  EXPECT_THAT(device.error().message, HasSubstr("there is no device 3"));
}

} // namespace
