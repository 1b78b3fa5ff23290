"""Kills clients, daemon, keeper and workers at random moments, and checks who notices.

A moment is a call's number: with LANEWAY_TEST_STOP_AT=n the client stops itself (SIGSTOP) at its n-th call, and the
test kills it there. Every round kills: a victim that ends before its call is replaced by one that stops earlier.
Whoever lives must get on within a deadline. The seed is printed; --seed repeats a run.
"""
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Failure, Laneway, check, chosen, state_of, wait_for  # noqa: E402
from harness.jobs import kill_process  # noqa: E402
from harness.stepped import Working, check_806, stop  # noqa: E402

VICTIM_CALLS_MAX = 400  # `repeat` and `train` make more calls than this; the others end earlier
VICTIMS_MAX = 20  # of one round, until one of them is killed
DAEMON_ROUNDS = 20
ERROR_SECONDS_MAX = 1.0  # from a worker's end to the error of a program that had work in flight


def seeded(seed):
    return random.Random(chosen(seed))


def wait_until_stopped(program):
    """True when the program has stopped itself, False when it ended before."""
    def decided():
        if not program.running():
            return "ended"
        pid = program.pid
        return "stopped" if pid is not None and state_of(pid) == "T" else None
    return wait_for(decided, "the victim neither stopped nor ended") == "stopped"


def wait_for_status(laneway, expected, killed_at, what):
    """`status --json` must be `expected`, byte for byte, within one second of the kill."""
    while True:
        status = laneway.status()
        seconds = time.monotonic() - killed_at
        if status == expected:
            return seconds
        if seconds > 1.0:
            raise Failure(f"{what}: after {seconds:.2f} s status is\n{status}\nbefore it was\n{expected}")
        time.sleep(harness.POLL_SECONDS)


def start_victim(laneway, kind, stop_at, transport):
    command = {"repeat": [laneway.binary("repeat"), "100"], "threads": [laneway.binary("threads")],
               "memory": [laneway.binary("memory")],
               "train": [laneway.binary("train_digits"), "--epochs", "2"]}[kind]
    return laneway.spawn(command, f"--transport={transport}", LANEWAY_TEST_STOP_AT=str(stop_at))


class ClientKills:
    """Rounds in which one client is killed at a call of its life, whatever program it is."""

    def __init__(self, laneway, seed):
        self.laneway, self.numbers = laneway, seeded(seed)
        self.calls_max = {}  # by kind: a call that a victim of it did not come to
        self.kills = self.ended = 0
        self.slowest = 0.0

    def round(self, number, before):
        kind = self.numbers.choice(("repeat", "repeat", "threads", "memory", "train"))
        transport = self.numbers.choice(("ring", "ring", "ring", "zmq"))
        for _ in range(VICTIMS_MAX):
            stop_at = self.numbers.randrange(1, self.calls_max.get(kind, VICTIM_CALLS_MAX))
            what = f"round {number}: {kind} over {transport}, killed at call {stop_at}"
            if self.kill(kind, transport, stop_at, before, what):
                return
            check(kind not in ("repeat", "train"), f"{what}: LANEWAY_TEST_STOP_AT did not stop it")
            self.calls_max[kind] = max(stop_at, 2)
        raise Failure(f"round {number} killed nobody: {VICTIMS_MAX} victims ended before their call")

    def kill(self, kind, transport, stop_at, before, what):
        """Whether the victim came to its call and was killed there."""
        victim = start_victim(self.laneway, kind, stop_at, transport)
        stopped = wait_until_stopped(victim)
        killed_at = time.monotonic()
        if stopped:
            victim.kill()
        else:
            check(victim.wait().code == 0, f"{what}: it failed before\n{victim.errors()}")
        self.slowest = max(self.slowest, wait_for_status(self.laneway, before, killed_at, what))
        self.laneway.programs.remove(victim)
        self.kills += stopped
        self.ended += not stopped
        return stopped


def test_client_kills(rounds, seed):
    """Within one second of a kill, status is what it was, and a neighbour's results are what they always are."""
    with Laneway() as laneway:
        neighbour_command = [laneway.binary("connect"), "hold"]
        quiet = laneway.spawn(neighbour_command, holding=True)
        quiet.wait_for_line("open")
        wait_for(lambda: not laneway.sessions()[0]["in_flight"], "the worker sees that it rests")
        before = laneway.status()
        clients = ClientKills(laneway, seed)
        for number in range(rounds):
            clients.round(number, before)
        print(f"time: {clients.kills} kills in {rounds} rounds ({clients.ended} victims ended before theirs), "
              f"the slowest return to the earlier status took {clients.slowest:.3f} s")
        check(clients.kills == rounds, f"{rounds} rounds killed {clients.kills} clients")
        quiet.release()
        check(quiet.wait().code == 0, "the neighbour must end well")


