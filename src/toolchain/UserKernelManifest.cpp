// SPDX-License-Identifier: Apache-2.0
//
// Reads manifests. Every field is checked here, so that what is wrong with one is said before any
// model is compiled.
#include "toolchain/UserKernel.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "support/File.h"
#include "support/Hash.h"

namespace dovetail::toolchain {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kMostBytes = uint64_t(16) << 20;
constexpr const char *kFields[] = {"name",        "problems",  "source",   "language",
                                   "entry",       "blocks",    "threads",  "arguments",
                                   "definitions", "flags",     "numerics", "deterministic",
                                   "in_place",    "workspace", "targets",  "host_form"};

bool isWord(const std::string &text, std::string_view extra) {
  return !text.empty() && text.size() <= 60 && !(text[0] >= '0' && text[0] <= '9') &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  extra.find(c) != std::string_view::npos;
         });
}

class ManifestReader {
public:
  explicit ManifestReader(const std::string &path) { kernel.manifest = path; }
  Expected<UserKernel> read();

private:
  template <typename... Args>
  Error wrong(const char *field, fmt::format_string<Args...> format, Args &&...args) {
    return badInput("{}: '{}' {}", kernel.manifest, field,
                    fmt::format(format, std::forward<Args>(args)...));
  }
  Status readAll();
  Status text(const char *field, bool isNeeded, std::string &into);
  Status flag(const char *field, bool &into);
  Status texts(const char *field, std::vector<std::string> &into);
  Status names();
  Status language();
  Status targets();
  Status problems();
  Status number(const char *field, const json &value, KernelNumber &into);
  Status expression(const char *field, const std::string &text, KernelNumber &into);
  Status neededNumber(const char *field, KernelNumber &into);
  Status arguments();
  Status argument(const json &value, KernelOperand &into);
  Status definitions();
  std::string fileOf(const std::string &named) const {
    return (fs::path(kernel.manifest).parent_path() / named).lexically_normal().string();
  }

  UserKernel kernel;
  json root;
};

Status ManifestReader::text(const char *field, bool isNeeded, std::string &into) {
  auto found = root.find(field);
  if (found == root.end())
    return isNeeded ? Status(badInput("{}: lacks '{}'", kernel.manifest, field)) : Status();
  if (!found->is_string() || found->get_ref<const std::string &>().empty())
    return wrong(field, "is {}; it is a text", found->dump());
  into = found->get<std::string>();
  return Status::success();
}

Status ManifestReader::flag(const char *field, bool &into) {
  auto found = root.find(field);
  if (found == root.end())
    return Status::success();
  if (!found->is_boolean())
    return wrong(field, "is {}; it is true or false", found->dump());
  into = found->get<bool>();
  return Status::success();
}

Status ManifestReader::texts(const char *field, std::vector<std::string> &into) {
  auto found = root.find(field);
  if (found == root.end())
    return Status::success();
  bool areTexts = found->is_array() && std::all_of(found->begin(), found->end(), [](const json &v) {
                    return v.is_string() && !v.get_ref<const std::string &>().empty();
                  });
  if (!areTexts)
    return wrong(field, "is {}; it is a list of texts", found->dump());
  into = found->get<std::vector<std::string>>();
  return Status::success();
}

Status ManifestReader::names() {
  if (Status status = text("name", true, kernel.name); !status)
    return status;
  if (!isWord(kernel.name, "_-."))
    return wrong("name", "is '{}'; it is a word of at most 60 letters, digits, '_', '-' and '.'",
                 kernel.name);
  if (Status status = text("entry", true, kernel.entry); !status)
    return status;
  if (!isWord(kernel.entry, "_"))
    return wrong("entry", "is '{}'; it is the name of a function declared extern \"C\" __global__",
                 kernel.entry);
  if (Status status = text("numerics", false, kernel.numerics); !status)
    return status;
  const std::vector<std::string> known{"f32", "tf32", "bf16", "f16", "f64", "int8"};
  if (std::find(known.begin(), known.end(), kernel.numerics) == known.end())
    return wrong("numerics", "is '{}'; the classes of rounding are {}", kernel.numerics,
                 fmt::join(known, ", "));
  if (Status status = flag("deterministic", kernel.deterministic); !status)
    return status;
  return flag("in_place", kernel.inPlace);
}

