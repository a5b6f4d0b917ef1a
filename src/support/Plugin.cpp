// SPDX-License-Identifier: Apache-2.0
//
// Loads plug-ins, checks the door's version and sizes, and calls propose and compile. Libraries
// stay loaded once opened: vendor libraries with thread pools do not survive being closed.
#include "support/Plugin.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <set>

#include <dlfcn.h>
#include <link.h>

#include "support/Candidate.h"
#include "support/File.h"

namespace dovetail {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostKernelBytes = uint64_t(1) << 30;
/// What every plug-in states; later fields may be missing.
constexpr size_t kLeastInfoBytes =
    offsetof(dvt_provider_info, can_compile) + sizeof(dvt_provider_info::can_compile);

std::string messageOf(const dvt_error &error, dvt_code code) {
  std::string text(error.message, ::strnlen(error.message, sizeof(error.message)));
  return text.empty() ? fmt::format("code {}, no reason given", int(code)) : text;
}

std::vector<std::string> pluginFiles(const std::string &folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.starts_with("dovetail_") && name.ends_with(".so") && !name.ends_with("_compiler.so"))
      files.push_back(it->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Whether the file holds all that its headers promise. The dynamic linker does not ask: it maps
/// what is not there, and touching that ends the process.
bool isWholeLibrary(const std::string &path) {
  auto file = MappedFile::open(path);
  if (!file)
    return false;
  const uint8_t *data = (*file)->data();
  uint64_t size = (*file)->size();
  ElfW(Ehdr) header;
  if (size < sizeof(header))
    return false;
  std::memcpy(&header, data, sizeof(header));
  auto holds = [&](uint64_t offset, uint64_t bytes) {
    return offset <= size && bytes <= size - offset;
  };
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_DYN ||
      header.e_phentsize != sizeof(ElfW(Phdr)) ||
      !holds(header.e_phoff, uint64_t(header.e_phnum) * sizeof(ElfW(Phdr))) ||
      !holds(header.e_shoff, uint64_t(header.e_shnum) * header.e_shentsize))
    return false;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) part;
    std::memcpy(&part, data + header.e_phoff + i * sizeof(part), sizeof(part));
    if (!holds(part.p_offset, part.p_filesz))
      return false;
  }
  return true;
}

/// Why the function table cannot be used; empty where it can.
std::string checkTable(const dvt_provider_api *api) {
  if (!api)
    return fmt::format("does not serve version {} of the plug-in door", DVT_PROVIDER_ABI_VERSION);
  if (api->struct_size < sizeof(dvt_provider_api))
    return fmt::format("its function table has {} bytes instead of {}", api->struct_size,
                       sizeof(dvt_provider_api));
  if (api->abi_version != DVT_PROVIDER_ABI_VERSION)
    return fmt::format("built for version {} of the plug-in door, this is version {}",
                       api->abi_version, DVT_PROVIDER_ABI_VERSION);
  if (!api->name || !*api->name ||
      !std::all_of(api->name, api->name + std::strlen(api->name), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
      }))
    return "its name is not in small letters, digits and '_'";
  if (!api->create || !api->destroy || !api->info || !api->propose || !api->prepare ||
      !api->workspace_bytes || !api->run || !api->destroy_kernel)
    return "its function table has holes";
  return {};
}

ErrorKind kindOf(dvt_code code) {
  switch (code) {
  case DVT_BAD_INPUT:
    return ErrorKind::BadInput;
  case DVT_UNSUPPORTED:
  case DVT_UNAVAILABLE:
    return ErrorKind::Unavailable;
  case DVT_CANCELLED:
    return ErrorKind::Cancelled;
  default:
    return ErrorKind::Internal;
  }
}

} // namespace

Provider::~Provider() {
  if (api && instance)
    api->destroy(instance);
}

bool Provider::preparesConcurrently() const {
  constexpr size_t end = offsetof(dvt_provider_info, concurrent_prepare) +
                         sizeof(dvt_provider_info::concurrent_prepare);
  return info().struct_size >= end && info().concurrent_prepare != 0;
}

Proposal Provider::propose(const Target &target, const Problem &problem) const {
  struct Context {
    const std::string &provider;
    const Target &target;
    const dvt_problem *problem;
    Proposal proposal;
    std::set<std::string> labels;
  };
  ProblemView view(problem);
  Context context{providerName, target, view.get(), {}, {}};
  dvt_candidate_sink sink{};
  sink.struct_size = sizeof(sink);
  sink.context = &context;
  sink.candidate = [](void *opaque, const dvt_candidate *candidate) {
    Context &c = *static_cast<Context *>(opaque);
    if (!candidate) {
      c.proposal.refusals.push_back({"", "proposed a null candidate"});
      return;
    }
    if (auto why = findNonsense(*candidate, *c.problem)) {
      c.proposal.refusals.push_back({"", "proposed nonsense: " + *why});
      return;
    }
    Candidate copied = Candidate::copy(c.provider, *candidate, *c.problem);
    if (copied.memory != c.target.memory()) {
      c.proposal.refusals.push_back(
          {copied.algorithm,
           fmt::format("works in {} memory; the target is {}",
                       copied.memory == DVT_MEMORY_HOST ? "host" : "device", c.target.name())});
      return;
    }
    if (!c.labels.insert(copied.label()).second) {
      c.proposal.refusals.push_back({copied.algorithm, "proposed twice"});
      return;
    }
    c.proposal.candidates.push_back(std::move(copied));
  };
  sink.refusal = [](void *opaque, const char *algorithm, const char *reason) {
    static_cast<Context *>(opaque)->proposal.refusals.push_back(
        {algorithm ? algorithm : "", reason ? reason : "no reason given"});
  };
  dvt_error error{};
  dvt_target c = target.view();
  dvt_code code = api->propose(instance, &c, view.get(), &sink, &error);
  if (code != DVT_OK)
    context.proposal.refusals.push_back({"", messageOf(error, code)});
  return std::move(context.proposal);
}

