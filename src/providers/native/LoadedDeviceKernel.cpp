// SPDX-License-Identifier: Apache-2.0
//
// Everything that does not depend on a run's addresses is settled when the kernel is loaded. The
// driver is the one that the runtime opened, too, so that a stream of one means the same to the
// other.
#include "providers/native/LoadedDeviceKernel.h"

#include <algorithm>
#include <alloca.h>
#include <cstddef>
#include <cstring>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "codegen/schedule/DeviceGrid.h"
#include "device/PtxVersion.h"
#include "providers/native/CompilerDoor.h"
#include "providers/native/ValueChecks.h"

namespace dovetail::native {

/// Those that may run, readiest first.
static std::vector<const DeviceImage *> imagesFor(const DeviceKernel &kernel,
                                                  const device::DeviceDriver &driver,
                                                  const char *architecture) {
  using Kind = DeviceImage::Kind;
  std::vector<Kind> kinds{Kind::Host};
  if (!driver.isSimulated())
    kinds = {Kind::Cubin, Kind::Hsaco, Kind::Ptx};
  std::vector<const DeviceImage *> images;
  for (Kind kind : kinds)
    for (const DeviceImage &image : kernel.images)
      if (image.kind == kind && (kind == Kind::Host || image.architecture == architecture))
        images.push_back(&image);
  return images;
}

/// Why the driver is too old for an image; empty where nothing says so. The host form stands for
/// what a real device would be given.
static std::string tooOld(const DeviceKernel &kernel, const DeviceImage &image,
                          const device::DeviceDriver &driver) {
  const DeviceImage *text = &image;
  if (image.kind == DeviceImage::Kind::Host)
    text = kernel.find(DeviceImage::Kind::Ptx);
  if (!text || text->kind != DeviceImage::Kind::Ptx)
    return {};
  uint32_t needed = device::driverForPtx(
      {reinterpret_cast<const char *>(text->bytes.data()), text->bytes.size()});
  uint32_t there = driver.versionNumber();
  if (there == 0 || needed <= there)
    return {};
  return fmt::format("it needs a driver for CUDA {} or later, {} is one for {}; update the driver",
                     device::cudaVersionText(needed), driver.path(), driver.version());
}

static std::string imagesText(const DeviceKernel &kernel) {
  std::string text;
  for (const DeviceImage &image : kernel.images)
    if (image.kind != DeviceImage::Kind::Log)
      text += fmt::format("{}{} for {}", text.empty() ? "" : ", ", kindName(image.kind),
                          image.architecture);
  return text.empty() ? "none" : text;
}

Expected<std::unique_ptr<LoadedDeviceKernel>>
LoadedDeviceKernel::load(const codegen::ProblemReader &problem, const codegen::Machine &machine,
                         std::shared_ptr<device::DeviceDriver> driver,
                         const dvt_prepare_args &args) {
  std::unique_ptr<LoadedDeviceKernel> kernel(new LoadedDeviceKernel(problem, std::move(driver)));
  const auto *bytes = static_cast<const uint8_t *>(args.kernel);
  auto parsed = DeviceKernel::parse({bytes, bytes ? args.kernel_bytes : 0});
  if (!parsed)
    return parsed.takeError();
  kernel->workspace = parsed->workspaceBytes;
  if (Status status = kernel->readDemands(problem, args); !status)
    return status.takeError();
  if (parsed->launches.size() < kernel->checks.size() || kernel->workspace < kernel->checkBytes())
    return badInput(
        "a device kernel does not check the indices that it is given; compile the model "
        "again");
  if (Status status = kernel->loadModule(*parsed, machine.isa.name()); !status)
    return status.takeError();
  for (DeviceLaunch &launch : parsed->launches)
    if (Status status = kernel->addLaunch(std::move(launch), machine.isa); !status)
      return status.takeError();
  return kernel;
}

LoadedDeviceKernel::~LoadedDeviceKernel() {
  if (module)
    (void)driver->unloadModule(module); // nobody is left who could be told
}

Status LoadedDeviceKernel::loadModule(const DeviceKernel &kernel, const char *architecture) {
  std::string reasons;
  for (const DeviceImage *image : imagesFor(kernel, *driver, architecture)) {
    // Text ends with a zero, by which alone the driver knows where.
    if (image->kind == DeviceImage::Kind::Ptx && (image->bytes.empty() || image->bytes.back() != 0))
      return badInput("a device kernel's PTX has no end; compile the model again");
    std::string why = tooOld(kernel, *image, *driver);
    if (why.empty()) {
      auto loaded = driver->loadModule(image->bytes.data(), image->bytes.size());
      if (loaded) {
        module = *loaded;
        passedOver = std::move(reasons);
        return Status::success();
      }
      why = loaded.error().message;
    }
    reasons += fmt::format("{}{} for {}: {}", reasons.empty() ? "" : "; ", kindName(image->kind),
                           image->architecture, why);
  }
  if (reasons.empty())
    return badInput("a device kernel with images {} has none that {} could load for {}{}; compile "
                    "the model for it",
                    imagesText(kernel), driver->path(), architecture,
                    driver->isSimulated() ? " (a simulated device runs host forms only)" : "");
  return unavailable("the driver (version {}) loads no image of the kernel: {}", driver->version(),
                     reasons);
}

Status LoadedDeviceKernel::addLaunch(DeviceLaunch launch, const codegen::Isa &isa) {
  for (const DeviceArgument &argument : launch.arguments)
    if (argument.kind != DeviceArgument::Kind::Workspace &&
        argument.kind != DeviceArgument::Kind::Number &&
        (argument.tensor >= shapes.count() ||
         (argument.kind == DeviceArgument::Kind::Extent &&
          argument.dimension >= shapes[argument.tensor].extents.size())))
      return badInput("'{}' of a device kernel takes what its problem does not have; compile the "
                      "model again",
                      launch.entry);
  auto function = driver->findFunction(module, launch.entry);
  if (!function)
    return function.takeError();
  mostArguments = std::max(mostArguments, launch.arguments.size());
  auto blocks = launch.blocks.constantValue();
  const int64_t most = codegen::mostBlocks(isa, launch.threads);
  launches.push_back({std::move(launch), *function, blocks, most});
  return Status::success();
}

dvt_code LoadedDeviceKernel::check(const dvt_run_args &args, dvt_error *error) const {
  if (dvt_code code = shapes.check(args, true, {}, error); code != DVT_OK)
    return code;
  constexpr size_t end = offsetof(dvt_run_args, stream) + sizeof(args.stream);
  if (args.struct_size < end || !args.stream)
    return report(error, DVT_BAD_INPUT, "a kernel for a device is run without a stream");
  if (workspace > args.workspace_bytes || (workspace && !args.workspace))
    return report(error, DVT_BAD_INPUT,
                  fmt::format("the kernel needs {} bytes of workspace and is given {}", workspace,
                              args.workspace_bytes));
  return DVT_OK;
}

Expected<int64_t> LoadedDeviceKernel::blocksOf(const Launch &launch,
                                               const dvt_run_args &args) const {
  int64_t blocks = launch.blocks.value_or(0);
  if (!launch.blocks) {
    std::vector<std::vector<int64_t>> extents;
    for (uint32_t i = 0; i < shapes.count(); ++i)
      extents.emplace_back(shapes.of(args, i).extents,
                           shapes.of(args, i).extents + shapes.of(args, i).rank);
    auto number = launch.launch.blocks.evaluate(extents);
    if (!number)
      return number.takeError();
    blocks = *number;
  }
  if (blocks < 0 || blocks > launch.mostBlocks)
    return badInput("'{}' takes {} blocks of {} threads for these extents; the device takes {}",
                    launch.launch.entry, blocks, launch.launch.threads, launch.mostBlocks);
  return blocks;
}

uint64_t LoadedDeviceKernel::valueOf(const DeviceArgument &argument,
                                     const dvt_run_args &args) const {
  switch (argument.kind) {
  case DeviceArgument::Kind::Tensor:
    return reinterpret_cast<uintptr_t>(shapes.of(args, argument.tensor).data);
  case DeviceArgument::Kind::Workspace:
    return reinterpret_cast<uintptr_t>(args.workspace);
  case DeviceArgument::Kind::Extent:
    return uint64_t(shapes.of(args, argument.tensor).extents[argument.dimension]);
  case DeviceArgument::Kind::Number:
    return uint64_t(argument.number);
  }
  return 0;
}

/// What a constant must fulfil under an extent that is known is settled here, once.
Status LoadedDeviceKernel::readDemands(const codegen::ProblemReader &problem,
                                       const dvt_prepare_args &args) {
  for (const codegen::ValueDemand &demand : codegen::indexDemands(problem)) {
    const TensorShapes::Shape &shape = shapes[demand.input];
    const void *constant = args.constants ? args.constants[demand.input] : nullptr;
    bool isSettled = constant && demand.extent >= 0;
    int64_t count = std::accumulate(shape.extents.begin(), shape.extents.end(), int64_t(1),
                                    std::multiplies<>());
    if (isSettled)
      if (auto broken = firstViolation(demand, shape.type, constant, count, demand.extent))
        return badInput("{}", *broken);
    checks.push_back({demand, isSettled});
  }
  return Status::success();
}

Status LoadedDeviceKernel::launch(const Launch &one, const dvt_run_args &args) const {
  auto blocks = blocksOf(one, args);
  if (!blocks)
    return blocks.takeError();
  if (*blocks == 0)
    return Status::success();
  auto *values = static_cast<uint64_t *>(alloca((mostArguments + 1) * sizeof(uint64_t)));
  auto *addresses = static_cast<void **>(alloca((mostArguments + 1) * sizeof(void *)));
  const std::vector<DeviceArgument> &arguments = one.launch.arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    values[i] = valueOf(arguments[i], args);
    addresses[i] = &values[i];
  }
  device::LaunchShape shape;
  shape.blocks[0] = uint32_t(*blocks);
  shape.threads[0] = one.launch.threads;
  Status status = driver->launch(one.function, shape, addresses,
                                 static_cast<device::StreamHandle>(args.stream));
  return status ? Status::success()
                : Status(internalError("launch of '{}' with {} blocks of {} threads: {}",
                                       one.launch.entry, *blocks, one.launch.threads,
                                       status.error().message));
}

