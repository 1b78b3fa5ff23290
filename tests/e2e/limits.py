"""Limits and refusals: each gives its documented error code, one sentence, and leaves the others alone."""
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, check, wait_for  # noqa: E402
from harness.jobs import top  # noqa: E402

SESSIONS_MAX = 64


def sentences(text):
    return [line for line in text.splitlines() if line.strip()]


def test_sixty_fifth_session():
    with Laneway() as laneway:
        held = [laneway.spawn([laneway.binary("connect"), "hold"], holding=True) for _ in range(SESSIONS_MAX)]
        for program in held:
            program.wait_for_line("open", 60)
        check(len(laneway.sessions()) == SESSIONS_MAX, "64 sessions are open, status does not say so")
        refused = laneway.run([laneway.binary("connect")])
        check(refused.code == 1 and "error 808" in refused.err, f"the 65th session must get 808\n{refused}")
        said = [line for line in sentences(refused.err) if "error 808" not in line]
        check(len(said) == 1, f"one sentence must say what to do\n{refused}")
        held.pop().kill()
        wait_for(lambda: len(laneway.sessions()) < SESSIONS_MAX, "a place becomes free")
        again = laneway.run([laneway.binary("connect")])
        check(again.code == 0, f"a free place must be usable\n{again}")
        for program in held:
            program.release()
        for program in held:
            result = program.wait()
            check(result.code == 0, f"a held session\n{result}")


def test_three_hundred_connects():
    with Laneway() as laneway:
        command = [laneway.binary("connect")]
        check(laneway.run(command).code == 0, "the first connect")
        begin = time.monotonic()
        started, running, done = 0, [], 0
        while done < 300:
            while started < 300 and len(running) < SESSIONS_MAX:
                running.append(laneway.spawn(command))
                started += 1
            ended = [program for program in running if not program.running()]
            for program in ended:
                result = program.wait()
                check(result.code == 0 and result.out == "connect: ok\n", f"connect\n{result}")
                running.remove(program)
                laneway.programs.remove(program)
                done += 1
            if not ended:
                time.sleep(harness.POLL_SECONDS)
            check(time.monotonic() - begin < 120, f"after 120 s only {done} of 300 ended")
        seconds = time.monotonic() - begin
        print(f"time: 300 runs of connect, at most {SESSIONS_MAX} alive: {seconds:.1f} s")
        check(seconds <= 20, f"300 runs took {seconds:.1f} s, the bar is 20 s")
        wait_for(lambda: laneway.sessions() == [], "every session's end is noticed", 1.0)


def test_full_device():
    with Laneway(softgpu="devices=1,memory=256MiB") as laneway:
        result = laneway.run([laneway.binary("allocate"), "300"])
        check(result.out == "allocate 300 MiB: 2\nallocate 1 MiB: 0\n", f"a full device must give code 2\n{result}")
        result = laneway.run([laneway.binary("allocate"), "100"])
        check(result.out == "allocate 100 MiB: 0\nallocate 1 MiB: 0\n", f"what fits must succeed\n{result}")


def test_a_program_gets_back_what_it_has_freed():
    """While a kernel keeps the device busy: there is no room beside it, and nobody else to wait for."""
    with Laneway(softgpu="devices=1,memory=192MiB") as laneway:
        result = laneway.run([laneway.binary("replace"), "120", "130"])
        check(result.code == 0 and result.out == "round 0: 0\nround 1: 0\nround 2: 0\n", f"{result}")


def test_memory_limit():
    """A job sees and gets its limit, whatever the device has; what exceeds it fails at once."""
    with Laneway(softgpu="devices=1,memory=256MiB") as laneway:
        allocate = laneway.binary("allocate")
        result = laneway.run([allocate, "100", "info"], "--memory=64MiB")
        check(result.out == "total 64 MiB, 64 MiB\nallocate 100 MiB: 2\nallocate 1 MiB: 0\n",
              f"the limit must hold and show\n{result}")
        result = laneway.run([allocate, "60", "info"], "--memory=64MiB")
        check(result.out == "total 64 MiB, 64 MiB\nallocate 60 MiB: 0\nallocate 1 MiB: 0\n",
              f"what is within the limit must succeed\n{result}")
        result = laneway.run([allocate, "100", "info"])
        check("total 256 MiB, 256 MiB" in result.out, f"others are not limited\n{result}")
        refused = laneway.run([allocate, "1"], "--memory=much")
        check(refused.code != 0 and "--memory" in refused.err, f"one sentence must name the flag\n{refused}")


