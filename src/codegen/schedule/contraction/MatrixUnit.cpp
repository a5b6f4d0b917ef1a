// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's warp-level mma of PTX (sm_80 and later) and AMD's mfma of CDNA 2 and 3. f32 becomes tf32
// on the former and stays what it is on the latter.
#include "codegen/schedule/contraction/MatrixUnit.h"

#include <algorithm>

#include <fmt/format.h>

namespace dovetail::codegen {

const std::vector<MatrixUnit> &MatrixUnit::all() {
  using enum Vendor;
  static const std::vector<MatrixUnit> units = {
      {Nvidia, DVT_F16, "f16", 16, 8, 16, 32, 4, 2, 4},
      {Nvidia, DVT_BF16, "bf16", 16, 8, 16, 32, 4, 2, 4},
      {Nvidia, DVT_F32, "tf32", 16, 8, 8, 32, 4, 2, 4},
      {Amd, DVT_F16, "f16", 16, 16, 16, 64, 2, 2, 4},
      {Amd, DVT_BF16, "bf16", 16, 16, 16, 64, 2, 2, 4},
      {Amd, DVT_F32, "f32", 16, 16, 4, 64, 1, 1, 4},
  };
  return units;
}

const MatrixUnit *MatrixUnit::find(const Machine &machine, dvt_type left, dvt_type right) {
  if (!machine.isDevice() || left != right)
    return nullptr;
  Vendor vendor = machine.isa.isCuda() ? Vendor::Nvidia : Vendor::Amd;
  auto found = std::find_if(all().begin(), all().end(), [&](const MatrixUnit &unit) {
    return unit.vendor == vendor && unit.type == left;
  });
  return found == all().end() ? nullptr : &*found;
}

std::string MatrixUnit::function() const {
  return fmt::format("dovetail_{}_{}x{}x{}_{}", vendor == Vendor::Nvidia ? "mma" : "mfma", rows,
                     columns, depth, numerics);
}

} // namespace dovetail::codegen