Status LoadedDeviceKernel::launchChecks(const dvt_run_args &args, int64_t *words) const {
  auto stream = static_cast<device::StreamHandle>(args.stream);
  auto begin = reinterpret_cast<device::DeviceAddress>(args.workspace) + workspace - checkBytes();
  Status status = driver->fill(begin, 0, checkBytes(), stream);
  for (size_t i = 0; i < checks.size() && status; ++i)
    if (!checks[i].isSettled)
      status = launch(launches[i], args);
  if (status)
    status = driver->copyToHost(words, begin, checkBytes(), stream);
  return status ? driver->synchronize(stream) : std::move(status);
}

/// What is wrong with the index that a check has found.
Expected<std::string> LoadedDeviceKernel::describeIndex(const dvt_run_args &args,
                                                        const IndexCheck &check,
                                                        int64_t word) const {
  const codegen::ValueDemand &demand = check.demand;
  const dvt_tensor &tensor = args.inputs[demand.input];
  const auto [number, dimension] = demand.extentOf;
  int64_t extent = demand.extent >= 0 ? demand.extent : shapes.of(args, number).extents[dimension];
  int64_t place = (word - 1) * demand.parts + demand.part, found = 0;
  const uint64_t bytes = tensor.type == DVT_I32 ? 4 : 8;
  auto stream = static_cast<device::StreamHandle>(args.stream);
  auto from = reinterpret_cast<device::DeviceAddress>(tensor.data) + uint64_t(place) * bytes;
  Status status = driver->copyToHost(&found, from, bytes, stream);
  if (status)
    status = driver->synchronize(stream);
  if (!status)
    return status.takeError();
  if (tensor.type == DVT_I32) {
    int32_t narrow = 0;
    std::memcpy(&narrow, &found, sizeof narrow);
    found = narrow;
  }
  return violation(demand, found, extent).value_or("an index is wrong");
}

