// SPDX-License-Identifier: Apache-2.0
//
// The C API on an artifact in a file: looking at a model, and what is bound to a session.
#include "runtime/CApiFixture.h"

using namespace dovetail;

namespace {

TEST_F(CApi, LoadLookRun) {
  dvt_model *model = nullptr;
  dvt_session *session = nullptr;
  ASSERT_EQ(dvt_model_load(path.c_str(), &options, &model, &error), DVT_OK) << error.message;
  EXPECT_EQ(std::string(dvt_model_digest(model)).size(), 32u);
  EXPECT_EQ(dvt_model_input_count(model), 1u);
  ASSERT_EQ(dvt_model_output_count(model), 1u);
  dvt_port port{};
  port.struct_size = sizeof(port);
  ASSERT_EQ(dvt_model_input(model, 0, &port, &error), DVT_OK);
  EXPECT_STREQ(port.name, "x");
  EXPECT_EQ(port.type, DVT_F32);
  ASSERT_EQ(port.rank, 2u);
  EXPECT_EQ(port.extents[1], 3);
  EXPECT_STREQ(port.extent_texts[0], "4");
  EXPECT_EQ(dvt_model_output(model, 1, &port, &error), DVT_BAD_INPUT);
  ASSERT_EQ(dvt_model_step_count(model), 3u);
  dvt_step step{};
  step.struct_size = sizeof(step);
  ASSERT_EQ(dvt_model_step(model, 2, &step, &error), DVT_OK);
  EXPECT_STREQ(step.running, "toy:plain");
  EXPECT_EQ(step.micros, 12.5);
  EXPECT_NE(std::string(step.problem).find("relu"), std::string::npos);

  ASSERT_EQ(dvt_session_create(model, &session, &error), DVT_OK);
  dvt_model_release(model); // the session keeps what it needs
  dvt_tensor out{};
  EXPECT_EQ(dvt_session_output(session, 0, &out, &error), DVT_BAD_INPUT) << "nothing ran yet";
  EXPECT_EQ(dvt_session_run(session, &error), DVT_BAD_INPUT);
  std::vector<float> x = noise(12);
  const int64_t extents[] = {4, 3};
  dvt_tensor tensor{x.data(), extents, nullptr, 2, DVT_F32, DVT_MEMORY_HOST};
  ASSERT_EQ(dvt_session_bind_input(session, 0, &tensor, &error), DVT_OK) << error.message;
  double micros[3] = {};
  ASSERT_EQ(dvt_session_run_timed(session, micros, 3, &error), DVT_OK) << error.message;
  EXPECT_GT(micros[2], 0);
  ASSERT_EQ(dvt_session_output(session, 0, &out, &error), DVT_OK);
  const auto *y = static_cast<const float *>(out.data);
  EXPECT_EQ(std::vector<float>(y, y + 20), denseLayerTruth(x));
  EXPECT_GT(dvt_session_memory_bytes(session), 0u);

  tensor.type = DVT_F64;
  EXPECT_EQ(dvt_session_bind_input(session, 0, &tensor, &error), DVT_BAD_INPUT);
  EXPECT_NE(std::string(error.message).find("f64"), std::string::npos);
  dvt_session_cancel(session);
  EXPECT_EQ(dvt_session_run(session, nullptr), DVT_CANCELLED);
  EXPECT_EQ(dvt_session_run(session, nullptr), DVT_OK);
  dvt_session_release(session);
}

TEST_F(CApi, FailuresAreTold) {
  dvt_model *model = reinterpret_cast<dvt_model *>(1);
  EXPECT_EQ(dvt_model_load("/no/such/file", &options, &model, &error), DVT_BAD_INPUT);
  EXPECT_EQ(model, nullptr);
  EXPECT_NE(std::string(error.message).find("/no/such/file"), std::string::npos);
  EXPECT_EQ(dvt_model_load(nullptr, &options, &model, &error), DVT_BAD_INPUT);
  options.plugin_path = "/no/such/folder";
  EXPECT_EQ(dvt_model_load(path.c_str(), &options, &model, &error), DVT_UNAVAILABLE);
  EXPECT_NE(std::string(error.message).find("provider toy is not there"), std::string::npos)
      << error.message;
  dvt_model_release(nullptr);
  dvt_session_release(nullptr);
}

TEST_F(CApi, OlderCallersAreUnderstood) {
  // A caller that knows only the first fields.
  dvt_load_options old{};
  old.struct_size = offsetof(dvt_load_options, vendor_path);
  old.plugin_path = plugins.c_str();
  old.log = reinterpret_cast<decltype(old.log)>(8); // beyond what it says it has
  dvt_model *model = nullptr;
  ASSERT_EQ(dvt_model_load(path.c_str(), &old, &model, &error), DVT_OK) << error.message;
  dvt_port port{};
  port.struct_size = offsetof(dvt_port, rank);
  port.rank = 77;
  ASSERT_EQ(dvt_model_input(model, 0, &port, &error), DVT_OK);
  EXPECT_EQ(port.rank, 77u);
  EXPECT_STREQ(port.name, "x");
  dvt_model_release(model);
}

TEST_F(CApi, OutputsAreWrittenWhereTheCallerSays) {
  SessionHandle session = open(load());
  std::vector<float> first = noise(12), second = noise(12, 9);
  Aligned<float> x(12), y(20);
  std::copy(first.begin(), first.end(), x.begin());
  bindInput(session, {x.data(), {4, 3}});
  {
    Described bound(y.data(), {4, 5});
    ASSERT_EQ(dvt_session_bind_output(session.get(), 0, &bound.tensor, &error), DVT_OK)
        << error.message;
    bound.extents = {-1, -1}; // it was copied
  }
  dvt_tensor out = run(session);
  EXPECT_EQ(out.data, y.data());
  EXPECT_EQ(elements(out), denseLayerTruth(first));

  ASSERT_EQ(dvt_session_bind_output(session.get(), 0, nullptr, &error), DVT_OK) << error.message;
  std::copy(second.begin(), second.end(), x.begin());
  out = run(session);
  EXPECT_NE(out.data, y.data());
  EXPECT_EQ(elements(out), denseLayerTruth(second));
  EXPECT_EQ(std::vector<float>(y.begin(), y.end()), denseLayerTruth(first));
}

TEST_F(CApi, StridedTensorsAtOddAddresses) {
  SessionHandle session = open(load());
  std::vector<float> x = noise(12), truth = denseLayerTruth(x);
  // x is transposed; y is in every second column of a wider array, its rows from the last on.
  Aligned<float> transposed(13), wide(41);
  std::fill(wide.begin(), wide.end(), -1.0f);
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 3; ++k)
      transposed[1 + k * 4 + i] = x[i * 3 + k];
  bindInput(session, {transposed.data() + 1, {4, 3}, {1, 4}});
  Described bound(wide.data() + 31, {4, 5}, {-10, 2});
  ASSERT_EQ(dvt_session_bind_output(session.get(), 0, &bound.tensor, &error), DVT_OK)
      << error.message;
  dvt_tensor out = run(session);
  EXPECT_EQ(out.data, wide.data() + 31);
  ASSERT_EQ(out.rank, 2u);
  ASSERT_NE(out.strides, nullptr);
  EXPECT_EQ(std::vector<int64_t>(out.strides, out.strides + 2), (std::vector<int64_t>{-10, 2}));
  EXPECT_EQ(wide[0], -1);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 5; ++j) {
      EXPECT_EQ(wide[1 + (3 - i) * 10 + j * 2], truth[i * 5 + j]);
      EXPECT_EQ(wide[1 + (3 - i) * 10 + j * 2 + 1], -1);
    }
}

