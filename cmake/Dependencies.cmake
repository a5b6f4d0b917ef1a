# SPDX-License-Identifier: Apache-2.0
#
# Finds what Dovetail is built from. The distribution has most of it; DOVETAIL_DEPS_DIR, filled by
# `scripts/setup`, holds the rest: `venv` (HiGHS comes as a Python package), `deps/onnx` (static
# libraries), `deps/onednn3`, `deps/mkl`, `deps/openblas` and `deps/xsmm`. Vendor libraries are
# never linked: a provider needs at most a header folder, which may be missing.
# After this file: targets onnx, dovetail::highs, dovetail::xxhash, the usual imported targets, and
# DOVETAIL_VENDOR_DIRS, the folders in which the driver looks for vendor libraries first.

if(EXISTS "${PROJECT_BINARY_DIR}/venv")
  set(default_deps_dir "${PROJECT_BINARY_DIR}")
else()
  set(default_deps_dir "${PROJECT_SOURCE_DIR}/build")
endif()
set(DOVETAIL_DEPS_DIR "${default_deps_dir}" CACHE PATH "Folder that scripts/setup filled")

# LLVM and MLIR, linked shared.
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
find_package(LLD CONFIG QUIET HINTS "${LLVM_LIBRARY_DIR}/cmake/lld")
# TableGen files see our sources and MLIR's own definitions.
set(MLIR_TABLEGEN_FLAGS "-I${PROJECT_SOURCE_DIR}/src" "-I${MLIR_INCLUDE_DIRS}")

