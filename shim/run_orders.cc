#include "shim/run_orders.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "ipc/calls/limits.h"
#include "ipc/futex.h"
#include "ipc/tables.h"
#include "shim/client.h"
#include "shim/memory.h"
#include "shim/plugin.h"
#include "shim/proof_facts.h"
#include "shim/rebuild/images.h"
#include "shim/send.h"
#include "shim/service_thread.h"
#include "shim/state.h"

namespace shim {
namespace {

constexpr int64_t kRestUsMax = 1'000'000;
constexpr size_t kMessageWordBytes = 4;

std::unique_ptr<replay::RunProver> LoadProver() {
  void* const make = PluginFunction(replay::kProverPluginName, replay::kMakeProverSymbol);
  if (make == nullptr) return nullptr;
  return std::unique_ptr<replay::RunProver>(reinterpret_cast<replay::MakeProverFunction*>(make)());
}

void SetBits(size_t first_word, size_t end_word, std::vector<uint32_t>* bits) {
  for (size_t word = first_word; word < end_word; ++word) (*bits)[word / 32] |= 1u << (word % 32);
}

// All words of the messages but the parameters that the proof has not read.
std::vector<uint32_t> WordsOf(size_t begin, size_t end, const std::vector<size_t>& params_at,
                              const std::vector<std::vector<bool>>& read) {
  const size_t words = (end - begin) / kMessageWordBytes;
  std::vector<uint32_t> bits((words + 31) / 32);
  SetBits(0, words, &bits);
  for (size_t i = 0; i < params_at.size(); ++i) {
    for (size_t k = 0; k < read[i].size(); ++k) {
      if (read[i][k]) continue;
      const size_t word = (params_at[i] - begin) / kMessageWordBytes + k;
      bits[word / 32] &= ~(1u << (word % 32));
    }
  }
  return bits;
}

std::vector<uint32_t> WordsOfEdges(const replay::RunOrder& order) {
  std::vector<uint32_t> words;
  for (const scheduler::streams::Edge& edge : order.edges)
    words.insert(words.end(), {static_cast<uint32_t>(edge.from), static_cast<uint32_t>(edge.to)});
  return words;
}

std::vector<uint32_t> WordsOfRenames(const replay::Renaming& renaming) {
  std::vector<uint32_t> words;
  for (const replay::Rename& rename : renaming.renames)
    words.insert(words.end(),
                 {rename.launch, rename.parameter, static_cast<uint32_t>(rename.place)});
  return words;
}

// Those within the run, counted from its begin.
std::vector<uint32_t> PatchesOf(const LaunchRun& run, std::span<const ipc::ChunkPatch> patches) {
  std::vector<uint32_t> words;
  for (const ipc::ChunkPatch& patch : patches) {
    const size_t at = size_t{patch.word} * kMessageWordBytes;
    if (at < run.begin || at >= run.end) continue;
    words.insert(words.end(),
                 {static_cast<uint32_t>((at - run.begin) / kMessageWordBytes), patch.value});
  }
  return words;
}

unsigned Count(const std::vector<uint32_t>& words) { return static_cast<unsigned>(words.size()); }

// Device memory, or a variable whose address the program has asked for and passes to kernels.
std::optional<replay::Range> RangeOfAddress(uint64_t address) {
  const State& state = State::Process();
  if (const auto found = state.allocations.FindKnown(address); found.has_value()) return found;
  return state.variables.FindKnown(address);
}

std::optional<replay::Range> RangeOfVariable(uint64_t module_value, const std::string& name) {
  const Module* const module = State::Process().modules.Find(module_value);
  if (module == nullptr) return std::nullopt;
  const base::MutexLock lock(&module->variables_mutex);
  const auto found = module->variables.find(name);
  return found == module->variables.end() ? std::nullopt : std::optional(found->second);
}

// Pinned memory the program may read at any time.
bool IsMovable(uint64_t address) { return Memory::PlaceOf(address) == Memory::Place::kDevice; }

#if LANEWAY_TEST_HOOKS
// Tests count what was proven: launches, of them attributed, width, longest path, concurrent, bytes
// of scratch memory.
void Report(size_t launches, const replay::RunOrder& order) {
  const char* const path = std::getenv("LANEWAY_TEST_ORDERS");
  std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "a");
  if (file == nullptr) return;
  std::fprintf(file, "%zu %d %d %d %d %llu\n", launches, order.attributed, order.width,
               order.length, order.concurrent ? 1 : 0,
               static_cast<unsigned long long>(order.renaming.bytes));
  std::fclose(file);
}
#else
void Report(size_t, const replay::RunOrder&) {}
#endif

}  // namespace

