// SPDX-License-Identifier: Apache-2.0
//
// XXH3 128-bit digests, streamed or of a whole block, as bytes and as lower-case hex. They identify
// content and notice damage; they do not resist an attacker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace dovetail {

using Digest = std::array<uint8_t, 16>;

class Hasher {
public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher &) = delete;
  Hasher &operator=(const Hasher &) = delete;
  void update(const void *data, size_t bytes);
  void update(std::string_view text) { update(text.data(), text.size()); }
  /// Of everything so far; more may follow.
  Digest digest() const;

private:
  XXH3_state_s *state;
};

Digest digestOf(const void *data, size_t bytes);
std::string hexText(const Digest &digest);
/// hexText(digestOf(...)).
std::string hashHex(std::string_view text);

} // namespace dovetail
