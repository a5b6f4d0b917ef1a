// SPDX-License-Identifier: Apache-2.0
#include "plan/CoverKeys.h"

namespace dovetail::plan {

size_t KeyTable::slotOf(KeyView key, uint32_t hash) const {
  const size_t mask = slots.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask)
    if (const Slot &slot = slots[at];
        slot.number == kNone ||
        (slot.hash == hash && std::ranges::equal((*this)[slot.number], key)))
      return at;
}

std::pair<uint32_t, bool> KeyTable::add(KeyView key) {
  const size_t known = starts.size() - 1;
  if (slots.size() < 2 * (known + 1))
    grow();
  const uint32_t hash = hashOf(key);
  Slot &slot = slots[slotOf(key, hash)];
  if (slot.number != kNone)
    return {slot.number, false};
  slot = {static_cast<uint32_t>(known), hash};
  facts.insert(facts.end(), key.begin(), key.end());
  starts.push_back(facts.size());
  return {slot.number, true};
}

void KeyTable::grow() {
  constexpr size_t kFewest = 16;
  std::vector<Slot> before(std::max(kFewest, 2 * slots.size()));
  before.swap(slots);
  const size_t mask = slots.size() - 1;
  for (const Slot &slot : before) {
    if (slot.number == kNone)
      continue;
    size_t at = slot.hash & mask;
    while (slots[at].number != kNone)
      at = (at + 1) & mask;
    slots[at] = slot;
  }
}

} // namespace dovetail::plan
