"""Sessions that outlive their workers: killed and poisoned workers at random moments, moves, quarantine.

A program is at rest when everything that was taken of it is complete on the device. Whoever is at rest when its worker
goes, and is called recoverable by `laneway ps`, must finish with the bytes that it has alone; whoever is not gets 806.
The seed is printed; --seed repeats a run.
"""
import ctypes
import json
import pathlib
import random
import shutil
import signal
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, check, chosen, wait_for  # noqa: E402
from harness.jobs import HOLD, go_on_together  # noqa: E402
from harness.stepped import STEPS, Stepped, Working, alone, at_rest, check_806, in_a_lane, kill_worker  # noqa: E402

CREW = ("device", "pinned", "lane", "device")  # the memory of programs that live through many rounds
PAUSE_SECONDS_MAX = 1.0  # the median of what a program at rest loses when its worker does
SYS_TGKILL = 234  # on x86-64: a signal for one thread
OFFENCES_MAX = 2  # then a program's next sessions have workers of their own


def outlives(name):
    """Its worker is killed while it rests; twice, as the successor may go, too."""
    with Laneway() as laneway:
        for memory in ("device", "pinned"):
            stepped = Stepped(laneway, memory, alone(laneway, memory, 6, name), 6, name=name)
            for number in range(6):
                at_rest(laneway, 1)
                if number in (2, 3, 5):
                    kill_worker(laneway)
                stepped.step()
            stepped.finish()
            wait_for(lambda: laneway.sessions() == [], "the session's end is noticed")
        devices = json.loads(laneway.status())["devices"]
        check(devices[0]["used_bytes"] == 0, f"memory is left: {devices}")


def test_a_program_at_rest_outlives_its_worker():
    """Memory, streams, an event and a kernel are there again."""
    outlives("rounds")


def test_cublas_and_constants_outlive_their_worker():
    """So are a handle with all that it was told, and a constant that the host has written."""
    outlives("blas_rounds")


def test_times_of_events_outlive_their_worker():
    """What was measured stays; what lies on both sides of the loss is measured by the host's clock."""
    with Laneway() as laneway:
        program = laneway.spawn([laneway.binary("event_times")], holding=True)
        wait_for(lambda: "before" in program.output(), "it measures")
        at_rest(laneway, 1)
        began = time.monotonic()
        kill_worker(laneway)
        at_rest(laneway, 1)
        apart = (time.monotonic() - began) * 1000
        program.release()
        result = program.wait()
        check(result.code == 0, f"{result}")
        ms = {line.split()[0]: float(line.split()[1]) for line in result.out.splitlines()}
        check(abs(ms["before"] - ms["after"]) <= 0.002, f"the time between two events has changed: {ms}")
        check(ms["across"] >= apart and ms["anew"] > 0, f"the loss alone took {apart} ms: {ms}")


def test_executable_graphs_outlive_their_worker():
    """So are graphs, with the parameters that they were given last."""
    outlives("graph_rounds")


def test_cublas_in_a_graph_outlives_its_worker():
    """What the library did in a capture is captured again."""
    outlives("blas_captures")


