"""What the tests of hostile clients stand on: a victim that computes, an attack beside it, and a count of processes.

The attacks are modes of hostile_client (attacks.h). A victim is an `iterate` whose output must be the bare device's,
and every process of ours must be the one that it was before.
"""
import contextlib
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, Program, check, wait_for  # noqa: E402
from harness.jobs import started  # noqa: E402

SIZE = ("--persistent", "4", "--ephemeral", "16")
VICTIM = ("--iterations", "300", "--kernels", "4", "--kernel-us", "1000", *SIZE)
# Its lane holds what it needs nearly all the time: each kernel reads there what it has just written.
LANE_VICTIM = ("--iterations", "120", "--kernels", "20", "--kernel-us", "0", *SIZE)
ILLEGAL_ADDRESS = 700


class Victim:
    """A program that has computed its first iteration, and waits to be told to go on."""

    def __init__(self, laneway, *run, options=VICTIM):
        self.laneway = laneway
        self.command = [laneway.binary("iterate"), *options]
        self.program = laneway.spawn([*self.command, "--hold", "1"], *run, holding=True)
        self.program.wait_for_line("started")

    def session(self):
        return next((s for s in self.laneway.sessions() if s["pid"] == self.program.pid), None)

    def computes(self):
        """Lets it go on, and returns when it has come some way."""
        self.program.release()

        def iterates():
            session = self.session()
            check(session, f"the victim has ended\n{self.program.output()}{self.program.errors()}")
            return session["iterations"] >= 5
        wait_for(iterates, "the victim iterates")

    def check_right(self):
        if not self.program.process.stdin.closed:
            self.program.release()
        result = self.program.wait()
        expected = bare(self.laneway, self.command)
        check((result.code, result.out) == (0, expected), f"the victim's bytes are wrong\n{result}\n{expected}")


BARE = {}


def bare(laneway, command):
    """What the program prints on the bare device."""
    if tuple(command) not in BARE:
        BARE[tuple(command)] = laneway.bare(command).out
    return BARE[tuple(command)]


class Attack:
    """A hostile client. It is told to go and to stop; `lines` is what it has said."""

    def __init__(self, laneway, *arguments, run=None):
        command = [laneway.binary("hostile_client"), *map(str, arguments)]
        if run is None:
            self.program = Program(command, laneway.environment, holding=True)
            laneway.programs.append(self.program)
        else:
            self.program = laneway.spawn(command, *run, holding=True)

    @property
    def lines(self):
        return self.program.output().splitlines()

    def ready(self):
        self.program.wait_for_line("ready")
        return self

    def go(self):
        self.program.process.stdin.write(b"go\n")
        self.program.process.stdin.flush()
        return self

    def said(self, line):
        self.program.wait_for_line(line)

    def stop(self):
        """Returns all that it has said."""
        if not self.program.process.stdin.closed:
            self.program.release()
        result = self.program.wait(harness.HANG_SECONDS)
        check(result.code == 0, f"the attack did not come to its end\n{result}")
        return result.out.splitlines()

    def loss(self):
        return int(re.search(r"^loss (\d+)", "\n".join(self.lines), re.MULTILINE).group(1))


@contextlib.contextmanager
def unharmed(laneway):
    """No process of ours is lost meanwhile."""
    check(laneway.run([laneway.binary("connect")]).code == 0, "a worker runs")
    wait_for(lambda: laneway.sessions() == [], "it has no sessions")
    before = laneway.processes()
    check(len(before) == 3, f"lanewayd, its keeper and a worker run: {before}")
    yield
    after = laneway.processes()
    check(after == before, f"a process was lost: {before}, now {after}")
    check(not laneway.crashes(), f"{laneway.crashes()}")


@contextlib.contextmanager
def world(policy="fair", *options, softgpu="memory=1GiB"):
    with Laneway(softgpu=softgpu, start=False) as laneway:
        started(laneway, policy, *options)
        with unharmed(laneway):
            yield laneway


def counts(lines, name):
    """By status, from the lines "NAME STATUS: COUNT"."""
    found = (re.fullmatch(rf"{name} (\d+): (\d+)", line) for line in lines)
    return {int(match.group(1)): int(match.group(2)) for match in found if match}


def check_said(lines, *wanted):
    for line in wanted:
        check(line in lines, f"'{line}' is missing\n" + "\n".join(lines))
