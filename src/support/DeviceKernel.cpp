// SPDX-License-Identifier: Apache-2.0
//
// Device kernels to bytes and back. All numbers are little-endian; a digest of what follows stands
// behind the magic, and reading checks every length all the same.
#include "support/DeviceKernel.h"

#include <algorithm>
#include <cstring>

#include "support/Hash.h"

namespace dovetail {

namespace {

constexpr char kDeviceMagic[8] = {'D', 'V', 'T', 'D', 'E', 'V', 'K', '1'};
constexpr char kHostMagic[8] = {'D', 'V', 'T', 'H', 'O', 'S', 'T', '1'};
constexpr size_t kHeaderBytes = sizeof(kDeviceMagic) + sizeof(Digest);
constexpr uint64_t kMostItems = 1 << 20;

class Writer {
public:
  explicit Writer(const char (&magic)[8]) : bytes(kHeaderBytes) {
    std::memcpy(bytes.data(), magic, sizeof(magic));
  }
  void number(uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; ++i)
      bytes.push_back(uint8_t(value >> (8 * i)));
  }
  void block(const void *data, uint64_t size) {
    number(size, 8);
    const auto *from = static_cast<const uint8_t *>(data);
    bytes.insert(bytes.end(), from, from + size);
  }
  void text(const std::string &value) { block(value.data(), value.size()); }
  std::vector<uint8_t> finish() {
    Digest digest = digestOf(bytes.data() + kHeaderBytes, bytes.size() - kHeaderBytes);
    std::memcpy(bytes.data() + sizeof(kDeviceMagic), digest.data(), digest.size());
    return std::move(bytes);
  }

private:
  std::vector<uint8_t> bytes;
};

/// Gives zeros and empty blocks once the bytes have ended; `good` tells in the end.
class Reader {
public:
  Reader(std::span<const uint8_t> bytes, const char (&magic)[8]) : rest(bytes) {
    good = begins(bytes, magic);
    if (!good)
      return;
    rest = bytes.subspan(kHeaderBytes);
    Digest digest = digestOf(rest.data(), rest.size());
    good = std::memcmp(bytes.data() + sizeof(magic), digest.data(), digest.size()) == 0;
  }
  static bool begins(std::span<const uint8_t> bytes, const char (&magic)[8]) {
    return bytes.size() >= kHeaderBytes && std::memcmp(bytes.data(), magic, sizeof(magic)) == 0;
  }
  uint64_t number(unsigned size) {
    if (!good || rest.size() < size) {
      good = false;
      return 0;
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < size; ++i)
      value |= uint64_t(rest[i]) << (8 * i);
    rest = rest.subspan(size);
    return value;
  }
  uint32_t word() { return uint32_t(number(4)); }
  std::span<const uint8_t> block() {
    uint64_t size = number(8);
    if (!good || size > rest.size()) {
      good = false;
      return {};
    }
    auto taken = rest.first(size);
    rest = rest.subspan(size);
    return taken;
  }
  std::string text() {
    auto taken = block();
    return {taken.begin(), taken.end()};
  }
  /// How many items follow, each of which takes at least a byte.
  uint64_t count() {
    uint64_t items = number(4);
    if (items > kMostItems || items > rest.size())
      good = false;
    return good ? items : 0;
  }
  void check(bool condition) { good = good && condition; }
  bool ended() const { return good && rest.empty(); }

private:
  std::span<const uint8_t> rest;
  bool good = false;
};

void write(Writer &writer, const DeviceExpression &expression) {
  writer.number(expression.steps.size(), 4);
  for (const DeviceExpression::Step &step : expression.steps) {
    writer.number(uint8_t(step.op), 1);
    writer.number(step.tensor, 4);
    writer.number(uint64_t(step.number), 8);
  }
}

DeviceExpression readExpression(Reader &reader) {
  DeviceExpression expression;
  uint64_t depth = 0;
  for (uint64_t i = reader.count(); i > 0; --i) {
    DeviceExpression::Step step{};
    uint64_t op = reader.number(1);
    reader.check(op <= uint64_t(DeviceExpression::Op::Maximum));
    step.op = DeviceExpression::Op(op);
    step.tensor = reader.word();
    step.number = int64_t(reader.number(8));
    bool pushes = step.op <= DeviceExpression::Op::Extent;
    reader.check(pushes || depth >= 2);
    depth += pushes ? 1 : -1;
    expression.steps.push_back(step);
  }
  reader.check(depth == 1);
  return expression;
}

void write(Writer &writer, const DeviceLaunch &launch) {
  writer.text(launch.entry);
  write(writer, launch.blocks);
  writer.number(launch.threads, 4);
  writer.number(launch.sharedBytes, 4);
  writer.number(launch.arguments.size(), 4);
  for (const DeviceArgument &argument : launch.arguments) {
    writer.number(uint8_t(argument.kind), 1);
    if (argument.kind == DeviceArgument::Kind::Number) {
      writer.number(uint64_t(argument.number), 8);
      continue;
    }
    writer.number(argument.tensor, 4);
    writer.number(argument.dimension, 4);
  }
}

DeviceLaunch readLaunch(Reader &reader) {
  DeviceLaunch launch;
  launch.entry = reader.text();
  launch.blocks = readExpression(reader);
  launch.threads = reader.word();
  launch.sharedBytes = reader.word();
  reader.check(!launch.entry.empty() && launch.threads > 0);
  for (uint64_t i = reader.count(); i > 0; --i) {
    DeviceArgument argument;
    uint64_t kind = reader.number(1);
    reader.check(kind <= uint64_t(DeviceArgument::Kind::Number));
    argument.kind = DeviceArgument::Kind(kind);
    if (argument.kind == DeviceArgument::Kind::Number) {
      argument.number = int64_t(reader.number(8));
    } else {
      argument.tensor = reader.word();
      argument.dimension = reader.word();
    }
    launch.arguments.push_back(argument);
  }
  return launch;
}

void write(Writer &writer, const DeviceImage &image) {
  writer.number(uint32_t(image.kind), 4);
  writer.text(image.architecture);
  writer.block(image.bytes.data(), image.bytes.size());
  writer.number(image.resources.size(), 4);
  for (const DeviceResources &one : image.resources)
    for (uint32_t number : {one.registers, one.spillBytes, one.stackBytes, one.sharedBytes})
      writer.number(number, 4);
}

DeviceImage readImage(Reader &reader) {
  DeviceImage image;
  uint32_t kind = reader.word();
  reader.check(kind >= uint32_t(DeviceImage::Kind::Ptx) &&
               kind <= uint32_t(DeviceImage::Kind::Log));
  image.kind = DeviceImage::Kind(kind);
  image.architecture = reader.text();
  auto code = reader.block();
  image.bytes.assign(code.begin(), code.end());
  for (uint64_t i = reader.count(); i > 0; --i) {
    DeviceResources one;
    for (uint32_t *number : {&one.registers, &one.spillBytes, &one.stackBytes, &one.sharedBytes})
      *number = reader.word();
    image.resources.push_back(one);
  }
  return image;
}

/// Nothing where 64 bits do not suffice.
std::optional<int64_t> apply(DeviceExpression::Op op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
  case DeviceExpression::Op::Add:
    return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  case DeviceExpression::Op::Subtract:
    return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  case DeviceExpression::Op::Multiply:
    return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  case DeviceExpression::Op::Divide:
  case DeviceExpression::Op::Remainder:
    if (a < 0 || b <= 0)
      return std::nullopt;
    return op == DeviceExpression::Op::Divide ? a / b : a % b;
  case DeviceExpression::Op::Minimum:
    return std::min(a, b);
  case DeviceExpression::Op::Maximum:
    return std::max(a, b);
  default:
    return std::nullopt;
  }
}

} // namespace

