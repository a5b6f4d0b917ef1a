// SPDX-License-Identifier: Apache-2.0
//
// cuDNN's descriptors as owning objects with typed attributes. Everything reports to a Backend,
// which keeps the first thing that went wrong; after that nothing more is called, so that a chain
// of calls is checked once, at its end.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "providers/cudnn/Library.h"

namespace dovetail::cudnn {

/// One sequence of calls and how it fares. Not shared between threads.
class Backend {
public:
  explicit Backend(const Library &library) : library(library) {
    library.lastError(); // what is left of earlier calls
  }
  bool ok() const { return failure.empty(); }
  bool isFine() const { return ok(); }
  /// What failed first: "finalising the graph: CUDNN_STATUS_...: ...". Empty when nothing did.
  const std::string &reason() const { return failure; }
  void forget() { failure.clear(); }
  /// Records a failure of `doing`; whether all is well.
  bool check(Status status, const char *doing) {
    if (status != 0 && failure.empty())
      failure = std::string(doing) + ": " + library.describe(status);
    return status == 0;
  }
  bool fail(const std::string &why) {
    if (failure.empty())
      failure = why;
    return false;
  }
  const Library &library;

private:
  std::string failure;
};

/// A descriptor. Move-only; `backend`'s library must outlive it.
class Object {
public:
  Object() = default;
  Object(Backend &backend, DescriptorKind kind);
  Object(Object &&other) noexcept
      : library(other.library), descriptor(std::exchange(other.descriptor, nullptr)) {}
  Object &operator=(Object &&other) noexcept {
    std::swap(library, other.library);
    std::swap(descriptor, other.descriptor);
    return *this;
  }
  ~Object() {
    if (descriptor)
      library->BackendDestroyDescriptor(descriptor);
  }
  Descriptor get() const { return descriptor; }
  explicit operator bool() const { return descriptor != nullptr; }

  void set(Backend &backend, Attribute attribute, AttributeType type, int64_t count,
           const void *values) const;
  void set(Backend &backend, Attribute attribute, int64_t value) const {
    set(backend, attribute, AttributeType::Int64, 1, &value);
  }
  void set(Backend &backend, Attribute attribute, const std::vector<int64_t> &values) const {
    set(backend, attribute, AttributeType::Int64, static_cast<int64_t>(values.size()),
        values.data());
  }
  void set(Backend &backend, Attribute attribute, bool value) const {
    set(backend, attribute, AttributeType::Boolean, 1, &value);
  }
  void set(Backend &backend, Attribute attribute, double value) const {
    set(backend, attribute, AttributeType::Double, 1, &value);
  }
  void set(Backend &backend, Attribute attribute, float value) const {
    set(backend, attribute, AttributeType::Float, 1, &value);
  }
  void set(Backend &backend, Attribute attribute, DataType value) const {
    set(backend, attribute, AttributeType::DataType, 1, &value);
  }
  void set(Backend &backend, Attribute attribute, const std::string &text) const {
    set(backend, attribute, AttributeType::Char, static_cast<int64_t>(text.size()), text.data());
  }
  void set(Backend &backend, Attribute attribute, const Object &value) const {
    set(backend, attribute, AttributeType::Descriptor, 1, &value.descriptor);
  }
  void set(Backend &backend, Attribute attribute, const std::vector<Descriptor> &values) const {
    set(backend, attribute, AttributeType::Descriptor, static_cast<int64_t>(values.size()),
        values.data());
  }
  void finalize(Backend &backend, const char *doing) const;

  /// Nothing but what is there: a failure is not recorded, `otherwise` is given.
  int64_t integer(Attribute attribute, int64_t otherwise) const;
  /// An enumerator, as a number.
  int enumerator(Attribute attribute, AttributeType type, int otherwise) const;
  /// A list of them.
  std::vector<int> list(Attribute attribute, AttributeType type) const;
  /// Descriptors of `kind` that this one holds, `most` at most.
  std::vector<Object> objects(Backend &backend, Attribute attribute, DescriptorKind kind,
                              int64_t most) const;
  std::string text(Backend &backend, Attribute attribute) const;

private:
  const Library *library = nullptr;
  Descriptor descriptor = nullptr;
};

} // namespace dovetail::cudnn
