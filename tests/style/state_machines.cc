// Prints docs/state_machines.md from the code. A machine is an enumeration without gaps, or a type
// for which All() is defined below, and a function that says whether a move is legal. One more
// machine is one more Print() in main(). The turns of a session in its lane also depend on facts
// of other parts, so PrintLaneTurns() tries all of them and prints a table.
//
//   build/tests/state_machines > docs/state_machines.md
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/control/session_lifecycle.h"
#include "daemon/control/worker_state.h"
#include "daemon/worker/lane_turns.h"
#include "ipc/turn.h"
#include "scheduler/place.h"

namespace {

template <class State>
struct Named {
  State state;
  std::string name;
};

// "kHost" for Residence::kHost, as the compiler spells it; empty for a number without a name.
template <auto kValue>
std::string NameOf() {
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(text.find("kValue = ") + 9);
  text = text.substr(0, text.find_first_of(";]"));
  return text[0] == '(' ? "" : std::string(text.substr(text.rfind(':') + 1));
}

constexpr int kStatesMax = 32;

// The enumerators from 0 on. An enumeration of states has no gaps.
template <class State>
std::vector<Named<State>> All(State) {
  std::vector<Named<State>> all;
  [&]<int... kNumber>(std::integer_sequence<int, kNumber...>) {
    ((NameOf<static_cast<State>(kNumber)>().empty()
          ? void()
          : all.push_back({static_cast<State>(kNumber), NameOf<static_cast<State>(kNumber)>()})),
     ...);
  }
  (std::make_integer_sequence<int, kStatesMax>());
  return all;
}

std::vector<Named<scheduler::Place>> All(scheduler::Place) {
  std::vector<Named<scheduler::Place>> all;
  for (const uint32_t lane_saved : {0u, 1u}) {
    for (const Named<scheduler::Residence>& residence : All(scheduler::Residence())) {
      const scheduler::Place place{residence.state, lane_saved};
      if (!scheduler::Valid(place)) continue;
      all.push_back({place, residence.name + (lane_saved != 0 ? "WithLane" : "")});
    }
  }
  return all;
}

// "GoingOut" for kGoingOut: a state of the diagram.
std::string Label(const std::string& name) { return name.substr(1); }

struct Words {
  const char* title;
  const char* text;
  const char* table;  // the function that says which moves are legal, and its header
};

// `first`: the state in which the machine begins.
template <class State>
void Print(const Words& words, State first, bool (*legal)(State from, State to)) {
  std::printf("\n## %s\n%s\nThe table is %s.\n\n```mermaid\nstateDiagram-v2\n", words.title,
              words.text, words.table);
  const std::vector<Named<State>> all = All(State());
  for (const Named<State>& from : all) {
    if (from.state == first) std::printf("    [*] --> %s\n", Label(from.name).c_str());
    for (const Named<State>& to : all) {
      if (legal(from.state, to.state))
        std::printf("    %s --> %s\n", Label(from.name).c_str(), Label(to.name).c_str());
    }
  }
  std::printf("```\n");
}

// All facts of other parts, one after the other. False when there are no more.
bool NextFacts(worker::LaneFacts* facts, unsigned* number) {
  using worker::LaneFacts;
  constexpr bool LaneFacts::*kFacts[] = {
      &LaneFacts::uses_lane, &LaneFacts::inside,         &LaneFacts::turn_is_over,
      &LaneFacts::pinned,    &LaneFacts::client_is_done, &LaneFacts::waits_at_the_end,
      &LaneFacts::iterates,  &LaneFacts::device_is_done, &LaneFacts::on_host,
      &LaneFacts::with_lane, &LaneFacts::takes_memory};
  constexpr unsigned kGates = 3;
  unsigned rest = (*number)++;
  facts->gate = static_cast<worker::GateState>(rest % kGates);
  rest /= kGates;
  for (bool LaneFacts::*const fact : kFacts) {
    facts->*fact = rest % 2 != 0;
    rest /= 2;
  }
  return rest == 0;
}

const char* NameOf(bool at_boundary) { return at_boundary ? "between" : "in one"; }

void PrintLaneTurns() {
  std::printf(
      "\n## When a session leaves its lane\nA session is between two iterations or in one. For "
      "each "
      "event: where the session may be afterwards, and what\n`LaneExecutor` may have to do, over "
      "all "
      "facts of other parts.\nThe table is `Step()` in `daemon/worker/lane_turns.cc`.\n\n"
      "| before | event | afterwards | actions |\n|---|---|---|---|\n");
  for (const bool at_boundary : {true, false}) {
    for (const Named<worker::LaneEvent>& event : All(worker::LaneEvent())) {
      std::set<bool> after;
      std::set<worker::LaneAction> actions;
      worker::LaneFacts facts;
      for (unsigned number = 0; NextFacts(&facts, &number);) {
        worker::LaneState state{.at_boundary = at_boundary};
        actions.insert(worker::Step(&state, event.state, facts));
        after.insert(!state.at_boundary);
      }
      std::string places, names;
      for (const bool is_in : after)
        places += (places.empty() ? "" : ", ") + std::string(NameOf(!is_in));
      for (const Named<worker::LaneAction>& action : All(worker::LaneAction())) {
        if (actions.count(action.state) != 0)
          names += (names.empty() ? "" : ", ") + Label(action.name);
      }
      std::printf("| %s | %s | %s | %s |\n", NameOf(at_boundary), Label(event.name).c_str(),
                  places.c_str(), names.c_str());
    }
  }
}

}  // namespace

int main() {
  std::printf(
      "# State machines\n\n"
      "Made from the tables in the code by `build/tests/state_machines`; a test fails when this "
      "page is stale.\nEvery move that is drawn is legal, and no other is.\n");
  Print<scheduler::Place>({"Where a session's memory is",
                           "On the device, on the host, or on its way. `WithLane`: the live memory "
                           "of its lane goes along,\nbecause the session is inside an iteration.",
                           "`Legal()` in `scheduler/place.h`"},
                          scheduler::Place(), scheduler::Legal);
  Print<control::Phase>(
      {"How far a session is, in lanewayd", "Any of these may be a session's last phase.",
       "`IsLegal()` in `daemon/control/session_lifecycle.cc`"},
      control::Phase::kQueued, control::IsLegal);
  Print<control::WorkerState>(
      {"How far a worker is, in lanewayd",
       "Any of these may be a worker's last state: its process may end at any time.\nAn adopted "
       "worker begins with `Listing`.",
       "`IsLegal()` in `daemon/control/worker_state.cc`"},
      control::WorkerState::kStarting, control::IsLegal);
  PrintLaneTurns();
  Print<ipc::Turn>(
      {"A session's turn in its lane",
       "Absent: the memory is on the host. Returning: the lane is kept for it. Whether "
       "the session has work\nis no part of its turn.",
       "`kTurnRules` in `ipc/turn.h`"},
      ipc::Turn::kOutside, ipc::IsLegal);
}
