// SPDX-License-Identifier: Apache-2.0
//
// Layouts of tensors as text (see dvt_candidate in provider.h): the order of outer dimensions plus
// inner blocks. Row-major is the empty text; "abcd" is read as the same and printed as the empty
// text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dovetail/provider.h"
#include "support/Expected.h"
#include "support/Extent.h"

namespace dovetail {

struct Layout {
  struct Block {
    unsigned dimension;
    int64_t size;
    friend bool operator==(const Block &, const Block &) = default;
  };
  std::vector<unsigned>
      order; ///< logical dimensions, outermost first; empty means row-major of any rank
  std::vector<Block> blocks; ///< outermost block first

  static Expected<Layout> parse(std::string_view text);
  std::string text() const;
  bool isRowMajor() const;
  /// Product of block sizes for each logical dimension (rank of them).
  std::vector<int64_t> blockOf(unsigned rank) const;
  /// Elements held in memory, padding included.
  int64_t physicalElements(const std::vector<int64_t> &extents) const;
  Extent physicalElements(const std::vector<Extent> &extents) const;
  /// Offset in elements of the element at logical `index`.
  int64_t offset(const std::vector<int64_t> &extents, const std::vector<int64_t> &index) const;
  friend bool operator==(const Layout &, const Layout &) = default;
};

/// The layout that stands for all those in which a tensor of these extents has the same bytes as in
/// `text`: a dimension of one block, and one that a single block fills, have no place of their own.
/// Symbols are taken as any number. A text that cannot be read is given back.
std::string canonicalLayout(const std::string &text, const std::vector<Extent> &extents);
/// Whether a tensor of these extents has the same bytes in both layouts, as far as that is known.
bool isSameLayout(const std::string &one, const std::string &other,
                  const std::vector<Extent> &extents);

/// Copies a dense tensor from one layout to another, zero in the padding. Any type of whole bytes.
/// Plain and slow: for tests, loading and fallbacks; measured kernels do it in plans.
void reorder(dvt_type type, const std::vector<int64_t> &extents, const Layout &from,
             const void *source, const Layout &to, void *destination);

} // namespace dovetail
