// SPDX-License-Identifier: Apache-2.0
//
// Opens NVRTC or hiprtc and compiles one file, in a process of its own, since hiprtc crashes for
// some architectures. The two libraries have the same functions under two prefixes.
//
//   dovetail-rtc nvrtc|hiprtc version LIBRARY...                  path and version of the first
//   dovetail-rtc nvrtc|hiprtc compile LIBRARY OUTPUT SOURCE [OPTION...]
//
// What the library says goes to standard output. Exit codes: 0 done, 1 the source is refused, 2 the
// command line or a file is wrong, 3 there is no such library, or it fails by itself.
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/resource.h>

namespace {

using Program = void *;

/// The functions that are used; each but errorText returns 0 where it went well.
struct Library {
  int (*version)(int *major, int *minor) = nullptr;
  const char *(*errorText)(int code) = nullptr;
  int (*createProgram)(Program *program, const char *source, const char *name, int headerCount,
                       const char *const *headers, const char *const *headerNames) = nullptr;
  int (*compileProgram)(Program program, int optionCount, const char *const *options) = nullptr;
  int (*logSize)(Program program, size_t *bytes) = nullptr;
  int (*log)(Program program, char *text) = nullptr;
  int (*codeSize)(Program program, size_t *bytes) = nullptr;
  int (*code)(Program program, char *bytes) = nullptr;
  std::string failure; ///< why it cannot be used

  Library(const std::string &prefix, const char *file) {
    void *handle = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      failure = ::dlerror();
      return;
    }
    const std::string kind = prefix == "nvrtc" ? "PTX" : "Code";
    take(handle, prefix + "Version", version);
    take(handle, prefix + "GetErrorString", errorText);
    take(handle, prefix + "CreateProgram", createProgram);
    take(handle, prefix + "CompileProgram", compileProgram);
    take(handle, prefix + "GetProgramLogSize", logSize);
    take(handle, prefix + "GetProgramLog", log);
    take(handle, prefix + "Get" + kind + "Size", codeSize);
    take(handle, prefix + "Get" + kind, code);
  }

private:
  template <typename Function>
  void take(void *handle, const std::string &name, Function &function) {
    function = reinterpret_cast<Function>(::dlsym(handle, name.c_str()));
    if (!function && failure.empty())
      failure = "it has no function " + name;
  }
};

int tellVersion(const std::string &prefix, int count, char **files) {
  std::string reasons;
  for (int i = 0; i < count; ++i) {
    Library library(prefix, files[i]);
    int major = 0, minor = 0;
    if (library.failure.empty() && library.version(&major, &minor) == 0) {
      std::printf("%s\n%d.%d\n", files[i], major, minor);
      return 0;
    }
    if (reasons.empty())
      reasons =
          library.failure.empty() ? std::string(files[i]) + " tells no version" : library.failure;
  }
  std::printf("%s\n", reasons.c_str());
  return 3;
}

std::string logOf(const Library &library, Program program) {
  size_t bytes = 0;
  if (library.logSize(program, &bytes) != 0 || bytes == 0)
    return {};
  std::string text(bytes, '\0');
  if (library.log(program, text.data()) != 0)
    return {};
  text.resize(text.find_last_not_of(std::string("\0\n", 2)) + 1);
  return text;
}

int compile(const Library &library, const char *output, const char *path,
            const std::vector<const char *> &options) {
  std::ifstream file(path, std::ios::binary);
  const std::string source{std::istreambuf_iterator<char>(file), {}};
  if (!file.good() && !file.eof()) {
    std::printf("cannot read %s\n", path);
    return 2;
  }
  Program program = nullptr;
  int code = library.createProgram(&program, source.c_str(), path, 0, nullptr, nullptr);
  if (code == 0)
    code = library.compileProgram(program, int(options.size()), options.data());
  const std::string log = program ? logOf(library, program) : "";
  if (!log.empty())
    std::printf("%s\n", log.c_str());
  size_t bytes = 0;
  if (code == 0)
    code = library.codeSize(program, &bytes);
  std::string image(bytes, '\0');
  if (code == 0)
    code = library.code(program, image.data());
  if (code != 0) {
    if (log.empty())
      std::printf("%s\n", library.errorText(code));
    constexpr int kInvalidOption = 5, kCompilation = 6; // in both libraries
    return code == kInvalidOption || code == kCompilation ? 1 : 3;
  }
  std::ofstream to(output, std::ios::binary);
  to.write(image.data(), std::streamsize(image.size()));
  to.close();
  if (to.good())
    return 0;
  std::printf("cannot write %s\n", output);
  return 2;
}

} // namespace

int main(int argc, char **argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  rlimit noCore{};
  ::setrlimit(RLIMIT_CORE, &noCore);
  const std::string prefix = argc > 1 ? argv[1] : "", command = argc > 2 ? argv[2] : "";
  const bool isKnown = prefix == "nvrtc" || prefix == "hiprtc";
  if (isKnown && command == "version" && argc > 3)
    return tellVersion(prefix, argc - 3, argv + 3);
  if (!isKnown || command != "compile" || argc < 6) {
    std::fprintf(stderr, "usage: dovetail-rtc nvrtc|hiprtc version LIBRARY...\n"
                         "       dovetail-rtc nvrtc|hiprtc compile LIBRARY OUTPUT SOURCE "
                         "[OPTION...]\n");
    return 2;
  }
  Library library(prefix, argv[3]);
  if (!library.failure.empty()) {
    std::printf("%s\n", library.failure.c_str());
    return 3;
  }
  return compile(library, argv[4], argv[5], {argv + 6, argv + argc});
}
