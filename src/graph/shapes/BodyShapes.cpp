// SPDX-License-Identifier: Apache-2.0
//
// Extent by extent.
#include "graph/shapes/BodyShapes.h"

#include <algorithm>

namespace dovetail::graph {

bool generalize(Shape &argument, const Shape &yielded, const FreshExtent &fresh) {
  bool any = false;
  for (size_t d = 0; d < argument.size(); ++d)
    if (argument[d] != yielded[d]) {
      argument[d] = fresh(d);
      any = true;
    }
  return any;
}

Shape afterIterations(const Shape &initial, const Shape &argument, const FreshExtent &fresh) {
  Shape result = initial;
  for (size_t d = 0; d < result.size(); ++d)
    if (argument[d] != initial[d])
      result[d] = fresh(d);
  return result;
}

Shape stacked(const Shape &element, const Extent &length, size_t axis,
              const std::set<std::string> &outside, const FreshExtent &fresh) {
  Shape result;
  for (size_t d = 0; d <= element.size(); ++d) {
    if (d == axis) {
      result.push_back(length);
      continue;
    }
    const Extent &extent = element[d < axis ? d : d - 1];
    std::vector<std::string> symbols =
        extent.isStatic() ? std::vector<std::string>() : extent.symbols();
    bool known = std::all_of(symbols.begin(), symbols.end(),
                             [&](const std::string &name) { return outside.contains(name); });
    result.push_back(known ? extent : fresh(d));
  }
  return result;
}

Shape knownOutside(const Shape &shape, const std::set<std::string> &outside) {
  Shape result;
  for (const Extent &extent : shape) {
    std::vector<std::string> symbols =
        extent.isStatic() ? std::vector<std::string>() : extent.symbols();
    bool known = std::all_of(symbols.begin(), symbols.end(),
                             [&](const std::string &name) { return outside.contains(name); });
    result.push_back(known ? extent : Extent(0));
  }
  return result;
}

Shape elementsAlong(const Shape &whole, size_t axis) {
  Shape element = whole;
  element.erase(element.begin() + static_cast<std::ptrdiff_t>(axis));
  return element;
}

} // namespace dovetail::graph
