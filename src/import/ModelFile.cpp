// SPDX-License-Identifier: Apache-2.0
//
// Parsing of the message and reading of tensors. What a tensor claims (type, extents, offset and
// length) is checked against what is there before a pointer is handed out.
#include "import/ModelFile.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <onnx/onnx_pb.h>

#include "import/WireScan.h"
#include "support/Problem.h"

namespace dovetail::importer {
namespace {

/// Elements of repeated numeric fields, narrowed to the tensor's type. Fields hold each element as
/// one number, except that 4-bit elements come packed two to a number's low byte.
template <typename To, typename Field> std::string narrow(const Field &field, int64_t count) {
  std::string bytes(size_t(count) * sizeof(To), '\0');
  for (int64_t i = 0; i < count; ++i) {
    To value = To(field.Get(int(i)));
    std::memcpy(bytes.data() + size_t(i) * sizeof(To), &value, sizeof(To));
  }
  return bytes;
}

/// The elements of a tensor whose data are in the typed fields; nothing where there are too few.
std::optional<std::string> decodeFields(const onnx::TensorProto &tensor, dvt_type type,
                                        int64_t elements) {
  auto enough = [&](int count) { return count >= elements; };
  switch (type) {
  case DVT_F32:
    if (enough(tensor.float_data_size()))
      return narrow<float>(tensor.float_data(), elements);
    break;
  case DVT_F64:
    if (enough(tensor.double_data_size()))
      return narrow<double>(tensor.double_data(), elements);
    break;
  case DVT_I64:
    if (enough(tensor.int64_data_size()))
      return narrow<int64_t>(tensor.int64_data(), elements);
    break;
  case DVT_U64:
    if (enough(tensor.uint64_data_size()))
      return narrow<uint64_t>(tensor.uint64_data(), elements);
    break;
  case DVT_U32:
    if (enough(tensor.uint64_data_size()))
      return narrow<uint32_t>(tensor.uint64_data(), elements);
    break;
  case DVT_I32:
    if (enough(tensor.int32_data_size()))
      return narrow<int32_t>(tensor.int32_data(), elements);
    break;
  case DVT_U16:
  case DVT_I16:
  case DVT_F16:
  case DVT_BF16:
    if (enough(tensor.int32_data_size()))
      return narrow<uint16_t>(tensor.int32_data(), elements);
    break;
  case DVT_U8:
  case DVT_I8:
    if (enough(tensor.int32_data_size()))
      return narrow<uint8_t>(tensor.int32_data(), elements);
    break;
  case DVT_BOOL:
    if (enough(tensor.int32_data_size()))
      return narrow<bool>(tensor.int32_data(), elements);
    break;
  case DVT_U4:
  case DVT_I4:
    if (tensor.int32_data_size() >= (elements + 1) / 2)
      return narrow<uint8_t>(tensor.int32_data(), (elements + 1) / 2);
    break;
  default:
    break;
  }
  return std::nullopt;
}

bool hasTypedData(const onnx::TensorProto &tensor) {
  return tensor.float_data_size() || tensor.double_data_size() || tensor.int32_data_size() ||
         tensor.int64_data_size() || tensor.uint64_data_size();
}

/// A non-negative decimal number and nothing else.
std::optional<uint64_t> parseNumber(const std::string &text) {
  uint64_t value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || text.empty())
    return std::nullopt;
  return value;
}

std::string extentsText(const onnx::TensorProto &tensor) {
  std::string text;
  for (int64_t extent : tensor.dims())
    text += (text.empty() ? "" : ",") + std::to_string(extent);
  return "[" + text + "]";
}

/// Makes every true a one.
TensorData withCleanBools(TensorData data) {
  auto isClean = [](char byte) { return byte == 0 || byte == 1; };
  if (data.type != DVT_BOOL || std::all_of(data.bytes.begin(), data.bytes.end(), isClean))
    return data;
  auto clean = std::make_shared<std::string>(data.bytes);
  for (char &byte : *clean)
    byte = byte != 0;
  data.bytes = *clean;
  data.owner = std::move(clean);
  return data;
}

} // namespace

dvt_type elementType(int onnxType) {
  switch (onnxType) {
  case DVT_F32:
  case DVT_U8:
  case DVT_I8:
  case DVT_U16:
  case DVT_I16:
  case DVT_I32:
  case DVT_I64:
  case DVT_STRING:
  case DVT_BOOL:
  case DVT_F16:
  case DVT_F64:
  case DVT_U32:
  case DVT_U64:
  case DVT_BF16:
  case DVT_U4:
  case DVT_I4:
    return dvt_type(onnxType);
  default:
    return DVT_UNDEFINED;
  }
}

std::string elementTypeName(int onnxType) {
  if (onnx::TensorProto::DataType_IsValid(onnxType))
    return onnx::TensorProto::DataType_Name(onnx::TensorProto::DataType(onnxType));
  return "number " + std::to_string(onnxType);
}

ModelFile::~ModelFile() = default;

Expected<std::unique_ptr<ModelFile>> ModelFile::load(const std::string &path) {
  Expected<Bytes> file = mapFile(path);
  if (!file)
    return file.takeError();
  std::string folder = std::filesystem::path(path).parent_path().string();
  return parse(std::move(*file), folder.empty() ? "." : folder);
}

