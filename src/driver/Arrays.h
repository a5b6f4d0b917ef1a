// SPDX-License-Identifier: Apache-2.0
//
// Tensors in NumPy's files: .npy (format versions 1 to 3, either byte order, C or Fortran order)
// and .npz (through libzip). bf16 has no NumPy type: it is written as uint16 and read back as such.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dovetail/provider.h"
#include "support/Expected.h"

namespace dovetail {

struct Array {
  dvt_type type = DVT_F32;
  std::vector<int64_t> extents;
  std::vector<uint8_t> bytes; ///< row-major
};

/// BadInput with the file's name for anything that is not a readable array.
Expected<Array> readNpy(const std::string &path);
Expected<std::map<std::string, Array>> readNpz(const std::string &path);
/// Atomic: the file is complete or not there.
Status writeNpz(const std::string &path, const std::vector<std::pair<std::string, Array>> &arrays);
Status writeNpy(const std::string &path, const Array &array);

} // namespace dovetail
