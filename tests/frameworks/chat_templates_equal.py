"""Whether a chat template makes the text that Jinja makes of it, set up as the package transformers sets it up: for
templates in the manner of the known families over random conversations, and for random expressions."""
import datetime
import json
import pathlib
import random
import subprocess
import sys
import warnings

import jinja2
import jinja2.ext
import jinja2.sandbox

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from chat_constructs import CONSTRUCTS  # noqa: E402
from chat_templates import FAMILIES  # noqa: E402
from harness import Laneway, check  # noqa: E402

NOW = datetime.datetime(2025, 3, 2, 15, 4, 5)  # as tests/serve/llm/text/render_templates.cc has it
TEXTS = ["Hi", "", "  spaces \n", "line\nline\n", "<think>\nhm\n</think>\n\nYes.", "\u00e9\u4e2d\U0001F600", "a 'b' \"c\"",
         "<tool_response>x</tool_response>", "{{ x }}", "</think>", "\\n", "\u2028\u00a0 x", "tab\there"]


warnings.simplefilter("ignore", SyntaxWarning)  # Python's, of random expressions


class Generation(jinja2.ext.Extension):
    """{% generation %}, which transformers adds: a block with variables of its own."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


class Raised(jinja2.TemplateError):
    pass


def raise_exception(message):
    raise Raised(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                        extensions=[Generation, jinja2.ext.loopcontrols])
    made.filters["tojson"] = to_json
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = NOW.strftime
    return made


ENVIRONMENT = environment()


def expected(question):
    """What Jinja makes of it: {"text": ...}, {"raised": ...} where the template says so, or {"failed": ...}."""
    try:
        return {"text": ENVIRONMENT.from_string(question["template"]).render(
            messages=question["messages"], add_generation_prompt=question["add_generation_prompt"], bos_token="<s>",
            eos_token="</s>", **{"tools": None, "documents": None, **question["variables"]})}
    except Raised as error:
        return {"raised": str(error)}
    except Exception as error:  # whatever Python raises of a value
        return {"failed": f"{type(error).__name__}: {error}"}


def ours(questions):
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    result = subprocess.run([Laneway.build / "tests/render_templates"], input=lines, capture_output=True, text=True)
    check(result.returncode == 0, result.stderr)
    answers = [json.loads(line) for line in result.stdout.split("\n")[:-1]]  # no other breaks
    check(len(answers) == len(questions), f"{len(answers)} answers to {len(questions)} questions")
    return answers


def agree(answer, wanted):
    if "text" in wanted:
        return answer == wanted
    if "raised" in wanted:
        return answer == {"failed": wanted["raised"]}
    return "text" not in answer


def random_value(draw, depth=0):
    kinds = [lambda: draw.choice(TEXTS), lambda: draw.randrange(-5, 100), lambda: draw.choice([True, False, None]),
             lambda: draw.choice([0.5, 1.0, 1e22, -2.25])]
    if depth < 3:
        kinds += [lambda: [random_value(draw, depth + 1) for _ in range(draw.randrange(3))],
                  lambda: {draw.choice("abcde"): random_value(draw, depth + 1) for _ in range(draw.randrange(3))}]
    return draw.choice(kinds)()


def random_tools(draw):
    return [{"type": "function", "function": {"name": f"f{index}", "description": draw.choice(TEXTS),
                                              "parameters": {"type": "object", "properties": random_value(draw)}}}
            for index in range(draw.randrange(1, 3))]


def random_call(draw):
    arguments = {"a": random_value(draw)} if draw.random() < 0.8 else '{"a": 1}'
    call = {"type": "function", "function": {"name": "f", "arguments": arguments}}
    if draw.random() < 0.7:
        call["id"] = draw.choice(["abcdefghi", "1"])
    return call


def random_message(draw, role):
    message = {"role": role}
    kind = draw.random()
    if kind < 0.85:
        message["content"] = draw.choice(TEXTS)
    elif kind < 0.93:
        message["content"] = [{"type": "text", "text": draw.choice(TEXTS)}, {"type": "image"}][:draw.randrange(3)]
    elif kind < 0.98:
        message["content"] = None
    if role == "assistant" and draw.random() < 0.25:
        message["tool_calls"] = [random_call(draw) for _ in range(draw.randrange(1, 3))]
    if role == "assistant" and draw.random() < 0.2:
        message["reasoning_content"] = draw.choice(TEXTS)
    return message


def random_question(draw, template):
    roles = ["system"] if draw.random() < 0.4 else []
    if draw.random() < 0.7:
        roles += ["user", "assistant"] * draw.randrange(1, 4)
        roles = roles[:-1] if draw.random() < 0.5 else roles
    else:
        roles += [draw.choice(["user", "assistant", "tool", "other"]) for _ in range(draw.randrange(5))]
    variables = {"tools": random_tools(draw)} if draw.random() < 0.3 else {}
    if draw.random() < 0.3:
        variables["enable_thinking"] = draw.choice([True, False])
    return {"template": template, "messages": [random_message(draw, role) for role in roles],
            "add_generation_prompt": draw.random() < 0.5, "variables": variables}


def compare(questions):
    """How many made a text. All answers must agree."""
    wanted = [expected(question) for question in questions]
    differ = [each for each in zip(questions, ours(questions), wanted) if not agree(each[1], each[2])]
    shown = "\n".join(json.dumps(each, indent=1)[:3000] for each in differ[:3])
    check(not differ, f"{len(differ)} of {len(questions)} differ, such as\n{shown}")
    return sum("text" in each for each in wanted)


def seeded(seed):
    seed = random.randrange(1 << 32) if seed is None else seed
    print(f"seed {seed} (repeat with --seed)")
    return random.Random(seed)


def test_families_and_constructs(rounds, seed):
    draw = seeded(seed)
    templates = list({**FAMILIES, **CONSTRUCTS}.values())
    check(len(templates) >= 50, f"{len(templates)} templates")
    texts = compare([random_question(draw, template) for template in templates for _ in range(max(rounds // 50, 1))])
    print(f"{len(templates)} templates, {texts} texts")


class RandomExpressions:
    """Expressions, most of which make sense, of what chat templates use."""
    NAMES = ["messages", "add_generation_prompt", "bos_token", "nothing", "tools", "x"]
    LITERALS = ["'a b '", "'\u00e9X'", "''", "'a,b'", "0", "1", "-3", "7", "2.5", "true", "none", "[]", "[3, 1, 2]",
                "['b', 'A']", "{'role': 'user', 'n': 2}", "(1, 'z')", "{}", "'12'", "range(4)", "[[2, 'q'], [1, 'r']]"]
    FILTERS = ["trim", "upper", "lower", "length", "tojson", "join('-')", "first", "last", "default('d')", "list",
               "string", "int", "float", "default('d', true)", "sort", "unique|list", "reverse|list", "title", "count",
               "capitalize", "replace('a', 'b')", "map('string')|list", "select|list", "reject('none')|list", "abs",
               "map(attribute='role')|list", "selectattr('role')|list", "items|list", "min", "max", "sum", "indent",
               "tojson(indent=1)", "dictsort", "safe", "round"]
    METHODS = ["strip()", "lstrip()", "rstrip('b ')", "split()", "split(',')", "split(' ', 1)", "startswith('a')",
               "endswith(' ')", "upper()", "lower()", "title()", "replace('a', 'xx')", "items()|list", "keys()|list",
               "get('role')", "get('z', 1)", "values()|list", "find('b')", "count('a')", "splitlines()", "capitalize()"]
    TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence",
             "iterable", "true", "false", "even", "odd", "eq(1)", "in([1, 'a'])", "lower", "upper", "callable",
             "divisibleby(2)", "sameas(none)", "gt(1)"]
    OPERATORS = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]

    def __init__(self, draw):
        self.draw = draw

    def make(self, depth=0):
        draw = self.draw
        if depth > 3 or draw.random() < 0.25:
            return draw.choice(self.LITERALS + self.NAMES)
        return draw.choice([self.operation, self.filtered, self.method, self.tested, self.chosen, self.item, self.slice,
                            self.inverse, self.literal, self.compared])(depth + 1)

    def operation(self, depth):
        whole = f"{self.make(depth)} {self.draw.choice(self.OPERATORS)} {self.make(depth)}"
        return f"({whole})" if self.draw.random() < 0.5 else whole

    def filtered(self, depth):
        return f"{self.make(depth)} | {self.draw.choice(self.FILTERS)}"

    def method(self, depth):
        return f"({self.make(depth)}).{self.draw.choice(self.METHODS)}"

    def tested(self, depth):
        return f"{self.make(depth)} is {self.draw.choice(['', 'not '])}{self.draw.choice(self.TESTS)}"

    def chosen(self, depth):
        return f"({self.make(depth)} if {self.make(depth)} else {self.make(depth)})"

    def item(self, depth):
        return f"({self.make(depth)})" + self.draw.choice(["[0]", "[-1]", "['role']", ".role", ".0", "[7]", "[1.0]"])

    def slice(self, depth):
        return f"({self.make(depth)})" + self.draw.choice(["[1:]", "[:-1]", "[::-1]", "[-2:]", "[1:3]", "[::2]"])

    def inverse(self, depth):
        return f"{self.draw.choice(['not ', '-', '+'])}{self.make(depth)}"

    def literal(self, depth):
        form = self.draw.choice(["[%s, %s]", "(%s, %s)", "{'a': %s, 'b': %s}"])
        return form % (self.make(depth), self.make(depth))

    def compared(self, depth):
        return f"({self.make(depth)} < {self.make(depth)} <= {self.make(depth)})"


def test_random_expressions(rounds, seed):
    draw = seeded(seed)
    expressions = RandomExpressions(draw)
    # What has no text of ours is not printed: an undefined value's is nothing in both.
    questions = [random_question(draw, "{% set x = " + expressions.make() + " %}{{ x if x is string or x is number or x "
                                 "is none or x is mapping else x | list }}") for _ in range(rounds)]
    questions = [question for question in questions if is_comparable(question)]
    answers = list(zip(questions, ours(questions), [expected(question) for question in questions]))
    wrong = [each for each in answers if "text" in each[1] and not agree(each[1], each[2])]
    check(not wrong, f"{len(wrong)} of {len(answers)} differ, such as {wrong[:2]}")
    # Jinja reads generators late, and constants leniently: of some mistakes it makes a text.
    stricter = sum("text" not in answer and "text" in wanted for _, answer, wanted in answers)
    check(stricter * 20 < len(answers), f"{stricter} of {len(answers)} are refused")
    print(f"{len(answers)} expressions, {stricter} refused of which Jinja makes a text")


def is_comparable(question):
    """Not where Python's value has no equal of ours: methods and generators as text, and text that Jinja marks as safe,
    which escapes the text that it is put together with."""
    wanted = expected(question)
    text = wanted.get("text", "")
    return not any(mark in text for mark in ("<built-in", "dict_", "<generator", "range(", "<list_", "Markup(",
                                          "&#", "&lt;"))


def random_layout(draw, depth=0):
    """Text and tags with signs for white space at random."""
    def space():
        return "".join(draw.choice([" ", "\n", "\t", "  ", "\r\n", "\u00a0", "x"]) for _ in range(draw.randrange(4)))

    def tag(inside, signs=("", "", "-", "+")):
        return "{%" + draw.choice(signs) + " " + inside + " " + draw.choice(signs) + "%}"
    parts = []
    for _ in range(draw.randrange(1, 4)):
        kind = draw.randrange(6 if depth < 3 else 3)
        if kind == 0:
            parts.append("{{" + draw.choice(["", "-"]) + " 'v' " + draw.choice(["", "-"]) + "}}")
        elif kind == 1:
            parts.append("{#" + draw.choice(["", "-", "+"]) + " c\n" + draw.choice(["", "-", "+"]) + "#}")
        elif kind == 2:
            parts.append(tag("set x = 1"))
        elif kind == 3:
            parts.append(tag("if messages") + random_layout(draw, depth + 1) + tag("else") + space() + tag("endif"))
        elif kind == 4:
            parts.append(tag("for m in [1, 2]") + random_layout(draw, depth + 1) + tag("endfor"))
        else:
            parts.append(tag("raw", ("", "-")) + space() + tag("endraw"))
    return space() + "".join(part + space() for part in parts)


def test_white_space(rounds, seed):
    draw = seeded(seed)
    print(f"{compare([random_question(draw, random_layout(draw)) for _ in range(rounds)])} texts")


if __name__ == "__main__":
    harness.main()