Expected<std::unique_ptr<ModelFile>> ModelFile::parse(Bytes bytes, const std::string &folder) {
  if (bytes.content.empty())
    return badInput("not an ONNX model: it is empty");
  Expected<std::string> kept = cutPayloads(bytes.content);
  if (!kept)
    return kept.takeError();
  if (kept->size() > size_t(INT32_MAX))
    return badInput("the model is larger than 2 GiB without its raw tensor data; store weights as "
                    "raw or external "
                    "data");
  std::unique_ptr<ModelFile> model(new ModelFile);
  model->proto = std::make_unique<onnx::ModelProto>();
  google::protobuf::io::ArrayInputStream stream(kept->data(), int(kept->size()));
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetRecursionLimit(kDeepestMessage);
  google::protobuf::LogSilencer silence;
  if (!model->proto->ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage())
    return badInput("not a well-formed ONNX model: protobuf cannot parse it; the file may be "
                    "damaged or of another "
                    "format");
  if (!model->proto->has_graph() || !model->proto->has_ir_version())
    return badInput("not an ONNX model: it has no {}; the file may be of another format",
                    model->proto->has_graph() ? "ir_version" : "graph");
  model->file = std::move(bytes);
  model->folder = folder;
  return model;
}

Expected<TensorData> ModelFile::read(const onnx::TensorProto &tensor) {
  TensorData data;
  data.type = elementType(tensor.data_type());
  if (data.type == DVT_UNDEFINED || data.type == DVT_STRING)
    return badInput("tensor '{}' has the element type {}, which is not supported yet",
                    tensor.name(), elementTypeName(tensor.data_type()));
  if (tensor.has_segment())
    return badInput("tensor '{}' is stored in segments, which are not supported", tensor.name());
  for (int64_t extent : tensor.dims()) {
    if (extent < 0 || __builtin_mul_overflow(data.elements, extent, &data.elements) ||
        data.elements > int64_t(1) << 48)
      return badInput("tensor '{}' has impossible extents {}", tensor.name(), extentsText(tensor));
    data.extents.push_back(extent);
  }
  uint64_t size = bytesOf(data.type, data.elements);
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL)
    return readExternal(tensor, std::move(data), size);

  if (tensor.has_raw_data() && hasTypedData(tensor))
    return badInput("tensor '{}' has both raw_data and typed data", tensor.name());
  if (hasTypedData(tensor)) {
    std::optional<std::string> decoded = decodeFields(tensor, data.type, data.elements);
    if (!decoded)
      return badInput("tensor '{}' of {}{} has too few elements in its data field, or data in the "
                      "field of another "
                      "type",
                      tensor.name(), elementTypeName(tensor.data_type()), extentsText(tensor));
    auto owner = std::make_shared<const std::string>(std::move(*decoded));
    data.bytes = *owner;
    data.owner = std::move(owner);
    return data;
  }
  if (tensor.raw_data().size() != size)
    return badInput("tensor '{}' of {}{} needs {} bytes of data but has {}", tensor.name(),
                    elementTypeName(tensor.data_type()), extentsText(tensor), size,
                    tensor.raw_data().size());
  auto owner = std::make_shared<const std::string>(tensor.raw_data());
  data.bytes = *owner;
  data.owner = std::move(owner);
  return withCleanBools(std::move(data));
}

Expected<TensorData> ModelFile::readExternal(const onnx::TensorProto &tensor, TensorData data,
                                             uint64_t size) {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
  for (const onnx::StringStringEntryProto &entry : tensor.external_data()) {
    if (entry.key() == "location")
      location = entry.value();
    if (entry.key() != "offset" && entry.key() != "length")
      continue;
    std::optional<uint64_t> number = parseNumber(entry.value());
    if (!number)
      return badInput("tensor '{}': the {} '{}' of its external data is not a number",
                      tensor.name(), entry.key(), entry.value());
    (entry.key() == "offset" ? offset : length.emplace()) = *number;
  }
  Bytes source = file;
  bool itself = location == kModelItself;
  if (!itself) {
    if (folder.empty())
      return badInput("tensor '{}' has external data, but the model was given as bytes, without a "
                      "folder; load it "
                      "from its file",
                      tensor.name());
    auto known = besides.find(location);
    if (known == besides.end()) {
      Expected<Bytes> opened = mapBeside(folder, location);
      if (!opened)
        return badInput("tensor '{}' has external data that cannot be used: {}", tensor.name(),
                        opened.error().message);
      known = besides.emplace(location, std::move(*opened)).first;
    }
    source = known->second;
  }
  uint64_t available = source.content.size();
  if (length.value_or(size) != size)
    return badInput("tensor '{}' of {}{} needs {} bytes of data but has {}", tensor.name(),
                    elementTypeName(tensor.data_type()), extentsText(tensor), size, *length);
  if (offset > available || size > available - offset)
    return badInput("tensor '{}' wants {} bytes at offset {} of '{}', which has only {}",
                    tensor.name(), size, offset, itself ? "the model" : location, available);
  data.bytes = source.content.substr(offset, size);
  data.owner = source.owner;
  return withCleanBools(std::move(data));
}

} // namespace dovetail::importer
