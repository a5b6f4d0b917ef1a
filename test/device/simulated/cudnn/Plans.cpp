// SPDX-License-Identifier: Apache-2.0
#include "Plans.h"

#include <cstdlib>
#include <cstring>

#include "Engines.h"
#include "Graphs.h"

namespace cudnn_double {
namespace {

using A = api::Attribute;
using K = api::DescriptorKind;
using nlohmann::json;

std::string textIn(const Descriptor &from, A attribute) {
  const std::vector<char> text = from.list<char>(attribute);
  return std::string(text.begin(), text.end());
}

/// Of the device that the simulated driver shows.
int presentArchitecture() {
  const char *name = std::getenv("DOVETAIL_SIMULATED_ARCHITECTURE");
  return 10 * (name && std::strncmp(name, "sm_", 3) == 0 ? std::atoi(name + 3) : 90);
}

bool refuses(int64_t engine) {
  const char *refused = std::getenv("DOVETAIL_SIMULATED_CUDNN_REFUSES");
  return refused && (std::string(refused) == "all" || std::to_string(engine) == refused);
}

void makePlan(Entry &entry, const Descriptor &from, Plan &plan) {
  const Descriptor *config =
      entry.final(from.get<Ref>(A::PlanConfig), K::EngineConfig, "the configuration");
  const Descriptor *device =
      entry.final(from.get<Ref>(A::PlanDeviceProperties), K::DeviceProperties, "the device");
  if (!config || !device)
    return;
  plan.graph = config->graph;
  plan.settings = config->settings[0];
  plan.architecture = deviceVersion(*device).value_or(0);
}

/// As the text has it, for the device that is here.
void loadPlan(Entry &entry, const Descriptor &from, Plan &plan) {
  entry.need(from.values.count(A::PlanHandle), BadParam, "a plan is loaded without a handle");
  const json text = json::parse(textIn(from, A::PlanJson), nullptr, false);
  if (!entry.need(text.is_object() && text.value("double", "") == "cudnn", BadParam,
                  "the text is no plan of this library"))
    return;
  try {
    const auto made = text.at("version").get<size_t>();
    entry.need(made == version(), SerializationVersionMismatch, "the plan is of version {}", made);
    plan.settings.engine = text.at("engine").at("engineId");
    for (const auto &[name, setting] : text.at("engine").at("knobChoices").items())
      plan.settings.knobs[std::stoi(name.substr(1))] = setting;
    plan.architecture = text.at("GPUProfile").at("deviceVer");
    plan.graph = graphFromJson(text.at("graph"));
  } catch (const json::exception &) {
    plan.graph = nullptr;
  }
  entry.need(plan.graph != nullptr, BadParam, "the text of the plan is not complete");
  entry.need(plan.architecture == presentArchitecture(), ArchitectureMismatch,
             "the plan is for a device of version {}, this one has {}", plan.architecture,
             presentArchitecture());
  entry.need(!refuses(plan.settings.engine), NotSupported,
             "this device does not run plans of engine {}", plan.settings.engine);
  plan.hasHandle = true;
}

} // namespace

std::optional<int> deviceVersion(const Descriptor &deviceProperties) {
  const json properties =
      json::parse(textIn(deviceProperties, A::DevicePropertiesJson), nullptr, false);
  if (!properties.is_object() || !properties.contains("deviceVer") ||
      !properties["deviceVer"].is_number_integer())
    return std::nullopt;
  return properties["deviceVer"].get<int>();
}

void finalizePlan(Entry &entry, Descriptor &descriptor) {
  Plan plan;
  if (descriptor.values.count(A::PlanJson))
    loadPlan(entry, descriptor, plan);
  else if (entry.need(descriptor.values.count(A::PlanConfig) &&
                          descriptor.values.count(A::PlanDeviceProperties),
                      BadParam, "a plan of neither a configuration for a device nor a text"))
    makePlan(entry, descriptor, plan);
  std::string reason;
  if (!entry.isFine() ||
      !entry.need(findEngine(plan.graph->graph, plan.settings, reason).has_value(), NotSupported,
                  "{}", reason))
    return;
  plan.workspaceBytes = workspaceOf(plan.graph->graph, plan.settings);
  descriptor.plan = std::make_shared<const Plan>(std::move(plan));
}

std::string planText(const Plan &plan) {
  json knobs = json::object();
  for (const auto &[kind, setting] : plan.settings.knobs)
    knobs["k" + std::to_string(kind)] = setting;
  return json{{"double", "cudnn"},
              {"version", version()},
              {"engine", {{"engineId", plan.settings.engine}, {"knobChoices", knobs}}},
              {"GPUProfile", {{"deviceVer", plan.architecture}}},
              {"graph", toJson(*plan.graph)}}
      .dump();
}

void finalizePack(Entry &entry, Descriptor &pack) {
  const std::vector<int64_t> ids = pack.list<int64_t>(A::PackUniqueIds);
  const auto pointers = pack.list<Ref>(A::PackDataPointers);
  entry.need(ids.size() == pointers.size(), SizeInsufficient, "{} pointers for {} ids",
             pointers.size(), ids.size());
  entry.need(std::set<int64_t>(ids.begin(), ids.end()).size() == ids.size(), DuplicatedEntries,
             "an id is there twice");
}

} // namespace cudnn_double
