"""examples/llm: a GPT-2 that tinygrad trains through Laneway is served, and goes on with a text as the program did."""
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "serve" / "front"))
import harness  # noqa: E402
from harness import Laneway, check  # noqa: E402
from served import Server  # noqa: E402

PYTHON = ROOT / ".venv" / "bin" / "python"
STEPS = 16  # after which the likeliest byte is clear
TEXT = "abc\n" * 500


def test_what_is_trained_is_served():
    with Laneway() as laneway:
        model, text = laneway.root / "gpt2-bytes", laneway.root / "text"
        text.write_text(TEXT)
        nvrtc = os.environ["NVRTC_PATH"]
        result = laneway.run([str(PYTHON), str(ROOT / "examples" / "llm" / "train_gpt2.py"), "--steps", str(STEPS),
                              "--text", str(text), "--output", str(model)], DEV="CUDA", LD_LIBRARY_PATH=os.path.dirname(nvrtc))
        check(result.code == 0, f"training:\n{result}")
        losses = [float(line.split("loss ")[1]) for line in result.out.splitlines() if line.startswith("step ")]
        check(losses and losses[-1] < 3, f"a guess among 257 tokens has a loss of 5.5\n{result.out}")
        written = json.loads(next(line for line in result.out.splitlines() if line.startswith('"')))
        server = Server(laneway, model).wait_until_ready()
        served = server.complete("Laneway ", 60)
        check("Laneway " + served == written, f"the program wrote {written!r}, the server {served!r}")
        server.end()


if __name__ == "__main__":
    harness.main()