std::optional<int64_t> DeviceExpression::constantValue() const {
  for (const Step &step : steps)
    if (step.op == Op::Extent)
      return std::nullopt;
  auto value = evaluate({});
  return value ? std::optional(*value) : std::nullopt;
}

Expected<int64_t> DeviceExpression::evaluate(TensorExtents extents) const {
  std::vector<int64_t> stack;
  for (const Step &step : steps) {
    if (step.op == Op::Constant) {
      stack.push_back(step.number);
      continue;
    }
    if (step.op == Op::Extent) {
      if (step.tensor >= extents.size() || step.number < 0 ||
          uint64_t(step.number) >= extents[step.tensor].size())
        return badInput("a device kernel asks for dimension {} of tensor {}, which is not there",
                        step.number, step.tensor);
      stack.push_back(extents[step.tensor][step.number]);
      continue;
    }
    if (stack.size() < 2)
      return badInput("a device kernel has a broken expression");
    int64_t b = stack.back();
    stack.pop_back();
    auto result = apply(step.op, stack.back(), b);
    if (!result)
      return badInput("extents of a device kernel give no number: {}", text());
    stack.back() = *result;
  }
  if (stack.size() != 1)
    return badInput("a device kernel has a broken expression");
  return stack.back();
}

std::string DeviceExpression::text() const {
  std::vector<std::string> stack;
  for (const Step &step : steps) {
    if (step.op == Op::Constant) {
      stack.push_back(std::to_string(step.number));
    } else if (step.op == Op::Extent) {
      stack.push_back(fmt::format("t{}.{}", step.tensor, step.number));
    } else {
      if (stack.size() < 2)
        return "?";
      static const char *const formats[] = {"",        "",           "({}+{})",
                                            "({}-{})", "({}*{})",    "({}/{})",
                                            "({}%{})", "min({},{})", "max({},{})"};
      std::string b = std::move(stack.back());
      stack.pop_back();
      stack.back() = fmt::format(fmt::runtime(formats[size_t(step.op)]), stack.back(), b);
    }
  }
  return stack.size() == 1 ? stack.back() : "?";
}

