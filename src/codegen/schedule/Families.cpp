// SPDX-License-Identifier: Apache-2.0
//
// The table of kernel families as propose and prepare see it. Each line has its counterpart in
// codegen/Families.cpp.
#include "codegen/schedule/Families.h"

namespace dovetail::codegen {

const std::vector<ScheduleFamily> &scheduleFamilies() {
  static const std::vector<ScheduleFamily> families = {
      {"pointwise", proposePointwise, packPointwise},
      {"rows", proposeRows, packRows},
      {"affine", proposeAffine, nullptr},
      {"pool", proposePool, packPool},
      {"move", proposeMove, nullptr},
      {"matmul", proposeMatMul, packMatMul},
      {"conv", proposeConvolution, packConvolution},
      {"depthwise", proposeDepthwise, packDepthwise},
      {"winograd", proposeWinograd, packWinograd},
      {"attention", proposeAttention, nullptr},
      {"blockmatmul", proposeBlockMatMul, packBlockMatMul},
      {"int8", proposeInt8, packInt8},
      {"recurrent", proposeRecurrent, packRecurrent, recurrentDemands},
  };
  return families;
}

const ScheduleFamily *findScheduleFamily(std::string_view name) {
  for (const ScheduleFamily &family : scheduleFamilies())
    if (name == family.name)
      return &family;
  return nullptr;
}

} // namespace dovetail::codegen
