#include "serve/front/front.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "serve/front/laneway_environment.h"

namespace serve::front {
namespace {

// For answers that are generated already, while their clients read them.
constexpr int64_t kLastWordsUs = 100'000;

void SayLine(const std::string& sentence) {
  std::fprintf(stderr, "laneway-serve: %s\n", sentence.c_str());
}

}  // namespace

absl::Status Front::Open(const llm::ServeOptions& options, const std::vector<std::string>& paths) {
  if (const absl::Status status = WatchSignals(); !status.ok()) return status;
  if (const absl::Status status = OpenModels(options, paths); !status.ok()) return status;
  if (const absl::Status status = OpenServer(options); !status.ok()) return status;
  return OpenQuestionSocket();
}

// Laneway names the directory in which its processes meet. Without Laneway there is none, and
// /metrics tells the same.
absl::Status Front::OpenQuestionSocket() {
  const std::string directory = RuntimeDirectory();
  if (directory.empty()) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<QuestionSocket>> socket = QuestionSocket::Open(
      &loop_, absl::StrCat(directory, "/serve-", getpid(), ".sock"),
      [this](const std::string& line) { return AnswerUntrusted(line, Report()); });
  if (!socket.ok()) return socket.status();
  questions_ = *std::move(socket);
  return absl::OkStatus();
}

ReportInput Front::Report() const {
  ReportInput input;
  input.pid = getpid();
  input.job = JobNumber();
  input.url = address_ + "/v1";
  const int64_t now_us = loop_.NowUs();
  input.now_us = now_us;
  for (size_t i = 0; i < models_.size(); ++i) {
    ReportedModel model;
    model.id = models_[i]->id();
    model.is_draining = draining_;
    model.engine = &models_[i]->engine().status();
    model.batcher = &models_[i]->engine().batcher();
    model.kv_block_bytes = models_[i]->kv_block_bytes();
    model.generated = api_->GeneratedTokens(*models_[i]);
    model.tokens_per_second = rates_[i].PerSecond(now_us, model.generated);
    model.history = &models_[i]->engine().history();
    input.models.push_back(std::move(model));
  }
  for (const openai::Completion* const completion : api_->OpenCompletions()) {
    ReportedCall call;
    call.id = completion->id();
    while (models_[call.model].get() != &completion->model()) ++call.model;
    call.requests = completion->OpenRequests();
    call.age_us = now_us - completion->began_us();
    input.calls.push_back(std::move(call));
  }
  return input;
}

absl::Status Front::WatchSignals() {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  signals_ = Descriptor(signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid())
    return absl::UnavailableError("there are no descriptors left; raise ulimit -n");
  loop_.AddDescriptor(signals_.get(), POLLIN, [this](short) {
    signalfd_siginfo which;
    if (read(signals_.get(), &which, sizeof which) == sizeof which) Drain();
  });
  return absl::OkStatus();
}

absl::Status Front::OpenModels(const llm::ServeOptions& options,
                               const std::vector<std::string>& paths) {
  if (!options.name.empty() && paths.size() != 1)
    return absl::InvalidArgumentError("--name names one model; serve several under their own");
  std::set<std::string> ids;
  for (const std::string& path : paths) {
    const std::string id = options.name.empty() ? IdOfPath(path) : options.name;
    if (!ids.insert(id).second)
      return absl::InvalidArgumentError(
          absl::StrCat("two models are called ", id, "; rename a file"));
    absl::StatusOr<std::unique_ptr<FrontModel>> model = FrontModel::Open(&loop_, id, path, options);
    if (!model.ok()) return model.status();
    // Most clients make no tokens themselves.
    if (const absl::Status kept = (*model)->KeepTokenizer(); !kept.ok())
      SayLine(absl::StrCat("clients cannot load the tokenizer of ", id, ": ",
                           std::string(kept.message())));
    models_.push_back(*std::move(model));
    metrics_.emplace_back(&registry_, id);
    rates_.emplace_back();
  }
  return absl::OkStatus();
}

absl::Status Front::OpenServer(const llm::ServeOptions& options) {
  http::ApiKeys keys;
  if (!options.api_key_file.empty()) {
    absl::StatusOr<http::ApiKeys> read = http::ApiKeys::OfFile(options.api_key_file);
    if (!read.ok()) return read.status();
    keys = *std::move(read);
  }
  if (options.port < 0 || options.port > UINT16_MAX)
    return absl::InvalidArgumentError("--port is between 0 and 65535");
  absl::StatusOr<http::Listener> listener =
      http::Listen(options.host, static_cast<uint16_t>(options.port), !keys.empty());
  if (!listener.ok()) return listener.status();
  const bool v6 = options.host.find(':') != std::string::npos;
  address_ =
      absl::StrCat("http://", v6 ? "[" : "", options.host, v6 ? "]" : "", ":", listener->port);
  http::ServerOptions server_options;
  server_options.only_this_machine = keys.empty();
  std::vector<openai::ServedModel*> models;
  for (const std::unique_ptr<FrontModel>& model : models_) models.push_back(model.get());
  absl::StatusOr<metrics::LatencyGoals> goals = metrics::ParseLatencyGoals(options.slo);
  if (!goals.ok())
    return absl::InvalidArgumentError(absl::StrCat("--slo: ", goals.status().message()));
  openai::ApiTerms terms;
  terms.goals = *std::move(goals);
  terms.version = LANEWAY_VERSION;
  terms.keys = std::move(keys);
  terms.now_us = [this] { return loop_.NowUs(); };
  terms.seconds_since_1970 = [] { return int64_t{std::time(nullptr)}; };
  terms.random = [random = std::make_shared<std::mt19937_64>(std::random_device()())] {
    return (*random)();
  };
  terms.log = &SayLine;
  terms.before_metrics = [this] {
    for (size_t i = 0; i < models_.size(); ++i) metrics_[i].Update(models_[i]->engine());
  };
  api_ = std::make_unique<openai::Api>(std::move(terms), std::move(models), &registry_);
  absl::StatusOr<std::unique_ptr<http::Server>> server = http::Server::Start(
      *std::move(listener), server_options, api_.get(), [this] { return loop_.NowUs(); });
  if (!server.ok()) return server.status();
  server_ = *std::move(server);
  return absl::OkStatus();
}

void Front::Run() {
  SayLine(absl::StrCat("serving ", models_.size() == 1 ? models_[0]->id() : "the models", " at ",
                       address_, "/v1"));
  for (const std::unique_ptr<FrontModel>& model : models_) model->Start();
  loop_.AddDescriptor(server_->descriptor(), POLLIN, [](short) {});
  loop_.SetBeforeWait([this] { RunServer(); });
  loop_.Run();
  loop_.RemoveDescriptor(server_->descriptor());
}

// Before each wait, because what an engine has answered makes no descriptor readable.
void Front::RunServer() {
  loop_.CancelTimer(server_timer_);
  const int again_ms = server_->Run();
  for (size_t i = 0; i < models_.size(); ++i)
    rates_[i].Note(loop_.NowUs(), api_->GeneratedTokens(*models_[i]));
  server_timer_ =
      again_ms < 0 ? 0 : loop_.AddTimer(loop_.NowUs() + int64_t{again_ms} * 1000, [] {});
}

void Front::Drain() {
  if (draining_) return loop_.Stop();
  draining_ = true;
  SayLine("answers what was asked, then ends; a second signal ends it at once");
  undrained_ = models_.size();
  for (const std::unique_ptr<FrontModel>& model : models_) {
    model->Drain([this] {
      if (--undrained_ == 0) EndWhenAnswered();
    });
  }
}

// Clients have yet to read what was generated.
void Front::EndWhenAnswered() {
  if (server_->open_requests() == 0) return loop_.Stop();
  loop_.AddTimer(loop_.NowUs() + kLastWordsUs, [this] { EndWhenAnswered(); });
}

}  // namespace serve::front
