"""In-process mode: the program has its own context and driver; Laneway gives turns and counts memory."""
import itertools
import json
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, check, wait_for  # noqa: E402
from harness.jobs import HOLD, changes, check_trace, go_on_together, iterate, overlaps, spans, started  # noqa: E402

MODE = "--mode=in-process"
MIB = 1 << 20


def iterate_in_process(laneway, name, *options):
    """As lanes.iterate, in a context of its own."""
    times = laneway.root / f"{name}.times"
    command = [laneway.binary("iterate"), "--times", str(times), *map(str, options)]
    return laneway.spawn(command, MODE, holding=HOLD[0] in options), times


def programs(laneway):
    return [[laneway.binary(name), *options] for name, *options in (
        ("vector_add",), ("vector_add_driver",), ("reduce",), ("tiled_gemm",), ("train_digits", "--epochs", "4"),
        ("infer_digits", "--requests", "100"), ("memory",), ("pools",), ("streams",), ("threads",), ("callbacks",),
        ("find_entry_point",), ("fork_before",), ("fork_after",), ("exec",), ("cublas_ops",), ("close_fds",))]


def check_equal(laneway, command):
    expected, actual = laneway.bare(command), laneway.run(command, MODE)
    check(expected.code == actual.code, f"{command}: {actual}\non the bare device: {expected}")
    check(harness.without_times(expected.out) == harness.without_times(actual.out),
          f"{command} prints something else:\n{actual}\non the bare device:\n{expected}")


def test_programs_print_what_they_print_on_the_bare_device():
    with Laneway() as laneway:
        for command in programs(laneway):
            check_equal(laneway, command)
        wait_for(lambda: not laneway.sessions(), "sessions are left")


def test_results_are_the_same_beside_neighbours():
    with Laneway() as laneway:
        neighbours = laneway.neighbours()
        for command in programs(laneway)[4:8]:
            check_equal(laneway, command)
        check(all(neighbour.running() for neighbour in neighbours), "a neighbour ended")


def run_three(laneway):
    """Two loops with contexts of their own and one that shares: when their iterations ran, in the order of their end."""
    size = ("--iterations", 60, "--kernel-us", 500, *HOLD)
    pairs = [iterate_in_process(laneway, "one", *size), iterate_in_process(laneway, "two", *size),
             iterate(laneway, "shared", *size)]
    go_on_together([program for program, _ in pairs])
    results = [program.wait() for program, _ in pairs]
    for result in results:
        check(result.code == 0, f"an iterating program failed:\n{result}")
    check(len({result.out for result in results}) == 1, "the same loop gave two results:\n" + "\n".join(map(str, results)))
    return sorted((spans(times) for _, times in pairs), key=lambda times: times[-1][1])


def test_fifo_runs_one_after_the_other():
    with Laneway(start=False) as laneway:
        started(laneway, "fifo")
        first, second, third = run_three(laneway)
        for before, after in ((first, second), (second, third)):
            # Until the iterations of the one in front are found, it may be idle between two of them.
            late = sum(1 for begin, _ in after if begin > before[-1][1])
            check(late >= 40, f"only {late} of {len(after)} iterations came after the ones in front had ended")


def test_fair_alternates_at_boundaries():
    with Laneway(start=False) as laneway:
        started(laneway, "fair", "--lanes=1", "--slice=5")
        three = run_three(laneway)
        for one, other in itertools.combinations(three, 2):
            # Until its iterations are found a program is cut anywhere; then it is not.
            check(overlaps(one[20:], other[20:]) == 0, f"{overlaps(one[20:], other[20:])} iterations ran at the same time")
            check(changes(one, other) >= 4, f"the device changed hands only {changes(one, other)} times")


def test_srtf_lets_the_shorter_one_through():
    with Laneway(start=False) as laneway:
        started(laneway, "srtf", "--lanes=1")
        long, times_of_long = iterate_in_process(laneway, "long", "--iterations", 1200, "--kernel-us", 500)
        wait_for(lambda: laneway.sessions() and laneway.sessions()[0]["iterations"] >= 200, "the long one iterates")
        short, times_of_short = iterate_in_process(laneway, "short", "--iterations", 60, "--kernel-us", 500)
        for program in (short, long):
            result = program.wait()
            check(result.code == 0, str(result))
        mine = spans(times_of_short)[20:]  # until its iterations are found it is cut anywhere
        between = sum(1 for begin, _ in spans(times_of_long) if mine[0][0] < begin < mine[-1][1])
        check(between <= 2, f"{between} iterations of the long one ran among those of the short one")


