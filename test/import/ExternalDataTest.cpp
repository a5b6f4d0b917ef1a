// SPDX-License-Identifier: Apache-2.0
//
// External data: found beside the model, mapped, and never outside its folder.
#include "ModelBuilder.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <unistd.h>

#include "graph/ConstantData.h"
#include "graph/GraphDialect.h"

namespace dovetail::importer {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ExternalData : public testing::Test {
protected:
  void SetUp() override {
    root = fs::path(testing::TempDir()) / ("dovetail-external-" + std::to_string(::getpid()));
    folder = root / "model";
    fs::create_directories(folder / "sub");
    for (const fs::path &path :
         {folder / "weights.bin", folder / "sub" / "weights.bin", root / "secret.bin"})
      std::ofstream(path, std::ios::binary)
          << std::string_view("\1\1\1\1\1\1\1\1\0\0\x80\x3f\0\0\0\x40", 16);
  }
  void TearDown() override { fs::remove_all(root); }

  /// Imports a model whose initializer of two floats lies at `location`.
  std::string imported(const std::string &location, const std::string &offset = "8",
                       const std::string &length = "8") {
    onnx::ModelProto model = graphModel("g (float[2] x) => (float[2] y) { y = Add(x, w) }");
    onnx::TensorProto &tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name("w");
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_dims(2);
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    const std::pair<std::string, std::string> entries[] = {
        {"location", location}, {"offset", offset}, {"length", length}};
    for (const auto &[key, value] : entries) {
      if (value.empty())
        continue;
      onnx::StringStringEntryProto &entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
    std::string path = (folder / "model.onnx").string();
    std::ofstream(path, std::ios::binary) << model.SerializeAsString();
    mlir::MLIRContext context;
    auto module = importOnnx(path, context);
    if (!module)
      return module.error().message;
    std::string numbers;
    (*module)->walk([&](graph::ConstantOp constant) {
      std::optional<std::vector<double>> read = graph::constantNumbers(constant.getResult());
      ASSERT_TRUE(read.has_value());
      for (double number : *read)
        numbers += std::to_string(int(number)) + " ";
    });
    return numbers;
  }

  fs::path root, folder;
};

TEST_F(ExternalData, IsReadFromTheModelsFolder) {
  EXPECT_EQ(imported("weights.bin"), "1 2 ");
  EXPECT_EQ(imported("sub/weights.bin"), "1 2 ");
  EXPECT_EQ(imported("./sub/weights.bin", "8", ""), "1 2 ");
  fs::create_symlink("sub/weights.bin", folder / "inside.bin");
  EXPECT_EQ(imported("inside.bin"), "1 2 ");
}

TEST_F(ExternalData, StaysInTheModelsFolder) {
  EXPECT_THAT(imported("../secret.bin"), HasSubstr("leads out of the model's folder"));
  EXPECT_THAT(imported("sub/../../secret.bin"), HasSubstr("leads out of the model's folder"));
  EXPECT_THAT(imported((root / "secret.bin").string()), HasSubstr("absolute path"));
  fs::create_symlink("../secret.bin", folder / "link.bin");
  EXPECT_THAT(imported("link.bin"), HasSubstr("link that leads out of the model's folder"));
  fs::create_directory_symlink(root, folder / "up");
  EXPECT_THAT(imported("up/secret.bin"), HasSubstr("link that leads out of the model's folder"));
}

TEST_F(ExternalData, MustBeThere) {
  EXPECT_THAT(imported("missing.bin"), HasSubstr("cannot find 'missing.bin'"));
  EXPECT_THAT(imported(""), HasSubstr("location is not a file name"));
  EXPECT_THAT(imported("sub"), HasSubstr("it is a folder, not a file"));
  EXPECT_THAT(imported("weights.bin", "12"),
              HasSubstr("wants 8 bytes at offset 12 of 'weights.bin', which has only 16"));
  EXPECT_THAT(imported("weights.bin", "18446744073709551615"), HasSubstr("which has only 16"));
  EXPECT_THAT(imported("weights.bin", "8", "7"), HasSubstr("needs 8 bytes of data but has 7"));
  EXPECT_THAT(imported("weights.bin", "-8"),
              HasSubstr("offset '-8' of its external data is not a number"));
  EXPECT_THAT(imported("weights.bin", "8x"), HasSubstr("is not a number"));
}

TEST_F(ExternalData, NeedsAFolder) {
  imported("weights.bin"); // writes the model
  std::ifstream stream(folder / "model.onnx", std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(stream), {});
  mlir::MLIRContext context;
  EXPECT_THAT(importOnnx(bytes, nullptr, context).error().message,
              HasSubstr("given as bytes, without a folder"));
  EXPECT_TRUE(bool(importOnnx(bytes, nullptr, context, {}, folder.string())));
}

} // namespace
} // namespace dovetail::importer
