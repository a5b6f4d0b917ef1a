// SPDX-License-Identifier: Apache-2.0
//
// XXH3 through libxxhash, in its canonical (big-endian) byte order, so that digests are the same on
// every machine.
#include "support/Hash.h"

#include <cstring>
#include <new>

#ifdef DOVETAIL_XXHASH_DISPATCHES
#include <xxh_x86dispatch.h> // the widest vectors that the processor has
#else
#include <xxhash.h>
#endif

namespace dovetail {

namespace {

Digest canonical(XXH128_hash_t hash) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  Digest digest;
  static_assert(sizeof(bytes.digest) == sizeof(digest));
  std::memcpy(digest.data(), bytes.digest, digest.size());
  return digest;
}

} // namespace

Hasher::Hasher() : state(XXH3_createState()) {
  if (!state)
    throw std::bad_alloc();
  XXH3_128bits_reset(state);
}

Hasher::~Hasher() { XXH3_freeState(state); }

void Hasher::update(const void *data, size_t bytes) {
  if (bytes)
    XXH3_128bits_update(state, data, bytes);
}

Digest Hasher::digest() const { return canonical(XXH3_128bits_digest(state)); }

Digest digestOf(const void *data, size_t bytes) { return canonical(XXH3_128bits(data, bytes)); }

std::string hexText(const Digest &digest) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : digest) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string hashHex(std::string_view text) { return hexText(digestOf(text.data(), text.size())); }

} // namespace dovetail
