// SPDX-License-Identifier: Apache-2.0
//
// The cuDNN plug-in: the door's functions. It serves devices of CUDA, which need not be here to be
// planned and compiled for: the target's description stands for them. Only prepare and run want
// one. Beside the library's graphs its older calls are on offer where they compute the problem;
// those have nothing to compile.
#include <algorithm>
#include <mutex>

#include "providers/DeviceCalls.h"
#include "providers/ProviderTable.h"
#include "providers/cudnn/Device.h"
#include "providers/cudnn/Driver.h"
#include "providers/cudnn/LegacyKernel.h"
#include "providers/cudnn/Translate.h"

using namespace dovetail;
using namespace dovetail::cudnn;
using providers::fail;
using providers::ProblemReader;

namespace {

struct CudnnProvider {
  using Kernel = cudnn::Kernel;
  static constexpr const char *name() { return "cudnn"; }
  explicit CudnnProvider(const dvt_host *host)
      : library(std::make_shared<Library>(host ? host->library_path : nullptr)) {
    version = library->isLoaded() ? "1+cuDNN-" + library->versionText : "1";
    libraryInfo = {sizeof libraryInfo, "cuDNN", library->versionText.c_str(), library->file.c_str(),
                   library->missing.c_str()};
    info = {sizeof info, name(), version.c_str(), &libraryInfo, 1, 1, 0};
    driver = providers::driverFile(providers::hostDrivers(host), "cuda");
  }
  Surroundings surroundings() {
    const std::lock_guard lock(mutex);
    std::shared_ptr<SharedHandle> made = handle.lock();
    if (!made)
      handle = made = std::make_shared<SharedHandle>(library);
    return {library, made, driver};
  }
  dvt_code propose(const dvt_target *target, const dvt_problem *problem,
                   const dvt_candidate_sink *sink, dvt_error *error);
  dvt_code compile(const dvt_target *target, const dvt_problem *problem,
                   const dvt_candidate *candidate, const dvt_bytes_sink *sink, dvt_error *error);
  dvt_code prepare(const dvt_target *target, const dvt_problem *problem,
                   const dvt_candidate *candidate, const dvt_prepare_args *args,
                   std::unique_ptr<Kernel> &made, dvt_error *error);

