"""The root of a served model: clients load the tokenizer from there, and it makes the server's own tokens.

The seed is printed; --seed repeats a run.
"""
import importlib.util
import json
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import byte_model  # noqa: E402
import gguf_model  # noqa: E402
import harness  # noqa: E402
from harness import Laneway, Skip, check, chosen  # noqa: E402
from served import Server  # noqa: E402

try:
    import jinja2
    from tokenizers import Tokenizer
except ImportError:
    jinja2 = None

PIECES = ["the ", "abc", "aaa", " ", "  ", "\n", "\u00e9", "\u6f22", "\U0001f642", "<tool>", "7", "\u2581", "th", "\"", "\\"]


def random_text(choice):
    return "x" + "".join(choice.choice(PIECES) for _ in range(choice.randrange(30)))


def root_of(server):
    model, = server.ask("GET", "/v1/models")[1]["data"]
    return pathlib.Path(model["root"]), model


class Client:
    """Makes tokens by the files in a model's root."""

    def __init__(self, root):
        self.tokenizer = Tokenizer.from_file(str(root / "tokenizer.json"))
        self.config = json.loads((root / "tokenizer_config.json").read_text())

    def encode(self, text, first):
        return self.tokenizer.encode(text, add_special_tokens=first).ids

    def encode_chat(self, messages):
        template = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(self.config["chat_template"])
        text = template.render(messages=messages, add_generation_prompt=True, bos_token=self.config["bos_token"],
                               eos_token=self.config["eos_token"])
        return self.encode(text, first=False)


def check_texts(server, client, choice):
    for _ in range(30):
        text = random_text(choice)
        for first in (True, False):
            found = server.ask("POST", "/tokenize", {"prompt": text, "add_special_tokens": first})[1]["tokens"]
            check(found == client.encode(text, first), f"{text!r}, first {first}: {found}, not {client.encode(text, first)}")
            back = server.ask("POST", "/detokenize", {"tokens": found})[1]["prompt"]
            expected = client.tokenizer.decode(found, skip_special_tokens=False)
            check(back == expected, f"{found} is {back!r}, not {expected!r}")
        messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "a"}, {"role": "user", "content": text}]
        found = server.ask("POST", "/tokenize", {"messages": messages})[1]["tokens"]
        check(found == client.encode_chat(messages), f"{messages}: {found}, not {client.encode_chat(messages)}")
        check(server.complete(text, 0, echo=True) == text, f"another echo of {text!r}")


def check_kind(kind, seed):
    if jinja2 is None:
        raise Skip("the packages tokenizers and jinja2 are missing (scripts/setup --test)")
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        laneway.root.mkdir(exist_ok=True)
        path = laneway.root / "model.gguf"
        gguf_model.make(path, choice.randrange(1 << 32), kind)
        server = Server(laneway, path, "--context=300").wait_until_ready()
        root, model = root_of(server)
        check(root.parent == laneway.root / "cache/laneway/tokenizers", f"the root is {root}")
        client = Client(root)
        check(client.config["model_max_length"] == model["max_model_len"] == 300, f"{client.config} {model}")
        check_texts(server, client, choice)
        server.end()
        again = Server(laneway, path, "--context=300").wait_until_ready()
        check(root_of(again)[0] == root, "a server of the same model has another root")
        again.end()


def test_sentence_piece(seed):
    check_kind("sentence_piece", seed)


def test_byte_level(seed):
    check_kind("byte_level", seed)


LOADS = """
import json, sys, transformers
told = {}
for name, root in json.loads(sys.argv[1]).items():
    config, tokenizer = transformers.AutoConfig.from_pretrained(root), transformers.AutoTokenizer.from_pretrained(root)
    chat = [{"role": "user", "content": "a"}]
    told[name] = {"config": config.to_dict(), "length": tokenizer.model_max_length,
                  "ids": [tokenizer.bos_token_id, tokenizer.eos_token_id],
                  "tokens": [tokenizer.encode(text) for text in json.loads(sys.argv[2])],
                  "chat": tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)}
print(json.dumps(told))
"""