find_package(Threads REQUIRED)
if(DOVETAIL_FUZZ)
  # Clang's own OpenMP is a package apart, which excludes that of other versions. The readers need no
  # team of threads: with g++'s header and library clang leaves the pragmas out.
  execute_process(COMMAND g++ -print-file-name=include OUTPUT_VARIABLE gcc_include
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND g++ -print-file-name=libgomp.so OUTPUT_VARIABLE gomp
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(OpenMP_CXX_FLAGS "-fopenmp=libgomp -idirafter ${gcc_include} -Wno-ignored-attributes" CACHE STRING "")
  set(OpenMP_CXX_LIB_NAMES gomp CACHE STRING "")
  set(OpenMP_gomp_LIBRARY "${gomp}" CACHE FILEPATH "")
endif()
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(Protobuf REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(CLI11 REQUIRED CONFIG)
find_package(fmt REQUIRED CONFIG)
find_package(nlohmann_json REQUIRED CONFIG)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED CONFIG)
set(Python3_EXECUTABLE "${DOVETAIL_DEPS_DIR}/venv/bin/python")

function(dovetail_import name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADER;LIBRARY" "")
  find_path(${name}_INCLUDE_DIR "${arg_HEADER}" REQUIRED)
  add_library(dovetail::${name} INTERFACE IMPORTED GLOBAL)
  target_include_directories(dovetail::${name} SYSTEM INTERFACE "${${name}_INCLUDE_DIR}")
  if(arg_LIBRARY)
    find_library(${name}_LIBRARY "${arg_LIBRARY}" REQUIRED)
    target_link_libraries(dovetail::${name} INTERFACE "${${name}_LIBRARY}")
  endif()
endfunction()

dovetail_import(xxhash HEADER xxhash.h LIBRARY xxhash)
dovetail_import(flatbuffers HEADER flatbuffers/flatbuffers.h LIBRARY flatbuffers)
find_program(FLATC_PROGRAM flatc REQUIRED)

# ONNX: static libraries, protobuf shared.
find_package(ONNX QUIET CONFIG PATHS "${DOVETAIL_DEPS_DIR}/deps/onnx" NO_DEFAULT_PATH)
if(NOT ONNX_FOUND)
  message(FATAL_ERROR "No ONNX libraries in ${DOVETAIL_DEPS_DIR}/deps/onnx: run scripts/setup, "
                      "or name the folder it filled with -DDOVETAIL_DEPS_DIR=...")
endif()
add_library(onnx INTERFACE)
target_link_libraries(onnx INTERFACE ONNX::onnx protobuf::libprotobuf)

# HiGHS: its shared library is copied beside our own, so that a build tree can be moved or
# installed without the virtual environment. It is compiled with the old string ABI: use its C
# interface ("interfaces/highs_c_api.h") only.
file(GLOB highs_dir "${DOVETAIL_DEPS_DIR}/venv/lib/python3*/site-packages/highsbox/highs_dist")
if(NOT highs_dir)
  message(FATAL_ERROR "No highsbox package in ${DOVETAIL_DEPS_DIR}/venv: run scripts/setup")
endif()
foreach(library highs openblas)
  if(EXISTS "${highs_dir}/lib/lib${library}.so")
    file(COPY "${highs_dir}/lib/lib${library}.so" DESTINATION "${PROJECT_BINARY_DIR}/lib")
    install(FILES "${PROJECT_BINARY_DIR}/lib/lib${library}.so" TYPE LIB)
  endif()
endforeach()
add_library(dovetail::highs SHARED IMPORTED GLOBAL)
set_target_properties(dovetail::highs PROPERTIES
  IMPORTED_LOCATION "${PROJECT_BINARY_DIR}/lib/libhighs.so"
  IMPORTED_SONAME libhighs.so
  INTERFACE_INCLUDE_DIRECTORIES "${highs_dir}/include/highs;${highs_dir}/include")

# Vendor headers, all optional. oneDNN's providers are written against its own; with
# DOVETAIL_ONEDNN_HEADERS=OFF none is looked for, and they are not built. The other libraries' are not needed.
option(DOVETAIL_ONEDNN_HEADERS "Build oneDNN's providers where its headers are found" ON)
foreach(generation 3 2)
  set(folder "${ONEDNN${generation}_INCLUDE_DIR}")
  if(NOT DOVETAIL_ONEDNN_HEADERS OR (folder AND NOT EXISTS "${folder}"))
    unset(ONEDNN${generation}_INCLUDE_DIR CACHE)
  endif()
endforeach()
if(DOVETAIL_ONEDNN_HEADERS)
  find_path(ONEDNN3_INCLUDE_DIR oneapi/dnnl/dnnl.h
            PATHS "${DOVETAIL_DEPS_DIR}/deps/onednn3/include" NO_DEFAULT_PATH)
  # The generation before, which Debian carries: found by its version, as both have the same file names.
  find_path(ONEDNN2_INCLUDE_DIR oneapi/dnnl/dnnl.h)
endif()
if(ONEDNN2_INCLUDE_DIR)
  file(STRINGS "${ONEDNN2_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" onednn2_version
       REGEX "define DNNL_VERSION_MAJOR 2")
  if(NOT onednn2_version)
    set(ONEDNN2_INCLUDE_DIR "ONEDNN2_INCLUDE_DIR-NOTFOUND" CACHE PATH "Headers of oneDNN 2" FORCE)
  endif()
endif()
# Headers of devices' libraries: only to compare declarations of our own with them, in objects that nothing
# is linked with (dovetail_header_check). With DOVETAIL_DEVICE_HEADERS=OFF none is looked for.
option(DOVETAIL_DEVICE_HEADERS "Compare declarations with the headers of CUDA, ROCm and Vulkan where they are found" ON)

# Sets NAME_INCLUDE_DIR to the folder that has HEADER, if it is one recent enough to have TEXT in it (or no
# TEXT is given), and BESIDE is there, too. A folder that is gone since it was found is forgotten.
function(dovetail_device_header name header)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "TEXT;BESIDE" "PATHS")
  set(folder "${${name}_INCLUDE_DIR}")
  if(NOT DOVETAIL_DEVICE_HEADERS OR (folder AND NOT EXISTS "${folder}/${header}"))
    unset(${name}_INCLUDE_DIR CACHE)
  endif()
  if(NOT DOVETAIL_DEVICE_HEADERS)
    return()
  endif()
  find_path(${name}_INCLUDE_DIR ${header} PATHS ${arg_PATHS})
  set(folder "${${name}_INCLUDE_DIR}")
  if(NOT folder)
    return()
  endif()
  set(found found)
  if(arg_TEXT)
    file(STRINGS "${folder}/${header}" found REGEX "${arg_TEXT}")
  endif()
  if(NOT found OR (arg_BESIDE AND NOT EXISTS "${folder}/${arg_BESIDE}"))
    set(${name}_INCLUDE_DIR "${name}_INCLUDE_DIR-NOTFOUND" CACHE PATH "Folder of ${header}" FORCE)
  endif()
endfunction()

dovetail_device_header(CUDART cuda_runtime_api.h PATHS /usr/local/cuda/include)
if(CUDART_INCLUDE_DIR)
  dovetail_device_header(CUDNN cudnn_graph.h TEXT CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR
                         PATHS "${DOVETAIL_DEPS_DIR}/deps/cudnn/include" /usr/local/cuda/include)
  dovetail_device_header(CUBLASLT cublasLt.h TEXT CUBLASLT_EPILOGUE_GELU_BIAS
                         PATHS /usr/local/cuda/include)
else()
  unset(CUDNN_INCLUDE_DIR CACHE)
  unset(CUBLASLT_INCLUDE_DIR CACHE)
endif()
# MIOpen's header wants HIP's beside it.
dovetail_device_header(MIOPEN miopen/miopen.h BESIDE hip/hip_runtime_api.h PATHS /opt/rocm/include)
dovetail_device_header(VULKAN vulkan/vulkan_core.h TEXT VkPhysicalDeviceVulkan12Features)
# Empty: those that setup fills, whichever these are in this version of the sources.
set(DOVETAIL_VENDOR_FOLDERS "" CACHE STRING
    "Colon-separated folders in which the driver looks for vendor libraries first")
set(DOVETAIL_VENDOR_DIRS "${DOVETAIL_VENDOR_FOLDERS}")
if(NOT DOVETAIL_VENDOR_DIRS)
  foreach(vendor IN ITEMS onednn3 mkl openblas xsmm cudnn)
    string(APPEND DOVETAIL_VENDOR_DIRS ":${DOVETAIL_DEPS_DIR}/deps/${vendor}/lib")
  endforeach()
  string(SUBSTRING "${DOVETAIL_VENDOR_DIRS}" 1 -1 DOVETAIL_VENDOR_DIRS)
endif()
