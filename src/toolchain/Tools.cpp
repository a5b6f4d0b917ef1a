// SPDX-License-Identifier: Apache-2.0
//
// See the header. PATH is read here, as a shell would; nothing else of the environment is.
#include "toolchain/Tools.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include <dlfcn.h>
#include <unistd.h>

#include "toolchain/ChildProcess.h"
#include "toolchain/PtxAssembler.h"

namespace dovetail::toolchain {

namespace {

namespace fs = std::filesystem;

constexpr const char *kCuda = "/usr/local/cuda", *kRocm = "/opt/rocm";
constexpr const char *kRuntimeCompiler = "dovetail-rtc";
constexpr std::chrono::seconds kToAnswer{20};

std::vector<std::string> splitFolders(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    std::string part(text.substr(0, text.find(':')));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    // What is found must not depend on the current folder.
    if (part.starts_with('/'))
      parts.push_back(std::move(part));
  }
  return parts;
}

bool isProgram(const std::string &path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

/// The number that follows `before` in the text: "13.0" in "release 13.0, V13.0.88".
std::string versionAfter(const std::string &text, std::string_view before) {
  size_t place = text.find(before);
  if (place == std::string::npos)
    return {};
  size_t start = place + before.size(), end = start;
  while (end < text.size() && ((text[end] >= '0' && text[end] <= '9') || text[end] == '.'))
    ++end;
  return text.substr(start, end - start);
}

std::string firstLine(const std::string &text) { return text.substr(0, text.find('\n')); }

} // namespace

bool isAtLeast(const std::string &version, unsigned major, unsigned minor) {
  unsigned numbers[2] = {};
  const char *at = version.data(), *end = at + version.size();
  for (unsigned &number : numbers) {
    auto [stop, error] = std::from_chars(at, end, number);
    if (error != std::errc())
      break;
    at = stop == end ? end : stop + 1;
  }
  return std::make_pair(numbers[0], numbers[1]) >= std::make_pair(major, minor);
}

Tools::Tools(const std::string &given) : folders(splitFolders(given)) {}

Expected<std::string> Tools::runtimeCompiler() {
  // Beside this program, or as the installed tree has it: …/lib/dovetail and …/lib beside …/bin.
  Dl_info about;
  std::error_code error;
  fs::path binary = fs::canonical("/proc/self/exe", error);
  if (::dladdr(reinterpret_cast<void *>(&Tools::runtimeCompiler), &about) != 0 && about.dli_fname)
    if (fs::path own = fs::canonical(about.dli_fname, error); !error)
      binary = own;
  const fs::path folder = binary.parent_path();
  for (const fs::path &choice : {folder, folder / ".." / "bin", folder / ".." / ".." / "bin"})
    if (isProgram((choice / kRuntimeCompiler).string()))
      return (choice / kRuntimeCompiler).lexically_normal().string();
  return unavailable("{}, which opens NVRTC and hiprtc, is not beside {}", kRuntimeCompiler,
                     binary.string());
}

std::vector<std::string> Tools::filesOf(std::initializer_list<const char *> names,
                                        const char *vendorFolder) const {
  std::vector<std::string> files;
  std::vector<std::string> places = folders;
  for (const char *below : {"/lib64", "/lib"})
    places.push_back(std::string(vendorFolder) + below);
  std::error_code error;
  for (const std::string &place : places)
    for (const char *name : names)
      if (fs::exists(place + "/" + name, error))
        files.push_back(place + "/" + name);
  files.insert(files.end(), names.begin(), names.end());
  return files;
}

Tool Tools::findLibrary(const char *interface, const char *name,
                        const std::vector<std::string> &files) const {
  Tool tool{name, "", "", ""};
  auto child = runtimeCompiler();
  if (!child) {
    tool.missing = child.error().message;
    return tool;
  }
  std::vector<std::string> arguments{*child, interface, "version"};
  arguments.insert(arguments.end(), files.begin(), files.end());
  auto answer = runChild(arguments, kToAnswer);
  if (!answer) {
    tool.missing = answer.error().message;
  } else if (answer->succeeded()) {
    // The last two lines: loaders may say something before.
    std::string said = answer->output;
    while (said.ends_with('\n'))
      said.pop_back();
    const size_t end = said.rfind('\n');
    if (end == std::string::npos) {
      tool.missing = "asked for its version, it says: " + said;
      return tool;
    }
    tool.version = said.substr(end + 1);
    tool.path = said.substr(0, end);
    tool.path.erase(0, tool.path.rfind('\n') + 1); // npos + 1 is 0
  } else if (answer->exitCode == 3) {
    tool.missing = firstLine(answer->output);
  } else {
    tool.missing = fmt::format("asked for its version, it ends with {}", answer->ending());
  }
  return tool;
}

Tool Tools::findProgram(const char *name, const char *vendorFolder, const char *before,
                        const char *how) const {
  std::vector<std::string> places;
  for (const std::string &folder : folders) {
    places.push_back(folder);
    if (folder.ends_with("/lib") || folder.ends_with("/lib64"))
      places.push_back((fs::path(folder).parent_path() / "bin").string());
  }
  const char *path = std::getenv("PATH");
  for (std::string &folder : splitFolders(path ? path : ""))
    places.push_back(std::move(folder));
  places.push_back(std::string(vendorFolder) + "/bin");
  Tool tool{name, "", "", fmt::format("not in PATH or {}/bin; {}", vendorFolder, how)};
  for (const std::string &place : places) {
    std::string file = place + "/" + name;
    if (!isProgram(file))
      continue;
    // A file of that name may be what is left of a tool kit that was removed.
    auto answer = runChild({file, "--version"}, kToAnswer);
    std::string version = answer ? versionAfter(answer->output, before) : "";
    if (answer && answer->succeeded() && !version.empty())
      return {name, version, file, ""};
    tool.missing = fmt::format("{} tells no version: {}", file,
                               answer ? answer->ending() : answer.error().message);
  }
  return tool;
}

Tool Tools::find(ToolKind kind) const {
  constexpr const char *kHowCuda = "it comes with the CUDA toolkit";
  constexpr const char *kHowHip = "it comes with ROCm (Debian: hipcc)";
  switch (kind) {
  case ToolKind::Nvrtc:
    return findLibrary("nvrtc", "NVRTC",
                       filesOf({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"}, kCuda));
  case ToolKind::Nvcc:
    return findProgram("nvcc", kCuda, "release ", kHowCuda);
  case ToolKind::NvJitLink: {
    PtxAssembler library = PtxAssembler::of(PtxAssembler::Tool::NvJitLink);
    if (library.tool() == PtxAssembler::Tool::None)
      return {"nvJitLink", "", "",
              fmt::format("no libnvJitLink.so.13 or .12 found; {} from 12.0 on", kHowCuda)};
    return {"nvJitLink", library.version(), library.path(), ""};
  }
  case ToolKind::Ptxas: // as PtxAssembler finds it, which knows no folders
    return Tools("").findProgram("ptxas", kCuda, "release ", kHowCuda);
  case ToolKind::Hiprtc:
    return findLibrary("hiprtc", "hiprtc",
                       filesOf({"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5",
                                "libamdhip64.so.5", "libhiprtc.so"},
                               kRocm));
  case ToolKind::Hipcc:
    return findProgram("hipcc", kRocm, "HIP version: ", kHowHip);
  case ToolKind::Lld:
#ifdef DOVETAIL_LLD
    return {"LLD", DOVETAIL_LLD, "built in", ""};
#else
    return {"LLD", "", "", "it was not there when Dovetail was built (Debian: liblld-22-dev)"};
#endif
  }
  return {};
}

const Tool &Tools::of(ToolKind kind) {
  auto found = known.find(kind);
  return found != known.end() ? found->second : known.emplace(kind, find(kind)).first->second;
}

std::vector<Tool> Tools::all() {
  std::vector<Tool> tools;
  for (ToolKind kind : {ToolKind::Nvrtc, ToolKind::Nvcc, ToolKind::NvJitLink, ToolKind::Ptxas,
                        ToolKind::Hiprtc, ToolKind::Hipcc, ToolKind::Lld})
    tools.push_back(of(kind));
  return tools;
}

} // namespace dovetail::toolchain
