// SPDX-License-Identifier: Apache-2.0
//
// Every compiler runs as a child with a limit of time. Where one falls, the next one of the vendor
// is tried; where one refuses the source, its word is final.
#include "toolchain/SourceCompiler.h"

#include <cstring>
#include <filesystem>
#include <optional>

#include "support/File.h"
#include "toolchain/ChildProcess.h"

namespace dovetail::toolchain {

namespace {

/// Less than what whoever measures takes for a sign of life.
constexpr std::chrono::seconds kToCompile{50};

/// The CUDA release in which the architecture came up.
std::pair<unsigned, unsigned> cudaReleaseOf(const std::string &architecture) {
  unsigned number = unsigned(std::strtoul(architecture.c_str() + 3, nullptr, 10));
  if (number >= 100)
    return {12, 8};
  return number >= 89 ? std::pair(11u, 8u) : std::pair(11u, 0u);
}

std::vector<ToolKind> kindsFor(const std::string &architecture) {
  return architecture.starts_with("sm_") ? std::vector{ToolKind::Nvrtc, ToolKind::Nvcc}
                                         : std::vector{ToolKind::Hiprtc, ToolKind::Hipcc};
}

/// Why the tool does not do for the architecture; empty where it does.
std::string objection(const Tool &tool, const std::string &architecture) {
  if (!tool.found())
    return fmt::format("{}: {}", tool.name, tool.missing);
  if (!architecture.starts_with("sm_"))
    return {};
  auto [major, minor] = cudaReleaseOf(architecture);
  return isAtLeast(tool.version, major, minor)
             ? ""
             : fmt::format("{} is older than {}.{}, in which {} came up", tool.description(), major,
                           minor, architecture);
}

std::vector<std::string> arguments(ToolKind kind, const Tool &tool, const std::string &child,
                                   const std::string &output, const SourceRequest &request) {
  const std::string virtualArchitecture =
      request.isCuda() ? "compute_" + request.architecture.substr(3) : "";
  std::vector<std::string> line;
  switch (kind) {
  case ToolKind::Nvrtc:
    line = {child,  "nvrtc",      "compile",    tool.path,
            output, request.path, "-std=c++17", "--gpu-architecture=" + virtualArchitecture};
    break;
  case ToolKind::Hiprtc:
    line = {child,  "hiprtc",     "compile",    tool.path,
            output, request.path, "-std=c++17", "--offload-arch=" + request.architecture};
    break;
  case ToolKind::Nvcc:
    line = {tool.path, "-ptx", "-std=c++17", "-x", "cu", "-arch=" + virtualArchitecture,
            "-o",      output, request.path};
    break;
  default:
    line = {tool.path,
            "-x",
            "hip",
            "-O3",
            "-std=c++17",
            "--cuda-device-only",
            "--offload-arch=" + request.architecture,
            "-o",
            output,
            request.path};
    break;
  }
  namespace fs = std::filesystem;
  line.push_back("-I" + fs::path(request.path).parent_path().string());
  // NVRTC knows no folder of headers by itself: those beside it, as a toolkit has them.
  if (kind == ToolKind::Nvrtc) {
    std::error_code error;
    fs::path beside = fs::path(tool.path).parent_path().parent_path() / "include";
    if (fs::exists(beside / "cuda_fp16.h", error))
      line.push_back("-I" + beside.string());
  }
  for (const std::string &definition : request.definitions)
    line.push_back("-D" + definition);
  line.insert(line.end(), request.flags.begin(), request.flags.end());
  return line;
}

} // namespace

std::string firstWords(const std::string &log) {
  constexpr size_t kLines = 6, kMost = 700;
  std::string words;
  size_t lines = 0;
  for (size_t from = 0; from < log.size() && lines < kLines;) {
    size_t end = std::min(log.find('\n', from), log.size());
    std::string line = log.substr(from, end - from);
    from = end + 1;
    if (size_t start = line.find_first_not_of(" \t"); start != std::string::npos) {
      words += (words.empty() ? "" : " | ") + line.substr(start);
      ++lines;
    }
  }
  if (words.size() > kMost)
    words.resize(kMost);
  return words.empty() ? "it gives no reason" : words;
}

Expected<Tool> compilerFor(Tools &tools, const std::string &architecture) {
  std::string reasons;
  for (ToolKind kind : kindsFor(architecture)) {
    const Tool &tool = tools.of(kind);
    std::string why = objection(tool, architecture);
    if (why.empty())
      return tool;
    reasons += (reasons.empty() ? "" : "; ") + why;
  }
  return unavailable(
      "no compiler of {} C++ for {} is here ({}); DOVETAIL_VENDOR_PATH names further "
      "folders to look in",
      architecture.starts_with("sm_") ? "CUDA" : "HIP", architecture, reasons);
}

Expected<CompiledSource> compileSourceBy(ToolKind kind, const Tool &tool,
                                         const SourceRequest &request) {
  if (auto why = objection(tool, request.architecture); !why.empty())
    return unavailable("{}", why);
  auto folder = TemporaryFolder::create();
  if (!folder)
    return folder.takeError();
  std::string child;
  if (kind == ToolKind::Nvrtc || kind == ToolKind::Hiprtc) {
    auto found = Tools::runtimeCompiler();
    if (!found)
      return found.takeError();
    child = std::move(*found);
  }
  const std::string output = folder->file(request.isCuda() ? "kernel.ptx" : "kernel.hsaco");
  auto ended = runChild(arguments(kind, tool, child, output, request), kToCompile);
  if (!ended)
    return ended.takeError();
  if (ended->exitCode < 0 || ended->exitCode >= 128)
    return unavailable("{} compiling {} for {}: {}", tool.description(), request.path,
                       request.architecture, ended->ending());
  // The child ends with 1 for what the library says of the source, and with nothing else.
  if (!child.empty() && ended->exitCode > 1)
    return unavailable("{} compiling {} for {}: {}", tool.description(), request.path,
                       request.architecture, firstWords(ended->output));
  if (!ended->succeeded())
    return badInput("{} does not compile for {} with {}: {}", request.path, request.architecture,
                    tool.description(), firstWords(ended->output));
  auto bytes = readFile(output);
  if (!bytes)
    return bytes.takeError();
  while (request.isCuda() && bytes->ends_with('\0'))
    bytes->pop_back();
  auto code = unbundled({bytes->begin(), bytes->end()});
  if (!code)
    return code.takeError();
  return CompiledSource{request.isCuda() ? DeviceImage::Kind::Ptx : DeviceImage::Kind::Hsaco,
                        std::move(*code), tool.description(), std::move(ended->output)};
}

Expected<CompiledSource> compileSource(Tools &tools, const SourceRequest &request) {
  if (auto compiler = compilerFor(tools, request.architecture); !compiler)
    return compiler.takeError();
  std::optional<Error> last;
  for (ToolKind kind : kindsFor(request.architecture)) {
    const Tool &tool = tools.of(kind);
    if (!objection(tool, request.architecture).empty())
      continue;
    auto compiled = compileSourceBy(kind, tool, request);
    if (compiled || compiled.error().kind != ErrorKind::Unavailable)
      return compiled;
    last = compiled.takeError();
  }
  return std::move(*last);
}

Expected<std::vector<uint8_t>> unbundled(std::vector<uint8_t> bytes) {
  constexpr std::string_view kMagic = "__CLANG_OFFLOAD_BUNDLE__";
  if (bytes.size() < kMagic.size() || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    return bytes;
  size_t at = kMagic.size();
  auto number = [&](uint64_t &value) {
    if (bytes.size() - at < sizeof(value))
      return false;
    std::memcpy(&value, bytes.data() + at, sizeof(value));
    at += sizeof(value);
    return true;
  };
  uint64_t entries = 0;
  bool isWhole = number(entries);
  for (uint64_t i = 0; isWhole && i < entries; ++i) {
    uint64_t offset = 0, size = 0, length = 0;
    isWhole = number(offset) && number(size) && number(length) && length <= bytes.size() - at &&
              offset <= bytes.size() && size <= bytes.size() - offset;
    if (!isWhole)
      break;
    std::string_view triple(reinterpret_cast<const char *>(bytes.data()) + at, length);
    at += length;
    if (size > 0 && triple.starts_with("hip"))
      return std::vector<uint8_t>(bytes.begin() + ptrdiff_t(offset),
                                  bytes.begin() + ptrdiff_t(offset + size));
  }
  return badInput("a compiler of HIP C++ gave a bundle without code for a device");
}

} // namespace dovetail::toolchain
