// SPDX-License-Identifier: Apache-2.0
//
// The doubles notice calls that are wrong: in order, sizes, memory, lifetimes and streams. Else the
// provider's tests would prove little.
#include <gmock/gmock.h>

#include "Problems.h"
#include "providers/miopen/Library.h"

using namespace dovetail;
using namespace dovetail::miopen;
using testing::HasSubstr;

namespace {

class MiopenDouble : public testing::TestWithParam<int> {
protected:
  MiopenDouble() : api(test::doubleFolder(GetParam()).c_str(), "") {}
  void SetUp() override {
    ASSERT_TRUE(api.isLoaded()) << api.missing;
    device = device::openSimulated("rocm");
    ASSERT_NE(device, nullptr);
    stream = std::move(*device->createStream());
    ASSERT_EQ(api.CreateWithStream(&handle, stream->handle()), 0);
    for (TensorRef *tensor : {&x, &w, &y, &bias})
      ASSERT_EQ(api.CreateTensorDescriptor(tensor), 0);
    ASSERT_EQ(api.CreateConvolutionDescriptor(&convolution), 0);
    set(x, {1, 2, 4, 4}, {32, 16, 4, 1});
    set(w, {3, 2, 3, 3}, {18, 9, 3, 1});
    set(y, {1, 3, 4, 4}, {48, 16, 4, 1});
    set(bias, {1, 3, 1, 1}, {3, 1, 1, 1});
    const int ones[] = {1, 1};
    ASSERT_EQ(api.InitConvolutionNdDescriptor(convolution, 2, ones, ones, ones,
                                              ConvolutionMode::Convolution),
              0);
    for (device::DeviceMemory *memory : {&xMemory, &wMemory, &yMemory, &space}) {
      auto made = device->allocate(4096);
      ASSERT_TRUE(made);
      *memory = std::move(*made);
      ASSERT_TRUE(device->driver().fill(memory->address(), 0, 4096, stream->handle()));
    }
  }
  void TearDown() override {
    for (TensorRef tensor : {x, w, y, bias})
      if (tensor) {
        EXPECT_EQ(api.DestroyTensorDescriptor(tensor), 0);
      }
    EXPECT_EQ(api.DestroyConvolutionDescriptor(convolution), 0);
    EXPECT_EQ(api.Destroy(handle), 0);
    EXPECT_EQ(test::liveObjects(GetParam()), 0u);
    for (device::DeviceMemory *memory : {&xMemory, &wMemory, &yMemory, &space})
      memory->reset();
    stream = nullptr;
    device = nullptr;
  }
  void set(TensorRef tensor, std::vector<int> dims, std::vector<int> strides,
           DataType type = DataType::Float) {
    ASSERT_EQ(api.SetTensorDescriptor(tensor, type, static_cast<int>(dims.size()), dims.data(),
                                      strides.data()),
              0);
  }
  static void *at(const device::DeviceMemory &memory) {
    return reinterpret_cast<void *>(memory.address());
  }
  int compile(uint64_t id) {
    return api.ConvolutionForwardCompileSolution(handle, w, x, convolution, y, id);
  }
  int immediate(uint64_t id, void *workspace = nullptr, size_t bytes = 0) {
    return api.ConvolutionForwardImmediate(handle, w, at(wMemory), x, at(xMemory), convolution, y,
                                           at(yMemory), workspace, bytes, id);
  }
  int activate(TensorRef from, const void *source) {
    ActivationRef activation = nullptr;
    EXPECT_EQ(api.CreateActivationDescriptor(&activation), 0);
    EXPECT_EQ(api.SetActivationDescriptor(activation, ActivationMode::Relu, 0, 0, 0), 0);
    const float one = 1, zero = 0;
    const int status =
        api.ActivationForward(handle, activation, &one, from, source, &zero, from, at(yMemory));
    message = api.describe(status);
    EXPECT_EQ(api.DestroyActivationDescriptor(activation), 0);
    return status;
  }
  /// What the library says of the call just made, which was to fail.
  void refused(int status, const std::string &says) {
    EXPECT_NE(status, 0) << says;
    EXPECT_THAT(api.describe(status), HasSubstr(says));
  }

