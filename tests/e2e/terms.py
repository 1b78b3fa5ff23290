"""Terms of jobs: each flag of `laneway run` that says how a job runs changes who runs, and is seen wherever people look.

What is compared is order and the daemon's own counters, never times of this machine.
"""
import http.client
import json
import os
import pathlib
import signal
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, check, wait_for  # noqa: E402
from harness.jobs import HOLD, go_on_together, started  # noqa: E402

EVER = 1_000_000


def iterate(laneway, *options, run=(), name=None):
    command = [laneway.binary("iterate"), *map(str, options)]
    if name is not None:
        command += ["--times", str(laneway.root / name)]
    return laneway.spawn(command, *run, holding=HOLD[0] in options)


def top(laneway):
    result = laneway.command("top", "--json")
    check(result.code == 0, f"top --json\n{result}")
    return json.loads(result.out)["sessions"]


def of_pid(laneway, program):
    return next((session for session in top(laneway) if session["pid"] == program.pid), None)


def ended_well(programs):
    results = [program.wait() for program in programs]
    for result in results:
        check(result.code == 0, f"an iterating program failed:\n{result}")
    return results


def spans(laneway, name):
    return [tuple(map(int, line.split())) for line in (laneway.root / name).read_text().splitlines()]


def check_first(laneway, first, last):
    """Two loops that went on together: most of the other's iterations come after the first one's end."""
    pairs = [(first, "first"), (last, "last")]
    programs = [iterate(laneway, "--iterations", 60, "--kernel-us", 500, *HOLD, run=run, name=name)
                for run, name in reversed(pairs)]  # who is to be last comes first
    go_on_together(programs)
    ended_well(programs)
    end = spans(laneway, "first")[-1][1]
    after = sum(1 for begin, _ in spans(laneway, "last") if begin > end)
    # A program that rests between two iterations lets the other one in.
    check(after >= 40, f"only {after} of 60 iterations came after the end of the one that goes first")


def test_the_more_urgent_class_goes_first():
    with Laneway(start=False) as laneway:
        started(laneway, "priority")
        check_first(laneway, ["--priority=0"], ["--priority=50"])


def test_the_earlier_deadline_goes_first():
    with Laneway(start=False) as laneway:
        started(laneway, "edf")
        check_first(laneway, ["--deadline=1ms"], ["--deadline=2h"])


def test_priority_changes_while_jobs_run():
    with Laneway(start=False) as laneway:
        started(laneway, "priority")
        programs = [iterate(laneway, "--iterations", EVER, "--kernel-us", 500, *HOLD, run=["--priority=9"])
                    for _ in range(2)]
        go_on_together(programs)
        sessions = wait_for(lambda: (lambda s: s if all(s) else None)([of_pid(laneway, p) for p in programs]),
                            "both are seen")

        def gains():
            """How many iterations each has done while one did 60."""
            before = [of_pid(laneway, program)["iterations"] for program in programs]

            def gained():
                now = [of_pid(laneway, program)["iterations"] - was for program, was in zip(programs, before)]
                return now if max(now) >= 60 else None
            return wait_for(gained, "60 iterations")
        for first in (0, 1):
            for which, session in enumerate(sessions):
                result = laneway.command("priority", str(session["job"]), "0" if which == first else "50")
                check(result.code == 0, f"{result}")
            now = gains()
            check(now[first] > 2 * now[1 - first], f"job {first} is the most urgent one, and they did {now}")


def ratio_of_service(laneway, programs, ms=1500):
    """How much more of the device the first one had, while both together had so much."""
    before = [of_pid(laneway, program)["busy_us"] for program in programs]

    def gained():
        now = [of_pid(laneway, program)["busy_us"] - was for program, was in zip(programs, before)]
        return now if sum(now) >= ms * 1000 else None
    now = wait_for(gained, "both together have had the device")
    return now[0] / max(now[1], 1)


