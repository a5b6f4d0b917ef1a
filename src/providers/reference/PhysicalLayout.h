// SPDX-License-Identifier: Apache-2.0
//
// The layouts of dvt_reorder: layout text of the door in, offsets of elements out. Everything else
// in the reference is row-major.
#pragma once

#include <string_view>

#include "Tensor.h"

namespace dovetail::reference {

class PhysicalLayout {
public:
  /// Unsupported where `text` is not a layout of `rank` dimensions. The empty text is row-major.
  static Status parse(std::string_view text, size_t rank, PhysicalLayout &layout);
  /// Elements in memory, padding included; nothing where they do not fit.
  std::optional<int64_t> physicalCount(const Extents &extents) const;
  /// Copies physical memory into a row-major tensor that has the extents already.
  void read(const void *physical, Tensor &tensor) const;
  /// Copies a row-major tensor into physical memory, zero in the padding.
  void write(const Tensor &tensor, void *physical) const;

  friend bool operator==(const PhysicalLayout &, const PhysicalLayout &) = default;

private:
  struct Block {
    size_t dimension;
    int64_t size;
    friend bool operator==(const Block &, const Block &) = default;
  };
  int64_t offset(const Extents &extents, Extents index) const;
  std::vector<size_t> order;
  std::vector<Block> blocks; ///< outermost first
  Extents blockOf;           ///< product of block sizes for each dimension
};

} // namespace dovetail::reference
