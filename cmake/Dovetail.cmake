# SPDX-License-Identifier: Apache-2.0
#
# How the parts of Dovetail are declared. Every function takes ROOMS (names of rooms to link), LIBS
# (any other targets), DEPENDS (targets that must be built before, TableGen's for instance) and the
# flag MLIR (headers, shared libraries and the precompiled header of LLVM and MLIR).
#
#   dovetail_room(NAME)          static library dovetail_NAME of all *.cpp beside the caller and in
#                                folders below that have no CMakeLists.txt of their own
#   dovetail_provider(NAME)      plug-in lib/dovetail/dovetail_NAME.so; exports only what it marks
#   dovetail_shared(NAME)        shared library lib/libNAME.so, installed; exports what it marks
#   dovetail_tool(NAME)          executable bin/NAME, installed
#   dovetail_test(NAME)          GoogleTest executable test/NAME, each of its tests known to ctest
#   dovetail_benchmark(NAME)     Google Benchmark executable bench/NAME
#   dovetail_flatbuffers(NAME SCHEMA)  generates <schema>_generated.h for room NAME
#   dovetail_add_folders(GLOB..) add_subdirectory for each match that has a CMakeLists.txt
#
# All take SOURCES instead; the others' default is all *.cpp beside the caller.

add_library(dovetail_mlir_pch STATIC EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/cmake/Empty.cpp")
target_include_directories(dovetail_mlir_pch SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS}
                                                            ${MLIR_INCLUDE_DIRS})
if(DOVETAIL_PCH)
  target_precompile_headers(dovetail_mlir_pch PRIVATE "${PROJECT_SOURCE_DIR}/cmake/MlirHeaders.h")
endif()

function(dovetail_add_folders)
  foreach(pattern IN LISTS ARGN)
    file(GLOB folders CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
         "${PROJECT_SOURCE_DIR}/${pattern}")
    foreach(folder IN LISTS folders)
      if(EXISTS "${PROJECT_SOURCE_DIR}/${folder}/CMakeLists.txt")
        add_subdirectory("${PROJECT_SOURCE_DIR}/${folder}" "${PROJECT_BINARY_DIR}/${folder}")
      endif()
    endforeach()
  endforeach()
endfunction()

