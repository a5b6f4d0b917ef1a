// SPDX-License-Identifier: Apache-2.0
//
// The compiling half of the native provider: finds the schedule a candidate stands for, emits it
// and gives the kernel's bytes.
#include "codegen/Families.h"
#include "providers/native/CompilerDoor.h"

using namespace dovetail;

extern "C" DVT_EXPORT dvt_code dvt_native_compile(const dvt_target *target,
                                                  const dvt_problem *problem,
                                                  const dvt_candidate *candidate,
                                                  const dvt_bytes_sink *sink, dvt_error *error) {
  auto machine = codegen::Machine::of(*target);
  if (!machine)
    return native::report(error, DVT_UNSUPPORTED, machine.error().message);
  codegen::ProblemReader reader(*problem);
  auto schedule = native::findSchedule(reader, *machine, *candidate);
  if (!schedule)
    return native::report(error, DVT_UNSUPPORTED,
                          "the candidate is not one that native proposes for this problem");
  auto bytes = codegen::compileKernel(reader, *machine, *schedule);
  if (!bytes)
    return native::report(
        error, bytes.error().kind == ErrorKind::Unavailable ? DVT_UNAVAILABLE : DVT_FAILED,
        bytes.error().message);
  sink->bytes(sink->context, bytes->data(), bytes->size());
  return DVT_OK;
}
