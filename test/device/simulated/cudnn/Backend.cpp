// SPDX-License-Identifier: Apache-2.0
//
// Descriptors: made, filled in, finalised, asked, destroyed.
#include <cstring>

#include "Engines.h"
#include "Graphs.h"
#include "Plans.h"
#include "Rules.h"

using namespace cudnn_double;

namespace cudnn_double {
namespace {

using A = api::Attribute;
using K = api::DescriptorKind;

void finalizeGraph(Entry &entry, Descriptor &graph) {
  graph.graph = readGraph(entry, graph.list<Ref>(A::GraphOps));
}

/// The device that an attribute describes: ten times its architecture's number.
int architectureOf(Entry &entry, const Descriptor &from, A attribute) {
  const Descriptor *device =
      entry.final(from.get<Ref>(attribute), K::DeviceProperties, "the device");
  return device ? deviceVersion(*device).value_or(0) : 0;
}

std::shared_ptr<const KnownGraph> graphOf(Entry &entry, const Descriptor &from, A attribute) {
  const Descriptor *graph = entry.final(from.get<Ref>(attribute), K::OperationGraph, "the graph");
  return graph ? graph->graph : nullptr;
}

void finalizeHeuristic(Entry &entry, Descriptor &heuristic) {
  architectureOf(entry, heuristic, A::HeuristicDeviceProperties);
  heuristic.graph = graphOf(entry, heuristic, A::HeuristicGraph);
  if (!entry.isFine())
    return;
  std::string reason;
  heuristic.settings = enginesFor(heuristic.graph->graph,
                                  heuristic.get<api::HeuristicMode>(A::HeuristicMode), reason);
  entry.need(reason.empty(), NotSupported, "{}", reason);
}

void finalizeEngine(Entry &entry, Descriptor &engine) {
  architectureOf(entry, engine, A::EngineDeviceProperties);
  engine.graph = graphOf(entry, engine, A::EngineGraph);
  engine.settings = {{engine.get<int64_t>(A::EngineGlobalIndex), {}}};
}

void finalizeConfig(Entry &entry, Descriptor &config) {
  const Descriptor *engine = entry.final(config.get<Ref>(A::ConfigEngine), K::Engine, "the engine");
  if (!engine)
    return;
  config.graph = engine->graph;
  config.settings = engine->settings;
  for (Ref ref : config.list<Ref>(A::ConfigKnobChoices))
    if (const Descriptor *knob = entry.final(ref, K::KnobChoice, "the choice of a knob"))
      entry.need(
          config.settings[0]
              .knobs
              .emplace(knob->get<int>(A::KnobChoiceType), knob->get<int64_t>(A::KnobChoiceValue))
              .second,
          DuplicatedEntries, "a knob is chosen twice");
  std::string reason;
  if (entry.isFine())
    entry.need(findEngine(config.graph->graph, config.settings[0], reason).has_value(),
               NotSupported, "{}", reason);
}

void finalizeDevice(Entry &entry, Descriptor &device) {
  entry.need(deviceVersion(device).has_value(), BadParam,
             "the properties are no JSON object with a number for deviceVer");
}

void finalize(Entry &entry, Descriptor &descriptor) {
  switch (descriptor.kind) {
  case K::OperationGraph:
    return finalizeGraph(entry, descriptor);
  case K::EngineHeuristic:
    return finalizeHeuristic(entry, descriptor);
  case K::Engine:
    return finalizeEngine(entry, descriptor);
  case K::EngineConfig:
    return finalizeConfig(entry, descriptor);
  case K::DeviceProperties:
    return finalizeDevice(entry, descriptor);
  case K::ExecutionPlan:
    return finalizePlan(entry, descriptor);
  case K::VariantPack:
    return finalizePack(entry, descriptor);
  default:
    return;
  }
}

/// Numbers that only the library gives, as bytes; `count` of them.
std::vector<uint8_t> givenBytes(const Descriptor &from, A attribute, int64_t &count) {
  std::vector<uint8_t> bytes;
  auto append = [&](const auto &number) {
    const auto *raw = reinterpret_cast<const uint8_t *>(&number);
    bytes.insert(bytes.end(), raw, raw + sizeof number);
    ++count;
  };
  count = 0;
  std::string reason;
  if (attribute == A::ConfigWorkspaceBytes)
    append(static_cast<int64_t>(workspaceOf(from.graph->graph, from.settings[0])));
  if (attribute == A::PlanWorkspaceBytes)
    append(static_cast<int64_t>(from.plan->workspaceBytes));
  if (from.kind != K::Engine)
    return bytes;
  // Of an engine whose knobs were not chosen yet: all settings have the same notes.
  std::optional<Engine> engine;
  for (const Settings &known : enginesFor(from.graph->graph, api::HeuristicMode::A, reason))
    if (!engine && known.engine == from.settings[0].engine)
      engine = findEngine(from.graph->graph, known, reason);
  if (engine)
    for (int note :
         attribute == A::EngineNumericalNotes ? engine->numericalNotes : engine->behaviorNotes)
      append(note);
  return bytes;
}

/// Descriptors that a finalised one holds, to be copied into those of the caller.
std::vector<Descriptor> heldBy(const Descriptor &from, A attribute) {
  std::vector<Descriptor> held;
  for (const Settings &settings : from.settings) {
    Descriptor made;
    made.isFinal = true;
    made.graph = from.graph;
    made.settings = {settings};
    made.kind = attribute == A::HeuristicResults ? K::EngineConfig : K::Engine;
    if (attribute == A::ConfigEngine)
      made.fill(A::EngineGlobalIndex, api::AttributeType::Int64, settings.engine);
    if (attribute != A::ConfigKnobChoices)
      held.push_back(std::move(made));
    for (const auto &[kind, setting] : settings.knobs) {
      if (attribute != A::ConfigKnobChoices)
        break;
      Descriptor knob;
      knob.kind = K::KnobChoice;
      knob.isFinal = true;
      knob.fill(A::KnobChoiceType, api::AttributeType::KnobType, static_cast<int>(kind));
      knob.fill(A::KnobChoiceValue, api::AttributeType::Int64, setting);
      held.push_back(std::move(knob));
    }
  }
  return held;
}

void giveDescriptors(Entry &entry, const Descriptor &from, const Rule &rule, int64_t most,
                     int64_t *count, void *values) {
  std::vector<Descriptor> held = heldBy(from, rule.attribute);
  const int64_t given = std::min(most, static_cast<int64_t>(held.size()));
  for (int64_t i = 0; i < given; ++i) {
    Descriptor *to = entry.find(static_cast<Ref *>(values)[i]);
    if (!to || !entry.need(to->kind == rule.holds, WrongDescriptorType,
                           "a {} is to be filled with a {}", nameOf(to->kind), nameOf(rule.holds)))
      return;
    *to = std::move(held[static_cast<size_t>(i)]);
  }
  *count = given;
}

/// What may be read of an attribute: its own value, a plan's text, or what the library gives.
Value valueOf(const Descriptor &from, const Rule &rule) {
  if (rule.attribute == A::PlanJson) {
    const std::string text = planText(*from.plan);
    return {rule.type, static_cast<int64_t>(text.size()),
            std::vector<uint8_t>(text.begin(), text.end())};
  }
  if (const auto found = from.values.find(rule.attribute); found != from.values.end())
    return found->second;
  Value value{rule.type, 0, {}};
  value.bytes = givenBytes(from, rule.attribute, value.count);
  return value;
}

const Rule *ruleFor(Entry &entry, const Descriptor *descriptor, A attribute,
                    api::AttributeType type) {
  if (!descriptor)
    return nullptr;
  const Rule *rule = findRule(descriptor->kind, attribute);
  if (!entry.need(rule, BadParam, "a {} has no attribute {}", nameOf(descriptor->kind),
                  static_cast<int>(attribute)))
    return nullptr;
  entry.need(rule->type == type, WrongAttributeType, "attribute {} has type {} and not {}",
             static_cast<int>(attribute), static_cast<int>(rule->type), static_cast<int>(type));
  return entry.isFine() ? rule : nullptr;
}

} // namespace
} // namespace cudnn_double

