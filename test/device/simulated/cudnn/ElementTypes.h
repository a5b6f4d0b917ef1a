// SPDX-License-Identifier: Apache-2.0
//
// Types of elements as cuDNN numbers them.
#pragma once

#include "dovetail/provider.h"
#include "providers/cudnn/BackendApi.h"

namespace cudnn_double {

inline dvt_type elementType(dovetail::cudnn::DataType type) {
  return type == dovetail::cudnn::DataType::Half       ? DVT_F16
         : type == dovetail::cudnn::DataType::Bfloat16 ? DVT_BF16
                                                       : DVT_F32;
}
inline int64_t elementBytes(dovetail::cudnn::DataType type) {
  return type == dovetail::cudnn::DataType::Float ? 4 : 2;
}

} // namespace cudnn_double
