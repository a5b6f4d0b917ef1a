// SPDX-License-Identifier: Apache-2.0
//
// Bindings, the choice of the frame for the bound extents, and the walk over its actions.
#include "runtime/Session.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "artifact/BlockMemory.h"
#include "artifact/ControlFlow.h"
#include "runtime/StridedCopy.h"
#include "runtime/ThreadScope.h"

namespace dovetail {

namespace {

/// Signatures of extents that a session keeps frames for.
constexpr size_t kMostFrames = 16;
constexpr int64_t kMostElements = int64_t(1) << 46;

bool isAligned(const void *data) {
  return reinterpret_cast<uintptr_t>(data) % kTensorAlignment == 0;
}

std::string listText(std::span<const int64_t> numbers) {
  std::string text;
  for (int64_t number : numbers)
    text += fmt::format("{}{}", text.empty() ? "" : ",", number);
  return "[" + text + "]";
}

/// First and one past the last byte of a tensor's memory.
std::pair<uintptr_t, uintptr_t> memoryRange(dvt_type type, const void *data,
                                            std::span<const int64_t> extents,
                                            std::span<const int64_t> strides) {
  uintptr_t begin = reinterpret_cast<uintptr_t>(data);
  int64_t low = 0, high = 0, count = 1;
  for (size_t d = 0; d < extents.size(); ++d) {
    count *= extents[d];
    if (!strides.empty())
      (strides[d] < 0 ? low : high) += (extents[d] - 1) * strides[d];
  }
  if (count == 0)
    return {begin, begin};
  if (strides.empty())
    return {begin, begin + bytesOf(type, count)};
  int64_t size = typeBits(type) / 8;
  return {begin + low * size, begin + (high + 1) * size};
}

void writeNumbers(const std::vector<int64_t> &numbers, dvt_tensor &to) {
  for (size_t i = 0; i < numbers.size(); ++i)
    if (to.type == DVT_I64)
      static_cast<int64_t *>(to.data)[i] = numbers[i];
    else
      static_cast<int32_t *>(to.data)[i] = int32_t(numbers[i]);
}

} // namespace

Session::Session(std::shared_ptr<Model> model, uint32_t number, Session *outer)
    : owner(std::move(model)), number(number), block(owner->plan().blocks[number]), outer(outer),
      cancelFlag(outer ? outer->cancelFlag : &cancelled) {
  for (const std::string &symbol : inheritedSymbols(owner->plan(), number))
    inherited.push_back(symbol);
  auto border = [&] {
    Border result;
    result.own = HostBuffer(owner->allocator());
    result.state = HostBuffer(owner->allocator());
    result.shown = HostBuffer(owner->allocator());
    return result;
  };
  bool isModel = number == 0;
  for (uint32_t i = 0; i < block.inputs.size(); ++i) {
    inputs.push_back(border());
    if (isModel)
      inputs.back().turn(owner->plan(), true, i);
  }
  for (uint32_t i = 0; i < block.outputs.size(); ++i) {
    outputs.push_back(border());
    if (isModel)
      outputs.back().turn(owner->plan(), false, i);
  }
  for (const PlanState &state : block.growing) {
    inputs[state.input].turned = &state;
    outputs[state.output].turned = &state;
  }
  arena = HostBuffer(owner->allocator());
  frames.reserve(kMostFrames);
  found.resize(block.values.size());
  for (Found &value : found)
    value.memory = HostBuffer(owner->allocator());
}

Expected<std::unique_ptr<Session>> Session::create(std::shared_ptr<Model> model) {
  std::unique_ptr<Session> session(new Session(std::move(model), 0, nullptr));
  if (const auto &device = session->owner->device()) {
    if (Status status = device->makeCurrent(); !status)
      return status.takeError();
    auto stream = device->createStream();
    if (!stream)
      return stream.takeError();
    session->stream = std::move(*stream);
    auto staging = Staging::create(device, session->stream);
    if (!staging)
      return staging.takeError();
    session->staging = std::move(*staging);
  }
  if (!session->isFixed())
    return session;
  // Without symbols there is one frame: make it now, so that the first run does not pay for it.
  if (Status status = session->chooseFrame(); !status)
    return status.takeError();
  return session;
}

/// Made when its step first runs it: most models take few of their branches.
Session &Session::body(uint32_t block) {
  std::unique_ptr<Session> &session = bodies[block];
  if (!session)
    session.reset(new Session(owner, block, this));
  return *session;
}

uint64_t Session::arenaBytes() const {
  uint64_t bytes = arena.size();
  for (const auto &entry : bodies)
    bytes += entry.second->arenaBytes();
  return bytes;
}

const std::string &Session::inputName(uint32_t index) const {
  return outer ? inputValue(index).name : owner->plan().inputNames[index];
}
const std::string &Session::outputName(uint32_t index) const {
  return outer ? outputValue(index).name : owner->plan().outputNames[index];
}
const PlanValue &Session::inputValue(uint32_t index) const {
  return block.values[block.inputs[index]];
}
const PlanValue &Session::outputValue(uint32_t index) const {
  return block.values[block.outputs[index]];
}

Status Session::checkBorder(const Border &border, const PlanValue &value, const std::string &name,
                            const void *data, std::span<const int64_t> extents,
                            std::span<const int64_t> strides) const {
  const std::vector<Extent> &model = border.isTurned() ? border.modelExtents : value.extents;
  if (extents.size() != model.size())
    return badInput("'{}' has rank {}, bound with rank {}", name, model.size(), extents.size());
  for (size_t d = 0; d < extents.size(); ++d)
    if (extents[d] < 0 || (model[d].isStatic() && model[d].value() != extents[d])) {
      std::string wanted;
      for (const Extent &extent : model)
        wanted += (wanted.empty() ? "" : ",") + extent.text();
      return badInput("'{}' has the extents [{}], bound with {}", name, wanted, listText(extents));
    }
  int64_t count = 1;
  for (int64_t extent : extents)
    if (__builtin_mul_overflow(count, extent, &count) || count > kMostElements)
      return badInput("'{}': {} is too large", name, listText(extents));
  if (!data && count > 0)
    return badInput("'{}' is bound to no memory", name);
  if (!strides.empty() && strides.size() != extents.size())
    return badInput("'{}' has rank {}, bound with {} strides", name, extents.size(),
                    strides.size());
  if (!isDense(extents, strides) && typeBits(value.type) < 8)
    return badInput("'{}': strides of elements of less than a byte are not supported", name);
  return Status::success();
}

Status Session::bindInput(uint32_t index, const void *data, std::span<const int64_t> extents,
                          std::span<const int64_t> strides) {
  if (index >= inputs.size())
    return badInput("input {} does not exist: the model has {}", index, inputs.size());
  if (Status status =
          checkBorder(inputs[index], inputValue(index), inputName(index), data, extents, strides);
      !status)
    return status;
  inputs[index].take(data, extents, strides);
  changed = true;
  return Status::success();
}

Status Session::bindOutput(uint32_t index, void *data, std::span<const int64_t> extents,
                           std::span<const int64_t> strides) {
  if (index >= outputs.size())
    return badInput("output {} does not exist: the model has {}", index, outputs.size());
  Border &border = outputs[index];
  changed = true;
  if (!data && extents.empty()) {
    border.isBound = false;
    return Status::success();
  }
  const std::string &name = outputName(index);
  if (Status status = checkBorder(border, outputValue(index), name, data, extents, strides);
      !status)
    return status;
  for (const Border &input : inputs)
    if (input.fedFrom == index)
      return badInput("output '{}' is fed back to an input and cannot be bound", name);
  border.take(data, extents, strides);
  return Status::success();
}

Status Session::findSymbols(SymbolValues &values) const {
  const Plan &plan = owner->plan();
  if (Status status = inheritSymbols(values); !status)
    return status;
  for (const SymbolSource &source : block.symbolSources) {
    const PlanValue &value = block.values[source.value];
    if (value.storage != Storage::Input)
      continue;
    int64_t extent = inputs[value.index].extents[source.axis];
    values.try_emplace(source.symbol, extent);
    SymbolRange range;
    if (auto known = plan.symbols.find(source.symbol); known != plan.symbols.end())
      range = known->second;
    if (extent < range.min || extent > range.max || extent % range.divisor != 0)
      return badInput("input '{}', axis {}: {} is not a value of {} (compiled for {}..{}{})",
                      inputName(value.index), modelAxis(value.index, source.axis), extent,
                      source.symbol, range.min, range.max,
                      range.divisor == 1 ? "" : fmt::format(", multiples of {}", range.divisor));
  }
  for (uint32_t i = 0; i < inputs.size(); ++i)
    for (size_t d = 0; d < inputs[i].extents.size(); ++d) {
      auto expected = inputValue(i).extents[d].evaluate(values);
      if (expected != inputs[i].extents[d])
        return badInput("input '{}', axis {}: bound with {}, but {} is {} for the other inputs",
                        inputName(i), modelAxis(i, d), inputs[i].extents[d],
                        inputValue(i).extents[d].text(),
                        expected ? std::to_string(*expected) : "unknown");
    }
  return check(block.requirements, values);
}

Expected<int64_t> Session::inheritedValue(const std::string &symbol) const {
  if (outer)
    if (auto known = outer->symbols.find(symbol); known != outer->symbols.end())
      return known->second;
  return badInput("a body needs the extent {}, which is not known where it runs", symbol);
}

Status Session::inheritSymbols(SymbolValues &values) const {
  for (const std::string &symbol : inherited) {
    auto value = inheritedValue(symbol);
    if (!value)
      return value.takeError();
    values[symbol] = *value;
  }
  return Status::success();
}

Status Session::chooseFrame() {
  signature.clear();
  if (!isFixed()) {
    for (const std::string &symbol : inherited) {
      auto value = inheritedValue(symbol);
      if (!value)
        return value.takeError();
      signature.push_back(*value);
    }
    for (const Border &input : inputs)
      signature.insert(signature.end(), input.extents.begin(), input.extents.end());
  }
  if (!current || current->signature != signature) {
    auto known = std::find_if(frames.begin(), frames.end(), [&](const Remembered &entry) {
      return entry.signature == signature;
    });
    if (known == frames.end()) {
      Remembered entry;
      entry.signature = signature;
      if (!isFixed())
        if (Status status = findSymbols(entry.symbols); !status)
          return status;
      auto frame = Frame::build(*owner, number, entry.symbols, placed);
      if (!frame)
        return frame.takeError();
      entry.frame = std::move(*frame);
      entry.number = ++framesMade;
      current = nullptr;
      auto packed = [&] {
        uint64_t bytes = entry.frame->packedBytes;
        for (const Remembered &other : frames)
          bytes += other.frame->packedBytes;
        return bytes;
      };
      while (frames.size() == kMostFrames ||
             (!frames.empty() && !isFixed() && packed() > owner->mostLateBytes()))
        frames.erase(std::min_element(
            frames.begin(), frames.end(),
            [](const Remembered &a, const Remembered &b) { return a.lastUse < b.lastUse; }));
      frames.push_back(std::move(entry));
      known = frames.end() - 1;
    }
    current = &*known;
  }
  current->lastUse = runs;
  return placeFrame();
}

/// Where the device's memory does not suffice, kernels that take less of it are looked for.
Status Session::placeFrame() {
  for (;;) {
    if (!arena.reserve(current->frame->arenaBytes))
      return unavailable("no memory for {} bytes of intermediate results",
                         current->frame->arenaBytes);
    current->frame->place(arena.data());
    bool lacksMemory = false;
    Status status = placeOnDevice(lacksMemory);
    if (!lacksMemory || !owner->takeLessWorkspace(number))
      return status;
    auto frame = Frame::build(*owner, number, current->symbols, placed);
    if (!frame)
      return frame.takeError();
    current->frame = std::move(*frame);
    current->arenaAt = 0;
  }
}

Status Session::pointInputs() {
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    Border &input = inputs[i];
    input.staged = !input.strides.empty() || !isAligned(input.data);
    if (input.staged && !input.own.reserve(current->frame->bytes(block.inputs[i])))
      return unavailable("no memory for input '{}'", inputName(i));
    current->frame->setInput(i, input.staged ? input.own.data() : input.data);
  }
  return Status::success();
}

