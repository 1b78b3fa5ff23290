// Generates greedily from prompts of token ids, and prints what it generated and a hash of all
// logits' bits: the same for a request, however requests are batched.
//
//     run_model MODEL [FLAGS] PROMPT...     PROMPT: token ids, as 1,2,3
//         --batch alone|together|staggered  one after the other; all at once; each some steps later
//         --new N        tokens of each request (8)
//         --chunk N      tokens of a prompt that a step takes at most (64)
//         --sample SEED  draws tokens, some with penalties, and tells log probabilities
//         --half         keys and values as halves
//         --times        says on standard error how long each step takes
//         --logits PATH  writes the logits of each request's new tokens, as floats
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "serve/llm/model/model_file.h"
#include "serve/llm/stage/stage.h"

namespace serve::llm {
namespace {

struct Flags {
  std::string file;
  std::string batch = "together";
  std::string logits;
  int32_t new_max = 8;
  int32_t chunk = 64;
  int32_t seed = -1;  // of sampling; negative: greedy
  bool half = false;
  bool times = false;
  std::vector<std::vector<int32_t>> prompts;
};

struct Request {
  std::vector<int32_t> tokens;
  int32_t prompt = 0;    // tokens
  int32_t computed = 0;  // tokens
  std::vector<int32_t> blocks;
  std::vector<float> logits;
  std::vector<float> logprobs;
};

[[noreturn]] void Fail(const std::string& sentence) {
  std::fprintf(stderr, "run_model: %s\n", sentence.c_str());
  std::exit(1);
}

std::vector<int32_t> Numbers(const char* text) {
  std::vector<int32_t> numbers;
  const char* const end = text + std::strlen(text);
  for (const char* at = text; at < end;) {
    const std::from_chars_result read = std::from_chars(at, end, numbers.emplace_back());
    if (read.ec != std::errc() || (read.ptr != end && *read.ptr != ',')) Fail("what is this list?");
    at = read.ptr == end ? end : read.ptr + 1;
  }
  return numbers;
}

Flags Parse(int count, char** words) {
  Flags flags;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const bool has_value = word.starts_with("--") && word != "--half" && word != "--times";
    if (has_value && i + 1 >= count) Fail(word + " needs a value");
    if (word == "--half") {
      flags.half = true;
    } else if (word == "--times") {
      flags.times = true;
    } else if (word == "--sample") {
      flags.seed = Numbers(words[++i]).front();
    } else if (word == "--batch") {
      flags.batch = words[++i];
    } else if (word == "--logits") {
      flags.logits = words[++i];
    } else if (word == "--new") {
      flags.new_max = Numbers(words[++i]).front();
    } else if (word == "--chunk") {
      flags.chunk = Numbers(words[++i]).front();
    } else if (flags.file.empty()) {
      flags.file = word;
    } else {
      flags.prompts.push_back(Numbers(words[i]));
    }
  }
  if (flags.prompts.empty()) Fail("give a file and prompts");
  return flags;
}

class Generator {
 public:
  Generator(Stage* stage, const Flags& flags) : stage_(stage), flags_(flags) {
    free_ = stage->limits().blocks;
    for (const std::vector<int32_t>& prompt : flags.prompts)
      requests_.push_back({prompt, static_cast<int32_t>(prompt.size()), 0, {}, {}, {}});
  }

  void Run() {
    for (int step = 0; true; ++step) {
      std::vector<Request*> chosen = Choose(step);
      const bool done = std::all_of(requests_.begin(), requests_.end(),
                                    [this](const Request& request) { return IsDone(request); });
      if (done) return;
      if (!chosen.empty()) Step(chosen);
    }
  }

  const std::vector<Request>& requests() const { return requests_; }

 private:
  bool IsDone(const Request& request) const {
    return static_cast<int32_t>(request.tokens.size()) == request.prompt + flags_.new_max;
  }

  std::vector<Request*> Choose(int step) {
    constexpr int kStepsBetween = 3;
    std::vector<Request*> chosen;
    for (size_t i = 0; i < requests_.size(); ++i) {
      if (IsDone(requests_[i])) continue;
      const bool joined =
          flags_.batch != "staggered" || step >= kStepsBetween * static_cast<int>(i);
      if (joined) chosen.push_back(&requests_[i]);
      if (flags_.batch == "alone") break;
    }
    return chosen;
  }

