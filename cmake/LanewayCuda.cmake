# Finds the CUDA 13 toolkit: headers for everything, nvcc for the examples. We link no vendor library, but for the
# libcudart of programs that must be built as a user would build them.
# Order: -DLANEWAY_CUDA_ROOT, $CUDA_HOME, /usr/local/cuda, the pip packages that scripts/setup installs.
set(LANEWAY_CUDA_ROOT "" CACHE PATH "a CUDA 13 toolkit: include/cuda.h and bin/nvcc below it")

# Sets `result` to the CUDA_VERSION in root/include/cuda.h when root is complete enough to build with, else to 0.
function(laneway_toolkit_version root result)
  set(${result} 0 PARENT_SCOPE)
  foreach(_file include/cuda.h include/cublasLt.h bin/nvcc)
    if(NOT EXISTS ${root}/${_file})
      return()
    endif()
  endforeach()
  file(STRINGS ${root}/include/cuda.h _line REGEX "^#define CUDA_VERSION ")
  string(REGEX MATCH "[0-9]+" _version "${_line}")
  set(${result} ${_version} PARENT_SCOPE)
endfunction()

if(NOT LANEWAY_CUDA_ROOT)
  file(GLOB _pip_roots ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu13)
  foreach(_root $ENV{CUDA_HOME} /usr/local/cuda ${_pip_roots})
    laneway_toolkit_version(${_root} _version)
    if(_version GREATER_EQUAL 13000 AND _version LESS 14000)
      set(LANEWAY_CUDA_ROOT ${_root} CACHE PATH "" FORCE)
      break()
    endif()
  endforeach()
endif()
if(NOT LANEWAY_CUDA_ROOT)
  message(FATAL_ERROR "no CUDA 13 toolkit found: run scripts/setup, or pass -DLANEWAY_CUDA_ROOT=DIR")
endif()
set(LANEWAY_NVCC ${LANEWAY_CUDA_ROOT}/bin/nvcc)
message(STATUS "CUDA toolkit: ${LANEWAY_CUDA_ROOT}")

add_library(cuda_headers INTERFACE)
target_include_directories(cuda_headers SYSTEM INTERFACE ${LANEWAY_CUDA_ROOT}/include)

set(LANEWAY_CUDA_SASS "" CACHE STRING "architectures, such as 90, to add machine code for (scripts/gpu_check bundle)")
set(LANEWAY_CUDA_CODE -gencode arch=compute_80,code=compute_80)
foreach(_sm ${LANEWAY_CUDA_SASS})
  list(APPEND LANEWAY_CUDA_CODE -gencode arch=compute_${_sm},code=sm_${_sm})
endforeach()

# laneway_cuda_objects(result SOURCES... [FLAGS...]): compiles .cu files by nvcc into PTX for compute_80, which every
# device we know accepts, and sets `result` to the object files.
function(laneway_cuda_objects result)
  cmake_parse_arguments(ARG "" "" "SOURCES;FLAGS" ${ARGN})
  set(_objects "")
  foreach(_source ${ARG_SOURCES})
    get_filename_component(_path ${_source} ABSOLUTE)
    file(RELATIVE_PATH _name ${CMAKE_CURRENT_SOURCE_DIR} ${_path})
    string(MD5 _key "${ARG_FLAGS}")
    string(SUBSTRING ${_key} 0 8 _key)
    set(_object ${CMAKE_CURRENT_BINARY_DIR}/cuda-${_key}/${_name}.o)
    list(APPEND _objects ${_object})
    get_property(_known GLOBAL PROPERTY LANEWAY_CUDA_OBJECTS)
    if(_object IN_LIST _known)
      continue()  # two programs share this source
    endif()
    set_property(GLOBAL APPEND PROPERTY LANEWAY_CUDA_OBJECTS ${_object})
    get_filename_component(_directory ${_object} DIRECTORY)
    file(MAKE_DIRECTORY ${_directory})
    add_custom_command(
      OUTPUT ${_object}
      COMMAND ${LANEWAY_NVCC} --cudart shared ${LANEWAY_CUDA_CODE} -std=c++17 -O3
              -ccbin ${CMAKE_CXX_COMPILER} -I${CMAKE_CURRENT_SOURCE_DIR} ${ARG_FLAGS}
              -MD -MF ${_object}.d -c ${_path} -o ${_object}
      DEPENDS ${_path}
      DEPFILE ${_object}.d
      COMMENT "nvcc ${_name}" VERBATIM)
  endforeach()
  set(${result} ${_objects} PARENT_SCOPE)
endfunction()

# laneway_cuda_device_link(result name OBJECTS...): what nvcc's linker makes of the relocatable device code in the
# objects, for a program of separable compilation.
function(laneway_cuda_device_link result name)
  cmake_parse_arguments(ARG "" "" "OBJECTS" ${ARGN})
  set(_object ${CMAKE_CURRENT_BINARY_DIR}/${name}.device_link.o)
  add_custom_command(
    OUTPUT ${_object}
    COMMAND ${LANEWAY_NVCC} --cudart shared ${LANEWAY_CUDA_CODE} -ccbin ${CMAKE_CXX_COMPILER}
            -dlink ${ARG_OBJECTS} -lcudadevrt -o ${_object}
    DEPENDS ${ARG_OBJECTS}
    COMMENT "nvcc -dlink ${name}" VERBATIM)
  set(${result} ${_object} PARENT_SCOPE)
