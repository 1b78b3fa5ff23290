"""What scripts/tidy measures of a source file: sizes of classes, shares of comments, sentences without nouns, sleeps.

A small reader of our own C++, which clang-format has made uniform; it needs no compiler and no build. It understands
what our headers hold: namespaces, classes within classes, templates, bodies in a class, attributes and annotations in
capitals. It ignores classes inside functions. tests/style/measures_test.py shows what it counts and what it does not.
"""
import dataclasses
import re

# --- classes


@dataclasses.dataclass
class ClassSize:
    name: str  # with the classes that it lies in: Outer::Inner
    line: int
    methods: int = 0
    members: int = 0


ANNOTATION = r"\b(?:alignas|decltype|noexcept|[A-Z][A-Z_]{3,})\s*\("
NO_DECLARATION = re.compile(r"^(?:using|typedef|friend|static_assert|enum|extern)\b")
CLASS_HEAD = re.compile(r"^(?:class|struct|union)\b(?:\s+[A-Z][A-Z_]{3,}(?=\s+\w))?\s*(?P<name>[\w:]*(?:<.*>)?)\s*"
                        r"(?:final\b)?\s*(?::(?!:).*)?$", re.DOTALL)


def blanked(text):
    """The text without comments, preprocessor lines, and what is in quotes; lines and their numbers stay."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\''
                       r"|^[ \t]*\#(?:\\\n|[^\n])*", re.DOTALL | re.MULTILINE)

    def blank(match):
        quote = match.group()[0] in "\"'R"
        return ("0" if quote else " ") + "\n" * match.group().count("\n")
    return token.sub(blank, text)


def closing(text, start):
    """The index behind the bracket that closes the one at `start`."""
    pairs = {"(": ")", "{": "}", "[": "]"}
    depth = []
    for index in range(start, len(text)):
        if text[index] in pairs:
            depth.append(pairs[text[index]])
        elif depth and text[index] == depth[-1]:
            depth.pop()
            if not depth:
                return index + 1
    return len(text)


def without(text, pattern):
    """The text without each match of the pattern, which ends with an opening bracket, and what that encloses."""
    while match := re.search(pattern, text):
        text = text[:match.start()] + " " + text[closing(text, match.end() - 1):]
    return text


def without_templates(text):
    """The text without what is between < and >, innermost first; operators of comparison and shift are no brackets."""
    text = re.sub(r"\boperator\s*(?:<=>|<<=|>>=|<<|>>|<=|>=|->|<|>)", "operator_", text)
    text = re.sub(r"->|<=|>=", "  ", text)
    while (shorter := re.sub(r"<[^<>]*>", " ", text)) != text:
        text = shorter
    return text


def declaration(head):
    """The head of a declaration in its plainest form: no label, attribute, annotation, or template arguments."""
    head = re.sub(r"^\s*(?:(?:public|protected|private)\s*:(?!:)\s*)+", "", head)
    head = without(head, r"\[(?=\[)").strip()
    head = re.sub(r"^(?:template\s*)(?=<)", "", head)
    head = without(head, r"\brequires\s*\(")
    return without_templates(without(head, ANNOTATION)).strip()


def counts(head, has_body):
    """(methods, members) that the declaration adds."""
    head = re.sub(r"^(?:(?:inline|mutable|volatile|constinit|typename)\s+)+", "", head)
    if not head or NO_DECLARATION.match(head) or re.search(r"=\s*(?:delete|default)\s*$", head):
        return 0, 0
    plain = head.split("=")[0] if "operator" not in head else head
    if "(" in plain and not re.match(r"[^(]*\(\s*(?:\w+::)*\*", plain):
        return 1, 0
    if has_body and "=" not in head and re.search(r"\boperator\b", head):
        return 1, 0
    if re.match(r"^(?:static\s+)?(?:constexpr|consteval)\b", head) or re.match(r"^static\s+const\b", head):
        return 0, 0
    if re.match(r"^(?:class|struct|union)\s+\w+$", head):
        return 0, 0  # a declaration of a class
    for pair in (r"\{", r"\(", r"\["):
        head = without(head, pair)
    return 0, 1 + re.sub(r"=[^,]*", "", head).count(",")


def next_end(text, index):
    """Where the declaration at `index` ends: the index of its ';', its '{', or the '}' around it."""
    while index < len(text) and text[index] not in ";{}":
        index = closing(text, index) if text[index] in "([" else index + 1
    return index


def class_of_head(head):
    head = re.sub(r"^template\s*<.*?>\s*(?=class|struct)", "", without(head, ANNOTATION), flags=re.DOTALL)
    match = CLASS_HEAD.match(head)
    return None if match is None else match.group("name")


def scan(text, start, end, owner, found):
    """Reads declarations in text[start:end]. `owner`: the ClassSize that they belong to, or None in a namespace."""
    index = start
    pending = ""  # what comes before an initializer in braces
    while index < end:
        stop = next_end(text, index)
        if stop >= end:
            return
        raw = pending + text[index:stop]
        head = declaration(raw)
        if text[stop] == "}":
            index, pending = stop + 1, ""
            continue
        if text[stop] == ";":
            if owner is not None:
                add(owner, counts(head, False))
            index, pending = stop + 1, ""
            continue
        after = closing(text, stop)
        name = class_of_head(re.sub(r"^\s*(?:(?:public|protected|private)\s*:(?!:)\s*)+", "", raw).strip())
        pending = ""
        index = after
        if name is not None and "=" not in head:
            index = read_class(text, stop, after, name, owner, found)
        elif re.match(r'^(?:inline\s+)?namespace\b|^extern\s+0$', head):
            scan(text, stop + 1, after - 1, None, found)
        elif re.match(r"^(?:enum)\b", head):
            pass
        elif owner is not None:
            index, pending = read_member(text, after, raw, head, owner)


def add(size, numbers):
    size.methods += numbers[0]
    size.members += numbers[1]


def read_class(text, opening, after, name, owner, found):
    """A class's body, and the names of members of its type that follow it. Returns where to go on."""
    line = text.count("\n", 0, opening) + 1
    if not name:  # its members are its owner's; without one it is no class of ours
        inner = owner if owner is not None else ClassSize("", line)
    else:
        inner = ClassSize(f"{owner.name}::{name}" if owner is not None else name, line)
        found.append(inner)
    scan(text, opening + 1, after - 1, inner, found)
    stop = text.find(";", after)
    declarators = text[after:stop].strip()
    if owner is not None and declarators:
        add(owner, (0, 1 + declarators.count(",")))
    return stop + 1


