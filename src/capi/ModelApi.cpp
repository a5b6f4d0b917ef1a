// SPDX-License-Identifier: Apache-2.0
//
// Loading and looking at models. Plug-ins are loaded once for each combination of folders and stay,
// as vendor libraries do not survive being closed.
#include <cstring>
#include <tuple>

#include "capi/Handles.h"

namespace dovetail {

void setError(dvt_error *error, const std::string &message) {
  if (!error)
    return;
  size_t length = std::min(message.size(), sizeof(error->message) - 1);
  std::memcpy(error->message, message.data(), length);
  error->message[length] = 0;
}

dvt_code codeOf(const Error &error) {
  switch (error.kind) {
  case ErrorKind::BadInput:
    return DVT_BAD_INPUT;
  case ErrorKind::Unavailable:
    return DVT_UNAVAILABLE;
  case ErrorKind::Cancelled:
    return DVT_CANCELLED;
  default:
    return DVT_FAILED;
  }
}

namespace {

std::vector<std::string> splitPath(const char *path) {
  std::vector<std::string> folders;
  std::string rest = path ? path : "";
  while (!rest.empty()) {
    size_t colon = rest.find(':');
    if (colon != 0)
      folders.push_back(rest.substr(0, colon));
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return folders;
}

/// Plug-ins may log long after the load that brought them in, so they get no call-back of one
/// model's host.
std::shared_ptr<const PluginSet> plugins(const dvt_load_options &options,
                                         const std::vector<std::string> &names) {
  using Key = std::tuple<std::vector<std::string>, std::string, std::vector<std::string>>;
  static std::mutex mutex;
  static auto *sets = new std::map<Key, std::shared_ptr<const PluginSet>>();
  std::lock_guard guard(mutex);
  ProviderLock lock;
  PluginSet::Options load;
  load.folders = splitPath(options.plugin_path);
  if (load.folders.empty())
    load.folders.push_back(defaultPluginFolder());
  load.vendorPath = options.vendor_path ? options.vendor_path : DOVETAIL_VENDOR_DIRS;
  load.only = names;
  load.runsOnly = true;
  auto &set = (*sets)[{load.folders, load.vendorPath, names}];
  if (!set)
    set = std::make_shared<PluginSet>(PluginSet::load(load));
  return set;
}

PortText portText(const Plan &plan, bool isInput, uint32_t index) {
  PortText text;
  for (const Extent &extent : borderExtents(plan, isInput, index)) {
    text.extents.push_back(extent.staticValue().value_or(-1));
    text.texts.push_back(extent.text());
  }
  for (const std::string &extent : text.texts)
    text.pointers.push_back(extent.c_str());
  return text;
}

Status showPort(const std::vector<PortText> &texts, const std::vector<std::string> &names,
                const std::vector<uint32_t> &numbers, const Plan &plan, uint32_t index,
                dvt_port *port) {
  if (!port || index >= texts.size())
    return badInput("there is no input or output {}: the model has {}", index, texts.size());
  dvt_port out{};
  out.type = plan.blocks[0].values[numbers[index]].type;
  out.name = names[index].c_str();
  out.rank = texts[index].extents.size();
  out.extents = texts[index].extents.data();
  out.extent_texts = texts[index].pointers.data();
  narrow(out, port);
  return Status::success();
}

/// A session that lacks memory for a workspace replaces kernels after loading.
const StepState &stateOfStep(const dvt_model &model, uint32_t index) {
  StepState now = model.model->steps()[index];
  const StepState &before = model.steps[index];
  if (now.running == before.running && now.note == before.note)
    return before;
  const std::lock_guard guard(model.mutex);
  std::string text = now.running + " " + now.note;
  return model.changed.try_emplace({index, std::move(text)}, std::move(now)).first->second;
}

} // namespace
} // namespace dovetail

using namespace dovetail;

const char *dvt_version(void) { return DOVETAIL_VERSION; }

dvt_code dvt_model_load(const char *path, const dvt_load_options *given, dvt_model **out,
                        dvt_error *error) {
  return atBorder(error, [&]() -> Status {
    if (!path || !out)
      return badInput("dvt_model_load: no path, or nowhere to put the model");
    *out = nullptr;
    dvt_load_options options = widen(given);
    ModelOptions load;
    load.findPlugins = [&](const std::vector<std::string> &names) {
      auto found = plugins(options, names);
      for (const PluginSet::Failure &failure : found->failures())
        load.log(failure.expected ? LogLevel::Info : LogLevel::Warning, "plug-in {}: {}",
                 failure.file, failure.reason);
      return found;
    };
    load.threads = options.threads;
    load.parallel = options.parallel;
    load.allocator = {options.memory_context, options.allocate, options.release};
    load.log = {options.log, options.log_context, LogLevel(options.log_level)};
    load.checkConstants = options.skip_weight_check == 0;
    auto model = Model::load(path, load);
    if (!model)
      return model.takeError();
    auto handle = std::make_unique<dvt_model>();
    handle->model = std::move(*model);
    const Plan &plan = handle->model->plan();
    for (uint32_t i = 0; i < plan.blocks[0].inputs.size(); ++i)
      handle->inputs.push_back(portText(plan, true, i));
    for (uint32_t i = 0; i < plan.blocks[0].outputs.size(); ++i)
      handle->outputs.push_back(portText(plan, false, i));
    handle->target = plan.target.text();
    handle->steps = handle->model->steps();
    *out = handle.release();
    return Status::success();
  });
}

void dvt_model_release(dvt_model *model) { delete model; }

uint32_t dvt_model_input_count(const dvt_model *model) { return model->inputs.size(); }
uint32_t dvt_model_output_count(const dvt_model *model) { return model->outputs.size(); }

dvt_code dvt_model_input(const dvt_model *model, uint32_t index, dvt_port *port, dvt_error *error) {
  return atBorder(error, [&] {
    const Plan &plan = model->model->plan();
    return showPort(model->inputs, plan.inputNames, plan.blocks[0].inputs, plan, index, port);
  });
}

dvt_code dvt_model_output(const dvt_model *model, uint32_t index, dvt_port *port,
                          dvt_error *error) {
  return atBorder(error, [&] {
    const Plan &plan = model->model->plan();
    return showPort(model->outputs, plan.outputNames, plan.blocks[0].outputs, plan, index, port);
  });
}

uint32_t dvt_model_state_count(const dvt_model *model) {
  return model->model->plan().states.size();
}

dvt_code dvt_model_state(const dvt_model *model, uint32_t index, dvt_state *state,
                         dvt_error *error) {
  return atBorder(error, [&]() -> Status {
    const std::vector<PlanState> &states = model->model->plan().states;
    if (!state || index >= states.size())
      return badInput("there is no state {}: the model has {}", index, states.size());
    dvt_state out{};
    out.input = states[index].input;
    out.output = states[index].output;
    out.grows = states[index].grows;
    narrow(out, state);
    return Status::success();
  });
}

const char *dvt_model_digest(const dvt_model *model) { return model->model->digest().c_str(); }
const char *dvt_model_target(const dvt_model *model) { return model->target.c_str(); }
uint32_t dvt_model_threads(const dvt_model *model) { return model->model->threads(); }
uint32_t dvt_model_step_count(const dvt_model *model) { return model->steps.size(); }

dvt_code dvt_model_step(const dvt_model *model, uint32_t index, dvt_step *step, dvt_error *error) {
  return atBorder(error, [&]() -> Status {
    if (!step || index >= model->steps.size())
      return badInput("there is no step {}: the model has {}", index, model->steps.size());
    const Plan &plan = model->model->plan();
    const PlanStep &planned = *model->model->planned(index);
    const StepState &state = stateOfStep(*model, index);
    dvt_step out{};
    out.label = state.label.c_str();
    out.problem = state.planned.empty() ? "" : plan.problems[planned.problem].c_str();
    out.planned = state.planned.c_str();
    out.running = state.running.c_str();
    out.note = state.note.c_str();
    out.micros = planned.report < plan.reports.size() ? plan.reports[planned.report].micros : -1;
    narrow(out, step);
    return Status::success();
  });
}
