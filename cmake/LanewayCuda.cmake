# Finds the CUDA 13 toolkit: headers for everything, nvcc for the examples. We link no vendor library.
# Order: -DLANEWAY_CUDA_ROOT, $CUDA_HOME, /usr/local/cuda, the pip packages that scripts/setup installs.
set(LANEWAY_CUDA_ROOT "" CACHE PATH "a CUDA 13 toolkit: include/cuda.h and bin/nvcc below it")
if(NOT LANEWAY_CUDA_ROOT)
  file(GLOB _pip_roots ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu13)
  find_path(_cuda_include cuda.h NO_DEFAULT_PATH
            PATHS $ENV{CUDA_HOME}/include /usr/local/cuda/include ${_pip_roots}
            PATH_SUFFIXES include)
  if(NOT _cuda_include)
    message(FATAL_ERROR "no CUDA 13 headers found: run scripts/setup, or pass -DLANEWAY_CUDA_ROOT=DIR")
  endif()
  get_filename_component(_root ${_cuda_include} DIRECTORY)
  set(LANEWAY_CUDA_ROOT ${_root} CACHE PATH "" FORCE)
endif()
set(LANEWAY_NVCC ${LANEWAY_CUDA_ROOT}/bin/nvcc)
message(STATUS "CUDA toolkit: ${LANEWAY_CUDA_ROOT}")

add_library(cuda_headers INTERFACE)
target_include_directories(cuda_headers SYSTEM INTERFACE ${LANEWAY_CUDA_ROOT}/include)
