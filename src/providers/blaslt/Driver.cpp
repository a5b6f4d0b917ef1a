// SPDX-License-Identifier: Apache-2.0
#include "providers/blaslt/Driver.h"

#include <dlfcn.h>

#include <cmath>
#include <type_traits>

#include "providers/DeviceCalls.h"

namespace dovetail::blaslt {
namespace {

constexpr unsigned char kOrdinary =
    0x3c; ///< repeated, a small positive number of f32, f16 and bf16
constexpr int kRounds = 2, kRunsOfRound = 4;

/// Two events, between which time is taken.
class Watch {
public:
  explicit Watch(const Driver &driver) : driver(driver) {
    code = driver.createEvent(&begin, 0);
    if (code == 0)
      code = driver.createEvent(&end, 0);
  }
  ~Watch() {
    for (void *event : {begin, end})
      if (event)
        driver.destroyEvent(event);
  }
  Watch(const Watch &) = delete;
  /// Of the work that `give` gives to the driver's own stream; nothing with `reason`.
  std::optional<double> millis(const std::function<std::string()> &give, std::string &reason) {
    float taken = 0;
    if (code == 0)
      code = driver.record(begin, nullptr);
    const std::string refused = code == 0 ? give() : std::string();
    if (code == 0 && refused.empty())
      code = driver.record(end, nullptr);
    if (code == 0 && refused.empty())
      code = driver.wait(end);
    if (code == 0 && refused.empty())
      code = driver.elapsed(&taken, begin, end);
    if (code == 0 && refused.empty())
      return taken;
    reason = code == 0 ? refused : "the driver fails with code " + std::to_string(code);
    return std::nullopt;
  }

private:
  const Driver &driver;
  void *begin = nullptr, *end = nullptr;
  Status code = 0;
};

} // namespace

std::shared_ptr<const Driver> Driver::open(const std::string &drivers, std::string &reason) {
  const std::string path = providers::driverFile(drivers, dialect().device);
  std::vector<const char *> files = dialect().driver.files;
  if (!path.empty())
    files = {path.c_str()};
  // One that is loaded is the host's; memory and events of another version would be strange to it.
  void *opened = nullptr;
  for (const int flags : {RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL})
    for (const char *file : files)
      if (!opened)
        opened = dlopen(file, flags);
  if (!opened) {
    reason = std::string("the driver is not there to measure with: ") + files.front();
    return nullptr;
  }
  auto driver = std::make_shared<Driver>();
  reason.clear();
  auto find = [&](const char *name, auto &function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(opened, name));
    if (!function)
      reason = std::string("the driver has no ") + name + " to measure with";
  };
  const auto &names = dialect().driver;
  find(names.allocate, driver->allocate);
  find(names.release, driver->release);
  find(names.fill, driver->fill);
  find(names.createEvent, driver->createEvent);
  find(names.destroyEvent, driver->destroyEvent);
  find(names.record, driver->record);
  find(names.wait, driver->wait);
  find(names.elapsed, driver->elapsed);
  return reason.empty() ? driver : nullptr;
}

bool Scratch::allocate(uint64_t bytes, std::string &reason) {
  if (bytes == 0)
    return true;
  Status code = driver->allocate(&memory, bytes);
  if (code != 0) {
    memory = nullptr;
    reason = "the device has no " + std::to_string(bytes) +
             " bytes to measure with (the driver's code is " + std::to_string(code) + ")";
    return false;
  }
  code = driver->fill(memory, kOrdinary, bytes, nullptr);
  if (code != 0)
    reason = "the driver fails with code " + std::to_string(code);
  return code == 0;
}

std::optional<size_t> findFastest(const Driver &driver, size_t count,
                                  const std::function<std::string(size_t way)> &run,
                                  std::string &reason) {
  Watch watch(driver);
  std::optional<size_t> fastest;
  double least = INFINITY;
  for (size_t way = 0; way < count; ++way) {
    // The first run loads code, and shows whether there can be more.
    bool runs = watch.millis([&] { return run(way); }, reason).has_value();
    for (int round = 0; runs && round < kRounds; ++round) {
      const std::optional<double> taken = watch.millis(
          [&] {
            std::string refused;
            for (int i = 0; i < kRunsOfRound && refused.empty(); ++i)
              refused = run(way);
            return refused;
          },
          reason);
      runs = taken.has_value();
      if (!runs || *taken >= least)
        continue;
      least = *taken;
      fastest = way;
    }
  }
  if (fastest)
    reason.clear();
  return fastest;
}

} // namespace dovetail::blaslt
