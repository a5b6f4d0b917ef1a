// SPDX-License-Identifier: Apache-2.0
//
// The C API on an artifact in a file.
#include <filesystem>

#include <gtest/gtest.h>

#include "dovetail/dovetail.h"
#include "runtime/PlanMaker.h"

using namespace dovetail;

namespace {

class CApi : public testing::Test {
protected:
  void SetUp() override {
    path = testing::TempDir() + "/capi-test.dvt";
    Plan plan = denseLayerPlan();
    plan.blocks[0].steps[2].report = 0;
    plan.reports.emplace_back().micros = 12.5;
    Status status = writeArtifact(plan, path);
    ASSERT_TRUE(status) << status.error().message;
    plugins = std::string(DOVETAIL_BINARY_DIR) + "/test/toys";
    options.struct_size = sizeof(options);
    options.plugin_path = plugins.c_str();
  }
  void TearDown() override { std::filesystem::remove(path); }
  std::string path, plugins;
  dvt_load_options options{};
  dvt_error error{};
};

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

} // namespace
