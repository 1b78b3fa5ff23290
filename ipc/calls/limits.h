// Every limit of Laneway, once. Includes nothing; any directory may include it. Sizes are in bytes.
#pragma once

namespace ipc::limits {

inline constexpr unsigned long long KiB = 1ull << 10, MiB = 1ull << 20, GiB = 1ull << 30;

// --- addresses -----------------------------------------------------------------------------------
// Each session owns one slot of addresses, the same in client and worker: device arena, then pinned
// host window. Slots are disjoint. ThreadSanitizer allows few addresses, so its builds use a small
// map.
#if defined(__SANITIZE_THREAD__)
inline constexpr unsigned long long kSlotBase = 0x10'0000'0000ull;
inline constexpr unsigned long long kSlotBytes = 4 * GiB;
inline constexpr unsigned long long kDeviceArenaBytes = 3 * GiB;
inline constexpr unsigned kSlots = 8;
#else
inline constexpr unsigned long long kSlotBase = 0x2000'0000'0000ull;
inline constexpr unsigned long long kSlotBytes = 256 * GiB;
inline constexpr unsigned long long kDeviceArenaBytes = 192 * GiB;
inline constexpr unsigned kSlots = 64;
#endif
inline constexpr unsigned long long kPinnedWindowBytes = kSlotBytes - kDeviceArenaBytes;
// The arena: what survives an iteration, then what a lane backs, then what the worker places itself
// (library workspaces). Client and worker cut the first two; nobody else.
inline constexpr unsigned long long kPersistentBytes = kDeviceArenaBytes / 2;
inline constexpr unsigned long long kEphemeralOffset = kPersistentBytes;
inline constexpr unsigned long long kEphemeralBytes = kDeviceArenaBytes / 8 * 3;
inline constexpr unsigned long long kWorkerOffset = kEphemeralOffset + kEphemeralBytes;
inline constexpr unsigned long long kWorkerBytes = kDeviceArenaBytes - kWorkerOffset;
inline constexpr unsigned long long kSlotsEnd = kSlotBase + kSlots * kSlotBytes;

// The software GPU's own allocations lie right after the slots. One window holds all addresses that
// a kernel may touch, so a check of an access is one compare.
inline constexpr unsigned long long kSoftDeviceBytes = kSlotBytes * 8;
inline constexpr unsigned kSoftDevicesMax = 8;
inline constexpr unsigned long long kWindowBase = kSlotBase;
inline constexpr unsigned long long kWindowEnd = kSlotsEnd + kSoftDevicesMax * kSoftDeviceBytes;

// --- physical memory -----------------------------------------------------------------------------
inline constexpr unsigned long long kExtentBytesMin = 2 * MiB;
inline constexpr unsigned long long kExtentBytesMax = 1 * GiB;
inline constexpr unsigned long long kAllocationAlignment = 512;
// Arrays and textures of linear memory, in texels: no device has larger ones.
inline constexpr unsigned kArraySideMax = 131072, kArraySlicesMax = 16384;
inline constexpr unsigned kLinearTexelsMax = 1u << 28;

// --- transport -----------------------------------------------------------------------------------
inline constexpr unsigned kRingBytes = 1u << 20;         // each direction
inline constexpr unsigned kMessageBytesMax = 64u << 10;  // one message, header included
inline constexpr unsigned kStagingBytes = 8u << 20;      // pageable copies
inline constexpr unsigned kStagingChunkBytes = 1u << 20;
inline constexpr unsigned kStreamsMax = 1024;  // streams of one session: completion slots
inline constexpr unsigned kLegacySlots = 16;   // the first slots: legacy stream of each device
inline constexpr unsigned kSpinUs = 20;        // then sleep on a futex
// A copy of so much to a client, from a stream with nothing else to do, takes less than to sleep.
inline constexpr unsigned kShortCopyBytes = 1u << 16;
inline constexpr unsigned kShortCopyUs = 100;
// Runs of messages that are sent again as one (ipc/chunks). The client ends a run where it has
// reached the first two, so that the device gets its work soon.
inline constexpr unsigned kChunkMessages = 64;
inline constexpr unsigned kChunkBytes = 16u << 10;
inline constexpr unsigned kChunkMessageBytesMax = 4u << 10;  // longer ones are sent by themselves
inline constexpr unsigned kChunkBytesMax = kChunkBytes + kChunkMessageBytesMax;
inline constexpr unsigned kChunkPatchesMax = 512;
inline constexpr unsigned kVerifyBytesMax = 1u << 30;  // of a session, both ways compared
inline constexpr unsigned kChunkAreaBytes = 2u << 20;  // all runs of a session
// Where launches of replayed runs keep what no later launch sees (replay/versions.h): all orders of
// a session together.
inline constexpr unsigned kRenameBytesMax = 4u << 20;
inline constexpr unsigned kReplayVerdictsMax = 256;  // kept by lanewayd, of all programs
inline constexpr unsigned kPathBytesMax = 107;       // sun_path of a Unix socket

// --- sessions ------------------------------------------------------------------------------------
inline constexpr unsigned kSessionsMax = kSlots;
inline constexpr unsigned kHandlesMax = 1u << 20;  // of one kind in one session.
// Limits of one session on objects and memory that cost the worker something: far beyond the needs
// of programs, far below a machine's memory. A call beyond a limit fails with code 2.
inline constexpr unsigned kEventsMax = 1u << 18;
inline constexpr unsigned kModulesMax = 1u << 14;
inline constexpr unsigned kFunctionsMax = 1u << 18;
inline constexpr unsigned kGraphPiecesMax = 1u << 16;
inline constexpr unsigned kGraphNodesMax = 1u << 20;      // of all its pieces
inline constexpr unsigned kGraphEdgesMax = 1u << 22;      // of all its pieces
inline constexpr unsigned kGraphBodiesMax = 1u << 12;     // of one conditional node
inline constexpr unsigned kGraphDepthMax = 64;            // of bodies in bodies
inline constexpr unsigned kArraysMax = 1u << 16;          // levels of mipmapped ones included
inline constexpr unsigned kTexturesMax = 1u << 16;        // and as many surfaces
inline constexpr unsigned kLibraryHandlesMax = 1u << 8;   // of cuBLAS, and as many of cublasLt
inline constexpr unsigned kLibraryObjectsMax = 1u << 14;  // descriptors of one kind
inline constexpr unsigned kPinnedRangesMax = 1u << 12;    // each is a mapping of the worker's
// The same of all sessions of a worker: the system limits the mappings of a process
// (vm.max_map_count, 65530 by default), and device memory needs some of them.
inline constexpr unsigned kPinnedRangesShared = 1u << 14;
// Extents of other sessions that the sessions of a worker have mapped (cuIpcOpenMemHandle): the
// sizes of devices bound the extents, and nothing else bounds how often they are mapped.
inline constexpr unsigned kGuestExtentsShared = 1u << 14;
inline constexpr unsigned kKernelParamBytesMax = 32764;  // sm_70 and later, since CUDA 12.1
inline constexpr unsigned long long kModuleBytesMax = 1 * GiB;
// Of modules that have not arrived as a whole: each session may have the first, and all sessions of
// a worker share the second for what is beyond.
inline constexpr unsigned long long kModuleBytesOwn = 64 * MiB;
inline constexpr unsigned long long kModuleBytesShared = 4 * GiB;
// Of a context's heap for malloc in kernels, which all sessions of a worker share.
inline constexpr unsigned long long kHeapBytesMax = 1 * GiB;
inline constexpr unsigned long long kBlasWorkspaceBytes = 4 * MiB;  // from the session's arena

// --- recorded functions (functions/) -------------------------------------------------------------
inline constexpr unsigned kFunctionPortsMax = 256;  // inputs, and as many outputs
inline constexpr unsigned long long kFunctionPortBytesMax = 64 * MiB;  // of one of them
inline constexpr unsigned kFunctionImagesMax = 4096;
inline constexpr unsigned kFunctionCallsMax = 1u << 16;  // of an iteration, and to set it up
inline constexpr unsigned kFunctionBlocksMax = 1u << 16;
inline constexpr unsigned long long kFunctionMemoryBytesMax = 8 * GiB;  // of all blocks
inline constexpr unsigned kFunctionSamplesMax = 16;
inline constexpr unsigned long long kFunctionFileBytesMax = 16 * GiB;
// Of `laneway serve`: one request or answer, and how many clients wait at once.
inline constexpr unsigned kFunctionFrameBytesMax = 1u << 28;
inline constexpr unsigned kFunctionClientsMax = 256;
inline constexpr unsigned kFunctionQueueMax = 64;

}  // namespace ipc::limits
