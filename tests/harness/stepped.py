"""Programs that wait for us before each of their rounds, or work without a pause and tell each round, and when they
rest: what tests of lost workers stand on.
"""
import json
import os
import signal
import time

from harness.checks import HANG_SECONDS, check, wait_for
from harness.processes import alive, state_of

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


class Working:
    """A program that works without a pause, and tells the number of each round that it has finished."""

    LINE_BYTES_MAX = 32

    def __init__(self, laneway):
        self.program = laneway.spawn([laneway.binary("repeat"), "1000000000", "tell"])
        self.program.wait_for_line("started")

    def rounds(self):
        """Those told so far. The last bytes say it: there may be many."""
        out = self.program.out.fileno()
        size = os.fstat(out).st_size
        tail = os.pread(out, 2 * self.LINE_BYTES_MAX, max(0, size - 2 * self.LINE_BYTES_MAX)).decode()
        told = [line for line in tail[:tail.rfind("\n") + 1].splitlines() if line.startswith("round ")]
        return int(told[-1].split()[1]) if told else 0

    @staticmethod
    def outcomes(programs, what, seconds=HANG_SECONDS):
        """After their worker's loss each of them must end or get on: (program, when it ended or None).

        It gets on when it tells two rounds more. The device's part of the first may have been over before the loss;
        the second needs another worker.
        """
        before = [working.rounds() for working in programs]
        found = {}

        def decided():
            for place, working in enumerate(programs):
                if place in found:
                    continue
                if not working.program.running():
                    found[place] = (working, time.monotonic())
                elif working.rounds() >= before[place] + 2:
                    found[place] = (working, None)
            return len(found) == len(programs)
        wait_for(decided, lambda: f"{what}: {len(programs) - len(found)} of {len(programs)} programs neither end nor "
                                  f"get on: {[working.rounds() for working in programs]} rounds, {before} before",
                 seconds)
        return [found[place] for place in range(len(programs))]


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