def test_weights_share_the_time_and_change_live():
    with Laneway(start=False) as laneway:
        started(laneway, "shares")
        programs = [iterate(laneway, "--iterations", EVER, "--kernel-us", 2000, *HOLD, run=[f"--weight={weight}"])
                    for weight in (300, 100)]
        go_on_together(programs)
        sessions = wait_for(lambda: (lambda s: s if all(s) else None)([of_pid(laneway, p) for p in programs]),
                            "both are seen")
        ratio = ratio_of_service(laneway, programs)
        check(2 < ratio < 4.5, f"300 to 100 came out as {ratio:.2f} to 1")
        check(sessions[0]["terms"]["weight"] == 300, f"{sessions[0]}")
        # What was had before counts as it did, so a part of a slice is evened out first.
        for session, weight in zip(sessions, ("100", "300")):
            check(laneway.command("share", str(session["job"]), weight).code == 0, "the weight is changed")
        ratio_of_service(laneway, programs, ms=200)
        ratio = ratio_of_service(laneway, programs)
        check(1 / 4.5 < ratio < 1 / 2, f"100 to 300 came out as {ratio:.2f} to 1")
        check(of_pid(laneway, programs[0])["terms"]["weight"] == 100, "it is shown")


def refused(result, code, word):
    check(result.code == code, f"expected exit code {code}\n{result}")
    check(len(result.err.splitlines()) == 1 and word in result.err, f"one sentence with '{word}'\n{result}")


def test_terms_that_cannot_be():
    with Laneway() as laneway:
        for option, word in (("--priority=100", "0 to 99"), ("--weight=0", "1 to 10000"), ("--deadline=soon", "20ms"),
                             ("--deadline=0ms", "20ms"), ("--gpus=one", "any"), ("--gpus=0,0", "any"),
                             ("--gpus=1", "laneway status"), ("--gpus=any:2", "laneway status"),
                             ("--gang=65", "0 to 64"), (f"--label={'x' * 64}", "63")):
            refused(laneway.run(["true"], option), 125, word)
        refused(laneway.run(["true"], "--mode=in-process", "--gpus=0"), 125, "leave one of the two out")
        refused(laneway.command("share", "99", "100"), 1, "laneway ps")
        program = laneway.spawn([laneway.binary("connect"), "hold"], holding=True)
        program.wait_for_line("open")
        job = str(laneway.sessions()[0]["job"])
        refused(laneway.command("share", job, "0"), 1, "1 to 10000")
        refused(laneway.command("priority", job, "100"), 1, "0 (most urgent)")


def test_everybody_sees_the_terms():
    with Laneway(start=False) as laneway:
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            port = server.getsockname()[1]
        started(laneway, "fair", f"--metrics={port}", "--user-memory=1GiB", "--user-sessions=9")
        program = laneway.spawn([laneway.binary("connect"), "hold"], "--priority=0", "--weight=300", "--deadline=20ms",
                                "--gang=1", "--gpus=0", "--label=night run", holding=True)
        program.wait_for_line("open")
        expected = {"priority": 0, "weight": 300, "deadline_us": 20000, "gang": 1, "devices": [0], "label": "night run"}
        check(of_pid(laneway, program)["terms"] == expected, "top --json")
        status = json.loads(laneway.status())
        check(status["sessions"][0]["terms"] == expected and status["jobs"][0]["terms"] == expected, f"{status}")
        check(status["daemon"]["user_sessions"] == 9, f"{status['daemon']}")
        job = str(status["jobs"][0]["id"])
        words = "priority 0, weight 300, due in 20.0 ms, device 0"
        for command in (["status"], ["ps"], ["top", "--once"], ["why", job], ["why"]):
            result = laneway.command(*command)
            check(result.code == 0 and words in result.out and "connect (night run)" in result.out, f"{command}\n{result}")
        check("a user may have 1 GiB of each device and 9 sessions" in laneway.command("status").out, "quotas")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=harness.HANG_SECONDS)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        labels = f'{{job="{job}",session="{status["sessions"][0]["id"]}",program="connect",label="night run"}}'
        for line in ("laneway_session_priority" + labels + " 0", "laneway_session_weight" + labels + " 300",
                     "laneway_session_gang" + labels + " 1", "laneway_session_device" + labels + " 0",
                     "laneway_session_deadline_seconds" + labels + " 0.020000",
                     "laneway_session_busy_seconds_total" + labels,
                     f'laneway_user_sessions{{user="{os.getuid()}"}} 1', f'laneway_user_sessions_quota{{user="{os.getuid()}"}} 9'):
            check(line in text, f"'{line}' is not in\n{text}")


