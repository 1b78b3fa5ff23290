"""Sessions that outlive their workers: killed and poisoned workers at random moments, moves, quarantine.

A program is at rest when everything that was taken of it is complete on the device. Whoever is at rest when its worker
goes, and is called recoverable by `laneway ps`, must finish with the bytes that it has alone; whoever is not gets 806.
The seed is printed; --seed repeats a run.
"""
import json
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import harness  # noqa: E402 (lies beside us)
from harness import Laneway, alive, check, wait_for  # noqa: E402
from kills import seeded  # noqa: E402

ROUNDS = 40  # of a stepped program


class Stepped:
    """rounds, which waits for us before each of its rounds."""

    def __init__(self, laneway, memory, rounds=ROUNDS, *options):
        self.program = laneway.spawn([laneway.binary("rounds"), str(rounds), memory, "step"], *options, holding=True)
        self.round = 0
        self.program.wait_for_line("started")

    def step(self):
        self.send()
        self.wait()

    def send(self):
        os.write(self.program.process.stdin.fileno(), b"x")

    def wait(self):
        wait_for(lambda: f"round {self.round}:" in self.program.output() or not self.program.running(),
                 f"round {self.round} of {self.program.process.args}", 30)
        check(f"round {self.round}:" in self.program.output(), f"it ended\n{self.program.errors()}")
        self.round += 1

    def finish(self, expected):
        self.program.release()
        result = self.program.wait()
        check((result.code, result.out) == (0, expected.out), f"its results changed\n{result}\nalone:\n{expected}")


def at_rest(laneway, count):
    """Waits until `count` sessions run and are at rest, and returns them."""
    def settled():
        sessions = laneway.sessions()
        rest = [s for s in sessions if s["state"] == "running" and s["recoverable"] and not s["in_flight"]]
        return sessions if len(rest) == count else None
    return wait_for(settled, f"{count} sessions at rest: {laneway.sessions()}")


def kill_worker(laneway):
    for pid in laneway.processes("laneway-worker"):
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda pid=pid: not alive(pid), "the worker is gone")


def test_a_program_at_rest_outlives_its_worker():
    """Memory, streams, an event and a kernel are there again; twice, as the successor may go, too."""
    with Laneway() as laneway:
        for memory in ("device", "pinned"):
            expected = laneway.bare([laneway.binary("rounds"), "6", memory])
            stepped = Stepped(laneway, memory, 6)
            for number in range(6):
                at_rest(laneway, 1)
                if number in (2, 3, 5):
                    kill_worker(laneway)
                stepped.step()
            stepped.finish(expected)
            wait_for(lambda: laneway.sessions() == [], "the session's end is noticed")
        devices = json.loads(laneway.status())["devices"]
        check(devices[0]["used_bytes"] == 0, f"memory is left: {devices}")


def test_killed_workers(rounds, seed):
    """Programs at rest and at work; the worker is killed at a random moment of theirs."""
    numbers = seeded(seed)
    with Laneway() as laneway:
        expected = {memory: laneway.bare([laneway.binary("rounds"), "3", memory]) for memory in ("device", "pinned")}
        for number in range(rounds):
            memories = [numbers.choice(("device", "pinned")) for _ in range(3)]
            resting = [Stepped(laneway, memory, 3) for memory in memories]
            for stepped in resting:
                stepped.step()
            before = at_rest(laneway, 3)
            busy = laneway.spawn([laneway.binary("repeat"), "1000000000"])
            busy.wait_for_line("started")
            deadline = time.monotonic() + numbers.random() * 0.05
            while time.monotonic() < deadline:
                time.sleep(0.001)
            kill_worker(laneway)
            for stepped, memory in zip(resting, memories):
                stepped.step()
                stepped.step()
                stepped.finish(expected[memory])
            check_busy(busy, number)
            check(len(before) == 3, f"{before}")
            wait_for(lambda: laneway.sessions() == [], f"round {number}: no session is left", 5)


