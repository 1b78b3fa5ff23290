#!/usr/bin/env python3
"""What scripts/measures.py counts and what it does not, and that scripts/ratchet.py lets no number rise."""
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import measures
import ratchet


def sizes(text):
    return {size.name: (size.methods, size.members) for size in measures.classes_in(text)}


class Classes(unittest.TestCase):
    def test_methods_are_counted_whether_declared_or_defined(self):
        self.assertEqual(sizes("""
namespace a::b {
class Gate final : public Base<int>, private Other {
 public:
  explicit Gate(int id) : id_(id), other_{id, {2}} {}
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = default;
  bool operator<(const Gate& other) const { return id_ < other.id_; }
  bool closed() const { return id_ == 0; }
  [[nodiscard]] std::map<int, std::vector<int>> Find(std::function<void(int)> each = {}) const;
  virtual void Pure(const char* text = "(;{") = 0;
  static int Count();
  void Each(void (Board::*call)(int));
  template <class T, class = std::enable_if_t<(sizeof(T) > 4)>>
  void Each(T&& each) {
    for (int i = 0; i < 3; ++i) each(i);
  }

 private:
  friend class Board;
  using Lock = std::unique_lock<std::mutex>;
  static_assert(sizeof(int) == 4);
  int id_;
  Other other_;
};
}  // namespace a::b
"""), {"Gate": (9, 2)})

    def test_members_are_what_a_class_keeps(self):
        self.assertEqual(sizes("""
struct Record {
  static constexpr int kMax = 3;
  static const char kName[];
  enum class Kind { kOne, kTwo };
  int a = 0, b{1}, c[4] = {1, 2};
  std::function<void(int, int)> called;
  void (*pointer)(int) = nullptr;
  std::map<int, std::pair<int, int>> map GUARDED_BY(mutex_);
  alignas(64) std::atomic<uint32_t> word{0};
  uint32_t flag : 1;
  static Record* instance;
  struct {
    int x;
  } point;
};
"""), {"Record": (0, 11)})

    def test_annotations_are_neither_methods_nor_members(self):
        self.assertEqual(sizes("""
class CAPABILITY("mutex") Mutex {
 public:
  void Lock() ACQUIRE();
  void Await() const REQUIRES(this) { mutex_.lock(); }

 private:
  std::mutex mutex_;
};
"""), {"Mutex": (2, 1)})

    def test_classes_in_classes_count_by_themselves(self):
        self.assertEqual(sizes("""
template <>
class Outer {
  struct Inner {
    int a;
    void Run();
  };
  class Declared;
  Inner inner_;
  struct Named {
    int b;
  } one_, two_;
};
void Function() {
  struct Local {
    int a;
  };
}
"""), {"Outer": (0, 3), "Outer::Inner": (1, 1), "Outer::Named": (0, 1)})

    def test_comments_macros_and_text_are_not_read(self):
        self.assertEqual(sizes("""
#define METHODS void A(); \\
  void B();
// class Commented { int a; };
struct Plain {
  int a;  // void Method();
  /* int b; */
  std::string text = "struct Text { int c; };";
  char brace = '{';
};
"""), {"Plain": (0, 3)})

    def test_bodies_are_those_outside_the_class(self):
        text = """
Gate::Gate(int id) : id_(id) {}
absl::Status Board::Open(int id) {
  Other::Call(id);
  std::move(id);
}
std::vector<int> Outer::Inner::Each() { return {}; }
bool Key::operator<(const Key& other) const { return false; }
template <class T>
void Table<T>::Add(T value) {}
"""
        self.assertEqual(measures.bodies_in(text), {"Gate", "Board", "Outer::Inner", "Key", "Table"})


class Comments(unittest.TestCase):
    def test_lines_with_a_comment(self):
        self.assertEqual(measures.comment_lines('// one\nint a;  // two\n/* three\n four */\nf("// none");\n'), 4)

    def test_a_sentence_goes_over_lines_and_ends_at_a_full_stop(self):
        text = "// The session waits for\n// its lane. It is next.\nint a;  // The lane.\n// Another.\n"
        self.assertEqual([sentence for _, sentence in measures.sentences(text)],
                         ["The session waits for its lane.", "It is next.", "The lane.", "Another."])

    def test_four_words_without_a_noun_are_too_many(self):
        three = "// It knows what one does.\n"
        four = "// Whoever holds it knows what\n// that is.\n"
        self.assertEqual(measures.nounless(three), [])
        self.assertEqual(measures.nounless("int a;\n" + four), [(2, "Whoever holds it knows what that is.")])


