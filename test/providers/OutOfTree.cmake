# SPDX-License-Identifier: Apache-2.0
#
# Builds examples/provider as somebody without this tree would, and judges it: installs the headers from
# BUILD, configures EXAMPLE against them alone, builds it, and runs CONFORMANCE with REFERENCE on the
# plug-in. At least as many problems must be served as SERVED says.
file(REMOVE_RECURSE "${WORK}")
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGV}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run("${CMAKE_COMMAND}" --install "${BUILD}" --component dovetail_headers --prefix "${WORK}/installed")
run("${CMAKE_COMMAND}" -G Ninja -S "${EXAMPLE}" -B "${WORK}/build"
    "-DCMAKE_PREFIX_PATH=${WORK}/installed"
    "-DCMAKE_C_COMPILER=${C_COMPILER}" "-DCMAKE_BUILD_TYPE=Release")
run("${CMAKE_COMMAND}" --build "${WORK}/build")
run("${CONFORMANCE}" "${WORK}/build/dovetail_softplus.so" --reference "${REFERENCE}"
    --problems "${EXAMPLE}/problems.txt")
# A bracket in an element of a list would hide the separators after it.
string(REPLACE "]" "" plain "${output}")
string(REGEX MATCHALL "OK +RightResults" served "${plain}")
list(LENGTH served count)
if(count LESS SERVED)
  message(FATAL_ERROR "only ${count} of ${SERVED} problems were served\n${output}")
endif()
message(STATUS "${count} problems served")
