# Compiler flags, output directories, sanitizers and the libraries we take from the distribution.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()
# Asserts state invariants and stay on in every build: NDEBUG is never defined.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1")

set(LANEWAY_SANITIZE "" CACHE STRING "address (with undefined), thread, or empty")
set_property(CACHE LANEWAY_SANITIZE PROPERTY STRINGS "" address thread)
option(LANEWAY_FUZZ "build the fuzzers (needs clang)" OFF)
option(LANEWAY_UNITY "compile several files of a target as one: a whole build takes half the time (scripts/build)" OFF)
option(LANEWAY_TEST_HOOKS "LANEWAY_TEST_STOP_AT and the other hooks that tests use" ON)

add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)
include_directories(${CMAKE_SOURCE_DIR})
if(LANEWAY_TEST_HOOKS)
  add_compile_definitions(LANEWAY_TEST_HOOKS=1)
endif()

# Two thirds of a file's compile time go to headers and templates that the next file needs too. Files include what they
# use nevertheless, for builds of one file each.
if(LANEWAY_UNITY)
  set(CMAKE_UNITY_BUILD ON)
endif()

# laneway_alone(files...): these have names of their own that other files of their target have too.
function(laneway_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# What sanitizers instrument takes long to compile. With less optimisation it takes less, and so do compiling and testing
# together: with none of it under ASan, with some under TSan and for the fuzzers.
if(LANEWAY_SANITIZE STREQUAL "address")
  set(CMAKE_CXX_FLAGS_RELEASE "-O0 -g1")
elseif(LANEWAY_SANITIZE OR LANEWAY_FUZZ)
  set(CMAKE_CXX_FLAGS_RELEASE "-O1 -g1")
endif()
# An enumeration of a vendor's C interface holds whatever int its caller passed: no "enum" check.
if(LANEWAY_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=enum -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(LANEWAY_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(NOT LANEWAY_SANITIZE STREQUAL "")
  message(FATAL_ERROR "LANEWAY_SANITIZE is '${LANEWAY_SANITIZE}': use address, thread, or nothing")
endif()
if(LANEWAY_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=enum)
  add_link_options(-fsanitize=address,undefined)
endif()

# The build tree has the layout of an installation: bin/ and lib/laneway/{runtime,shim,softgpu}.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(LANEWAY_LIB_DIR ${CMAKE_BINARY_DIR}/lib/laneway)

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(GTest REQUIRED)

# The sanitizer builds' tests join the release build's ctest run (scripts/test --all) under names of their own.
# ThreadSanitizer lets a process with threads wait for a second at its end, for races that would come late: of 1,200
# processes of tests each waits 50 ms.
set(LANEWAY_TEST_PREFIX "")
set(_test_environment "")
if(LANEWAY_SANITIZE)
  string(SUBSTRING ${LANEWAY_SANITIZE} 0 1 LANEWAY_TEST_PREFIX)
  string(APPEND LANEWAY_TEST_PREFIX "san.")
endif()
if(LANEWAY_SANITIZE STREQUAL "thread")
  set(_test_environment ENVIRONMENT TSAN_OPTIONS=atexit_sleep_ms=50)
endif()
add_custom_target(unit_tests)
add_custom_target(fuzzers)

# laneway_test(name SOURCES... LIBS... [SERIAL tests...]): one GoogleTest binary, one ctest entry per TEST, labelled
# "unit". All of them are built by the target unit_tests. SERIAL: these measure times, so nothing else may run.
function(laneway_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;SERIAL" ${ARGN})
  if(LANEWAY_FUZZ)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gtest GTest::gtest_main Threads::Threads)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_dependencies(unit_tests ${name})
  # The list of tests is asked for when ctest begins, maybe with a busy machine and a cold disk: 5 s may be too short.
  set(_discovery TEST_PREFIX "${LANEWAY_TEST_PREFIX}" DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120)
  set(_properties LABELS unit TIMEOUT 300 ${_test_environment})
  if(NOT ARG_SERIAL)
    gtest_discover_tests(${name} ${_discovery} PROPERTIES ${_properties})
    return()
  endif()
  list(JOIN ARG_SERIAL ":" _serial)
  gtest_discover_tests(${name} ${_discovery} TEST_FILTER "-${_serial}" PROPERTIES ${_properties})
  gtest_discover_tests(${name} ${_discovery} TEST_FILTER "${_serial}" TEST_LIST ${name}_serial
                       PROPERTIES ${_properties} RUN_SERIAL ON)
endfunction()

# laneway_fuzzer(name SOURCES... LIBS... CORPUS directory): a libFuzzer target with its committed corpus. With
# LANEWAY_FUZZ it runs for 60 s, labelled "fuzz"; otherwise the corpus alone is replayed, as a unit test. All fuzzers
# are built by the target fuzzers.
function(laneway_fuzzer name)
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;LIBS" ${ARGN})
  get_filename_component(_corpus ${ARG_CORPUS} ABSOLUTE)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} Threads::Threads)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(LANEWAY_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set(_found ${CMAKE_CURRENT_BINARY_DIR}/${name}-found)  # what the run adds; the committed corpus stays as it is
    file(MAKE_DIRECTORY ${_found})
    add_dependencies(fuzzers ${name})
    add_test(NAME fuzz.${name} COMMAND ${name} -max_total_time=60 -timeout=30 -rss_limit_mb=2048 -print_final_stats=1
                                       -artifact_prefix=${_found}/ ${_found} ${_corpus})
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 300 COST 100)
  else()
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/fuzz/replay_main.cc)
    add_dependencies(unit_tests ${name})
    add_test(NAME ${LANEWAY_TEST_PREFIX}corpus.${name} COMMAND ${name} ${_corpus})
    set_tests_properties(${LANEWAY_TEST_PREFIX}corpus.${name} PROPERTIES LABELS unit TIMEOUT 300)
  endif()
endfunction()