def test_terms_outlive_the_daemon():
    with Laneway(start=False) as laneway:
        started(laneway, "fair")
        program = laneway.spawn([laneway.binary("connect"), "hold"], "--weight=300", "--label=kept", holding=True)
        program.wait_for_line("open")
        job = str(laneway.sessions()[0]["job"])
        check(laneway.command("share", job, "200").code == 0, "the weight is changed")
        os.kill(laneway.processes("lanewayd")[0], signal.SIGKILL)
        laneway.daemon.wait()
        started(laneway, "fair")
        terms = laneway.sessions()[0]["terms"]
        check(terms["weight"] == 200 and terms["label"] == "kept", f"{terms}")
        check(laneway.command("share", job, "300").code == 0, "and can be changed again")


def test_a_third_session_waits_for_its_users_quota():
    with Laneway(start=False) as laneway:
        started(laneway, "fair", "--user-sessions=2")
        programs = [laneway.spawn([laneway.binary("connect"), "hold"], holding=True) for _ in range(2)]
        for program in programs:
            program.wait_for_line("open")
        third = laneway.spawn([laneway.binary("connect"), "hold"], holding=True)
        session = wait_for(lambda: of_pid(laneway, third), "the third has come")
        check(session["state"] == "queued", f"{session}")
        why = laneway.command("why", str(session["job"]))
        check("in its user's quota: 2 of 2 sessions run (--user-sessions)" in why.out, f"{why}")
        check("open" not in third.output(), "it was let in")
        programs[0].release()
        third.wait_for_line("open")


def test_a_users_memory_is_bounded_over_all_programs():
    """What fits nobody's quota alone is refused; what fits once others have ended waits for them."""
    with Laneway(start=False) as laneway:
        started(laneway, "fifo", "--user-memory=64MiB")
        result = laneway.run([laneway.binary("iterate"), "--persistent", "80", "--iterations", "1"])
        check(result.code != 0, f"80 of 64 MiB\n{result}")
        holder = iterate(laneway, "--persistent", 40, "--ephemeral", 1, "--iterations", 2, *HOLD)
        holder.wait_for_line("started")
        second = iterate(laneway, "--persistent", 40, "--ephemeral", 1, "--iterations", 2)
        # Either the one who rests makes room, or the other one waits: never both on the device.
        wait_for(lambda: of_pid(laneway, second) or not second.running(), "the second has come")
        check(laneway.used_bytes() <= 64 << 20, f"{laneway.used_bytes()} bytes are used")
        holder.release()
        ended_well([holder, second])


TWO_DEVICES = "devices=2"


def used(laneway):
    return [device["used_bytes"] for device in json.loads(laneway.status())["devices"]]


def hold(laneway, *options, **environment):
    """A session with 1 MiB of memory, and how the daemon knows it."""
    program = laneway.spawn([laneway.binary("connect"), "hold"], *options, holding=True, **environment)
    program.wait_for_line("open")
    return program, of_pid(laneway, program)


def test_a_job_has_the_devices_that_it_was_given():
    with Laneway(softgpu=TWO_DEVICES) as laneway:
        first, session = hold(laneway, "--gpus=1")
        check(session["device"] == 1 and session["terms"]["devices"] == [1], f"{session}")
        memory = used(laneway)
        check(memory[0] == 0 and memory[1] >= 1 << 20, f"memory of --gpus=1: {memory}")
        # Its only device is its number 0, and there is no other one, whatever it says itself.
        result = laneway.run([laneway.binary("connect")], "--gpus=1", CUDA_VISIBLE_DEVICES="1")
        check(result.code != 0, f"device 1 of one device\n{result}")
        first.release()
        first.wait()
        # The other way round: its number 1 is device 0.
        _, session = hold(laneway, "--gpus=1,0", CUDA_VISIBLE_DEVICES="1")
        check(session["device"] == 0, f"{session}")
        check(used(laneway)[0] >= 1 << 20 and used(laneway)[1] == 0, f"memory of 1,0: {used(laneway)}")
        results = {laneway.run([laneway.binary("iterate"), "--iterations", "20"], option).out
                   for option in ("--gpus=0", "--gpus=1", "--gpus=1,0", "--gpus=any:2")}
        check(len(results) == 1 and "20 iterations" in results.pop(), "the same loop on each device")


