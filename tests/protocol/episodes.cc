#include "tests/protocol/episodes.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#include <spdlog/spdlog.h>

#include "tests/protocol/dice.h"
#include "tests/protocol/world.h"

namespace protocol {
namespace {

constexpr size_t kTextBytes = 512;
constexpr int kFailed = 3;

struct Name {
  const char* text;
  bool Disturbances::*member;
};
constexpr Name kNames[] = {
    {"daemons", &Disturbances::daemons}, {"workers", &Disturbances::workers},
    {"keepers", &Disturbances::keepers}, {"upgrades", &Disturbances::upgrades},
    {"pauses", &Disturbances::pauses},   {"in-process", &Disturbances::in_process},
};

// What a child process tells.
struct Report {
  uint64_t episode;
  char text[kTextBytes];
};

Report* SharedReport() {
  static Report* const report = static_cast<Report*>(
      mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return report;
}

void Tell(const std::string& text) {
  std::snprintf(SharedReport()->text, kTextBytes, "%s", text.c_str());
}

// Its report when it has ended.
Report InChild(const std::function<std::string()>& work) {
  *SharedReport() = {};
  std::fflush(nullptr);
  const pid_t child = fork();
  assert(child >= 0);
  if (child == 0) {
    const std::string failure = work();
    if (!failure.empty()) Tell(failure);
    std::fflush(nullptr);
    _exit(failure.empty() ? 0 : kFailed);
  }
  int status = 0;
  while (waitpid(child, &status, 0) != child) {
  }
  Report report = *SharedReport();
  if (status != 0 && report.text[0] == 0)
    std::snprintf(report.text, kTextBytes, "the process ended with status %d", status);
  return report;
}

}  // namespace

Disturbances DisturbancesIn(const std::string& names) {
  Disturbances disturbances;
  for (const Name& name : kNames)
    disturbances.*name.member = names.find(name.text) != std::string::npos;
  return disturbances;
}

std::string NamesOf(const Disturbances& disturbances) {
  std::string names;
  for (const Name& name : kNames) {
    if (disturbances.*name.member) names += (names.empty() ? "" : ",") + std::string(name.text);
  }
  return names.empty() ? "none" : names;
}

Trace EpisodeOf(const Disturbances& disturbances, uint64_t seed, uint64_t number) {
  uint64_t state = seed;  // those of neighbours have nothing in common
  state = NextWord(&state) + number;
  state = NextWord(&state);
  Trace trace{disturbances, NextWord(&state), {}};
  trace.words.resize(kEpisodeSteps);
  for (uint64_t& word : trace.words) word = NextWord(&state);
  return trace;
}

std::string RunHere(const Trace& trace, bool verbose) {
  spdlog::set_level(spdlog::level::off);
  World world(trace.seed, trace.disturbances, verbose);
  for (size_t i = 0; i < trace.words.size() && world.failure().empty(); ++i) {
    world.Step(trace.words[i]);
  }
  if (world.failure().empty()) world.Rest();
  if (verbose && !world.failure().empty()) std::printf("%s", world.Describe().c_str());
  if (world.failure().empty()) world.Finish();
  if (verbose) std::printf("%s: %s", world.failure().c_str(), world.Describe().c_str());
  return world.failure();
}

std::string RunApart(const Trace& trace, bool verbose) {
  return InChild([&] { return RunHere(trace, verbose); }).text;
}

Trace Shrink(Trace trace, const std::string& failure) {
  for (size_t chunk = trace.words.size() / 2; chunk > 0;) {
    bool shorter = false;
    for (size_t at = 0; at < trace.words.size();) {
      Trace less = trace;
      const size_t end = std::min(at + chunk, less.words.size());
      less.words.erase(less.words.begin() + static_cast<ptrdiff_t>(at),
                       less.words.begin() + static_cast<ptrdiff_t>(end));
      if (RunApart(less) == failure) {
        trace = std::move(less);
        shorter = true;
      } else {
        at += chunk;
      }
    }
    if (!shorter || chunk > trace.words.size()) chunk /= 2;
  }
  return trace;
}

Finding Explore(const Disturbances& disturbances, uint64_t seed, uint64_t steps) {
  const uint64_t episodes = (steps + kEpisodeSteps - 1) / kEpisodeSteps;
  const Report report = InChild([&]() -> std::string {
    for (uint64_t episode = 0; episode < episodes; ++episode) {
      SharedReport()->episode = episode;
      const std::string failure = RunHere(EpisodeOf(disturbances, seed, episode), false);
      if (!failure.empty()) return failure;
    }
    return {};
  });
  return {(report.episode + 1) * kEpisodeSteps, report.episode, report.text};
}

}  // namespace protocol

// The two slowest calls at a session's begin and end decide nothing in a world: one allocates the
// pages of the session file, the other gives the heap back to the system.
extern "C" int posix_fallocate(int fd, off_t offset, off_t bytes) {
  return ftruncate(fd, offset + bytes) == 0 ? 0 : errno;
}
extern "C" int malloc_trim(size_t) noexcept { return 0; }

// An assertion of the code under test is a finding: its text goes to the parent.
extern "C" void __assert_fail(const char* assertion, const char* file, unsigned line,
                              const char*) noexcept {
  const char* const name = std::strrchr(file, '/');
  char text[protocol::kTextBytes];
  std::snprintf(text, sizeof text, "assertion %s (%s:%u)", assertion,
                name == nullptr ? file : name + 1, line);
  protocol::Tell(text);
  std::fflush(nullptr);
  std::fprintf(stderr, "%s\n", text);
  _exit(protocol::kFailed);
}
