// SPDX-License-Identifier: Apache-2.0
//
// oneDNN 2.x behind the functions of 3.x, so that one adapter speaks to both. What differs: op
// descriptors with iterators instead of primitive descriptors that advance, memory descriptors that
// are structures, numbers of enumerators, and the places of a few arguments. Taken from 2.x are the
// primitives whose implementations differ from those of 3.x: convolutions (Winograd is gone from
// 3.x), products, both of floats and of bytes, pooling, recurrent ones, and what packs for them.
#pragma once

#include <string_view>

namespace dovetail::onednn::generation2 {

using AnyFunction = void (*)();

/// The function `name` (without "dnnl_") of the 2.x library that dlopen gave as `opened`, to be
/// called as 3.x declares it; null where 2.x has nothing that does the same, or the library lacks
/// it. "primitive_attr_set_output_scales" is 2.x's own. One library per process: the first one
/// opened is the one that answers.
AnyFunction find(void *opened, std::string_view name);

} // namespace dovetail::onednn::generation2