TEST_F(CApi, WhatDoesNotFitIsNotBound) {
  SessionHandle session = open(load());
  std::vector<float> truth = denseLayerTruth(noise(12));
  Aligned<float> x(12), y(20), other(20);
  std::vector<float> data = noise(12);
  std::copy(data.begin(), data.end(), x.begin());
  bindInput(session, {x.data(), {4, 3}});
  Described bound(y.data(), {4, 5});
  ASSERT_EQ(dvt_session_bind_output(session.get(), 0, &bound.tensor, &error), DVT_OK);

  for (auto bind : {dvt_session_bind_input, dvt_session_bind_output}) {
    const bool isInput = bind == dvt_session_bind_input;
    const int64_t columns = isInput ? 3 : 5;
    const std::string wanted = isInput ? "[4,3]" : "[4,5]";
    auto refused = [&](const Described &tensor) {
      error.message[0] = 0;
      return bind(session.get(), 0, &tensor.tensor, &error) == DVT_BAD_INPUT;
    };
    EXPECT_TRUE(refused({other.data(), {4 * columns}}) && says("has rank 2, bound with rank 1"))
        << error.message;
    EXPECT_TRUE(refused({other.data(), {columns, 4}}) && says("has the extents " + wanted))
        << error.message;
    EXPECT_TRUE(refused({other.data(), {-4, columns}}) && says("has the extents " + wanted))
        << error.message;
    EXPECT_TRUE(refused({other.data(), {4, columns}, {}, DVT_I32}) && says("i32 was bound"))
        << error.message;
    EXPECT_TRUE(refused({other.data(), {4, columns}, {}, dvt_type(20)}) && says("unknown"))
        << error.message;
    EXPECT_TRUE(refused({nullptr, {4, columns}}) && says("to no memory")) << error.message;
    Described tensor(other.data(), {4, columns});
    tensor.tensor.memory = DVT_MEMORY_DEVICE;
    EXPECT_TRUE(refused(tensor) && says("host memory")) << error.message;
    tensor.tensor.memory = DVT_MEMORY_HOST;
    EXPECT_EQ(bind(session.get(), 1, &tensor.tensor, &error), DVT_BAD_INPUT);
    EXPECT_TRUE(says("1 does not exist: the model has 1")) << error.message;
    tensor.tensor.extents = nullptr;
    EXPECT_TRUE(refused(tensor) && says("without extents")) << error.message;
    EXPECT_EQ(bind(session.get(), 0, &tensor.tensor, nullptr), DVT_BAD_INPUT);
  }
  EXPECT_EQ(dvt_session_bind_input(session.get(), 0, nullptr, &error), DVT_BAD_INPUT);
  EXPECT_TRUE(says("no tensor was given")) << error.message;

  // What was bound before still is.
  dvt_tensor out = run(session);
  EXPECT_EQ(out.data, y.data());
  EXPECT_EQ(elements(out), truth);
  EXPECT_EQ(dvt_session_output(session.get(), 1, &out, &error), DVT_BAD_INPUT);
  EXPECT_EQ(dvt_session_output(session.get(), 0, nullptr, &error), DVT_BAD_INPUT);
}