  static constexpr uint64_t kWinograd = 11, kGemm = 5;
  miopen::Library api;
  std::shared_ptr<device::Device> device;
  std::unique_ptr<device::Stream> stream;
  LibraryHandle handle = nullptr;
  TensorRef x = nullptr, w = nullptr, y = nullptr, bias = nullptr;
  ConvolutionRef convolution = nullptr;
  device::DeviceMemory xMemory, wMemory, yMemory, space;
  std::string message;
};

TEST_P(MiopenDouble, OffersWhatItsVersionHas) {
  EXPECT_EQ(api.version[0], static_cast<size_t>(GetParam()));
  EXPECT_EQ(api.hasFind2(), GetParam() >= 3);
  EXPECT_EQ(api.hasLayerNorm(), GetParam() >= 3);
  EXPECT_TRUE(api.hasFusion());
}

TEST_P(MiopenDouble, OrderOfCalls) {
  refused(immediate(kWinograd), "was not compiled with this handle");
  ASSERT_EQ(compile(kWinograd), 0);
  EXPECT_EQ(immediate(kWinograd), 0);
  refused(compile(99), "there is no solution 99");
  LibraryHandle other = nullptr;
  ASSERT_EQ(api.CreateWithStream(&other, stream->handle()), 0);
  std::swap(handle, other);
  refused(immediate(kWinograd), "was not compiled with this handle");
  std::swap(handle, other);
  EXPECT_EQ(api.Destroy(other), 0);
  const float one = 1, zero = 0;
  refused(api.ConvolutionForward(handle, &one, x, at(xMemory), w, at(wMemory), convolution,
                                 Algorithm::Direct, &zero, y, at(yMemory), nullptr, 0),
          "was not found with this handle before");
}

TEST_P(MiopenDouble, Workspaces) {
  ASSERT_EQ(compile(kGemm), 0);
  refused(immediate(kGemm), "has 0 bytes, the algorithm takes");
  refused(immediate(kGemm, at(space), 64), "has 64 bytes, the algorithm takes");
  refused(immediate(kGemm, at(space), 0), "does not go with the address");
  refused(immediate(kGemm, reinterpret_cast<void *>(space.address() + 4), 4000), "aligned");
  refused(immediate(kGemm, at(space), 8192), "leave a block of 4096");
  EXPECT_EQ(immediate(kGemm, at(space), 4096), 0);
}

TEST_P(MiopenDouble, Memory) {
  ASSERT_EQ(compile(kWinograd), 0);
  float here[64] = {};
  refused(api.ConvolutionForwardImmediate(handle, w, at(wMemory), x, here, convolution, y,
                                          at(yMemory), nullptr, 0, kWinograd),
          "is no device memory");
  refused(api.ConvolutionForwardImmediate(handle, w, at(wMemory), x, at(xMemory), convolution, y,
                                          at(xMemory), nullptr, 0, kWinograd),
          "overlap");
  refused(api.ConvolutionForwardImmediate(handle, w, nullptr, x, at(xMemory), convolution, y,
                                          at(yMemory), nullptr, 0, kWinograd),
          "w has no memory");
  refused(api.ConvolutionForwardImmediate(handle, w, at(wMemory), x, at(xMemory), convolution, y,
                                          reinterpret_cast<void *>(yMemory.address() + 4096 - 4),
                                          nullptr, 0, kWinograd),
          "leave a block of 4096");
  device->trim();
  const device::DeviceAddress gone = yMemory.address();
  yMemory.reset();
  device->trim();
  refused(api.ConvolutionForwardImmediate(handle, w, at(wMemory), x, at(xMemory), convolution, y,
                                          reinterpret_cast<void *>(gone), nullptr, 0, kWinograd),
          "was freed");
}

TEST_P(MiopenDouble, MemoryIsLookedAtAgainWhenTheWorkIsDone) {
  ASSERT_EQ(compile(kWinograd), 0);
  ASSERT_EQ(immediate(kWinograd), 0);
  EXPECT_TRUE(stream->synchronize());
  EXPECT_EQ(device::simulatedCount("rocm", "streams"), 1u);
}

TEST_P(MiopenDouble, ShapesAndTypes) {
  set(y, {1, 3, 4, 3}, {36, 12, 3, 1});
  refused(compile(kWinograd), "the result has 3 elements in dimension 3");
  set(y, {1, 3, 4, 4}, {48, 1, 12, 3});
  refused(compile(kWinograd), "lie in one layout");
  set(y, {1, 3, 4, 4}, {48, 16, 4, 1}, DataType::Half);
  refused(compile(kWinograd), "types do not match");
  set(y, {1, 2, 4, 4}, {32, 16, 4, 1});
  refused(compile(kWinograd), "channels do not match");
  const int dims[] = {2, 2}, gaps[] = {8, 1};
  refused(api.SetTensorDescriptor(y, DataType::Float, 2, dims, gaps), "tensors with gaps");
}

TEST_P(MiopenDouble, Lifetimes) {
  ASSERT_EQ(api.DestroyTensorDescriptor(y), 0);
  refused(compile(kWinograd), "there is no y; it may have been destroyed");
  refused(api.DestroyTensorDescriptor(y), "there is no such descriptor");
  ASSERT_EQ(api.CreateTensorDescriptor(&y), 0);
  refused(compile(kWinograd), "the descriptor of y was not filled in");
}

TEST_P(MiopenDouble, Streams) {
  ASSERT_EQ(compile(kWinograd), 0);
  auto other = device->createStream();
  ASSERT_TRUE(other);
  ASSERT_EQ(api.SetStream(handle, (*other)->handle()), 0);
  EXPECT_EQ(immediate(kWinograd), 0);
  EXPECT_TRUE((*other)->synchronize());
  *other = nullptr;
  refused(immediate(kWinograd), "there is no stream");
  ASSERT_EQ(api.SetStream(handle, stream->handle()), 0);
}

TEST_P(MiopenDouble, WhatNoVersionComputesRightly) {
  const float one = 1, zero = 0, half = 0.5F;
  set(y, {1, 3, 4, 4}, {48, 1, 12, 3});
  refused(api.ConvolutionForwardBias(handle, &one, bias, at(wMemory), &zero, y, at(yMemory)),
          "does not lie row-major");
  set(y, {1, 3, 4, 4}, {48, 16, 4, 1});
  refused(api.ConvolutionForwardBias(handle, &half, bias, at(wMemory), &zero, y, at(yMemory)),
          "scales other than 1 and 0");
  EXPECT_EQ(api.ConvolutionForwardBias(handle, &one, bias, at(wMemory), &zero, y, at(yMemory)), 0);
  set(y, {1, 3, 4, 4}, {48, 16, 4, 1}, DataType::BFloat16);
  EXPECT_NE(activate(y, at(xMemory)), 0);
  EXPECT_THAT(message, HasSubstr("bf16 is not supported"));
}

INSTANTIATE_TEST_SUITE_P(, MiopenDouble, testing::Values(2, 3),
                         [](const auto &info) { return "version" + std::to_string(info.param); });

} // namespace
