"""Models of random weights as whole GGUF files, with a tokenizer of either kind in the file's own keys."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "llm" / "stage"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "frameworks"))
import gguf_file  # noqa: E402
import gguf_keys  # noqa: E402
import tiny_models  # noqa: E402
from byte_model import letters  # noqa: E402

KINDS = ("sentence_piece", "byte_level")
ARCHITECTURES = ("llama", "qwen2", "qwen3", "gpt2")
SPACE_MARK = "\u2581"
TEMPLATE = ("{{ bos_token }}{% for message in messages %}<|turn|>{{ message.role }}\n{{ message.content }}{{ eos_token }}"
            "{% endfor %}{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}")
TEXT, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
WORDS = ["th", "he", "the", "in", "ab", "aa", "aaa", "abc"]


def sentence_piece():
    tokens = ["<unk>", "<s>", "</s>", "<|turn|>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [UNKNOWN, CONTROL, CONTROL, CONTROL] + [BYTE] * 256
    words = [SPACE_MARK + word for word in ["t", "th", "the", "a", "ab"]] + [SPACE_MARK * 2] + WORDS
    text = words + [SPACE_MARK] + [chr(letter) for letter in range(33, 127)] + ["\u00e9"]
    tokens += text + ["<tool>"]
    return tokens, {
        "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": gguf_keys.array(gguf_keys.F32, [-float(i) for i in range(len(tokens))]),
        "tokenizer.ggml.token_type": gguf_keys.array(gguf_keys.I32, kinds + [TEXT] * len(text) + [USER_DEFINED])}


def byte_level():
    words = WORDS + ["\u0120t", "\u0120th", "\u0120the"]
    tokens = letters() + words + ["<s>", "</s>", "<|turn|>", "<tool>"]
    merges = ["t h", "h e", "th e", "i n", "a b", "a a", "aa a", "ab c", "\u0120 t", "\u0120t h", "\u0120th e"]
    kinds = [TEXT] * (256 + len(words)) + [CONTROL] * 3 + [USER_DEFINED]
    return tokens, {
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "llama-bpe", "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.merges": merges, "tokenizer.ggml.token_type": gguf_keys.array(gguf_keys.I32, kinds)}


def make(path, seed, tokenizer, architecture="llama"):
    """Writes the model; each text begins with "<s>", and chats end with "</s>". Returns its sizes by transformers' names."""
    tokens, keys = {"sentence_piece": sentence_piece, "byte_level": byte_level}[tokenizer]()
    heads, kv_heads = 6, 6 if architecture == "gpt2" else 2
    sizes, tensors = tiny_models.make(path, architecture, seed, heads=heads, kv_heads=kv_heads, vocabulary=len(tokens))
    keys |= {"tokenizer.ggml.bos_token_id": tokens.index("<s>"), "tokenizer.ggml.eos_token_id": tokens.index("</s>"),
             "tokenizer.chat_template": TEMPLATE}
    gguf_file.write(path, sizes | keys, tensors)
    layers, width, inner, context = (tiny_models.SIZES[name] for name in ("block_count", "embedding_length",
                                                                         "feed_forward_length", "context_length"))
    if architecture == "gpt2":
        return {"vocab_size": len(tokens), "n_layer": layers, "n_embd": width, "n_inner": inner, "n_head": heads,
                "n_positions": context}
    return {"vocab_size": len(tokens), "num_hidden_layers": layers, "hidden_size": width, "intermediate_size": inner,
            "num_attention_heads": heads, "num_key_value_heads": kv_heads, "max_position_embeddings": context}
