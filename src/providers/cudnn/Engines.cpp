// SPDX-License-Identifier: Apache-2.0
//
// Asks the heuristics A, B and the fallback in this order. Where engines compile their kernels,
// each answer takes tenths of a second and the later ones repeat the first. What notes an engine
// has decides its class of rounding.
#include "providers/cudnn/Engines.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace dovetail::cudnn {
namespace {

constexpr int64_t kMostKnobs = 64;    ///< there are 44 kinds today
constexpr int64_t kMostConfigs = 128; ///< the heuristics give up to 40 today

std::string numericsOf(dvt_type type, const std::set<int> &notes) {
  auto has = [&](NumericalNote note) { return notes.count(static_cast<int>(note)) > 0; };
  std::string name = type == DVT_F16 ? "f16" : type == DVT_BF16 ? "bf16" : "f32";
  // Matrix units round what they read from f32 to 10 bits of fraction.
  if (type == DVT_F32 && has(NumericalNote::DownConvertsInputs))
    name = "f16-from-f32";
  else if (type == DVT_F32 && has(NumericalNote::TensorCore))
    name = "tf32";
  if (has(NumericalNote::Winograd) || has(NumericalNote::WinogradTile4x4) ||
      has(NumericalNote::WinogradTile6x6) || has(NumericalNote::WinogradTile13x13))
    name += "-winograd";
  if (has(NumericalNote::Fft))
    name += "-fft";
  if (has(NumericalNote::ReducedPrecisionReduction))
    name += "-reduced";
  return name;
}

std::set<int> notesOf(const Object &engine, Attribute attribute, AttributeType type) {
  const std::vector<int> list = engine.list(attribute, type);
  return std::set<int>(list.begin(), list.end());
}

std::optional<Engine> describe(Backend &backend, const Object &config, dvt_type type,
                               bool contracts) {
  Engine engine;
  const std::vector<Object> objects =
      config.objects(backend, Attribute::ConfigEngine, DescriptorKind::Engine, 1);
  const std::vector<Object> knobs =
      config.objects(backend, Attribute::ConfigKnobChoices, DescriptorKind::KnobChoice, kMostKnobs);
  if (!backend.ok() || objects.size() != 1)
    return std::nullopt;
  engine.index = objects[0].integer(Attribute::EngineGlobalIndex, -1);
  for (const Object &knob : knobs)
    if (const int kind = knob.enumerator(Attribute::KnobChoiceType, AttributeType::KnobType, -1);
        kind >= 0)
      engine.knobs[kind] = knob.integer(Attribute::KnobChoiceValue, 0);
  engine.workspaceBytes = static_cast<uint64_t>(
      std::max<int64_t>(0, config.integer(Attribute::ConfigWorkspaceBytes, 0)));
  std::set<int> notes = notesOf(objects[0], Attribute::EngineNumericalNotes,
                                AttributeType::NumericalNote),
                behavior = notesOf(objects[0], Attribute::EngineBehaviorNotes,
                                   AttributeType::BehaviorNote);
  if (!contracts) // the note is of all that the engine may be given
    notes.erase(static_cast<int>(NumericalNote::TensorCore));
  engine.compiles = behavior.count(static_cast<int>(BehaviorNote::RuntimeCompilation)) > 0;
  engine.usesMatrixUnits = notes.count(static_cast<int>(NumericalNote::TensorCore)) > 0;
  engine.isDeterministic = notes.count(static_cast<int>(NumericalNote::Nondeterministic)) == 0;
  engine.numerics = numericsOf(type, notes);
  return engine.index < 0 ? std::nullopt : std::optional(std::move(engine));
}

bool readNumber(std::string_view &text, int64_t &number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc())
    return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool skip(std::string_view &text, std::string_view part) {
  if (!text.starts_with(part))
    return false;
  text.remove_prefix(part.size());
  return true;
}

} // namespace

Object deviceProperties(Backend &backend, const std::string &json) {
  Object made(backend, DescriptorKind::DeviceProperties);
  made.set(backend, Attribute::DevicePropertiesJson, json);
  made.finalize(backend, "the device's properties (library_properties of its description)");
  return made;
}

