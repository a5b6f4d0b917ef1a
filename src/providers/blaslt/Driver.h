// SPDX-License-Identifier: Apache-2.0
//
// What timing algorithms takes of the device's driver: memory and events. The driver is the one
// that the host has opened; CUDA's and HIP's functions for these differ in name alone.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "providers/blaslt/Dialect.h"

namespace dovetail::blaslt {

class Driver {
public:
  /// `drivers`: as in dvt_host. Null with `reason`.
  static std::shared_ptr<const Driver> open(const std::string &drivers, std::string &reason);

  Status (*allocate)(void **memory, size_t bytes) = nullptr;
  Status (*release)(void *memory) = nullptr;
  Status (*fill)(void *memory, unsigned char value, size_t bytes, DeviceStream) = nullptr;
  Status (*createEvent)(void **event, unsigned flags) = nullptr; ///< flags 0: it takes the time
  Status (*destroyEvent)(void *event) = nullptr;
  Status (*record)(void *event, DeviceStream) = nullptr;
  Status (*wait)(void *event) = nullptr;
  Status (*elapsed)(float *millis, void *from, void *to) = nullptr;
};

/// Device memory, given back with this. Moves only.
class Scratch {
public:
  explicit Scratch(std::shared_ptr<const Driver> driver) : driver(std::move(driver)) {}
  Scratch(Scratch &&other) noexcept
      : driver(std::move(other.driver)), memory(std::exchange(other.memory, nullptr)) {}
  Scratch &operator=(Scratch &&) = delete;
  ~Scratch() {
    if (memory)
      driver->release(memory);
  }
  /// Of `bytes` of ordinary numbers of any type; none where that is 0. False with `reason`.
  bool allocate(uint64_t bytes, std::string &reason);
  void *get() const { return memory; }

private:
  std::shared_ptr<const Driver> driver;
  void *memory = nullptr;
};

/// Runs each of `count` ways some times on the driver's own stream and gives the number of the
/// fastest; nothing with `reason` where none runs. `run` gives it work, or says why it cannot.
std::optional<size_t> findFastest(const Driver &driver, size_t count,
                                  const std::function<std::string(size_t way)> &run,
                                  std::string &reason);

} // namespace dovetail::blaslt
