"""Workers that are lost while a session's memory lies on the host, or is on the way there or back.

What rebuild.py says of programs at rest holds here, too. The seed is printed; --seed repeats a run.
"""
import os
import pathlib
import random
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, Program, check, chosen, wait_for  # noqa: E402
from harness.growing import Growing  # noqa: E402
from harness.jobs import kill_process, of_job  # noqa: E402
from harness.stepped import (Stepped, alone, at_rest, check_806, in_a_lane, kill_worker, rests_or_is_lost,  # noqa: E402
                             stop)


def steer(laneway, command):
    result = laneway.command(command, str(laneway.sessions()[0]["job"]))
    check(result.code == 0, f"{result}")


def evict(laneway):
    at_rest(laneway, 1)
    steer(laneway, "evict")
    wait_for(lambda: laneway.used_bytes() == 0, lambda: f"its memory goes to the host: {laneway.used_bytes()} bytes")


def test_swapped_memory_outlives_its_worker():
    """Lost twice, replaced by an upgrade, and with another daemon between."""
    with Laneway() as laneway:
        stepped = Stepped(laneway, "device", alone(laneway, "device", 6), 6)
        stepped.step()
        evict(laneway)
        for _ in range(2):
            kill_worker(laneway)
            at_rest(laneway, 1)
        steer(laneway, "resume")
        stepped.step()
        evict(laneway)
        result = laneway.command("upgrade-worker")
        check("1 moved, 0 kept" in result.out, f"{result}")
        check(laneway.used_bytes() == 0, "it moves where it lies")
        kill_process(laneway, "lanewayd")
        laneway.start_daemon()
        kill_worker(laneway)
        at_rest(laneway, 1)
        check(laneway.used_bytes() == 0, "a new daemon and a new worker know that it is evicted")
        steer(laneway, "resume")
        stepped.step()
        check(laneway.used_bytes() > 0, "it is back")
        stepped.goes_on_to_its_end()
        wait_for(lambda: laneway.sessions() == [] and laneway.used_bytes() == 0, "nothing is left")


def replaced(laneway, stepped):
    """Another program for one that was lost at work."""
    check_806(stepped.program.wait(), "who is at work")
    wait_for(lambda: laneway.sessions() == [], "its session ends")
    return Stepped(laneway, "device", stepped.expected, stepped.rounds)


def at_rest_or_replaced(laneway, stepped):
    """Waits for its rest. It may have answered when something of its round was left to do, and be lost with that."""
    if rests_or_is_lost(laneway):
        return stepped
    check(not stepped.goes_on(), "a lost session went on")
    return replaced(laneway, stepped)


def test_who_has_not_spoken_since_goes_to_the_host():
    """A program that rests hears of its new worker when it calls again; its memory can go before that."""
    with Laneway() as laneway:
        stepped = Stepped(laneway, "device", alone(laneway, "device"))
        stepped.step()
        at_rest(laneway, 1)
        for command in "evict", "resume":
            before = laneway.sessions()[0]["worker"]
            kill_worker(laneway)
            wait_for(lambda before=before: laneway.sessions()[0]["worker"] not in (0, before), "another worker has it")
            at_rest(laneway, 1)
            steer(laneway, command)
            if command == "evict":
                wait_for(lambda: laneway.used_bytes() == 0, "its memory goes to the host")
        stepped.goes_on_to_its_end()


def test_workers_lost_on_the_way_to_the_host(rounds, seed):
    """Killed at random moments of the way to the host and back."""
    numbers, lost, steps = random.Random(chosen(seed)), 0, rounds + 1
    with Laneway() as laneway:
        stepped = Stepped(laneway, "device", alone(laneway, "device", steps), steps)
        for _ in range(rounds):
            stepped = at_rest_or_replaced(laneway, stepped)
            steer(laneway, "evict")
            returns = numbers.random() < 0.5
            if returns:
                wait_for(lambda: laneway.used_bytes() == 0,
                         lambda: f"its memory goes to the host: {laneway.status()}")
                steer(laneway, "resume")
                stepped.send()
            until = time.monotonic() + numbers.random() * 0.003
            while time.monotonic() < until:
                pass
            kill_worker(laneway)
            if not returns:
                steer(laneway, "resume")
                stepped.send()
            if not stepped.answers():  # it had begun to work
                stepped, lost = replaced(laneway, stepped), lost + 1
        stepped = at_rest_or_replaced(laneway, stepped)
        stepped.goes_on_to_its_end()
        print(f"{lost} programs had begun to work when their worker was lost")
        wait_for(lambda: laneway.sessions() == [] and laneway.used_bytes() == 0, "nothing is left")


