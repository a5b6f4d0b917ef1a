// SPDX-License-Identifier: Apache-2.0
//
// The library as found at run time: its file and the functions used from it. Found in the host's
// folders first and then where the system looks; nothing is linked. It is opened by who runs
// something only: cuBLASLt alone takes a fifth of a second and 90 MiB for that.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "providers/blaslt/Dialect.h"

namespace dovetail::blaslt {

class Library {
public:
  /// `path`: folders separated by ':'; may be null. Looks for a file and opens nothing.
  explicit Library(const char *path);
  Library(const Library &) = delete;

  /// Opens the library, once. Not to be called by several threads at once.
  void open();
  bool isLoaded() const { return isOpen && failure.empty(); }
  /// "CUBLAS_STATUS_NOT_SUPPORTED"
  static std::string nameOf(Status status);

  std::string versionText; ///< by the file's name: "13" or "13.1.0.3"; empty when not found
  std::string file;        ///< where it is
  std::string missing;     ///< that it is not there and how to get it; empty when it is
  std::string failure;     ///< why it was not opened
  void *getVersion = nullptr;

#define DOVETAIL_BLASLT_MEMBER(name, parameters) Status(*name) parameters = nullptr;
  DOVETAIL_BLASLT_FUNCTIONS(DOVETAIL_BLASLT_MEMBER)
#undef DOVETAIL_BLASLT_MEMBER

private:
  /// Empty when this file will do, else why not.
  std::string load(const std::string &name);

  std::string path;
  bool isOpen = false;
};

/// A sequence of calls; keeps what failed first, after which nothing more is called.
class Calls {
public:
  bool ok() const { return failure.empty(); }
  /// "asking for algorithms: CUBLAS_STATUS_..."; empty when nothing failed.
  const std::string &reason() const { return failure; }
  bool check(Status status, const char *doing) {
    if (status != 0 && failure.empty())
      failure = std::string(doing) + ": " + Library::nameOf(status);
    return status == 0;
  }

private:
  std::string failure;
};

/// The library's handle on the device that is current, and back again.
class OpenedHandle {
public:
  /// Null with the reason in `calls` or in `reason`, where the library is too old.
  static std::shared_ptr<OpenedHandle> make(std::shared_ptr<const Library> library, Calls &calls,
                                            std::string &reason);
  ~OpenedHandle();
  OpenedHandle(const OpenedHandle &) = delete;
  LibraryHandle get() const { return handle; }
  const Library &library() const { return *owner; }
  const std::string &versionText() const { return version; }

private:
  OpenedHandle() = default;
  std::shared_ptr<const Library> owner;
  LibraryHandle handle = nullptr;
  std::string version;
};

/// One handle for all kernels of a provider: made with the first, gone with the last, so that both
/// happen while the device's context is current.
class Handles {
public:
  std::shared_ptr<OpenedHandle> get(const std::shared_ptr<const Library> &library, Calls &calls,
                                    std::string &reason);

private:
  std::mutex mutex;
  std::weak_ptr<OpenedHandle> current;
};

} // namespace dovetail::blaslt
