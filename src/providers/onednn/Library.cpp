// SPDX-License-Identifier: Apache-2.0
//
// Loads oneDNN: first file name that exists and has the right major version wins. Every function is
// looked up at once, so that a build without some primitive is found out here and not in the middle
// of a run.
#include "providers/onednn/Library.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "providers/onednn/Numbers.h"
#if DOVETAIL_ONEDNN_GENERATION == 2
#include "providers/onednn/generation2/Translation.h"
#endif

namespace dovetail::onednn {

#define DOVETAIL_ONEDNN_NUMBER(name) dnnl_##name,
const Numbers kNumbers = {{DOVETAIL_ONEDNN_ALGORITHMS(DOVETAIL_ONEDNN_NUMBER)},
                          {DOVETAIL_ONEDNN_DIRECTIONS(DOVETAIL_ONEDNN_NUMBER)},
                          {DOVETAIL_ONEDNN_BYTE_ISAS(DOVETAIL_ONEDNN_NUMBER)},
                          {DOVETAIL_ONEDNN_QUERIES(DOVETAIL_ONEDNN_NUMBER)},
                          {DOVETAIL_ONEDNN_DESC_QUERIES(DOVETAIL_ONEDNN_NUMBER)},
                          DNNL_ARG_ATTR_MULTIPLE_POST_OP_BASE,
                          DNNL_ARG_ATTR_ZERO_POINTS};
#undef DOVETAIL_ONEDNN_NUMBER

namespace {

static_assert(DNNL_VERSION_MAJOR == 3, "the adapter is written against the headers of oneDNN 3.x");
constexpr int kMajor = kGeneration;
constexpr int kLeastMinor = kGeneration == 2 ? 6 : 2;

#if DOVETAIL_ONEDNN_GENERATION == 2
template <typename Function> struct Unimplemented;
template <typename... Arguments> struct Unimplemented<dnnl_status_t (*)(Arguments...)> {
  static dnnl_status_t call(Arguments...) { return dnnl_unimplemented; }
};
template <typename Result, typename... Arguments> struct Unimplemented<Result (*)(Arguments...)> {
  static constexpr Result (*call)(Arguments...) = nullptr;
};

/// What 2.x has no counterpart of is not implemented there.
template <typename Function> Function lookup(void *opened, const char *name) {
  auto found = reinterpret_cast<Function>(generation2::find(opened, name));
  return found ? found : Unimplemented<Function>::call;
}
#else
template <typename Function> Function lookup(void *opened, const char *name) {
  return reinterpret_cast<Function>(dlsym(opened, ("dnnl_" + std::string(name)).c_str()));
}
#endif

} // namespace

std::string Library::load(const std::string &name) {
  void *opened = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened) {
    const char *reason = dlerror();
    return reason ? reason : name + ": cannot be loaded";
  }
  auto reject = [&](std::string reason) {
    dlclose(opened);
    engine = nullptr;
    return name + ": " + reason;
  };
  std::string absent;
#define DOVETAIL_ONEDNN_LOOKUP(function)                                                           \
  this->function = lookup<decltype(&dnnl_##function)>(opened, #function);                          \
  if (!this->function && absent.empty())                                                           \
    absent = "dnnl_" #function;
  DOVETAIL_ONEDNN_FUNCTIONS(DOVETAIL_ONEDNN_LOOKUP)
#undef DOVETAIL_ONEDNN_LOOKUP
#if DOVETAIL_ONEDNN_GENERATION == 2
  primitive_attr_set_output_scales = reinterpret_cast<decltype(primitive_attr_set_output_scales)>(
      generation2::find(opened, "primitive_attr_set_output_scales"));
  if (!primitive_attr_set_output_scales && absent.empty())
    absent = "dnnl_primitive_attr_set_output_scales";
#endif
  if (!version)
    return reject("has no dnnl_version, is no oneDNN");
  const dnnl_version_t *found = version();
  std::string foundText = std::to_string(found->major) + "." + std::to_string(found->minor) + "." +
                          std::to_string(found->patch);
  if (found->major != kMajor || found->minor < kLeastMinor)
    return reject("version " + foundText + " found, " + std::to_string(kMajor) + "." +
                  std::to_string(kLeastMinor) + " or a later " + std::to_string(kMajor) +
                  ".x is needed");
  if (!absent.empty())
    return reject("version " + foundText + " lacks " + absent);
  dnnl_status_t status = engine_create(&engine, dnnl_cpu, 0);
  if (status != dnnl_success)
    return reject(std::string("no CPU engine: ") + status2str(status));
  Dl_info place;
  file =
      dladdr(reinterpret_cast<void *>(version), &place) && place.dli_fname ? place.dli_fname : name;
  versionText = foundText;
  handle = opened;
  return {};
}

Library::Library(const char *path) {
  std::string_view rest = path ? path : "";
  std::string tried;
  auto attempt = [&](const std::string &name) {
    std::string reason = load(name);
    if (!reason.empty())
      tried += (tried.empty() ? "" : "; ") + reason;
    return reason.empty();
  };
  const std::string soname = "libdnnl.so." + std::to_string(kMajor);
  while (!rest.empty()) {
    size_t end = rest.find(':');
    std::string folder(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    // Relative folders would make what is loaded depend on the current one.
    if (!folder.empty() && folder[0] == '/' && std::filesystem::exists(folder + "/" + soname) &&
        attempt(folder + "/" + soname))
      return;
  }
  if (attempt(soname))
    return;
  missing = "oneDNN " + std::to_string(kMajor) + "." + std::to_string(kLeastMinor) +
            " or later was not found; " +
            (kGeneration == 2 ? "Debian's package libdnnl2 has "
                              : "`pip download --no-deps onednn-cpu-gomp` has ") +
            soname + ", put its folder into the library path (tried: " + tried + ")";
}

bool Library::sumsBytesIn32Bits() const {
  const auto isa = static_cast<unsigned>(get_effective_cpu_isa());
  return std::any_of(std::begin(kNumbers.byteIsas), std::end(kNumbers.byteIsas), [&](int known) {
    return (isa & static_cast<unsigned>(known)) == static_cast<unsigned>(known);
  });
}

Library::~Library() {
  if (engine)
    engine_destroy(engine);
  // The library stays mapped: its OpenMP threads may still be in its code.
}

} // namespace dovetail::onednn
