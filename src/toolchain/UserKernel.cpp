// SPDX-License-Identifier: Apache-2.0
//
// A user's kernel for one problem: numbers evaluated, source compiled, and what was compiled held
// against what the manifest says of it.
#include "toolchain/UserKernel.h"

#include <algorithm>
#include <cstring>

#include "support/File.h"
#include "toolchain/CodeObjectNotes.h"
#include "toolchain/PtxAssembler.h"
#include "toolchain/SourceCompiler.h"

namespace dovetail::toolchain {

namespace {

constexpr int64_t kMostThreads = 1024, kMostBlocks = INT32_MAX, kMostBytes = int64_t(1) << 40;

Expected<std::variant<int64_t, double>> evaluate(const KernelNumber &number,
                                                 const PatternMatch &match) {
  if (const auto *real = std::get_if<double>(&number.source))
    return std::variant<int64_t, double>(*real);
  if (const auto *extent = std::get_if<Extent>(&number.source)) {
    auto value = extent->evaluate(match.symbols);
    if (!value)
      return badInput("'{}' gives no number for these extents", extent->text());
    return std::variant<int64_t, double>(*value);
  }
  const std::string &name = std::get<KernelNumber::Attribute>(number.source).name;
  auto found = match.open.find(name);
  if (found == match.open.end())
    return badInput("no op of the pattern has an attribute '{}' whose value it leaves open", name);
  if (std::count(match.ambiguous.begin(), match.ambiguous.end(), name))
    return badInput("several ops have an attribute '{}'", name);
  if (const auto *integer = std::get_if<int64_t>(&found->second))
    return std::variant<int64_t, double>(*integer);
  if (const auto *real = std::get_if<double>(&found->second))
    return std::variant<int64_t, double>(*real);
  return badInput("the attribute '{}' is no number", name);
}

Expected<int64_t> evaluateWhole(const KernelNumber &number, const PatternMatch &match,
                                const char *what, int64_t least, int64_t most) {
  auto value = evaluate(number, match);
  if (!value)
    return value.takeError();
  const auto *whole = std::get_if<int64_t>(&*value);
  if (!whole || *whole < least || *whole > most)
    return badInput("'{}' is {}; it is a whole number from {} to {}", what,
                    std::visit([](auto shown) { return fmt::format("{}", shown); }, *value), least,
                    most);
  return *whole;
}

/// The eight bytes in which the number travels.
Expected<int64_t> bitsOf(const KernelNumber &number, const PatternMatch &match) {
  auto value = evaluate(number, match);
  if (!value)
    return value.takeError();
  int64_t bits = 0;
  if (number.type == DVT_F32 || number.type == DVT_F64) {
    const double real = std::visit([](auto any) { return double(any); }, *value);
    const auto single = float(real);
    if (number.type == DVT_F32)
      std::memcpy(&bits, &single, sizeof(single));
    else
      std::memcpy(&bits, &real, sizeof(real));
    return bits;
  }
  const auto *whole = std::get_if<int64_t>(&*value);
  if (!whole)
    return badInput("{} is handed over as an integer; write {{\"f32\": ...}}",
                    std::get<double>(*value));
  if (number.type == DVT_I32 && *whole != int32_t(*whole))
    return badInput("{} does not fit into i32", *whole);
  return *whole;
}

/// Tensors of a device kernel are numbered inputs first.
Status takeOperands(const UserKernel &kernel, size_t inputCount, KernelLaunch &launch) {
  for (const KernelOperand &operand : kernel.operands) {
    DeviceArgument &argument = launch.arguments.emplace_back();
    dvt_type &type = launch.types.emplace_back(DVT_UNDEFINED);
    switch (operand.kind) {
    case KernelOperand::Kind::Input:
      argument.tensor = launch.match.inputs[operand.position];
      break;
    case KernelOperand::Kind::Output:
      argument.tensor = uint32_t(inputCount) + launch.match.outputs[operand.position];
      break;
    case KernelOperand::Kind::Workspace:
      argument.kind = DeviceArgument::Kind::Workspace;
      break;
    case KernelOperand::Kind::Number:
      auto bits = bitsOf(operand.number, launch.match);
      if (!bits)
        return bits.takeError();
      argument.kind = DeviceArgument::Kind::Number;
      argument.number = *bits;
      type = operand.number.type;
      break;
    }
  }
  return Status::success();
}

Status takeNumbers(const UserKernel &kernel, size_t inputCount, KernelLaunch &launch) {
  for (auto [number, what, least, most, into] :
       {std::tuple(&kernel.blocks, "blocks", int64_t(0), kMostBlocks, &launch.blocks),
        std::tuple(&kernel.threads, "threads", int64_t(1), kMostThreads, &launch.threads),
        std::tuple(&kernel.workspaceBytes, "workspace", int64_t(0), kMostBytes,
                   &launch.workspaceBytes)}) {
    auto value = evaluateWhole(*number, launch.match, what, least, most);
    if (!value)
      return value.takeError();
    *into = *value;
  }
  for (const auto &[name, number] : kernel.definitions) {
    auto value = evaluate(number, launch.match);
    if (!value)
      return value.takeError();
    std::string text = std::visit([](auto shown) { return fmt::format("{}", shown); }, *value);
    // A macro of a real number stays one: 2.0, not 2.
    if (std::holds_alternative<double>(*value) && text.find_first_of(".en") == std::string::npos)
      text += ".0";
    launch.definitions.push_back(name + "=" + text);
  }
  return takeOperands(kernel, inputCount, launch);
}

std::string opsOf(const Problem &problem) {
  std::vector<std::string> names;
  for (const ProblemOp &op : problem.ops)
    names.push_back(op.name);
  std::sort(names.begin(), names.end());
  std::string all;
  for (const std::string &name : names)
    all += name + "+";
  return all;
}

/// The parameter list of an entry in PTX; nothing where there is no such entry.
std::optional<std::string> parametersOf(const std::string &ptx, const std::string &entry) {
  for (size_t at = ptx.find(".entry "); at != std::string::npos; at = ptx.find(".entry ", at + 1)) {
    size_t name = at + 7, end = ptx.find_first_of("( \n", name);
    if (end == std::string::npos || ptx.compare(name, end - name, entry) != 0)
      continue;
    size_t body = std::min(ptx.find('{', end), ptx.size());
    size_t open = ptx.find('(', end);
    return open < body ? ptx.substr(open, ptx.find(')', open) - open) : std::string();
  }
  return std::nullopt;
}

std::string entriesOf(const std::string &ptx) {
  std::string all;
  for (size_t at = ptx.find(".entry "); at != std::string::npos; at = ptx.find(".entry ", at + 1)) {
    size_t name = at + 7;
    all += (all.empty() ? "" : ", ") + ptx.substr(name, ptx.find_first_of("( \n", name) - name);
  }
  return all.empty() ? "none" : all;
}

/// Whether a parameter of the type that PTX states takes an argument of ours.
bool takes(std::string_view parameter, dvt_type type) {
  auto isOneOf = [&](std::initializer_list<std::string_view> known) {
    return std::find(known.begin(), known.end(), parameter) != known.end();
  };
  switch (type) {
  case DVT_I32:
    return isOneOf({"u32", "s32", "b32"});
  case DVT_F32:
    return isOneOf({"f32", "b32"});
  case DVT_F64:
    return isOneOf({"f64", "b64"});
  default: // addresses and i64
    return isOneOf({"u64", "s64", "b64"});
  }
}

Status checkEntry(const UserKernel &kernel, const KernelLaunch &launch, const std::string &ptx) {
  auto parameters = parametersOf(ptx, kernel.entry);
  if (!parameters)
    return badInput("{} has no kernel '{}' (extern \"C\" __global__); it has {}", kernel.source,
                    kernel.entry, entriesOf(ptx));
  std::vector<std::string> types;
  for (size_t at = parameters->find(".param"); at != std::string::npos;
       at = parameters->find(".param", at + 1)) {
    size_t dot = parameters->find('.', at + 1);
    types.push_back(parameters->substr(dot + 1, parameters->find_first_of(" \t", dot) - dot - 1));
  }
  if (types.size() != launch.types.size())
    return badInput("'{}' in {} takes {} parameters; the manifest has {} arguments", kernel.entry,
                    kernel.source, types.size(), launch.types.size());
  for (size_t i = 0; i < types.size(); ++i)
    if (!takes(types[i], launch.types[i]))
      return badInput("parameter {} of '{}' in {} is of type {} of PTX; the manifest hands over {}",
                      i, kernel.entry, kernel.source, types[i],
                      launch.types[i] == DVT_UNDEFINED ? "an address" : typeName(launch.types[i]));
  return Status::success();
}

Status addCudaImages(const UserKernel &kernel, const KernelLaunch &launch, CompiledSource compiled,
                     const std::string &architecture, DeviceKernel &into) {
  const std::string ptx(compiled.bytes.begin(), compiled.bytes.end());
  if (Status status = checkEntry(kernel, launch, ptx); !status)
    return status;
  const PtxAssembler &assembler = PtxAssembler::find();
  auto assembled = assembler.assemble(ptx, architecture);
  if (assembled) {
    into.images.push_back({DeviceImage::Kind::Cubin,
                           architecture,
                           std::move(assembled->cubin),
                           {assembled->resources[kernel.entry]}});
    into.addLog(assembler.description(), assembled->log);
  } else if (assembled.error().kind != ErrorKind::Unavailable) {
    return assembled.takeError();
  }
  DeviceImage text{DeviceImage::Kind::Ptx, architecture, std::move(compiled.bytes), {}};
  text.bytes.push_back(0);
  into.images.push_back(std::move(text));
  return Status::success();
}

Status addRocmImages(const UserKernel &kernel, CompiledSource compiled,
                     const std::string &architecture, DeviceKernel &into) {
  auto resources = codeObjectResources(compiled.bytes);
  if (!resources)
    return resources.takeError();
  auto found = resources->find(kernel.entry);
  if (found == resources->end()) {
    std::string names;
    for (const auto &[name, ignored] : *resources)
      names += (names.empty() ? "" : ", ") + name;
    return badInput("{} has no kernel '{}' (extern \"C\" __global__); it has {}", kernel.source,
                    kernel.entry, names.empty() ? "none" : names);
  }
  into.images.push_back(
      {DeviceImage::Kind::Hsaco, architecture, std::move(compiled.bytes), {found->second}});
  return Status::success();
}

} // namespace

std::optional<KernelLaunch> UserKernel::launchFor(const Problem &problem, const std::string &device,
                                                  const std::string &architecture,
                                                  std::string &reason) const {
  reason.clear();
  const bool isItsDevice = device == (isCuda ? "cuda" : "rocm") &&
                           (architectures.empty() ||
                            std::count(architectures.begin(), architectures.end(), architecture));
  for (const Problem &pattern : patterns) {
    if (opsOf(pattern) != opsOf(problem))
      continue;
    if (!isItsDevice) {
      reason = fmt::format("it is not for {}:{}", device, architecture);
      return std::nullopt;
    }
    KernelLaunch launch;
    auto match = matchPattern(pattern, problem, reason);
    if (!match)
      continue;
    launch.match = std::move(*match);
    if (!inPlace && std::any_of(problem.values.begin(), problem.values.end(),
                                [](const ProblemValue &value) { return value.mayAlias >= 0; })) {
      reason = "its results may not lie in the memory of operands";
      return std::nullopt;
    }
    // An attribute that neither the pattern nor an argument names may mean anything.
    for (const auto &[name, value] : launch.match.open) {
      auto names = [&key = name](const KernelNumber &number) {
        const auto *attribute = std::get_if<KernelNumber::Attribute>(&number.source);
        return attribute && attribute->name == key;
      };
      bool isUsed =
          std::any_of(operands.begin(), operands.end(),
                      [&](const KernelOperand &operand) { return names(operand.number); }) ||
          std::any_of(definitions.begin(), definitions.end(),
                      [&](const auto &definition) { return names(definition.second); });
      if (!isUsed) {
        reason = fmt::format("neither its pattern nor an argument says anything of the attribute "
                             "'{}'",
                             name);
        return std::nullopt;
      }
    }
    if (Status status = takeNumbers(*this, problem.inputs.size(), launch); !status) {
      reason = status.error().message;
      return std::nullopt;
    }
    return launch;
  }
  return std::nullopt;
}

Expected<DeviceKernel> UserKernel::compile(Tools &tools, const KernelLaunch &launch,
                                           const std::string &architecture) const {
  auto compiled = compileSource(tools, {source, architecture, launch.definitions, flags});
  if (!compiled)
    return compiled.takeError();
  DeviceKernel kernel;
  kernel.workspaceBytes = uint64_t(launch.workspaceBytes);
  kernel.launches.push_back({entry, DeviceExpression::constant(launch.blocks),
                             uint32_t(launch.threads), 0, launch.arguments});
  kernel.addLog(compiled->tool, compiled->log);
  Status status = isCuda ? addCudaImages(*this, launch, std::move(*compiled), architecture, kernel)
                         : addRocmImages(*this, std::move(*compiled), architecture, kernel);
  if (!status)
    return status.takeError();
  if (!hostForm.empty()) {
    auto bytes = readFile(hostForm);
    if (!bytes)
      return bytes.takeError();
    kernel.images.push_back(
        {DeviceImage::Kind::Host, "x86-64", {bytes->begin(), bytes->end()}, {}});
  }
  return kernel;
}

} // namespace dovetail::toolchain