def test_a_daemon_lost_while_memory_goes_to_the_host():
    """The next one is told who is on the way, and brings it back before it runs."""
    with Laneway(softgpu="memory=320MiB", start=False) as laneway:
        daemon = [laneway.binary("lanewayd"), "--device=soft", "--log-level=debug"]
        laneway.start_daemon(daemon)
        command = [laneway.binary("iterate"), "--iterations", "5", "--persistent", "192"]
        first = laneway.spawn([*command, "--hold", "1"], holding=True)
        first.wait_for_line("started")
        at_rest(laneway, 1)
        second = laneway.spawn(command)
        log = laneway.runtime / "log" / "lanewayd.log"
        wait_for(lambda: f"session 2 needs {192 << 20} bytes" in log.read_text(), "the second needs memory")
        kill_process(laneway, "lanewayd")
        laneway.start_daemon(daemon)
        expected = laneway.bare(command)
        for program in second, first:
            first.release()
            result = program.wait()
            check((result.code, result.out) == (0, expected.out), f"another result than alone:\n{result}\n{expected}")
        wait_for(lambda: laneway.sessions() == [] and laneway.used_bytes() == 0, "nothing is left")


def with_an_iteration_on_the_host(body):
    """A program that waits for memory inside its iteration goes there with what lives in its lane.

    body(laneway, what starts a daemon, its job, the program, the one that has the memory)
    """
    with Laneway(softgpu="memory=192MiB", start=False) as laneway:
        daemon = [laneway.binary("lanewayd"), "--device=soft", "--lanes=1", "--log-level=debug"]
        laneway.start_daemon(daemon)
        stepped = in_a_lane(laneway, "within")
        job = laneway.sessions()[0]["job"]
        holding = Growing(laneway, "--mode=in-process")  # later than the other, which waits for it
        while laneway.used_bytes() < 136 << 20:
            check(holding.grows() == 0, "what is within the device")
        stepped.send(b"g")
        wait_for(lambda: "device memory" in laneway.command("why", str(job)).out, "it waits for memory")
        steer(laneway, "evict")
        wait_for(lambda: of_job(laneway, job)["state"] == "evicted" and laneway.sessions()[0]["device_bytes"] == 0,
                 lambda: f"it goes to the host: {of_job(laneway, job)}")
        body(laneway, daemon, job, stepped, holding)
        wait_for(lambda: laneway.sessions() == [] and laneway.used_bytes() == 0, "nothing is left")


def test_a_daemon_lost_while_an_iteration_lies_on_the_host():
    """Another job uses the lane meanwhile, and has left it when it comes back."""
    def body(laneway, daemon, job, stepped, holding):
        before = laneway.processes("laneway-worker")
        kill_process(laneway, "lanewayd")
        laneway.start_daemon(daemon)
        check(laneway.processes("laneway-worker") == before, "its worker is there still")
        check(of_job(laneway, job)["state"] == "evicted", f"the next one knows: {of_job(laneway, job)}")
        loop = [laneway.binary("iterate"), "--iterations", "600"]
        expected, other = laneway.bare(loop), laneway.spawn(loop)
        other.wait_for_line("started")
        holding.end()
        steer(laneway, "resume")
        stepped.wait()
        stepped.goes_on_to_its_end()
        ended = other.wait()
        check((ended.code, ended.out) == (0, expected.out), f"its results changed\n{ended}\nalone:\n{expected}")
    with_an_iteration_on_the_host(body)


def test_a_daemon_lost_while_an_iteration_comes_back():
    """What the last one has ordered happens; the next one gives it the lane that it comes back to, and no other."""
    def body(laneway, daemon, job, stepped, holding):
        holding.end()
        wait_for(lambda: len(laneway.sessions()) == 1, "its memory is free")
        worker = laneway.processes("laneway-worker")[0]
        stop(worker)
        steer(laneway, "resume")
        wait_for(lambda: "has been moved" in laneway.command("why", str(job)).out, "it is told to come back")
        kill_process(laneway, "lanewayd")
        laneway.daemon = Program(daemon, laneway.environment)
        log = laneway.runtime / "log" / "lanewayd.log"
        wait_for(lambda: "adopting worker" in log.read_text(), "the next one asks the worker")
        os.kill(worker, signal.SIGCONT)
        stepped.wait()
        stepped.goes_on_to_its_end()
        check(log.read_text().count("session 1 leaves the host") == 1, f"it is told twice\n{log.read_text()}")
    with_an_iteration_on_the_host(body)


if __name__ == "__main__":
    harness.main()
