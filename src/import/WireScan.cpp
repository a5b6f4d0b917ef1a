// SPDX-License-Identifier: Apache-2.0
//
// The walk: a table says in which fields of which ONNX messages tensors can be found; every other
// field is copied as it stands. A message in which nothing is cut is copied in one piece.
#include "import/WireScan.h"

#include <cstdint>
#include <optional>

namespace dovetail::importer {
namespace {

enum class Message { Model, Graph, Node, Attribute, Function, SparseTensor, Training, Tensor };

/// The message type of a field in which tensors may hide; field numbers as in onnx-ml.proto.
std::optional<Message> childOf(Message parent, uint32_t field) {
  switch (parent) {
  case Message::Model:
    if (field == 7)
      return Message::Graph;
    if (field == 20)
      return Message::Training;
    if (field == 25)
      return Message::Function;
    return std::nullopt;
  case Message::Training:
    if (field == 1 || field == 2)
      return Message::Graph;
    return std::nullopt;
  case Message::Graph:
    if (field == 1)
      return Message::Node;
    if (field == 5)
      return Message::Tensor;
    if (field == 15)
      return Message::SparseTensor;
    return std::nullopt;
  case Message::Function:
    if (field == 7)
      return Message::Node;
    if (field == 11)
      return Message::Attribute;
    return std::nullopt;
  case Message::Node:
    return field == 5 ? std::optional(Message::Attribute) : std::nullopt;
  case Message::Attribute:
    if (field == 5 || field == 10)
      return Message::Tensor;
    if (field == 6 || field == 11)
      return Message::Graph;
    if (field == 22 || field == 23)
      return Message::SparseTensor;
    return std::nullopt;
  case Message::SparseTensor:
    return field == 1 || field == 2 ? std::optional(Message::Tensor) : std::nullopt;
  case Message::Tensor:
    return std::nullopt;
  }
  return std::nullopt;
}

void appendVarint(std::string &to, uint64_t value) {
  while (value >= 0x80) {
    to.push_back(char(value | 0x80));
    value >>= 7;
  }
  to.push_back(char(value));
}

void appendBytesField(std::string &to, uint32_t field, std::string_view bytes) {
  appendVarint(to, uint64_t(field) << 3 | 2);
  appendVarint(to, bytes.size());
  to.append(bytes);
}

void appendExternalData(std::string &to, std::string_view key, std::string_view value) {
  std::string entry;
  appendBytesField(entry, 1, key);
  appendBytesField(entry, 2, value);
  appendBytesField(to, 13, entry);
}

struct Field {
  uint32_t number = 0;
  uint32_t wireType = 0;
  std::string_view whole;   ///< tag and content
  std::string_view content; ///< of a length-delimited field
  uint64_t varint = 0;
};

class Scan {
public:
  explicit Scan(std::string_view model) : model(model) {}

