// SPDX-License-Identifier: Apache-2.0
//
// A model as parsed: the protobuf message without its large payloads, and access to the bytes of
// every tensor in it, wherever they are: in the message, in the mapped model file or in a file
// beside it. Bytes are handed out as pointers into the mappings wherever the stored form is the
// element form already.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dovetail/provider.h"
#include "import/ExternalData.h"
#include "support/Expected.h"

namespace onnx {
class ModelProto;
class TensorProto;
} // namespace onnx

namespace dovetail::importer {

/// A tensor's elements in row-major order, in the byte form of provider.h: a bool is one byte,
/// 4-bit integers lie two to a byte. The bytes are not aligned in any way.
struct TensorData {
  dvt_type type = DVT_UNDEFINED;
  std::vector<int64_t> extents;
  int64_t elements = 1;
  std::string_view bytes;
  std::shared_ptr<const void> owner; ///< keeps bytes alive
};

class ModelFile {
public:
  /// Reads a model. `folder` is where external data may lie; empty refuses external data. BadInput
  /// says what is wrong with the file.
  static Expected<std::unique_ptr<ModelFile>> load(const std::string &path);
  static Expected<std::unique_ptr<ModelFile>> parse(Bytes bytes, const std::string &folder);
  ~ModelFile();

  onnx::ModelProto &model() { return *proto; }
  /// Type, extents and bytes, checked against each other. BadInput names the tensor.
  Expected<TensorData> read(const onnx::TensorProto &tensor);

private:
  ModelFile() = default;
  Expected<TensorData> readExternal(const onnx::TensorProto &tensor, TensorData data,
                                    uint64_t size);

  std::unique_ptr<onnx::ModelProto> proto;
  Bytes file;
  std::string folder;
  std::map<std::string, Bytes, std::less<>> besides;
};

/// dvt type of an ONNX element type; DVT_UNDEFINED for those Dovetail has no form for.
dvt_type elementType(int onnxType);
/// "FLOAT16", "COMPLEX64"; also for numbers that are no type.
std::string elementTypeName(int onnxType);

} // namespace dovetail::importer