def loaded_by_transformers(laneway, roots, texts):
    """By the model's name, what AutoConfig and AutoTokenizer know. They must have nothing to say."""
    environment = {**laneway.environment, "HF_HUB_OFFLINE": "1", "HF_HOME": str(laneway.root / "hub")}
    loaded = subprocess.run([sys.executable, "-c", LOADS, json.dumps(roots), json.dumps(texts)], env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said = [line for line in loaded.stderr.splitlines() if "PyTorch was not found" not in line]
    check(loaded.returncode == 0 and not said, f"transformers says\n{loaded.stderr}")
    return json.loads(loaded.stdout)


def test_transformers_loads_it_silently(seed):
    """AutoConfig and AutoTokenizer find all that they look for, and make the server's tokens, whatever the architecture."""
    if importlib.util.find_spec("transformers") is None:
        raise Skip("the package transformers is missing (scripts/setup --test)")
    choice = random.Random(chosen(seed))
    with Laneway() as laneway:
        laneway.root.mkdir(exist_ok=True)
        sizes = {}
        for architecture in gguf_model.ARCHITECTURES:
            sizes[architecture] = gguf_model.make(laneway.root / f"{architecture}.gguf", choice.randrange(1 << 32),
                                                  choice.choice(gguf_model.KINDS), architecture)
        server = Server(laneway, *(laneway.root / f"{name}.gguf" for name in sizes), "--context=300").wait_until_ready()
        roots = {model["id"]: model["root"] for model in server.ask("GET", "/v1/models")[1]["data"]}
        texts = [random_text(choice) for _ in range(20)]
        for name, told in loaded_by_transformers(laneway, roots, texts).items():
            for text, tokens in zip(texts, told["tokens"]):
                found = server.ask("POST", "/tokenize", {"model": name, "prompt": text})[1]["tokens"]
                check(tokens == found, f"{name}: {text!r} is {found}, and by transformers {tokens}")
            config = told["config"]
            type_of_tokens = "llama" if name == "qwen2" else name  # transformers splits texts of qwen2 by rules of its own
            check(config["model_type"] == type_of_tokens and sizes[name].items() <= config.items(), f"{sizes[name]} is not in {config}")
            check([config["bos_token_id"], config["eos_token_id"]] == told["ids"] and None not in told["ids"], f"{told}")
            check(told["length"] == 300 and told["chat"].endswith("<|turn|>assistant\n"), f"{told}")
        server.end()


def test_a_directory_is_its_own_root(seed):
    with Laneway() as laneway:
        laneway.root.mkdir(exist_ok=True)
        byte_model.make(laneway.root / "bytes", random.Random(chosen(seed)).randrange(1 << 32))
        server = Server(laneway, laneway.root / "bytes").wait_until_ready()
        check(root_of(server)[0] == laneway.root / "bytes", f"the root is {root_of(server)}")
        check(not (laneway.root / "cache/laneway/tokenizers").exists(), "it is kept once more")
        server.end()


def test_a_model_is_served_without_a_cache(seed):
    with Laneway() as laneway:
        laneway.root.mkdir(exist_ok=True)
        path = laneway.root / "model.gguf"
        gguf_model.make(path, random.Random(chosen(seed)).randrange(1 << 32), "byte_level")
        laneway.environment["XDG_CACHE_HOME"] = "/dev/null"
        server = Server(laneway, path).wait_until_ready()
        check(root_of(server)[0] == laneway.root, f"the root is {root_of(server)}")
        told = "laneway-serve: clients cannot load the tokenizer of model: cannot write /dev/null/laneway: Not a directory\n"
        check(told in server.program.errors(), server.program.errors())
        server.end()


if __name__ == "__main__":
    harness.main()