# Parses the arguments common to all declarations into arg_*; sources default to all of the folder.
macro(dovetail_parse)
  cmake_parse_arguments(PARSE_ARGV 1 arg "MLIR" "EXPORTS;PREFIX" "SOURCES;ROOMS;LIBS;LABELS;DEPENDS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${ARGV0}: unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_SOURCES)
    file(GLOB arg_SOURCES CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  endif()
endmacro()

# Include paths, rooms and libraries of TARGET. `visibility` is PUBLIC for libraries of our own,
# so that a room's users see what its headers include. A room that does not exist yet is an error
# at link time only, when something needs it.
function(dovetail_wire target visibility)
  target_include_directories(${target} ${visibility}
    "${PROJECT_SOURCE_DIR}/src" "${PROJECT_BINARY_DIR}/src"
    "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/include")
  foreach(room IN LISTS arg_ROOMS)
    target_link_libraries(${target} ${visibility} dovetail_${room})
  endforeach()
  if(arg_MLIR)
    target_include_directories(${target} SYSTEM ${visibility} ${LLVM_INCLUDE_DIRS}
                                                              ${MLIR_INCLUDE_DIRS})
    target_link_libraries(${target} ${visibility} MLIR LLVM)
    get_target_property(kind ${target} TYPE)
    if(DOVETAIL_PCH AND NOT kind STREQUAL "MODULE_LIBRARY")
      target_precompile_headers(${target} REUSE_FROM dovetail_mlir_pch)
    endif()
  endif()
  # OpenMP's compiler flag defines a macro, which makes the precompiled header useless for every
  # room above; those that need the flag name it themselves.
  if("OpenMP::OpenMP_CXX" IN_LIST arg_LIBS)
    list(REMOVE_ITEM arg_LIBS OpenMP::OpenMP_CXX)
    target_link_libraries(${target} PRIVATE OpenMP::OpenMP_CXX)
  endif()
  target_link_libraries(${target} ${visibility} ${arg_LIBS})
  if(arg_DEPENDS)
    add_dependencies(${target} ${arg_DEPENDS})
  endif()
endfunction()

function(dovetail_room name)
  dovetail_parse(${ARGV})
  set(folders)
  if(NOT "SOURCES" IN_LIST ARGN)
    file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES true "${CMAKE_CURRENT_SOURCE_DIR}/*")
  endif()
  foreach(folder IN LISTS folders)
    if(IS_DIRECTORY "${folder}" AND NOT EXISTS "${folder}/CMakeLists.txt")
      file(GLOB below CONFIGURE_DEPENDS "${folder}/*.cpp")
      list(APPEND arg_SOURCES ${below})
    endif()
  endforeach()
  if(arg_SOURCES)
    add_library(dovetail_${name} STATIC ${arg_SOURCES})
    dovetail_wire(dovetail_${name} PUBLIC)
  else()
    message(FATAL_ERROR "room ${name}: no *.cpp in ${CMAKE_CURRENT_SOURCE_DIR}")
  endif()
endfunction()

# Hides all symbols but those the sources mark, those of linked archives included.
function(dovetail_hide_symbols target)
  set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_options(${target} PRIVATE -Wl,--no-undefined -Wl,--exclude-libs,ALL)
endfunction()

function(dovetail_provider name)
  dovetail_parse(${ARGV})
  add_library(dovetail_${name}_provider MODULE ${arg_SOURCES})
  dovetail_wire(dovetail_${name}_provider PRIVATE)
  dovetail_hide_symbols(dovetail_${name}_provider)
  target_link_libraries(dovetail_${name}_provider PRIVATE ${CMAKE_DL_LIBS})
  set_target_properties(dovetail_${name}_provider PROPERTIES PREFIX "" SUFFIX ".so"
    OUTPUT_NAME dovetail_${name}
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/dovetail")
  dovetail_install_rpath(dovetail_${name}_provider)
  install(TARGETS dovetail_${name}_provider
          LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/dovetail")
  set_property(GLOBAL APPEND PROPERTY DOVETAIL_PROVIDERS dovetail_${name}_provider)
endfunction()

# SOURCE compares declarations of the provider NAME with a vendor's header, found in FOLDER...; the object is
# built and thrown away, so that the provider is the same with and without the header.
function(dovetail_header_check name source)
  add_library(dovetail_${name}_header_check OBJECT "${source}")
  target_include_directories(dovetail_${name}_header_check PRIVATE
    "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  target_include_directories(dovetail_${name}_header_check SYSTEM PRIVATE ${ARGN})
endfunction()

function(dovetail_shared name)
  dovetail_parse(${ARGV})
  add_library(${name} SHARED ${arg_SOURCES})
  dovetail_wire(${name} PRIVATE)
  if(arg_EXPORTS) # a linker's version script instead of what the sources mark
    target_link_options(${name} PRIVATE -Wl,--no-undefined
                        "-Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/${arg_EXPORTS}")
    set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS
                 "${CMAKE_CURRENT_SOURCE_DIR}/${arg_EXPORTS}")
  else()
    dovetail_hide_symbols(${name})
  endif()
  dovetail_install_rpath(${name})
  install(TARGETS ${name} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endfunction()

function(dovetail_tool name)
  dovetail_parse(${ARGV})
  add_executable(${name} ${arg_SOURCES})
  dovetail_wire(${name} PRIVATE)
  dovetail_install_rpath(${name})
  install(TARGETS ${name} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endfunction()

# Installed files find each other by relative paths; LLVM stays where the distribution has it.
function(dovetail_install_rpath target)
  set_property(TARGET ${target} APPEND PROPERTY INSTALL_RPATH "${LLVM_LIBRARY_DIR}")
endfunction()

# Tests may load every plug-in that exists, so building a test builds the plug-ins, too.
function(dovetail_test name)
  dovetail_parse(${ARGV})
  add_executable(${name} ${arg_SOURCES})
  dovetail_wire(${name} PRIVATE)
  target_link_libraries(${name} PRIVATE GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    DOVETAIL_SOURCE_DIR="${PROJECT_SOURCE_DIR}" DOVETAIL_BINARY_DIR="${PROJECT_BINARY_DIR}"
    DOVETAIL_TEST_DATA="${PROJECT_SOURCE_DIR}/test/data")
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test")
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${arg_PREFIX}"
    PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 300
    ENVIRONMENT "DOVETAIL_TEST_DATA=${PROJECT_SOURCE_DIR}/test/data")
endfunction()

function(dovetail_benchmark name)
  dovetail_parse(${ARGV})
  add_executable(${name} ${arg_SOURCES})
  dovetail_wire(${name} PRIVATE)
  target_link_libraries(${name} PRIVATE benchmark::benchmark)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
endfunction()

# Call it before dovetail_room(NAME DEPENDS dovetail_NAME_schema LIBS dovetail::flatbuffers).
function(dovetail_flatbuffers name schema)
  get_filename_component(stem "${schema}" NAME_WE)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}")
  add_custom_command(OUTPUT "${folder}/${stem}_generated.h"
    COMMAND "${FLATC_PROGRAM}" --cpp --scoped-enums -o "${folder}"
            "${CMAKE_CURRENT_SOURCE_DIR}/${schema}"
    DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${schema}"
    COMMENT "Compiling FlatBuffers schema ${schema}")
  add_custom_target(dovetail_${name}_schema DEPENDS "${folder}/${stem}_generated.h")
endfunction()

include(GoogleTest)