CUDNN_ENTRY int cudnnBackendCreateDescriptor(K kind, Ref *descriptor) {
  Entry entry("cudnnBackendCreateDescriptor");
  entry.need(descriptor, NullPointer, "there is no place for the descriptor");
  entry.need(nameOf(kind), NotSupported, "descriptors of kind {} are not known here",
             static_cast<int>(kind));
  if (entry.isFine())
    state().descriptors[ *descriptor = state().newRef()].kind = kind;
  return entry.end();
}

CUDNN_ENTRY int cudnnBackendDestroyDescriptor(Ref descriptor) {
  Entry entry("cudnnBackendDestroyDescriptor");
  if (entry.find(descriptor))
    state().descriptors.erase(descriptor);
  return entry.end();
}

CUDNN_ENTRY int cudnnBackendSetAttribute(Ref ref, A attribute, api::AttributeType type,
                                         int64_t count, const void *values) {
  Entry entry("cudnnBackendSetAttribute");
  Descriptor *descriptor = entry.find(ref);
  const Rule *rule = ruleFor(entry, descriptor, attribute, type);
  if (!rule)
    return entry.end();
  entry.need(!descriptor->isFinal, BadParam, "a finalised {} is not changed any more",
             nameOf(descriptor->kind));
  entry.need(!rule->isGiven, BadParam, "attribute {} is the library's to give",
             static_cast<int>(attribute));
  entry.need(values, NullPointer, "attribute {} without values", static_cast<int>(attribute));
  entry.need(count >= 1 && count <= rule->most, SizeInsufficient,
             "{} elements for attribute {} of a {}, which has {} at most", count,
             static_cast<int>(attribute), nameOf(descriptor->kind), rule->most);
  if (!entry.isFine())
    return entry.end();
  const auto *bytes = static_cast<const uint8_t *>(values);
  Value value{type, count, {bytes, bytes + static_cast<size_t>(count) * bytesOf(type)}};
  if (type == api::AttributeType::Handle)
    entry.handle(*static_cast<const Ref *>(values));
  for (int64_t i = 0; type == api::AttributeType::Descriptor && i < count; ++i)
    if (const Descriptor *held = entry.find(static_cast<const Ref *>(values)[i])) {
      entry.need(held->isFinal, NotFinalized, "a {} is given that was not finalised",
                 nameOf(held->kind));
      entry.need(attribute == A::GraphOps || held->kind == rule->holds, WrongDescriptorType,
                 "a {} is given for a {}", nameOf(held->kind), nameOf(rule->holds));
    }
  if (entry.isFine())
    descriptor->values[attribute] = std::move(value);
  return entry.end();
}

