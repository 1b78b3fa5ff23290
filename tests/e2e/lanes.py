"""Lanes and grants: who runs when, and that nobody's results or memory suffer from it."""
import itertools
import json
import os
import pathlib
import random
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, check, chosen, wait_for  # noqa: E402
from harness.jobs import HOLD, all_equal, changes, go_on_together, iterate, overlaps, sharing, spans, started  # noqa: E402

POLICIES = ("fifo", "srtf", "pack", "fair", "rr", "priority", "edf", "shares")
NS_PER_MS = 1_000_000


def run_two(laneway, *options):
    pairs = [iterate(laneway, name, "--iterations", 60, "--kernel-us", 500, *HOLD, *options) for name in ("one", "two")]
    go_on_together([program for program, _ in pairs])
    results = [program.wait() for program, _ in pairs]
    for result in results:
        check(result.code == 0, f"an iterating program failed:\n{result}")
    check(results[0].out == results[1].out, f"the same loop gave two results:\n{results[0]}\n{results[1]}")
    return [spans(times) for _, times in pairs]


def test_fifo_runs_one_after_the_other():
    with Laneway(start=False) as laneway:
        started(laneway, "fifo")
        one, two = sorted(run_two(laneway), key=lambda times: times[-1][1])
        # A program that pauses lets the other one in, and is let in again as soon as it goes on.
        after = sum(1 for begin, _ in two if begin > one[-1][1])
        check(after >= 40, f"only {after} of {len(two)} iterations of the second came after the first had ended")


def test_fair_alternates_at_boundaries():
    with Laneway(start=False) as laneway:
        started(laneway, "fair", "--lanes=1", "--slice=5")
        one, two = run_two(laneway)
        # Until its iterations are found a program is cut anywhere; then it is not.
        check(overlaps(one[20:], two[20:]) == 0, f"{overlaps(one[20:], two[20:])} iterations ran at the same time")
        check(changes(one, two) >= 6, f"the device changed hands only {changes(one, two)} times")


def test_fair_runs_lanes_at_once():
    with Laneway(start=False) as laneway:
        started(laneway, "fair")
        one, two = run_two(laneway)
        check(overlaps(one, two) > 0, "with room for both, one waited for the other")


def test_the_policy_changes_while_programs_run():
    with Laneway(start=False) as laneway:
        started(laneway, "fifo")
        pairs = [iterate(laneway, name, "--iterations", 150, "--kernel-us", 500) for name in ("one", "two")]
        pairs[0][0].wait_for_line("started")
        for policy in itertools.islice(itertools.cycle(POLICIES), 24):
            result = laneway.command("policy", policy)
            check(result.code == 0, f"laneway policy {policy}:\n{result}")
        results = [program.wait() for program, _ in pairs]
        check(all(result.code == 0 for result in results), "\n".join(map(str, results)))
        check(results[0].out == results[1].out, "the results differ")


def test_nobody_waits_for_a_daemon_that_is_gone():
    with Laneway(start=False) as laneway:
        started(laneway, "fifo")
        programs = [iterate(laneway, name, "--iterations", 120, *HOLD)[0] for name in ("one", "two")]
        go_on_together(programs)
        daemon = laneway.processes("lanewayd")[0]
        os.kill(daemon, signal.SIGKILL)
        results = [program.wait() for program in programs]
        check(all(result.code == 0 for result in results), "\n".join(map(str, results)))
        check(results[0].out == results[1].out, "the results differ")
        started(laneway, "fifo")  # which ends what the first one left


def test_a_new_daemon_goes_on_granting():
    with Laneway(start=False) as laneway:
        started(laneway, "rr", "--lanes=1", "--slice=5")
        programs = [iterate(laneway, name, "--iterations", 200, *HOLD)[0] for name in ("one", "two", "three")]
        go_on_together(programs)
        os.kill(laneway.processes("lanewayd")[0], signal.SIGKILL)
        laneway.daemon.wait()
        started(laneway, "rr", "--lanes=1", "--slice=5")
        results = [program.wait() for program in programs]
        check(all(result.code == 0 for result in results), "\n".join(map(str, results)))
        check(len({result.out for result in results}) == 1, "the results differ")