dvt_code LoadedDeviceKernel::checkIndices(const dvt_run_args &args, dvt_error *error) const {
  auto codeOf = [&](const Error &what) {
    return report(error, what.kind == ErrorKind::BadInput ? DVT_BAD_INPUT : DVT_FAILED,
                  what.message);
  };
  if (std::all_of(checks.begin(), checks.end(),
                  [](const IndexCheck &check) { return check.isSettled; }))
    return DVT_OK;
  auto recording = driver->isRecording(static_cast<device::StreamHandle>(args.stream));
  if (!recording)
    return codeOf(recording.error());
  if (*recording)
    return report(error, DVT_UNSUPPORTED, "its indices are waited for, so it cannot be recorded");
  auto *words = static_cast<int64_t *>(alloca(checkBytes()));
  if (Status status = launchChecks(args, words); !status)
    return codeOf(status.error());
  for (size_t i = 0; i < checks.size(); ++i)
    if (words[i] > 0) {
      auto what = describeIndex(args, checks[i], words[i]);
      return what ? report(error, DVT_BAD_INPUT, *what) : codeOf(what.error());
    }
  return DVT_OK;
}

dvt_code LoadedDeviceKernel::run(const dvt_run_args &args, dvt_error *error) const {
  if (dvt_code code = check(args, error); code != DVT_OK)
    return code;
  if (dvt_code code = checkIndices(args, error); code != DVT_OK)
    return code;
  for (size_t i = checks.size(); i < launches.size(); ++i)
    if (Status status = launch(launches[i], args); !status)
      return report(error, status.error().kind == ErrorKind::BadInput ? DVT_BAD_INPUT : DVT_FAILED,
                    status.error().message);
  return DVT_OK;
}

} // namespace dovetail::native
