"""A Laneway of a test's own, and programs under it.

A `Laneway` owns a temporary directory with everything that a Laneway on this machine would otherwise share: the
runtime directory, configuration, state and caches. Leaving it stops the daemon and fails the test when a process of
ours or a file in the runtime directory is left.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from harness.checks import HANG_SECONDS, POLL_SECONDS, Failure, check, wait_for
from harness.processes import alive, children_of, name_of

PROGRAM_SECONDS = 360


class Result:
    """How a program ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __str__(self):
        return f"exit code {self.code}\n--- standard output\n{self.out}--- standard error\n{self.err}---"


class Program:
    """A program that runs beside the test. `pid` is the program's own, also under `laneway run`."""

    def __init__(self, command, environment, holding=False):
        self.out = tempfile.TemporaryFile()
        self.err = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, env=environment, stdout=self.out, stderr=self.err,
                                        stdin=subprocess.PIPE if holding else subprocess.DEVNULL)

    @property
    def pid(self):
        """`laneway run` starts the program as its child; the test means the program."""
        if name_of(self.process.pid) == "laneway":
            offspring = children_of(self.process.pid)
            return offspring[0] if offspring else None
        return self.process.pid

    def output(self):
        # Not by seek and read: the program writes at the offset that it shares with us.
        return os.pread(self.out.fileno(), os.fstat(self.out.fileno()).st_size, 0).decode()

    def errors(self):
        return os.pread(self.err.fileno(), os.fstat(self.err.fileno()).st_size, 0).decode()

    def running(self):
        return self.process.poll() is None

    def wait(self, seconds=PROGRAM_SECONDS):
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure(f"{self.process.args} did not end within {seconds} s\n{self.errors()}") from None
        return Result(code, self.output(), self.errors())

    def wait_for_line(self, line, seconds=HANG_SECONDS):
        def there():
            running = self.running()  # asked first: it may print the line and end right after
            if line + "\n" in self.output():
                return True
            check(running, f"ended before printing '{line}':\n{self.output()}{self.errors()}")
            return False
        wait_for(there, f"'{line}' was not printed by {self.process.args}", seconds)

    def release(self):
        """Ends the standard input of a program that holds its session open."""
        self.process.stdin.close()

    def kill(self, signal_number=signal.SIGKILL):
        pid = self.pid or self.process.pid  # `laneway run` itself while it has started nothing yet
        if self.running():
            try:
                os.kill(pid, signal_number)
            except ProcessLookupError:
                pass  # it has just ended
        if self.running() and signal_number == signal.SIGKILL:
            self.process.wait(HANG_SECONDS)


