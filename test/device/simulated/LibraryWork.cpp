// SPDX-License-Identifier: Apache-2.0
//
// The driver's side: work of libraries in streams, with its memory checked as that of kernels is.
#include "LibraryWork.h"

#include "State.h"

namespace simulated {
namespace {

/// Empty, or which range is not inside a block.
std::string checkRanges(const std::string &what, const std::vector<Range> &ranges) {
  for (const Range &range : ranges)
    if (std::string why =
            state().memory.check(reinterpret_cast<uint64_t>(range.memory), range.bytes);
        !why.empty())
      return fmt::format("'{}': {}: {}", what, range.what, why);
  return {};
}

Code runLibraryWork(const std::string &what, const std::vector<Range> &ranges,
                    const std::function<void()> &run) {
  if (std::string why = checkRanges(what, ranges); !why.empty())
    return breakDown(IllegalAddress, why);
  for (const Range &range : ranges)
    if (checkOrdered(what.c_str(), reinterpret_cast<uint64_t>(range.memory)))
      return breakDown(IllegalAddress, lastReason);
  {
    DeviceMemory::Opened opened(state().memory);
    run();
  }
  std::string strays = state().memory.findStrays();
  return strays.empty() ? Success : breakDown(IllegalAddress, fmt::format("'{}' {}", what, strays));
}

} // namespace

int enqueueLibraryWork(const std::string &what, void *stream, const std::vector<Range> &ranges,
                       std::function<void()> run) {
  std::lock_guard lock(state().mutex);
  if (Code code = checkContext())
    return code;
  StreamState *queue = findStream(stream);
  if (!queue)
    return InvalidHandle;
  if (std::string why = checkRanges(what, ranges); !why.empty())
    return refuse(InvalidValue, "{}", why);
  ++state().counts["library calls"];
  give(*queue, [what, ranges, run = std::move(run)] { return runLibraryWork(what, ranges, run); });
  return Success;
}

} // namespace simulated

extern "C" __attribute__((visibility("default"))) int
dvtSimulatedLibraryWork(const std::string *what, void *stream,
                        const std::vector<simulated::Range> *ranges, std::function<void()> *run) {
  return simulated::enqueueLibraryWork(*what, stream, *ranges, std::move(*run));
}
extern "C" __attribute__((visibility("default"))) const char *dvtSimulatedExplain(int code) {
  return simulated::explain(code);
}