Status ManifestReader::language() {
  std::string named, written;
  if (Status status = text("source", true, named); !status)
    return status;
  if (Status status = text("language", false, written); !status)
    return status;
  kernel.source = fileOf(named);
  std::error_code error;
  if (!fs::is_regular_file(kernel.source, error))
    return wrong("source", "is '{}'; there is no file {}", named, kernel.source);
  if (written.empty())
    written = named.ends_with(".cu") ? "cuda" : named.ends_with(".hip") ? "hip" : "";
  if (written != "cuda" && written != "hip")
    return wrong("language",
                 "is '{}'; it is cuda or hip, and may be left out for files .cu and "
                 ".hip",
                 written);
  kernel.isCuda = written == "cuda";
  if (Status status = text("host_form", false, kernel.hostForm); !status)
    return status;
  if (!kernel.hostForm.empty()) {
    kernel.hostForm = fileOf(kernel.hostForm);
    if (!fs::is_regular_file(kernel.hostForm, error))
      return wrong("host_form", "names {}, which is no file", kernel.hostForm);
  }
  return Status::success();
}

Status ManifestReader::targets() {
  std::vector<std::string> named;
  if (Status status = texts("targets", named); !status)
    return status;
  const std::string device = kernel.isCuda ? "cuda:" : "rocm:";
  for (const std::string &target : named) {
    if (!target.starts_with(device) || !isWord(target.substr(device.size()), "_"))
      return wrong("targets", "has '{}'; a source in {} is for targets such as {}", target,
                   kernel.isCuda ? "CUDA C++" : "HIP C++",
                   kernel.isCuda ? "cuda:sm_90" : "rocm:gfx942");
    kernel.architectures.push_back(target.substr(device.size()));
  }
  return Status::success();
}

Status ManifestReader::problems() {
  std::vector<std::string> written;
  if (Status status = texts("problems", written); !status)
    return status;
  if (written.empty())
    return badInput("{}: lacks 'problems', the texts of what the kernel computes; 'dovetail "
                    "compile MODEL --stop-after=regions --dump=regions' prints those of a model",
                    kernel.manifest);
  for (const std::string &one : written) {
    auto parsed = Problem::parse(one);
    if (!parsed)
      return wrong("problems", "has a text that is none: {}", parsed.error().message);
    if (parsed->ops.empty() || parsed->outputs.empty())
      return wrong("problems", "has a text without ops or results: {}", one);
    kernel.patterns.push_back(std::move(*parsed));
  }
  return Status::success();
}

/// Whether a pattern gives the symbol a value: it stands alone as an extent, or counts the elements
/// of an operand.
bool knows(const Problem &pattern, const std::string &symbol) {
  for (const auto &[prefix, operands] :
       {std::pair("in", &pattern.inputs), std::pair("out", &pattern.outputs)})
    for (size_t i = 0; i < operands->size(); ++i)
      if (symbol == elementsSymbol(prefix, i))
        return true;
  return std::any_of(pattern.values.begin(), pattern.values.end(), [&](const auto &value) {
    return std::find(value.extents.begin(), value.extents.end(), Extent::symbol(symbol)) !=
           value.extents.end();
  });
}

