#include "softgpu/jit/compiler.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <thread>

#include "base/mutex.h"
#include "softgpu/exec/tier.h"
#include "softgpu/jit/cache.h"
#include "softgpu/jit/describe.h"
#include "softgpu/jit/load.h"

namespace softgpu::jit {
namespace {

using exec::CompiledFunction;
using exec::FunctionCode;
using exec::Inst;
using exec::KernelCode;
using exec::Warp;

// A kernel is compiled when it has been interpreted for about as long as that takes.
constexpr uint64_t kHotNs = 20'000'000, kHotNsPerInstruction = 200'000;
constexpr size_t kInstructionsMax = 20'000;

std::atomic<uint64_t> compiled_launches{0};
std::atomic<bool> cache_wanted{true};

bool CacheWanted() { return cache_wanted.load(std::memory_order_relaxed); }

// Stands where code may be entered; where it refuses, the instruction's own handler goes on.
const Inst* Enter(const Inst* ip, Warp* w) {
  const FunctionCode& code = *w->frame->code;
  const Inst* const begin = code.code.data();
  const CompiledFunction& compiled = *code.compiled;
  const size_t pc = static_cast<size_t>(ip - begin);
  Warp* running = w;
  const Inst* next = compiled.run(begin, w, pc, compiled.handlers.data(), &running, w + 1);
  if (next != reinterpret_cast<const Inst*>(CompiledFunction::kRefused)) return next;
  w->access_form = 0;
  return compiled.handlers[pc](ip, w);
}

thread_local bool compiles_here = false;

// The plugin with LLVM in it.
class Plugin {
 public:
  static Plugin& Get(const std::string& directory = "") {
    static Plugin* const plugin = new Plugin(directory);
    return *plugin;
  }

  bool Compile(const Program& program, Compiled* out, std::string* error) {
    base::MutexLock lock(&mutex_);
    if (ending_) {
      *error = "the process ends";
      return false;
    }
    if (!LoadLocked(error)) return false;
    compiles_here = true;
    const bool done = compile_(program, out, error);
    compiles_here = false;
    return done;
  }

  bool Load(std::string* error) {
    base::MutexLock lock(&mutex_);
    return LoadLocked(error);
  }

  const std::string& path() const { return path_; }

 private:
  bool LoadLocked(std::string* error) REQUIRES(mutex_) {
    if (compile_ != nullptr) return true;
      // Deep: the program may have another LLVM in its global scope. Sanitizers refuse that.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    constexpr int kDeep = 0;
#else
    constexpr int kDeep = RTLD_DEEPBIND;
#endif
    void* library = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL | kDeep);
    if (library == nullptr) {
      *error = dlerror();
      return false;
    }
    compile_ = reinterpret_cast<CompileFunction>(dlsym(library, kCompileName));
    if (compile_ == nullptr) *error = path_ + " is of another version";
    if (compile_ == nullptr) return false;
    const OutlivesExitFunction outlives =
        reinterpret_cast<OutlivesExitFunction>(dlsym(library, kOutlivesExitName));
    outlives_exit_ = outlives != nullptr && outlives();
    if (!outlives_exit_) AtExit();  // after LLVM's own destructors: so it runs before them
    return true;
  }

  static void AtExit() {
    std::atexit([] { Get().End(); });
  }

  // The process exits: a compilation that still ran would meet LLVM half destroyed, unless it is
  // ours alone. One that a forked child's parent runs is not the child's, and LLVM exits itself
  // where it gives up.
  void End() {
    if (compiles_here || outlives_exit_ || getpid() != process_) return;
    base::MutexLock lock(&mutex_);
    ending_ = true;
  }

  explicit Plugin(std::string directory) {
    Dl_info info;
    if (directory.empty() && dladdr(reinterpret_cast<void*>(Enter), &info) != 0) {
      const std::string file = info.dli_fname;
      directory = file.substr(0, file.rfind('/'));
    }
    path_ = directory + "/libsoftgpu_jit.so";
  }

