// Generates through an engine process from prompts of token ids, and prints what run_model prints
// of the same prompts and flags.
//
//     generate FILE --prompts PATH [FLAGS OF laneway-serve] [--new N] [--answers N]
//         PATH           a prompt a line: token ids, as 1,2,3
//         --sample SEED  draws tokens, some with penalties, and tells log probabilities
//         --kills SEED   kills a stage of the engine twice, at times of this seed
//         --first N      sends at most so many requests at once (all)
//         --min N        tokens that each answer has at least
//         --forbid A     ids that are not drawn
//         --cancel N     cancels request N at its second token
#include <signal.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "serve/engine/child_process.h"
#include "serve/llm/engine/engine.h"
#include "serve/llm/model/model_file.h"
#include "serve/llm/serve_options.h"
#include "serve/loop/poll_loop.h"

namespace serve::llm {
namespace {

struct Flags {
  std::string file;
  std::string prompts;
  ServeOptions serve;
  int32_t new_max = 8;
  int32_t answers = 1;
  int64_t sample = -1;  // negative: greedy
  int64_t kills = -1;
  int32_t first = 1 << 20;
  int32_t min_tokens = 0;
  std::vector<int32_t> forbid;
  int64_t cancel = -1;
};

[[noreturn]] void Fail(const std::string& sentence) {
  std::fprintf(stderr, "generate: %s\n", sentence.c_str());
  std::exit(1);
}

std::vector<int32_t> Numbers(const std::string& text) {
  std::vector<int32_t> numbers;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const std::from_chars_result read = std::from_chars(at, end, numbers.emplace_back());
    if (read.ec != std::errc() || (read.ptr != end && *read.ptr != ',')) Fail("what is " + text);
    at = read.ptr == end ? end : read.ptr + 1;
  }
  return numbers;
}

uint64_t HashOf(const std::vector<float>& values) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto* const bytes = reinterpret_cast<const unsigned char*>(values.data());
  for (size_t i = 0; i < values.size() * sizeof(float); ++i)
    hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

class Run {
 public:
  explicit Run(const Flags& flags) : flags_(flags), random_(static_cast<uint64_t>(flags.kills)) {
    const absl::StatusOr<ModelFile> file = ModelFile::OpenUntrusted(flags.file);
    if (!file.ok()) Fail(std::string(file.status().message()));
    const absl::StatusOr<EngineGeneratorOptions> options =
        OptionsForModel(flags.serve, flags.file, file->model(), {engine::OwnPath(), "--engine"});
    if (!options.ok()) Fail(std::string(options.status().message()));
    EngineGeneratorOptions chosen = *options;
    // A random model's marks of an end mean nothing; --min is about one of them.
    if (flags.min_tokens == 0) chosen.generation.end_tokens.clear();
    std::ifstream lines(flags.prompts);
    for (std::string line; std::getline(lines, line);)
      answers_.push_back(std::make_unique<Listener>(this, answers_.size(), Numbers(line)));
    generator_ = std::make_unique<EngineGenerator>(
        &loop_, std::move(chosen), [this](const EngineStatus& status) { Observe(status); });
  }

  void Generate() {
    generator_->Start();
    for (int32_t i = 0; i < flags_.first; ++i) SubmitNext();
    loop_.Run();
    for (const std::unique_ptr<Listener>& answer : answers_) answer->Print();
    std::fprintf(stderr, "engines lost: %lld, preemptions: %lld, steps: %lld\n",
                 static_cast<long long>(generator_->status().restarts),
                 static_cast<long long>(generator_->state().counters.preemptions),
                 static_cast<long long>(generator_->status().steps));
  }

