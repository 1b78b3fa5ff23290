// NVML's header with each function under its own name: by default it renames old ones to newer.
#pragma once

#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>
