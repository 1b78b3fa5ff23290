"""A soak: random jobs come, go and crash for minutes, and nothing may be left of them.

    soak.py --build DIR [--minutes N] [--seed S]

It goes in laps. In a lap jobs are started, killed, paused, evicted, limited and poisoned, policies change and workers
are killed; at its end everybody finishes, and the daemon must look as it did when it was empty: status, descriptors,
children and files. Who was no victim printed what it prints alone. The memory of daemon, keeper and workers is
compared from one quiet moment to the next (`Memory`). The seed decides what is tried and when; --seed repeats it.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Failure, Laneway, alive, check, wait_for  # noqa: E402

POLICIES = ("fifo", "srtf", "pack", "fair", "rr", "priority", "edf", "shares")
LAP_SECONDS = 8
JOBS_MAX = 7
STEP_SECONDS = 0.15  # the longest pause between two steps
KINDS = {
    "iterate-small": ("iterate", "--iterations", "60", "--kernel-us", "200", "--persistent", "8", "--ephemeral", "8"),
    "iterate-large": ("iterate", "--iterations", "30", "--kernel-us", "50", "--persistent", "64", "--ephemeral", "48"),
    "rounds-device": ("rounds", "60", "device"), "rounds-pinned": ("rounds", "40", "pinned"),
    "repeat": ("repeat", "300"), "memory": ("memory",), "threads": ("threads",), "pools": ("pools",),
    "streams": ("streams",), "globals": ("globals",), "cublas_ops": ("cublas_ops",), "vector_add": ("vector_add",),
    "reduce": ("reduce",), "train": ("train_digits", "--epochs", "2"), "infer": ("infer_digits", "--requests", "60"),
}
# What a lap tries, and how often.
STEPS = {"start": 40, "kill": 6, "policy": 4, "pause": 4, "evict": 4, "resume": 6, "limit": 2, "starve": 1}
# In some laps workers are lost, too; in the others they live long enough for growth to show.
LOSSES = {"poison": 4, "kill_worker": 4}
LAPS_PER_LOSSES = 6
# What docs/recovery.md says of programs whose worker ends.
ENDED_WITH_ITS_WORKER = ("806", "start the program again", "start this program again", "cudaEventElapsedTime")


def own_lines(text):
    """What a program prints of itself: not times, and not how much memory everybody together has left."""
    return "".join(line for line in harness.without_times(text).splitlines(keepends=True) if not line.startswith("free "))


class Job:
    """A program of the soak. A victim may fail: it was killed or starved, or was running when its worker ended."""

    def __init__(self, program, kind):
        self.program, self.kind = program, kind
        self.killed = self.starved = self.lost_worker = False

    def check(self, expected):
        result = self.program.wait(120)
        if self.killed:
            return
        good = (result.code, own_lines(result.out)) == (expected.code, own_lines(expected.out))
        excused = self.starved or (self.lost_worker and any(word in result.err for word in ENDED_WITH_ITS_WORKER))
        check(good or (excused and result.code != 0), f"{self.kind} was no victim:\n{result}\nalone:\n{expected}")


class Memory:
    """What the kernel counts as anonymous memory (RssAnon: heap and stacks) of our processes at quiet moments.

    The first moments of a process are its warm-up: it keeps the driver's threads and tables of its busiest moment so
    far. The heap is no part of that: it is given back when a session ends (daemon/common/heap.h). From then on it may
    not grow by more than SLACK_KB in all, however long the soak: a leak of 200 bytes per job shows within 30 minutes.
    """

    WARM_UP = 3  # quiet moments
    SLACK_KB = {"lanewayd": 2048, "laneway-keeper": 512, "laneway-worker": 4096}

    def __init__(self):
        self.seen = collections.defaultdict(list)

    def look(self, laneway):
        for name in self.SLACK_KB:
            for pid in laneway.processes(name):
                try:
                    status = pathlib.Path(f"/proc/{pid}/status").read_text()
                    compiles = "libLLVM" in pathlib.Path(f"/proc/{pid}/maps").read_text()
                except OSError:
                    continue  # the worker of a program of its own, which has just ended with it
                if size := re.search(r"RssAnon:\s+(\d+)", status):
                    self.seen[name, pid, compiles].append(int(size[1]))

    def check(self):
        for (name, pid, compiles), sizes in self.seen.items():
            if len(sizes) <= self.WARM_UP:
                continue
            warm, last = max(sizes[:self.WARM_UP]), sizes[-1]
            what = f"{name} {pid}{' with its compiler' * compiles}"
            print(f"memory: {what}: {warm} KiB when warm, {last} KiB after {len(sizes)} laps")
            check(last <= warm + self.SLACK_KB[name], f"{name} grows, lap by lap in KiB: {sizes}")


def held(pid):
    """What a process holds open, less what differs from one time to the next: a count per sort of descriptor."""
    return collections.Counter(re.sub(r":\[\d+\]|\d+", "", target) for target in harness.open_files(pid))


class Quiet:
    """What the empty daemon looks like; taken once, and compared after each lap."""

    WITHIN_S = 30  # less than the daemon stays without programs

    def __init__(self, laneway):
        self.laneway = laneway
        self.status, self.files = self.look()
        self.held = {name: held(laneway.processes(name)[0]) for name in Memory.SLACK_KB}

    def look(self):
        status = json.loads(self.laneway.status())
        seen = {key: status[key] for key in ("devices", "jobs", "sessions", "keeper")}
        names = (path.relative_to(self.laneway.runtime) for path in self.laneway.runtime.rglob("*"))
        # Each worker has a log, and lanewayd's goes on in another file when it is full.
        return seen, sorted(str(name) for name in names if not str(name).startswith(("worker-", "log/")))

    def workers(self):
        return self.laneway.processes("laneway-worker")

    def sockets(self):
        return list(self.laneway.runtime.glob("worker-*.sock"))

    def check(self):
        wait_for(lambda: self.look() == (self.status, self.files),
                 lambda: f"the daemon is not as empty as at first:\n{self.look()}\n{(self.status, self.files)}",
                 self.WITHIN_S)
        # One that has just become idle may be about to end.
        wait_for(lambda: len(self.workers()) == len(self.sockets()),
                 lambda: f"{self.sockets()} for workers {self.workers()}", self.WITHIN_S)
        for name, expected in self.held.items():
            for pid in self.laneway.processes(name):
                wait_for(lambda pid=pid: held(pid) <= expected,
                         lambda pid=pid: f"{name} holds more than at first: {held(pid) - expected}", self.WITHIN_S)


class Soak:
    def __init__(self, laneway, seed):
        self.laneway, self.seed = laneway, seed
        self.jobs, self.counts = [], collections.Counter()
        self.expected = {}
        for kind in KINDS:
            self.expected[kind] = laneway.bare(self.command(kind))
            check(self.expected[kind].code == 0, f"{kind} alone:\n{self.expected[kind]}")

    def command(self, kind):
        name, *arguments = KINDS[kind]
        return [self.laneway.binary(name), *arguments]

    def session(self, numbers):
        """Some session of a program of ours, with its job here; or None."""
        sessions = {session["pid"]: session for session in self.laneway.sessions()}
        pids = [(job.program.pid, job) for job in self.jobs]  # a program may end at any moment: looked at once
        pairs = [(sessions[pid], job) for pid, job in pids if pid in sessions]
        return pairs[numbers.randrange(len(pairs))] if pairs else None

    # --- steps; each draws from numbers of its own, so that a seed tries the same whatever happened before ---------

    def start(self, numbers):
        kind, transport = numbers.choice(tuple(KINDS)), numbers.choice(("ring",) * 5 + ("zmq",))
        mode = numbers.choice(("shared",) * 9 + ("contained",))
        if sum(job.program.running() for job in self.jobs) < JOBS_MAX:
            program = self.laneway.spawn(self.command(kind), f"--transport={transport}", f"--mode={mode}")
            self.jobs.append(Job(program, kind))

    def kill(self, numbers):
        running = [job for job in self.jobs if job.program.running() and job.program.pid is not None]
        if running:
            job = numbers.choice(running)
            job.killed = True
            job.program.kill()

    def policy(self, numbers):
        result = self.laneway.command("policy", numbers.choice(POLICIES))
        check(result.code == 0, f"laneway policy:\n{result}")

    def steer(self, numbers, *words):
        """A command about some job, which may end meanwhile."""
        found = self.session(numbers)
        if found is None:
            return None
        result = self.laneway.command(words[0], str(found[0]["job"]), *words[1:])
        check(result.code in (0, 1), f"laneway {words}:\n{result}")
        return found[1] if result.code == 0 else None

    def pause(self, numbers):
        self.steer(numbers, "pause")

    def evict(self, numbers):
        self.steer(numbers, "evict")

    def resume(self, numbers):
        self.steer(numbers, "resume")

    def limit(self, numbers):
        self.steer(numbers, "limit", "400MiB")

    def starve(self, numbers):
        job = self.steer(numbers, "limit", "1MiB")
        if job is not None:
            job.starved = True

    def expose(self):
        """A worker ends: whoever runs may have had work in flight."""
        for job in self.jobs:
            job.lost_worker = job.lost_worker or job.program.running()

    def poison(self, numbers):
        """A program of a name of its own, so that it is no second offence."""
        path = self.laneway.root / f"poison{self.counts['poison']}"
        shutil.copy(self.laneway.binary("illegal_address"), path)
        self.expose()
        job = Job(self.laneway.spawn([str(path)]), "poison")
        job.killed = True
        self.jobs.append(job)

    def kill_worker(self, numbers):
        workers = self.laneway.processes("laneway-worker")
        victim = numbers.choice(workers) if workers else None
        self.expose()
        if victim is not None and alive(victim):
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it has just ended

    # --- laps ------------------------------------------------------------------------------------------------------

    def lap(self, number):
        steps = STEPS if number % LAPS_PER_LOSSES else {**STEPS, **LOSSES}
        deadline, step = time.monotonic() + LAP_SECONDS, 0
        while time.monotonic() < deadline:
            numbers = random.Random(f"{self.seed} {number} {step}")
            step += 1
            action = numbers.choices(tuple(steps), steps.values())[0]
            self.counts[action] += 1
            time.sleep(numbers.random() * STEP_SECONDS)
            poisoned = any(job.kind == "poison" and job.program.running() for job in self.jobs)
            getattr(self, action)(numbers)
            if poisoned:
                self.expose()  # who came since may be beside it
        self.finish()

    def finish(self):
        """Lets everybody go on to the end."""
        def ended():
            for job in json.loads(self.laneway.status())["jobs"]:
                self.laneway.command("resume", str(job["id"]))
            return not any(job.program.running() for job in self.jobs)
        wait_for(ended, lambda: f"these do not end: {[job.kind for job in self.jobs if job.program.running()]}\n"
                                f"{self.laneway.command('ps').out}", 120)
        for job in self.jobs:
            job.check(self.expected.get(job.kind))
            self.counts["jobs"] += 1
            self.counts["victims"] += job.killed or job.starved or job.lost_worker
        self.jobs.clear()
        self.laneway.programs.clear()


def test_soak(minutes, seed):
    until = time.monotonic() + minutes * 60
    with Laneway(softgpu="memory=512MiB") as laneway:
        soak, memory = Soak(laneway, seed), Memory()
        for transport in ("ring", "zmq"):  # each leaves what the next of its kind needs
            check(laneway.run(soak.command("train"), f"--transport={transport}").code == 0, "a first program")
        wait_for(lambda: laneway.sessions() == [], "the first programs end")
        quiet = Quiet(laneway)
        laps = 0
        while laps == 0 or time.monotonic() < until:
            soak.lap(laps)
            quiet.check()
            memory.look(laneway)
            laps += 1
        print(f"{laps} laps: {dict(soak.counts)}")
        check(not laneway.crashes(), f"{laneway.crashes()}")
        memory.check()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    Laneway.build = options.build.resolve()
    seed = random.SystemRandom().randrange(10**9) if options.seed is None else options.seed
    print(f"seed {seed} (repeat with --seed {seed})", flush=True)
    try:
        test_soak(options.minutes, seed)
    except Failure as failure:
        print(f"soak: FAILED (seed {seed}): {failure}")
        sys.exit(1)
    print("soak: ok")


if __name__ == "__main__":
    main()
