#include "shim/body_content.h"

#include <string>
#include <vector>

#define XXH_INLINE_ALL
#define XXH_NO_STREAM
#include <xxhash.h>

#include "absl/container/flat_hash_map.h"
#include "shim/iterations/iterations.h"
#include "shim/iterations/tokens.h"
#include "shim/state.h"

namespace shim {
namespace {

// By the identity that the operation has in this process (shim/iterations/tokens.h).
using Contents = absl::flat_hash_map<uint32_t, uint64_t>;

uint64_t HashOfModule(uint64_t module_value) {
  ipc::ModuleHash hash;
  State::Process().modules.With(module_value, [&](Module& module) { hash = module.image; });
  return XXH3_64bits(hash.word, sizeof hash.word);
}

// The program may unload a module meanwhile: tables are asked for one object after another.
void AddKernels(Contents* contents) {
  const State& state = State::Process();
  state.functions.ForEach([&](uint64_t value, const Function*) {
    std::string name;
    uint64_t module = 0;
    state.functions.With(value, [&](Function& function) {
      name = function.name;
      module = function.module;
    });
    (*contents)[iterations::IdentityOfLaunch(value)] =
        XXH3_64bits_withSeed(name.data(), name.size(), HashOfModule(module));
  });
}

// Of a graph only the modules of its kernels are known here.
void AddGraphs(Contents* contents) {
  const State& state = State::Process();
  state.graph_pieces.ForEach([&](uint64_t value, const GraphPiece*) {
    std::vector<uint64_t> modules;
    state.graph_pieces.With(value, [&](GraphPiece& piece) {
      const base::MutexLock lock(&piece.mutex);
      modules = piece.modules;
    });
    uint64_t content = modules.size();
    for (const uint64_t module : modules)
      content = XXH3_64bits_withSeed(&content, sizeof content, HashOfModule(module));
    (*contents)[iterations::IdentityOfGraph(value)] = content;
  });
}

// The name of the device that the program's first context is on, as far as a launch has asked.
uint64_t HashOfDevice() {
  uint64_t hash = 0;
  State::Process().contexts.ForEach([&](uint64_t, const Context* context) {
    const ipc::DeviceInfo* const info = context->info.load(std::memory_order_acquire);
    if (hash == 0 && info != nullptr) hash = XXH3_64bits(info->name, sizeof info->name);
  });
  return hash;
}

}  // namespace

BodyContent& BodyContent::Process() {
  static BodyContent content;
  return content;
}

uint64_t BodyContent::NameOfLast() {
  const std::vector<iterations::Op> ops = iterations::Iterations::Process().LastIteration();
  if (ops.empty()) return 0;
  Contents contents;
  AddKernels(&contents);
  AddGraphs(&contents);
  std::vector<uint64_t> words = {HashOfDevice()};
  for (const iterations::Op& op : ops) {
    const Contents::const_iterator known = contents.find(op.identity);
    words.push_back(known == contents.end() ? op.identity : known->second);
    words.push_back(op.shape);
  }
  return XXH3_64bits(words.data(), words.size() * sizeof words[0]);
}

}  // namespace shim
