// SPDX-License-Identifier: Apache-2.0
//
// Memory descriptors between oneDNN's strides and blocks and the layout text of the plug-in door.
// The text is the same as the names of oneDNN's format tags, which is how blocked layouts are made:
// their descriptors are opaque and only a tag can create one.
#include "providers/onednn/Api.h"

#include <omp.h>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace dovetail::onednn {

struct Desc::Blocking {
  Dims dims, padded, strides, blockSizes, blockDims;
  /// Product of inner blocks of each dimension.
  Dims blockOf() const {
    Dims result(dims.size(), 1);
    for (size_t i = 0; i < blockDims.size(); ++i)
      result[static_cast<size_t>(blockDims[i])] *= blockSizes[i];
    return result;
  }
};

Desc::Desc(const Desc &other) : library(other.library) {
  if (other.handle)
    library->memory_desc_clone(&handle, other.handle);
}

Desc Desc::strided(const Library &library, dnnl_data_type_t type, const Dims &dims,
                   const Dims &strides) {
  dnnl_memory_desc_t made = nullptr;
  if (dims.size() > DNNL_MAX_NDIMS ||
      library.memory_desc_create_with_strides(&made, static_cast<int>(dims.size()), dims.data(),
                                              type, strides.data()) != dnnl_success)
    return {};
  return Desc(library, made);
}

Desc Desc::any(const Library &library, dnnl_data_type_t type, const Dims &dims) {
  dnnl_memory_desc_t made = nullptr;
  if (dims.size() > DNNL_MAX_NDIMS ||
      library.memory_desc_create_with_tag(&made, static_cast<int>(dims.size()), dims.data(), type,
                                          dnnl_format_tag_any) != dnnl_success)
    return {};
  return Desc(library, made);
}

Desc Desc::withLayout(const Library &library, dnnl_data_type_t type, const Dims &dims,
                      const std::string &layout) {
  if (layout.empty())
    return strided(library, type, dims, providers::denseStrides(dims));
  bool blocked =
      std::any_of(layout.begin(), layout.end(), [](unsigned char c) { return !std::islower(c); });
  if (!blocked) {
    if (layout.size() != dims.size())
      return {};
    Dims strides(dims.size(), 0);
    int64_t stride = 1;
    for (size_t i = layout.size(); i-- > 0;) {
      size_t dim = static_cast<size_t>(layout[i] - 'a');
      if (dim >= dims.size() || strides[dim] != 0)
        return {};
      strides[dim] = stride;
      stride *= std::max<int64_t>(dims[dim], 1);
    }
    return strided(library, type, dims, strides);
  }
  for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; ++tag) {
    if (layout != library.fmt_tag2str(static_cast<dnnl_format_tag_t>(tag)))
      continue;
    dnnl_memory_desc_t made = nullptr;
    if (library.memory_desc_create_with_tag(&made, static_cast<int>(dims.size()), dims.data(), type,
                                            static_cast<dnnl_format_tag_t>(tag)) != dnnl_success)
      return {};
    return Desc(library, made);
  }
  return {};
}

Desc Desc::clone(const Library &library, const_dnnl_memory_desc_t from) {
  dnnl_memory_desc_t made = nullptr;
  if (!from || library.memory_desc_clone(&made, from) != dnnl_success)
    return {};
  return Desc(library, made);
}

std::optional<Desc::Blocking> Desc::blocking() const {
  dnnl_format_kind_t kind = dnnl_format_kind_undef;
  int ndims = 0, blocks = 0;
  if (!handle ||
      library->memory_desc_query(handle, dnnl_query_format_kind, &kind) != dnnl_success ||
      kind != dnnl_blocked ||
      library->memory_desc_query(handle, dnnl_query_ndims_s32, &ndims) != dnnl_success ||
      library->memory_desc_query(handle, dnnl_query_inner_nblks_s32, &blocks) != dnnl_success)
    return std::nullopt;
  auto list = [&](dnnl_query_t what, int count) {
    const dnnl_dims_t *found = nullptr;
    if (count == 0 || library->memory_desc_query(handle, what, &found) != dnnl_success || !found)
      return Dims();
    return Dims(*found, *found + count);
  };
  return Blocking{list(dnnl_query_dims, ndims), list(dnnl_query_padded_dims, ndims),
                  list(dnnl_query_strides, ndims), list(dnnl_query_inner_blks, blocks),
                  list(dnnl_query_inner_idxs, blocks)};
}

Dims Desc::dims() const {
  int ndims = 0;
  const dnnl_dims_t *found = nullptr;
  if (!handle || library->memory_desc_query(handle, dnnl_query_ndims_s32, &ndims) != dnnl_success ||
      ndims == 0 || library->memory_desc_query(handle, dnnl_query_dims, &found) != dnnl_success)
    return {};
  return Dims(*found, *found + ndims);
}

dnnl_data_type_t Desc::type() const {
  dnnl_data_type_t found = dnnl_data_type_undef;
  if (handle)
    library->memory_desc_query(handle, dnnl_query_data_type, &found);
  return found;
}

bool Desc::isSame(const Desc &other) const {
  return handle && other.handle && library->memory_desc_equal(handle, other.handle);
}

