"""`laneway trace JOB --calls`: what it tells of a program with known calls, and who may end in the middle of it."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, check, wait_for  # noqa: E402
from harness.jobs import session_of  # noqa: E402
from harness.stepped import Stepped, alone  # noqa: E402
from harness.trace_file import begin_calls, slices  # noqa: E402

WARM_UP, TRACED = 3, 7  # rounds
KERNEL = "Mix(unsigned int const*, unsigned int*, unsigned int)"


def job_of(laneway, program):
    return str(wait_for(lambda: session_of(laneway, program), "it has a session")["job"])


def only(found, pattern):
    """The slices of the one thread with such a name."""
    names = [name for name in found if re.fullmatch(pattern, name)]
    check(len(names) == 1, f"one track '{pattern}' of {list(found)}")
    return found[names[0]]


def count(track, prefix):
    return sum(1 for name, _, _ in track if name.startswith(prefix))


def test_known_calls_are_told_once():
    with Laneway() as laneway:
        out = laneway.root / "calls.json"
        stepped = Stepped(laneway, "device", alone(laneway, "device", WARM_UP + TRACED), WARM_UP + TRACED)
        for _ in range(WARM_UP):
            stepped.step()
        command = begin_calls(laneway, job_of(laneway, stepped.program), out)
        stepped.goes_on_to_its_end()
        result = command.wait()
        check(result.code == 0 and not result.err, f"{result}")
        found = slices(out)
        calls, worker = only(found, "calls, thread .*"), only(found, "worker, session .*")
        for prefix, expected in (("cuLaunchKernel", 2 * TRACED), ("cuEventRecord", TRACED),
                                 ("cuStreamWaitEvent", TRACED), ("cuStreamSynchronize", TRACED),
                                 ("cuMemcpy", TRACED), ("cuEventDestroy", 1), ("cuStreamDestroy", 2)):
            check(count(calls, prefix) == expected, f"{expected} of {prefix}: {calls}")
        check(count(worker, f"Launch {KERNEL}") == 2 * TRACED, f"{worker}")
        streams = [track for name, track in found.items() if name.startswith("device, stream")]
        check(len(streams) == 2, f"{list(found)}")
        for track in streams:
            check(count(track, KERNEL) == TRACED, f"{track}")
            check(all(end > begin for _, begin, end in track), f"{track}")
        waits = [wait for wait in calls if wait[0].startswith("waits for the device")]
        syncs = [call for call in calls if call[0].startswith(("cuStreamSynchronize", "cuMemcpy"))]
        check(all(any(begin <= wait[1] and wait[2] <= end + 0.0005 for _, begin, end in syncs) for wait in waits),
              f"waits lie in the calls that wait\n{waits}\n{syncs}")


def test_a_killed_program_leaves_a_whole_trace():
    with Laneway() as laneway:
        out = laneway.root / "calls.json"
        program = laneway.spawn([laneway.binary("repeat"), "1000000000", "tell"])
        program.wait_for_line("started")
        command = begin_calls(laneway, job_of(laneway, program), out)
        program.kill()
        check(command.wait().code == 0, f"{command.errors()}")
        check(count(only(slices(out), "calls, thread .*"), "cu") > 0, "its calls until then")
        wait_for(lambda: laneway.used_bytes() == 0, "memory is left in use")


def test_a_killed_command_ends_its_trace():
    """lanewayd ends it, another command may trace the job, and the program goes on."""
    with Laneway() as laneway:
        out = laneway.root / "calls.json"
        program = laneway.spawn([laneway.binary("repeat"), "1000000000", "tell"])
        program.wait_for_line("started")
        job = job_of(laneway, program)
        begin_calls(laneway, job, out).kill()
        wait_for(lambda: laneway.command("trace", job, "--calls", "--for", "50ms", "--out", str(out)).code == 0,
                 "another command traces the job")
        check(count(only(slices(out), "worker, session .*"), "") > 0, "and is told of its calls")
        check(program.running(), f"{program.errors()}")


def test_refusals():
    with Laneway() as laneway:
        for arguments, code, word in ((["trace", "--calls"], 2, "laneway ps"), (["trace", "999", "--calls"], 1, "laneway ps"),
                                      (["trace", "1", "--for", "1s"], 2, "--calls"),
                                      (["trace", "1", "--calls", "--for", "soon"], 2, "500ms")):
            result = laneway.command(*arguments)
            check(result.code == code and len(result.err.splitlines()) == 1 and word in result.err, f"{result}")


if __name__ == "__main__":
    harness.main()