const char *kindName(DeviceImage::Kind kind) {
  switch (kind) {
  case DeviceImage::Kind::Ptx:
    return "ptx";
  case DeviceImage::Kind::Cubin:
    return "cubin";
  case DeviceImage::Kind::Hsaco:
    return "hsaco";
  case DeviceImage::Kind::Host:
    return "host";
  case DeviceImage::Kind::Log:
    return "log";
  }
  return "";
}

void DeviceKernel::addLog(const std::string &tool, const std::string &text) {
  if (!text.empty())
    images.push_back({DeviceImage::Kind::Log, tool, {text.begin(), text.end()}, {}});
}

const DeviceImage *DeviceKernel::find(DeviceImage::Kind kind) const {
  for (const DeviceImage &image : images)
    if (image.kind == kind)
      return &image;
  return nullptr;
}

std::vector<uint8_t> DeviceKernel::serialise() const {
  Writer writer(kDeviceMagic);
  writer.number(workspaceBytes, 8);
  writer.number(launches.size(), 4);
  for (const DeviceLaunch &launch : launches)
    write(writer, launch);
  writer.number(images.size(), 4);
  for (const DeviceImage &image : images)
    write(writer, image);
  return writer.finish();
}

Expected<DeviceKernel> DeviceKernel::parse(std::span<const uint8_t> bytes) {
  Reader reader(bytes, kDeviceMagic);
  DeviceKernel kernel;
  kernel.workspaceBytes = reader.number(8);
  for (uint64_t i = reader.count(); i > 0; --i)
    kernel.launches.push_back(readLaunch(reader));
  for (uint64_t i = reader.count(); i > 0; --i) {
    kernel.images.push_back(readImage(reader));
    size_t known = kernel.images.back().resources.size();
    reader.check(known == 0 || known == kernel.launches.size());
  }
  if (!reader.ended())
    return badInput("these {} bytes are not a device kernel of this version, or are damaged; "
                    "compile the model again",
                    bytes.size());
  return kernel;
}

bool DeviceKernel::recognises(std::span<const uint8_t> bytes) {
  return Reader::begins(bytes, kDeviceMagic);
}

const HostKernels::Entry *HostKernels::find(std::string_view name) const {
  for (const Entry &entry : entries)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

std::vector<uint8_t> HostKernels::serialise() const {
  Writer writer(kHostMagic);
  writer.number(entries.size(), 4);
  for (const Entry &entry : entries) {
    writer.text(entry.name);
    writer.number(entry.offset, 8);
    for (uint32_t number : {entry.arguments, entry.threads, entry.sharedBytes})
      writer.number(number, 4);
    writer.number(entry.barriers, 1);
  }
  writer.block(code.data(), code.size());
  return writer.finish();
}

Expected<HostKernels> HostKernels::parse(std::span<const uint8_t> bytes) {
  Reader reader(bytes, kHostMagic);
  HostKernels kernels;
  for (uint64_t i = reader.count(); i > 0; --i) {
    Entry entry;
    entry.name = reader.text();
    entry.offset = reader.number(8);
    for (uint32_t *number : {&entry.arguments, &entry.threads, &entry.sharedBytes})
      *number = reader.word();
    uint64_t barriers = reader.number(1);
    reader.check(barriers <= 1);
    entry.barriers = barriers;
    kernels.entries.push_back(std::move(entry));
  }
  auto code = reader.block();
  for (const Entry &entry : kernels.entries)
    reader.check(entry.offset < code.size());
  if (!reader.ended())
    return badInput("these {} bytes are not host kernels of this version, or are damaged; compile "
                    "the model again",
                    bytes.size());
  kernels.code.assign(code.begin(), code.end());
  return kernels;
}

} // namespace dovetail