CUDNN_ENTRY int cudnnBackendFinalize(Ref ref) {
  Entry entry("cudnnBackendFinalize");
  Descriptor *descriptor = entry.find(ref);
  if (!descriptor)
    return entry.end();
  entry.need(!descriptor->isFinal, BadParam, "a {} is finalised twice", nameOf(descriptor->kind));
  const std::string missing = missingIn(*descriptor);
  entry.need(missing.empty(), BadParam, "{}", missing);
  if (entry.isFine())
    finalize(entry, *descriptor);
  if (entry.isFine())
    descriptor->isFinal = true;
  return entry.end();
}

CUDNN_ENTRY int cudnnBackendGetAttribute(Ref ref, A attribute, api::AttributeType type,
                                         int64_t most, int64_t *count, void *values) {
  Entry entry("cudnnBackendGetAttribute");
  const Descriptor *descriptor = entry.find(ref);
  const Rule *rule = ruleFor(entry, descriptor, attribute, type);
  if (!rule)
    return entry.end();
  entry.need(descriptor->isFinal, NotFinalized, "a {} is asked that was not finalised",
             nameOf(descriptor->kind));
  entry.need(count && most >= 0 && (values || most == 0), NullPointer,
             "there is no place for attribute {}", static_cast<int>(attribute));
  if (!entry.isFine())
    return entry.end();
  if (type == api::AttributeType::Descriptor) {
    giveDescriptors(entry, Descriptor(*descriptor), *rule, most, count, values);
    return entry.end();
  }
  const Value value = valueOf(*descriptor, *rule);
  *count = value.count;
  if (most > 0) {
    *count = std::min(most, value.count);
    std::memcpy(values, value.bytes.data(), static_cast<size_t>(*count) * bytesOf(type));
  }
  return entry.end();
}
