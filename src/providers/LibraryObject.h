// SPDX-License-Identifier: Apache-2.0
//
// Objects of vendor libraries as owning values. Header-only, shared by providers.
#pragma once

#include <utility>

namespace dovetail::providers {

/// An object of a library, given back when it goes. Moves only; the library must outlive it.
template <typename Ref> class Owned {
public:
  using Create = int (*)(Ref *);
  using Destroy = int (*)(Ref);
  Owned() = default;
  Owned(Ref made, Destroy destroy) : ref(made), destroy(destroy) {}
  /// `turn` takes note of a failure, after which nothing is made.
  template <typename Turn>
  Owned(Turn &turn, Create create, Destroy destroy, const char *what) : destroy(destroy) {
    if (!turn.isFine() || !turn.check(create(&ref), what))
      ref = nullptr;
  }
  Owned(Owned &&other) noexcept { *this = std::move(other); }
  Owned &operator=(Owned &&other) noexcept {
    std::swap(ref, other.ref);
    std::swap(destroy, other.destroy);
    return *this;
  }
  ~Owned() {
    if (ref)
      destroy(ref);
  }
  Ref get() const { return ref; }

private:
  Ref ref = nullptr;
  Destroy destroy = nullptr;
};

} // namespace dovetail::providers
