#include "cli/fronts.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "cli/read_line.h"
#include "functions/serving/stream_socket.h"
#include "ipc/unique_fd.h"

namespace cli {
namespace {

using Json = nlohmann::json;

constexpr int64_t kAnswerTimeoutUs = 1'000'000;
constexpr size_t kAnswerBytesMax = 16 << 20;
constexpr uint64_t kModelsMax = 64;  // of one front, in a trace

std::vector<std::string> SocketsIn(const std::string& directory) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("serve-") && name.ends_with(".sock")) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string QuestionLine(const Json& question) {
  return question.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<std::string> AskForText(const std::string& path, const std::string& line) {
  const absl::StatusOr<ipc::UniqueFd> socket = functions::Connect(path);
  if (!socket.ok() || !functions::WriteAll(socket->get(), std::as_bytes(std::span(line))))
    return std::nullopt;
  return ReadLine(socket->get(), kAnswerTimeoutUs, kAnswerBytesMax);
}

std::optional<Json> AskFront(const std::string& path, const std::string& line) {
  const std::optional<std::string> text = AskForText(path, line);
  if (!text.has_value()) return std::nullopt;
  Json answer = Json::parse(*text, nullptr, false);
  if (!answer.is_object()) return std::nullopt;
  return answer;
}

}  // namespace

std::vector<Json> AskFronts(const std::string& runtime_dir, const Json& question) {
  const std::string line = QuestionLine(question);
  std::vector<Json> answers;
  for (const std::string& path : SocketsIn(runtime_dir)) {
    if (std::optional<Json> answer = AskFront(path, line)) answers.push_back(*std::move(answer));
  }
  return answers;
}

// Model by model, so that one answer has a bound.
std::vector<serve::history::ToldHistory> AskForHistories(const std::string& runtime_dir,
                                                         uint64_t job) {
  std::vector<serve::history::ToldHistory> found;
  for (const std::string& path : SocketsIn(runtime_dir)) {
    for (uint64_t model = 0, models = 1; model < models; ++model) {
      const std::optional<std::string> answer =
          AskForText(path, QuestionLine({{"command", "trace"}, {"model", model}}));
      serve::history::ToldHistory told;
      if (!answer.has_value() || !serve::history::DecodeUntrusted(*answer, &told)) break;
      if (job != 0 && told.job != job) break;
      models = std::min(told.models, kModelsMax);
      found.push_back(std::move(told));
    }
  }
  return found;
}

std::string WithModels(const std::string& daemon_json, const std::string& runtime_dir) {
  nlohmann::ordered_json whole = nlohmann::ordered_json::parse(daemon_json);
  Json models = Json::array();
  for (const Json& front : AskFronts(runtime_dir, {{"command", "models"}})) {
    for (Json model : front.value("models", Json::array())) {
      if (!model.is_object()) continue;
      model["url"] = front.value("url", Json());
      model["pid"] = front.value("pid", Json());
      models.push_back(std::move(model));
    }
  }
  whole["models"] = std::move(models);
  return whole.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace cli