  /// Appends `message` to `kept` without its payloads; false when nothing was cut, and `kept` is as
  /// before.
  Expected<bool> message(Message kind, std::string_view bytes, std::string &kept, unsigned depth) {
    if (depth > kDeepestMessage)
      return badInput("the model's messages are nested deeper than {}", kDeepestMessage);
    if (++messages > kMostMessages)
      return badInput("the model has more than {} nodes, attributes and tensors", kMostMessages);
    if (kind == Message::Tensor)
      return tensor(bytes, kept);
    size_t start = kept.size();
    bool cut = false;
    const char *copied = bytes.data(); // everything before it is in `kept`
    for (std::string_view rest = bytes; !rest.empty();) {
      Expected<Field> field = next(rest);
      if (!field)
        return field.takeError();
      std::optional<Message> child = childOf(kind, field->number);
      if (!child || field->wireType != 2)
        continue;
      std::string inner;
      Expected<bool> innerCut = message(*child, field->content, inner, depth + 1);
      if (!innerCut)
        return innerCut.takeError();
      if (!*innerCut)
        continue;
      cut = true;
      kept.append(copied, field->whole.data());
      appendBytesField(kept, field->number, inner);
      copied = field->whole.data() + field->whole.size();
    }
    if (!cut) {
      kept.resize(start);
      return false;
    }
    kept.append(copied, bytes.data() + bytes.size());
    return true;
  }

private:
  /// raw_data, or the one packed piece of float_data or double_data, whose bytes are the elements
  /// themselves.
  Expected<bool> tensor(std::string_view bytes, std::string &kept) {
    std::string_view payload;
    uint32_t payloadField = 0;
    unsigned pieces = 0;
    uint64_t type = 0;
    bool external = false;
    for (std::string_view rest = bytes; !rest.empty();) {
      Expected<Field> field = next(rest);
      if (!field)
        return field.takeError();
      if (field->number == 2 && field->wireType == 0)
        type = field->varint;
      external |= field->number == 13 || (field->number == 14 && field->varint != 0);
      if (field->number != 4 && field->number != 9 && field->number != 10)
        continue;
      ++pieces;
      if (field->wireType == 2) {
        payload = field->content;
        payloadField = field->number;
      }
    }
    constexpr uint64_t kFloat = 1, kDouble = 11;
    bool elements = payloadField == 9 || (payloadField == 4 && type == kFloat) ||
                    (payloadField == 10 && type == kDouble);
    if (!elements || pieces != 1 || external || payload.size() <= kPayloadThreshold)
      return false;
    for (std::string_view rest = bytes; !rest.empty();) {
      Expected<Field> field = next(rest);
      if (!field)
        return field.takeError();
      if (field->number != payloadField)
        kept.append(field->whole);
    }
    appendExternalData(kept, "location", kModelItself);
    appendExternalData(kept, "offset", std::to_string(payload.data() - model.data()));
    appendExternalData(kept, "length", std::to_string(payload.size()));
    appendVarint(kept, 14 << 3);
    appendVarint(kept, 1); // EXTERNAL
    return true;
  }

  Error malformed(const char *at) const {
    return badInput("not a well-formed ONNX model: broken protobuf data at byte {} of {}; the file "
                    "may be cut short "
                    "or of another format",
                    at - model.data(), model.size());
  }

  static std::optional<uint64_t> varint(std::string_view &rest) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
      auto byte = uint8_t(rest.front());
      rest.remove_prefix(1);
      value |= uint64_t(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return value;
    }
    return std::nullopt;
  }

  /// Takes one field off the front of `rest`.
  Expected<Field> next(std::string_view &rest) const {
    const char *start = rest.data();
    Field field;
    std::optional<uint64_t> tag = varint(rest);
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > (1u << 29) - 1)
      return malformed(start);
    field.number = uint32_t(*tag >> 3);
    field.wireType = uint32_t(*tag & 7);
    uint64_t length = 0;
    if (field.wireType == 0 || field.wireType == 2) {
      std::optional<uint64_t> value = varint(rest);
      if (!value)
        return malformed(start);
      field.varint = *value;
      length = field.wireType == 2 ? *value : 0;
    } else if (field.wireType == 1) {
      length = 8;
    } else if (field.wireType == 5) {
      length = 4;
    } else { // groups: ONNX has none
      return malformed(start);
    }
    if (length > rest.size())
      return malformed(start);
    field.content = rest.substr(0, length);
    rest.remove_prefix(length);
    field.whole = {start, size_t(rest.data() - start)};
    return field;
  }

  std::string_view model;
  size_t messages = 0;
};

} // namespace

Expected<std::string> cutPayloads(std::string_view model) {
  std::string kept;
  Expected<bool> cut = Scan(model).message(Message::Model, model, kept, 0);
  if (!cut)
    return cut.takeError();
  if (!*cut)
    kept.assign(model);
  return kept;
}

} // namespace dovetail::importer
