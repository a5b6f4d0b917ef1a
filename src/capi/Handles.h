// SPDX-License-Identifier: Apache-2.0
//
// What is behind the handles of the C API, and how errors and exceptions become codes.
#pragma once

#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "dovetail/dovetail.h"
#include "runtime/Session.h"

/// One input or output as dvt_port shows it.
struct PortText {
  std::vector<int64_t> extents;
  std::vector<std::string> texts;
  std::vector<const char *> pointers;
};

struct dvt_model {
  std::shared_ptr<dovetail::Model> model;
  std::vector<PortText> inputs, outputs;
  std::string target;
  std::vector<dovetail::StepState> steps; ///< when it was loaded
  mutable std::mutex mutex;
  /// What sessions changed since, by step and text: strings that were handed out stay.
  mutable std::map<std::pair<uint32_t, std::string>, dovetail::StepState> changed;
};

struct dvt_session {
  std::unique_ptr<dovetail::Session> session;
  std::vector<double> micros;
};

namespace dovetail {

void setError(dvt_error *error, const std::string &message);
dvt_code codeOf(const Error &error);

/// Runs `body`, which returns a Status; nothing is thrown through the border.
template <typename Body> dvt_code atBorder(dvt_error *error, Body body) {
  try {
    Status status = body();
    if (status)
      return DVT_OK;
    setError(error, status.error().message);
    return codeOf(status.error());
  } catch (const std::bad_alloc &) {
    setError(error, "out of memory");
    return DVT_OUT_OF_MEMORY;
  } catch (const std::exception &exception) {
    setError(error, exception.what());
    return DVT_FAILED;
  }
}

/// Copies what both sides of the border know of a struct that starts with its size.
template <typename T> T widen(const T *from) {
  T out{};
  if (from)
    std::memcpy(static_cast<void *>(&out), from, std::min<size_t>(from->struct_size, sizeof(T)));
  return out;
}
template <typename T> void narrow(const T &from, T *to) {
  uint32_t size = to->struct_size;
  std::memcpy(static_cast<void *>(to), &from, std::min<size_t>(size, sizeof(T)));
  to->struct_size = size;
}

} // namespace dovetail
