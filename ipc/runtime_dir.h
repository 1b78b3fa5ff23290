// The directory where the processes of one daemon meet: sockets, lock, logs.
//
// $LANEWAY_RUNTIME_DIR, else $XDG_RUNTIME_DIR/laneway, else /dev/shm/laneway-$UID; mode 0700 and
// owned by its user, because whoever can write into it can become the daemon. Thread safety: reads
// the environment; otherwise stateless.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ipc {

inline constexpr char kRuntimeDirVariable[] = "LANEWAY_RUNTIME_DIR";
inline constexpr char kKeeperSocketName[] = "keeper.sock";
inline constexpr char kControlEndpointName[] = "control.zmq";
inline constexpr char kLockName[] = "lanewayd.lock";
inline constexpr char kSecretName[] = "secret";

// Where it is, whether or not it exists.
std::string RuntimeDir();

// FailedPrecondition or InvalidArgument, with a sentence for people: the directory belongs to
// another user, other users can enter it, the path is no directory, or socket paths in the
// directory would be too long. NotFound: the directory does not exist.
absl::Status CheckRuntimeDir(const std::string& dir);

// Makes the directory, and log/ below it, when they are missing. Then checks as CheckRuntimeDir.
absl::Status MakeRuntimeDir(const std::string& dir);

std::string HelloSocketPath(const std::string& dir);
std::string KeeperSocketPath(const std::string& dir);
std::string WorkerSocketPath(const std::string& dir, uint32_t worker);
std::string SessionEndpoint(const std::string& dir, uint64_t session_id);  // ipc://...
std::string ControlEndpoint(const std::string& dir);                       // ipc://...
// Removes the socket file of an ipc:// endpoint: libzmq leaves it behind.
void UnlinkEndpoint(const std::string& endpoint);
// libzmq makes it for whom the umask allows.
void MakeEndpointPrivate(const std::string& endpoint);
std::string LockPath(const std::string& dir);
std::string SecretPath(const std::string& dir);  // the daemons' key (daemon/control/seal.h)
std::string LogPath(const std::string& dir, const std::string& process);

// Numbers of the workers that have a socket file here, alive or not, sorted.
std::vector<uint32_t> WorkerSocketsIn(const std::string& dir);

}  // namespace ipc
