"""Every check of tools/ passes a clean tree and fails, with the right words, on each violation planted in it.

A check that cannot fail is worth nothing, and nobody would notice.
"""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"

CLEAN = {
    "src/LAYERS": "base   -      *\nnet    base   op.h\nwire   base   codec.h\n",
    "src/base/base.h": "#ifndef BASE_BASE_H\n#define BASE_BASE_H\n#include <stdint.h>\nint32_t base_one(void);\n#endif\n",
    "src/base/base.c": '#include "base/base.h"\n\nint32_t base_one(void) {\n    return 1;\n}\n',
    "src/net/op.h": '#ifndef NET_OP_H\n#define NET_OP_H\n#include "base/base.h"\n#endif\n',
    "src/net/op.c": '/* Rule A-1. The word malloc() in a comment is fine, and "strcpy(" in a text. */\n#include "net/op.h"\n#include <uv.h>\n',
    "src/net/heap.h": '#include "base/base.h"\n',
    "tests/x_test.py": "# rule D1-7\n",
    "docs/BEHAVIOUR.md": "| A-1 | the first rule |\n\n- **D1-7** the second\n",
    ".clang-format": (TOOLS.parent / ".clang-format").read_text(encoding="utf-8"),
}
LONG_BODY = "    x++;\n" * 60


