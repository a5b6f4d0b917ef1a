# SPDX-License-Identifier: Apache-2.0
#
# Compiler flags of the whole tree. Everything is position independent in the same way, executables
# too, because a precompiled header is only valid for sources with the same -fPIC; code for
# particular processors is made at run time, so no -march appears here. ccache needs to be told
# about precompiled headers, or it takes no source that includes one.

add_compile_options(-fPIC -fno-semantic-interposition -Wall -Wextra -Wno-unused-parameter)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Both are false alarms in code inlined from LLVM's headers.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>
                      $<$<COMPILE_LANGUAGE:CXX>:-Wno-dangling-pointer>)
endif()
if(DOVETAIL_WERROR)
  add_compile_options(-Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-error=invalid-pch)
  endif()
endif()

set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_C_FLAGS_RELEASE "-O2")
if(NOT DOVETAIL_ASSERTIONS)
  string(APPEND CMAKE_CXX_FLAGS_RELEASE " -DNDEBUG")
  string(APPEND CMAKE_C_FLAGS_RELEASE " -DNDEBUG")
endif()

# Little optimisation keeps these builds short and their reports readable.
if(DOVETAIL_SANITIZE STREQUAL "thread")
  add_compile_options(-O1 -fsanitize=thread -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=thread)
elseif(DOVETAIL_SANITIZE STREQUAL "address")
  add_compile_options(-O1 -fsanitize=address,undefined -fno-omit-frame-pointer -g1)
  # A finding ends the program. LLVM is built without what checks of dynamic types need.
  add_compile_options(-fno-sanitize-recover=all -fno-sanitize=vptr)
  add_link_options(-fsanitize=address,undefined)
elseif(DOVETAIL_SANITIZE)
  message(FATAL_ERROR "DOVETAIL_SANITIZE=${DOVETAIL_SANITIZE}: expected address, thread or nothing")
endif()

if(DOVETAIL_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "DOVETAIL_FUZZ needs clang, this is ${CMAKE_CXX_COMPILER_ID}: use the preset fuzz")
  endif()
  add_compile_options(-O1 -fsanitize=fuzzer-no-link,address,undefined -fno-omit-frame-pointer -g1)
  # As above. Clang also checks the types of called functions, which C's call-backs do not keep to.
  add_compile_options(-fno-sanitize-recover=all -fno-sanitize=vptr,function)
  add_link_options(-fsanitize=address,undefined)
endif()

if(DOVETAIL_CCACHE)
  find_program(CCACHE_PROGRAM ccache)
  if(CCACHE_PROGRAM)
    set(CMAKE_CXX_COMPILER_LAUNCHER
        "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros;${CCACHE_PROGRAM}")
    set(CMAKE_C_COMPILER_LAUNCHER "${CMAKE_CXX_COMPILER_LAUNCHER}")
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
    endif()
  endif()
endif()

# A build tree and an installed tree have the same shape: bin, lib and lib/dovetail.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/..;$ORIGIN/../lib")