 private:
  class Listener final : public GenerationListener {
   public:
    Listener(Run* run, size_t number, std::vector<int32_t> prompt)
        : run_(run), number_(number), prompt_(std::move(prompt)) {
      tokens_.resize(static_cast<size_t>(run->flags_.answers));
      logprobs_.resize(tokens_.size());
      endings_.resize(tokens_.size(), "no end");
    }
    GenerationRequest Request() const {
      const size_t length = prompt_.size();
      GenerationRequest request;
      request.prompt = prompt_;
      request.new_max = run_->flags_.new_max;
      request.answers = run_->flags_.answers;
      request.sampling.temperature = 0;
      request.sampling.min_tokens = run_->flags_.min_tokens;
      for (const int32_t token : run_->flags_.forbid)
        request.sampling.logit_bias.emplace_back(token, -1e9f);
      if (run_->flags_.sample < 0) return request;
      request.sampling.temperature = static_cast<float>(length % 4) * 0.5f;
      request.sampling.top_p = length % 3 == 0 ? 1.0f : 0.9f;
      request.sampling.min_p = length % 5 == 0 ? 0.05f : 0.0f;
      request.sampling.top_k = static_cast<int32_t>(length % 2 * 40);
      request.sampling.seed = static_cast<uint64_t>(run_->flags_.sample);
      request.sampling.logprobs = 3;
      if (length % 7 < 3) return request;
      request.sampling.repetition_penalty = 1.2f;
      request.sampling.frequency_penalty = 0.3f;
      request.sampling.presence_penalty = 0.2f;
      return request;
    }
    bool OnToken(const GeneratedToken& token) override {
      const size_t answer = static_cast<size_t>(token.answer);
      tokens_[answer].push_back(token.token);
      if (!token.top.empty()) {
        logprobs_[answer].push_back(token.logprob);
        for (const TokenLogprob& top : token.top) logprobs_[answer].push_back(top.logprob);
      }
      run_->OnToken();
      if (static_cast<int64_t>(number_) == run_->flags_.cancel && tokens_[answer].size() == 2)
        run_->Cancel(id);
      return false;
    }
    void OnAnswerEnded(int32_t answer, Ending why) override {
      static constexpr const char* kEndings[] = {"stopped", "length",       "cancelled",
                                                 "expired", "engine fault", "too long"};
      endings_[static_cast<size_t>(answer)] = kEndings[static_cast<size_t>(why)];
      run_->OnAnswerEnded();
    }
    void OnRejected(Refusal why, int64_t) override {
      Fail("request " + std::to_string(number_) +
           " is refused: " + std::to_string(static_cast<int>(why)));
    }
    void Print() const {
      for (size_t answer = 0; answer < tokens_.size(); ++answer) {
        std::printf(answer == 0 ? "request %zu:" : "request %zu, answer %zu:", number_, answer);
        for (const int32_t token : tokens_[answer]) std::printf(" %d", token);
        std::printf("\n");
        if (!logprobs_[answer].empty())
          std::printf("log probabilities %zu: %016llx\n", number_,
                      static_cast<unsigned long long>(HashOf(logprobs_[answer])));
        if (endings_[answer] != "length") std::printf("ended: %s\n", endings_[answer].c_str());
      }
    }

    RequestId id = 0;

   private:
    Run* const run_;
    const size_t number_;
    const std::vector<int32_t> prompt_;
    std::vector<std::vector<int32_t>> tokens_;  // by answer, as the next two
    std::vector<std::vector<float>> logprobs_;
    std::vector<std::string> endings_;
  };

  void SubmitNext() {
    if (next_ == answers_.size()) return;
    Listener* const listener = answers_[next_++].get();
    open_ += flags_.answers;
    listener->id = generator_->Submit(listener->Request(), listener);
  }

  void OnAnswerEnded() {
    --open_;
    if (open_ / flags_.answers < flags_.first) SubmitNext();
    if (open_ == 0) generator_->Drain([this] { loop_.Stop(); });
  }

  void Cancel(RequestId id) {
    generator_->Cancel(id);
    open_ -= flags_.answers;
    SubmitNext();
    if (open_ == 0) generator_->Drain([this] { loop_.Stop(); });
  }

  // Somewhere within a step, most likely.
  void OnToken() {
    constexpr int kKills = 2;
    constexpr int64_t kWithinUs = 5'000;
    if (flags_.kills < 0 || kills_ == kKills || random_() % 6 != 0) return;
    if (generator_->status().state != EngineState::kReady) return;
    ++kills_;
    const std::vector<pid_t> pids = generator_->status().pids;
    const pid_t pid = pids[random_() % pids.size()];
    loop_.AddTimer(loop_.NowUs() + static_cast<int64_t>(random_() % kWithinUs), [this, pids, pid] {
      if (generator_->status().pids == pids) (void)kill(pid, SIGKILL);
    });
  }

  void Observe(const EngineStatus& status) {
    if (status.state != EngineState::kLost) return;
    std::fprintf(stderr, "generate: %s\n", status.why.c_str());
    if (flags_.kills < 0) std::exit(1);
  }

  const Flags& flags_;
  PollLoop loop_;
  std::mt19937_64 random_;
  int kills_ = 0;
  size_t next_ = 0;
  int32_t open_ = 0;
  std::vector<std::unique_ptr<Listener>> answers_;
  std::unique_ptr<EngineGenerator> generator_;
};

int Main(int count, char** words) {
  if (count == 2 && std::string(words[1]) == "--engine")
    return RunEngine(engine::kEngineSocket, engine::kPassedDescriptor);
  Flags flags;
  CLI::App app;
  app.add_option("FILE", flags.file)->required();
  app.add_option("--prompts", flags.prompts)->required();
  app.add_option("--new", flags.new_max);
  app.add_option("--answers", flags.answers);
  app.add_option("--sample", flags.sample);
  app.add_option("--kills", flags.kills);
  app.add_option("--first", flags.first);
  app.add_option("--min", flags.min_tokens);
  app.add_option("--forbid", flags.forbid);
  app.add_option("--cancel", flags.cancel);
  for (const ServeFlag& flag : ServeFlags()) {
    const std::string name = std::string("--") + flag.name;
    if (flag.number != nullptr) app.add_option(name, flags.serve.*flag.number);
    if (flag.text != nullptr) app.add_option(name, flags.serve.*flag.text);
  }
  CLI11_PARSE(app, count, words);
  Run(flags).Generate();
  return 0;
}

}  // namespace
}  // namespace serve::llm

int main(int count, char** words) { return serve::llm::Main(count, words); }
