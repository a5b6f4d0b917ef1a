// SPDX-License-Identifier: Apache-2.0
//
// What the environment asks of simulated drivers and doubles of libraries, for tests.
#pragma once

#include <cstdlib>

namespace dovetail::test {

/// Sets a variable of the environment while it lives.
class Surroundings {
public:
  Surroundings(const char *name, const char *value) : name(name) { ::setenv(name, value, 1); }
  ~Surroundings() { ::unsetenv(name); }
  Surroundings(const Surroundings &) = delete;

private:
  const char *name;
};

} // namespace dovetail::test
