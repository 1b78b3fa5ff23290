"""Whether our tokenizer makes the tokens that the package tokenizers makes, and the text of them again. A vocabulary is
trained on our own pages and written as a GGUF file, once for each way of splitting text; texts are random."""
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Laneway, check  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTROL = ["<|end|>", "<|end|>>", "<|start|>"]
TEXTS = 400
U32, TEXT, ARRAY, BOOL, I32 = 4, 8, 9, 7, 5

LATER_GPT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
             r"\s+(?!\S)|\s+")


def split_by(expression):
    bytes_alone = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(expression), "isolated"), bytes_alone])


# Each as the models with this name in tokenizer.ggml.pre have it in their tokenizer.json.
SPLITS = {
    "gpt-2": pre_tokenizers.ByteLevel(add_prefix_space=False),
    "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                       pre_tokenizers.ByteLevel(add_prefix_space=False)]),
    "llama-bpe": split_by(LATER_GPT % r"\p{N}{1,3}"),
    "qwen2": split_by(LATER_GPT % r"\p{N}"),
}


def trained(name):
    tokenizer = Tokenizer(models.BPE(ignore_merges=name == "llama-bpe"))
    tokenizer.pre_tokenizer = SPLITS[name]
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=3000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    tokenizer.train([str(page) for page in sorted((ROOT / "docs").glob("*.md"))], trainer)
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in CONTROL])
    return tokenizer


def text_of(value):
    encoded = value.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def key(name, kind, value):
    return text_of(name) + struct.pack("<I", kind) + value


def texts(values):
    return struct.pack("<IQ", TEXT, len(values)) + b"".join(map(text_of, values))


def write_gguf(path, name, tokenizer):
    vocabulary = tokenizer.get_vocab()
    tokens = sorted(vocabulary, key=vocabulary.get)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    kinds = [3 if token in CONTROL else 1 for token in tokens]
    keys = [key("tokenizer.ggml.model", TEXT, text_of("gpt2")), key("tokenizer.ggml.pre", TEXT, text_of(name)),
            key("tokenizer.ggml.tokens", ARRAY, texts(tokens)),
            key("tokenizer.ggml.merges", ARRAY, texts([m if isinstance(m, str) else " ".join(m) for m in merges])),
            key("tokenizer.ggml.token_type", ARRAY,
                struct.pack("<IQ", I32, len(kinds)) + struct.pack(f"<{len(kinds)}i", *kinds)),
            key("tokenizer.ggml.add_bos_token", BOOL, b"\0")]
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + b"".join(keys))


def random_text(draw, letters, words):
    def piece():
        return draw.choice([
            lambda: chr(draw.choice(letters)),
            lambda: chr(draw.randrange(32, 127)),
            lambda: draw.choice([" ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u3000", "\u180e", "\u0085"]),
            lambda: draw.choice(CONTROL),
            lambda: str(draw.randrange(100000)),
            lambda: draw.choice(words) + draw.choice(["", " ", "'s", "'LL "]),
        ])()
    return "".join(piece() for _ in range(draw.randrange(40)))


def differences(name, seed):
    """Texts of which tokens, or the text that they make, differ."""
    draw = random.Random(seed)
    # Letters that newer versions of Unicode brought may be unknown to one of the two.
    letters = [code for code in range(0x30000) if unicodedata.ucd_3_2_0.category(chr(code)) not in ("Cn", "Cs", "Co")]
    words = (ROOT / "README.md").read_text().split()
    sent = [random_text(draw, letters, words) for _ in range(TEXTS)]
    tokenizer = trained(name)
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "tokenizer.gguf"
        write_gguf(path, name, tokenizer)
        lines = "".join(json.dumps(text) + "\n" for text in sent)
        result = subprocess.run([Laneway.build / "tests/tokenize_texts", path], input=lines, capture_output=True,
                                text=True, timeout=300)
    check(result.returncode == 0, result.stderr)
    got = [json.loads(line) for line in result.stdout.split("\n")[:-1]]  # no other breaks
    check(len(got) == len(sent), f"{len(got)} answers for {len(sent)} texts")
    return [(text, answer, tokenizer.encode(text).ids) for text, answer in zip(sent, got)
            if answer["tokens"] != tokenizer.encode(text).ids or answer["text"] != text]


def equal(name, seed):
    seed = random.randrange(1 << 32) if seed is None else seed
    print(f"seed {seed} (repeat with --seed)")
    differ = differences(name, seed)
    check(not differ, f"{name}: {len(differ)} of {TEXTS} texts differ, such as {differ[:1]}")


def test_splits_of_gpt2(seed):
    equal("gpt-2", seed)


def test_splits_of_smollm(seed):
    equal("smollm", seed)


def test_splits_of_llama(seed):
    equal("llama-bpe", seed)


def test_splits_of_qwen(seed):
    equal("qwen2", seed)


if __name__ == "__main__":
    harness.main()