def test_a_pause_outlives_the_daemon():
    """Paused stays paused and evicted evicted, without a daemon and under the next."""
    with Laneway(start=False) as laneway:
        started(laneway, "fair")
        programs = [iterate(laneway, name, "--iterations", 600, "--kernel-us", 300, *HOLD)[0]
                    for name in ("paused", "evicted", "neither")]
        go_on_together(programs)

        def by_pid():
            sessions = {s["pid"]: s for s in json.loads(laneway.command("top", "--json").out)["sessions"]}
            return [sessions.get(program.pid) for program in programs]
        wait_for(lambda: all(s and s["iterations"] >= 10 for s in by_pid()), "all three iterate")
        jobs = [str(s["job"]) for s in by_pid()]
        for command, job in (("pause", jobs[0]), ("evict", jobs[1])):
            check(laneway.command(command, job).code == 0, f"it is told to {command}")
        wait_for(lambda: by_pid()[0]["wait"] == "resume" and by_pid()[1]["device_bytes"] == 0,
                 lambda: f"both stop: {by_pid()}")
        before = [s["iterations"] for s in by_pid()[:2]]
        os.kill(laneway.processes("lanewayd")[0], signal.SIGKILL)
        laneway.daemon.wait()
        result = programs[2].wait()  # which needs no daemon
        check(result.code == 0, str(result))
        started(laneway, "fair")
        wait_for(lambda: all(by_pid()[:2]), "both are known to the next daemon")
        check([s["state"] for s in by_pid()[:2]] == ["paused", "evicted"], f"{by_pid()}")
        check([s["iterations"] for s in by_pid()[:2]] == before, f"none has iterated: {by_pid()}, before {before}")
        for job in jobs[:2]:
            check(laneway.command("resume", job).code == 0, "it is resumed")
        results = [result, *(program.wait() for program in programs[:2])]
        check(all(result.code == 0 for result in results), "\n".join(map(str, results)))
        check(len({result.out for result in results}) == 1, "the results differ")


def two_workers(laneway):
    """Two loops of different size that share a lane from workers of their own."""
    triples = []
    for name, ephemeral in (("one", 24), ("two", 8)):
        command = [laneway.binary("iterate"), "--iterations", "800", "--kernels", "1", "--kernel-us", "200",
                   "--ephemeral", str(ephemeral)]
        times = laneway.root / f"{name}.times"
        program = laneway.spawn([*command, "--times", str(times), *HOLD], "--mode=contained", holding=True)
        triples.append((program, times, command))
    go_on_together([program for program, _, _ in triples])
    wait_for(lambda: len({s["worker"] for s in laneway.sessions() if s["iterations"] > 20}) == 2,
             lambda: f"both iterate in workers of their own: {laneway.sessions()}")
    return triples


def check_two_workers(laneway, triples):
    for program, _, command in triples:
        result, expected = program.wait(), laneway.run(command)
        check((result.code, result.out) == (0, expected.out), f"its results changed\n{result}\nalone:\n{expected}")
    one, two = [spans(times)[20:] for _, times, _ in triples]
    check(overlaps(one, two) == 0, f"{overlaps(one, two)} iterations ran at the same time")


def test_two_workers_share_a_lane():
    with Laneway(start=False) as laneway:
        started(laneway, "fair", "--lanes=1", "--slice=5")
        check_two_workers(laneway, two_workers(laneway))


def test_without_a_daemon_two_workers_do_not_open_their_lane():
    """Neither knows of the other: who is inside goes on, and the next daemon decides again."""
    with Laneway(start=False) as laneway:
        started(laneway, "fair", "--lanes=1", "--slice=5")
        triples = two_workers(laneway)
        os.kill(laneway.processes("lanewayd")[0], signal.SIGKILL)
        laneway.daemon.wait()
        started(laneway, "fair", "--lanes=1", "--slice=5")
        check_two_workers(laneway, triples)


def test_the_holder_of_a_full_lane_is_killed():
    with Laneway(start=False) as laneway:
        started(laneway, "fifo")
        holder, _ = iterate(laneway, "holder", "--iterations", 1_000_000)
        holder.wait_for_line("started")
        others = [iterate(laneway, name, "--iterations", 200, *HOLD)[0] for name in ("one", "two")]
        wait_for(lambda: len([s for s in laneway.sessions() if s["state"] == "running"]) == 3, "three sessions")
        holder.kill()
        go_on_together(others)
        results = [program.wait() for program in others]
        check(all(result.code == 0 for result in results), "\n".join(map(str, results)))


def queued(laneway):
    """A program that is not admitted beside another, that other, and how the first ended when it was alone."""
    command = [laneway.binary("iterate"), "--iterations", "5", "--persistent", "48"]
    expected = laneway.run(command)  # what it needs is known from now on
    check(expected.code == 0, str(expected))
    holder = laneway.spawn([laneway.binary("iterate"), "--iterations", "1000000", "--persistent", "56"],
                           "--mode=in-process")  # whose memory can't go
    holder.wait_for_line("started")
    program = laneway.spawn(command)
    wait_for(lambda: "this program waits for" in program.errors(), program.errors)
    check(program.running() and not program.output(), "it was admitted")
    return program, holder, expected


def test_who_is_queued_says_hello_to_the_next_daemon():
    with Laneway(softgpu="memory=96MiB", start=False) as laneway:
        started(laneway, "fifo")
        program, holder, expected = queued(laneway)
        os.kill(laneway.processes("lanewayd")[0], signal.SIGKILL)
        laneway.daemon.wait()
        wait_for(lambda: "waits for the next one" in program.errors(), program.errors)
        started(laneway, "fifo")
        holder.kill()
        result = program.wait()
        check((result.code, result.out) == (0, expected.out), f"{result}\n{expected}")