  void Step(const std::vector<Request*>& chosen) {
    std::vector<BatchRequest> rows;
    std::vector<Request*> sampling;
    int32_t room = stage_->limits().rows;
    for (Request* const request : chosen) {
      const int32_t known = static_cast<int32_t>(request->tokens.size());
      const int32_t count = std::min({flags_.chunk, known - request->computed, room});
      if (count == 0) break;
      room -= count;
      const auto begin = request->tokens.begin() + request->computed;
      request->computed += count;
      // From the last block down, so that a table's numbers fall.
      while (std::ssize(request->blocks) * kernels::llm::kBlockTokens < request->computed)
        request->blocks.push_back(--free_);
      const bool samples = request->computed == known;
      BatchRequest row;
      row.tokens = {begin, begin + count};
      row.length = request->computed;
      row.blocks = request->blocks;
      rows.push_back(std::move(row));
      if (!samples) continue;
      rows.back().samples.push_back(flags_.seed >= 0 ? SamplingOf(*request) : Sampling());
      sampling.push_back(request);
    }
    const absl::StatusOr<PackedBatch> batch = PackUntrusted(rows, {}, stage_->limits());
    if (!batch.ok()) Fail(std::string(batch.status().message()));
    const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    const absl::Status submitted = stage_->Submit(*batch, {}, !flags_.times);
    if (!submitted.ok()) Fail(std::string(submitted.message()));
    const absl::StatusOr<StepResult> result = stage_->Finish();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    if (flags_.times) std::fprintf(stderr, "%d rows: %.1f ms\n", batch->rows(), took.count());
    if (!result.ok()) Fail(std::string(result.status().message()));
    const auto width =
        result->logits.empty() ? 0 : static_cast<ptrdiff_t>(stage_->limits().vocabulary);
    for (size_t i = 0; i < sampling.size(); ++i) {
      sampling[i]->tokens.push_back(result->tokens[i]);
      const auto row = result->logits.begin() + static_cast<ptrdiff_t>(i) * width;
      sampling[i]->logits.insert(sampling[i]->logits.end(), row, row + width);
      KeepLogprobs(*result, i, sampling[i]);
    }
  }

  // Each request in another way, by its prompt's length.
  Sampling SamplingOf(const Request& request) const {
    constexpr int32_t kTopLogprobs = 3;
    Sampling sampling;
    const int32_t known = static_cast<int32_t>(request.tokens.size());
    const float warmth = static_cast<float>(request.prompt % 4) * 0.5f;  // 0: greedy
    sampling.how = {warmth,
                    request.prompt % 3 == 0 ? 1.0f : 0.9f,
                    request.prompt % 5 == 0 ? 0.05f : 0.0f,
                    request.prompt % 2 * 40,
                    static_cast<uint64_t>(flags_.seed),
                    known,
                    0};
    sampling.top_logprobs = kTopLogprobs;
    if (request.prompt % 7 < 3) return sampling;
    sampling.penalties = {1.2f, 0.3f, 0.2f};
    std::map<int32_t, int32_t> generated;
    for (int32_t i = 0; i < known; ++i)
      generated[request.tokens[static_cast<size_t>(i)]] += i < request.prompt ? 0 : 1;
    for (const auto& [token, count] : generated) sampling.edits.push_back({token, count, 1, 0});
    return sampling;
  }
  // The drawn token's, and the likeliest ones'.
  static void KeepLogprobs(const StepResult& result, size_t row, Request* request) {
    if (result.logprobs.empty()) return;
    request->logprobs.push_back(result.logprobs[row]);
    const size_t top = result.top_logprobs.size() / result.logprobs.size();
    for (size_t i = row * top; i < (row + 1) * top; ++i)
      request->logprobs.push_back(result.top_logprobs[i]);
  }

  Stage* const stage_;
  const Flags& flags_;
  std::vector<Request> requests_;
  int32_t free_;
};

uint64_t HashOf(const std::vector<float>& values) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto* const bytes = reinterpret_cast<const unsigned char*>(values.data());
  for (size_t i = 0; i < values.size() * sizeof(float); ++i)
    hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

void Print(const std::vector<Request>& requests, const std::string& path) {
  std::FILE* const file = path.empty() ? nullptr : std::fopen(path.c_str(), "wb");
  for (size_t i = 0; i < requests.size(); ++i) {
    std::printf("request %zu:", i);
    for (size_t at = static_cast<size_t>(requests[i].prompt); at < requests[i].tokens.size(); ++at)
      std::printf(" %d", requests[i].tokens[at]);
    const std::vector<float>& logits = requests[i].logits;
    std::printf("\nlogits %zu: %016llx\n", i, static_cast<unsigned long long>(HashOf(logits)));
    if (!requests[i].logprobs.empty())
      std::printf("log probabilities %zu: %016llx\n", i,
                  static_cast<unsigned long long>(HashOf(requests[i].logprobs)));
    if (file != nullptr) std::fwrite(logits.data(), sizeof(float), logits.size(), file);
  }
  if (file != nullptr) std::fclose(file);
}

void Run(const Flags& flags) {
  const absl::StatusOr<ModelFile> file = ModelFile::OpenUntrusted(flags.file);
  if (!file.ok()) Fail(std::string(file.status().message()));
  const absl::StatusOr<std::unique_ptr<engine::Device>> device =
      engine::Device::Open(0, Stage::Modules());
  if (!device.ok()) Fail(std::string(device.status().message()));
  StageOptions options;
  options.kv_type = flags.half ? kernels::llm::KvType::kHalf : kernels::llm::KvType::kFloat;
  const absl::StatusOr<std::unique_ptr<Stage>> stage =
      Stage::Load(device->get(), file->model(), options);
  if (!stage.ok()) Fail(flags.file + " " + std::string(stage.status().message()));
  std::fprintf(stderr, "products of %s%d columns\n",
               (*stage)->width().multiples ? "multiples of " : "", (*stage)->width().columns);
  Generator generator(stage->get(), flags);
  generator.Run();
  Print(generator.requests(), flags.logits);
}

}  // namespace
}  // namespace serve::llm

int main(int count, char** words) { serve::llm::Run(serve::llm::Parse(count, words)); }
