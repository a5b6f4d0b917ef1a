// SPDX-License-Identifier: Apache-2.0
//
// The memory of a simulated device: one range of addresses that the host cannot touch. Each block
// lies between bands of a known pattern, in which strays leave their traces.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace simulated {

class DeviceMemory {
public:
  /// Takes addresses for `bytes` and the bands; once.
  void reserve(uint64_t bytes);
  uint64_t allocate(uint64_t bytes); ///< 0: there is not enough
  /// Why it cannot be freed; empty where it was.
  std::string release(uint64_t address);
  void clear();
  uint64_t freeBytes() const { return capacity - used; }
  uint64_t blocks() const { return live.size(); }
  /// Whether an address is one of the device's, allocated or not.
  bool covers(uint64_t address) const { return address - base < reserved; }
  /// Why these bytes are not inside one block; empty where they are.
  std::string check(uint64_t address, uint64_t bytes) const;
  /// Where the block begins that holds the address; 0 where none does.
  uint64_t blockOf(uint64_t address) const;
  /// What was written outside blocks since the last look; empty where nothing was.
  std::string findStrays();

  // Of bytes that were checked.
  void write(uint64_t to, const void *from, uint64_t bytes);
  void read(void *to, uint64_t from, uint64_t bytes);
  void copy(uint64_t to, uint64_t from, uint64_t bytes);
  void fill(uint64_t to, uint8_t value, uint64_t bytes);

  /// While one of these lives, kernels can touch the memory.
  class Opened {
  public:
    explicit Opened(DeviceMemory &memory) : memory(memory) { memory.protect(true); }
    ~Opened() { memory.protect(false); }
    Opened(const Opened &) = delete;

  private:
    DeviceMemory &memory;
  };

private:
  void protect(bool open);
  uint64_t base = 0, reserved = 0, capacity = 0, used = 0, end = 0;
  std::map<uint64_t, uint64_t> live; ///< address -> bytes
};

} // namespace simulated