class Losses:
    """Rounds in which a worker is killed or poisoned, while some programs rest, some are in a step, one only works.

    A crew of stepped programs lives through the rounds. Who rests at that moment, and so is called recoverable with
    nothing in flight by status, goes on with equal bytes; who does not may get 806, and another takes its place. The
    one that only works ends with 806, or was at rest by chance and gets on.
    """

    def __init__(self, laneway, seed):
        self.laneway, self.seed = laneway, seed
        self.expected = {memory: alone(laneway, memory) for memory in set(CREW)}
        self.crew = [self.member(memory) for memory in CREW]
        self.busy = None
        self.offender, self.offences = None, 0
        self.survived = self.lost = self.busy_lost = 0
        self.pauses = []  # seconds from the loss to the end of the first round after it

    def member(self, memory):
        return Stepped(self.laneway, memory, self.expected[memory])

    def round(self, number):
        numbers = random.Random(f"{self.seed} {number}")
        what = f"round {number}"
        for place, stepped in enumerate(self.crew):
            if stepped.round + 3 > stepped.rounds:
                stepped.goes_on_to_its_end()
                self.crew[place] = self.member(stepped.memory)
        if self.busy is None:
            self.busy = Working(self.laneway)
        moving = [stepped for stepped in self.crew if numbers.random() < 0.4]
        resting = [stepped for stepped in self.crew if stepped not in moving]
        self.await_rest(resting, what)
        poison, delay = numbers.random() < 0.3, numbers.random() * 0.02
        for stepped in moving:
            stepped.send()
        until = time.monotonic() + delay
        while time.monotonic() < until:
            time.sleep(0.0005)
        lost_at = time.monotonic()
        self.poison(what) if poison else kill_worker(self.laneway)
        for stepped in resting:
            stepped.step()
            self.pauses.append(time.monotonic() - lost_at)
        self.survived += len(resting)
        for stepped in moving:  # one that had answered may still have been in flight
            if not (stepped.answers() and stepped.goes_on()):
                check_806(stepped.program.wait(), what)
                self.crew[self.crew.index(stepped)] = self.member(stepped.memory)
                self.lost += 1
        self.look_after_busy(poison and self.offences > OFFENCES_MAX, what)

    def look_after_busy(self, unharmed, what):
        """It goes on, or has its documented code; an offender with a worker of its own (`unharmed`) costs it nothing."""
        ((working, ended_at),) = Working.outcomes([self.busy], what)
        if ended_at is None:
            return
        check(not unharmed, f"{what}: a quarantined offender ended a neighbour\n{working.program.wait()}")
        check_806(working.program.wait(), what)
        self.busy_lost += 1
        self.busy = None

    def await_rest(self, resting, what):
        def settled():
            state = {session["pid"]: session for session in self.laneway.sessions()}
            return all(state[one.program.pid]["recoverable"] and not state[one.program.pid]["in_flight"]
                       for one in resting)
        wait_for(settled, lambda: f"{what}: not at rest: {self.laneway.sessions()}")

    def poison(self, what):
        """Each offender strikes until it is quarantined, and once more."""
        if self.offender is None or self.offences > OFFENCES_MAX:
            self.offences, name = 0, f"offender{what.split()[-1]}"
            self.offender = shutil.copy(self.laneway.binary("illegal_address"), self.laneway.root / name)
        shared = self.busy_worker()
        culprit = self.laneway.run([str(self.offender)])
        check("700" in culprit.out + culprit.err, f"{what}: the culprit's own code\n{culprit}")
        self.offences += 1
        quarantined = self.offences > OFFENCES_MAX
        wait_for(lambda: (self.busy_worker() == shared) == quarantined,
                 lambda: f"{what}: after offence {self.offences} the shared worker {shared} is {self.busy_worker()}")

    def busy_worker(self):
        """The pid of the worker that programs share."""
        pids = {worker["pid"] for worker in json.loads(self.laneway.status())["workers"] if worker["state"] == "ready"}
        return max(pids & set(self.laneway.processes("laneway-worker")), default=None)


def test_lost_workers(rounds, seed):
    """Whoever rests when its worker is killed or poisoned goes on; a second offence quarantines."""
    seed = chosen(seed)
    with Laneway() as laneway:
        losses = Losses(laneway, seed)
        for number in range(rounds):
            losses.round(number)
        print(f"{rounds} rounds: {losses.survived} programs at rest went on, {losses.lost} in a step were lost, "
              f"and {losses.busy_lost} that only work")
        pause = statistics.median(losses.pauses)
        print(f"seconds from the loss to the end of the next round: median {pause:.3f}, most {max(losses.pauses):.3f}")
        check(losses.survived >= rounds, "too few programs were at rest")
        check(pause <= PAUSE_SECONDS_MAX, f"programs at rest paused for {pause:.2f} s")
        check(not laneway.crashes(), f"{laneway.crashes()}")


def test_a_second_offence_quarantines():
    """Who has ended two workers runs in one of its own from then on, and harms nobody."""
    with Laneway() as laneway:
        for _ in range(2):
            laneway.run([laneway.binary("illegal_address")])
        neighbour = Stepped(laneway, "device", alone(laneway, "device", 3), 3)
        neighbour.step()
        shared = laneway.processes("laneway-worker")
        culprit = laneway.run([laneway.binary("illegal_address")])
        check("700" in culprit.out + culprit.err, f"{culprit}")
        check(set(shared) & set(laneway.processes("laneway-worker")), "the shared worker must live on")
        neighbour.step()
        neighbour.step()
        neighbour.finish()