RunOrders* RunOrders::Start(Pipeline* pipeline) {
  std::unique_ptr<replay::RunProver> prover = LoadProver();
  if (prover == nullptr) return nullptr;
  State::Process().allocations.Remember();
  State::Process().variables.Remember();
  RunOrders* const orders = new RunOrders(pipeline, std::move(prover));
  const auto work = [](void* self) -> void* { static_cast<RunOrders*>(self)->Work(); };
  if (StartServiceThread(work, orders)) return orders;
  delete orders;
  return nullptr;
}

// --- under the send lock -------------------------------------------------------------------------

OrderTrust::Facts RunOrders::Now() const {
  return {.version = ProofFacts::version(), .worker = pipeline_.generation()};
}

// A session has one scratch memory, on one device.
uint64_t RunOrders::RenameBytesLeft() const {
  const ipc::Welcome& welcome = Client::Process().connection().welcome;
  if (welcome.device_count != 1 || !ipc::Knows(welcome.tables, ipc::Op::OrderRenamedLaunches))
    return 0;
  return ipc::limits::kRenameBytesMax - rename_bytes_.load(std::memory_order_relaxed);
}

bool RunOrders::OnForget() {
  const bool take_back = trust_.OnForget();
  if (take_back) rename_bytes_.store(0, std::memory_order_relaxed);
  return take_back;
}

bool RunOrders::OnRepeat(const ipc::ChunkRepeat& repeat, std::span<const ipc::ChunkPatch> patches,
                         std::span<const std::byte> run) {
  const OrderTrust::Repeat what = trust_.OnRepeat(repeat.offset, Now());
  if (what.take_back) rename_bytes_.store(0, std::memory_order_relaxed);
  if (what.look) {
    const base::MutexLock lock(&wanted_mutex_);
    if (wanted_.size() >= kWantedMax) return what.take_back;
    wanted_.push_back({.epoch = trust_.epoch(),
                       .offset = repeat.offset,
                       .patches = {patches.begin(), patches.end()},
                       .messages = {run.begin(), run.end()}});
    asked_.fetch_add(1, std::memory_order_seq_cst);
    ipc::FutexWakeAll(&asked_);
  }
  return what.take_back;
}

// --- the thread ----------------------------------------------------------------------------------

void RunOrders::Work() {
  std::atomic<uint32_t> rest{0};
  for (;;) {
    const uint32_t asked = asked_.load(std::memory_order_seq_cst);
    Wanted wanted;
    if (!Take(&wanted)) {
      ipc::FutexWait(&asked_, asked, kUntilWokenUs);
      continue;
    }
    const int64_t begin_ns = ipc::MonotonicNs();
    Prove(wanted);
    const int64_t worked_us = (ipc::MonotonicNs() - begin_ns) / 1000;
    ipc::FutexWait(&rest, 0, std::clamp<int64_t>(4 * worked_us, 1, kRestUsMax));
  }
}

bool RunOrders::Take(Wanted* wanted) {
  const base::MutexLock lock(&wanted_mutex_);
  if (wanted_.empty()) return false;
  *wanted = std::move(wanted_.front());
  wanted_.pop_front();
  return true;
}