def test_any_device_is_the_one_that_fewer_use():
    with Laneway(softgpu=TWO_DEVICES) as laneway:
        _, one = hold(laneway, "--gpus=any")
        _, two = hold(laneway, "--gpus=any")
        check({one["device"], two["device"]} == {0, 1}, f"{one}\n{two}")
        _, three = hold(laneway)
        check(three["device"] == 0, "without --gpus it chooses itself")
        _, four = hold(laneway, "--gpus=any")
        check(four["device"] == 1, f"device 0 has two sessions: {four}")


def test_a_session_is_counted_where_its_first_memory_is():
    with Laneway(softgpu=TWO_DEVICES, start=False) as laneway:
        # So little that two of them have room only on two devices.
        laneway.environment["LANEWAY_SOFTGPU"] = TWO_DEVICES + ",memory=64MiB"
        started(laneway, "fifo", "--swap=0")
        programs = [laneway.spawn([laneway.binary("iterate"), "--persistent", "40", "--ephemeral", "1", "--iterations", "5",
                                   *HOLD], holding=True, CUDA_VISIBLE_DEVICES=device) for device in ("0", "1")]
        for program in programs:
            program.wait_for_line("started")
        devices = [of_pid(laneway, program)["device"] for program in programs]
        check(devices == [0, 1], f"{devices}")
        check(all(bytes >= 40 << 20 for bytes in used(laneway)), f"{used(laneway)}")
        lanes = [of_pid(laneway, program)["lane"] for program in programs]
        check(lanes[0] != lanes[1], f"both are in lane {lanes[0]}")
        os.kill(laneway.processes("lanewayd")[0], signal.SIGKILL)
        laneway.daemon.wait()
        started(laneway, "fifo", "--swap=0")
        devices = [of_pid(laneway, program)["device"] for program in programs]
        check(devices == [0, 1], f"to the next daemon: {devices}")
        for program in programs:
            program.release()
        ended_well(programs)


RANKS = """
"$1" --iterations 40 & one=$!
read line
"$1" --iterations 40 & two=$!
wait $one && wait $two
"""


def test_ranks_of_a_gang_wait_for_each_other():
    with Laneway(start=False) as laneway:
        started(laneway, "fair")
        job = laneway.spawn(["/bin/sh", "-c", RANKS, "ranks", laneway.binary("iterate")], "--gang=2", holding=True)
        session = wait_for(lambda: next((s for s in top(laneway) if s["wait"]), None), "the first rank waits")
        check(session["terms"]["gang"] == 2, f"{session}")
        why = laneway.command("why", str(session["job"]))
        check("waits for 1 more of its job's ranks" in why.out, f"{why}")
        check("started" not in job.output() and top(laneway)[0]["iterations"] == 0, f"{top(laneway)}")
        job.process.stdin.write(b"go\n")
        job.process.stdin.flush()
        job.release()
        result = job.wait()
        check(result.code == 0 and result.out.count("40 iterations") == 2, f"{result}")


def test_a_gang_runs_together_beside_others():
    """Of a lane for each and a device for one at a time, ranks get theirs in one step, beside a program that takes turns."""
    with Laneway(start=False) as laneway:
        started(laneway, "shares", "--slice=5")
        alone = iterate(laneway, "--iterations", EVER, "--kernel-us", 500)
        alone.wait_for_line("started")
        job = laneway.spawn(["/bin/sh", "-c", RANKS, "ranks", laneway.binary("iterate")], "--gang=2", holding=True)
        job.process.stdin.write(b"go\n")
        job.process.stdin.flush()
        result = job.wait()
        check(result.code == 0 and result.out.count("40 iterations") == 2, f"{result}")


if __name__ == "__main__":
    harness.main()