class Laneway:
    """A Laneway with a runtime directory of its own. Use it in a `with` statement."""

    build = None  # set by main()

    def __init__(self, softgpu="", start=True):
        self.softgpu, self.start = softgpu, start
        self.programs = []
        self.daemon = None

    def __enter__(self):
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="laneway-", dir=memory))
        self.runtime = self.root / "run"
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith("LANEWAY_") and key not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
        self.environment.update(
            LANEWAY_RUNTIME_DIR=str(self.runtime), XDG_CONFIG_HOME=str(self.root / "config"),
            XDG_STATE_HOME=str(self.root / "state"), XDG_CACHE_HOME=str(self.root / "cache"))
        if self.softgpu:
            self.environment["LANEWAY_SOFTGPU"] = self.softgpu
        if self.start:
            self.start_daemon()
        return self

    def __exit__(self, kind, error, trace):
        try:
            for program in self.programs:
                if program.running():
                    program.kill()
            if self.processes("lanewayd"):
                self.command("stop", "--force")
            deadline = time.monotonic() + HANG_SECONDS
            while (left := self.processes()) and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
            names = [f"{name_of(pid)} ({pid})" for pid in left]
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            if self.daemon is not None:
                self.daemon.wait(HANG_SECONDS)
            if kind is None:
                check(not names, f"left behind: {', '.join(names)}")
        finally:
            if kind is not None:
                self._print_logs()
            shutil.rmtree(self.root, ignore_errors=True)

    def _print_logs(self):
        for log in sorted((self.runtime / "log").glob("*")) if self.runtime.exists() else []:
            sys.stderr.write(f"--- {log.name}\n{log.read_text(errors='replace')[-4000:]}\n")

    def crashes(self):
        """What lanewayd says of children that ended by another signal than a test's own."""
        lines = (self.runtime / "log" / "lanewayd.log").read_text(errors="replace").splitlines()
        return [line for line in lines if "ended (signal" in line and "(signal 9)" not in line]

    # --- the parts -----------------------------------------------------------------------------------------------

    def binary(self, name):
        """A program of ours: build/bin, or one of the tests' own."""
        for directory in ("bin", "tests/e2e"):
            path = self.build / directory / name
            if path.exists():
                return str(path)
        raise Failure(f"{name} is not built")

    def processes(self, name=None):
        """The pids of daemon, keeper and workers (or of one of them) that belong to this runtime directory."""
        wanted = (name,) if name else ("lanewayd", "laneway-keeper", "laneway-worker")
        mine = f"LANEWAY_RUNTIME_DIR={self.runtime}".encode()
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or name_of(entry.name) not in wanted or not alive(entry.name):
                continue
            try:
                if mine in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
        return sorted(found)

    def start_daemon(self, command=None):
        # It outlives whatever a test does between two programs, such as computing alone what one must print.
        self.daemon = Program([*(command or [self.binary("lanewayd"), "--device=soft"]), "--linger=3600"],
                              self.environment)
        wait_for(lambda: self.command("status").code == 0 or self._check_daemon(), "lanewayd does not answer")

    def _check_daemon(self):
        code = self.daemon.process.poll()
        check(code is None or code == 0, f"lanewayd ended with {code}:\n{self.daemon.errors()}")

    # --- what a user does ----------------------------------------------------------------------------------------

    def command(self, *arguments, seconds=HANG_SECONDS, **environment):
        """Runs `laneway ARGUMENTS` to its end."""
        return Program([self.binary("laneway"), *arguments], {**self.environment, **environment}).wait(seconds)

    def status(self):
        result = self.command("status", "--json")
        check(result.code == 0, f"laneway status --json:\n{result}")
        return result.out

    def sessions(self):
        return json.loads(self.status())["sessions"]

    def used_bytes(self):
        """Of the first device, by whomever."""
        return json.loads(self.status())["devices"][0]["used_bytes"]

    def spawn(self, command, *options, holding=False, **environment):
        """Starts `laneway run OPTIONS -- COMMAND`; it is killed at the end when it still runs."""
        program = Program([self.binary("laneway"), "run", *options, "--", *command],
                          {**self.environment, **environment}, holding)
        self.programs.append(program)
        return program

    def run(self, command, *options, seconds=PROGRAM_SECONDS, **environment):
        return self.spawn(command, *options, **environment).wait(seconds)

    def bare(self, command, seconds=PROGRAM_SECONDS, **environment):
        """Runs a program directly on the software GPU, without Laneway."""
        return Program(command, self.bare_environment(**environment)).wait(seconds)

    def bare_environment(self, **environment):
        """That of a program directly on the software GPU."""
        library = self.build / "lib" / "laneway"
        path = [str(library / "runtime"), str(library / "softgpu"), environment.pop("LD_LIBRARY_PATH", "")]
        environment["LD_LIBRARY_PATH"] = ":".join(filter(None, path))
        return {**self.environment, **environment}

    def neighbours(self):
        """Starts three programs that keep the device busy, and waits until all three have sessions."""
        commands = ([self.binary("repeat"), "1000000000"], [self.binary("nbody"), "512", "1000000000"],
                    [self.binary("train_digits"), "--epochs", "1000000"])
        programs = [self.spawn(command) for command in commands]

        def connected():
            for program in programs:
                check(program.running(), f"{program.process.args} ended:\n{program.errors()}")
            return {program.pid for program in programs} <= {session["pid"] for session in self.sessions()}
        wait_for(connected, "three neighbours did not connect")
        return programs
