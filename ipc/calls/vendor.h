// The vendor's headers as the call tables need them: every entry point under the very name that the
// libraries export, older versions included. Include this instead of <cuda.h> wherever a table or a
// reading of one is used; both views in one translation unit would disagree about names.
// Thread safety: only declarations.
#pragma once

#if defined(__cuda_cuda_h__) && !defined(__CUDA_API_VERSION_INTERNAL)
#error "include ipc/calls/vendor.h before <cuda.h>: the tables need the view with every version"
#endif
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <cudaProfiler.h>

// cublas_api.h overloads five of its functions in C++, so that their name alone has no type. Each
// is spelled here; the casts below compile only while the spelling is that of the exported
// function.
namespace ipc::overloaded {
using GetEmulationStrategy = cublasStatus_t(cublasHandle_t, cublasEmulationStrategy_t*);
using SetEmulationStrategy = cublasStatus_t(cublasHandle_t, cublasEmulationStrategy_t);
using GemmEx = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                              const void*, const void*, cudaDataType, int, const void*,
                              cudaDataType, int, const void*, void*, cudaDataType, int,
                              cublasComputeType_t, cublasGemmAlgo_t);
using GemmBatchedEx = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                     int, const void*, const void* const*, cudaDataType, int,
                                     const void* const*, cudaDataType, int, const void*,
                                     void* const*, cudaDataType, int, int, cublasComputeType_t,
                                     cublasGemmAlgo_t);
using GemmStridedBatchedEx = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t,
                                            int, int, int, const void*, const void*, cudaDataType,
                                            int, long long, const void*, cudaDataType, int,
                                            long long, const void*, void*, cudaDataType, int,
                                            long long, int, cublasComputeType_t, cublasGemmAlgo_t);

static_assert(sizeof(static_cast<GetEmulationStrategy*>(&::cublasGetEmulationStrategy)) != 0);
static_assert(sizeof(static_cast<SetEmulationStrategy*>(&::cublasSetEmulationStrategy)) != 0);
static_assert(sizeof(static_cast<GemmEx*>(&::cublasGemmEx)) != 0);
static_assert(sizeof(static_cast<GemmBatchedEx*>(&::cublasGemmBatchedEx)) != 0);
static_assert(sizeof(static_cast<GemmStridedBatchedEx*>(&::cublasGemmStridedBatchedEx)) != 0);
}  // namespace ipc::overloaded

// LANEWAY_SIGNATURE(fn): the function type of a vendor entry point; what every X-macro uses where
// it needs the C type of a row. (The detour picks the spelled type when one is listed below.)
#define LANEWAY_OVERLOADED_cublasGetEmulationStrategy ~, ::ipc::overloaded::GetEmulationStrategy
#define LANEWAY_OVERLOADED_cublasSetEmulationStrategy ~, ::ipc::overloaded::SetEmulationStrategy
#define LANEWAY_OVERLOADED_cublasGemmEx ~, ::ipc::overloaded::GemmEx
#define LANEWAY_OVERLOADED_cublasGemmBatchedEx ~, ::ipc::overloaded::GemmBatchedEx
#define LANEWAY_OVERLOADED_cublasGemmStridedBatchedEx ~, ::ipc::overloaded::GemmStridedBatchedEx
#define LANEWAY_SECOND_OF(a, b, ...) b
#define LANEWAY_SECOND(...) LANEWAY_SECOND_OF(__VA_ARGS__)
#define LANEWAY_SIGNATURE(fn) LANEWAY_SECOND(LANEWAY_OVERLOADED_##fn, decltype(::fn), ~)