class Checks(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="igk-checks-"))
        self.addCleanup(shutil.rmtree, self.root)
        for path, text in CLEAN.items():
            self.plant(path, text)

    def plant(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def outcome(self, check):
        run = subprocess.run([TOOLS / check, self.root], capture_output=True, text=True, check=False)
        return run.returncode, run.stdout + run.stderr

    def passes(self, check):
        self.assertEqual(self.outcome(check), (0, ""))

    def fails(self, check, *words):
        code, text = self.outcome(check)
        self.assertNotEqual(code, 0, f"{check} let it pass")
        for word in words:
            self.assertIn(word, text)

    def test_every_check_passes_the_clean_tree(self):
        for check in ("layers", "size", "words", "headers", "format", "rules"):
            with self.subTest(check):
                self.passes("check_" + check)

    def test_layers_refuses_an_upward_include(self):
        self.plant("src/base/up.c", '#include "net/op.h"\n')
        self.fails("check_layers", "src/base/up.c:1: base may not include net")

    def test_layers_refuses_a_private_header(self):
        self.plant("src/LAYERS", CLEAN["src/LAYERS"].replace("wire   base ", "wire   base net "))
        self.plant("src/wire/x.c", '#include "net/op.h"\n#include "net/heap.h"\n')
        self.fails("check_layers", "src/wire/x.c:2: net/heap.h is private to net")

    def test_layers_refuses_a_bare_name_and_an_unlisted_folder(self):
        self.plant("src/net/x.c", '#include "op.h"\n')
        self.plant("src/extra/x.c", "int x;\n")
        self.fails("check_layers", 'src/net/x.c:1: "op.h": write it as', "src/extra/x.c:1: its folder is not in LAYERS")

    def test_layers_refuses_libuv_outside_net(self):
        self.plant("src/wire/x.c", "#include <uv.h>\n")
        self.fails("check_layers", "src/wire/x.c:1: libuv")

    def test_size_refuses_a_long_function_also_with_a_signature_of_two_lines(self):
        self.plant("src/net/x.c", "int long_one(int x,\n             int y) {\n" + LONG_BODY + "    return x + y;\n}\n")
        self.fails("check_size", "src/net/x.c:1: 64 lines, 60 allowed: int long_one")

    def test_size_lets_a_reason_excuse_it_and_a_test_be_long(self):
        self.plant("src/net/x.c", "/* long: one table */\nint long_one(int x) {\n" + LONG_BODY + "    return x;\n}\n")
        self.plant("src/net/y_test.c", "int long_one(int x) {\n" + LONG_BODY + "    return x;\n}\n")
        self.passes("check_size")

    def test_size_does_not_carry_an_excuse_over(self):
        self.plant("src/net/x.c", "/* long: one table */\n\nint a(int x) {\n    return x;\n}\n\nint b(int x) {\n" + LONG_BODY + "    return x;\n}\n")
        self.fails("check_size", "src/net/x.c:7")

    def test_size_refuses_a_long_file(self):
        self.plant("src/net/x.h", "/* */\n" * 801)
        self.fails("check_size", "src/net/x.h:801")

    def test_words_refuses_each_banned_call(self):
        for call in ("strcpy", "strcat", "sprintf", "vsprintf", "atoi", "atol", "rand", "time", "gettimeofday", "malloc", "calloc", "realloc", "free", "strdup"):
            with self.subTest(call):
                self.plant("src/net/x.c", f"int x(void) {{\n    {call}(0);\n}}\n")
                self.fails("check_words", f"src/net/x.c:2: {call}(): use ")

    def test_words_lets_base_allocate_and_members_have_any_name(self):
        self.plant("src/base/mem.c", "void *mem_take(int n) {\n    return malloc(n);\n}\n")
        self.plant("src/net/x.c", "void x(struct a *a) {\n    a->free(a);\n    pool.time(a);\n    mem_free(a);\n}\n")
        self.passes("check_words")

    def test_words_refuses_leftovers_and_places_outside(self):
        self.plant("docs/X.md", "a TO" "DO here\nsee ../sha" "red/spec\nor /wo" "rk/main\n")
        self.fails("check_words", "docs/X.md:1: unfinished", "docs/X.md:2: names a place", "docs/X.md:3: names a place")

    def test_headers_refuses_one_that_needs_another(self):
        self.plant("src/net/x.h", "uint8_t x(void);\n")
        self.fails("check_headers", "uint8_t")

    def test_format_refuses_another_layout(self):
        self.plant("src/net/x.c", "int x( void ){return 1;}\n")
        self.fails("check_format", "src/net/x.c")

    def test_rules_refuses_an_unknown_rule_in_sources_and_tests(self):
        self.plant("src/net/x.c", "/* D1-8, KIP-74, UTF-8, CRC-32 */\n")
        self.plant("tests/y.py", "# B-" "99\n")
        self.fails("check_rules", "src/net/x.c:1: D1-8", "tests/y.py:1: B-" "99")
        self.assertNotIn("KIP", self.outcome("check_rules")[1])
        self.assertNotIn("-32", self.outcome("check_rules")[1])

    def test_rules_refuses_an_api_that_is_not_listed_as_it_is_served(self):
        self.plant("src/kafka/api.def", "API( 1, fetch, 4, 18, 4, x)\nAPI(75, describe_all, 0, 0, 0, x)\n")
        self.plant("docs/BEHAVIOUR.md", CLEAN["docs/BEHAVIOUR.md"] + "\n| 1 | Fetch | 4–17 | 12 |\n| 75 | DescribeAll | 0 | 0 |\n")
        self.fails("check_rules", "without ('1', 'Fetch', '4–18')", "('1', 'Fetch', '4–17') is not what")
        self.plant("src/kafka/api.def", "API( 1, fetch, 4, 17, 4, x)\nAPI(75, describe_all, 0, 0, 0, x)\n")
        self.passes("check_rules")

    def test_rules_refuses_a_setting_without_a_limit(self):
        self.plant("src/app/config.def", 'VARIABLE(MAX_A, max_a, NUMBER, "1")\nVARIABLE(MAX_B, max_b, SIZE,\n  "1")\nVARIABLE(C, c, TEXT, "1")\n')
        self.plant("docs/LIMITS.md", "| `MAX_A` |\n")
        code, text = self.outcome("check_rules")
        self.assertEqual((code, text), (1, "src/app/config.def: MAX_B does not stand in docs/LIMITS.md\n"))


if __name__ == "__main__":
    unittest.main()