  std::string path_;
  base::Mutex mutex_;
  CompileFunction compile_ GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> outlives_exit_{false};
  bool ending_ GUARDED_BY(mutex_) = false;
  const pid_t process_ = getpid();
};

void Say(const std::string& what) {
  static const bool wanted = std::getenv("LANEWAY_SOFTGPU_JIT_LOG") != nullptr;
  if (wanted) std::fprintf(stderr, "softgpu: %s\n", what.c_str());
}

// A kernel on its way through the compiler: its functions, described, and what became of them.
struct Build {
  std::string kernel;
  std::vector<Program> programs;
  std::vector<Compiled> compiled;  // no entries: interpret this one
  std::atomic<bool> ready{false};
};

std::shared_ptr<Build> Prepare(const KernelCode& code, bool linear) {
  std::shared_ptr<Build> build = std::make_shared<Build>();
  build->kernel = code.kernel->name();
  for (const std::unique_ptr<FunctionCode>& function : code.functions)
    build->programs.push_back(Describe(*function, linear));
  build->compiled.resize(build->programs.size());
  return build;
}

// Finds every function of the build on disk.
bool FindCached(Build* build, const std::string& directory) {
  if (directory.empty()) return false;
  for (size_t n = 0; n < build->programs.size(); ++n) {
    const std::string name = CacheName(build->programs[n], Plugin::Get().path());
    if (!LoadCached(directory, name, &build->compiled[n])) return false;
  }
  return true;
}

void CompileBuild(Build* build, const std::string& directory) {
  for (size_t n = 0; n < build->programs.size(); ++n) {
    const Program& program = build->programs[n];
    std::string error = "too many instructions";
    Compiled compiled;
    if (program.code.size() > kInstructionsMax ||
        !Plugin::Get().Compile(program, &compiled, &error)) {
      Say("kernel " + build->kernel + " is interpreted: " + error);
      continue;
    }
    if (!directory.empty())
      StoreCached(directory, CacheName(program, Plugin::Get().path()), compiled);
    build->compiled[n] = std::move(compiled);
  }
}

void Attach(const Compiled& compiled, FunctionCode* code) {
  Loaded loaded;
  std::string error;
  if (compiled.entries.empty()) return;
  if (!LoadObject(compiled.object, kEntryName, &loaded, &error)) return Say(error);
  std::unique_ptr<CompiledFunction> function = std::make_unique<CompiledFunction>();
  function->run = reinterpret_cast<CompiledFunction::Run>(loaded.entry);
  function->memory = loaded.memory;
  for (const Inst& inst : code->code) function->handlers.push_back(inst.run);
  for (uint32_t n : compiled.entries) {
    if (n < code->code.size()) code->code[n].run = Enter;
  }
  code->compiled = std::move(function);
}

// A translation of the kernel that runs compiled where it can.
std::shared_ptr<const KernelCode> MakeTwin(const ptx::KernelImpl& kernel, const Build& build) {
  const std::shared_ptr<KernelCode> code = exec::TranslateAnew(kernel);
  for (size_t n = 0; n < code->functions.size(); ++n)
    Attach(build.compiled[n], code->functions[n].get());
  return code;
}

// Compiles one kernel after another on a thread that gives way to all others.
class Queue {
 public:
  void Add(std::shared_ptr<Build> build) {
    base::MutexLock lock(&mutex_);
    if (!started_) {
      sigset_t all, before;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
      std::thread([this] { Serve(); }).detach();
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      started_ = true;
    }
    builds_.push_back(std::move(build));
    wake_.NotifyOne();
  }

 private:
  void Serve() {
    std::string error;
    Plugin::Get().Load(&error);  // at full priority: whoever loads something else waits for it
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);
    base::MutexLock lock(&mutex_);
    for (;;) {
      while (builds_.empty()) wake_.Wait(&mutex_);
      const std::shared_ptr<Build> build = builds_.front();
      builds_.pop_front();
      lock.Unlock();
      CompileBuild(build.get(), CacheWanted() ? CacheDirectory() : "");
      build->ready.store(true, std::memory_order_release);
      lock.Lock();
    }
  }

  base::Mutex mutex_;
  base::CondVar wake_;
  std::deque<std::shared_ptr<Build>> builds_ GUARDED_BY(mutex_);
  bool started_ GUARDED_BY(mutex_) = false;
};

uint64_t HotNs(const KernelCode& code) {
  size_t instructions = 0;
  for (const std::unique_ptr<FunctionCode>& function : code.functions)
    instructions += function->code.size();
  return kHotNs + instructions * kHotNsPerInstruction;
}

