// The calls that no vendor header declares, as C signatures: rows of laneway.inc name them, the client sends
// them, and the worker implements them (daemon/worker/execute_*.cc). This header is the contract between the two.
//
// MessageHeader::context of every call is (client's context number << 8) | (device ordinal + 1); 0: none.
//
// Streams. A CUstream in these signatures is a client-named handle. nullptr and CU_STREAM_LEGACY mean the
// session's legacy default stream; CU_STREAM_PER_THREAD never crosses (the client names a stream per thread).
// Each stream has a slot of completion words (ipc/session_file.h), chosen by the client at creation; the
// session has one legacy stream per device, whose slot is the device's ordinal, so the client's own slots
// begin at limits::kLegacySlots.
//
// Marks. A Mark with sequence != 0 asks that, when everything submitted before on that stream is complete, the
// device writes `sequence` into completed[slot]. With wake != 0 the client's doorbell rings after that, for a
// client that goes to sleep. A client may send first a mark without wake, spin, and then one with.
#pragma once

#include <cuda.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct LanewayMark {
  uint64_t sequence;
  uint32_t wake;
  uint32_t reserved;
} LanewayMark;

// Host memory that both sides see.
enum LanewayHostSpace { LANEWAY_HOST_STAGING = 0, LANEWAY_HOST_PINNED = 1, LANEWAY_HOST_RESULTS = 2 };
typedef struct LanewayHostRange {
  uint64_t offset;  // from the start of the staging area, the pinned window, or the results area
  uint32_t space;   // LanewayHostSpace
  uint32_t reserved;
} LanewayHostRange;

typedef struct LanewayShape {
  uint32_t grid[3], block[3];
  uint32_t shared_bytes;
  uint32_t cooperative;
} LanewayShape;

typedef struct LanewayParam {
  uint32_t offset, bytes;
} LanewayParam;

// attribute[i] is CUfunction_attribute i.
typedef struct LanewayFunctionInfo {
  uint32_t param_count;
  uint32_t param_bytes;
  int32_t attribute[16];
} LanewayFunctionInfo;

typedef struct LanewayModuleOptions {
  uint32_t log_verbose;
  uint32_t max_registers;       // 0: default
  uint32_t optimization_level;  // 0..4; 5: default
  uint32_t generate_line_info;
} LanewayModuleOptions;

// --- connection ----------------------------------------------------------------------------------
CUresult lanewayPing(void);                                                   // kSync
// Ends the state of one context: its streams, events, modules and allocations are the client's to destroy
// first; what it forgot goes now. (cuCtxDestroy, cuDevicePrimaryCtxReset.)
CUresult lanewayContextReset(void);                                           // kSync

// --- memory --------------------------------------------------------------------------------------
CUresult lanewayMemAlloc(CUdeviceptr* address, uint64_t bytes);               // kSync; 2 when it does not fit
CUresult lanewayMemFree(CUdeviceptr address);  // kAsync; the worker frees when work submitted so far is complete
CUresult lanewayMemInfo(uint64_t* free_bytes, uint64_t* total_bytes);         // kSync
// The client has mapped [offset, offset + bytes) of the session's pinned file at the slot's pinned window;
// the worker maps the same and registers it with the driver. offset and bytes are multiples of 4 KiB.
CUresult lanewayPinnedMap(uint64_t offset, uint64_t bytes, uint32_t flags);   // kSync
// Waits (in the client, before sending) for everything submitted; then unmaps and punches the hole.
CUresult lanewayPinnedUnmap(uint64_t offset, uint64_t bytes);                 // kSync

// --- copies: all asynchronous in stream order; the client waits for the mark where CUDA would block ---------
CUresult lanewayCopyToDevice(CUdeviceptr to, LanewayHostRange from, uint64_t bytes, CUstream stream,
                             LanewayMark mark);                               // kAsync
CUresult lanewayCopyToHost(LanewayHostRange to, CUdeviceptr from, uint64_t bytes, CUstream stream,
                           LanewayMark mark);                                 // kAsync
CUresult lanewayCopyDevice(CUdeviceptr to, CUdeviceptr from, uint64_t bytes, CUstream stream,
                           LanewayMark mark);                                 // kAsync