def check_busy(busy, number):
    """It ended with its documented code, or was at rest by chance and goes on."""
    try:
        result = busy.wait(2) if not busy.running() else None
    except harness.Failure:
        result = None
    if result is None:
        deadline = time.monotonic() + 1
        while busy.running() and time.monotonic() < deadline:
            time.sleep(0.01)
        if busy.running():
            busy.kill()
            return
        result = busy.wait()
    check(result.code == 1 and ("(806)" in result.err or "error 806" in result.err), f"round {number}\n{result}")


def test_poisoned_workers(rounds, seed):
    """A neighbour's fault ends the worker: the culprit gets its own code, programs at rest go on."""
    seeded(seed)
    with Laneway() as laneway:
        expected = laneway.bare([laneway.binary("rounds"), "3", "device"])
        for number in range(max(rounds // 4, 2)):
            resting = [Stepped(laneway, "device", 3) for _ in range(2)]
            for stepped in resting:
                stepped.step()
            at_rest(laneway, 2)
            culprit = laneway.run([laneway.binary("illegal_address")])
            check("700" in culprit.out + culprit.err, f"round {number}: the culprit's own code\n{culprit}")
            for stepped in resting:
                stepped.step()
                stepped.step()
                stepped.finish(expected)
            wait_for(lambda: laneway.sessions() == [], f"round {number}: no session is left", 5)


def test_a_second_offence_quarantines():
    """Who has ended two workers runs in one of its own from then on, and harms nobody."""
    with Laneway() as laneway:
        for _ in range(2):
            laneway.run([laneway.binary("illegal_address")])
        neighbour = Stepped(laneway, "device", 3)
        neighbour.step()
        shared = laneway.processes("laneway-worker")
        culprit = laneway.run([laneway.binary("illegal_address")])
        check("700" in culprit.out + culprit.err, f"{culprit}")
        check(set(shared) & set(laneway.processes("laneway-worker")), "the shared worker must live on")
        neighbour.step()
        neighbour.step()
        neighbour.finish(laneway.bare([laneway.binary("rounds"), "3", "device"]))


def test_contained_programs_have_workers_of_their_own():
    with Laneway() as laneway:
        expected = laneway.bare([laneway.binary("rounds"), "2", "device"])
        both = [Stepped(laneway, "device", 2, "--mode=contained") for _ in range(2)]
        sessions = laneway.sessions()
        check(len({s["worker"] for s in sessions}) == 2 and all(s["contained"] for s in sessions), f"{sessions}")
        for stepped in both:
            stepped.step()
            stepped.step()
            stepped.finish(expected)
        wait_for(lambda: len(laneway.processes("laneway-worker")) <= 1, "their workers end with them")


def test_upgrade_moves_running_programs():
    """Eight programs that work and rest by themselves notice nothing; the old worker ends."""
    with Laneway() as laneway:
        command = [laneway.binary("rounds"), "250", "device"]
        expected = laneway.bare(command)
        programs = [laneway.spawn(command) for _ in range(8)]
        for program in programs:
            program.wait_for_line("started")
        before = laneway.processes("laneway-worker")
        result = laneway.command("upgrade-worker", seconds=60)
        check(result.code == 0, f"{result}")
        print(result.out.strip())
        check(1 not in {s["worker"] for s in laneway.sessions()}, "they must be elsewhere")
        for program in programs:
            ended = program.wait()
            check((ended.code, ended.out) == (0, expected.out), f"its results changed\n{ended}\nalone:\n{expected}")
        wait_for(lambda: not set(before) & set(laneway.processes("laneway-worker")), "the old worker ends")


def test_what_cannot_move_says_so():
    with Laneway() as laneway:
        held = laneway.spawn([laneway.binary("connect"), "hold"], "--transport=zmq", holding=True)
        held.wait_for_line("open")
        session = laneway.sessions()[0]
        check(not session["recoverable"] and "ZeroMQ" in session["obstacle"], f"{session}")
        check("no: " in laneway.command("ps").out, "ps must say what stands against it")
        held.release()
        check(held.wait().code == 0, "it ends well")


if __name__ == "__main__":
    harness.main()