Status Session::pointOutputs() {
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    Border &output = outputs[i];
    uint32_t value = block.outputs[i];
    if (!current->frame->isBound(value)) {
      // Found out later. What it is a view of may be written before.
      if (uint32_t root = rootOf(value);
          block.values[root].storage == Storage::Output && current->frame->isBound(root)) {
        if (!output.own.reserve(current->frame->bytes(root)))
          return unavailable("no memory for output '{}'", outputName(i));
        current->frame->setOutput(i, output.own.data());
      }
      continue;
    }
    const std::vector<int64_t> &extents = current->frame->extents(value);
    if (output.feeds >= 0 && inputs[static_cast<size_t>(output.feeds)].grows) {
      if (Status status = growState(i); !status)
        return status;
      continue;
    }
    if (output.isBound && output.extents != extents)
      return badInput("output '{}' has the extents {} for these inputs, bound with {}",
                      outputName(i), listText(inModelOrder(output.turned, extents)),
                      listText(inModelOrder(output.turned, output.extents)));
    output.staged = !output.isBound || !output.strides.empty() || !isAligned(output.data);
    if (output.isBound) {
      // A kernel must not write what it or a later one still reads.
      auto mine = memoryRange(outputValue(i).type, output.data, output.extents, output.strides);
      for (uint32_t k = 0; k < inputs.size(); ++k) {
        auto other =
            memoryRange(inputValue(k).type, inputs[k].data, inputs[k].extents, inputs[k].strides);
        output.staged |= mine.first < other.second && other.first < mine.second;
      }
      for (uint32_t k = 0; k < i; ++k) {
        if (!outputs[k].isBound)
          continue;
        auto other = memoryRange(outputValue(k).type, outputs[k].data, outputs[k].extents,
                                 outputs[k].strides);
        if (mine.first < other.second && other.first < mine.second)
          return badInput("outputs '{}' and '{}' are bound to the same memory", outputName(k),
                          outputName(i));
      }
    }
    if (output.staged && !output.own.reserve(current->frame->bytes(value)))
      return unavailable("no memory for output '{}'", outputName(i));
    current->frame->setOutput(i, output.staged ? output.own.data() : output.data);
  }
  return Status::success();
}

