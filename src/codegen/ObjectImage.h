// SPDX-License-Identifier: Apache-2.0
//
// Links one relocatable object with itself: lays out its code and read-only data in one block that
// runs at any address and refers to nothing outside, so that loading a kernel is copying it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "llvm/ADT/ArrayRef.h"

#include "support/Expected.h"

namespace dovetail::codegen {

struct ObjectImage {
  std::vector<uint8_t> code;
  std::map<std::string, uint32_t> functions; ///< global functions and their offsets in the code
};

/// Internal errors for undefined symbols (code generation called a library), writable data and
/// relocations that depend on the load address.
Expected<ObjectImage> linkObject(llvm::ArrayRef<char> object);

} // namespace dovetail::codegen
