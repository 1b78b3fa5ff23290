"""Workers that are lost with an order of lanewayd's that they have not answered: what it was for happens all the same.

A worker that is stopped (SIGSTOP) reads nothing: what it is told from then on, it has not answered when it is killed.
"""
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, alive, check, wait_for  # noqa: E402
from harness.growing import GROW_MIB, Growing  # noqa: E402
from harness.jobs import of_job, started  # noqa: E402
from harness.stepped import STEPS, Stepped, alone, at_rest, kill_worker, stop  # noqa: E402

MIB = 1 << 20
WIDE_MIB = 72  # what another job leaves of its lane


def session_of(laneway, program):
    return next(s for s in laneway.sessions() if s["pid"] == program.pid)


def in_a_wide_lane(laneway):
    """A program that rests between two iterations; its lane, which it does not hold, is larger than it needs.

    Another job has left it so.
    """
    stepped = Stepped(laneway, "lane", alone(laneway, "lane"))
    for _ in range(STEPS // 2):
        stepped.step()
    job = session_of(laneway, stepped.program)["job"]
    wait_for(lambda: of_job(laneway, job)["ephemeral_bytes"] > 0, lambda: f"it uses a lane: {of_job(laneway, job)}")
    wide = laneway.run([laneway.binary("iterate"), "--iterations", "30", "--ephemeral", str(WIDE_MIB)])
    check(wide.code == 0, f"{wide}")
    at_rest(laneway, 1)
    check(laneway.used_bytes() >= WIDE_MIB * MIB, f"the lane is wide still: {laneway.used_bytes()} bytes")
    return stepped


def asks_for_more_than_is_free(laneway, mode="in-process"):
    """A program elsewhere that waits for memory which the lane is to give back."""
    growing = Growing(laneway, f"--mode={mode}")
    while not waits(growing):
        check(growing.asked * GROW_MIB < 256, "it has more than there is")
    return growing


def waits(growing):
    """Whether one more allocation is not answered before lanewayd says that it waits."""
    growing.grow()
    wait_for(lambda: len(growing.answers()) == growing.asked or "device memory" in why(growing), lambda: why(growing))
    return len(growing.answers()) < growing.asked


def why(growing):
    return growing.laneway.command("why", str(growing.job)).out


def answered(growing):
    wait_for(lambda: len(growing.answers()) == growing.asked, lambda: f"it is answered: {why(growing)}")
    for _ in range(WIDE_MIB // GROW_MIB - 2):  # the whole of it
        growing.grows()
    check(growing.answers() == [0] * growing.asked, f"it has its memory: {growing.answers()}")


def kill(pid):
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not alive(pid), "the worker is gone")


def goes_on_to_its_end(laneway, stepped):
    stepped.goes_on_to_its_end()
    wait_for(lambda: laneway.sessions() == [] and laneway.used_bytes() == 0, "nothing is left")


def with_a_wide_lane(body):
    with Laneway(softgpu="memory=192MiB", start=False) as laneway:
        started(laneway, "fair", "--lanes=1")
        body(laneway, in_a_wide_lane(laneway))


def loses_its_worker_with_the_order(laneway, stepped, mode="in-process"):
    """Both go on: the one who asks has its memory, and the one in the lane iterates to its end."""
    pid = laneway.processes("laneway-worker")[0]
    stop(pid)
    growing = asks_for_more_than_is_free(laneway, mode)
    kill(pid)
    answered(growing)
    stepped.step()
    growing.end()
    goes_on_to_its_end(laneway, stepped)


def test_a_lane_that_is_to_shrink():
    """Nobody holds it: its worker is told to give memory back, and is killed with that."""
    with_a_wide_lane(loses_its_worker_with_the_order)


def test_a_lane_of_two_workers_that_is_to_shrink():
    """What one of them has answered is not free before the other has let go of it."""
    with_a_wide_lane(lambda laneway, stepped: loses_its_worker_with_the_order(laneway, stepped, "contained"))


def test_a_lane_that_is_to_shrink_when_its_holder_has_left():
    """Its holder is told to leave; that it has left, its worker's end alone tells."""
    def body(laneway, stepped):
        stepped.step()
        at_rest(laneway, 1)
        loses_its_worker_with_the_order(laneway, stepped)
    with_a_wide_lane(body)


def test_a_lane_that_is_to_shrink_whose_sessions_end_with_their_worker():
    """There is nobody whom the next worker could be told of."""
    def body(laneway, stepped):
        pid = laneway.processes("laneway-worker")[0]
        stop(pid)
        growing = asks_for_more_than_is_free(laneway)
        stepped.program.kill()
        kill(pid)
        answered(growing)
        growing.end()
        wait_for(lambda: laneway.sessions() == [] and laneway.used_bytes() == 0, "nothing is left")
    with_a_wide_lane(body)


def test_who_moves_is_counted_once():
    """What its workers had for it alone, a workspace of cuBLAS, is not the job's when they are lost."""
    rounds = 24
    with Laneway(softgpu="memory=64MiB") as laneway:
        stepped = Stepped(laneway, "device", alone(laneway, "device", rounds, "blas_rounds"), rounds,
                          name="blas_rounds")
        for _ in range(rounds - 1):
            stepped.step()
            at_rest(laneway, 1)
            kill_worker(laneway)
        stepped.step()
        stepped.finish()
        log = (laneway.runtime / "log" / "lanewayd.log").read_text()
        check("gets no more memory" not in log, f"it is refused what it has\n{log}")


if __name__ == "__main__":
    harness.main()