Status Session::ready() {
  for (uint32_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].isBound)
      return badInput("input '{}' is not bound", inputName(i));
  if (Status status = chooseFrame(); !status)
    return status;
  if (Status status = pointInputs(); !status)
    return status;
  return pointOutputs();
}

Error Session::failure(const Action &action, dvt_code code, const dvt_error &error) const {
  const PlanStep &step = block.steps[action.step];
  return {errorKindOf(code),
          fmt::format("step '{}' ({}): {}", step.label, step.choice.candidate.label(),
                      providerMessage(error, code))};
}

Status Session::stopCancelled() {
  cancelFlag->store(false, std::memory_order_relaxed);
  return Error{ErrorKind::Cancelled, "the run was cancelled"};
}

Status Session::runActions() {
  using Clock = std::chrono::steady_clock;
  Clock::time_point before;
  if (stepMicros)
    before = Clock::now();
  dvt_error error;
  std::vector<Action> &actions = current->frame->actions;
  auto recorded = current->recorded.begin();
  for (size_t i = 0; i < actions.size(); ++i) {
    Action &action = actions[i];
    if (isCancelled())
      return stopCancelled();
    if (staging && staging->isAwaited() && action.readsOnHost())
      if (Status status = arrive(); !status)
        return status;
    if (!stepMicros && recorded != current->recorded.end() && recorded->first == i) {
      if (Status status =
              owner->device()->driver().launchGraph(recorded->graph->handle(), stream->handle());
          !status)
        return status;
      i = recorded->end - 1;
      ++recorded;
      continue;
    }
    switch (action.kind) {
    case Action::Kind::Run: {
      error.message[0] = 0;
      dvt_code code = action.run(action.kernel, &action.args, &error);
      if (code != DVT_OK) [[unlikely]]
        return failure(action, code, error);
      if (stepMicros && action.onDevice) // times are those of the work, not of giving it
        if (Status status = finishDevice(&action); !status)
          return status;
      break;
    }
    case Action::Kind::ToDevice:
    case Action::Kind::ToHost:
      if (Status status = moveBytes(action); !status)
        return status;
      break;
    case Action::Kind::Reorder:
      reorder(action.args.inputs[0].type, *action.extents, *action.from, action.args.inputs[0].data,
              *action.to, action.args.outputs[0].data);
      break;
    case Action::Kind::Copy:
      if (action.bytes && action.args.outputs[0].data != action.args.inputs[0].data)
        std::memmove(action.args.outputs[0].data, action.args.inputs[0].data, action.bytes);
      break;
    case Action::Kind::Write:
      writeNumbers(*action.extents, action.args.outputs[0]);
      break;
    case Action::Kind::Unbound:
      if (Status status = runUnbound(action); !status)
        return status;
      break;
    }
    if (stepMicros) {
      Clock::time_point now = Clock::now();
      stepMicros[action.step] += std::chrono::duration<double, std::micro>(now - before).count();
      before = now;
    }
  }
  if (Status status = arrive(); !status)
    return status;
  return finishDevice();
}

