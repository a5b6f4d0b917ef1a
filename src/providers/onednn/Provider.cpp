// SPDX-License-Identifier: Apache-2.0
//
// The oneDNN plug-in: the door's functions over Library, visitImplementations and Kernel. Nothing
// needs compiling; prepare finds the candidate again by its name and layouts among what propose
// would give.
#include <map>
#include <mutex>

#include "providers/ProblemReader.h"
#include "providers/ProviderTable.h"
#include "providers/TeamSizes.h"
#include "providers/onednn/Attempt.h"
#include "providers/onednn/Kernel.h"

using namespace dovetail;
using namespace dovetail::onednn;
using providers::fail;

namespace {

struct OnednnProvider {
  using Kernel = onednn::Kernel;
  static constexpr const char *name() { return kProviderName; }
  explicit OnednnProvider(const dvt_host *host)
      : library(std::make_shared<Library>(host ? host->library_path : nullptr)) {
    version = (library->isLoaded() ? "9+oneDNN-" + library->versionText : "9") + "#2";
    libraryInfo = {sizeof libraryInfo, "oneDNN", library->versionText.c_str(),
                   library->file.c_str(), library->missing.c_str()};
    info = {sizeof info, name(), version.c_str(), &libraryInfo, 1, 0, 1};
  }
  dvt_code propose(const dvt_target *target, const dvt_problem *problem,
                   const dvt_candidate_sink *sink, dvt_error *error);
  dvt_code prepare(const dvt_target *target, const dvt_problem *problem,
                   const dvt_candidate *candidate, const dvt_prepare_args *args,
                   std::unique_ptr<Kernel> &made, dvt_error *error);

