// SPDX-License-Identifier: Apache-2.0
//
// The double's older calls: descriptors, and the algorithms that it has for a convolution.
#pragma once

#include "Objects.h"
#include "providers/cudnn/LegacyApi.h"

namespace cudnn_double {

struct LegacyTensor {
  bool isSet = false;
  api::Tensor tensor;
};
struct LegacyConvolution {
  bool isSet = false;
  api::Dims pads, strides, dilations;
  int64_t groups = 1;
  api::MathType math = api::MathType::Default;
};
struct LegacyActivation {
  bool isSet = false;
  api::Operation op;
};

/// Kept apart from descriptors of graphs: neither is taken for the other.
struct LegacyState {
  std::map<Ref, LegacyTensor> tensors, filters;
  std::map<Ref, LegacyConvolution> convolutions;
  std::map<Ref, LegacyActivation> activations;
};
LegacyState &legacy();
/// Descriptors that were made and not destroyed.
uint64_t legacyObjects();

/// One that was filled in; null with the reason in `entry`.
template <typename T>
T *described(Entry &entry, std::map<Ref, T> &all, Ref ref, const char *what, bool isNew = false) {
  const auto found = all.find(ref);
  if (!entry.need(found != all.end(), BadParam, "there is no descriptor of {}", what))
    return nullptr;
  entry.need(isNew || found->second.isSet, BadParam, "the descriptor of {} was not filled in",
             what);
  return entry.isFine() ? &found->second : nullptr;
}

} // namespace cudnn_double