Status ManifestReader::expression(const char *field, const std::string &text, KernelNumber &into) {
  if (text.starts_with('@')) {
    into.source = KernelNumber::Attribute{text.substr(1)};
    return isWord(text.substr(1), "_")
               ? Status::success()
               : Status(wrong(field, "has '{}'; after @ stands the name of an attribute", text));
  }
  auto parsed = Extent::parse(text);
  if (!parsed)
    return wrong(field,
                 "has '{}', which is no expression over extents; known are + - *, "
                 "floordiv(a,b), ceildiv(a,b), mod(a,b), min(a,b) and max(a,b)",
                 text);
  for (const std::string &symbol : parsed->symbols())
    for (const Problem &pattern : kernel.patterns)
      if (!knows(pattern, symbol))
        return wrong(field, "has '{}', but {} is no extent of {}", text, symbol, pattern.text());
  into.source = std::move(*parsed);
  return Status::success();
}

Status ManifestReader::number(const char *field, const json &value, KernelNumber &into) {
  if (value.is_number_integer()) {
    into.source = Extent(value.get<int64_t>());
    return Status::success();
  }
  if (value.is_string())
    return expression(field, value.get<std::string>(), into);
  if (value.is_number() && (into.type == DVT_F32 || into.type == DVT_F64)) {
    into.source = value.get<double>();
    return Status::success();
  }
  return wrong(field, "has {}; it is a number, an expression over extents or \"@attribute\"",
               value.dump());
}

Status ManifestReader::neededNumber(const char *field, KernelNumber &into) {
  auto found = root.find(field);
  if (found == root.end())
    return badInput("{}: lacks '{}'", kernel.manifest, field);
  return number(field, *found, into);
}

Status ManifestReader::argument(const json &value, KernelOperand &into) {
  if (value.is_string()) {
    const auto &text = value.get_ref<const std::string &>();
    if (text == "workspace") {
      into.kind = KernelOperand::Kind::Workspace;
      return Status::success();
    }
    for (const auto &[prefix, kind] : {std::pair("in", KernelOperand::Kind::Input),
                                       std::pair("out", KernelOperand::Kind::Output)}) {
      std::string digits = text.starts_with(prefix) ? text.substr(std::string(prefix).size()) : "";
      if (digits.empty() || digits.size() > 4 ||
          digits.find_first_not_of("0123456789") != std::string::npos)
        continue;
      into.kind = kind;
      into.position = uint32_t(std::stoul(digits));
      for (const Problem &pattern : kernel.patterns)
        if (size_t there =
                kind == KernelOperand::Kind::Input ? pattern.inputs.size() : pattern.outputs.size();
            into.position >= there)
          return wrong("arguments", "has '{}', but there are {} of these in {}", text, there,
                       pattern.text());
      return Status::success();
    }
  }
  into.kind = KernelOperand::Kind::Number;
  if (!value.is_object())
    return number("arguments", value, into.number);
  const std::set<std::string> types{"i64", "i32", "f32", "f64"};
  if (value.size() != 1 || !types.count(value.begin().key()))
    return wrong("arguments", "has {}; a number with a type is {{\"i64\": x}}, i32, f32 or f64",
                 value.dump());
  into.number.type = parseTypeName(value.begin().key());
  return number("arguments", value.begin().value(), into.number);
}

Status ManifestReader::arguments() {
  auto found = root.find("arguments");
  if (found == root.end() || !found->is_array())
    return wrong("arguments", "is missing or no list; it has what the kernel takes, in order: "
                              "\"in0\", \"out0\", \"workspace\" or numbers");
  for (const json &value : *found)
    if (Status status = argument(value, kernel.operands.emplace_back()); !status)
      return status;
  for (const Problem &pattern : kernel.patterns)
    for (uint32_t i = 0; i < pattern.outputs.size(); ++i)
      if (std::none_of(kernel.operands.begin(), kernel.operands.end(), [&](const auto &operand) {
            return operand.kind == KernelOperand::Kind::Output && operand.position == i;
          }))
        return wrong("arguments", "lacks out{}: a kernel gives all results of {}", i,
                     pattern.text());
  return Status::success();
}

