"""Random calls of all rows, by clients without a shim, beside a program that computes."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, Program, check, chosen  # noqa: E402
from harness.jobs import started  # noqa: E402

LOOP = ("--iterations", "40", "--kernels", "4", "--kernel-us", "500", "--persistent", "4", "--ephemeral", "16")


def test_nobody_else_is_hurt(rounds, seed):
    seed = chosen(seed)
    with Laneway(softgpu="memory=1GiB", start=False) as laneway:
        started(laneway, "fair", "--lanes=1", "--slice=5", "--kill-timeout=10")
        command = [laneway.binary("iterate"), *LOOP]
        expected = laneway.bare(command)
        check(laneway.run(command).out == expected.out, "it computes what it does alone")
        before = laneway.processes()
        wild = Program([laneway.binary("wild_client"), str(seed), str(rounds)], laneway.environment)
        laneway.programs.append(wild)
        while wild.running():
            result = laneway.run(command)
            said = f"beside\n{wild.output()[-2000:]}"
            check(laneway.processes() == before, f"a process was lost: {before}, now {laneway.processes()}\n{said}")
            check((result.code, result.out) == (0, expected.out), f"its bytes are wrong\n{result}\n{expected}\n{said}")
        check(wild.wait().code == 0, f"the clients went through\n{wild.output()[-2000:]}")
        check(laneway.processes() == before, f"a process was lost: {before}, now {laneway.processes()}")


if __name__ == "__main__":
    harness.main()