endfunction()

# laneway_cuda_ptx(result SOURCES...): compiles .cu files by nvcc into PTX for compute_80, and sets `result` to the files,
# in the order of the sources. For programs that load modules themselves.
function(laneway_cuda_ptx result)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  set(_files "")
  foreach(_source ${ARG_SOURCES})
    get_filename_component(_name ${_source} NAME_WE)
    set(_file ${CMAKE_CURRENT_BINARY_DIR}/${_name}.ptx)
    add_custom_command(
      OUTPUT ${_file}
      COMMAND ${LANEWAY_NVCC} -arch=compute_80 -std=c++17 -O3 -ccbin ${CMAKE_CXX_COMPILER}
              -I${CMAKE_SOURCE_DIR} -MD -MF ${_file}.d -ptx ${CMAKE_CURRENT_SOURCE_DIR}/${_source} -o ${_file}
      DEPENDS ${_source}
      DEPFILE ${_file}.d
      COMMENT "nvcc ${_name}" VERBATIM)
    list(APPEND _files ${_file})
  endforeach()
  set(${result} ${_files} PARENT_SCOPE)
endfunction()

# What a CUDA program links: the toolkit's library where it has one (as on a user's machine), else ours. Only the
# SONAME ends up in the program, and no run path: where the library comes from is decided when the program starts.
function(laneway_cuda_library result library fallback_target)
  foreach(_directory lib64 lib64/stubs lib lib/stubs)
    foreach(_file ${LANEWAY_CUDA_ROOT}/${_directory}/${library} ${LANEWAY_CUDA_ROOT}/${_directory}/${library}.13)
      if(EXISTS ${_file})
        set(${result} ${_file} PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endforeach()
  set(${result} ${fallback_target} PARENT_SCOPE)
endfunction()
find_library(LANEWAY_CUDA_DEVICE_RUNTIME cudadevrt NO_DEFAULT_PATH PATHS ${LANEWAY_CUDA_ROOT}/lib64 ${LANEWAY_CUDA_ROOT}/lib)
laneway_cuda_library(LANEWAY_LINK_CUDART libcudart.so laneway_cudart)
laneway_cuda_library(LANEWAY_LINK_CUBLAS libcublas.so softgpu_cublas)
laneway_cuda_library(LANEWAY_LINK_CUDA libcuda.so softgpu_cuda)

# laneway_cuda_program(name SOURCES... [LIBS cudart cublas cuda ...] [FLAGS nvcc flags...] [OUTPUT directory] [SEPARABLE])
# A CUDA program as a user would write it: .cu files by nvcc, other files by the host compiler. Without LIBS: cudart.
# SEPARABLE: device code of one file may use another's, as with CMake's CUDA_SEPARABLE_COMPILATION.
function(laneway_cuda_program name)
  cmake_parse_arguments(ARG "SEPARABLE" "OUTPUT" "SOURCES;LIBS;FLAGS" ${ARGN})
  if(ARG_SEPARABLE)
    list(APPEND ARG_FLAGS -rdc=true)
  endif()
  if(NOT DEFINED ARG_LIBS)
    set(ARG_LIBS cudart)
  endif()
  if(NOT ARG_OUTPUT)
    set(ARG_OUTPUT ${CMAKE_BINARY_DIR}/bin)
  endif()
  set(_cuda_sources ${ARG_SOURCES})
  list(FILTER _cuda_sources INCLUDE REGEX "\\.cu$")
  set(_host_sources ${ARG_SOURCES})
  list(FILTER _host_sources EXCLUDE REGEX "\\.cu$")
  laneway_cuda_objects(_objects SOURCES ${_cuda_sources} FLAGS ${ARG_FLAGS})
  if(ARG_SEPARABLE)
    laneway_cuda_device_link(_device_link ${name} OBJECTS ${_objects})
    list(APPEND _objects ${_device_link})
    list(APPEND ARG_LIBS ${LANEWAY_CUDA_DEVICE_RUNTIME})
  endif()
  add_executable(${name} ${_host_sources} ${_objects})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX RUNTIME_OUTPUT_DIRECTORY ${ARG_OUTPUT}
                        BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "")
  set_source_files_properties(${_objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE cuda_headers)
  foreach(_library ${ARG_LIBS})
    if(_library STREQUAL cudart)
      target_link_libraries(${name} PRIVATE ${LANEWAY_LINK_CUDART})
    elseif(_library STREQUAL cublas)
      target_link_libraries(${name} PRIVATE ${LANEWAY_LINK_CUBLAS})
    elseif(_library STREQUAL cuda)
      target_link_libraries(${name} PRIVATE ${LANEWAY_LINK_CUDA})
    else()
      target_link_libraries(${name} PRIVATE ${_library})
    endif()
  endforeach()
  # A library of ours or the vendor's may itself need libraries that only the program's start decides on.
  target_link_options(${name} PRIVATE -Wl,--allow-shlib-undefined)
endfunction()
