// laneway-function: runs a recorded function. `laneway record` and `laneway serve` start it, as
// `laneway run` starts a program; it is an ordinary CUDA program.
//
//     laneway-function verify FILE       compares the function's outputs with the recorded ones;
//                                        FILE.why says how they differ
//     laneway-function serve NAME PATH   serves the function to clients at this socket
//     laneway-function engine NAME FD    the session of `serve`: holds the function on the device
#include <cstdio>
#include <cstdlib>
#include <string>

#include "functions/front/front.h"
#include "functions/player/engine.h"
#include "functions/player/player.h"
#include "functions/player/verify.h"
#include "functions/store.h"

namespace functions {
namespace {

int End(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "laneway: %s\n", std::string(status.message()).c_str());
  return 1;
}

absl::Status VerifyFile(const std::string& path) {
  const absl::StatusOr<Function> function = LoadFile(path);
  if (!function.ok()) return function.status();
  const absl::StatusOr<const ipc::Targets*> targets = Player::LoadLibraries();
  if (!targets.ok()) return targets.status();
  const absl::StatusOr<std::unique_ptr<Player>> player = Player::Open(&*function, *targets);
  return player.ok() ? Verify(*function, player->get()) : player.status();
}

int Main(int argc, char** argv) {
  const std::string command = argc < 2 ? "" : argv[1];
  if (command == "verify" && argc == 3) {
    const absl::Status verified = VerifyFile(argv[2]);
    if (!verified.ok()) KeepReason(argv[2], std::string(verified.message()));
    return verified.ok() ? 0 : 1;
  }
  if (command == "serve" && argc == 4) return End(Front::Serve(argv[2], argv[3]));
  if (command == "engine" && argc == 4)
    return RunEngine(argv[2], static_cast<int>(std::strtol(argv[3], nullptr, 10)));
  return End(absl::InvalidArgumentError(
      "laneway-function is started by laneway record and laneway serve; use those"));
}

}  // namespace
}  // namespace functions

int main(int argc, char** argv) { return functions::Main(argc, argv); }
