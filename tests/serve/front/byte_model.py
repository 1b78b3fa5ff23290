"""A model of random weights whose tokens are bytes, as a directory with everything that a front reads."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "llm" / "stage"))
import tiny_models  # noqa: E402

END = 256
TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"


def letters():
    """The letter by which a tokenizer.json writes each byte."""
    seen = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    others = [byte for byte in range(256) if byte not in seen]
    return [chr(byte) if byte in seen else chr(0x100 + others.index(byte)) for byte in range(256)]


def make(directory, seed, kind="llama"):
    """Writes the model, and returns the same model's path as a GGUF file, which has no tokenizer."""
    gguf = directory.with_suffix(".gguf")
    tiny_models.make(gguf, kind, seed, vocabulary=END + 1, directory=directory)
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    vocabulary = {letter: byte for byte, letter in enumerate(letters())} | {"<end>": END}
    (directory / "tokenizer.json").write_text(json.dumps({
        "added_tokens": [{"id": END, "content": "<end>", "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True}],
        "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []}}))
    (directory / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<end>", "chat_template": TEMPLATE}))
    (directory / "generation_config.json").write_text(json.dumps({"eos_token_id": END}))
    return gguf