def read_member(text, after, raw, head, owner):
    """A function with a body, or a member with an initializer in braces. Returns where to go on, and with which head."""
    in_braces = re.match(r"\s*(?:[,;{]|[A-Z_]+\(|\.|->)", text[after:after + 200])
    numbers = counts(head, True)
    if numbers[0] == 0 or (in_braces and not re.match(r"\s*;", text[after:after + 200]) and
                           re.search(r"\)\s*:(?!:)", head)):
        return after, raw + " "  # `int a_{1};`, or one of a constructor's initializers: more of it follows
    add(owner, numbers)
    return after, ""


def classes_in(text):
    """The ClassSize of each class that the text defines."""
    found = []
    plain = blanked(text)
    scan(plain, 0, len(plain), None, found)
    return found


def bodies_in(text):
    """The names of classes of which the text has bodies of methods outside the class: Outer::Inner."""
    pattern = r"^(?:\w[\w:<>,*& \[\]]*?[ *&])?((?:\w+(?:<[^<>()]*>)?::)+)(?:~?\w+|operator[^\w\s(]+|operator \w+)\("
    return {re.sub(r"<[^<>]*>", "", match.group(1))[:-2]
            for match in re.finditer(pattern, blanked(text), re.MULTILINE)}


# --- comments

NOUNLESS = {"it", "its", "one", "that", "who", "whom", "whoever", "what", "nobody", "somebody", "those", "others"}
NOUNLESS_MAX = 3  # of these in a sentence


def comment_lines(text):
    """How many lines hold a comment."""
    count = 0
    for match in re.finditer(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', text, re.DOTALL):
        if match.group()[0] == "/":
            count += 1 + match.group().count("\n")
    return count


def sentences(text):
    """(line, sentence) of each sentence in comments; a block of lines is one text."""
    found = []
    block, first = [], 0
    lines = text.split("\n")
    for number, line in enumerate(lines + [""], 1):
        match = re.search(r"^\s*//(.*)$", re.sub(r'"(?:\\.|[^"\\])*"', '""', line)) or re.search(
            r"\s//\s(.*)$", re.sub(r'"(?:\\.|[^"\\])*"', '""', line))
        whole_line = line.lstrip().startswith("//")
        if block and not (match and whole_line):
            found += [(first, sentence) for sentence in re.split(r"(?<=[.!?])\s+", " ".join(block))]
            block = []
        if match:
            if not block:
                first = number
            block.append(match.group(1).strip())
    return found


def nounless(text):
    """(line, sentence) where four or more words stand in for a noun."""
    return [(line, sentence) for line, sentence in sentences(text)
            if sum(word in NOUNLESS for word in re.findall(r"[a-z]+", sentence.lower())) > NOUNLESS_MAX]


# --- sleeps and Markdown

SLEEP = re.compile(r"\babsl::SleepFor\b|\bsleep_(?:for|until)\b|\bFutexWait\(&never\b|\b(?:u|nano)?sleep\s*\(")


def sleeps(text):
    """The lines that wait for a time instead of an event, in whichever spelling."""
    plain = blanked(text)
    return [plain.count("\n", 0, match.start()) + 1 for match in SLEEP.finditer(plain)]


def wide_lines(text, width):
    """The lines of a Markdown page over so many columns. A row of a table has no choice, nor has a page that is made."""
    if re.search(r"^Made from ", text[:400], re.MULTILINE):
        return []
    return [number for number, line in enumerate(text.split("\n"), 1)
            if len(line) > width and not line.startswith("|") and "http" not in line]
