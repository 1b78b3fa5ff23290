"""Programs that wait for us before each of their rounds, and when they rest: what tests of lost workers stand on.

It is a module beside the tests; whoever imports it has harness.py on its path.
"""
import json
import os
import signal

from harness import alive, check, state_of, wait_for

STEPS = 40  # of a stepped program, unless it is told otherwise


class Stepped:
    """A program that waits for us before each of its rounds. `expected`: what it prints alone."""

    def __init__(self, laneway, memory, expected, rounds=STEPS, *options, name="rounds"):
        self.program = laneway.spawn([laneway.binary(name), str(rounds), memory, "step"], *options, holding=True)
        self.memory, self.rounds, self.expected = memory, rounds, expected
        self.round = 0
        self.program.wait_for_line("started")

    def step(self):
        self.send()
        self.wait()

    def send(self, byte=b"x"):
        try:
            os.write(self.program.process.stdin.fileno(), byte)
        except BrokenPipeError:
            pass  # it has ended, which answers() tells

    def wait(self):
        check(self.answers(), f"it ended\n{self.program.errors()}")

    def answers(self):
        """Waits for the end of the round: True, with the right bytes, unless the program ended in it."""
        def line():
            return [text for text in self.program.output().splitlines() if text.startswith(f"round {self.round}:")]
        wait_for(lambda: line() or not self.program.running(), f"round {self.round} of {self.program.process.args}")
        found = line()
        check(not found or found[0] in self.expected.out, f"{found} is not in\n{self.expected}")
        self.round += 1
        return bool(found)

    def goes_on(self):
        self.send()
        return self.answers()

    def goes_on_to_its_end(self):
        while self.round < self.rounds:
            self.step()
        self.finish()

    def finish(self):
        self.program.release()
        result = self.program.wait()
        check((result.code, result.out) == (0, self.expected.out),
              f"its results changed\n{result}\nalone:\n{self.expected}")


def alone(laneway, memory, rounds=STEPS, name="rounds"):
    result = laneway.bare([laneway.binary(name), str(rounds), memory])
    check(result.code == 0, f"{result}")
    return result


def live(laneway):
    return json.loads(laneway.command("top", "--json").out)["sessions"][0]


def in_a_lane(laneway, memory):
    """A program some rounds after its iterations were found: it places what lives for one in its lane."""
    stepped = Stepped(laneway, memory, alone(laneway, memory, STEPS))
    for _ in range(STEPS // 2):
        stepped.step()
    wait_for(lambda: live(laneway)["ephemeral_bytes"] > 0, lambda: f"it uses a lane: {live(laneway)}")
    return stepped


def rests(session):
    return session["state"] == "running" and session["recoverable"] and not session["in_flight"]


def at_rest(laneway, count):
    """Waits until `count` sessions run and are at rest, and returns them."""
    def settled():
        sessions = laneway.sessions()
        return sessions if len([s for s in sessions if rests(s)]) == count else None
    return wait_for(settled, f"{count} sessions at rest: {laneway.sessions()}")


def rests_or_is_lost(laneway):
    """Waits for either of the one session that runs: whether it rests."""
    def settled():
        sessions = laneway.sessions()
        return sessions if len(sessions) == 1 and (rests(sessions[0]) or sessions[0]["state"] == "lost") else None
    return rests(wait_for(settled, f"a session at rest or lost: {laneway.sessions()}")[0])


def kill_worker(laneway):
    for pid in laneway.processes("laneway-worker"):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue  # the worker of a program of its own, which has just ended with it
        wait_for(lambda pid=pid: not alive(pid), "the worker is gone")


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: state_of(pid) == "T", "the worker stands still")


def check_806(result, what):
    check(result.code == 1 and ("(806)" in result.err or "error 806" in result.err), f"{what}\n{result}")