def test_who_is_queued_ends_when_laneway_is_stopped():
    with Laneway(softgpu="memory=96MiB", start=False) as laneway:
        started(laneway, "fifo")
        program, holder, _ = queued(laneway)
        stopped = laneway.command("stop", "--force")
        check(stopped.code == 0, str(stopped))
        result = program.wait()
        check(result.code != 0 and "was stopped while this program was waiting" in result.err, str(result))
        holder.kill()


def test_who_is_not_admitted_waits_and_says_why():
    with Laneway(softgpu="memory=96MiB", start=False) as laneway:
        started(laneway, "fifo")
        program, holder, expected = queued(laneway)
        holder.kill()
        result = program.wait()
        check((result.code, result.out) == (0, expected.out), f"{result}\n{expected}")


def test_a_crowd_that_shares_too_little_memory(seed):
    """Jobs of random sizes, several times what the device has: all the way to the host and back, many times over."""
    numbers = random.Random(chosen(seed))
    with Laneway(softgpu="memory=96MiB", start=False) as laneway:
        started(laneway, "srtf")
        jobs = []
        for _ in range(12):
            sizes = {"iterations": (5, 15, 30), "kernel-us": (10, 50), "persistent": (2, 8, 16, 24, 32, 40),
                     "ephemeral": (2, 4, 8, 12, 16)}
            options = [word for name, values in sizes.items() for word in (f"--{name}", str(numbers.choice(values)))]
            jobs.append([laneway.binary("iterate"), *options])
        expected = [laneway.bare(job) for job in jobs]
        for policy in "srtf", "fair":
            check(laneway.command("policy", policy).code == 0, "the policy can be changed")
            programs = [laneway.spawn(job) for job in jobs]
            for job, program, alone in zip(jobs, programs, expected):
                result = program.wait(100)
                check((result.code, result.out) == (0, alone.out), f"{job}: another result than alone:\n{result}")
            wait_for(lambda: laneway.used_bytes() == 0, "memory is left in use")


def test_a_second_run_is_admitted_by_what_the_first_one_learned():
    with Laneway(softgpu="memory=256MiB", start=False) as laneway:
        started(laneway, "fifo")
        command = [laneway.binary("iterate"), "--iterations", "30", "--persistent", "96", "--ephemeral", "48"]
        first = laneway.run(command)
        check(first.code == 0, str(first))
        holder, _ = iterate(laneway, "holder", "--iterations", 1_000_000, "--persistent", 120)
        holder.wait_for_line("started")
        wait_for(lambda: laneway.sessions() and laneway.sessions()[0]["iterations"] > 10, "the holder iterates")
        second = laneway.spawn(command)
        line = wait_for(lambda: next((s for s in laneway.sessions() if s["state"] == "queued"), None),
                        lambda: f"it is let in before there is room for it:\n{laneway.command('ps').out}")
        why = laneway.command("why", str(line["job"])).out
        check("waits for 144 MiB" in why, f"it waits for another reason:\n{why}")
        holder.kill()
        result = second.wait()
        check((result.code, result.out) == (0, first.out), f"another result than the first:\n{result}\n{first}")


def test_who_exceeds_a_limit_beside_full_lanes_fails_alone():
    with Laneway(softgpu="memory=192MiB", start=False) as laneway:
        started(laneway, "fair")
        command, programs = sharing(laneway, 3)
        refused = laneway.run([laneway.binary("allocate"), "100"], "--memory=64MiB")
        check(refused.out.startswith("allocate 100 MiB: 2\n"), f"its limit is its own affair\n{refused}")
        all_equal(laneway, command, programs)


def test_without_swap_space_newcomers_wait():
    with Laneway(softgpu="memory=192MiB", start=False) as laneway:
        started(laneway, "fair", "--swap=0MiB")
        command, programs = sharing(laneway, 2)
        newcomer = laneway.run([laneway.binary("allocate"), "150"])
        check(newcomer.out == "allocate 150 MiB: 0\nallocate 1 MiB: 0\n", f"it has to wait\n{newcomer}")
        all_equal(laneway, command, programs)


def test_a_worker_is_lost_while_its_lane_is_full():
    with Laneway(softgpu="memory=192MiB", start=False) as laneway:
        started(laneway, "fair")
        command, programs = sharing(laneway, 3)
        os.kill(laneway.processes("laneway-worker")[0], signal.SIGKILL)
        expected = laneway.bare(command)
        for program in programs:
            result = program.wait()
            fine = "806" in result.err if result.code else result.out == expected.out
            check(fine, f"neither 806 nor equal\n{result}")
        all_equal(laneway, command, [laneway.spawn(command)])


if __name__ == "__main__":
    harness.main()
