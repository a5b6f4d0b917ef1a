// SPDX-License-Identifier: Apache-2.0
//
// In what terms the frontier of a cover is told: facts, and keys made of them. A search meets the
// same keys again and again and holds many, so tables keep them one behind the other and give them
// numbers, in order of arrival.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace dovetail::plan {

/// One thing the rest must know, ordered by the position at which it matters.
using Fact = uint64_t;
/// A state of the frontier: facts in descending order, each once.
using Key = std::vector<Fact>;
using KeyView = std::span<const Fact>;

enum class FactKind : uint8_t {
  Taken, ///< the value was given before; matters at the lowest position where it could be again
  Need,  ///< (value, layout) must exist
  Given  ///< (value, layout) comes from an option that was taken for a later value
};

inline Fact makeFact(uint32_t position, FactKind kind, uint32_t detail) {
  return uint64_t(position) << 34 | uint64_t(kind) << 32 | detail;
}
inline uint32_t positionOf(Fact fact) { return static_cast<uint32_t>(fact >> 34); }
inline FactKind kindOf(Fact fact) { return static_cast<FactKind>(fact >> 32 & 3); }
inline uint32_t detailOf(Fact fact) { return static_cast<uint32_t>(fact); }

inline void sortFacts(Key &key) {
  std::sort(key.begin(), key.end(), std::greater<>());
  key.erase(std::unique(key.begin(), key.end()), key.end());
}
/// `key` becomes both together.
inline void uniteFacts(KeyView one, KeyView other, Key &key) {
  key.clear();
  std::set_union(one.begin(), one.end(), other.begin(), other.end(), std::back_inserter(key),
                 std::greater<>());
}

/// A view of a key lasts until another one is added.
class KeyTable {
public:
  static constexpr uint32_t kNone = UINT32_MAX;

  KeyView operator[](uint32_t number) const {
    return {facts.data() + starts[number], starts[number + 1] - starts[number]};
  }
  /// Its number; kNone where it is not there.
  uint32_t find(KeyView key) const {
    return slots.empty() ? kNone : slots[slotOf(key, hashOf(key))].number;
  }
  /// Its number, and whether it is new.
  std::pair<uint32_t, bool> add(KeyView key);

private:
  static uint32_t hashOf(KeyView key) {
    uint64_t hash = 0x9E3779B97F4A7C15u;
    for (Fact fact : key) {
      hash ^= fact;
      hash *= 0xff51afd7ed558ccdu;
      hash ^= hash >> 32;
    }
    return static_cast<uint32_t>(hash);
  }
  struct Slot {
    uint32_t number = kNone, hash = 0;
  };
  /// Where its number is, or would be.
  size_t slotOf(KeyView key, uint32_t hash) const;
  void grow();

  std::vector<Fact> facts;
  std::vector<size_t> starts{0};
  std::vector<Slot> slots; ///< by hash: a power of two, at most half of them taken
};

} // namespace dovetail::plan
