"""What lanewayd counts of an engine is what the engine and its front count: iterations, memory, and time of the device.

The seed is printed; --seed repeats a run.
"""
import json
import pathlib
import random
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import byte_model  # noqa: E402  (which makes tiny_models known)
import harness  # noqa: E402
from harness import Laneway, check, chosen, wait_for  # noqa: E402
from harness.trace_file import begin_calls, slices  # noqa: E402
import tiny_models  # noqa: E402
from served import Server, random_text  # noqa: E402

RANGE_BYTES = 2 << 20  # device memory is mapped in ranges of so many bytes
RANGES_BESIDE = 8  # which are not full: blocks of other sizes and lives have ranges of their own
BLOCK_TOKENS, HEAD_WIDTH = 16, 8  # of the pool, and of tiny models
DRAWN_BYTES = 512  # a token for each of a step's 64 requests, in a unit of allocation
BURSTS = 3


def counter(server, name):
    return float(re.search(rf"^laneway_serve_{name}{{[^}}]*}} (\S+)$", server.ask("GET", "/metrics")[1], re.MULTILINE)[1])


def session_and_model(laneway):
    top = json.loads(laneway.command("top", "--json").out)
    [session], [model] = top["sessions"], top["models"]
    return session, model


def at_rest(laneway):
    """The session once lanewayd knows that it has no work."""
    return wait_for(lambda: next((session for session in [session_and_model(laneway)[0]] if session["state"] == "idle"), None),
                    "the engine has no work, and lanewayd does not know")


def test_iterations_and_time(seed):
    """An iteration for each step. The time that is charged is at least what the device took for the engine's work, at most
    what passed from a request to rest, and nothing while the engine rests."""
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        laneway.root.mkdir(exist_ok=True)
        byte_model.make(laneway.root / "bytes", choice.randrange(1 << 32))
        server = Server(laneway, laneway.root / "bytes").wait_until_ready()
        server.complete(random_text(choice), 2, ignore_eos=True)
        out = laneway.root / "calls.json"
        trace = begin_calls(laneway, str(at_rest(laneway)["job"]), out)
        before, steps, seconds = at_rest(laneway), counter(server, "steps_total"), counter(server, "step_seconds_total")
        passed_us, rested = 0.0, before
        for _ in range(BURSTS):
            check(at_rest(laneway)["busy_us"] == rested["busy_us"], "a rest is charged")
            begin = time.monotonic()
            for _ in range(3):
                server.complete(random_text(choice), choice.randint(5, 30), ignore_eos=True)
            rested = at_rest(laneway)
            passed_us += (time.monotonic() - begin) * 1e6
        steps = counter(server, "steps_total") - steps
        seconds = counter(server, "step_seconds_total") - seconds
        iterations, charged_us = (rested[name] - before[name] for name in ("iterations", "busy_us"))
        check(iterations == steps, f"{iterations} iterations for {steps} steps")
        told = json.loads(laneway.status())["sessions"][0]["iterations"]
        check(told == rested["iterations"], f"status tells {told}, and top {rested['iterations']}")
        server.end()
        check(trace.wait().code == 0, trace.errors())
        device = [piece for name, track in slices(out).items() if name.startswith("device, stream") for piece in track]
        check(len(device) > steps, f"{len(device)} pieces of work for {steps} steps")
        device_us = sum(end - begin for _, begin, end in device)
        print(f"the device took {device_us:.0f} us, charged are {charged_us}, steps took {seconds * 1e6:.0f}, {passed_us:.0f} passed")
        check(device_us <= charged_us <= passed_us, "the time charged is not between the device's and what passed")


def test_memory(seed):
    """Persistent memory is, to the byte, what the front tells of weights and of keys and values, the turns of positions and the
    tokens drawn last."""
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        laneway.root.mkdir(exist_ok=True)
        byte_model.make(laneway.root / "bytes", choice.randrange(1 << 32), choice.choice(["llama", "qwen2", "qwen3"]))
        blocks = choice.randint(64, 8192)
        words = [f"--kv-blocks={blocks}", f"--kv-type={choice.choice(['f32', 'f16'])}"]
        server = Server(laneway, laneway.root / "bytes", *words).wait_until_ready()
        model = session_and_model(laneway)[1]
        turns = min(tiny_models.SIZES["context_length"], blocks * BLOCK_TOKENS) * HEAD_WIDTH * 4
        counted = model["weight_bytes"] + model["kv_bytes"] + turns + DRAWN_BYTES

        def steady():
            """What first steps allocate counts as persistent until an iteration has shown that it is freed in the same one."""
            server.complete(random_text(choice), 20, ignore_eos=True)
            session = at_rest(laneway)
            return session if session["persistent_bytes"] == counted else None
        session = wait_for(steady, lambda: f"{words}: {counted} bytes are persistent, for {session_and_model(laneway)}")
        beside = session["device_bytes"] - session["persistent_bytes"]
        check(0 <= beside <= RANGES_BESIDE * RANGE_BYTES, f"{words}: {beside} bytes are mapped besides, for {session}")
        status = json.loads(laneway.status())
        sums = [status["jobs"][0]["device_bytes"], status["sessions"][0]["device_bytes"],
                status["devices"][0]["used_bytes"] - RANGE_BYTES]  # without the lane, which is no session's
        check(sums == [session["device_bytes"]] * 3, f"job, session and device have {sums}, and top {session}")
        server.end()


if __name__ == "__main__":
    harness.main()