Status ManifestReader::definitions() {
  auto found = root.find("definitions");
  if (found == root.end())
    return Status::success();
  if (!found->is_object())
    return wrong("definitions", "is {}; it is an object of macros and numbers", found->dump());
  for (const auto &[name, value] : found->items()) {
    if (!isWord(name, "_"))
      return wrong("definitions", "has '{}', which is no name of a macro", name);
    KernelNumber one;
    one.type = value.is_number_float() ? DVT_F64 : DVT_I64;
    if (Status status = number("definitions", value, one); !status)
      return status;
    kernel.definitions.emplace_back(name, std::move(one));
  }
  return Status::success();
}

Status ManifestReader::readAll() {
  for (const auto &[name, value] : root.items())
    if (std::find(std::begin(kFields), std::end(kFields), name) == std::end(kFields))
      return badInput("{}: '{}' is no field of a kernel's manifest; they are {}", kernel.manifest,
                      name, fmt::join(kFields, ", "));
  for (auto step :
       {&ManifestReader::names, &ManifestReader::language, &ManifestReader::targets,
        &ManifestReader::problems, &ManifestReader::arguments, &ManifestReader::definitions})
    if (Status status = (this->*step)(); !status)
      return status;
  if (Status status = texts("flags", kernel.flags); !status)
    return status;
  if (Status status = neededNumber("blocks", kernel.blocks); !status)
    return status;
  if (Status status = neededNumber("threads", kernel.threads); !status)
    return status;
  kernel.workspaceBytes.source = Extent(0);
  return root.contains("workspace") ? neededNumber("workspace", kernel.workspaceBytes)
                                    : Status::success();
}

/// The file, and the headers beside it that it names in quotes, each once.
Status hashSource(const std::string &path, Hasher &hasher, std::set<std::string> &seen) {
  if (!seen.insert(path).second)
    return Status::success();
  auto text = readFile(path, kMostBytes);
  if (!text)
    return text.takeError();
  hasher.update(*text);
  std::error_code error;
  constexpr std::string_view kInclude = "include", kBlank = " \t";
  for (size_t at = text->find(kInclude); at != std::string::npos; at = text->find(kInclude, at)) {
    const size_t mark = at > 0 ? text->find_last_not_of(kBlank, at - 1) : std::string::npos;
    at = text->find_first_not_of(kBlank, at + kInclude.size());
    if (at == std::string::npos)
      break;
    if (mark == std::string::npos || (*text)[mark] != '#' || (*text)[at] != '"')
      continue;
    ++at;
    fs::path header =
        fs::path(path).parent_path() / text->substr(at, text->find_first_of("\"\n", at) - at);
    if (fs::is_regular_file(header, error))
      if (Status status = hashSource(header.lexically_normal().string(), hasher, seen); !status)
        return status;
  }
  return Status::success();
}

Expected<UserKernel> ManifestReader::read() {
  auto text = readFile(kernel.manifest, kMostBytes);
  if (!text)
    return badInput("--kernel: {}", text.error().message);
  root = json::parse(*text, nullptr, false);
  if (!root.is_object())
    return badInput("{}: is not a JSON object that describes a kernel", kernel.manifest);
  if (Status status = readAll(); !status)
    return status.takeError();
  Hasher hasher;
  hasher.update(*text);
  std::set<std::string> seen;
  for (const std::string &file : {kernel.source, kernel.hostForm})
    if (!file.empty())
      if (Status status = hashSource(file, hasher, seen); !status)
        return status.takeError();
  kernel.digest = hexText(hasher.digest());
  return std::move(kernel);
}

} // namespace

Expected<UserKernel> UserKernel::read(const std::string &path) {
  return ManifestReader(path).read();
}

std::vector<std::string> manifestsIn(const std::string &libraryPath) {
  std::vector<std::string> found;
  for (size_t from = 0; from < libraryPath.size();) {
    size_t colon = std::min(libraryPath.find(':', from), libraryPath.size());
    std::string entry = libraryPath.substr(from, colon - from);
    if (entry.starts_with('/') && entry.ends_with(".json"))
      found.push_back(std::move(entry));
    from = colon + 1;
  }
  return found;
}

} // namespace dovetail::toolchain
