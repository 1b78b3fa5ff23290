// The C types of Laneway's own calls, which no vendor header declares. Each call has a row in
// laneway.inc and travels like a driver call; the worker implements the calls (LanewayCalls in
// ipc/door.h), the shim's bodies send them. To add a call, write its type here, its row at the end
// of laneway.inc, and its body in the worker.
//
// Types are seen from both sides: on the client a CUstream is what the program holds, in the worker
// it is the driver's; the codec translates.
//
// MessageHeader::context of every call is (client's context number << 8) | (device ordinal + 1);
// 0: none.
//
// Streams. nullptr and CU_STREAM_LEGACY mean the session's legacy default stream of the call's
// device; CU_STREAM_PER_THREAD never crosses: the client names a stream per thread. Each stream has
// a slot of completion words (ipc/session_file.h), chosen by the client at creation; slots below
// limits::kLegacySlots belong to the legacy streams, by device ordinal.
//
// Marks. A Mark with a sequence asks that, when everything submitted before on that stream is
// complete, the device writes `sequence` into completed[slot]. With `wake` the client's doorbell
// rings after that: for a client that goes to sleep. It may send first a mark without wake, spin,
// and then one with.
//
// Pinned memory is addressed like device memory: the slot's pinned window follows its arena.
// Thread safety: types only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ipc/calls/vendor.h"

