"""Whatever happens to a session while its iterations are replayed: kills of all kinds, moves, and memory that goes.

Each test sees by the session's own figures that launches are replayed before, and again after where the session goes
on. The bytes are those of the bare device. The seed is printed; --seed repeats a run.
"""
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, check, chosen, wait_for  # noqa: E402
from harness.jobs import kill_process, of_job, session_of  # noqa: E402
from harness.processes import state_of  # noqa: E402
from harness.stepped import Stepped, alone, at_rest, check_806, kill_worker, rests  # noqa: E402

ALWAYS = "--replay=always"
WAYS = ("device", "lane", "last", "scratch")
ROUNDS = 1000  # of a program that outlives what happens to it
VICTIM_CALLS = (1000, 4000)  # messages of a client, most of them in runs that repeat


class Replaying(Stepped):
    """A program that waits before each round; a round is replayed, whatever has happened before it."""

    def __init__(self, laneway, way, rounds):
        super().__init__(laneway, way, alone(laneway, way, rounds, "replayed"), rounds, ALWAYS, name="replayed")
        self.laneway = laneway
        self.step()

    def replayed(self):
        return session_of(self.laneway, self.program)["replay"]["replayed"]

    def step(self):
        before = self.replayed()
        super().step()
        check(self.round == self.rounds or self.replayed() > before, f"nothing of round {self.round} was replayed: {self.laneway.sessions()}")


class Running:
    """The same program without a pause, with the lines that it prints alone."""

    def __init__(self, laneway, way, expected, **environment):
        self.laneway, self.expected = laneway, expected
        rounds = str(expected.out.count("round "))
        self.program = laneway.spawn([laneway.binary("replayed"), rounds, way], ALWAYS, **environment)

    def replayed(self):
        session = session_of(self.laneway, self.program)
        return 0 if session is None else session["replay"]["replayed"]

    def replays(self, what):
        """Waits until more is replayed than is now. What has ended meanwhile fails."""
        before = self.replayed()

        def more():
            check(self.program.running(), f"{what}: it ended too early\n{self.program.errors()}")
            return self.replayed() > before
        wait_for(more, lambda: f"{what}: nothing is replayed: {self.laneway.sessions()}")

    def check_lines(self, what):
        """What it has printed so far is what it prints alone."""
        said = self.program.output()
        said = said[:said.rfind("\n") + 1]
        check(self.expected.out.startswith(said), f"{what}: its results changed\n{said}\nalone:\n{self.expected}")

    def finish(self, what):
        result = self.program.wait()
        check((result.code, result.out) == (0, self.expected.out), f"{what}: its results changed\n{result}")


def expected_of(laneway, way, rounds=ROUNDS):
    return alone(laneway, way, rounds, "replayed")


def steer(laneway, command, program):
    result = laneway.command(command, str(session_of(laneway, program)["job"]))
    check(result.code == 0, f"{command}\n{result}")


# --- kills ---------------------------------------------------------------------------------------


def test_a_rebuilt_session_replays_again(rounds, seed):
    """Workers are killed while programs rest: each goes on, and the new worker replays."""
    numbers = random.Random(chosen(seed))
    with Laneway() as laneway:
        programs = [Replaying(laneway, way, rounds + 4) for way in WAYS]
        for number in range(rounds):
            at_rest(laneway, len(programs))
            if numbers.random() < 0.7:
                kill_worker(laneway)
            for program in programs:
                program.step()
        for program in programs:
            program.goes_on_to_its_end()
        check(not laneway.crashes(), f"{laneway.crashes()}")


def test_workers_are_killed_in_the_middle_of_a_replay(rounds, seed):
    """Who has work in flight gets 806; until then, and where it goes on, every line is right."""
    numbers = random.Random(chosen(seed))
    lost = 0
    with Laneway() as laneway:
        expected = {way: expected_of(laneway, way) for way in WAYS}
        for number in range(rounds):
            way, what = numbers.choice(WAYS), f"round {number}"
            running = Running(laneway, way, expected[way])
            running.program.wait_for_line("started")
            for _ in range(1 + numbers.randrange(4)):  # until some moment
                running.replays(what)
            kill_worker(laneway)
            before = running.replayed()
            wait_for(lambda r=running, b=before: not r.program.running() or r.replayed() > b,
                     lambda: f"{what}: it neither ends nor goes on: {laneway.sessions()}")
            running.check_lines(what)
            if running.program.running():
                running.program.kill()
            else:
                check_806(running.program.wait(), what)
                lost += 1
            wait_for(lambda: laneway.sessions() == [], f"{what}: its session ends")
        check(not laneway.crashes(), f"{laneway.crashes()}")
    print(f"{rounds} workers killed, {lost} programs lost")


