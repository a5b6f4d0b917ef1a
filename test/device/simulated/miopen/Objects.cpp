// SPDX-License-Identifier: Apache-2.0
#include "Objects.h"

#include <algorithm>
#include <numeric>

namespace miopen_double {
namespace {

thread_local std::string lastReason;
thread_local int lastStatus = Success;

const char *plainName(int status) {
  switch (status) {
  case Success:
    return "miopenStatusSuccess";
  case BadParm:
    return "miopenStatusBadParm";
  case AllocFailed:
    return "miopenStatusAllocFailed";
  case NotImplemented:
    return "miopenStatusNotImplemented";
  case UnsupportedOp:
    return "miopenStatusUnsupportedOp";
  default:
    return "miopenStatusUnknownError";
  }
}

/// Whether memory is walked without gaps by these dimensions, innermost first.
bool follows(const Tensor &tensor, const std::vector<size_t> &innermostFirst) {
  int64_t stride = 1;
  for (size_t dim : innermostFirst) {
    if (tensor.dims[dim] != 1 && tensor.strides[dim] != stride)
      return false;
    stride *= tensor.dims[dim];
  }
  return true;
}

} // namespace

State &state() {
  static auto *only = new State(); // work may be done while the process ends
  return *only;
}

int64_t Tensor::elements() const {
  return std::accumulate(dims.begin(), dims.end(), int64_t(1), std::multiplies<>());
}

bool Tensor::isRowMajor() const {
  std::vector<size_t> order(dims.size());
  std::iota(order.rbegin(), order.rend(), size_t(0));
  return follows(*this, order);
}

bool Tensor::isChannelsLast() const {
  if (dims.size() < 4)
    return false;
  std::vector<size_t> order{1};
  for (size_t i = dims.size(); i-- > 2;)
    order.push_back(i);
  order.push_back(0);
  return follows(*this, order);
}

bool Tensor::isPacked() const {
  int64_t last = 0;
  for (size_t i = 0; i < dims.size(); ++i)
    last += (dims[i] - 1) * strides[i];
  return last + 1 == elements();
}

std::string Tensor::text() const {
  std::string text = fmt::format("{}", type);
  for (size_t i = 0; i < dims.size(); ++i)
    text += fmt::format(",{}:{}", dims[i], strides[i]);
  return text;
}

std::string Convolution::text() const {
  std::string text = fmt::format("g{}", groups);
  for (size_t i = 0; i < pads.size(); ++i)
    text += fmt::format(",{}:{}:{}", pads[i], strides[i], dilations[i]);
  return text;
}

Status Entry::end() {
  lastStatus = status;
  lastReason = isFine() ? "" : fmt::format("{}: {}: {}", plainName(status), name, reason);
  return status;
}

void Entry::scales(const void *alpha, const void *beta) {
  if (need(alpha && beta, BadParm, "a scale is missing"))
    need(*static_cast<const float *>(alpha) == 1 && *static_cast<const float *>(beta) == 0, BadParm,
         "scales other than 1 and 0 are not supported");
}

void Entry::workspace(const void *memory, uint64_t bytes, uint64_t needed) {
  need((memory != nullptr) == (bytes > 0), BadParm,
       "a workspace of {} bytes does not go with the address {}", bytes, memory);
  need(bytes >= needed, BadParm, "the workspace has {} bytes, the algorithm takes {}", bytes,
       needed);
  need(reinterpret_cast<uint64_t>(memory) % 64 == 0, BadParm,
       "the workspace is not aligned to 64 bytes");
}

void Entry::memory(const Tensor &tensor, const void *memory, const char *what) {
  if (need(memory, BadParm, "{} has no memory", what))
    need(reinterpret_cast<uint64_t>(memory) % static_cast<uint64_t>(tensor.elementBytes()) == 0,
         BadParm, "{} does not lie at a multiple of its elements' size", what);
}

void Entry::apart(const Tensor &a, const void *first, const Tensor &b, const void *second) {
  const auto x = reinterpret_cast<uint64_t>(first), y = reinterpret_cast<uint64_t>(second);
  need(x + a.bytes() <= y || y + b.bytes() <= x, BadParm, "an operand and the result overlap");
}

void Entry::enqueue(const Handle &handle, const std::vector<simulated::Range> &touched,
                    std::function<void()> run) {
  static const char anchor = 0;
  if (!isFine())
    return;
  const auto driver = simulated::LoadedDriver::beside(&anchor, "../libamdhip64-sim.so");
  const std::string why = driver.enqueue(name, handle.stream, touched, std::move(run));
  need(why.empty(), UnknownError, "{}", why);
}

std::vector<simulated::Range>
ranges(std::initializer_list<std::tuple<const char *, const void *, uint64_t>> all) {
  std::vector<simulated::Range> result;
  for (const auto &[what, memory, bytes] : all)
    if (memory || bytes > 0)
      result.push_back({what, memory, bytes});
  return result;
}

} // namespace miopen_double

MIOPEN_ENTRY const char *miopenGetErrorString(int status) {
  using namespace miopen_double;
  return status == lastStatus && !lastReason.empty() ? lastReason.c_str() : plainName(status);
}

/// For tests: objects of all kinds that were made and not destroyed.
MIOPEN_ENTRY uint64_t dvtSimulatedObjects() {
  using namespace miopen_double;
  State &s = state();
  std::lock_guard lock(s.mutex);
  return s.handles.count() + s.tensors.count() + s.convolutions.count() + s.pools.count() +
         s.activations.count() + s.problems.count() + s.options.count() + s.solutions.count() +
         s.plans.count() + s.args.count();
}