def crash_thread(laneway, session):
    """The worker's thread of this session gets the signal of a bad access."""
    (worker,) = laneway.processes("laneway-worker")
    for task in pathlib.Path(f"/proc/{worker}/task").iterdir():
        if (task / "comm").read_text().strip() == f"session-{session}":
            check(ctypes.CDLL(None).syscall(SYS_TGKILL, worker, int(task.name), signal.SIGSEGV) == 0, "tgkill")
            break
    else:
        check(False, f"no thread of session {session} in worker {worker}")
    wait_for(lambda: not harness.alive(worker), "the worker is gone")


def test_who_crashes_a_worker_is_blamed():
    """A worker that dies of a signal says whose work it did; the others go on, and a second time it is contained."""
    with Laneway() as laneway:
        neighbour = Stepped(laneway, "device", alone(laneway, "device", 3), 3)
        for number in range(OFFENCES_MAX):
            neighbour.step()
            before = {session["id"] for session in at_rest(laneway, 1)}
            culprit = laneway.spawn([laneway.binary("connect"), "hold"], holding=True)
            culprit.wait_for_line("open", 60)
            (session,) = {session["id"] for session in laneway.sessions()} - before
            at_rest(laneway, 2)
            crash_thread(laneway, session)
            said = f"ended worker {number + 1} by signal 11"
            wait_for(lambda: said in laneway.status(), lambda: f"'{said}' is not in\n{laneway.status()}")
            fault = next(fault for fault in json.loads(laneway.status())["faults"] if said in fault["text"])
            check((fault["session"], fault["program"]) == (session, "connect"), f"{fault}")
            lost = [s for s in laneway.sessions() if s["id"] == session]
            check(all(s["state"] == "lost" for s in lost), f"the culprit goes on: {lost}")
            culprit.kill()
        neighbour.step()
        contained = laneway.spawn([laneway.binary("connect"), "hold"], holding=True)
        contained.wait_for_line("open", 60)
        check([s["contained"] for s in laneway.sessions() if s["program"] == "connect"] == [True],
              f"{laneway.sessions()}")
        contained.kill()
        neighbour.finish()


def test_contained_programs_have_workers_of_their_own():
    with Laneway() as laneway:
        expected = alone(laneway, "device", 2)
        both = [Stepped(laneway, "device", expected, 2, "--mode=contained") for _ in range(2)]
        sessions = laneway.sessions()
        check(len({s["worker"] for s in sessions}) == 2 and all(s["contained"] for s in sessions), f"{sessions}")
        for stepped in both:
            stepped.step()
            stepped.step()
            stepped.finish()
        wait_for(lambda: len(laneway.processes("laneway-worker")) <= 1, "their workers end with them")


def upgraded(command):
    """Eight programs notice nothing of an upgrade that comes while they run, and the old worker ends."""
    with Laneway() as laneway:
        command = [laneway.binary(command[0]), *command[1:]]
        expected = laneway.bare(command)
        holding = HOLD[0] in command
        programs = [laneway.spawn(command, holding=holding) for _ in range(8)]
        if holding:
            go_on_together(programs)
        for program in programs:
            program.wait_for_line("started")
        before = laneway.processes("laneway-worker")
        result = laneway.command("upgrade-worker")
        check(result.code == 0, f"{result}")
        check("8 moved, 0 kept" in result.out, f"all of them move: {result}")
        check(1 not in {s["worker"] for s in laneway.sessions()}, "they must be elsewhere")
        for program in programs:
            ended = program.wait()
            check((ended.code, ended.out) == (0, expected.out), f"its results changed\n{ended}\nalone:\n{expected}")
        wait_for(lambda: not set(before) & set(laneway.processes("laneway-worker")), "the old worker ends")


def test_an_upgrade_whose_worker_does_not_start_changes_nothing():
    with Laneway() as laneway:
        command = [laneway.binary("rounds"), "250", "device"]
        expected = laneway.bare(command)
        program = laneway.spawn(command)
        program.wait_for_line("started")
        obstacle = laneway.runtime / "worker-2.sock"
        obstacle.mkdir()  # where the next would listen
        refused = laneway.command("upgrade-worker")
        check(refused.code == 1 and "worker-2" in refused.err, f"it must be told why\n{refused}")
        check(laneway.run([laneway.binary("connect")]).code == 0, "the old worker must take programs again")
        obstacle.rmdir()
        ended = program.wait()
        check((ended.code, ended.out) == (0, expected.out), f"its results changed\n{ended}\nalone:\n{expected}")


