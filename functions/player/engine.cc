#include "functions/player/engine.h"

#include <memory>
#include <utility>

#include "functions/player/player.h"
#include "functions/serving/frames.h"
#include "functions/serving/handler.h"
#include "functions/serving/stream_socket.h"
#include "functions/store.h"
#include "include/laneway.h"

namespace functions {
namespace {

class PlayerRunner final : public Runner {
 public:
  explicit PlayerRunner(Player* player) : player_(*player) {}
  // A request is an iteration: between two of them others have their turn.
  absl::Status Run(std::span<const std::span<const std::byte>> inputs,
                   std::vector<Bytes>* outputs) override {
    laneway_iteration();
    return player_.Run(inputs, outputs);
  }

 private:
  Player& player_;
};

int Fail(int socket, const absl::Status& status) {
  (void)WriteAll(socket, EncodeAnswer({AnswerStatus::kFailed, {}, std::string(status.message())}));
  return 1;
}

}  // namespace

int RunEngine(const std::string& name, int socket) {
  absl::StatusOr<Stored> stored = Load(name);
  if (!stored.ok()) return Fail(socket, stored.status());
  const absl::StatusOr<const ipc::Targets*> targets = Player::LoadLibraries();
  if (!targets.ok()) return Fail(socket, targets.status());
  const absl::StatusOr<std::unique_ptr<Player>> player = Player::Open(&stored->function, *targets);
  if (!player.ok()) return Fail(socket, player.status());
  PlayerRunner runner(player->get());
  Handler handler(std::move(stored->manifest), &runner);
  if (!WriteAll(socket, EncodeAnswer({}))) return 0;
  FrameReader reader;
  Bytes request, answer;
  while (ReadFrame(socket, &reader, &request)) {
    const absl::Status done = handler.AnswerUntrusted(request, &answer);
    if (!done.ok()) return Fail(socket, done);
    if (!WriteAll(socket, answer)) return 0;
  }
  return 0;
}

}  // namespace functions
