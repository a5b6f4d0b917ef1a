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

# Vendor headers, all optional.
if(ONEDNN3_INCLUDE_DIR AND NOT EXISTS "${ONEDNN3_INCLUDE_DIR}")
  unset(ONEDNN3_INCLUDE_DIR CACHE)
endif()
find_path(ONEDNN3_INCLUDE_DIR oneapi/dnnl/dnnl.h
          PATHS "${DOVETAIL_DEPS_DIR}/deps/onednn3/include" NO_DEFAULT_PATH)
# The generation before, which Debian carries: found by its version, as both have the same file names.
if(ONEDNN2_INCLUDE_DIR AND NOT EXISTS "${ONEDNN2_INCLUDE_DIR}")
  unset(ONEDNN2_INCLUDE_DIR CACHE)
endif()
find_path(ONEDNN2_INCLUDE_DIR oneapi/dnnl/dnnl.h)
if(ONEDNN2_INCLUDE_DIR)
  file(STRINGS "${ONEDNN2_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" onednn2_version
       REGEX "define DNNL_VERSION_MAJOR 2")
  if(NOT onednn2_version)
    set(ONEDNN2_INCLUDE_DIR "ONEDNN2_INCLUDE_DIR-NOTFOUND" CACHE PATH "Headers of oneDNN 2" FORCE)
  endif()
endif()
# Only to compare the cudnn provider's own declarations with; recent ones hold all it uses.
if(CUDNN_INCLUDE_DIR AND NOT EXISTS "${CUDNN_INCLUDE_DIR}")
  unset(CUDNN_INCLUDE_DIR CACHE)
endif()
find_path(CUDNN_INCLUDE_DIR cudnn_graph.h
          PATHS "${DOVETAIL_DEPS_DIR}/deps/cudnn/include" /usr/local/cuda/include)
find_path(CUDART_INCLUDE_DIR cuda_runtime_api.h PATHS /usr/local/cuda/include)
if(CUDNN_INCLUDE_DIR)
  file(STRINGS "${CUDNN_INCLUDE_DIR}/cudnn_graph.h" cudnn_attention
       REGEX "CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR")
  if(NOT cudnn_attention OR NOT CUDART_INCLUDE_DIR)
    set(CUDNN_INCLUDE_DIR "CUDNN_INCLUDE_DIR-NOTFOUND" CACHE PATH "Headers of cuDNN" FORCE)
  endif()
endif()
# Likewise, for the cublaslt provider's.
if(CUBLASLT_INCLUDE_DIR AND NOT EXISTS "${CUBLASLT_INCLUDE_DIR}")
  unset(CUBLASLT_INCLUDE_DIR CACHE)
endif()
find_path(CUBLASLT_INCLUDE_DIR cublasLt.h PATHS /usr/local/cuda/include)
if(CUBLASLT_INCLUDE_DIR)
  file(STRINGS "${CUBLASLT_INCLUDE_DIR}/cublasLt.h" cublaslt_gelu REGEX "CUBLASLT_EPILOGUE_GELU_BIAS")
  if(NOT cublaslt_gelu OR NOT CUDART_INCLUDE_DIR)
    set(CUBLASLT_INCLUDE_DIR "CUBLASLT_INCLUDE_DIR-NOTFOUND" CACHE PATH "Headers of cuBLASLt" FORCE)
  endif()
endif()
# Likewise for the miopen provider; MIOpen's header wants HIP's beside it.
find_path(MIOPEN_INCLUDE_DIR miopen/miopen.h PATHS /opt/rocm/include)
if(MIOPEN_INCLUDE_DIR AND NOT EXISTS "${MIOPEN_INCLUDE_DIR}/hip/hip_runtime_api.h")
  set(MIOPEN_INCLUDE_DIR "MIOPEN_INCLUDE_DIR-NOTFOUND" CACHE PATH "Headers of MIOpen" FORCE)
endif()
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
