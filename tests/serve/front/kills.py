"""Kills what serves a model, or a client of it, while streams are open, and checks what the clients get.

Each stream ends with the tokens of a stage that is run directly, or with an error chunk after some of them: none hangs,
and no token comes twice. Afterwards the model answers again, and all of its memory for keys and values is free. The
seed is printed; --seed repeats a run.
"""
import concurrent.futures
import json
import os
import pathlib
import random
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import byte_model  # noqa: E402
import harness  # noqa: E402
from harness import HANG_SECONDS, Laneway, check, chosen, wait_for  # noqa: E402
from harness.jobs import kill_process  # noqa: E402
from served import Server, answers_of_stage, random_text  # noqa: E402

VICTIMS = ("engine", "client", "laneway-worker", "lanewayd")
STREAMS, TOKENS = 4, 40


class Load:
    """Streams of known answers, of which the first one kills the victim at one of its chunks, or leaves."""

    def __init__(self, laneway, server, expected, victim, choice):
        self.laneway, self.server, self.expected, self.victim = laneway, server, expected, victim
        self.choice = choice
        self.at = choice.randrange(TOKENS // 2)
        self.prompts = [choice.choice(sorted(expected)) for _ in range(STREAMS)]
        self.killed_at = None

    def kill(self):
        if self.victim == "engine":
            os.kill(self.choice.choice(self.server.engines()), signal.SIGKILL)
        elif self.victim != "client":
            kill_process(self.laneway, self.victim)
        self.killed_at = time.monotonic()

    def follow(self, number):
        """The text of a stream, and the error that ended it, or None."""
        text = ""
        for at, chunk in enumerate(self.server.chunks(self.prompts[number], TOKENS)):
            if "choices" not in chunk:
                return text, chunk
            text += chunk["choices"][0]["text"]
            if number == 0 and at == self.at:
                self.kill()
                if self.victim == "client":
                    return text, "left"
        return text, None

    def run(self):
        """How many streams ended with an error."""
        errors = 0
        with concurrent.futures.ThreadPoolExecutor(STREAMS) as clients:
            for number, (text, error) in enumerate(clients.map(self.follow, range(STREAMS))):
                expected = self.expected[self.prompts[number]]
                whole = text == expected if error is None else expected.startswith(text.rstrip("\ufffd"))
                check(whole, f"{self.victim} killed at chunk {self.at}: a stream has\n{text!r}, {error}\nand not\n{expected!r}")
                errors += error not in (None, "left")
        return errors


def memory_is_free(laneway):
    models = json.loads(laneway.command("top", "--json").out)["models"]
    return [(model["running"], model["waiting"], model["kv_blocks_used"]) for model in models] == [(0, 0, 0)]


def kill_for(rounds, seed, *words):
    choice = random.Random(chosen(seed))
    slowest, errors = 0.0, 0
    with Laneway() as laneway:
        laneway.root.mkdir(exist_ok=True)
        gguf = byte_model.make(laneway.root / "bytes", choice.randrange(1 << 32), kind="qwen2")
        prompts = sorted({random_text(choice) for _ in range(5)})
        expected = dict(zip(prompts, answers_of_stage(laneway, gguf, prompts, TOKENS)))
        server = Server(laneway, laneway.root / "bytes", *words).wait_until_ready()
        for number in range(rounds):
            victim = VICTIMS[number % len(VICTIMS)]
            load = Load(laneway, server, expected, victim, choice)
            errors += load.run()
            check(server.program.running(), f"round {number}: the server ended with {victim}\n{server.program.errors()}")
            check(server.complete(prompts[0], TOKENS) == expected[prompts[0]], f"round {number}: another answer after it")
            if load.killed_at is not None:
                slowest = max(slowest, time.monotonic() - load.killed_at)
            wait_for(lambda: memory_is_free(laneway), f"round {number}: memory is still in use after {victim}", HANG_SECONDS)
        server.end()
    print(f"{rounds} rounds, {errors} streams ended with an error chunk, whole again after at most {slowest:.2f} s")


def test_streams_end_right_whatever_is_killed(rounds, seed):
    kill_for((rounds + 1) // 2, seed)


def test_streams_end_right_whatever_stage_is_killed(rounds, seed):
    kill_for(rounds // 2, seed, "--stages=2")


if __name__ == "__main__":
    harness.main()