def test_client_kills_beside_work(rounds, seed):
    """Programs that compute while others are killed print what they print alone."""
    numbers = seeded(seed)
    with Laneway() as laneway:
        commands = ([laneway.binary("train_digits"), "--epochs", "3"], [laneway.binary("repeat"), "300"])
        expected = [laneway.run(command) for command in commands]
        for result in expected:
            check(result.code == 0, f"alone\n{result}")
        workers = [laneway.spawn(command) for command in commands]
        for number in range(rounds // 2):
            victim = start_victim(laneway, "repeat", numbers.randrange(1, VICTIM_CALLS_MAX), "ring")
            check(wait_until_stopped(victim), f"round {number}: the victim did not stop")
            victim.kill()
            for index, worker in enumerate(workers):
                if not worker.running():
                    compare(worker, expected[index])
                    workers[index] = laneway.spawn(commands[index])
        for worker, result in zip(workers, expected):
            compare(worker, result)


def compare(program, expected):
    result = program.wait()
    check((result.code, harness.without_times(result.out)) == (expected.code, harness.without_times(expected.out)),
          f"{program.process.args}: its results changed\n{result}\nalone:\n{expected}")


def wait_for_progress(program, numbers):
    """Waits until the program works, then for a random short while of its work."""
    program.wait_for_line("started")
    deadline = time.monotonic() + numbers.random() * 0.1
    while time.monotonic() < deadline and program.running():
        time.sleep(0.001)


def test_daemon_kills(seed):
    """Running clients finish without the daemon, and the next one adopts keeper and workers."""
    numbers = seeded(seed)
    with Laneway() as laneway:
        command = [laneway.binary("repeat"), "150"]
        expected = laneway.run(command)
        for number in range(DAEMON_ROUNDS):
            program = laneway.spawn(command)
            wait_for_progress(program, numbers)
            keepers, workers = laneway.processes("laneway-keeper"), laneway.processes("laneway-worker")
            kill_process(laneway, "lanewayd")
            compare(program, expected)
            again = laneway.run(command)  # starts a new daemon
            check(again.code == 0 and again.out == expected.out, f"round {number}: after a new daemon\n{again}")
            check(laneway.processes("laneway-keeper") == keepers, f"round {number}: the keeper must be adopted")
            check(laneway.processes("laneway-worker") == workers, f"round {number}: the worker must be adopted")


def test_daemon_kill_keeps_sessions_known():
    """The new daemon's status shows the sessions that outlived the old one, and notices their end."""
    with Laneway() as laneway:
        held = laneway.spawn([laneway.binary("connect"), "hold"], holding=True)
        held.wait_for_line("open")
        before = [session["pid"] for session in laneway.sessions()]
        kill_process(laneway, "lanewayd")
        check(laneway.run([laneway.binary("connect")]).code == 0, "a new daemon serves")
        wait_for(lambda: [session["pid"] for session in laneway.sessions()] == before, "the session is adopted")
        held.kill()
        wait_for(lambda: laneway.sessions() == [], "the adopted session's end is noticed", 1.0)


def test_keeper_kills(seed):
    """Running clients finish with the memory they have; a new keeper adopts it and serves new allocations."""
    numbers = seeded(seed)
    with Laneway() as laneway:
        command = [laneway.binary("repeat"), "150"]
        expected = laneway.run(command)
        check(expected.code == 0, f"{expected}")
        for number in range(DAEMON_ROUNDS):
            program = laneway.spawn(command)
            wait_for_progress(program, numbers)
            killed = kill_process(laneway, "laneway-keeper")
            compare(program, expected)
            wait_for(lambda: laneway.processes("laneway-keeper") not in ([], [killed]), f"round {number}: a new keeper")
            again = laneway.run([laneway.binary("connect")])
            check(again.code == 0, f"round {number}: a new session\n{again}")


def test_worker_kills(seed):
    """Who has work in flight gets its documented error within a second, who rests by chance goes on; the next session
    gets a new worker."""
    numbers = seeded(seed)
    lost = went_on = 0
    with Laneway() as laneway:
        for number in range(DAEMON_ROUNDS):
            programs = [Working(laneway) for _ in range(2)]
            for working in programs:
                wait_for_progress(working.program, numbers)
            killed_at = time.monotonic()
            kill_process(laneway, "laneway-worker")
            for working, ended_at in Working.outcomes(programs, f"round {number}"):
                if ended_at is None:
                    went_on += 1
                    working.program.kill()
                    continue
                lost += 1
                result = working.program.wait()
                check_806(result, f"round {number}: must get 806")
                check("(806)" not in result.out, f"round {number}\n{result}")
                check(ended_at - killed_at <= ERROR_SECONDS_MAX,
                      f"round {number}: the error took {ended_at - killed_at:.2f} s")
            again = laneway.run([laneway.binary("connect")])
            check(again.code == 0, f"round {number}: the next session must get a new worker\n{again}")
            wait_for(lambda: laneway.sessions() == [], f"round {number}: no session is left", 1.0)
    print(f"{DAEMON_ROUNDS} workers killed: {lost} programs lost, {went_on} at rest went on")
    check(lost > 0, "nobody had work in flight when a worker was killed")


def test_a_client_that_hangs_after_a_loss_is_noticed():
    """What stands still neither ends nor goes on: these tests fail then."""
    with Laneway() as laneway:
        working = Working(laneway)
        stop(working.program.pid)
        kill_process(laneway, "laneway-worker")
        try:
            Working.outcomes([working], "a stopped client", 1.0)
        except Failure:
            return
        finally:
            working.program.kill()
        raise Failure("a client that stands still passed for one that goes on")


if __name__ == "__main__":
    harness.main()
