// SPDX-License-Identifier: Apache-2.0
//
// Page-locked host memory through which bytes come to a device and back, so that a transfer needs
// no copy inside the driver and goes on while the host does something else. Where the driver has no
// such memory left, transfers go from and to ordinary memory, which is said.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device/Device.h"
#include "support/Log.h"

namespace dovetail {

/// That of one session: each of a frame's transfers has a place of its own, which nobody else
/// touches until the session has waited for it.
class Staging {
public:
  static constexpr uint64_t kMostBytes = uint64_t(256) << 20; ///< of a frame's transfers
  static constexpr uint64_t kNoPlace = UINT64_MAX;            ///< a transfer without staging
  /// The next free place for `bytes` where `taken` are in use, which it advances.
  static uint64_t place(uint64_t bytes, uint64_t &taken);

  static Expected<std::unique_ptr<Staging>> create(std::shared_ptr<device::Device> device,
                                                   std::shared_ptr<device::Stream> stream);
  /// Room for transfers of so many bytes together. Nothing is under way.
  void reserve(uint64_t bytes, const Log &log);

  /// Gives the transfer to the stream; `from` may change when this returns.
  Status toDevice(device::DeviceAddress to, const void *from, uint64_t bytes, uint64_t place);
  /// Likewise back: `to` has the bytes after the next arrive(), in whose messages `step` is theirs.
  Status toHost(void *to, device::DeviceAddress from, uint64_t bytes, uint64_t place,
                uint32_t step);
  bool isAwaited() const { return !awaited.empty(); }
  uint32_t awaitedStep() const { return awaited.back().step; }
  /// Waits for all that was given to toHost(), but for nothing that was given to the stream later.
  Status arrive();
  /// Forgets what is awaited; the stream was waited for.
  void drop() { awaited.clear(); }

private:
  struct Awaited {
    void *to;
    const uint8_t *from; ///< null: it is there already
    uint64_t bytes;
    uint32_t step;
  };
  Staging(std::shared_ptr<device::Device> device, std::shared_ptr<device::Stream> stream)
      : device(std::move(device)), stream(std::move(stream)) {}
  uint8_t *at(uint64_t place, uint64_t bytes) const;

  std::shared_ptr<device::Device> device;
  std::shared_ptr<device::Stream> stream;
  std::unique_ptr<device::Event> arrived; ///< recorded behind the last transfer to the host
  device::PinnedMemory memory;
  bool isRefused = false; ///< the driver had no more
  std::vector<Awaited> awaited;
};

/// Brings constants to a device: two halves of page-locked memory, of which one is filled while the
/// other travels.
class Upload {
public:
  /// Without page-locked memory where the driver has none.
  static Expected<std::unique_ptr<Upload>> create(std::shared_ptr<device::Device> device,
                                                  const Log &log);
  /// Returns when the bytes are there.
  Status bring(device::DeviceAddress to, const void *from, uint64_t bytes);

private:
  struct Half {
    device::PinnedMemory memory;
    std::unique_ptr<device::Event> done;
    bool travels = false;
  };
  explicit Upload(std::shared_ptr<device::Device> device) : device(std::move(device)) {}

  std::shared_ptr<device::Device> device;
  std::unique_ptr<device::Stream> stream;
  Half halves[2];
};

} // namespace dovetail