Status Session::resolve(uint32_t value) {
  Found &entry = found[value];
  if (current->frame->isBound(value) || entry.known)
    return Status::success();
  entry.extents.clear();
  for (const Extent &extent : block.values[value].extents) {
    auto number = extent.evaluate(symbols);
    if (!number || *number < 0)
      return badInput("value '{}': extent {} has no value", block.values[value].name,
                      extent.text());
    entry.extents.push_back(*number);
  }
  entry.known = true;
  return Status::success();
}

const std::vector<int64_t> &Session::extentsOf(uint32_t value) const {
  return current->frame->isBound(value) ? current->frame->extents(value) : found[value].extents;
}

uint32_t Session::rootOf(uint32_t value) const {
  while (block.values[value].storage == Storage::Alias)
    value = block.values[value].index;
  return value;
}

void *Session::memoryOf(uint32_t value) const {
  if (current->frame->isBound(value))
    return current->frame->data(value);
  value = rootOf(value);
  return current->frame->isBound(value) ? current->frame->data(value) : found[value].memory.data();
}

/// An output that is a view, with extents that were found out, shows all of what it is a view of.
Status Session::checkView(uint32_t index) const {
  uint32_t value = block.outputs[index], root = rootOf(value);
  auto own = Layout::parse(block.values[value].layout),
       other = Layout::parse(block.values[root].layout);
  auto bytes = own ? checkedBytes(block.values[value].type, extentsOf(value), *own) : std::nullopt;
  bool known = current->frame->isBound(root) || found[root].known;
  if (!known || !other || !bytes ||
      bytes != checkedBytes(block.values[root].type, extentsOf(root), *other))
    return badInput("output '{}' is a view of another size", outputName(index));
  return Status::success();
}