bool Desc::isEquivalent(const Desc &other) const {
  if (isSame(other))
    return true;
  std::optional<Blocking> a = blocking(), b = other.blocking();
  // Sizes differ where a layout keeps sums of weights beside them.
  if (!a || !b || bytes() != other.bytes() || a->dims != b->dims || a->padded != b->padded ||
      a->blockSizes != b->blockSizes || a->blockDims != b->blockDims)
    return false;
  Dims blocks = a->blockOf();
  for (size_t i = 0; i < a->dims.size(); ++i)
    if (a->padded[i] / blocks[i] != 1 && a->strides[i] != b->strides[i])
      return false;
  return true;
}

std::optional<std::string> Desc::layout(const std::vector<int> &axes) const {
  std::optional<Blocking> found = blocking();
  if (!found || axes.size() != found->dims.size())
    return std::nullopt;
  const size_t rank = axes.size();
  Dims blocks = found->blockOf(), outer(rank);
  int64_t inner = 1;
  for (size_t i = 0; i < rank; ++i) {
    outer[i] = found->padded[i] / blocks[i];
    inner *= blocks[i];
    if (found->padded[i] - found->dims[i] >= blocks[i])
      return std::nullopt;
  }
  // By logical axis first, so that extents of 1, whose strides mean nothing, stay in their natural
  // places.
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return axes[a] < axes[b]; });
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return found->strides[a] > found->strides[b]; });
  int64_t stride = inner;
  for (size_t i = rank; i-- > 0;) {
    if (outer[order[i]] != 1 && found->strides[order[i]] != stride)
      return std::nullopt;
    stride *= outer[order[i]];
  }
  std::string text;
  // Row-major when elements that differ in memory order come in logical order, each axis whole.
  bool rowMajor = found->padded == found->dims;
  int before = -1;
  auto step = [&](int64_t extent, int axis) {
    if (extent == 1)
      return;
    rowMajor &= axis >= before;
    before = axis;
  };
  for (size_t dim : order) {
    char letter = static_cast<char>('a' + axes[dim]);
    text += blocks[dim] > 1 ? static_cast<char>(letter - 'a' + 'A') : letter;
    step(outer[dim], axes[dim]);
  }
  for (size_t i = 0; i < found->blockSizes.size(); ++i)
    step(found->blockSizes[i], axes[static_cast<size_t>(found->blockDims[i])]);
  if (rowMajor)
    return std::string();
  for (size_t i = 0; i < found->blockSizes.size(); ++i)
    text += std::to_string(found->blockSizes[i]) +
            static_cast<char>('a' + axes[static_cast<size_t>(found->blockDims[i])]);
  return text;
}

dnnl_data_type_t dataType(dvt_type type) {
  switch (type) {
  case DVT_F32:
    return dnnl_f32;
  case DVT_F16:
    return dnnl_f16;
  case DVT_BF16:
    return dnnl_bf16;
  case DVT_I32:
    return dnnl_s32;
  case DVT_I8:
    return dnnl_s8;
  case DVT_U8:
    return dnnl_u8;
  default:
    return dnnl_data_type_undef;
  }
}

std::string implementation(const Library &library, const PrimitiveDesc &description) {
  const char *name = nullptr;
  if (library.primitive_desc_query(description.get(), dnnl_query_impl_info_str, 0, &name) !=
          dnnl_success ||
      !name)
    return "unknown";
  return name;
}

Desc argumentDesc(const Library &library, const PrimitiveDesc &description, int argument) {
  const_dnnl_memory_desc_t found =
      argument == DNNL_ARG_SCRATCHPAD
          ? library.primitive_desc_query_md(description.get(), dnnl_query_scratchpad_md, 0)
          : library.primitive_desc_query_md(description.get(), dnnl_query_exec_arg_md, argument);
  Desc desc = Desc::clone(library, found);
  return desc.bytes() == 0 ? Desc() : std::move(desc);
}

bool canReorder(const Library &library, const Desc &from, const Desc &to) {
  dnnl_primitive_desc_t made = nullptr;
  if (library.reorder_primitive_desc_create(&made, from.get(), library.engine, to.get(),
                                            library.engine, nullptr) != dnnl_success)
    return false;
  PrimitiveDesc owned(library, made);
  return true;
}

TeamSize::TeamSize(uint32_t threads) : before(omp_get_max_threads()) {
  if (static_cast<int>(threads) != before && threads > 0)
    omp_set_num_threads(static_cast<int>(threads));
}

TeamSize::~TeamSize() {
  if (omp_get_max_threads() != before)
    omp_set_num_threads(before);
}

NoPrimitiveCache::NoPrimitiveCache(const Library &library) : library(library) {
  std::lock_guard guard(library.cache.mutex);
  if (library.cache.users++ > 0)
    return;
  library.get_primitive_cache_capacity(&library.cache.capacity);
  library.set_primitive_cache_capacity(0);
}

NoPrimitiveCache::~NoPrimitiveCache() {
  std::lock_guard guard(library.cache.mutex);
  if (--library.cache.users == 0)
    library.set_primitive_cache_capacity(library.cache.capacity);
}

} // namespace dovetail::onednn
