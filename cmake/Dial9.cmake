# The few helpers that every folder's CMakeLists uses: one library a folder, one test binary a folder.
# SPDX-License-Identifier: Apache-2.0
find_package(Threads REQUIRED)

# Everything that is compiled by this project, but nothing that a user's target inherits.
add_library(dial9_build INTERFACE)
target_compile_features(dial9_build INTERFACE cxx_std_23)
target_compile_options(dial9_build INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
  -Wnon-virtual-dtor -Wold-style-cast -Wcast-align -Woverloaded-virtual
  $<$<BOOL:${PROJECT_IS_TOP_LEVEL}>:-Werror>
  -fno-omit-frame-pointer)
target_include_directories(dial9_build INTERFACE "${CMAKE_CURRENT_SOURCE_DIR}/src"
  "${CMAKE_CURRENT_SOURCE_DIR}/include")

if(DIAL9_SANITIZE STREQUAL "address")
  set(dial9_sanitize -fsanitize=address,undefined -fno-sanitize-recover=all)
  set(dial9_sanitized DIAL9_SANITIZED_ADDRESS=1)
elseif(DIAL9_SANITIZE STREQUAL "thread")
  set(dial9_sanitize -fsanitize=thread)
  set(dial9_sanitized DIAL9_SANITIZED_THREAD=1)  # for tests: clang 19 defines no macro of its own
  # g++ can't show TSan the bare fences in Asio, and warns about each; the locks around them it sees.
  add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-tsan>)
elseif(DIAL9_SANITIZE)
  message(FATAL_ERROR "DIAL9_SANITIZE='${DIAL9_SANITIZE}': use 'address', 'thread' or nothing")
endif()
if(dial9_sanitize)
  add_compile_options(${dial9_sanitize})
  add_link_options(${dial9_sanitize})
  add_compile_definitions(DIAL9_SANITIZED=1 ${dial9_sanitized})
endif()

if(CMAKE_CROSSCOMPILING_EMULATOR)
  add_compile_definitions(DIAL9_EMULATED=1)  # for tests
endif()

# g++'s sanitizers define libc's functions in libraries, where our interposer finds them as "the next";
# clang's lie in the program itself, where ours would replace them.
if(DIAL9_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(dial9_has_interposer OFF)
else()
  set(dial9_has_interposer ON)
endif()

find_program(DIAL9_CCACHE ccache)
if(DIAL9_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${DIAL9_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${DIAL9_CCACHE}")
endif()

# dial9_library(NAME SOURCES ... [DEPS ...] [PRIVATE_DEPS ...] [ENGINE | BARE])
# ENGINE: throws nothing itself (tools/tidy) and has no RTTI, but cleans up where there is no memory.
# BARE: doesn't clean up either: what a host links of it (docs/adr/0008-clean-up-without-memory.md).
function(dial9_library name)
  cmake_parse_arguments(arg "ENGINE;BARE" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC ${arg_DEPS} PRIVATE $<BUILD_INTERFACE:dial9_build> ${arg_PRIVATE_DEPS})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  if(arg_ENGINE OR arg_BARE)
    target_compile_options(${name} PRIVATE -fno-rtti $<$<BOOL:${arg_BARE}>:-fno-exceptions>)
  endif()
endfunction()

# Debian has GoogleTest built for the host, and its source for everybody else.
function(dial9_find_gtest)
  if(NOT CMAKE_CROSSCOMPILING)
    find_package(GTest REQUIRED GLOBAL)
  elseif(NOT TARGET gtest)
    set(INSTALL_GTEST OFF)
    set(BUILD_GMOCK OFF)
    add_subdirectory(/usr/src/googletest "${PROJECT_BINARY_DIR}/googletest" EXCLUDE_FROM_ALL)
  endif()
endfunction()

# dial9_test(FOLDER SOURCES ... [DEPS ...] [LABELS ...] [READS ...] [SERIAL]): one GoogleTest binary,
# each test a ctest. READS: sources that read files of the checkout; they alone know its path, since
# the compiler cache can't share between clones what carries one.
function(dial9_test folder)
  if(NOT DIAL9_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "SERIAL" "TIMEOUT" "SOURCES;DEPS;LABELS;READS" ${ARGN})
  dial9_find_gtest()
  include(GoogleTest)
  set(name "${folder}_test")
  add_executable(${name} ${arg_SOURCES} ${arg_READS})
  set_source_files_properties(${arg_READS} PROPERTIES
    COMPILE_DEFINITIONS "DIAL9_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"")
  target_link_libraries(${name} PRIVATE dial9_build ${arg_DEPS} GTest::gtest GTest::gtest_main Threads::Threads)
  # What is tested is optimised as shipped; the tests themselves only cost the build 2 s a file more.
  target_compile_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1> $<$<CONFIG:RelWithDebInfo>:-g1>)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(DIAL9_SANITIZE)  # ThreadSanitizer slows some down tenfold
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 5")
  endif()
  set(properties TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
  if(arg_SERIAL AND NOT DIAL9_SANITIZE)  # there no test judges by time
    list(APPEND properties RUN_SERIAL ON)
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${folder}." PROPERTIES ${properties})
endfunction()
