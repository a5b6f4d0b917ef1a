// SPDX-License-Identifier: Apache-2.0
//
// What is known of the values that go in and out of the body of a Loop or Scan. A value carried
// from one iteration to the next may change its extents on the way: those that do are symbols
// inside the body. Extents that only the body knows mean nothing outside of it.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "graph/shapes/InferContext.h"

namespace dovetail::graph {

/// A new symbol for dimension `dimension`.
using FreshExtent = std::function<Extent(size_t dimension)>;

/// Makes a symbol of every extent of a body's argument that is another one after an iteration,
/// `yielded`; whether there was any. The ranks must agree.
bool generalize(Shape &argument, const Shape &yielded, const FreshExtent &fresh);

/// Extents of a carried value after the last of any number of iterations, none included.
Shape afterIterations(const Shape &initial, const Shape &argument, const FreshExtent &fresh);

/// Extents of `length` elements stacked up along a new axis; `outside` has the symbols that are
/// known around the body.
Shape stacked(const Shape &element, const Extent &length, size_t axis,
              const std::set<std::string> &outside, const FreshExtent &fresh);

/// The extents with 0 for those with symbols that `outside` lacks.
Shape knownOutside(const Shape &shape, const std::set<std::string> &outside);

/// Extents of the elements of a tensor along an axis.
Shape elementsAlong(const Shape &whole, size_t axis);

} // namespace dovetail::graph
