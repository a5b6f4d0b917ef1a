// SPDX-License-Identifier: Apache-2.0
//
// Images are shared objects in memory whose functions have the signature of Entry. A variable
// `<name>_without_barriers` says that threads of the function never wait for each other.
#include "HostImage.h"

#include <atomic>
#include <cstring>

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

namespace simulated {
namespace {

class SharedObject final : public HostImage {
public:
  ~SharedObject() override {
    if (handle)
      ::dlclose(handle);
  }
  bool open(const void *bytes, uint64_t count, std::string &why) {
    int file = ::memfd_create("kernels", MFD_CLOEXEC);
    if (file < 0 || ::write(file, bytes, count) != ssize_t(count)) {
      why = "cannot be written to memory";
      return false;
    }
    // Each by a name of its own: one that was seen before would be taken for the same.
    static std::atomic<unsigned> next = 0;
    std::string path = "/proc/self/fd/";
    for (unsigned number = next++, bit = 0; bit < 24; ++bit)
      path += number >> bit & 1 ? "./" : "/";
    path += std::to_string(file);
    handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ::close(file);
    if (!handle)
      why = ::dlerror();
    return handle != nullptr;
  }
  bool find(const std::string &name, HostFunction &function) const override {
    void *symbol = ::dlsym(handle, name.c_str());
    if (!symbol)
      return false;
    function.name = name;
    function.entry = reinterpret_cast<Entry>(symbol);
    const auto *arguments =
        static_cast<const unsigned *>(::dlsym(handle, (name + "_arguments").c_str()));
    function.arguments = arguments ? *arguments : 0;
    function.barriers = !::dlsym(handle, (name + "_without_barriers").c_str());
    return true;
  }

private:
  void *handle = nullptr;
};

} // namespace

std::unique_ptr<HostImage> HostImage::load(const void *bytes, uint64_t count, std::string &why) {
  if (count > sizeof(Elf64_Ehdr) && std::memcmp(bytes, ELFMAG, SELFMAG) == 0) {
    auto object = std::make_unique<SharedObject>();
    if (!object->open(bytes, count, why))
      return nullptr;
    return object;
  }
  why = "it is not an image of kernels for this processor, which alone a simulated device runs";
  return nullptr;
}

} // namespace simulated
