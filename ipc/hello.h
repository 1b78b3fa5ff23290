// How a program becomes a session: one request and one answer on $RUNTIME/lanewayd.sock
// (AF_UNIX, SOCK_SEQPACKET, CLOEXEC).
//
// A program that keeps its own context (Mode::kInProcess) has no worker: lanewayd answers by
// itself, with the session file alone, and control messages about this one session travel over the
// socket from then on, as they do between lanewayd and a worker (ipc/control.h). When the socket
// ends, the program says Hello again, and in it what it has.
//
//     client                                lanewayd                              worker
//       Hello  ------------------------------>  checks, picks slot and worker
//                                               AttachSession + session file ------> maps, starts a
//                                               thread
//       Welcome + two descriptors  <----------  <--------------------------- Attached
//
// The descriptors are the session file (ipc/session_file.h) and the session's pinned memory: a
// sparse memfd of limits::kPinnedWindowBytes, of which both sides map the same ranges at the same
// addresses, the pinned window of the slot (lanewayPinnedMap). Freed ranges are punched out.
//
// The socket stays open; its end alone ends nothing (a program may close every descriptor):
// lanewayd and the worker watch the process by pidfd.
#pragma once

#include <cstdint>

#include "ipc/calls/limits.h"
#include "ipc/job.h"
#include "ipc/message.h"
#include "ipc/tables.h"

namespace ipc {

inline constexpr char kHelloSocketName[] = "lanewayd.sock";
inline constexpr uint32_t kHelloMagic = 0x4c4e4849;  // "LNHI"

enum class Transport : uint32_t { kRing = 0, kZmq = 1 };
// kContained: a worker of its own. kInProcess: the program's own context. One scheduler for all.
enum class Mode : uint32_t { kShared = 0, kContained = 1, kInProcess = 2 };

// The first three fields keep their places in every version, so that a mismatch can be told in
// words.
struct Hello {
  uint32_t magic = kHelloMagic;
  uint32_t protocol_version = kProtocolVersion;
  uint32_t bytes = sizeof(Hello);
  uint32_t reserved = 0;
  Tables tables;  // the calls that this client knows
  Transport transport = Transport::kRing;
  Mode mode = Mode::kShared;
  JobTicket job;            // from LANEWAY_JOB, set by `laneway run`; without one: a job of its own
  uint64_t session_id = 0;  // kInProcess: the session that goes on; 0: a new one
  Mac session_seal = {};    // of its Welcome: the proof that it is this program's session
  uint64_t held_bytes = 0;  // device memory of the one that goes on; believed as far as possible
  char program[128] = {};   // for people: base name of argv[0]
  char version[32] = {};    // package version, for the mismatch sentence
};

struct Welcome {
  uint32_t magic = kHelloMagic;
  uint32_t protocol_version = kProtocolVersion;
  uint32_t bytes = sizeof(Welcome);
  uint32_t result = 0;  // CUresult: 0, or why not (803 version, 808 sessions, 304 rings, 800 ...)
  uint64_t session_id = 0;
  uint32_t slot = 0;
  uint32_t worker_pid = 0;
  uint32_t device_count = 0;
  uint32_t queued = 0;  // 1: it is not admitted yet, for what `sentence` says; another one follows
  char zmq_endpoint[108] =
      {};                   // ipc://... when the transport is ZeroMQ: a ROUTER bound by the worker
  char sentence[256] = {};  // on failure: what is wrong and what to do
  uint32_t reserved2 = 0;
  Tables tables;          // the calls that the daemon and its workers know
  Mac session_seal = {};  // kInProcess: to be shown when the session says hello again
};

}  // namespace ipc
