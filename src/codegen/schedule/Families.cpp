// SPDX-License-Identifier: Apache-2.0
//
// The table of kernel families as propose and prepare see it. Each line has its counterpart in
// codegen/Families.cpp.
#include "codegen/schedule/Families.h"

namespace dovetail::codegen {

const std::vector<ScheduleFamily> &scheduleFamilies() {
  static const std::vector<ScheduleFamily> families = {
      {"pointwise", proposePointwise, packPointwise, nullptr, ScheduleFamily::Anywhere},
      {"rows", proposeRows, packRows, nullptr, ScheduleFamily::Anywhere},
      {"affine", proposeAffine, nullptr, nullptr, ScheduleFamily::Anywhere},
      {"pool", proposePool, packPool, nullptr, ScheduleFamily::Anywhere},
      {"move", proposeMove, nullptr, nullptr, ScheduleFamily::Anywhere},
      {"matmul", proposeMatMul, packMatMul},
      {"conv", proposeConvolution, packConvolution},
      {"depthwise", proposeDepthwise, packDepthwise},
      {"winograd", proposeWinograd, packWinograd},
      {"separable", proposeSeparable, packSeparable},
      {"attention", proposeAttention, nullptr},
      {"blockmatmul", proposeBlockMatMul, packBlockMatMul},
      {"int8", proposeInt8, packInt8},
      {"devicematmul", proposeDeviceMatMul, nullptr, nullptr, ScheduleFamily::Device},
      {"deviceconv", proposeDeviceConvolution, nullptr, nullptr, ScheduleFamily::Device},
      {"deviceattention", proposeDeviceAttention, nullptr, nullptr, ScheduleFamily::Device},
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