Status Session::finish() {
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    Border &output = outputs[i];
    uint32_t value = block.outputs[i];
    Frame &frame = *current->frame;
    bool bound = frame.isBound(value);
    if (Status status = resolve(value); !status)
      return status;
    if (!bound)
      if (Status status = checkView(i); !status)
        return status;
    const std::vector<int64_t> &extents = extentsOf(value);
    const void *source = memoryOf(value);
    bool grows = output.feeds >= 0 && inputs[static_cast<size_t>(output.feeds)].grows;
    void *target = output.isBound   ? output.data
                   : grows && bound ? memoryOf(value)
                                    : output.own.data();
    if (!bound) {
      if (output.isBound && output.extents != extents)
        return badInput("output '{}' has the extents {} this time, bound with {}", outputName(i),
                        listText(inModelOrder(output.turned, extents)),
                        listText(inModelOrder(output.turned, output.extents)));
      if (grows && !output.isBound) {
        output.own.swap(found[value].memory);
        target = output.own.data();
      } else if (!output.isBound) {
        auto bytes = checkedBytes(outputValue(i).type, extents, Layout());
        if (!bytes || !output.own.reserve(*bytes))
          return unavailable("no memory for output '{}'", outputName(i));
        target = output.own.data();
      }
    }
    if (source != target) {
      const std::string &layout = outputValue(i).layout;
      if (!layout.empty()) // written dense and row-major first
        return internalError("output '{}' ends in layout {}", outputName(i), layout);
      copyStrided(outputValue(i).type, extents, source, {}, target,
                  output.isBound ? std::span<const int64_t>(output.strides)
                                 : std::span<const int64_t>());
    }
    if (Status status = show(i, target, extents); !status)
      return status;
  }
  feedInputs();
  return Status::success();
}

Status Session::run(std::vector<double> *micros) {
  if (micros)
    micros->assign(owner->stepCount(), 0);
  stepMicros = micros ? micros->data() : nullptr;
  ThreadScope threads(owner->usesOpenMp(), owner->threads());
  if (stream)
    if (Status status = readyDevice(); !status)
      return status;
  return runOnce();
}

Status Session::runOnce() {
  ++runs;
  if (changed) {
    if (Status status = ready(); !status)
      return status;
    changed = false;
  }
  for (uint32_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].staged)
      copyStrided(inputValue(i).type, inputs[i].extents, inputs[i].data, inputs[i].strides,
                  inputs[i].own.data(), {});
  if (current->frame->hasUnbound) {
    // Where the run before learned nothing, they are there.
    if (symbolsOf != current->number || symbols.size() != current->symbols.size())
      symbols = current->symbols;
    symbolsOf = current->number;
    for (Found &value : found)
      value.known = false;
  }
  recordWork();
  isUnderWay = true;
  if (Status status = runActions(); !status)
    return status;
  isUnderWay = false;
  return finish();
}

} // namespace dovetail
