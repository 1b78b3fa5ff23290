"""Iterations are counted while programs run, from whatever source the user chose."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import harness  # noqa: E402
from harness import Laneway, check, wait_for  # noqa: E402


def iterations_of(program, arguments, *options, **environment):
    """The count when all of the program's work is done."""
    with Laneway() as laneway:
        command = [str(laneway.build / "tests" / "iterations" / program), *arguments]
        running = laneway.spawn(command, *options, holding=True, **environment)
        running.wait_for_line("done", 60)
        # The last one is counted where the worker sees that nothing more comes.
        wait_for(lambda: not any(session["in_flight"] for session in laneway.sessions()), "its work is counted")
        sessions = laneway.sessions()
        running.release()
        result = running.wait()
        check(result.code == 0, f"{command}\n{result}")
        check(len(sessions) == 1, f"one session expected, not {sessions}")
        return sessions[0]["iterations"]


def test_header():
    found = iterations_of("loops", ["early_exit", "40", "hold"])
    check(found == 40, f"the program said 40 times that an iteration begins, {found} were counted")


def test_header_unheard():
    """Its laneway_iteration() calls are not asked for, and without ranges there is nothing else."""
    found = iterations_of("loops", ["early_exit", "40", "hold"], "--iterations-from=nvtx")
    check(found == 0, f"{found} were counted")


def test_none():
    found = iterations_of("loops", ["early_exit", "40", "hold"], "--iterations-from=none")
    check(found == 0, f"{found} were counted")


def test_nvtx_outermost():
    found = iterations_of("ranges", ["30"], "--iterations-from=nvtx")
    check(found == 31, f"one range 'setup' and 30 ranges 'step' are outermost, {found} were counted")


def test_nvtx_named():
    found = iterations_of("ranges", ["30"], "--iterations-from=nvtx", LANEWAY_NVTX_RANGE="forward")
    check(found == 30, f"30 ranges begin with 'forward', {found} were counted")


def test_detector():
    """train_digits says nothing; its steps repeat."""
    with Laneway() as laneway:
        training = laneway.spawn([laneway.binary("train_digits"), "--epochs", "1000000"])
        harness.wait_for(lambda: any(session["iterations"] > 100 for session in laneway.sessions()),
                         "100 iterations of train_digits are counted")
        check(training.running(), f"train_digits ended:\n{training.errors()}")


def test_nothing_repeats():
    with Laneway() as laneway:
        holding = laneway.spawn([laneway.binary("connect"), "hold"], holding=True)
        holding.wait_for_line("open")
        sessions = laneway.sessions()
        check([session["iterations"] for session in sessions] == [0], f"no iterations expected: {sessions}")
        holding.release()
        check(holding.wait().code == 0, "the program must end well")


if __name__ == "__main__":
    harness.main()