std::string Engine::name() const {
  std::string text = "eng" + std::to_string(index);
  for (const auto &[kind, setting] : knobs)
    text += ":k" + std::to_string(kind) + "=" + std::to_string(setting);
  return text;
}

std::optional<Engine> parseEngine(std::string_view name) {
  Engine engine;
  if (!skip(name, "eng") || !readNumber(name, engine.index))
    return std::nullopt;
  while (!name.empty()) {
    int64_t kind = 0, setting = 0;
    if (!skip(name, ":k") || !readNumber(name, kind) || !skip(name, "=") ||
        !readNumber(name, setting))
      return std::nullopt;
    engine.knobs[kind] = setting;
  }
  return engine;
}

std::vector<Engine> findEngines(Backend &backend, const OperationGraph &graph, const Object &device,
                                dvt_type type, bool contracts) {
  std::vector<Engine> found;
  std::set<std::string> names;
  std::string firstReason;
  for (HeuristicMode mode : {HeuristicMode::A, HeuristicMode::B, HeuristicMode::Fallback}) {
    if (!backend.ok())
      break;
    // What A knows nothing of, B does not know either, which may take it a second to find out.
    if (found.empty() && mode == HeuristicMode::B)
      continue;
    Object heuristic(backend, DescriptorKind::EngineHeuristic);
    heuristic.set(backend, Attribute::HeuristicGraph, graph.graph);
    heuristic.set(backend, Attribute::HeuristicMode, AttributeType::HeuristicMode, 1, &mode);
    heuristic.set(backend, Attribute::HeuristicDeviceProperties, device);
    heuristic.finalize(backend, "the heuristics");
    const std::vector<Object> configs = heuristic.objects(
        backend, Attribute::HeuristicResults, DescriptorKind::EngineConfig, kMostConfigs);
    for (const Object &config : configs)
      if (std::optional<Engine> engine = describe(backend, config, type, contracts);
          engine && names.insert(engine->name()).second)
        found.push_back(std::move(*engine));
    if (!found.empty() && found.front().compiles)
      break;
    // One mode may know nothing of a graph where another does.
    if (firstReason.empty())
      firstReason = backend.reason();
    backend.forget();
  }
  if (found.empty() && firstReason.empty()) {
    const std::string noted = backend.library.lastError();
    firstReason = "no engine of the library takes this graph" + (noted.empty() ? "" : ": " + noted);
  }
  if (found.empty())
    backend.fail(firstReason);
  return found;
}

std::string makePlan(Backend &backend, const OperationGraph &graph, const Object &device,
                     const Engine &engine) {
  Object chosen(backend, DescriptorKind::Engine);
  chosen.set(backend, Attribute::EngineGraph, graph.graph);
  chosen.set(backend, Attribute::EngineGlobalIndex, engine.index);
  chosen.set(backend, Attribute::EngineDeviceProperties, device);
  chosen.finalize(backend, "the engine");
  std::vector<Object> knobs;
  std::vector<Descriptor> choices;
  for (const auto &[kind, setting] : engine.knobs) {
    const int type = static_cast<int>(kind);
    Object &knob = knobs.emplace_back(backend, DescriptorKind::KnobChoice);
    knob.set(backend, Attribute::KnobChoiceType, AttributeType::KnobType, 1, &type);
    knob.set(backend, Attribute::KnobChoiceValue, setting);
    knob.finalize(backend, "a knob");
    choices.push_back(knob.get());
  }
  Object config(backend, DescriptorKind::EngineConfig);
  config.set(backend, Attribute::ConfigEngine, chosen);
  if (!choices.empty())
    config.set(backend, Attribute::ConfigKnobChoices, choices);
  config.finalize(backend, "the engine's settings");
  Object plan(backend, DescriptorKind::ExecutionPlan);
  plan.set(backend, Attribute::PlanConfig, config);
  plan.set(backend, Attribute::PlanDeviceProperties, device);
  plan.finalize(backend, "the plan");
  return plan.text(backend, Attribute::PlanJson);
}

} // namespace dovetail::cudnn