class Lines(unittest.TestCase):
    def test_sleeps_in_each_spelling(self):
        text = "absl::SleepFor(k);\nstd::this_thread::sleep_for(k);\nipc::FutexWait(&never, 0, 1);\nusleep(1);\n"
        self.assertEqual(measures.sleeps(text + "// absl::SleepFor(k)\nipc::FutexWait(&word, 0, 1);\n"), [1, 2, 3, 4])

    def test_tables_and_links_may_be_wide(self):
        text = "short\n" + "x" * 121 + "\n| " + "x" * 121 + "\nhttp://" + "x" * 121 + "\n"
        self.assertEqual(measures.wide_lines(text, 120), [2])


class Ratchet(unittest.TestCase):
    SMALL = "struct Small {\n" + "  int a;\n" * 15 + "};\n"
    LARGE = "struct Large {\n" + "  int a;\n" * 17 + "};\n"

    def test_the_limit_holds_where_nothing_is_listed(self):
        found = ratchet.measure({"ipc/a.h": self.SMALL, "ipc/b.h": self.LARGE})
        findings, notes = ratchet.compare(found, {})
        self.assertEqual([finding[:3] for finding in findings], [("ipc/b.h", 1, "members")])
        self.assertEqual(notes, [])

    def test_a_number_may_fall_and_not_rise(self):
        found = ratchet.measure({"ipc/b.h": self.LARGE})
        for number, findings, notes in ((16, 1, 0), (17, 0, 0), (18, 0, 1)):
            listed = ratchet.read(f"members ipc/b.h:Large {number} a record\n")
            result = ratchet.compare(found, listed)
            self.assertEqual((len(result[0]), len(result[1])), (findings, notes), number)

    def test_an_exception_that_is_none_any_more_is_noted(self):
        found = ratchet.measure({"ipc/a.h": self.SMALL})
        listed = ratchet.read("members ipc/a.h:Small 20 a record\n")
        self.assertEqual(ratchet.compare(found, listed), ([], ["members of ipc/a.h:Small: within its limit now"]))
        self.assertEqual(ratchet.renewed(found, listed), {})

    def test_rewriting_keeps_reasons_and_asks_for_new_ones(self):
        found = ratchet.measure({"ipc/b.h": self.LARGE, "ipc/c.h": self.LARGE, "ipc/d.h": self.LARGE})
        listed = ratchet.read("members ipc/b.h:Large 20 a record\nmembers ipc/c.h:Large 16 two records\n")
        rewritten = ratchet.written(ratchet.renewed(found, listed))
        self.assertEqual(rewritten.split("\n")[1:], ["members ipc/b.h:Large 17 a record",
                                                     "members ipc/c.h:Large 17 ? two records",
                                                     "members ipc/d.h:Large 17 ?", ""])
        findings, _ = ratchet.compare(found, ratchet.read(rewritten))
        self.assertEqual([finding[0] for finding in findings], [ratchet.LIST, ratchet.LIST])

    def test_bodies_of_a_class_belong_into_two_files(self):
        texts = {"ipc/a.h": "class A {\n  void F();\n};\n"}
        texts.update({f"ipc/a{number}.cc": "void A::F() {}\n" for number in range(3)})
        texts["shim/a.cc"] = "void A::F() {}\n"  # another class of that name
        found = ratchet.measure(texts)
        self.assertEqual(ratchet.over(found), {("files", "ipc/a.h:A"): 3})

    def test_a_long_file_says_why(self):
        code = "int a;\n" * 188
        self.assertEqual(ratchet.over(ratchet.measure({"ipc/a.cc": code + "// why\n" * 12})), {})
        self.assertEqual(ratchet.over(ratchet.measure({"ipc/a.cc": code + "int b;\n" * 2 + "// why\n" * 10})),
                         {("comments", "ipc"): 2})

    def test_a_line_without_a_reason_is_refused(self):
        for line in ("members ipc/b.h:Large 17", "members ipc/b.h:Large many a record", "height ipc/b.h 1 a record"):
            with self.assertRaises(ValueError):
                ratchet.read(line + "\n")


if __name__ == "__main__":
    unittest.main()