void RunOrders::Prove(const Wanted& wanted) {
  for (const LaunchRun& run : LaunchRunsIn(wanted.messages)) ProveRun(wanted, run);
}

// The program may unload a module meanwhile. A function or an image that is gone makes a launch
// unknown; the facts have changed by then, so the order is not given.
void RunOrders::ProveRun(const Wanted& wanted, const LaunchRun& run) {
  const uint64_t facts = ProofFacts::version();
  std::vector<replay::LaunchToProve> launches(run.launches.size());
  std::vector<std::shared_ptr<const ModuleBytes>> images;
  const State& state = State::Process();
  for (size_t i = 0; i < launches.size(); ++i) {
    const LaunchMessage& message = run.launches[i];
    replay::LaunchToProve& launch = launches[i];
    std::copy(std::begin(message.grid), std::end(message.grid), launch.grid.blocks);
    std::copy(std::begin(message.block), std::end(message.block), launch.grid.threads);
    launch.parameters =
        std::span(wanted.messages).subspan(run.places[i] + message.params_at, message.param_bytes);
    state.functions.With(state.functions.ValueOf(message.function), [&](Function& function) {
      launch.module = function.module;
      launch.kernel = function.name;
    });
    ipc::ModuleHash hash;
    state.modules.With(launch.module, [&](Module& module) { hash = module.image; });
    std::copy(std::begin(hash.word), std::end(hash.word), launch.content.begin());
    images.push_back(Images::Find(hash));
    if (images.back() != nullptr) launch.image = *images.back();
  }
  const replay::RunProof proof = prover_->Prove(
      launches,
      {.allocation = &RangeOfAddress, .variable = &RangeOfVariable, .movable = &IsMovable},
      RenameBytesLeft());
  Report(launches.size(), proof.order);
  if (proof.order.concurrent) Give(wanted, run, proof, facts);
}

void RunOrders::Give(const Wanted& wanted, const LaunchRun& run, const replay::RunProof& proof,
                     uint64_t facts) {
  const std::vector<uint32_t> edges = WordsOfEdges(proof.order),
                              renames = WordsOfRenames(proof.order.renaming),
                              patches = PatchesOf(run, wanted.patches);
  // The proof has read a launch's shape and function, too: all words count but some parameters.
  std::vector<size_t> params_at;
  for (size_t i = 0; i < run.launches.size(); ++i)
    params_at.push_back(run.places[i] + run.launches[i].params_at);
  const std::vector<uint32_t> read = WordsOf(run.begin, run.end, params_at, proof.read);
  const unsigned place = wanted.offset + static_cast<unsigned>(run.begin);
  const unsigned bytes = static_cast<unsigned>(run.end - run.begin);
  const uint32_t *const edge_data = edges.data(), *const read_data = read.data(),
                        *const patch_data = patches.data(), *const rename_data = renames.data();
  const unsigned edge_words = Count(edges), read_words = Count(read), patch_words = Count(patches),
                 rename_words = Count(renames),
                 rename_bytes = static_cast<unsigned>(proof.order.renaming.bytes);
  // The send lock is held while the facts are compared, so no repeat lies between that and the
  // order. A lost session shows at the program's own calls.
  const auto may_give = [&] {
    if (!trust_.MayGive(wanted.epoch, facts, Now())) return false;
    rename_bytes_.fetch_add(rename_bytes, std::memory_order_relaxed);
    return true;
  };
  if (renames.empty()) {
    (void)PostWith<ipc::Op::OrderLaunches>(0, may_give, place, bytes, edge_data, edge_words,
                                           read_data, read_words, patch_data, patch_words);
  } else {
    (void)PostWith<ipc::Op::OrderRenamedLaunches>(0, may_give, place, bytes, edge_data, edge_words,
                                                  read_data, read_words, patch_data, patch_words,
                                                  rename_data, rename_words, rename_bytes);
  }
}

}  // namespace shim
