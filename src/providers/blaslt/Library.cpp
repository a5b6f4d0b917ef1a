// SPDX-License-Identifier: Apache-2.0
//
// Finds the library, loads it and opens it on a device.
#include "providers/blaslt/Library.h"

#include <dlfcn.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace dovetail::blaslt {
namespace {

bool isThere(const std::string &file) {
  std::error_code unreadable;
  return std::filesystem::exists(file, unreadable);
}

/// What to hand to dlopen, in this order: files in the folders of `path`, then names that the
/// system looks up. Relative folders would make what is loaded depend on the current one.
std::vector<std::string> namesToTry(const std::string &path) {
  std::vector<std::string> names;
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');)
    for (const char *file : dialect().files)
      if (folder.starts_with('/') && isThere(folder + "/" + file))
        names.push_back(folder + "/" + file);
  names.insert(names.end(), dialect().files.begin(), dialect().files.end());
  return names;
}

/// Where the system would find a library, without opening it: in the folders that it searches, or
/// named by its linker's cache. Empty where it is in neither.
std::string systemFile(const std::string &name) {
  void *self = dlopen(nullptr, RTLD_LAZY);
  Dl_serinfo size;
  if (self && dlinfo(self, RTLD_DI_SERINFOSIZE, &size) == 0) {
    std::vector<char> memory(size.dls_size);
    auto *folders = reinterpret_cast<Dl_serinfo *>(memory.data());
    if (dlinfo(self, RTLD_DI_SERINFOSIZE, folders) == 0 &&
        dlinfo(self, RTLD_DI_SERINFO, folders) == 0)
      for (unsigned i = 0; i < folders->dls_cnt; ++i)
        if (std::string file = folders->dls_serpath[i].dls_name + ("/" + name); isThere(file))
          return file;
  }
  std::ifstream stream("/etc/ld.so.cache", std::ios::binary);
  const std::string cache(std::istreambuf_iterator<char>(stream), {});
  const std::string wanted = "/" + name + '\0';
  for (size_t at = cache.find(wanted); at != std::string::npos; at = cache.find(wanted, at + 1)) {
    const size_t begin = cache.rfind('\0', at) + 1;
    if (std::string file = cache.substr(begin, at + wanted.size() - 1 - begin); isThere(file))
      return file;
  }
  return {};
}

/// What follows ".so." in the name of the file that `file` leads to.
std::string versionOfFile(const std::string &file) {
  std::error_code unreadable;
  const std::string real = std::filesystem::canonical(file, unreadable).filename();
  const size_t mark = real.find(".so.");
  return mark == std::string::npos ? "" : real.substr(mark + 4);
}

std::string tooOld(const std::string &found) {
  return "version " + found + " found, " + dialect().versionText(dialect().leastVersion) +
         " or later is needed";
}

} // namespace

std::string Library::load(const std::string &name) {
  void *opened = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!opened) {
    const char *reason = dlerror();
    return reason ? reason : name + ": cannot be loaded";
  }
  std::string absent;
  auto lookup = [&](const char *function) {
    const std::string symbol = std::string(dialect().prefix) + function;
    void *found = dlsym(opened, symbol.c_str());
    if (!found && absent.empty())
      absent = symbol;
    return found;
  };
  getVersion = lookup("GetVersion");
#define DOVETAIL_BLASLT_LOOKUP(function, parameters)                                               \
  this->function = reinterpret_cast<Status(*) parameters>(lookup(#function));
  DOVETAIL_BLASLT_FUNCTIONS(DOVETAIL_BLASLT_LOOKUP)
#undef DOVETAIL_BLASLT_LOOKUP
  std::string wrong = absent.empty() ? "" : "lacks " + absent + ", is no " + dialect().library;
  const long version = absent.empty() ? dialect().versionOf(getVersion, nullptr) : 0;
  if (wrong.empty() && version != 0 && version < dialect().leastVersion)
    wrong = tooOld(dialect().versionText(version));
  if (!wrong.empty()) {
    dlclose(opened);
    return name + ": " + wrong;
  }
  return {};
}

Library::Library(const char *path) : path(path ? path : "") {
  for (const std::string &name : namesToTry(this->path)) {
    file = name.starts_with('/') ? name : systemFile(name);
    if (file.empty())
      continue;
    versionText = versionOfFile(file);
    return;
  }
  missing = dialect().howToGet;
}

void Library::open() {
  if (isOpen)
    return;
  isOpen = true;
  std::string tried;
  for (const std::string &name : namesToTry(path)) {
    const std::string reason = load(name);
    if (reason.empty())
      return;
    tried += (tried.empty() ? "" : "; ") + reason;
  }
  failure = std::string(dialect().howToGet) + " (tried: " + tried + ")";
}

std::string Library::nameOf(Status status) {
  for (const auto &[number, name] : dialect().statusNames)
    if (number == status)
      return name;
  return "status " + std::to_string(status);
}

std::shared_ptr<OpenedHandle> OpenedHandle::make(std::shared_ptr<const Library> library,
                                                 Calls &calls, std::string &reason) {
  std::shared_ptr<OpenedHandle> made(new OpenedHandle);
  if (!calls.check(library->Create(&made->handle), "opening the device")) {
    made->handle = nullptr;
    return nullptr;
  }
  made->owner = std::move(library);
  const long version = dialect().versionOf(made->owner->getVersion, made->handle);
  made->version = dialect().versionText(version);
  if (version >= dialect().leastVersion)
    return made;
  reason = tooOld(made->version);
  return nullptr;
}

OpenedHandle::~OpenedHandle() {
  if (handle)
    owner->Destroy(handle);
}

std::shared_ptr<OpenedHandle> Handles::get(const std::shared_ptr<const Library> &library,
                                           Calls &calls, std::string &reason) {
  const std::lock_guard guard(mutex);
  std::shared_ptr<OpenedHandle> known = current.lock();
  if (!known) {
    known = OpenedHandle::make(library, calls, reason);
    current = known;
  }
  return known;
}

} // namespace dovetail::blaslt