TEST_F(CApi, StridesThatCannotBeAreRefused) {
  PlanMaker maker;
  uint32_t x = maker.input("x", {4}), packed = maker.input("packed", {4}, DVT_U4);
  maker.step("relu", {x}, {maker.outputValue("y", {4})});
  maker.step("add", {x, x}, {maker.outputValue("z", {4})});
  maker.output("packed again", packed);
  write(maker.take());
  SessionHandle session = open(load());
  Aligned<float> memory(4), both(8);
  memory[0] = -2;
  memory[3] = 5;
  bindInput(session, {memory.data(), {4}});
  Aligned<uint8_t> halves(4);
  Described strided(halves.data(), {4}, {2}, DVT_U4), dense(halves.data(), {4}, {1}, DVT_U4);
  EXPECT_EQ(dvt_session_bind_input(session.get(), 1, &strided.tensor, &error), DVT_BAD_INPUT);
  EXPECT_TRUE(says("strides of elements of less than a byte")) << error.message;
  ASSERT_EQ(dvt_session_bind_input(session.get(), 1, &dense.tensor, &error), DVT_OK)
      << error.message;

  // One output's elements among those of another.
  Described y(both.data(), {4}, {2}), z(both.data() + 2, {4});
  ASSERT_EQ(dvt_session_bind_output(session.get(), 0, &y.tensor, &error), DVT_OK);
  ASSERT_EQ(dvt_session_bind_output(session.get(), 1, &z.tensor, &error), DVT_OK);
  EXPECT_EQ(dvt_session_run(session.get(), &error), DVT_BAD_INPUT);
  EXPECT_TRUE(says("outputs 'y' and 'z' are bound to the same memory")) << error.message;
  ASSERT_EQ(dvt_session_bind_output(session.get(), 1, nullptr, &error), DVT_OK);
  run(session);
  EXPECT_EQ(std::vector<float>(both.begin(), both.end()),
            (std::vector<float>{0, 0, 0, 0, 0, 0, 5, 0}));
}

} // namespace