namespace ipc {

// Everything about a device that never changes, fetched once. CU_DEVICE_ATTRIBUTE_* index
// `attributes`.
struct DeviceInfo {
  char name[256] = {};
  char pci_bus_id[32] = {};
  uint8_t uuid[16] = {};
  uint64_t memory_bytes = 0;
  int32_t attributes[256] = {};
};
static_assert(CU_DEVICE_ATTRIBUTE_MAX <= 256);

// BLAKE2b-256 of the module's bytes: a module travels once, whoever loads it. Images are shared
// among sessions by it alone, so nobody may be able to make two with one hash.
struct ModuleHash {
  uint64_t word[4] = {};
  bool operator==(const ModuleHash&) const = default;
};

// A range of device memory that other sessions may map, too. A token is 128 random bits.
struct ShareName {
  uint64_t token[2] = {};
  uint64_t worker = 0;  // of which worker the range is; also random
  uint64_t range_bytes = 0;
  bool operator==(const ShareName&) const = default;
};

// One input of a link: an image that was sent before, and the image's name in logs.
struct LinkInput {
  ModuleHash hash;
  uint32_t kind = 0;  // CUjitInputType
  char name[108] = {};
};

// What cuFuncGetAttribute reports, by CU_FUNC_ATTRIBUTE_*, and the size of the parameter block.
struct FunctionInfo {
  int32_t attributes[32] = {};
  uint32_t params = 0;
  uint32_t param_bytes = 0;
};
static_assert(CU_FUNC_ATTRIBUTE_MAX <= 32);

struct ParamLayout {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

// What a client found out about the iteration that ends at a boundary.
enum class BoundarySource : uint32_t { kDetector = 0, kNvtx = 1, kHeader = 2, kGraph = 3 };

struct BoundaryInfo {
  uint64_t iteration = 0;  // its number, from 1
  uint32_t body = 0;       // which of the loop bodies that the client has seen
  BoundarySource source = BoundarySource::kDetector;
  uint64_t persistent_bytes = 0;  // live now
  uint64_t ephemeral_bytes = 0;   // the most that lived at once, and is gone now
};

struct Mark {
  uint64_t sequence = 0;  // 0: no mark
  uint32_t wake = 0;
  uint32_t reserved = 0;
};

// A place in an array: x in bytes, y in rows, z in slices, layers or faces.
struct ArrayPlace {
  uint64_t x = 0, y = 0, z = 0;
};

struct BoxSize {
  uint64_t width = 0, height = 0, depth = 0;  // bytes, rows, slices
};

// A box of an array and the same box in linear memory.
struct ArrayBox {
  ArrayPlace at;
  BoxSize size;
  uint64_t pitch = 0;       // bytes from row to row of the memory
  uint64_t rows = 0;        // from slice to slice
  uint32_t into_array = 0;  // 1: from the memory; 0: to it
  uint32_t reserved = 0;
};

// Texels in linear memory. One row: `width` counts bytes, pitch and height are 0. Rows: `width`
// counts texels.
struct LinearTexels {
  uint32_t format = 0;  // CUarray_format
  uint32_t channels = 0;
  uint64_t width = 0, height = 0, pitch = 0;
};

// CUDA_RESOURCE_VIEW_DESC, which a texture may do without.
struct TextureView {
  CUDA_RESOURCE_VIEW_DESC view = {};
  uint64_t present = 0;
};

// A launch attribute without pointers: `id` is a CUlaunchAttributeID, `value` its first words. No
// member has a default value: every launch has room for many attributes, and few launches have one.
struct LaunchAttribute {
  uint32_t id;
  uint32_t value[4];
};

// The attributes that a launch may have in a context that several sessions share. The client drops
// hints. Attributes that name objects or other launches, or that change how the device caches
// (access policy windows, memory synchronisation domains, programmatic events, device-updatable
// nodes), are refused with 801.
constexpr bool IsLaunchAttribute(uint32_t id) {
  return id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE || id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
         id == CU_LAUNCH_ATTRIBUTE_PRIORITY;
}

namespace laneway {

// --- session
using Ping = CUresult(uint64_t token, uint64_t* echo);
using GetDeviceInfo = CUresult(CUdevice device, DeviceInfo* info);
// The client's last context ended: all that it forgot to destroy goes now, on every device. The
// client has waited for the work before.
using ContextReset = CUresult(CUdevice device);
// The heap of malloc in kernels has `bytes` at least, on the call's device. All sessions of a
// worker share that heap, so it never gets smaller. 1: more than kHeapBytesMax, or kernels use it
// already and it is smaller.
using GrowHeap = CUresult(size_t bytes);

// --- memory. Addresses are in the session's slot, the same on both sides.
using MemInfo = CUresult(size_t* free, size_t* total);
// The client allocates: it cuts blocks out of ranges that the worker has backed. Multiples of 2
// MiB, on the call's device. Backs a range of the persistent part that nothing backs yet. 2: the
// job alone exceeds its limit or the device; while others hold the memory the call waits, where
// there is somebody to wait for.
using ArenaMap = CUresult(CUdeviceptr address, size_t bytes);
// Gives back what the ArenaMap of this address backed, once all work submitted so far is complete.
using ArenaUnmap = CUresult(CUdeviceptr address);
// As ArenaMap, and no call may name an address of the range before ArenaMove.
using ArenaCreate = CUresult(CUdeviceptr address, size_t bytes);
// Puts the memory of the range that begins at `from`, with its bytes, at `to`, where nothing may be
// backed. 1: no range begins there, or something is backed at `to`. 600: the device may be using
// the range, and the session's work has not ended within a second.
using ArenaMove = CUresult(CUdeviceptr from, CUdeviceptr to);
// Shares the range of the persistent part that the address lies in with sessions of the same user
// in the same worker; `base` is where the range begins. The range is neither swapped out nor moved
// any more, and its session not rebuilt. 1: no range is there.
using ShareRange = CUresult(CUdeviceptr address, ShareName* name, CUdeviceptr* base);
// Maps a shared range once more, at this address of the persistent part of the session, where
// nothing may be backed; ArenaUnmap ends that. 400: there is no such name. 801: the range is of
// another worker or another device. 201: it is the session's own, or mapped by it already. 2:
// sessions of this worker have mapped kGuestExtentsShared extents.
using MapShared = CUresult(const ShareName* name, CUdeviceptr address);
// The session's ephemeral need is `bytes` in all; afterwards its lane is at least that large and
// mapped from the start of the ephemeral part on. Never shrinks; 0 bytes give the lane back, after
// all work submitted so far. A session has one lane, on the device of its first
// LaneReserve (801 on another). Errors as ArenaMap.
using LaneReserve = CUresult(size_t bytes);
// A block of the ephemeral part outlives its iteration. The block's memory becomes the session's
// own, at the same addresses with the same bytes, and the lane gets fresh memory instead. 2: no
// memory is left, and the session keeps the lane until the block's LaneDrop. Waits for the
// session's turn; 401: the session has given its lane back.
using LaneKeep = CUresult(CUdeviceptr address, size_t bytes);
// Ends the LaneKeep of this address. What backs it goes back at a boundary.
using LaneDrop = CUresult(CUdeviceptr address);
// Every stream of the session waits for all work submitted so far on its others: the fence of an
// address that is used again across streams.
using StreamsJoin = CUresult();
// The client has mapped this range of the session's pinned file at this address of the pinned
// window; the worker maps the same and registers it with the driver. Multiples of 4 KiB.
using PinnedAlloc = CUresult(CUdeviceptr address, size_t bytes, unsigned flags);
// The client has waited for all work before. Unmaps here and punches the range out of the file.
using PinnedFree = CUresult(CUdeviceptr address);

// --- copies. All asynchronous in stream order; the client waits for the mark where CUDA waits.
// Device addresses may be pinned ones, so CopyDevice serves every direction that needs no staging.
using CopyInline = CUresult(CUdeviceptr to, const void* bytes, size_t count, CUstream stream);
using CopyStagedIn = CUresult(CUdeviceptr to, uint64_t staging_offset, size_t count,
                              CUstream stream, Mark mark);
using CopyStagedOut = CUresult(uint64_t staging_offset, CUdeviceptr from, size_t count,
                               CUstream stream, Mark mark);
using CopyDevice = CUresult(CUdeviceptr to, CUdeviceptr from, size_t count, CUstream stream,
                            Mark mark);
// height rows of width bytes. Staged rows lie packed, without a pitch.
using CopyPitched = CUresult(CUdeviceptr to, size_t to_pitch, CUdeviceptr from, size_t from_pitch,
                             size_t width, size_t height, CUstream stream, Mark mark);
using CopyPitchedStagedIn = CUresult(CUdeviceptr to, size_t to_pitch, uint64_t staging_offset,
                                     size_t width, size_t height, CUstream stream, Mark mark);
using CopyPitchedStagedOut = CUresult(uint64_t staging_offset, CUdeviceptr from, size_t from_pitch,
                                      size_t width, size_t height, CUstream stream, Mark mark);

// --- modules: sent once by content, in pieces in order, then loaded under the client's name
using HasModule = CUresult(const ModuleHash* hash, int* known);
using ModuleBytes = CUresult(const ModuleHash* hash, uint64_t offset, uint64_t total_bytes,
                             const void* bytes, size_t count);
using LoadModule = CUresult(CUmodule* module, const ModuleHash* hash, const CUjit_option* options,
                            const uint64_t* option_values, unsigned option_count, char* info_log,
                            unsigned info_log_bytes, char* error_log, unsigned error_log_bytes);
// The names of its functions end, too.
using UnloadModule = CUresult(CUmodule module);
// At most params_max entries of `params` are filled; info->params tells how many there are.
using GetFunction = CUresult(CUfunction* function, CUmodule module, const char* name,
                             FunctionInfo* info, ParamLayout* params, unsigned params_max);
using GetGlobal = CUresult(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name);
// Names of the module's functions, each ended by NUL, as many as fit; *count of them in the module.
using FunctionNames = CUresult(CUmodule module, unsigned* count, char* names, unsigned names_bytes);

// --- execution. `params` is the packed parameter block.
using Launch = CUresult(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, const LaunchAttribute* attributes,
                        unsigned attribute_count, const void* params, unsigned param_bytes);

// --- streams, events, host functions
using StreamCreate = CUresult(CUstream* stream, unsigned flags, int priority, unsigned slot);
using StreamDestroy = CUresult(CUstream stream);
using StreamMark = CUresult(CUstream stream, Mark mark);
// A StreamMark, and before the mark a copy as of CopyStagedOut, which the program has not asked for
// yet. The copy is no work: out of the session's turn the worker leaves the copy out. When it makes
// the copy, it writes the ticket to SessionPage::fetched before the mark.
using FetchAhead = CUresult(uint64_t staging_offset, CUdeviceptr from, size_t count,
                            CUstream stream, Mark mark, uint64_t ticket);
using EventRecord = CUresult(CUevent event, CUstream stream, Mark mark);
// Rings the client's doorbell once the event's last record so far is complete: for a client that is
// about to sleep on an event (the event's own mark is the completion that it looks at).
using EventWake = CUresult(CUevent event);
// Runs a host function of the client in stream order: the mark (always with wake) tells the
// client's service thread that the stream has arrived; the stream then waits until
// acknowledged[slot of stream] >= ticket. Tickets of a slot grow by one. No message comes back.
using HostCall = CUresult(CUstream stream, uint64_t ticket, Mark mark);

// Everything after it belongs to the next iteration, and nothing of this one's ephemeral memory
// lives any more: here, and only here, the worker may let another session of the lane go first.
using Boundary = CUresult(const BoundaryInfo* info);

// --- linking at run time: cuLink* in one step. The result is an image that the worker has as if
// the client had sent it, and that the client may fetch.
using LinkImages = CUresult(const LinkInput* inputs, unsigned count, const CUjit_option* options,
                            const uint64_t* option_values, unsigned option_count,
                            ModuleHash* linked, uint64_t* linked_bytes, char* info_log,
                            unsigned info_log_bytes, char* error_log, unsigned error_log_bytes);
// `count` bytes of an image from `offset` on. 200: the worker has no such image, or it ends before.
using ImageBytes = CUresult(const ModuleHash* hash, uint64_t offset, void* bytes, size_t count);

// --- executable graphs. The client keeps a program's graphs. A part of a graph that the device can
// do alone is a piece: defined node by node, numbered from 0, then sealed, and launched by one
// message. A CUgraphExec is a piece. GraphSeal reports the driver's refusals.
using GraphBegin = CUresult(CUgraphExec* piece);
using GraphKernel = CUresult(CUgraphExec piece, unsigned node, CUfunction function, unsigned grid_x,
                             unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                             unsigned block_z, unsigned shared_bytes, unsigned cooperative,
                             const void* params, unsigned param_bytes);
// `height` rows of row_bytes, a multiple of element_bytes.
using GraphFill = CUresult(CUgraphExec piece, unsigned node, CUdeviceptr to, size_t pitch,
                           unsigned value, unsigned element_bytes, size_t row_bytes, size_t height);
using GraphCopy = CUresult(CUgraphExec piece, unsigned node, CUdeviceptr to, size_t to_pitch,
                           CUdeviceptr from, size_t from_pitch, size_t width, size_t height);
using GraphEmpty = CUresult(CUgraphExec piece, unsigned node);
// `count` numbers: pairs of nodes, from an earlier one to a later one. `number` counts the messages
// of edges of one piece.
using GraphEdges = CUresult(CUgraphExec piece, unsigned number, const uint32_t* edges,
                            unsigned count);
// What a library did (GraphCapture), as one node.
using GraphChild = CUresult(CUgraphExec piece, unsigned node, CUgraphExec captured);
using GraphSeal = CUresult(CUgraphExec piece);
// Of a sealed piece: later launches take other parameters.
using GraphSetKernel = CUresult(CUgraphExec piece, unsigned node, CUfunction function,
                                unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                const void* params, unsigned param_bytes);
using GraphLaunch = CUresult(CUgraphExec piece, CUstream stream);
using GraphEnd = CUresult(CUgraphExec piece);
// Begins a piece that libraries make. Calls of cuBLAS and cublasLt that bear kIntoCapture
// (ipc/message.h) are captured into the piece until GraphCaptured seals it. The piece becomes a
// node of other pieces, and is not launched by itself.
using GraphCapture = CUresult(CUgraphExec* piece);
using GraphCaptured = CUresult(CUgraphExec piece);
// A condition of the piece's conditional nodes, numbered from 0, before the nodes. `name` is the
// client's handle for it: where a kernel of the piece has this word among its parameters, the
// driver's handle takes its place. `flags` are those of cuGraphConditionalHandleCreate.
using GraphCondition = CUresult(CUgraphExec piece, unsigned number, uint64_t name,
                                unsigned default_value, unsigned flags);
// A node that asks a condition, of a CUgraphConditionalNodeType. No other node may ask the same.
using GraphConditional = CUresult(CUgraphExec piece, unsigned node, unsigned condition,
                                  unsigned type, unsigned bodies);
// The node with this number, and all behind it until another message of this kind, lie in a body of
// an earlier conditional node; in none where `conditional` is kGraphOutside. Edges join nodes of
// one body.
inline constexpr unsigned kGraphOutside = ~0u;
using GraphInside = CUresult(CUgraphExec piece, unsigned node, unsigned conditional, unsigned body);

// --- orders of launches in chunks (ipc/chunks)
// From now on the launches that lie at [place, place + bytes) of the chunk area need not run one
// after another: `edges` are pairs of launches by number, from an earlier launch to a later launch
// that waits. The client has proven this of the messages as `patches` change them, which are pairs
// of a word of 32 bits, counted from `place`, and its value. `read` has a bit for each
// word: with another value in a word whose bit is set, the order does not hold. One stream, no
// attributes. 1: the numbers make no sense.
using OrderLaunches = CUresult(unsigned place, unsigned bytes, const uint32_t* edges,
                               unsigned edge_words, const uint32_t* read, unsigned read_words,
                               const uint32_t* patches, unsigned patch_words);
// No order holds any more: launches run one after another again. The scratch memory goes.
using ForgetOrders = CUresult();
// As OrderLaunches. The order holds only where some parameters of launches have other addresses:
// those of a part of the session's scratch memory, which nothing else uses and which the first such
// order makes. `renames` are triples: the launch, the offset of its parameter in bytes, and the
// address, counted from the begin of the part, which has `rename_bytes`. They ascend by launch and
// offset. Where there is no scratch memory for the order, the launches run one after another.
using OrderRenamedLaunches = CUresult(unsigned place, unsigned bytes, const uint32_t* edges,
                                      unsigned edge_words, const uint32_t* read,
                                      unsigned read_words, const uint32_t* patches,
                                      unsigned patch_words, const uint32_t* renames,
                                      unsigned rename_words, unsigned rename_bytes);

// --- arrays. The worker's driver makes them beside the arena, and they count as memory of the
// session. They stay where they are: a session that has any is neither swapped out nor rebuilt.
// 2: as ArenaMap. 801: sparse and deferred arrays, depth, formats beyond those of array_shape.h.
using ArrayCreate = CUresult(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor);
// Once all work submitted so far is complete, and no texture or surface has the array any more.
using ArrayDestroy = CUresult(CUarray array);
using MipmapCreate = CUresult(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor,
                              unsigned levels);
// The level is an array that ends with the mipmapped one.
using MipmapLevel = CUresult(CUarray* array, CUmipmappedArray of, unsigned level);
using MipmapDestroy = CUresult(CUmipmappedArray array);

// --- textures and surfaces. What the program passes to its kernels is the driver's own number.
using TextureOfArray = CUresult(CUtexObject* texture, CUarray array,
                                const CUDA_TEXTURE_DESC* description, const TextureView* view);
using TextureOfMipmap = CUresult(CUtexObject* texture, CUmipmappedArray array,
                                 const CUDA_TEXTURE_DESC* description, const TextureView* view);
// The memory must be there now. A kernel that reads the texture after the program has freed the
// memory does what a kernel with the address does.
using TextureOfMemory = CUresult(CUtexObject* texture, CUdeviceptr memory,
                                 const LinearTexels* texels, const CUDA_TEXTURE_DESC* description,
                                 const TextureView* view);
// Once all work submitted so far is complete. 1: the session has no such texture.
using TextureDestroy = CUresult(CUtexObject texture);
using SurfaceOfArray = CUresult(CUsurfObject* surface, CUarray array);
using SurfaceDestroy = CUresult(CUsurfObject surface);

// --- copies of boxes of arrays, as the copies above. Staged boxes lie packed.
using CopyArray = CUresult(CUarray array, const ArrayBox* box, CUdeviceptr memory, CUstream stream,
                           Mark mark);
using CopyArrayStaged = CUresult(CUarray array, const ArrayBox* box, uint64_t staging_offset,
                                 size_t bytes, CUstream stream, Mark mark);
using CopyArrays = CUresult(CUarray to, const ArrayPlace* to_at, CUarray from,
                            const ArrayPlace* from_at, const BoxSize* size, CUstream stream,
                            Mark mark);

}  // namespace laneway
}  // namespace ipc
