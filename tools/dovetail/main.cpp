// SPDX-License-Identifier: Apache-2.0
//
// The command line: subcommands and their exit codes.
#include <cstdio>
#include <exception>
#include <new>

#include "CommandLine.h"

int main(int argc, char **argv) {
  CLI::App app("Dovetail: compiles ONNX models to the cheapest mix of library kernels and its own, "
               "and runs them.");
  app.require_subcommand(1);
  app.set_version_flag("--version", DOVETAIL_VERSION);
  int exitCode = 0;
  dovetail::cli::addModelCommands(app, exitCode);
  dovetail::cli::addProblem(app, exitCode);
  dovetail::cli::addDoctor(app, exitCode);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    int code = app.exit(error);
    return code == 0 ? 0 : 2;
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "dovetail: error: out of memory\n");
    return 3;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "dovetail: error: %s\n", error.what());
    return 4;
  }
  return exitCode;
}