  std::shared_ptr<const Library> library; ///< kernels hold it, too
  /// One that kernels use. Whoever makes it holds its mutex.
  struct Shared {
    std::mutex mutex;
    std::weak_ptr<const Program> program;
  };
  /// Where kernels of this key find their program. A problem without a text has a place of its own:
  /// no two are known to be equal.
  std::shared_ptr<Shared> placeOf(const dvt_problem &problem, const std::string &key);
  std::mutex mutex;                                        ///< guards `programs`, not what is in it
  std::map<std::string, std::shared_ptr<Shared>> programs; ///< by programKey
  std::string version;
  dvt_library_info libraryInfo;
  dvt_provider_info info;
};

const std::string kPrefix = std::string(kProviderName) + ": ";

/// What propose and prepare check before anything else.
dvt_code checkCall(const Library &library, const dvt_target *target, const dvt_problem *problem,
                   dvt_error *error) {
  if (!library.isLoaded())
    return fail(error, DVT_UNAVAILABLE, library.missing);
  if (!target || target->struct_size < sizeof(dvt_target))
    return fail(error, DVT_BAD_INPUT, kPrefix + "target is missing or too short");
  if (std::optional<std::string> wrong = ProblemReader::check(problem))
    return fail(error, DVT_BAD_INPUT, kPrefix + *wrong);
  if (target->device && std::string_view(target->device) != "cpu")
    return fail(error, DVT_UNSUPPORTED, kPrefix + "serves the CPU, not " + target->device);
  return DVT_OK;
}

/// Part of a core's peak that implementations of this name reach, from experience.
double efficiencyOf(std::string_view algorithm) {
  auto has = [&](std::string_view part) { return algorithm.find(part) != std::string_view::npos; };
  if (algorithm.starts_with("recurrent:"))
    return has("brgemm") ? 0.25 : 0.15;
  if (has("ref"))
    return 0.005;
  if (has("wino_4x3")) // fewer operations than are counted
    return 1.2;
  if (has("sse41"))
    return 0.2;
  if (algorithm.starts_with("gemm:"))
    return 0.45;
  if (has("avx512"))
    return has("brg") ? 0.75 : 0.7;
  return has("avx2") ? 0.55 : has("jit") ? 0.5 : 0.3;
}

/// How much faster narrow types are, from experience.
double gainOf(const Resolved &resolved) {
  if (resolved.isReference)
    return 1;
  if (resolved.algorithm.find(":wide") != std::string::npos)
    return 0.9;
  return resolved.numerics == "int8" ? 3 : resolved.numerics == "bf16" ? 1.6 : 1;
}

/// An algorithm's name without its instruction set, and that set's age: 0 is the oldest, -1 none.
std::pair<std::string, int> splitIsa(const std::string &algorithm) {
  static const char *const ladder[] = {":sse41", ":avx", ":avx2", ":avx512"};
  for (int age = 3; age >= 0; --age)
    if (size_t at = algorithm.find(ladder[age]); at != std::string::npos) {
      size_t end = algorithm.find(':', at + 1);
      return {algorithm.substr(0, at) + (end == std::string::npos ? "" : algorithm.substr(end)),
              age};
    }
  return {algorithm, -1};
}

// Private memory, as measured with versions 3.0 and 2.6: relocations of the library and its caches,
// the code and descriptors of a primitive, and the code that makes all shapes of oneDNN's own GEMM,
// which it generates at once.
constexpr uint64_t kLibraryBytes = uint64_t(1) << 19, kJitGemmBytes = uint64_t(7) << 19;
constexpr uint32_t kPrimitiveBytes = 50u << 10;

bool usesJitGemm(const Resolved &resolved) {
  return resolved.algorithm.find("gemm:jit") != std::string::npos &&
         resolved.algorithm.find("brgemm") == std::string::npos;
}

/// Why an implementation is not worth measuring beside the others; empty where it is. Contractions
/// for AVX2 sometimes beat those for AVX-512; nothing else for older processors does.
std::string dominatedBy(const Resolved &resolved, const std::vector<Resolved> &found) {
  const auto [stem, age] = splitIsa(resolved.algorithm);
  bool contraction = false;
  for (const char *family : {"direct", "winograd", "gemm", "matmul", "inner_product", "composed"})
    contraction |= stem.starts_with(family);
  for (const Resolved &other : found) {
    if (resolved.isReference && !other.isReference)
      return "plain loops, slower than the other implementations";
    const auto [otherStem, otherAge] = splitIsa(other.algorithm);
    if (age >= 0 && age < (contraction ? 2 : 3) && otherAge > age && otherStem == stem &&
        other.inputLayouts == resolved.inputLayouts &&
        other.outputLayouts == resolved.outputLayouts)
      return "the same for an older processor than " + other.algorithm;
  }
  return {};
}

dvt_code OnednnProvider::propose(const dvt_target *target, const dvt_problem *problem,
                                 const dvt_candidate_sink *sink, dvt_error *error) {
  if (dvt_code code = checkCall(*library, target, problem, error); code != DVT_OK)
    return code;
  ProblemReader reader(*problem);
  std::vector<Resolved> found;
  std::string reason;
  visitImplementations(
      *library, reader, *target, target->threads, nullptr, nullptr,
      [&](const Attempt &attempt, const Resolved &resolved) {
        for (const Resolved &before : found)
          if (before.algorithm == resolved.algorithm &&
              before.inputLayouts == resolved.inputLayouts &&
              before.outputLayouts == resolved.outputLayouts)
            return true;
        found.push_back(resolved);
        found.back().bindings.clear();
        found.back().bindings.resize(resolved.bindings.size());
        return true;
      },
      reason);
  if (found.empty())
    return fail(error, DVT_UNSUPPORTED,
                kPrefix + (reason.empty() ? "no layout can be stated" : reason));
  const providers::RoughWork work = providers::roughWork(reader);
  unsigned position = 0; // the library's own order of preference
  for (const Resolved &resolved : found) {
    if (std::string why = dominatedBy(resolved, found); !why.empty()) {
      if (sink->refusal)
        sink->refusal(sink->context, resolved.algorithm.c_str(), why.c_str());
      continue;
    }
    std::vector<const char *> in, out;
    for (const std::string &layout : resolved.inputLayouts)
      in.push_back(layout.c_str());
    for (const std::string &layout : resolved.outputLayouts)
      out.push_back(layout.c_str());
    dvt_candidate candidate = {};
    candidate.struct_size = sizeof candidate;
    candidate.algorithm = resolved.algorithm.c_str();
    candidate.input_layouts = in.data();
    candidate.output_layouts = out.data();
    candidate.workspace_bytes = resolved.workspaceBytes();
    candidate.packed_bytes = resolved.packedBytes;
    candidate.packing = resolved.packs ? DVT_PACKING_AT_LOAD : DVT_PACKING_NONE;
    candidate.threading = resolved.threads > 1 ? DVT_THREADING_OPENMP : DVT_THREADING_SERIAL;
    candidate.numerics = resolved.numerics.c_str();
    candidate.deterministic = 1;
    candidate.code_bytes = kPrimitiveBytes * static_cast<uint32_t>(resolved.bindings.size());
    candidate.process_bytes = kLibraryBytes + (usesJitGemm(resolved) ? kJitGemmBytes : 0);
    candidate.estimate_micros =
        providers::roughMicros(work, efficiencyOf(resolved.algorithm) * gainOf(resolved),
                               resolved.threads) *
        (1 + 0.01 * double(position++));
    sink->candidate(sink->context, &candidate);
  }
  return DVT_OK;
}

constexpr size_t kMostPrograms = 4096; ///< known before those that are gone are forgotten

/// All that primitives depend on.
std::string programKey(const dvt_target &target, const dvt_problem &problem,
                       const dvt_candidate &candidate, uint32_t threads) {
  auto textOf = [](const char *text) { return std::string(text ? text : ""); };
  std::string key = textOf(candidate.algorithm) + '|' + std::to_string(threads) + '|' +
                    std::to_string(target.threads) + '|' + textOf(target.features) + '|' +
                    textOf(problem.text);
  for (uint32_t i = 0; i < problem.input_count; ++i)
    key += '|' + textOf(candidate.input_layouts ? candidate.input_layouts[i] : nullptr);
  for (uint32_t i = 0; i < problem.output_count; ++i)
    key += '|' + textOf(candidate.output_layouts ? candidate.output_layouts[i] : nullptr);
  return key;
}

/// Finds the candidate among what propose gives, and tells whether it is there.
std::shared_ptr<const Program> findProgram(const std::shared_ptr<const Library> &library,
                                           const dvt_target &target, const ProblemReader &problem,
                                           const dvt_candidate &candidate,
                                           const dvt_prepare_args &args, bool &isThere,
                                           std::string &reason) {
  std::shared_ptr<const Program> found;
  auto fits = [](const char *const *texts, const std::vector<std::string> &layouts) {
    for (size_t i = 0; i < layouts.size(); ++i)
      if (layouts[i] != (texts && texts[i] ? texts[i] : ""))
        return false;
    return true;
  };
  visitImplementations(
      *library, problem, target, args.threads, &candidate, &args,
      [&](const Attempt &attempt, const Resolved &resolved) {
        if (!fits(candidate.input_layouts, resolved.inputLayouts) ||
            !fits(candidate.output_layouts, resolved.outputLayouts))
          return true;
        isThere = true;
        found = Program::make(library, attempt, resolved, reason);
        return false;
      },
      reason);
  return found;
}

std::shared_ptr<OnednnProvider::Shared> OnednnProvider::placeOf(const dvt_problem &problem,
                                                                const std::string &key) {
  if (!problem.text || !*problem.text)
    return std::make_shared<Shared>();
  std::lock_guard guard(mutex);
  if (programs.size() >= kMostPrograms)
    std::erase_if(programs, [](const auto &entry) {
      return entry.second.use_count() == 1 && entry.second->program.expired();
    });
  std::shared_ptr<Shared> &place = programs[key];
  if (!place)
    place = std::make_shared<Shared>();
  return place;
}

dvt_code OnednnProvider::prepare(const dvt_target *target, const dvt_problem *problem,
                                 const dvt_candidate *candidate, const dvt_prepare_args *args,
                                 std::unique_ptr<Kernel> &made, dvt_error *error) {
  if (dvt_code code = checkCall(*library, target, problem, error); code != DVT_OK)
    return code;
  if (!candidate || !candidate->algorithm || !args)
    return fail(error, DVT_BAD_INPUT, kPrefix + "prepare without a candidate or arguments");
  ProblemReader reader(*problem);
  std::string reason;
  std::shared_ptr<Shared> place =
      placeOf(*problem, programKey(*target, *problem, *candidate, args->threads));
  std::unique_lock guard(place->mutex);
  std::shared_ptr<const Program> program = place->program.lock();
  if (!program) {
    bool isThere = false;
    program = findProgram(library, *target, reader, *candidate, *args, isThere, reason);
    if (!isThere)
      return fail(error, DVT_UNSUPPORTED,
                  kPrefix + std::string("no implementation is called ") + candidate->algorithm +
                      " with these layouts" + (reason.empty() ? "" : ": " + reason));
    if (!program)
      return fail(error, DVT_FAILED, kPrefix + candidate->algorithm + ": " + reason);
    if (!program->ownsNumbers)
      place->program = program;
  }
  guard.unlock();
  made = Kernel::make(std::move(program), reader, *args, reason);
  if (!made)
    return fail(error, DVT_FAILED, kPrefix + candidate->algorithm + ": " + reason);
  return DVT_OK;
}

} // namespace

const dvt_provider_api *dvt_provider_entry(uint32_t host_abi_version) {
  return providers::ProviderTable<OnednnProvider>::get(host_abi_version);
}
