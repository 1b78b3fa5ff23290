"""What the `laneway` command does for its user: exit codes, sentences, starting and stopping."""
import json
import os
import pathlib
import socket
import stat
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, Skip, check, name_of, open_files, wait_for  # noqa: E402

HELLO_MAGIC = 0x4C4E4849
WELCOME = "=IIIIQIIII108s256s52x"  # ipc/hello.h


def sentences(text):
    return [line for line in text.splitlines() if line.strip()]


def check_refusal(result, code, *words):
    """A refusal is one sentence on standard error that contains all of `words`, and the given exit code."""
    check(result.code == code, f"expected exit code {code}\n{result}")
    check(len(sentences(result.err)) == 1, f"expected one sentence on standard error\n{result}")
    for word in words:
        check(word in result.err, f"the sentence must contain '{word}'\n{result}")


def check_nothing_started(laneway):
    """Nothing half-started may stay behind: no process of ours, no socket, no ring file."""
    check(not laneway.processes(), f"processes are left: {laneway.processes()}")
    if laneway.runtime.exists():
        left = [path.name for path in laneway.runtime.rglob("*") if path.is_socket()]
        check(not left, f"sockets are left: {left}")


# --- exit codes ------------------------------------------------------------------------------------------------------

def test_exit_codes():
    with Laneway() as laneway:
        for code in (0, 1, 7, 42, 255):
            check(laneway.run(["/bin/sh", "-c", f"exit {code}"]).code == code, f"exit code {code} must pass through")
        for number in (1, 6, 9, 15):
            result = laneway.run(["/bin/sh", "-c", f"kill -{number} $$"])
            check(result.code == 128 + number, f"signal {number} must give {128 + number}\n{result}")
        check_refusal(laneway.run(["no-such-program-anywhere"]), 127, "no-such-program-anywhere")
        check_refusal(laneway.run(["/no/such/program"]), 127, "/no/such/program")
        script = laneway.root / "not-executable"
        script.write_text("#!/bin/sh\n")
        check_refusal(laneway.run([str(script)]), 126, "not-executable")


def test_signals_reach_the_program():
    """Ctrl-C and a terminated `laneway run` end the program too."""
    with Laneway() as laneway:
        program = laneway.spawn([laneway.binary("connect"), "hold"], holding=True)
        program.wait_for_line("open")
        program.process.terminate()
        check(program.wait().code == 128 + 15, "a terminated run must end with 143")
        wait_for(lambda: laneway.sessions() == [], "the session ends")


def test_run_starts_the_daemon():
    with Laneway(start=False) as laneway:
        check(not laneway.processes(), "nothing runs yet")
        result = laneway.run([laneway.binary("connect")])
        check(result.code == 0 and result.err == "", f"run must start the daemon\n{result}")
        check(len(laneway.processes("lanewayd")) == 1, "one daemon runs")
        mode = stat.S_IMODE(os.stat(laneway.runtime).st_mode)
        check(mode == 0o700, f"the runtime directory must be private, its mode is {mode:o}")


def test_nothing_of_ours_stays_open_in_the_daemon():
    """A script's lock, or the end of a pipe that somebody reads, must not live as long as the daemon."""
    with Laneway(start=False) as laneway:
        kept = laneway.root / "lock"
        with open(kept, "w") as file:
            words = [str(laneway.binary("laneway")), "run", "--device=soft", "--", "true"]
            subprocess.run(words, env=laneway.environment, pass_fds=[file.fileno()], check=True)
        log = os.path.realpath(laneway.runtime / "log" / "lanewayd.log")
        for pid in laneway.processes():
            targets = open_files(pid)
            check(str(kept) not in targets, f"{name_of(pid)} holds what `laneway run` was given: {targets}")
            check(log not in targets or name_of(pid) == "lanewayd", f"{name_of(pid)} holds lanewayd's log: {targets}")


def test_many_runs_start_one_daemon():
    with Laneway(start=False) as laneway:
        programs = [laneway.spawn([laneway.binary("connect")]) for _ in range(8)]
        for program in programs:
            result = program.wait()
            check(result.code == 0, f"{result}")
        # Those that came second may still be on their way out.
        wait_for(lambda: len(laneway.processes("lanewayd")) == 1, "one daemon runs")


def test_stop():
    with Laneway() as laneway:
        program = laneway.spawn([laneway.binary("connect"), "hold"], holding=True)
        program.wait_for_line("open")
        refused = laneway.command("stop")
        check_refusal(refused, 1, "--force")
        check(program.running(), "a refused stop must end nothing")
        program.release()
        check(program.wait().code == 0, "the program must end well")
        wait_for(lambda: laneway.sessions() == [], "the session ends")
        stopped = laneway.command("stop")
        check(stopped.code == 0, f"{stopped}")
        wait_for(lambda: not laneway.processes(), "daemon, keeper and worker end")
        check_nothing_started(laneway)


