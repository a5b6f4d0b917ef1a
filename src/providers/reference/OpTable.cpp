// SPDX-License-Identifier: Apache-2.0
//
// Looks ops up in the table of Ops.inc.
#include "Program.h"
#include "ops/Ops.h"

namespace dovetail::reference {

static constexpr OpEntry kOps[] = {
#define REFERENCE_OP(name, kernel, ...) {name, ops::kernel, __VA_ARGS__},
#include "Ops.inc"
#undef REFERENCE_OP
};

const OpEntry *findOp(std::string_view name) {
  for (const OpEntry &entry : kOps)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

} // namespace dovetail::reference
