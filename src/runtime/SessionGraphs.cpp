// SPDX-License-Identifier: Apache-2.0
//
// Kernels that follow each other on the device are recorded when a frame runs for the second time,
// and from then on given to the stream as one: of small kernels, launching is what takes time.
// Where the driver cannot record, or a kernel cannot be recorded, they are given one by one.
#include "runtime/Session.h"

#include <algorithm>

namespace dovetail {

namespace {
constexpr size_t kFewest = 2; ///< kernels that are worth it
} // namespace

/// Once for each frame, when its kernels have run and libraries have made ready what they want.
void Session::recordWork() {
  if (!stream || stepMicros || ++current->deviceRuns != 2 || !owner->device()->driver().hasGraphs())
    return;
  const std::vector<Action> &actions = current->frame->actions;
  auto isKernel = [](const Action &action) {
    return action.kind == Action::Kind::Run && action.onDevice;
  };
  for (size_t first = 0, end = 0; first < actions.size(); first = end + 1) {
    auto next = std::find_if_not(actions.begin() + ptrdiff_t(first), actions.end(), isKernel);
    end = size_t(next - actions.begin());
    if (end - first < kFewest)
      continue;
    size_t until = end;
    auto graph = record(first, until);
    if (!graph) {
      owner->log()(LogLevel::Debug, "kernels are given to the device one by one: {}",
                   graph.error().message);
      current->recorded.clear();
      return;
    }
    if (until - first >= kFewest)
      current->recorded.push_back({first, until, std::move(*graph)});
    end = until; // what comes behind a kernel that waits begins anew
  }
}

/// Kernels from `first` on, up to `end` or, which `end` then is, to one that refuses to be
/// recorded.
Expected<std::unique_ptr<device::Graph>> Session::record(size_t first, size_t &end) {
  device::Device &device = *owner->device();
  if (Status status = device.driver().beginCapture(stream->handle()); !status)
    return status.takeError();
  Status status = Status::success();
  for (size_t i = first; i < end && status; ++i) {
    const Action &action = current->frame->actions[i];
    dvt_error error{};
    dvt_code code = action.run(action.kernel, &action.args, &error);
    if (code == DVT_UNSUPPORTED)
      end = i;
    else if (code != DVT_OK)
      status = failure(action, code, error);
  }
  auto graph = device.endCapture(*stream); // in any case
  if (!status)
    return status.takeError();
  return graph;
}

} // namespace dovetail