Expected<std::vector<uint8_t>> Provider::compile(const Target &target, const Problem &problem,
                                                 const Candidate &candidate) const {
  struct Context {
    std::vector<uint8_t> bytes;
    bool tooMany = false;
  } context;
  if (!api->compile)
    return std::move(context.bytes);
  dvt_bytes_sink sink{};
  sink.struct_size = sizeof(sink);
  sink.context = &context;
  sink.bytes = [](void *opaque, const void *data, uint64_t size) {
    Context &c = *static_cast<Context *>(opaque);
    if (!data || size > kMostKernelBytes - c.bytes.size()) {
      c.tooMany |= size > 0;
      return;
    }
    const auto *first = static_cast<const uint8_t *>(data);
    c.bytes.insert(c.bytes.end(), first, first + size);
  };
  ProblemView view(problem);
  std::vector<const char *> storage;
  dvt_candidate c = candidate.view(storage);
  dvt_target t = target.view();
  dvt_error error{};
  dvt_code code = api->compile(instance, &t, view.get(), &c, &sink, &error);
  if (code != DVT_OK)
    return Error{kindOf(code), fmt::format("{}: cannot compile {}: {}", candidate.label(),
                                           summary(problem), messageOf(error, code))};
  if (context.tooMany)
    return internalError("{}: gave no bytes or more than {} for a kernel", candidate.label(),
                         kMostKernelBytes);
  return std::move(context.bytes);
}

PluginSet PluginSet::load(const Options &options) {
  PluginSet set;
  for (const std::string &folder : options.folders) {
    if (folder.empty() || folder == ".")
      continue;
    for (const std::string &file : pluginFiles(folder)) {
      auto refuse = [&](std::string reason, bool expected = false) {
        set.failed.push_back({file, std::move(reason), expected});
      };
      if (!isWholeLibrary(file)) {
        refuse("not a shared library, or cut short");
        continue;
      }
      void *library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (!library) {
        const char *why = ::dlerror();
        refuse(why ? why : "cannot be loaded");
        continue;
      }
      auto entry = reinterpret_cast<dvt_provider_entry_fn>(::dlsym(library, "dvt_provider_entry"));
      if (!entry) {
        refuse("exports no dvt_provider_entry");
        continue;
      }
      const dvt_provider_api *api = entry(DVT_PROVIDER_ABI_VERSION);
      if (std::string why = checkTable(api); !why.empty()) {
        refuse(why);
        continue;
      }
      if (!options.only.empty() &&
          std::find(options.only.begin(), options.only.end(), api->name) == options.only.end())
        continue;
      if (set.find(api->name)) {
        refuse(fmt::format("a provider named {} was loaded before it", api->name), true);
        continue;
      }
      dvt_host host{};
      host.struct_size = sizeof(host);
      host.library_path = options.vendorPath.c_str();
      host.device_drivers = options.deviceDrivers.c_str();
      host.log_context = options.logContext;
      host.log = options.log;
      host.runs_only = options.runsOnly;
      dvt_error error{};
      std::unique_ptr<Provider> provider(new Provider());
      dvt_code code = api->create(&host, &provider->instance, &error);
      if (code != DVT_OK || !provider->instance) {
        provider->instance = nullptr;
        refuse(messageOf(error, code), code == DVT_UNAVAILABLE);
        continue;
      }
      provider->api = api;
      provider->library = library;
      provider->providerName = api->name;
      const dvt_provider_info *info = api->info(provider->instance);
      if (!info || info->struct_size < kLeastInfoBytes || !info->version) {
        refuse("states no version");
        continue;
      }
      set.loaded.push_back(std::move(provider));
    }
  }
  std::stable_partition(set.loaded.begin(), set.loaded.end(),
                        [](const auto &provider) { return provider->name() != "reference"; });
  return set;
}

const Provider *PluginSet::find(std::string_view name) const {
  for (const auto &provider : loaded)
    if (provider->name() == name)
      return provider.get();
  return nullptr;
}

std::string_view loadableVersion(std::string_view version) {
  return version.substr(0, version.find('#'));
}

std::string defaultPluginFolder() {
  Dl_info about;
  struct link_map *map = nullptr;
  std::string file;
  if (::dladdr1(reinterpret_cast<void *>(&defaultPluginFolder), &about,
                reinterpret_cast<void **>(&map), RTLD_DL_LINKMAP) != 0 &&
      map && map->l_name)
    file = map->l_name;
  std::error_code error;
  fs::path binary =
      fs::canonical(file.empty() ? fs::path("/proc/self/exe") : fs::path(file), error);
  if (error)
    return {};
  fs::path folder = binary.parent_path();
  for (const fs::path &choice : {folder / "dovetail", folder.parent_path() / "lib" / "dovetail"})
    if (fs::is_directory(choice, error))
      return choice.string();
  return (folder.parent_path() / "lib" / "dovetail").string();
}

} // namespace dovetail