// Up to a message's worth of bytes inside the message itself. The worker keeps them until they are copied.
CUresult lanewayCopyInline(CUdeviceptr to, const void* from, uint64_t bytes, CUstream stream);  // kAsync
// A pitched copy: `rows` rows of `width` bytes. Host sides are ranges as above.
typedef struct LanewayRows {
  uint64_t width, rows;
  uint64_t to_pitch, from_pitch;
} LanewayRows;
CUresult lanewayCopyRowsToDevice(CUdeviceptr to, LanewayHostRange from, LanewayRows rows, CUstream stream,
                                 LanewayMark mark);                           // kAsync
CUresult lanewayCopyRowsToHost(LanewayHostRange to, CUdeviceptr from, LanewayRows rows, CUstream stream,
                               LanewayMark mark);                             // kAsync
CUresult lanewayCopyRowsDevice(CUdeviceptr to, CUdeviceptr from, LanewayRows rows, CUstream stream,
                               LanewayMark mark);                             // kAsync

// --- streams and events --------------------------------------------------------------------------
CUresult lanewayStreamCreate(CUstream* stream, uint32_t slot, uint32_t flags, int32_t priority);  // kAsync
CUresult lanewayStreamDestroy(CUstream stream);                               // kAsync
CUresult lanewayStreamMark(CUstream stream, LanewayMark mark);                // kAsync
CUresult lanewayEventRecord(CUevent event, CUstream stream, LanewayMark mark);  // kAsync
// Rings the client's doorbell once the event's last record so far is complete: for a client that is about to
// sleep on an event (the event's own mark is the completion it looks at).
CUresult lanewayEventWake(CUevent event);                                     // kAsync
// Runs a host function of the client in stream order: the mark (always with wake) tells the client's service
// thread that the stream has arrived; the stream then waits until acknowledged[slot of stream] >= ticket.
// Tickets of a slot grow by one. No message comes back.
CUresult lanewayHostCall(CUstream stream, uint64_t ticket, LanewayMark mark);  // kAsync

// --- modules and functions -----------------------------------------------------------------------
CUresult lanewayHasModule(uint64_t hash_low, uint64_t hash_high, int* present);  // kSync
// Pieces of an image in order from offset 0; ends when offset + n == total. The worker checks the hash (xxh3
// 128) before it uses them.
CUresult lanewayModuleBytes(uint64_t hash_low, uint64_t hash_high, uint64_t total, uint64_t offset,
                            const void* bytes, uint64_t n);                   // kAsync
// Loads a module of the session from cached bytes. log: at most log_bytes of the JIT's log, zero-terminated,
// filled in whatever the result is.
CUresult lanewayLoadModule(CUmodule* module, uint64_t hash_low, uint64_t hash_high,
                           LanewayModuleOptions options);                     // kSync
CUresult lanewayModuleLog(char* log, uint32_t log_bytes);                     // kSync: of the last load
CUresult lanewayUnloadModule(CUmodule module);                                // kAsync
// layout: capacity entries of LanewayParam; info->param_count of them are filled.
CUresult lanewayGetFunction(CUfunction* function, CUmodule module, const char* name, LanewayFunctionInfo* info,
                            LanewayParam* layout, uint32_t capacity);         // kSync
CUresult lanewayGetGlobal(CUdeviceptr* address, uint64_t* bytes, CUmodule module, const char* name);  // kSync
// Names of the module's functions, zero-terminated, one after the other, as many as fit.
CUresult lanewayFunctionNames(uint32_t* count, char* names, uint32_t names_bytes, CUmodule module);   // kSync

CUresult lanewayLaunch(CUfunction function, LanewayShape shape, CUstream stream, const void* params,
                       uint32_t param_bytes);                                 // kAsync

// --- results of library calls under host pointer mode ---------------------------------------------
// The library call before it, on the same thread of calls, wrote its result into session scratch; this copies
// it to the results area and marks, so that the client can wait without a reply. stream: the library handle's.
CUresult lanewayFetchResult(LanewayHostRange to, uint64_t bytes, CUstream stream, LanewayMark mark);  // kAsync

#ifdef __cplusplus
}
#endif
