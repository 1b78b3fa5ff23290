// The facades' traces in an environment: `laneway run` puts them there, and Laneway's own processes
// must not inherit them, because they talk to the real driver. Thread safety: stateless.
#pragma once

#include <string>
#include <vector>

namespace ipc {

inline constexpr char kJobVariable[] = "LANEWAY_JOB";  // a ticket (ipc/job.h)
inline constexpr char kTransportVariable[] = "LANEWAY_TRANSPORT";
inline constexpr char kModeVariable[] = "LANEWAY_MODE";
inline constexpr char kSitesVariable[] = "LANEWAY_SITES";    // "off": no call-site hashes
inline constexpr char kLaneVariable[] = "LANEWAY_LANE";      // "off": iterations lie in no lane
inline constexpr char kReplayVariable[] = "LANEWAY_REPLAY";  // ipc/replay_mode.h
inline constexpr char kRecordVariable[] = "LANEWAY_RECORD_FUNCTION";  // a file to write
inline constexpr char kIterationsVariable[] = "LANEWAY_ITERATIONS_FROM";
inline constexpr char kNvtxVariable[] = "NVTX_INJECTION64_PATH";  // NVTX loads what it names
// A directory of libraries that come before a program's own of their names, whatever run path the
// program has (shim/preload.cc). On the software GPU alone.
inline constexpr char kCompilersVariable[] = "LANEWAY_COMPILERS";
inline constexpr char kDriverVariable[] = "LANEWAY_DRIVER";  // path; in-process mode alone

// `environment` ("NAME=value" each) without what `laneway run` has told a program, and
// with every entry of LD_PRELOAD, LD_LIBRARY_PATH and PATH removed that lies below `library_root`.
// What the user put there stays.
std::vector<std::string> WithoutFacades(const char* const* environment,
                                        const std::string& library_root);

// Replaces or adds one variable.
void SetVariable(std::vector<std::string>* environment, const std::string& name,
                 const std::string& value);

// For execve; valid while `environment` is unchanged.
std::vector<char*> PointersOf(std::vector<std::string>* environment);

}  // namespace ipc
