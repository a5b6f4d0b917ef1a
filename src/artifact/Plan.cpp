// SPDX-License-Identifier: Apache-2.0
//
// Bytes of kernels that plans share.
#include "artifact/Plan.h"

#include <algorithm>

namespace dovetail {

KernelBytes::KernelBytes(std::vector<uint8_t> bytes) {
  auto own = std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
  first = own->data();
  count = own->size();
  owner = std::move(own);
}

bool operator==(const KernelBytes &a, const KernelBytes &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

} // namespace dovetail
