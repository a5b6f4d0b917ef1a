// SPDX-License-Identifier: Apache-2.0
//
// Blocks are cut off one after the other and their addresses never used again, so that what was
// freed is known to be so.
#include "DeviceMemory.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>
#include <sys/mman.h>

namespace simulated {
namespace {

constexpr uint64_t kPage = 4096, kBand = 4096;
constexpr uint8_t kPattern = 0xA5, kFresh = 0xCD;
/// Of addresses, which cost nothing.
constexpr uint64_t kAddresses = uint64_t(1) << 40;

uint64_t roundUp(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
uint8_t *pointer(uint64_t address) { return reinterpret_cast<uint8_t *>(address); }

} // namespace

void DeviceMemory::reserve(uint64_t bytes) {
  if (base)
    return;
  void *memory =
      ::mmap(nullptr, kAddresses, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return; // every allocation fails
  base = end = reinterpret_cast<uint64_t>(memory);
  reserved = kAddresses;
  capacity = bytes;
}

void DeviceMemory::protect(bool open) {
  if (end > base)
    ::mprotect(pointer(base), end - base, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

uint64_t DeviceMemory::allocate(uint64_t bytes) {
  uint64_t span = kBand + roundUp(bytes) + kBand;
  if (bytes > freeBytes() || span > base + reserved - end)
    return 0;
  uint64_t begin = end;
  ::mprotect(pointer(begin), span, PROT_READ | PROT_WRITE);
  uint64_t address = begin + kBand;
  std::memset(pointer(begin), kPattern, kBand);
  std::memset(pointer(address + bytes), kPattern, begin + span - address - bytes);
  std::memset(pointer(address), kFresh, std::min<uint64_t>(bytes, 1 << 20));
  ::mprotect(pointer(begin), span, PROT_NONE);
  end += span;
  live[address] = bytes;
  used += bytes;
  return address;
}

std::string DeviceMemory::release(uint64_t address) {
  auto found = live.find(address);
  if (found == live.end())
    return fmt::format("{:#x} is not the beginning of a block of device memory{}", address,
                       covers(address) ? "; it may have been freed before" : "");
  ::madvise(pointer(address - kBand), kBand + roundUp(found->second) + kBand, MADV_DONTNEED);
  used -= found->second;
  live.erase(found);
  return {};
}

void DeviceMemory::clear() {
  while (!live.empty())
    release(live.begin()->first);
}

std::string DeviceMemory::check(uint64_t address, uint64_t bytes) const {
  if (!covers(address))
    return fmt::format("{:#x} is no device memory", address);
  auto after = live.upper_bound(address);
  auto [begin, size] = after == live.begin() ? std::pair<uint64_t, uint64_t>(address, 0)
                                             : std::pair<uint64_t, uint64_t>(*std::prev(after));
  if (address - begin >= size)
    return fmt::format("{:#x} was freed, or lies beside all blocks", address);
  if (bytes > size - (address - begin))
    return fmt::format("{} bytes from {} on leave a block of {}", bytes, address - begin, size);
  return {};
}

uint64_t DeviceMemory::blockOf(uint64_t address) const {
  auto after = live.upper_bound(address);
  if (after == live.begin())
    return 0;
  auto [begin, size] = *std::prev(after);
  return address - begin < size ? begin : 0;
}

std::string DeviceMemory::findStrays() {
  auto strays = [&](uint64_t from, uint64_t bytes) {
    const uint8_t *first = pointer(from);
    return std::any_of(first, first + bytes, [](uint8_t byte) { return byte != kPattern; });
  };
  std::string found;
  protect(true);
  for (const auto &[address, bytes] : live) {
    uint64_t behind = roundUp(bytes) - bytes + kBand;
    if (strays(address - kBand, kBand))
      found = fmt::format("wrote in front of the block of {} bytes at {:#x}", bytes, address);
    else if (strays(address + bytes, behind))
      found = fmt::format("wrote behind the block of {} bytes at {:#x}", bytes, address);
  }
  protect(false);
  return found;
}

void DeviceMemory::write(uint64_t to, const void *from, uint64_t bytes) {
  Opened opened(*this);
  std::memcpy(pointer(to), from, bytes);
}
void DeviceMemory::read(void *to, uint64_t from, uint64_t bytes) {
  Opened opened(*this);
  std::memcpy(to, pointer(from), bytes);
}
void DeviceMemory::copy(uint64_t to, uint64_t from, uint64_t bytes) {
  Opened opened(*this);
  std::memcpy(pointer(to), pointer(from), bytes);
}
void DeviceMemory::fill(uint64_t to, uint8_t value, uint64_t bytes) {
  Opened opened(*this);
  std::memset(pointer(to), value, bytes);
}

} // namespace simulated
