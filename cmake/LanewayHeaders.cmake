# Headers that most files include, compiled once for all of them (with LANEWAY_UNITY). Files include what they use
# nevertheless, for builds without.
#
# A compiler takes compiled headers only with the options that they were compiled with. So executables are compiled like
# libraries, and a target with options of its own goes without, unless these are for warnings or for variables of
# threads alone.
if(LANEWAY_UNITY)
  set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)
  # For ccache, which otherwise can't tell whether the headers have changed.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  else()
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
endif()

set(_standard <algorithm> <array> <atomic> <cassert> <cstdint> <cstdio> <cstdlib> <cstring> <functional> <map> <memory>
  <optional> <set> <span> <string> <string_view> <tuple> <unordered_map> <utility> <vector>)
set(_abseil <absl/status/status.h> <absl/status/statusor.h> <absl/strings/str_cat.h>)
set(_tests <gtest/gtest.h> <chrono> <filesystem> <fstream> <random> <sstream> <thread>)

# laneway_compile_headers(name headers...): an object library that compiles them.
function(laneway_compile_headers name)
  set(_source ${CMAKE_BINARY_DIR}/${name}.cc)
  file(CONFIGURE OUTPUT ${_source} CONTENT "// Holds nothing: what is compiled are headers.\n")
  add_library(${name} OBJECT ${_source})
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()

# laneway_reuse_headers(target name): the target's C++ files see the headers that `name` has compiled.
function(laneway_reuse_headers target name)
  if(LANEWAY_UNITY)
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()

# laneway_reuse_headers_below(directory): the same with laneway_common_headers, for each library and program there.
function(laneway_reuse_headers_below directory)
  get_property(_usual DIRECTORY ${CMAKE_SOURCE_DIR} PROPERTY COMPILE_OPTIONS)
  list(FILTER _usual EXCLUDE REGEX "^-(W|ftls-model)")
  get_property(_targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(_target ${_targets})
    get_target_property(_type ${_target} TYPE)
    get_target_property(_options ${_target} COMPILE_OPTIONS)
    list(FILTER _options EXCLUDE REGEX "^-(W|ftls-model)")
    get_target_property(_sources ${_target} SOURCES)
    get_target_property(_reused ${_target} PRECOMPILE_HEADERS_REUSE_FROM)
    if(_type MATCHES "LIBRARY$|EXECUTABLE" AND NOT _type STREQUAL "INTERFACE_LIBRARY" AND "${_options}" STREQUAL "${_usual}"
       AND "${_sources}" MATCHES "\\.cc" AND NOT _reused AND NOT _target MATCHES "_headers$")
      laneway_reuse_headers(${_target} laneway_common_headers)
    endif()
  endforeach()
  get_property(_below DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(_sub ${_below})
    laneway_reuse_headers_below(${_sub})
  endforeach()
endfunction()

if(LANEWAY_UNITY)
  laneway_compile_headers(laneway_common_headers ${_standard} ${_abseil})
  laneway_compile_headers(laneway_test_headers ${_standard} ${_abseil} ${_tests})
  target_link_libraries(laneway_test_headers PRIVATE GTest::gtest)
  target_compile_options(laneway_test_headers PRIVATE ${LANEWAY_TEST_OPTIONS})
endif()