def test_arrays_are_memory_of_the_job():
    """They count towards its limit and in status, and a session that has any stays in its worker."""
    with Laneway(softgpu="devices=1,memory=256MiB") as laneway:
        allocate = laneway.binary("allocate")
        result = laneway.run([allocate, "100", "array"], "--memory=64MiB")
        check(result.out == "array of 100 MiB: 2\nused 0 MiB\n", f"the limit must hold\n{result}")
        result = laneway.run([allocate, "300", "array"])
        check(result.out == "array of 300 MiB: 2\nused 0 MiB\n", f"a full device must give code 2\n{result}")
        for options in (("--memory=64MiB",), ()):
            program = laneway.spawn([allocate, "40", "array"], *options, holding=True)
            program.wait_for_line("used 40 MiB", 60)
            session = laneway.sessions()[0]
            check(session["device_bytes"] == 40 << 20, f"status must say so\n{session}")
            check(top(laneway)["sessions"][0]["device_bytes"] == 40 << 20, "top must say so")
            check(not session["recoverable"] and "arrays" in session["obstacle"], f"it cannot be rebuilt\n{session}")
            program.release()
            check(program.wait().code == 0, "it ends well")
            wait_for(lambda: laneway.used_bytes() == 0, "nothing is left")


def test_illegal_address():
    with Laneway() as laneway:
        command = [laneway.binary("illegal_address")]
        bare = laneway.bare(command)
        result = laneway.run(command)
        check(result.out == bare.out, f"the codes must be those of the bare device\n{bare}\n{result}")
        check("synchronise 700" in result.out, f"the program must get CUDA_ERROR_ILLEGAL_ADDRESS\n{result}")
        for word in ("Stray", "block", "thread", "line"):
            check(word in result.err, f"standard error must name kernel, block, thread and PTX line\n{result}")
        # The culprit hears of it from the page that it shares with its worker, lanewayd by a message.
        wait_for(lambda: "Stray" in laneway.status(), lambda: f"status must name the kernel\n{laneway.status()}")
        again = laneway.run([laneway.binary("vector_add")])
        check(again.code == 0, f"the next session must get a new worker\n{again}")


def test_registered_memory_after_a_fault():
    """The program's own memory stays, with what is in it, when its session has ended."""
    with Laneway() as laneway:
        command = [laneway.binary("registered"), "fault"]
        bare = laneway.bare(command)
        result = laneway.run(command)
        check("fault: 700" in bare.out and result.out == bare.out, f"as on the bare device\n{bare}\n{result}")


def test_graph_over_freed_memory():
    """The program gets what the device would say; the worker that it shares goes on."""
    with Laneway() as laneway:
        other = laneway.spawn([laneway.binary("connect"), "hold"], holding=True)
        other.wait_for_line("open", 60)
        command = [laneway.binary("freed_graph")]
        bare = laneway.bare(command)
        result = laneway.run(command)
        check("synchronise 700\nallocate 700" in bare.out, f"the bare device must fault\n{bare}")
        check("synchronise 700\nallocate 700" in result.out, f"the program must get 700\n{result}")
        check("freed" in result.err, f"one sentence must say why\n{result}")
        check(len(laneway.processes("laneway-worker")) == 1 and other.running(), "the worker must go on")
        other.release()
        ended = other.wait()
        check(ended.code == 0, f"its neighbour\n{ended}")


def test_static_runtime():
    with Laneway() as laneway:
        result = laneway.run([laneway.binary("static_runtime")])
        check(result.out == "error 801\n", f"a static runtime must get 801\n{result}")
        check(len(sentences(result.err)) == 1 and "--cudart shared" in result.err,
              f"one sentence must say how to rebuild\n{result}")


def test_machine_code():
    """Kernels that the device can't run get 209, and one sentence that says what would help."""
    with Laneway() as laneway:
        for result in (laneway.bare([laneway.binary("machine_code")]), laneway.run([laneway.binary("machine_code")])):
            check(result.code == 0 and result.out == "first 209\nsecond 209\n", f"machine code must get 209\n{result}")
            check(len(sentences(result.err)) == 1 and "torch.compile" in result.err,
                  f"one sentence must name the remedies\n{result}")


def test_preloading_is_harmless():
    """Programs that never use CUDA start no session and print nothing of ours."""
    with Laneway() as laneway:
        for command in (["/bin/true"], ["/bin/sh", "-c", "echo out; echo err >&2; exit 3"], ["/bin/cat", "/dev/null"]):
            plain = harness.Program(command, laneway.environment).wait()
            result = laneway.run(command)
            check((result.code, result.out, result.err) == (plain.code, plain.out, plain.err),
                  f"{command}: not as without Laneway\n{plain}\n{result}")
        check(laneway.sessions() == [], "a program without CUDA must not become a session")


def test_many_processes_of_one_job():
    """A program's children are sessions of the same job."""
    with Laneway() as laneway:
        connect = laneway.binary("connect")
        program = laneway.spawn(["/bin/sh", "-c", f"mkfifo $1/a $1/b; {connect} hold <$1/a & {connect} hold <$1/b & "
                                 "exec 3>$1/a 4>$1/b; read line; exec 3>&- 4>&-; wait",
                                 "sh", tempfile.mkdtemp(dir=laneway.root)], holding=True)
        wait_for(lambda: len(laneway.sessions()) == 2, "both children have sessions")
        jobs = {session["job"] for session in laneway.sessions()}
        check(len(jobs) == 1, f"two sessions of one command are one job, not {jobs}")
        program.process.stdin.write(b"\n")
        program.release()
        check(program.wait().code == 0, "the command must end well")
        wait_for(lambda: laneway.sessions() == [], "the sessions end")


if __name__ == "__main__":
    harness.main()
