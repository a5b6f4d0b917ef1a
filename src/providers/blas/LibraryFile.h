// SPDX-License-Identifier: Apache-2.0
//
// How a library is found and opened: names in order of preference, first in the folders that the
// host gives, then where the system looks. What is found must be the library's own: libraries of
// one trade have functions of the same names, and MKL makes its own known to the whole process, so
// a library opened here looks among its own symbols first. A file that will not do is passed over
// with its reason. Nothing is ever closed: libraries with threads do not survive it.
#pragma once

#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>

namespace dovetail::blas {

/// An opened shared object.
class LibraryFile {
public:
  LibraryFile(void *handle, std::string path) : handle(handle), path(std::move(path)) {}
  const std::string &file() const { return path; }
  /// Sets `function` to what `symbol` names; notes the first symbol that is absent.
  template <typename Function> bool find(Function *&function, const std::string &symbol) {
    void *found = lookup(symbol);
    std::memcpy(&function, &found, sizeof found);
    return found != nullptr;
  }
  /// Why the file will not do for want of symbols; empty where all were there.
  std::string lacks() const { return absent.empty() ? "" : "lacks " + absent; }

private:
  void *lookup(const std::string &symbol);
  void *handle;
  std::string path, absent;
};

/// What is known of one library; at first nothing.
struct LibraryState {
  std::string versionText; ///< empty when not loaded
  std::string file;        ///< where it was loaded from; empty when not loaded
  std::string missing;     ///< why it is not there and how to get it; empty when loaded
  bool isLoaded() const { return !file.empty(); }
  bool wasTried() const { return isLoaded() || !missing.empty(); }
};

/// Whether symbols of the process, MKL's for instance, may come before the library's own.
enum class Binding { Own, Process };

/// Opens the first of `names` that `adopt` takes, in the folders of `path` (separated by ':'), then
/// as the system finds it. `adopt` fills in the version and answers with a reason where the file
/// will not do. Fills in `state`; `howToGet` goes into `missing` when there is none.
void openLibrary(LibraryState &state, const char *path, std::initializer_list<const char *> names,
                 Binding binding, const std::string &howToGet,
                 const std::function<std::string(LibraryFile &)> &adopt);

} // namespace dovetail::blas
