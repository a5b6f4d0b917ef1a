// SPDX-License-Identifier: Apache-2.0
//
// Calls into the library, each only while nothing has failed before.
#include "providers/cudnn/Backend.h"

#include <algorithm>

namespace dovetail::cudnn {

Object::Object(Backend &backend, DescriptorKind kind) : library(&backend.library) {
  if (backend.ok() &&
      !backend.check(library->BackendCreateDescriptor(kind, &descriptor), "making a descriptor"))
    descriptor = nullptr;
}

void Object::set(Backend &backend, Attribute attribute, AttributeType type, int64_t count,
                 const void *values) const {
  if (!backend.ok())
    return;
  const Status status = library->BackendSetAttribute(descriptor, attribute, type, count, values);
  if (status != 0)
    backend.check(status,
                  ("setting attribute " + std::to_string(static_cast<int>(attribute))).c_str());
}

void Object::finalize(Backend &backend, const char *doing) const {
  if (backend.ok())
    backend.check(library->BackendFinalize(descriptor), doing);
}

int64_t Object::integer(Attribute attribute, int64_t otherwise) const {
  int64_t value = 0, count = 0;
  return descriptor &&
                 library->BackendGetAttribute(descriptor, attribute, AttributeType::Int64, 1,
                                              &count, &value) == 0 &&
                 count == 1
             ? value
             : otherwise;
}

int Object::enumerator(Attribute attribute, AttributeType type, int otherwise) const {
  int value = 0;
  int64_t count = 0;
  return descriptor &&
                 library->BackendGetAttribute(descriptor, attribute, type, 1, &count, &value) ==
                     0 &&
                 count == 1
             ? value
             : otherwise;
}

std::vector<int> Object::list(Attribute attribute, AttributeType type) const {
  constexpr int64_t kMost = 64; // the enumerations have ten and five members today
  int values[kMost] = {};
  int64_t count = 0;
  if (!descriptor ||
      library->BackendGetAttribute(descriptor, attribute, type, kMost, &count, values) != 0 ||
      count < 0 || count > kMost)
    return {};
  return std::vector<int>(values, values + count);
}

std::vector<Object> Object::objects(Backend &backend, Attribute attribute, DescriptorKind kind,
                                    int64_t most) const {
  // Asking for their number first would make the library find them twice.
  std::vector<Object> made;
  std::vector<Descriptor> raw;
  for (int64_t i = 0; i < most && backend.ok(); ++i) {
    made.emplace_back(backend, kind);
    raw.push_back(made.back().get());
  }
  int64_t filled = 0;
  if (!backend.ok() ||
      !backend.check(library->BackendGetAttribute(descriptor, attribute, AttributeType::Descriptor,
                                                  most, &filled, raw.data()),
                     "reading descriptors"))
    return {};
  made.resize(static_cast<size_t>(std::clamp<int64_t>(filled, 0, most)));
  return made;
}

std::string Object::text(Backend &backend, Attribute attribute) const {
  int64_t count = 0;
  if (!backend.ok() ||
      !backend.check(library->BackendGetAttribute(descriptor, attribute, AttributeType::Char, 0,
                                                  &count, nullptr),
                     "measuring a text") ||
      count <= 0)
    return {};
  std::string text(static_cast<size_t>(count), '\0');
  if (!backend.check(library->BackendGetAttribute(descriptor, attribute, AttributeType::Char, count,
                                                  &count, text.data()),
                     "reading a text"))
    return {};
  text.resize(static_cast<size_t>(count));
  return text;
}

} // namespace dovetail::cudnn
