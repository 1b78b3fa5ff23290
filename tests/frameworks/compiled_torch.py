"""PyTorch's compiled training steps on the software GPU: bare, through Laneway, and three at once.

The environment's TORCH_LIBRARIES names what PyTorch's libraries need besides ours (tests/frameworks/CMakeLists.txt).
"""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, check  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = str(ROOT / ".venv-torch/bin/python")
SECONDS = 300
# docs/frameworks.md: what a program needs to be told on the bare device.
ASSEMBLERS = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")


def libraries():
    return {"LD_LIBRARY_PATH": os.environ["TORCH_LIBRARIES"]}


def bare(laneway, command):
    assembler = str(laneway.build / "lib/laneway/softgpu/bin/ptxas")
    return laneway.bare(command, SECONDS, **libraries(), **dict.fromkeys(ASSEMBLERS, assembler))


def training(network):
    return [PYTHON, str(ROOT / "tests/frameworks/training_torch.py"), network]


def check_agrees(result, what):
    check(result.code == 0 and "agrees" in result.out and "DIFFERS" not in result.out, f"{what}\n{result}")


def check_equal(result, expected, what):
    check(result.code == 0 and result.out == expected.out, f"{what}\n{result}\n--- expected\n{expected.out}")


def test_mlp():
    """Compiled through Laneway, where nobody but `laneway run` says where the assembler is."""
    with Laneway() as laneway:
        through = laneway.run(training("mlp"), seconds=SECONDS, **libraries())
        check_agrees(through, "through Laneway")
        check_equal(bare(laneway, training("mlp")), through, "the bare device, with the same kernels")


def test_transformer():
    with Laneway() as laneway:
        alone = bare(laneway, training("transformer"))
        check_agrees(alone, "on the bare device")
        check_equal(laneway.run(training("transformer"), seconds=SECONDS, **libraries()), alone, "through Laneway")
        together = [laneway.spawn(training("transformer"), **libraries()) for _ in range(3)]
        for program in together:
            check_equal(program.wait(SECONDS), alone, "one of three at once")


def test_eager_kernels_are_refused_with_the_remedy():
    command = [PYTHON, "-c", "import torch; torch.ones(8, device='cuda')"]
    with Laneway() as laneway:
        for result in (bare(laneway, command), laneway.run(command, seconds=SECONDS, **libraries())):
            said = [line for line in result.err.splitlines() if "only machine code is there" in line]
            check(result.code == 1 and "no kernel image is available" in result.err, f"an eager kernel runs\n{result}")
            check(len(said) == 1 and "torch.compile" in said[0], f"one sentence must name torch.compile\n{result}")


if __name__ == "__main__":
    harness.main()
