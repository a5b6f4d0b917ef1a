// SPDX-License-Identifier: Apache-2.0
//
// Images are host kernels as the compiler of device kernels makes them, or shared objects in memory
// whose functions have the signature of Entry. A variable `<name>_without_barriers` of the latter
// says that threads of the function never wait for each other.
#include "HostImage.h"

#include <atomic>
#include <cstring>

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/DeviceKernel.h"

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

/// Entries in one block of code that runs at any address.
class CompiledKernels final : public HostImage {
public:
  explicit CompiledKernels(dovetail::HostKernels given) : kernels(std::move(given)) {}
  ~CompiledKernels() override {
    if (code)
      ::munmap(code, kernels.code.size());
  }
  bool map(std::string &why) {
    size_t bytes = kernels.code.size();
    void *memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      why = "there is no memory for its code";
      return false;
    }
    code = static_cast<char *>(memory);
    std::memcpy(code, kernels.code.data(), bytes);
    if (::mprotect(code, bytes, PROT_READ | PROT_EXEC) == 0)
      return true;
    why = "its code cannot be made executable";
    return false;
  }
  bool find(const std::string &name, HostFunction &function) const override {
    const dovetail::HostKernels::Entry *found = kernels.find(name);
    if (!found)
      return false;
    function.name = name;
    function.entry = reinterpret_cast<Entry>(code + found->offset);
    function.arguments = found->arguments;
    function.threads = found->threads;
    function.sharedBytes = found->sharedBytes;
    function.barriers = found->barriers;
    return true;
  }

private:
  dovetail::HostKernels kernels;
  char *code = nullptr;
};

} // namespace

std::unique_ptr<HostImage> HostImage::load(const void *bytes, uint64_t count, std::string &why) {
  if (count > sizeof(Elf64_Ehdr) && std::memcmp(bytes, ELFMAG, SELFMAG) == 0) {
    auto object = std::make_unique<SharedObject>();
    if (!object->open(bytes, count, why))
      return nullptr;
    return object;
  }
  if (auto kernels = dovetail::HostKernels::parse({static_cast<const uint8_t *>(bytes), count})) {
    auto compiled = std::make_unique<CompiledKernels>(std::move(*kernels));
    if (!compiled->map(why))
      return nullptr;
    return compiled;
  }
  why = "it is not an image of kernels for this processor, which alone a simulated device runs";
  return nullptr;
}

} // namespace simulated