def test_grants_are_in_the_trace():
    with Laneway(start=False) as laneway:
        started(laneway, "fair", "--lanes=1", "--slice=5")
        for name in ("one", "two"):
            iterate_in_process(laneway, name, "--iterations", 1_000_000, "--kernel-us", 500)
        wait_for(lambda: [s["iterations"] > 50 for s in laneway.sessions()] == [True, True], "both iterate")
        jobs = {session["job"] for session in laneway.sessions()}
        events = check_trace(laneway.command("trace").out)
        turns = [event["args"]["job"] for event in events if event.get("cat") == "lane"]
        check(set(turns) == jobs, f"turns of {set(turns)} are drawn, {jobs} ran")
        changed = sum(1 for one, other in itertools.pairwise(turns) if one != other)
        check(changed >= 4, f"the lane changes hands {changed} times in the trace")


def device(laneway):
    return json.loads(laneway.status())["devices"][0]


def test_memory_is_counted_limited_and_comes_back():
    with Laneway(softgpu="memory=512MiB") as laneway:
        free = device(laneway)["free_bytes"]
        limited = laneway.run([laneway.binary("allocate"), "200", "show"], MODE, "--memory=128MiB")
        check("total 128 MiB, 128 MiB" in limited.out and "allocate 200 MiB: 2" in limited.out, f"its limit:\n{limited}")
        hold = [laneway.binary("iterate"), "--iterations", "1000000", "--persistent", "100", "--ephemeral", "20"]
        program = laneway.spawn(hold, MODE)
        session = wait_for(lambda: next((s for s in laneway.sessions() if s["device_bytes"] >= 100 * MIB), None),
                           "100 MiB are not counted")
        check(device(laneway)["used_bytes"] >= 100 * MIB, "status does not agree with itself")
        check(session["in_process"] and not session["recoverable"] and "in-process" in session["obstacle"], str(session))
        beyond = laneway.run([laneway.binary("allocate"), "600"], MODE)
        check("allocate 600 MiB: 2" in beyond.out, f"allocated more than the device has:\n{beyond}")
        evicted = laneway.command("evict", str(session["job"]))
        check(evicted.code != 0 and "in-process" in evicted.err, f"evicted what can't move:\n{evicted}")
        program.kill()
        wait_for(lambda: device(laneway)["free_bytes"] == free and not laneway.sessions(), "memory did not come back", 1)


def top(laneway):
    return json.loads(laneway.command("top", "--json").out)["sessions"][0]


def test_pause_and_resume():
    with Laneway(start=False) as laneway:
        started(laneway, "fair")
        program, _ = iterate_in_process(laneway, "one", "--iterations", 800, "--kernel-us", 500)
        program.wait_for_line("started")
        job = str(laneway.sessions()[0]["job"])

        def iterations():
            return laneway.sessions()[0]["iterations"]
        wait_for(lambda: iterations() >= 10, "no iterations were found")
        check(laneway.command("pause", job).code == 0, "pause failed")
        wait_for(lambda: top(laneway)["wait"] == "resume", "it does not stop at its boundary")
        check(top(laneway)["state"] == "paused", "top does not say that it is paused")
        check("pause" in laneway.command("why", job).out, "why does not say that it is paused")
        before = iterations()
        check(program.running() and iterations() == before, "it goes on while it is paused")
        check(laneway.command("resume", job).code == 0, "resume failed")
        result = program.wait()
        check(result.code == 0, str(result))


def test_a_program_survives_its_daemon_and_meets_the_next():
    with Laneway(start=False) as laneway:
        started(laneway, "rr", "--lanes=1", "--slice=5")
        pairs = [iterate_in_process(laneway, name, "--iterations", 800, "--kernel-us", 500) for name in ("one", "two")]
        for program, _ in pairs:
            program.wait_for_line("started")
        os.kill(laneway.processes("lanewayd")[0], signal.SIGKILL)
        laneway.daemon.wait()
        started(laneway, "rr", "--lanes=1", "--slice=5")
        wait_for(lambda: len([s for s in laneway.sessions() if s["in_process"] and s["device_bytes"] > 0]) == 2,
                 "they did not come back")
        results = [program.wait() for program, _ in pairs]
        check(all(result.code == 0 for result in results), "\n".join(map(str, results)))
        check(results[0].out == results[1].out, "the results differ")
        wait_for(lambda: not laneway.sessions(), "sessions are left")


if __name__ == "__main__":
    harness.main()