def test_status_and_ps():
    with Laneway() as laneway:
        program = laneway.spawn([laneway.binary("connect"), "hold"], holding=True)
        program.wait_for_line("open")
        status = json.loads(laneway.status())
        for key in ("daemon", "devices", "jobs", "sessions"):
            check(key in status, f"status --json lacks '{key}': {status}")
        check(status["sessions"][0]["pid"] == program.pid, f"the session's pid must be {program.pid}: {status}")
        text = laneway.command("status")
        check(text.code == 0 and "connect" in text.out, f"status must show the job\n{text}")
        table = laneway.command("ps")
        check(table.code == 0 and str(program.pid) in table.out, f"ps must show a line per session\n{table}")
        wait_for(lambda: not laneway.sessions()[0]["in_flight"], "the worker sees that it rests")
        check(laneway.status() == laneway.status(), "status --json of a quiet Laneway must not change")


def test_calls_and_doctor():
    with Laneway() as laneway:
        calls = laneway.command("calls")
        check(calls.code == 0 and "cuMemAlloc_v2" in calls.out, f"{calls.code}: calls must list the table")
        doctor = laneway.command("doctor")
        check(doctor.code in (0, 1) and doctor.out.strip() != "", f"doctor must say what it found\n{doctor}")
        for library in ("inprocess/libcuda.so.1", "shim/libcuda.so.1", "softgpu/libcuda.so.1"):
            check(f"{library} loads" in doctor.out, f"doctor must look at {library}\n{doctor}")


def test_kernels_of_a_program():
    with Laneway(start=False) as laneway:
        program = str(laneway.build / "bin" / "reduce")
        result = laneway.command("kernels", program)
        check(result.code == 0 and "SumFloats(float const*, int, float*)" in result.out, f"{result}")
        check("parameter 0  reads" in result.out and "parameter 2  writes" in result.out, f"{result}")
        found = json.loads(laneway.command("kernels", "--json", program).out)
        check(found["kernels"] and all(kernel["known"] for kernel in found["kernels"]), f"{found}")
        for path, why in ((__file__, "holds no kernels"), ("/no/such/file", "No such file")):
            check_refusal(laneway.command("kernels", path), 1, why)


# --- bad input -------------------------------------------------------------------------------------------------------

def test_unknown_flags_and_values():
    with Laneway(start=False) as laneway:
        for arguments, word in ((["status", "--no-such-flag"], "--no-such-flag"), (["no-such-command"], "no-such-command"),
                                (["run", "--transport=pigeon", "--", "/bin/true"], "pigeon"),
                                (["run", "--mode=private", "--", "/bin/true"], "private")):
            result = laneway.command(*arguments)
            code = 125 if arguments[0] == "run" else 2
            check(result.code in (2, code), f"{arguments}: usage errors exit with 2 (run: 125)\n{result}")
            check(word in result.err and result.out == "", f"{arguments}: the sentence must name '{word}'\n{result}")
        check_nothing_started(laneway)


def test_run_without_a_program():
    with Laneway(start=False) as laneway:
        result = laneway.command("run")
        check(result.code in (2, 125) and result.err.strip(), f"run without a program is a usage error\n{result}")
        check_nothing_started(laneway)


def test_unreadable_config():
    with Laneway(start=False) as laneway:
        config = laneway.root / "config" / "laneway"
        config.mkdir(parents=True)
        for text in ("transport = [unfinished\n", "no-such-key = 1\n", "transport = \"pigeon\"\n"):
            (config / "config.toml").write_text(text)
            result = laneway.run(["/bin/true"])
            check(result.code == 125 and "config.toml" in result.err,
                  f"'{text.strip()}' must be refused with the file's name\n{result}")
        (config / "config.toml").unlink()
        (config / "config.toml").mkdir()
        result = laneway.run(["/bin/true"])
        check(result.code == 125 and "config.toml" in result.err, f"a directory is no configuration\n{result}")
        check_nothing_started(laneway)


def test_foreign_runtime_directory():
    if os.geteuid() != 0:
        raise Skip("needs root, to give a directory to another user")
    with Laneway(start=False) as laneway:
        laneway.runtime.mkdir(mode=0o700)
        os.chown(laneway.runtime, 65534, 65534)
        check_refusal(laneway.run(["/bin/true"]), 125, str(laneway.runtime))
        check(laneway.command("status").code == 1, "status must refuse it, too")
        check_nothing_started(laneway)


def test_open_runtime_directory():
    """Anybody could plant a socket in a directory that others may write to."""
    with Laneway(start=False) as laneway:
        laneway.runtime.mkdir()
        laneway.runtime.chmod(0o777)
        check_refusal(laneway.run(["/bin/true"]), 125, str(laneway.runtime))
        check_nothing_started(laneway)


