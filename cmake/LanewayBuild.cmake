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
option(LANEWAY_FUZZ "build the fuzzers too (needs clang, and LANEWAY_SANITIZE=address)" OFF)
option(LANEWAY_UNITY "several files at a time, common headers once: a whole build takes half the time (scripts/build)" OFF)
option(LANEWAY_UNIT_TESTS "all unit tests; else those alone that sanitizer builds lack (scripts/test --all)" ON)
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
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
endif()

# laneway_alone(files...): these have names of their own that other files of their target have too.
function(laneway_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# What sanitizers instrument takes long to compile. With less optimisation it takes less, and so do compiling and testing
# together: with none of it under ASan, with some under TSan.
if(LANEWAY_SANITIZE STREQUAL "address")
  set(CMAKE_CXX_FLAGS_RELEASE "-O0 -g1")
elseif(LANEWAY_SANITIZE)
  set(CMAKE_CXX_FLAGS_RELEASE "-O1 -g1")
endif()
# Clang says it by __has_feature() alone.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND LANEWAY_SANITIZE)
  string(TOUPPER __sanitize_${LANEWAY_SANITIZE}__ _sanitized)
  add_compile_definitions(${_sanitized}=1)
endif()
# An enumeration of a vendor's C interface holds whatever int its caller passed: no "enum" check. A null pointer ends the
# program anyway, and checks of that and of types at each access take a quarter of the time to compile.
if(LANEWAY_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=enum,null,object-size,vptr -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(LANEWAY_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(NOT LANEWAY_SANITIZE STREQUAL "")
  message(FATAL_ERROR "LANEWAY_SANITIZE is '${LANEWAY_SANITIZE}': use address, thread, or nothing")
endif()
if(LANEWAY_FUZZ)
  if(NOT LANEWAY_SANITIZE STREQUAL "address" OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "LANEWAY_FUZZ needs clang and -DLANEWAY_SANITIZE=address: use scripts/build --preset asan")
  endif()
  # What libFuzzer asks for, without the depth of the stack: its counter is libFuzzer's alone, and tests have none.
  set(_coverage inline-8bit-counters,indirect-calls,trace-cmp,pc-table)
  add_compile_options(-fsanitize-coverage=${_coverage})
endif()

# Clang alone knows the annotations of base/mutex.h (scripts/locks reads what no such build compiles).
if(LANEWAY_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  foreach(_warning thread-safety thread-safety-beta)
    add_compile_options(-W${_warning} -Werror=${_warning})
  endforeach()
endif()

# What sanitizers instrument is large, and lld links it three times as fast.
find_program(LANEWAY_LLD ld.lld)
if(LANEWAY_SANITIZE AND LANEWAY_LLD AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_link_options(-fuse-ld=lld)
endif()

# A library leaves no symbol undefined; but a sanitizer's own are the program's.
set(LANEWAY_ALL_DEFINED -Wl,-z,defs)
if(LANEWAY_SANITIZE)
  set(LANEWAY_ALL_DEFINED "")
endif()

# A test's own files take half as long to compile without what finds faults in the code that they test, and without
# optimisation that they hardly need.
if(LANEWAY_SANITIZE STREQUAL "address")
  set(LANEWAY_TEST_OPTIONS -fno-sanitize=alignment)
  if(LANEWAY_FUZZ)
    list(APPEND LANEWAY_TEST_OPTIONS -fno-sanitize-coverage=${_coverage})
  endif()
elseif(NOT LANEWAY_SANITIZE)
  set(LANEWAY_TEST_OPTIONS -O1)
endif()

# The build tree has the layout of an installation: bin/ and lib/laneway/{runtime,shim,softgpu}.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(LANEWAY_LIB_DIR ${CMAKE_BINARY_DIR}/lib/laneway)

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(GTest REQUIRED)

include(LanewayHeaders)

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

# laneway_test(name [ONE_THREAD] [OPTIMISED|FIGURES] SOURCES... LIBS... [SERIAL tests...]): one GoogleTest binary, one
# ctest entry per TEST, labelled "unit". All of them are built by the target unit_tests.
#   ONE_THREAD  ThreadSanitizer has no races to find but in code whose threads another test tries: its build leaves this
#               test out
#   OPTIMISED   sanitizer builds lack this test, or try less of it, or it finds other things where the compiler optimises
#   FIGURES     it computes published figures for long, by code that other tests try under sanitizers: their builds leave
#               this test out
#   SERIAL      these measure times, so nothing else may run
function(laneway_test name)
  cmake_parse_arguments(ARG "ONE_THREAD;OPTIMISED;FIGURES" "" "SOURCES;LIBS;SERIAL" ${ARGN})
  if((ARG_FIGURES AND LANEWAY_SANITIZE) OR (ARG_ONE_THREAD AND LANEWAY_SANITIZE STREQUAL "thread"))
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_compile_options(${name} PRIVATE ${LANEWAY_TEST_OPTIONS})
  laneway_reuse_headers(${name} laneway_test_headers)
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gtest GTest::gtest_main Threads::Threads)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_dependencies(unit_tests ${name})
  if(NOT LANEWAY_UNIT_TESTS AND NOT ARG_OPTIMISED AND NOT ARG_FIGURES)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
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
# LANEWAY_FUZZ it runs for 10 s, labelled "fuzz"; otherwise the corpus alone is replayed, as a unit test. All fuzzers
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
    add_test(NAME fuzz.${name} COMMAND ${name} -max_total_time=10 -timeout=30 -rss_limit_mb=2048 -print_final_stats=1
                                       -artifact_prefix=${_found}/ ${_found} ${_corpus})
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 300 COST 100)
  elseif(NOT LANEWAY_UNIT_TESTS)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  else()
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/fuzz/replay_main.cc)
    add_dependencies(unit_tests ${name})
    add_test(NAME ${LANEWAY_TEST_PREFIX}corpus.${name} COMMAND ${name} ${_corpus})
    set_tests_properties(${LANEWAY_TEST_PREFIX}corpus.${name} PROPERTIES LABELS unit TIMEOUT 300)
  endif()
endfunction()
