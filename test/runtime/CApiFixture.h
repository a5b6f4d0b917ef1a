// SPDX-License-Identifier: Apache-2.0
//
// An artifact in a file, and what a program has of the C API: handles that release themselves and
// tensors that own their extents.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "dovetail/dovetail.h"
#include "runtime/PlanMaker.h"

namespace dovetail {

using ModelHandle = std::unique_ptr<dvt_model, void (*)(dvt_model *)>;
using SessionHandle = std::unique_ptr<dvt_session, void (*)(dvt_session *)>;

/// A tensor to bind; `strides` empty for a dense one.
class Described {
public:
  Described(void *data, std::vector<int64_t> extents, std::vector<int64_t> strides = {},
            dvt_type type = DVT_F32)
      : extents(std::move(extents)), strides(std::move(strides)) {
    tensor.data = data;
    tensor.extents = this->extents.data();
    tensor.strides = this->strides.empty() ? nullptr : this->strides.data();
    tensor.rank = uint32_t(this->extents.size());
    tensor.type = type;
  }
  Described(const Described &) = delete;

  std::vector<int64_t> extents, strides;
  dvt_tensor tensor{};
};

/// A dense layer in a file, see denseLayerPlan.
class CApi : public testing::Test {
protected:
  void SetUp() override {
    path = testing::TempDir() + "capi-" + std::to_string(::getpid()) + ".dvt";
    Plan plan = denseLayerPlan();
    plan.blocks[0].steps[2].report = 0;
    plan.reports.emplace_back().micros = 12.5;
    write(plan);
    plugins = std::string(DOVETAIL_BINARY_DIR) + "/test/toys";
    options.struct_size = sizeof(options);
    options.plugin_path = plugins.c_str();
  }
  void TearDown() override { std::filesystem::remove(path); }

  void write(const Plan &plan) {
    Status status = writeArtifact(plan, path);
    ASSERT_TRUE(status) << status.error().message;
  }
  ModelHandle load() {
    dvt_model *model = nullptr;
    EXPECT_EQ(dvt_model_load(path.c_str(), &options, &model, &error), DVT_OK) << error.message;
    return {model, dvt_model_release};
  }
  SessionHandle open(const ModelHandle &model) {
    dvt_session *session = nullptr;
    EXPECT_EQ(dvt_session_create(model.get(), &session, &error), DVT_OK) << error.message;
    return {session, dvt_session_release};
  }
  void bindInput(const SessionHandle &session, const Described &x) {
    EXPECT_EQ(dvt_session_bind_input(session.get(), 0, &x.tensor, &error), DVT_OK) << error.message;
  }
  /// Runs, and gives what output 0 then is.
  dvt_tensor run(const SessionHandle &session) {
    dvt_tensor out{};
    EXPECT_EQ(dvt_session_run(session.get(), &error), DVT_OK) << error.message;
    EXPECT_EQ(dvt_session_output(session.get(), 0, &out, &error), DVT_OK) << error.message;
    return out;
  }
  bool says(const std::string &part) const {
    return std::string(error.message).find(part) != std::string::npos;
  }

  std::string path, plugins;
  dvt_load_options options{};
  dvt_error error{};
};

/// The elements of a dense result of the dense layer.
inline std::vector<float> elements(const dvt_tensor &dense) {
  EXPECT_EQ(dense.strides, nullptr);
  const auto *y = static_cast<const float *>(dense.data);
  return {y, y + 20};
}

} // namespace dovetail
