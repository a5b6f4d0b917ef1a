// SPDX-License-Identifier: Apache-2.0
//
// Versions, handles, and how calls end.
#include "Legacy.h"

#include <cstdlib>
#include <cstring>

using namespace cudnn_double;

namespace cudnn_double {
namespace {

thread_local std::string lastReason;

const char *textOf(int status) {
  switch (status) {
  case Success:
    return "CUDNN_STATUS_SUCCESS";
  case NotInitialized:
    return "CUDNN_STATUS_NOT_INITIALIZED";
  case SerializationVersionMismatch:
    return "CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH";
  case NullPointer:
    return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
  case MisalignedPointer:
    return "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER";
  case NotFinalized:
    return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
  case SizeInsufficient:
    return "CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT";
  case ShapeMismatch:
    return "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH";
  case DuplicatedEntries:
    return "CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES";
  case WrongAttributeType:
    return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
  case WrongDescriptorType:
    return "CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE";
  case NotSupported:
    return "CUDNN_STATUS_NOT_SUPPORTED";
  case ArchitectureMismatch:
    return "CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH";
  case ExecutionFailed:
    return "CUDNN_STATUS_EXECUTION_FAILED";
  default:
    return "CUDNN_STATUS_BAD_PARAM";
  }
}

} // namespace

State &state() {
  static auto *only = new State(); // work may be done while the process ends
  return *only;
}

size_t version() {
  const char *wanted = std::getenv("DOVETAIL_SIMULATED_CUDNN_VERSION");
  return wanted ? std::strtoul(wanted, nullptr, 10) : 91900;
}

Status Entry::end() {
  if (!isFine())
    lastReason = fmt::format("{}: {}", name, reason);
  return status;
}

Descriptor *Entry::find(Ref ref) {
  const auto found = state().descriptors.find(ref);
  if (need(found != state().descriptors.end(), BadParam,
           "{} is no descriptor; it may have been "
           "destroyed",
           ref))
    return &found->second;
  return nullptr;
}

Descriptor *Entry::final(Ref ref, api::DescriptorKind kind, const char *what) {
  Descriptor *found = find(ref);
  if (!found)
    return nullptr;
  need(found->kind == kind, WrongDescriptorType, "{} is a {} and not a {}", what,
       nameOf(found->kind), nameOf(kind));
  need(found->isFinal, NotFinalized, "{} was not finalised", what);
  return isFine() ? found : nullptr;
}

Handle *Entry::handle(Ref ref) {
  const auto found = state().handles.find(ref);
  if (need(found != state().handles.end(), BadParam, "there is no such handle"))
    return &found->second;
  return nullptr;
}

} // namespace cudnn_double

CUDNN_ENTRY size_t cudnnGetVersion() { return version(); }

CUDNN_ENTRY const char *cudnnGetErrorString(int status) { return textOf(status); }

/// It is forgotten when it is told.
CUDNN_ENTRY void cudnnGetLastErrorString(char *text, size_t bytes) {
  if (!text || bytes == 0)
    return;
  std::strncpy(text, lastReason.c_str(), bytes - 1);
  text[bytes - 1] = 0;
  lastReason.clear();
}

CUDNN_ENTRY int cudnnCreate(Ref *handle) {
  static const char anchor = 0;
  Entry entry("cudnnCreate");
  entry.need(handle, NullPointer, "there is no place for the handle");
  entry.need(simulated::LoadedDriver::beside(&anchor, "../libcuda-sim.so").isLoaded(),
             NotInitialized, "there is no simulated driver in this process");
  if (entry.isFine())
    state().handles[ *handle = state().newRef()] = {};
  return entry.end();
}

CUDNN_ENTRY int cudnnSetStream(Ref handle, Ref stream) {
  Entry entry("cudnnSetStream");
  if (Handle *found = entry.handle(handle))
    found->stream = stream;
  return entry.end();
}

CUDNN_ENTRY int cudnnDestroy(Ref handle) {
  Entry entry("cudnnDestroy");
  if (entry.handle(handle))
    state().handles.erase(handle);
  return entry.end();
}

/// For tests: descriptors and handles that were made and not destroyed.
CUDNN_ENTRY uint64_t dvtSimulatedObjects() {
  const std::lock_guard guard(state().mutex);
  return state().descriptors.size() + state().handles.size() + legacyObjects();
}