def test_software_gpu_that_is_misspelt():
    """The keeper's driver does not start: its words reach whoever starts a program."""
    with Laneway(softgpu="memry=1GiB", start=False) as laneway:
        check_refusal(laneway.run(["/bin/true"]), 125, "'memry=1GiB' is not understood")
        wait_for(lambda: not laneway.processes(), "lanewayd did not end")
        check_nothing_started(laneway)


def test_long_runtime_directory():
    """A socket's path has at most 107 bytes."""
    with Laneway(start=False) as laneway:
        result = laneway.run(["/bin/true"], LANEWAY_RUNTIME_DIR=str(laneway.root / ("x" * 120)))
        check_refusal(result, 125, "LANEWAY_RUNTIME_DIR")


def test_no_space_for_rings():
    """The daemon may make no file as large as a session's rings."""
    with Laneway(start=False) as laneway:
        limit = ["/bin/sh", "-c", 'ulimit -f 64; trap "" XFSZ; exec "$0" "$@"', laneway.binary("lanewayd"), "--device=soft"]
        laneway.start_daemon(limit)
        result = laneway.run([laneway.binary("connect")])
        check(result.code == 1 and "error 304" in result.err, f"no room for rings must give 304\n{result}")
        said = [line for line in sentences(result.err) if "error 304" not in line]
        check(len(said) == 1, f"one sentence must say what to do\n{result}")
        check(laneway.sessions() == [], "no session may be half-started")


def test_no_daemon():
    """A program that is preloaded while no daemon runs gets 805 and a sentence."""
    with Laneway() as laneway:
        environment = laneway.run(["/usr/bin/env"]).out
        variables = dict(line.split("=", 1) for line in environment.splitlines() if "=" in line)
        laneway.command("stop", "--force")
        wait_for(lambda: not laneway.processes(), "the daemon ends")
        result = harness.Program([laneway.binary("connect")], variables).wait()
        check(result.code == 1 and "error 805" in result.err, f"no daemon must give 805\n{result}")
        check(len(sentences(result.err)) == 2, f"one sentence and the program's own line\n{result}")


# --- versions --------------------------------------------------------------------------------------------------------

def test_daemon_of_another_version():
    """A daemon that speaks another protocol: both versions in words, 803 to the program."""
    with Laneway(start=False) as laneway:
        with Laneway() as other:
            variables = dict(line.split("=", 1) for line in other.run(["/usr/bin/env"]).out.splitlines() if "=" in line)
        laneway.runtime.mkdir(mode=0o700)
        server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server.bind(str(laneway.runtime / "lanewayd.sock"))
        server.listen(4)
        program = harness.Program([laneway.binary("connect")],
                                  {**variables, "LANEWAY_RUNTIME_DIR": str(laneway.runtime)})
        server.settimeout(20)
        connection, _ = server.accept()
        hello = connection.recv(65536)
        magic, version = struct.unpack_from("=II", hello)
        check(magic == HELLO_MAGIC, f"the hello begins with {magic:x}")
        connection.send(struct.pack(WELCOME, HELLO_MAGIC, version + 1, struct.calcsize(WELCOME), 803, 0, 0, 0, 0, 0,
                                    b"", b""))
        result = program.wait()
        connection.close()
        server.close()
        check(result.code == 1 and "error 803" in result.err, f"another version must give 803\n{result}")
        said = [line for line in sentences(result.err) if "error 803" not in line]
        check(len(said) == 1 and str(version) in said[0] and str(version + 1) in said[0],
              f"one sentence must name both versions\n{result}")


def test_client_of_another_version():
    with Laneway() as laneway:
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.settimeout(20)
        client.connect(str(laneway.runtime / "lanewayd.sock"))
        client.send(struct.pack("=III", HELLO_MAGIC, 999, 12) + bytes(200))
        welcome = client.recv(65536)
        result = struct.unpack_from("=IIII", welcome)[3]
        check(result == 803, f"a client of version 999 must get 803, not {result}")
        check(b"999" in welcome, f"the sentence must name the client's version: {welcome!r}")
        client.close()
        check(laneway.run([laneway.binary("connect")]).code == 0, "the daemon must go on")


def test_garbage_on_the_socket():
    with Laneway() as laneway:
        for garbage in (b"", b"x", bytes(12), os.urandom(4000), struct.pack("=III", HELLO_MAGIC, 1, 4)):
            client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            client.connect(str(laneway.runtime / "lanewayd.sock"))
            if garbage:
                client.send(garbage)
            client.close()
        check(laneway.run([laneway.binary("connect")]).code == 0, "the daemon must go on")
        wait_for(lambda: laneway.sessions() == [], "garbage must not become a session")


if __name__ == "__main__":
    harness.main()
