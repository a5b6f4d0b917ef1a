// SPDX-License-Identifier: Apache-2.0
//
// The attributes of ops that slide a window over an image: made explicit, and auto_pad resolved
// into pads, as provider.h promises. Where SAME padding depends on extents that are not known (a
// stride above one over a symbolic extent) auto_pad stays, and kernels work the padding out when
// they run. Invalid attributes are left to the shape rules, which refuse them.
#pragma once

#include "import/NodeImport.h"

namespace dovetail::importer {

/// Fills in strides, dilations and pads for `spatial` dimensions; false when an attribute is not
/// valid.
bool completeWindow(NodeImport &node, size_t spatial);
/// Elements from the first to the last that the window touches in spatial dimension `d`, both
/// counted.
int64_t windowReach(const NodeImport &node, size_t d);
/// Splits the padding of each dimension to before and behind; an odd one goes behind if `upper`.
std::vector<int64_t> splitPadding(const std::vector<int64_t> &totals, bool upper);
/// Resolves auto_pad of a window that slides over `image` ([batch, channels, spatial...]).
Status resolvePadding(NodeImport &node, const graph::Shape &image);

} // namespace dovetail::importer
