// SPDX-License-Identifier: Apache-2.0
//
// Everything that does not depend on a run's addresses is settled when the kernel is loaded. The
// driver is the one that the runtime opened, too, so that a stream of one means the same to the
// other.
#include "providers/native/LoadedDeviceKernel.h"

#include <algorithm>
#include <alloca.h>
#include <cstddef>

#include <fmt/format.h>

#include "codegen/schedule/DeviceGrid.h"
#include "providers/native/CompilerDoor.h"

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

static std::string imagesText(const DeviceKernel &kernel) {
  std::string text;
  for (const DeviceImage &image : kernel.images)
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
    auto loaded = driver->loadModule(image->bytes.data(), image->bytes.size());
    if (loaded) {
      module = *loaded;
      return Status::success();
    }
    reasons += fmt::format("{}{} for {}: {}", reasons.empty() ? "" : "; ", kindName(image->kind),
                           image->architecture, loaded.error().message);
  }
  if (reasons.empty())
    return badInput("a device kernel with images {} has none that {} could load for {}; compile "
                    "the model for it",
                    imagesText(kernel), driver->path(), architecture);
  return unavailable("the driver loads no image of the kernel: {}", reasons);
}

Status LoadedDeviceKernel::addLaunch(DeviceLaunch launch, const codegen::Isa &isa) {
  for (const DeviceArgument &argument : launch.arguments)
    if (argument.kind != DeviceArgument::Kind::Workspace &&
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
  }
  return 0;
}

dvt_code LoadedDeviceKernel::run(const dvt_run_args &args, dvt_error *error) const {
  if (dvt_code code = check(args, error); code != DVT_OK)
    return code;
  auto *values = static_cast<uint64_t *>(alloca((mostArguments + 1) * sizeof(uint64_t)));
  auto *addresses = static_cast<void **>(alloca((mostArguments + 1) * sizeof(void *)));
  for (const Launch &one : launches) {
    auto blocks = blocksOf(one, args);
    if (!blocks)
      return report(error, DVT_BAD_INPUT, blocks.error().message);
    if (*blocks == 0)
      continue;
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
    if (!status)
      return report(error, DVT_FAILED,
                    fmt::format("launch of '{}' with {} blocks of {} threads: {}", one.launch.entry,
                                *blocks, one.launch.threads, status.error().message));
  }
  return DVT_OK;
}

} // namespace dovetail::native