def test_upgrade_moves_programs_that_rest():
    upgraded(["rounds", "250", "device"])


def test_upgrade_moves_jobs_at_their_boundaries():
    """Training loops that keep the device busy, each moved between two of its iterations."""
    upgraded(["iterate", "--iterations", "400", "--kernel-us", "200", "--persistent", "8", "--ephemeral", "8", *HOLD])


def test_who_rests_between_iterations_goes_on():
    """It has a lane, and nothing in it."""
    with Laneway() as laneway:
        stepped = in_a_lane(laneway, "lane")
        wait_for(lambda: not laneway.sessions()[0]["in_flight"], "it rests")
        kill_worker(laneway)
        for _ in range(STEPS - STEPS // 2):
            stepped.step()
        stepped.finish()


def test_who_rests_within_an_iteration_is_lost():
    """Its lane goes to another: it must not go on with what that one writes there."""
    with Laneway(start=False) as laneway:
        laneway.start_daemon([laneway.binary("lanewayd"), "--device=soft", "--lanes=1"])
        stepped = in_a_lane(laneway, "within")
        loop = [laneway.binary("iterate"), "--iterations", "40"]
        expected, waiting = laneway.bare(loop), laneway.spawn(loop)
        wait_for(lambda: len(laneway.sessions()) == 2, "both are there")
        check(laneway.sessions()[0]["in_flight"], "what lies in a lane is not at rest")
        kill_worker(laneway)
        stepped.send()
        check_806(stepped.program.wait(), "who rests within")
        ended = waiting.wait()
        check(ended.code != 0 or ended.out == expected.out, f"its results changed\n{ended}\nalone:\n{expected}")


def spin_for_ever(laneway, *way):
    """A program whose first kernel, or with "while" whose first graph, does not end."""
    program = laneway.spawn([laneway.binary("endless"), *way])
    program.wait_for_line("started")  # its kernel has said so
    return program


def test_a_kernel_without_end_takes_its_worker_along():
    """Its program is killed; who can move does, and its memory comes back with the worker's end."""
    with Laneway(start=False) as laneway:
        laneway.start_daemon([laneway.binary("lanewayd"), "--device=soft", "--kill-timeout=1"])
        neighbour = Stepped(laneway, "device", alone(laneway, "device", 3), 3)
        loop = [laneway.binary("iterate"), "--iterations", "500", "--kernel-us", "1000"]
        expected, busy = laneway.bare(loop), laneway.spawn(loop)
        busy.wait_for_line("started")
        endless, before = spin_for_ever(laneway), laneway.processes("laneway-worker")
        endless.kill()
        wait_for(lambda: not set(before) & set(laneway.processes("laneway-worker")), "its worker ends")
        ended = busy.wait()
        check((ended.code, ended.out) == (0, expected.out), f"its results changed\n{ended}\nalone:\n{expected}")
        for _ in range(3):
            neighbour.step()
        neighbour.finish()
        wait_for(lambda: laneway.sessions() == [], "no session is left")
        check("did not end within 1 s" in laneway.status(), "status must say why the worker ended")


def test_a_while_node_without_end_takes_its_worker_along():
    with Laneway(start=False) as laneway:
        laneway.start_daemon([laneway.binary("lanewayd"), "--device=soft", "--kill-timeout=1"])
        endless, before = spin_for_ever(laneway, "while"), laneway.processes("laneway-worker")
        endless.kill()
        wait_for(lambda: not set(before) & set(laneway.processes("laneway-worker")), "its worker ends")
        wait_for(lambda: laneway.sessions() == [], "no session is left")


def test_who_comes_to_no_boundary_is_ended():
    """By --max-iteration, when others wait for its lane."""
    with Laneway(start=False) as laneway:
        laneway.start_daemon([laneway.binary("lanewayd"), "--device=soft", "--lanes=1", "--max-iteration=1",
                              "--kill-timeout=1"])
        endless = spin_for_ever(laneway)
        loop = [laneway.binary("iterate"), "--iterations", "20"]
        expected, waiting = laneway.bare(loop), laneway.spawn(loop)
        result = endless.wait()
        check_806(result, "who overstays")
        check("--max-iteration" in result.err, f"it must hear why\n{result}")
        ended = waiting.wait()
        check((ended.code, ended.out) == (0, expected.out), f"its results changed\n{ended}\nalone:\n{expected}")
        check("came to no boundary" in laneway.status(), "status must say it")


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
