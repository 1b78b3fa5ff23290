"""A tinygrad program is recorded as it answers, and served without Python: the same requests have the same bytes."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "functions" / "client"))
import harness  # noqa: E402
import laneway_function  # noqa: E402
from harness import Laneway, Program, check  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = HERE.parents[1] / ".venv" / "bin" / "python"


def check_served(jit):
    with Laneway() as laneway:
        laneway.environment.update(DEV="CUDA", JIT=jit, LD_LIBRARY_PATH=os.path.dirname(os.environ["NVRTC_PATH"]))
        result = laneway.command("record", "--name", "network", "--", str(PYTHON), str(HERE / "answers_tinygrad.py"),
                                 seconds=harness.PROGRAM_SECONDS)
        check(result.code == 0, f"JIT={jit} must be recorded\n{result}")
        lines = [line.split(" ", 1)[1] for line in result.out.splitlines() if line.startswith(("request ", "answer "))]
        server = Program([laneway.binary("laneway"), "serve", "network"], laneway.environment)
        laneway.programs.append(server)
        server.wait_for_line(f"serving network at {laneway.runtime}/function-network.sock")
        with laneway_function.connect("network", str(laneway.runtime)) as function:
            for request, answer in zip(lines[::2], lines[1::2]):
                served = function.call(input0=bytes.fromhex(request))["output0"].hex()
                check(served == answer, f"JIT={jit}: the program gave {answer}, the function {served}")
        server.process.terminate()
        check(server.wait().code == 0, "laneway serve must end well")


def test_graphs_of_its_own():
    check_served("1")


def test_kernels_one_by_one():
    check_served("2")


def test_without_its_jit():
    check_served("0")


if __name__ == "__main__":
    harness.main()
