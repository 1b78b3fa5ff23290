"""Minutes of load on a served model: answers stay right, and neither memory nor descriptors grow.

    load_growth.py --build DIR [--minutes N] [--seed S]

It goes in laps. In a lap clients ask for whole answers, read streams, and leave some of them; at its end the model is
quiet, all of its blocks are free, and the processes are looked at. The first laps are a warm-up: kernels are compiled.
A front may grow longer, until its history of requests is full (serve/history/history.h). The seed is printed; --seed
repeats a run.
"""
import concurrent.futures
import contextlib
import json
import pathlib
import random
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import byte_model  # noqa: E402
import harness  # noqa: E402
from harness import HANG_SECONDS, Laneway, check, chosen, wait_for  # noqa: E402
from served import Server, answers_of_stage, random_text  # noqa: E402

CLIENTS, TOKENS = 8, 24
LAP_SECONDS = 4
WARM_UP = 3  # laps
SLACK_KB = 2048  # of a process, however long the load lasts
HISTORY_REQUESTS, HISTORY_REQUEST_KB = 4096, 1.5  # and with it its steps
SLACK_DESCRIPTORS = 4


def processes(laneway, server):
    """By name: the front, the engine's stages and lanewayd."""
    [daemon] = laneway.processes("lanewayd")
    stages = {f"stage {number}": pid for number, pid in enumerate(sorted(server.engines()))}
    return {"front": server.program.pid, "lanewayd": daemon, **stages}


def size_of(pid):
    """Anonymous memory in KiB, and open descriptors."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+)", status)[1]), len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))


def is_quiet(laneway):
    [model] = json.loads(laneway.command("top", "--json").out)["models"]
    return (model["running"], model["waiting"], model["kv_blocks_used"]) == (0, 0, 0)


def lap(server, expected, seed):
    """How many requests were answered, or left."""
    end = time.monotonic() + LAP_SECONDS

    def client(number):
        choice, asked = random.Random(seed * CLIENTS + number), 0
        while time.monotonic() < end:
            prompt = choice.choice(sorted(expected))
            how, asked = choice.randrange(3), asked + 1
            if how == 0:
                check(server.complete(prompt, TOKENS) == expected[prompt], "another answer under load")
            elif how == 1:
                check(server.stream(prompt, TOKENS) == expected[prompt], "another stream under load")
            else:
                with contextlib.closing(server.chunks(prompt, TOKENS)) as chunks:
                    for _ in range(choice.randint(1, 5)):
                        next(chunks, None)
        return asked
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
        return sum(clients.map(client, range(CLIENTS)))


def test_nothing_grows_under_load(minutes, seed):
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        laneway.root.mkdir(exist_ok=True)
        gguf = byte_model.make(laneway.root / "bytes", choice.randrange(1 << 32))
        prompts = sorted({random_text(choice) for _ in range(16)})
        expected = dict(zip(prompts, answers_of_stage(laneway, gguf, prompts, TOKENS)))
        server = Server(laneway, laneway.root / "bytes", "--stages=2").wait_until_ready()
        first, asked, laps = None, 0, max(WARM_UP + 2, int(minutes * 60 / LAP_SECONDS))
        for number in range(laps):
            asked += lap(server, expected, choice.randrange(1 << 32))
            wait_for(lambda: is_quiet(laneway), "the model is not quiet after its load", HANG_SECONDS)
            sizes = {name: size_of(pid) for name, pid in processes(laneway, server).items()}
            if number + 1 == WARM_UP:
                first = sizes
        for name, (memory, descriptors) in sizes.items():
            grown = memory - first[name][0], descriptors - first[name][1]
            print(f"{name}: {memory} KiB, {descriptors} descriptors, grown by {grown[0]} KiB and {grown[1]}")
            history = min(asked, HISTORY_REQUESTS) * HISTORY_REQUEST_KB if name == "front" else 0
            check(grown[0] <= SLACK_KB + history and grown[1] <= SLACK_DESCRIPTORS, f"{name} grew in {laps} laps")
        server.end()
    print(f"{asked} requests in {laps} laps")


if __name__ == "__main__":
    harness.main()
