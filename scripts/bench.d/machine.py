"""What benchmarks of whole programs share: a daemon of their own, and the two ways to run a program."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("LANEWAY_BUILD_DIR", ROOT / "build"))
MET, MISSED, NOISY = 0, 1, 2
DAEMON_S = 60  # until it must have started
IN_ROUNDS = "LANEWAY_BENCH_IN_ROUNDS" in os.environ  # one run of many that scripts/bench compares: it may be shorter
PYTHON = ROOT / ".venv" / "bin" / "python"  # with tinygrad, where scripts/setup has put it
# One order of its sets, so that all runs do the same work.
TINYGRAD = {"DEV": "CUDA", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}

TOLD = re.compile(r"time: \d+ batches ([\d.]+) ms")  # the examples' --pause-every


class Machine:
    """A runtime directory with a daemon on the software GPU."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="laneway-bench-")
        # What earlier runs of a program needed is another benchmark's affair.
        self.environment = {**os.environ, "LANEWAY_RUNTIME_DIR": self.directory.name + "/run",
                            "XDG_STATE_HOME": self.directory.name + "/state"}
        libraries = BUILD / "lib" / "laneway"
        self.bare_environment = {**self.environment, "LD_LIBRARY_PATH": f"{libraries}/runtime:{libraries}/softgpu"}

    def __enter__(self):
        self.laneway("run", "--device=soft", "--", "true")  # the daemon starts outside the measurement
        return self

    def __exit__(self, *_):
        self.laneway("stop", "--force")
        self.directory.cleanup()

    def start_daemon(self, *options):
        """One with these options: started before anyone starts another, and there for as long as the benchmark."""
        daemon = subprocess.Popen([str(BUILD / "bin" / "lanewayd"), "--device=soft", *options], env=self.environment,
                                  stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + DAEMON_S
        while subprocess.run([str(BUILD / "bin" / "laneway"), "status"], env=self.environment, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL).returncode != 0:
            if daemon.poll() is not None or time.monotonic() > deadline:
                sys.exit("lanewayd does not answer")
            time.sleep(0.02)

    def laneway(self, *words):
        """What the command prints."""
        return subprocess.run([str(BUILD / "bin" / "laneway"), *words], env=self.environment, check=True,
                              stdout=subprocess.PIPE, text=True).stdout

    def start_bare(self, program, **pipes):
        return subprocess.Popen(program, env=self.bare_environment, **{"stdout": subprocess.DEVNULL, **pipes})

    def start_tenant(self, program, flags=(), **pipes):
        return subprocess.Popen([str(BUILD / "bin" / "laneway"), "run", *flags, "--", *program], env=self.environment,
                                **{"stdout": subprocess.DEVNULL, **pipes})

    def worker_clock(self, process):
        """What tells the CPU time, in microseconds, of the worker's thread that serves this `laneway run`."""
        status = json.loads(self.laneway("status", "--json"))
        child = program_of(process)
        sessions = [session for session in status["sessions"] if session["pid"] == child]
        if len(sessions) != 1:
            sys.exit(f"no session of process {child}: {status['sessions']}")
        for worker in status["workers"]:
            for task in pathlib.Path(f"/proc/{worker['pid']}/task").iterdir():
                if (task / "comm").read_text().strip() == f"session-{sessions[0]['id']}"[:15]:
                    return lambda: int((task / "schedstat").read_text().split()[0]) / 1e3
        sys.exit(f"no thread of session {sessions[0]}")

    @staticmethod
    def seconds(start, copies=1):
        begin = time.monotonic()
        for process in [start() for _ in range(copies)]:
            if process.wait() != 0:
                sys.exit(f"{process.args} ended with {process.returncode}")
        return time.monotonic() - begin


def program_of(process):
    """The program runs as a child of `laneway run`."""
    return int(pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])


def process_us(pid):
    """CPU time of all threads that a process has now."""
    return sum(int(schedstat.read_text().split()[0]) for schedstat in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e3


class Stretches:
    """A process that computes one stretch at a time. `start`: as Machine.start_bare."""

    def __init__(self, start, command, *options):
        self.process = start(command, *options, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.waits = False

    def stretch(self):
        """Lets it go on; returns the milliseconds that it tells."""
        if self.waits:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        for line in self.process.stdout:
            if told := TOLD.match(line):
                self.waits = True
                return float(told[1])
        sys.exit(f"{self.process.args} ended with {self.process.wait()} too early")

    def finish(self):
        self.process.communicate()
        if self.process.returncode != 0:
            sys.exit(f"{self.process.args} ended with {self.process.returncode}")