// Whether neighbouring lanes have neighbouring %tid.x, and one %tid.y and %tid.z.
bool IsLinear(const Launch& launch) {
  return launch.block.x % exec::kLanes == 0 || (launch.block.y == 1 && launch.block.z == 1);
}

class Tiers final : public exec::Compiler {
 public:
  explicit Tiers(Executor executor) : executor_(executor) {}

  std::shared_ptr<const KernelCode> Choose(const std::shared_ptr<const KernelCode>& code,
                                           const Launch& launch) override {
    const bool linear = IsLinear(launch);
    base::MutexLock lock(&mutex_);
    Tier& tier = TierOf(code, linear);
    if (tier.twin == nullptr && !tier.looked) Look(*code, linear, &tier);
    if (tier.twin == nullptr && tier.build != nullptr &&
        tier.build->ready.load(std::memory_order_acquire)) {
      tier.twin = MakeTwin(*code->kernel, *tier.build);
      tier.build = nullptr;
    }
    if (tier.twin == nullptr) return code;
    compiled_launches.fetch_add(1, std::memory_order_relaxed);
    return tier.twin;
  }

  void Ran(const std::shared_ptr<const KernelCode>& code, const Launch& launch,
           uint64_t nanoseconds) override {
    const bool linear = IsLinear(launch);
    base::MutexLock lock(&mutex_);
    Tier& tier = TierOf(code, linear);
    tier.nanoseconds += nanoseconds;
    if (executor_ != Executor::kAuto || tier.asked || tier.nanoseconds < HotNs(*code)) return;
    tier.asked = true;
    tier.build = Prepare(*code, linear);
    queue_.Add(tier.build);
  }

 private:
  // A kernel at one kind of block shape.
  struct Tier {
    std::weak_ptr<const KernelCode> code;
    uint64_t nanoseconds = 0;
    bool looked = false, asked = false;
    std::shared_ptr<Build> build;
    std::shared_ptr<const KernelCode> twin;
  };

  // The first launch: what the cache has, or, for tests, the compiler at once.
  void Look(const KernelCode& code, bool linear, Tier* tier) {
    tier->looked = true;
    const std::string directory = CacheWanted() ? CacheDirectory() : "";
    const std::shared_ptr<Build> build = Prepare(code, linear);
    if (!FindCached(build.get(), directory)) {
      if (executor_ == Executor::kAuto) return;
      CompileBuild(build.get(), directory);
    }
    tier->twin = MakeTwin(*code.kernel, *build);
  }

  Tier& TierOf(const std::shared_ptr<const KernelCode>& code, bool linear) REQUIRES(mutex_) {
    Tier& tier = tiers_[{code.get(), linear}];
    // Another kernel's code may come to lie where a lost one's did.
    if (tier.code.lock() != code) {
      for (auto it = tiers_.begin(); it != tiers_.end();) {
        const bool lost = it->second.code.expired() && &it->second != &tier;
        it = lost ? tiers_.erase(it) : std::next(it);
      }
      tier = Tier();
      tier.code = code;
    }
    return tier;
  }

  const Executor executor_;
  Queue queue_;
  base::Mutex mutex_;
  std::map<std::pair<const KernelCode*, bool>, Tier> tiers_ GUARDED_BY(mutex_);
};

}  // namespace

void UseExecutor(Executor executor, bool cache, const std::string& directory) {
  Plugin::Get(directory);
  cache_wanted = cache;
  // Launches on other threads may still use the one before: it stays.
  static std::map<Executor, std::unique_ptr<Tiers>>* const tiers =
      new std::map<Executor, std::unique_ptr<Tiers>>();
  if (executor == Executor::kInterpreter) return exec::SetCompiler(nullptr);
  std::unique_ptr<Tiers>& chosen = (*tiers)[executor];
  if (chosen == nullptr) chosen = std::make_unique<Tiers>(executor);
  exec::SetCompiler(chosen.get());
}

bool CompilerWorks(std::string* error) { return Plugin::Get().Load(error); }

uint64_t CompiledLaunches() { return compiled_launches.load(std::memory_order_relaxed); }

}  // namespace softgpu::jit
