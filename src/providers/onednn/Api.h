// SPDX-License-Identifier: Apache-2.0
//
// Owning handles over oneDNN's C objects, and memory descriptors with what this provider asks of
// them. This is the thin layer that knows a generation's spelling: descriptors are opaque and
// queried, implementations are stepped through on the primitive descriptor itself.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "providers/ProblemReader.h"
#include "providers/onednn/Library.h"

namespace dovetail::onednn {

using providers::Dims;

/// A move-only handle destroyed by the given function of the library.
template <typename T, auto Destroy> class Handle {
public:
  Handle() = default;
  Handle(const Library &library, T handle) : library(&library), handle(handle) {}
  Handle(Handle &&other) noexcept
      : library(other.library), handle(std::exchange(other.handle, nullptr)) {}
  Handle &operator=(Handle &&other) noexcept {
    std::swap(library, other.library);
    std::swap(handle, other.handle);
    return *this;
  }
  ~Handle() {
    if (handle)
      (library->*Destroy)(handle);
  }
  T get() const { return handle; }
  explicit operator bool() const { return handle != nullptr; }

private:
  const Library *library = nullptr;
  T handle = nullptr;
};

using Stream = Handle<dnnl_stream_t, &Library::stream_destroy>;
using Memory = Handle<dnnl_memory_t, &Library::memory_destroy>;
using Attributes = Handle<dnnl_primitive_attr_t, &Library::primitive_attr_destroy>;
using PostOps = Handle<dnnl_post_ops_t, &Library::post_ops_destroy>;
using PrimitiveDesc = Handle<dnnl_primitive_desc_t, &Library::primitive_desc_destroy>;
using Primitive = Handle<dnnl_primitive_t, &Library::primitive_destroy>;

/// A memory descriptor: shape, type and layout of an operand. Copyable.
class Desc {
public:
  Desc() = default;
  /// Takes over `handle`.
  Desc(const Library &library, dnnl_memory_desc_t handle) : library(&library), handle(handle) {}
  Desc(const Desc &other);
  Desc(Desc &&other) noexcept
      : library(other.library), handle(std::exchange(other.handle, nullptr)) {}
  Desc &operator=(Desc other) noexcept {
    std::swap(library, other.library);
    std::swap(handle, other.handle);
    return *this;
  }
  ~Desc() {
    if (handle)
      library->memory_desc_destroy(handle);
  }

  /// Empty when oneDNN refuses.
  static Desc strided(const Library &library, dnnl_data_type_t type, const Dims &dims,
                      const Dims &strides);
  /// oneDNN chooses the layout.
  static Desc any(const Library &library, dnnl_data_type_t type, const Dims &dims);
  /// `layout` in the text form of provider.h, in terms of `dims`. Empty when oneDNN has no such
  /// layout.
  static Desc withLayout(const Library &library, dnnl_data_type_t type, const Dims &dims,
                         const std::string &layout);
  static Desc clone(const Library &library, const_dnnl_memory_desc_t from);

  const_dnnl_memory_desc_t get() const { return handle; }
  explicit operator bool() const { return handle != nullptr; }
  uint64_t bytes() const { return handle ? library->memory_desc_get_size(handle) : 0; }
  Dims dims() const;
  dnnl_data_type_t type() const;
  bool isSame(const Desc &other) const;
  /// Same bytes in the same places, although strides of extents of 1 may differ.
  bool isEquivalent(const Desc &other) const;
  /// Text of the layout, dimension i spelt as letter 'a' + axes[i]; "" for row-major. Nothing when
  /// it is no dense blocked layout.
  std::optional<std::string> layout(const std::vector<int> &axes) const;

private:
  struct Blocking;
  std::optional<Blocking> blocking() const;
  const Library *library = nullptr;
  dnnl_memory_desc_t handle = nullptr;
};

/// Type of elements in oneDNN; undefined where there is none.
dnnl_data_type_t dataType(dvt_type type);

/// Name of the implementation a primitive descriptor stands at.
std::string implementation(const Library &library, const PrimitiveDesc &description);
/// Descriptor of an execution argument, DNNL_ARG_SCRATCHPAD included; empty when it takes none.
Desc argumentDesc(const Library &library, const PrimitiveDesc &description, int argument);

/// Whether the library brings elements from one layout into another.
bool canReorder(const Library &library, const Desc &from, const Desc &to);

/// While it lives, OpenMP teams of this thread have `threads` threads. oneDNN on OpenMP takes the
/// size of the team when a primitive is created and asks for as many when it runs; the host owns
/// the number.
class TeamSize {
public:
  explicit TeamSize(uint32_t threads);
  ~TeamSize();
  TeamSize(const TeamSize &) = delete;
  TeamSize &operator=(const TeamSize &) = delete;

private:
  int before;
};

/// While one of them lives, oneDNN's process-wide primitive cache is off: after a hit in it,
/// stepping to the next implementation gives the first one again. Any thread may have one.
class NoPrimitiveCache {
public:
  explicit NoPrimitiveCache(const Library &library);
  ~NoPrimitiveCache();
  NoPrimitiveCache(const NoPrimitiveCache &) = delete;
  NoPrimitiveCache &operator=(const NoPrimitiveCache &) = delete;

private:
  const Library &library;
};

} // namespace dovetail::onednn
