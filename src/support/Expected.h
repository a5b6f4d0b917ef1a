// SPDX-License-Identifier: Apache-2.0
//
// A value or an error with a message fit for the user, and whose fault it is. Used at every joint
// instead of exceptions. A message says which node or option, what was found, what is supported and
// what to try.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

#include <fmt/core.h>

namespace dovetail {

/// Whose fault an error is; becomes the exit code of the command line (2 bad input, 3 cannot run
/// here, 4 our bug).
enum class ErrorKind { BadInput = 2, Unavailable = 3, Internal = 4, Cancelled = 5 };

struct Error {
  ErrorKind kind = ErrorKind::Internal;
  std::string message;
};

template <typename... Args> Error badInput(fmt::format_string<Args...> format, Args &&...args) {
  return {ErrorKind::BadInput, fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args> Error unavailable(fmt::format_string<Args...> format, Args &&...args) {
  return {ErrorKind::Unavailable, fmt::format(format, std::forward<Args>(args)...)};
}
template <typename... Args>
Error internalError(fmt::format_string<Args...> format, Args &&...args) {
  return {ErrorKind::Internal, fmt::format(format, std::forward<Args>(args)...)};
}

/// Holds a T or an Error. Converts to true when it holds a T.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : content(std::move(value)) {}
  Expected(Error error) : content(std::move(error)) {}
  explicit operator bool() const { return std::holds_alternative<T>(content); }
  T &operator*() {
    assert(*this);
    return std::get<T>(content);
  }
  const T &operator*() const {
    assert(*this);
    return std::get<T>(content);
  }
  T *operator->() { return &**this; }
  const T *operator->() const { return &**this; }
  const Error &error() const {
    assert(!*this);
    return std::get<Error>(content);
  }
  Error takeError() { return std::move(std::get<Error>(content)); }

private:
  std::variant<T, Error> content;
};

/// Success or an Error. Converts to true on success.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Error error) : failed(true), failure(std::move(error)) {}
  explicit operator bool() const { return !failed; }
  const Error &error() const {
    assert(failed);
    return failure;
  }
  Error takeError() { return std::move(failure); }
  static Status success() { return {}; }

private:
  bool failed = false;
  Error failure;
};

} // namespace dovetail
