// SPDX-License-Identifier: Apache-2.0
//
// Files read by mapping and written atomically. A reader never sees half a file: writing goes to a
// temporary file in the same folder, which is synced and renamed over the target at the end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "support/Expected.h"

namespace dovetail {

/// A file mapped read-only; pages come in when touched and can be evicted. Shared by all who use
/// its bytes.
class MappedFile {
public:
  static Expected<std::shared_ptr<MappedFile>> open(const std::string &path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  const uint8_t *data() const { return bytes; }
  uint64_t size() const { return length; }
  const std::string &path() const { return name; }
  /// Lets the pages that lie fully inside [offset, offset + count) go; they are read again when
  /// touched.
  void evict(uint64_t offset, uint64_t count) const;
  /// Lets the pages that [offset, offset + count) touches be executed where they are mapped; false
  /// where the system does not. `offset` is that of a page.
  bool makeExecutable(uint64_t offset, uint64_t count) const;
  /// Brings the pages of [offset, offset + count) in at once, which is faster than one by one. A
  /// hint: they come in when touched anyway.
  void populate(uint64_t offset, uint64_t count) const;

private:
  MappedFile() = default;
  std::string name;
  const uint8_t *bytes = nullptr;
  uint64_t length = 0;
};

/// Success where a file can be written: the folder is there and what has the name, if anything, is
/// a regular file. Asked before long work, so that it is not done in vain.
Status checkWritable(const std::string &path);

/// Writes a file from front to back. Without commit() nothing is left behind. Only regular files
/// are replaced: a rename would put a file in the place of a device.
class AtomicFile {
public:
  static Expected<std::unique_ptr<AtomicFile>> create(const std::string &path);
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;
  Status write(const void *data, uint64_t bytes);
  Status write(std::string_view text) { return write(text.data(), text.size()); }
  /// Zero bytes up to the next multiple of `alignment`.
  Status pad(uint64_t alignment);
  /// Overwrites bytes that were written before.
  Status rewrite(uint64_t offset, const void *data, uint64_t bytes);
  uint64_t position() const { return written; }
  /// Syncs and renames. The object is of no use afterwards.
  Status commit();

private:
  AtomicFile() = default;
  Status failure(const char *what) const;
  std::string target, temporary;
  int descriptor = -1;
  uint64_t written = 0;
};

Status writeFile(const std::string &path, std::string_view content);
/// The whole file, which must not be larger than `limit` bytes.
Expected<std::string> readFile(const std::string &path, uint64_t limit = uint64_t(1) << 31);

} // namespace dovetail
