// SPDX-License-Identifier: Apache-2.0
//
// POSIX files behind the two classes of File.h. Every failure names the file and the system's
// reason.
#include "support/File.h"

#include <cerrno>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dovetail {

namespace {

class Descriptor {
public:
  explicit Descriptor(int number) : number(number) {}
  ~Descriptor() {
    if (number >= 0)
      ::close(number);
  }
  Descriptor(const Descriptor &) = delete;
  int get() const { return number; }

private:
  int number;
};

/// Whose fault: a wrong path is the user's; a full disk or a lack of rights is this machine's.
Error systemError(const std::string &path, const char *what) {
  int code = errno;
  bool wrongPath = code == ENOENT || code == ENOTDIR || code == EISDIR || code == ENAMETOOLONG ||
                   code == ELOOP || code == EINVAL;
  return {wrongPath ? ErrorKind::BadInput : ErrorKind::Unavailable,
          fmt::format("{}: cannot {}: {}", path, what, std::strerror(code))};
}

std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

} // namespace

Expected<std::shared_ptr<MappedFile>> MappedFile::open(const std::string &path) {
  // Without O_NONBLOCK a pipe would be waited for before it can be refused.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0)
    return systemError(path, "open");
  struct stat about;
  if (::fstat(file.get(), &about) != 0)
    return systemError(path, "look at");
  if (!S_ISREG(about.st_mode))
    return badInput("{}: not a regular file", path);
  std::shared_ptr<MappedFile> result(new MappedFile());
  result->name = path;
  if (about.st_size > 0) {
    void *memory = ::mmap(nullptr, about.st_size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (memory == MAP_FAILED)
      return systemError(path, "map");
    result->bytes = static_cast<const uint8_t *>(memory);
    result->length = about.st_size;
  }
  return result;
}

MappedFile::~MappedFile() {
  if (bytes)
    ::munmap(const_cast<uint8_t *>(bytes), length);
}

void MappedFile::evict(uint64_t offset, uint64_t count) const {
  uint64_t page = ::sysconf(_SC_PAGESIZE);
  if (offset > length || count > length - offset)
    return;
  uint64_t begin = (offset + page - 1) / page * page, end = (offset + count) / page * page;
  if (begin < end)
    ::madvise(const_cast<uint8_t *>(bytes) + begin, end - begin, MADV_DONTNEED);
}

bool MappedFile::makeExecutable(uint64_t offset, uint64_t count) const {
  uint64_t page = ::sysconf(_SC_PAGESIZE);
  if (count == 0 || offset > length || count > length - offset || offset % page != 0)
    return false;
  return ::mprotect(const_cast<uint8_t *>(bytes) + offset, count, PROT_READ | PROT_EXEC) == 0;
}

void MappedFile::populate(uint64_t offset, uint64_t count) const {
#ifdef MADV_POPULATE_READ
  uint64_t page = ::sysconf(_SC_PAGESIZE);
  if (offset > length || count > length - offset)
    return;
  uint64_t begin = offset / page * page;
  ::madvise(const_cast<uint8_t *>(bytes) + begin, offset + count - begin, MADV_POPULATE_READ);
#else
  (void)offset, (void)count;
#endif
}

Status checkWritable(const std::string &path) {
  struct stat about;
  std::string folder = folderOf(path);
  if (path.empty() || path.back() == '/')
    return badInput("'{}' is no name of a file to write", path);
  if (::stat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode))
    return badInput("{}: cannot be written: it is {}; give the name of a file", path,
                    S_ISDIR(about.st_mode) ? "a folder" : "not a regular file");
  if (::stat(folder.c_str(), &about) != 0 || !S_ISDIR(about.st_mode))
    return badInput("{}: cannot be written: there is no folder {}; create it or give another name",
                    path, folder);
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return systemError(path, "be written into its folder");
  return Status::success();
}

Expected<std::unique_ptr<AtomicFile>> AtomicFile::create(const std::string &path) {
  if (Status status = checkWritable(path); !status)
    return status.takeError();
  std::unique_ptr<AtomicFile> file(new AtomicFile());
  file->target = path;
  std::string name = path + ".XXXXXX";
  std::vector<char> buffer(name.c_str(), name.c_str() + name.size() + 1);
  file->descriptor = ::mkostemp(buffer.data(), O_CLOEXEC);
  if (file->descriptor < 0)
    return systemError(path, "create a temporary file beside it");
  file->temporary = buffer.data();
  mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(file->descriptor, 0666 & ~mask);
  return file;
}

AtomicFile::~AtomicFile() {
  if (descriptor >= 0)
    ::close(descriptor);
  if (!temporary.empty())
    ::unlink(temporary.c_str());
}

Status AtomicFile::failure(const char *what) const { return systemError(target, what); }

Status AtomicFile::write(const void *data, uint64_t bytes) {
  const char *next = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t count = ::write(descriptor, next, std::min<uint64_t>(bytes, 1 << 30));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return failure("write");
    next += count;
    bytes -= count;
    written += count;
  }
  return Status::success();
}

Status AtomicFile::pad(uint64_t alignment) {
  static const char zeros[4096] = {};
  uint64_t missing = (alignment - written % alignment) % alignment;
  while (missing > 0) {
    uint64_t count = std::min<uint64_t>(missing, sizeof(zeros));
    if (Status status = write(zeros, count); !status)
      return status;
    missing -= count;
  }
  return Status::success();
}

Status AtomicFile::rewrite(uint64_t offset, const void *data, uint64_t bytes) {
  assert(offset + bytes <= written);
  const char *next = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t count = ::pwrite(descriptor, next, bytes, offset);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return failure("write");
    next += count;
    offset += count;
    bytes -= count;
  }
  return Status::success();
}

Status AtomicFile::commit() {
  if (::fsync(descriptor) != 0)
    return failure("sync");
  int closing = descriptor;
  descriptor = -1;
  if (::close(closing) != 0)
    return failure("close");
  if (::rename(temporary.c_str(), target.c_str()) != 0)
    return failure("rename the temporary file to it");
  temporary.clear();
  // The rename itself is durable once the folder is synced; a file system that cannot do that is no
  // error.
  Descriptor parent(::open(folderOf(target).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent.get() >= 0)
    ::fsync(parent.get());
  return Status::success();
}

Status writeFile(const std::string &path, std::string_view content) {
  auto file = AtomicFile::create(path);
  if (!file)
    return file.takeError();
  if (Status status = (*file)->write(content); !status)
    return status;
  return (*file)->commit();
}

Expected<std::string> readFile(const std::string &path, uint64_t limit) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0)
    return systemError(path, "open");
  std::string content;
  std::vector<char> chunk(1 << 16);
  for (;;) {
    ssize_t count = ::read(file.get(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return systemError(path, "read");
    if (count == 0)
      return content;
    if (content.size() + count > limit)
      return badInput("{}: larger than the {} bytes that are supported here", path, limit);
    content.append(chunk.data(), count);
  }
}

} // namespace dovetail