def test_replay_goes_on_without_lanewayd(rounds, seed):
    """The next lanewayd finds the figures where they are, and they grow."""
    with Laneway() as laneway:
        expected = expected_of(laneway, "device", 2 * ROUNDS)
        for number in range(max(rounds // 4, 2)):
            running = Running(laneway, "device", expected)
            running.program.wait_for_line("started")
            running.replays(f"round {number}")
            before = running.replayed()
            kill_process(laneway, "lanewayd")
            laneway.start_daemon()
            wait_for(lambda r=running: session_of(laneway, r.program) is not None, "the session is adopted")
            check(running.replayed() >= before, f"the figures are lost: {laneway.sessions()}")
            running.replays(f"round {number}, under the next lanewayd")
            running.check_lines("without lanewayd")
            running.program.kill()
            wait_for(lambda: laneway.sessions() == [], "its session ends")


def test_clients_are_killed_in_the_middle_of_a_replay(rounds, seed):
    """With messages that are held, half a run in the ring, or a graph under way: the others notice nothing."""
    numbers = random.Random(chosen(seed))
    with Laneway() as laneway:
        neighbour = Replaying(laneway, "device", rounds + 4)
        expected = expected_of(laneway, "device")
        for number in range(rounds):
            stop_at = numbers.randrange(*VICTIM_CALLS)
            what = f"round {number}, killed at call {stop_at}"
            victim = Running(laneway, "device", expected, LANEWAY_TEST_STOP_AT=str(stop_at))
            wait_for(lambda v=victim: v.program.pid is not None and state_of(v.program.pid) == "T", f"{what}: it stops")
            check(victim.replayed() > 0, f"{what}: nothing was replayed before: {laneway.sessions()}")
            victim.check_lines(what)
            victim.program.kill()
            neighbour.step()
            wait_for(lambda: len(laneway.sessions()) == 1, f"{what}: its session ends")
            laneway.programs.remove(victim.program)
        neighbour.goes_on_to_its_end()
        wait_for(lambda: laneway.used_bytes() == 0, "memory is left")


# --- random programs -----------------------------------------------------------------------------


def test_random_programs_print_what_they_print_alone(rounds, seed):
    """Streams, events, copies, frees, memory at the same address and two threads, drawn anew for each round."""
    numbers = random.Random(chosen(seed))
    with Laneway() as laneway:
        for number in range(max(rounds // 10, 2)):
            command = [laneway.binary("orders"), str(numbers.randrange(10**9)), "2"]
            expected = laneway.bare(command)
            check(expected.code == 0, f"{command} alone\n{expected}")
            for mode in ("always", "auto"):
                result = laneway.run(command, f"--replay={mode}", "--transport=ring")
                check((result.code, result.out) == (0, expected.out),
                      f"round {number}, {mode}: {command}\n{result}\nalone:\n{expected}")


# --- memory and places ---------------------------------------------------------------------------


def test_replay_goes_on_after_the_host_had_the_memory():
    with Laneway() as laneway:
        for way in WAYS:
            stepped = Replaying(laneway, way, 9)
            for _ in range(2):
                at_rest(laneway, 1)
                steer(laneway, "evict", stepped.program)
                wait_for(lambda: laneway.used_bytes() == 0, "its memory goes to the host")
                steer(laneway, "resume", stepped.program)
                stepped.step()
                at_rest(laneway, 1)
                steer(laneway, "pause", stepped.program)
                steer(laneway, "resume", stepped.program)
                stepped.step()
                at_rest(laneway, 1)
                moved = laneway.command("upgrade-worker")
                check(moved.code == 0 and "1 moved, 0 kept" in moved.out, f"{moved}")
                stepped.step()
            stepped.goes_on_to_its_end()
            wait_for(lambda: laneway.sessions() == [] and laneway.used_bytes() == 0, "nothing is left")


def test_replay_is_steered_while_it_works():
    """Each command comes in the middle of iterations; afterwards more is replayed."""
    with Laneway() as laneway:
        running = Running(laneway, "device", expected_of(laneway, "device", 2 * ROUNDS))
        running.program.wait_for_line("started")
        running.replays("before")

        job = session_of(laneway, running.program)["job"]
        for command, there in (("pause", "paused"), ("evict", "evicted")):
            steer(laneway, command, running.program)
            wait_for(lambda s=there: of_job(laneway, job)["state"] == s,
                     lambda c=command: f"{c}: {of_job(laneway, job)}")
            steer(laneway, "resume", running.program)
            running.replays(f"after {command}")
        moved = laneway.command("upgrade-worker")
        check(moved.code == 0 and "1 moved, 0 kept" in moved.out, f"{moved}")
        running.replays("after the upgrade")
        running.finish("steered")


def test_a_lane_that_grows_for_another_job_keeps_the_bytes_of_replays():
    with Laneway(softgpu="memory=192MiB", start=False) as laneway:
        laneway.start_daemon([laneway.binary("lanewayd"), "--device=soft", "--lanes=1"])
        running = Running(laneway, "lane", expected_of(laneway, "lane", 600))
        running.program.wait_for_line("started")
        running.replays("alone")
        other = laneway.run([laneway.binary("iterate"), "--iterations", "60", "--persistent", "8", "--ephemeral", "48"])
        check(other.code == 0, f"the other job\n{other}")
        running.finish("beside a job that needs more of the lane")


def test_all_at_rest_are_recoverable():
    """Replay adds no reason against a rebuild."""
    with Laneway() as laneway:
        program = Replaying(laneway, "device", 3)
        (session,) = at_rest(laneway, 1)
        check(rests(session) and session["recoverable"], f"{session}")
        program.goes_on_to_its_end()


if __name__ == "__main__":
    harness.main()
