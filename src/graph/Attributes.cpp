// SPDX-License-Identifier: Apache-2.0
//
// One case for each encoding of the dialect.
#include "graph/Attributes.h"

using namespace mlir;

namespace dovetail::graph {

AttributeMap plainAttributes(DictionaryAttr attributes) {
  AttributeMap map;
  for (NamedAttribute named : attributes) {
    std::string name = named.getName().str();
    Attribute value = named.getValue();
    if (name.find('.') != std::string::npos)
      continue;
    if (auto integer = dyn_cast<IntegerAttr>(value)) {
      map[name] = integer.getInt();
    } else if (auto real = dyn_cast<FloatAttr>(value)) {
      map[name] = real.getValueAsDouble();
    } else if (auto text = dyn_cast<StringAttr>(value)) {
      map[name] = text.str();
    } else if (auto integers = dyn_cast<DenseI64ArrayAttr>(value)) {
      map[name] = std::vector<int64_t>(integers.asArrayRef());
    } else if (auto reals = dyn_cast<DenseF32ArrayAttr>(value)) {
      map[name] = std::vector<double>(reals.asArrayRef().begin(), reals.asArrayRef().end());
    } else if (auto list = dyn_cast<ArrayAttr>(value)) {
      std::string joined;
      for (auto element : list.getAsRange<StringAttr>())
        joined += (joined.empty() ? "" : ",") + element.str();
      map[name] = joined;
    }
  }
  return map;
}

} // namespace dovetail::graph