  std::shared_ptr<const Library> library; ///< kernels hold it, too
  std::mutex mutex;
  std::weak_ptr<SharedHandle> handle; ///< the kernels'; under the mutex
  std::string version, driver;        ///< the file of another driver than the system's
  dvt_library_info libraryInfo;
  dvt_provider_info info;
};

const std::string kPrefix = "cudnn: ";

/// Of the engines for one graph those are offered that the library ranks first, and the first few
/// of every class of rounding.
constexpr size_t kFirst = 8, kOfEachClass = 2;

/// What every call checks before anything else.
dvt_code checkCall(const Library &library, const dvt_target *target, const dvt_problem *problem,
                   dvt_error *error) {
  if (dvt_code code = providers::checkDeviceCall(target, problem, "cuda", "CUDA", kPrefix, error);
      code != DVT_OK)
    return code;
  return library.isLoaded() ? DVT_OK : fail(error, DVT_UNAVAILABLE, kPrefix + library.missing);
}

/// The type that decides which units compute: that of the first operand.
dvt_type typeOf(const ProblemReader &problem, const Graph &graph) {
  for (const Operation &op : graph.operations)
    for (size_t operand : op.operands)
      if (operand != Operation::kAbsent && !graph.tensors[operand].isVirtual() &&
          !graph.tensors[operand].number)
        return problem.type(graph.tensors[operand].value);
  return DVT_F32;
}

/// Whether it has sums of products, which matrix units compute; they compute nothing else.
bool contracts(const Graph &graph) {
  return std::any_of(graph.operations.begin(), graph.operations.end(), [](const Operation &op) {
    return op.kind == Operation::Kind::Convolution || op.kind == Operation::Kind::Matmul ||
           op.kind == Operation::Kind::Attention;
  });
}

/// A device that the library plans for, described.
struct Planning {
  Device device;
  Object properties;
};

dvt_code startPlanning(const Library &library, const dvt_target &target, Planning &planning,
                       dvt_error *error) {
  std::string reason;
  std::optional<Device> device = Device::read(target.description, reason);
  if (!device)
    return fail(error, DVT_BAD_INPUT, kPrefix + reason);
  planning.device = std::move(*device);
  if (reason = provideDriverForCompiling(); !reason.empty())
    return fail(error, DVT_UNAVAILABLE, kPrefix + reason);
  Backend backend(library);
  planning.properties = deviceProperties(backend, planning.device.properties);
  return backend.ok() ? DVT_OK : fail(error, DVT_BAD_INPUT, kPrefix + backend.reason());
}

/// An engine for the graph, or a way to use the older calls.
struct Offered {
  std::string algorithm, numerics;
  uint64_t workspaceBytes = 0;
  bool isDeterministic = false;
};

void offer(const dvt_candidate_sink &sink, const Graph &graph, const Offered &offered,
           double estimateMicros) {
  const std::vector<const char *> in = providers::pointersTo(graph.inputLayouts),
                                  out = providers::pointersTo(graph.outputLayouts);
  dvt_candidate candidate = {};
  candidate.struct_size = sizeof candidate;
  candidate.algorithm = offered.algorithm.c_str();
  candidate.input_layouts = in.data();
  candidate.output_layouts = out.data();
  candidate.workspace_bytes = offered.workspaceBytes;
  candidate.packing = DVT_PACKING_NONE;
  candidate.threading = DVT_THREADING_SERIAL;
  candidate.numerics = offered.numerics.c_str();
  candidate.deterministic = offered.isDeterministic;
  candidate.estimate_micros = estimateMicros;
  candidate.memory = DVT_MEMORY_DEVICE;
  sink.candidate(sink.context, &candidate);
}

/// Whether anything was offered for this graph; `reason` is the library's where not, and
/// `onlyCompiles` whether the library has no kernel for it but those that it compiles.
bool proposeGraph(const Library &library, const ProblemReader &problem, const Graph &graph,
                  const Planning &planning, const dvt_candidate_sink &sink, std::string &reason,
                  bool &onlyCompiles) {
  Backend backend(library);
  const OperationGraph built = build(backend, graph);
  const std::vector<Engine> engines =
      findEngines(backend, built, planning.properties, typeOf(problem, graph), contracts(graph));
  if (engines.empty()) {
    reason = backend.reason();
    return false;
  }
  const providers::RoughWork work = providers::roughWork(problem);
  std::map<std::string, size_t> ofClass;
  onlyCompiles =
      contracts(graph) && std::all_of(engines.begin(), engines.end(),
                                      [](const Engine &engine) { return engine.compiles; });
  for (size_t i = 0; i < engines.size(); ++i)
    if (++ofClass[engines[i].numerics] <= kOfEachClass || i < kFirst)
      offer(sink, graph,
            {graph.family + ":" + engines[i].name(), engines[i].numerics, engines[i].workspaceBytes,
             engines[i].isDeterministic},
            planning.device.estimateMicros(work, engines[i], i));
  return true;
}

/// Whether anything was offered for any of the graphs; `reason` is the library's where not.
bool proposeGraphs(const Library &library, const ProblemReader &problem,
                   const std::vector<Graph> &graphs, const Planning &planning,
                   const dvt_candidate_sink &sink, std::string &reason) {
  bool any = false, onlyCompiles = false;
  for (const Graph &graph : graphs) {
    // The library's compiler takes images of convolutions with channels last only, and is slow to
    // say so.
    if (onlyCompiles)
      break;
    std::string why;
    if (proposeGraph(library, problem, graph, planning, sink, why, onlyCompiles))
      any = true;
    else if (sink.refusal && graphs.size() > 1)
      sink.refusal(sink.context, graph.family.c_str(), why.c_str());
    if (reason.empty())
      reason = why;
  }
  return any;
}

/// Whether anything was offered by the older calls.
bool proposeLegacy(const ProblemReader &problem, const std::vector<Graph> &graphs,
                   const providers::DevicePeaks &peaks, const dvt_candidate_sink &sink,
                   std::string &reason) {
  bool any = false;
  const providers::RoughWork work = providers::roughWork(problem);
  for (const Graph &graph : graphs)
    if (const std::optional<LegacyForm> form = findLegacyForm(graph, reason))
      for (const LegacyOffer &each : legacyOffers(graph, *form)) {
        any = true;
        offer(sink, graph, {each.name, each.numerics, each.workspaceBytes, each.isDeterministic()},
              estimateMicros(graph, *form, each, work, peaks));
      }
  return any;
}

dvt_code CudnnProvider::propose(const dvt_target *target, const dvt_problem *problem,
                                const dvt_candidate_sink *sink, dvt_error *error) {
  if (dvt_code code = checkCall(*library, target, problem, error); code != DVT_OK)
    return code;
  ProblemReader reader(*problem);
  std::string reason;
  const std::vector<Graph> graphs = translate(reader, reason);
  if (graphs.empty())
    return fail(error, DVT_UNSUPPORTED, kPrefix + reason);
  const std::optional<providers::DevicePeaks> peaks =
      providers::DevicePeaks::read(target->description, reason);
  if (!peaks)
    return fail(error, DVT_BAD_INPUT, kPrefix + reason);
  bool any = false;
  reason = library->withoutGraphs;
  if (library->hasGraphs()) {
    Planning planning;
    if (dvt_code code = startPlanning(*library, *target, planning, error); code != DVT_OK)
      return code;
    any = proposeGraphs(*library, reader, graphs, planning, *sink, reason);
  }
  std::string why;
  if (library->hasLegacy() && proposeLegacy(reader, graphs, *peaks, *sink, why))
    any = true;
  return any ? DVT_OK : fail(error, DVT_UNSUPPORTED, kPrefix + reason);
}

/// What a candidate stands for: an engine for a graph, or a way to use the older calls for it.
struct Found {
  Graph graph;
  std::optional<Engine> engine;
  std::optional<LegacyForm> form;
  LegacyOffer legacy;
};

/// The graph's own candidate of that name.
std::optional<Found> findIn(Graph graph, const dvt_candidate &candidate) {
  const std::string_view name = candidate.algorithm;
  if (name.starts_with(graph.family + ":"))
    if (std::optional<Engine> engine = parseEngine(name.substr(graph.family.size() + 1)))
      return Found{std::move(graph), std::move(engine), {}, {}};
  std::string why;
  std::optional<LegacyForm> form = findLegacyForm(graph, why);
  if (!form)
    return std::nullopt;
  for (LegacyOffer &offer : legacyOffers(graph, *form))
    if (offer.name == name) {
      offer.workspaceBytes = std::min(offer.workspaceBytes, candidate.workspace_bytes);
      return Found{std::move(graph), {}, std::move(form), std::move(offer)};
    }
  return std::nullopt;
}

/// Nothing with `reason`.
std::optional<Found> find(const ProblemReader &problem, const dvt_candidate &candidate,
                          std::string &reason) {
  for (Graph &graph : translate(problem, reason)) {
    if (!providers::areLayouts(candidate.input_layouts, graph.inputLayouts) ||
        !providers::areLayouts(candidate.output_layouts, graph.outputLayouts))
      continue;
    if (std::optional<Found> found = findIn(std::move(graph), candidate))
      return found;
  }
  if (reason.empty())
    reason = "nothing is called " + std::string(candidate.algorithm) + " with these layouts";
  return std::nullopt;
}

dvt_code CudnnProvider::compile(const dvt_target *target, const dvt_problem *problem,
                                const dvt_candidate *candidate, const dvt_bytes_sink *sink,
                                dvt_error *error) {
  if (dvt_code code = checkCall(*library, target, problem, error); code != DVT_OK)
    return code;
  if (!candidate || !candidate->algorithm)
    return fail(error, DVT_BAD_INPUT, kPrefix + "compile without a candidate");
  ProblemReader reader(*problem);
  std::string reason;
  const std::optional<Found> found = find(reader, *candidate, reason);
  if (!found)
    return fail(error, DVT_UNSUPPORTED, kPrefix + reason);
  if (!found->engine)
    return DVT_OK; // its kernel takes no bytes, and so runs on other versions, too
  if (!library->hasGraphs())
    return fail(error, DVT_UNAVAILABLE, kPrefix + library->withoutGraphs);
  Planning planning;
  if (dvt_code code = startPlanning(*library, *target, planning, error); code != DVT_OK)
    return code;
  Backend backend(*library);
  const OperationGraph graph = build(backend, found->graph);
  const std::string plan = makePlan(backend, graph, planning.properties, *found->engine);
  if (!backend.ok() || plan.empty())
    return fail(error, DVT_FAILED, kPrefix + candidate->algorithm + ": " + backend.reason());
  sink->bytes(sink->context, plan.data(), plan.size());
  return DVT_OK;
}

dvt_code CudnnProvider::prepare(const dvt_target *target, const dvt_problem *problem,
                                const dvt_candidate *candidate, const dvt_prepare_args *args,
                                std::unique_ptr<Kernel> &made, dvt_error *error) {
  if (dvt_code code = checkCall(*library, target, problem, error); code != DVT_OK)
    return code;
  if (!candidate || !candidate->algorithm || !args)
    return fail(error, DVT_BAD_INPUT, kPrefix + "prepare without a candidate");
  ProblemReader reader(*problem);
  std::string reason;
  const std::optional<Found> found = find(reader, *candidate, reason);
  if (!found)
    return fail(error, DVT_UNSUPPORTED, kPrefix + reason);
  if (found->engine && (!args->kernel || args->kernel_bytes == 0))
    return fail(error, DVT_BAD_INPUT, kPrefix + "prepare without a kernel");
  dvt_code code = DVT_UNAVAILABLE;
  if (!found->engine && !library->hasLegacy())
    reason = "version " + library->versionText + " has the older calls no more";
  else if (found->engine && !library->hasGraphs())
    reason = library->withoutGraphs;
  else if (found->engine)
    made = loadKernel(surroundings(), found->graph, reader,
                      std::string(static_cast<const char *>(args->kernel), args->kernel_bytes),
                      code, reason);
  else
    made = makeLegacyKernel(surroundings(), found->graph, *found->form, found->legacy, reader, code,
                            reason);
  if (!made)
    return fail(error, code, kPrefix + candidate->algorithm + ": " + reason);
  return DVT_OK;
}

} // namespace

const dvt_provider_api *dvt_provider_entry(uint32_t host_abi_version) {
  return providers::ProviderTable<CudnnProvider>::get(host_abi_version);
}
