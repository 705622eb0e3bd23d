#!/usr/bin/env python3
"""The checks are checked: each finds what is planted, and lets good code pass."""

import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True

import config_keys
import documents
import includes
import lengths
import source
import stray


class Planted(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def plant(self, name, text, mode=0o644):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        os.chmod(path, mode)

    def found(self, check):
        return [str(finding) for finding in check.check(self.root)]

    def assert_finds(self, check, *pieces):
        found = self.found(check)
        self.assertEqual(len(found), len(pieces), found)
        for text, piece in zip(found, pieces):
            self.assertIn(piece, text)


class Includes(Planted):
    def test_layers(self):
        bad = [("log/a.h", '#include "consensus/core/core.h"'), ("log/b.cc", "#include <boost/asio.hpp>"),
               ("log/c.cc", '#  include "transport/fabric.h"'),
               ("consensus/core/d.cc", '#include "transport/fabric.h"'),
               ("consensus/core/e.cc", '#include "consensus/replica/loop.h"'),
               ("consensus/core/f.cc", "#include <thread>"), ("consensus/core/g.cc", "#include <sys/socket.h>"),
               ("transport/tcp/h.cc", '#include "consensus/core/core.h"'),
               ("transport/tcp/i.cc", '#include "transport/rdma/lane.h"'),
               ("include/lockstep/j.h", "#include <google/protobuf/message.h>"),
               ("include/lockstep/k.h", "#include <boost/asio/io_context.hpp>"),
               ("include/lockstep/l.h", '#include "log/ring.h"'),
               ("tools/m.cc", '#include "log/ring.h"'), ("examples/n.cc", '#include "proto/config.pb.h"')]
        for name, line in bad:
            self.plant(name, f"// one\n{line}\n")
        found = self.found(includes)
        self.assertEqual([text.split(": ")[0] for text in found], sorted(f"{name}:2" for name, _ in bad))

    def test_good_ones_pass(self):
        self.plant("log/a.cc", '#include "log/a.h"\n#include <lockstep/types.h>\n#include <xxhash.h>\n')
        self.plant("consensus/core/b.cc", '#include "log/ring.h"\n#include "transport/types.h"\n#include <span>\n')
        self.plant("include/lockstep/asio.h", "#include <boost/asio/async_result.hpp>\n#include <lockstep/replica.h>\n")
        self.plant("transport/tcp/c.cc", '#include "transport/tcp/c.h"\n#include "transport/fabric.h"\n')
        self.plant("tests/unit/d.cc", '#include "consensus/core/core.h"\n#include <thread>\n')
        self.plant("tools/e/e.cc", '#include "tools/e/e.h"\n#include <lockstep/replica.h>\n')
        self.assert_finds(includes)

    def test_calls_in_the_core(self):
        self.plant("consensus/core/a.cc", "auto a = std::chrono::steady_clock::now();\n"
                                          "// steady_clock in a comment\nauto b = \"time(nullptr)\";\n"
                                          "auto c = time(nullptr);\nstd::random_device d{};\n"
                                          "std::cout << 1;\nint runtime(int);\n")
        self.assertEqual({int(text.split(":")[1]) for text in self.found(includes)}, {1, 4, 5, 6})

    def test_library_never_exits_or_prints(self):
        self.plant("transport/a.cc", "void f() { std::exit(1); }\nvoid g() { std::cerr << 1; }\n")
        self.assert_finds(includes, "exit", "std::cerr")


def body(lines):
    return "{\n" + "    x();\n" * lines + "}\n"


class Lengths(Planted):
    def test_long_functions_are_found(self):
        self.plant("a.cc", "namespace n {\nvoid f(int a)\n" + body(80) + "int g() const " + body(10) +
                   "class C {\n    void h() " + body(80) + "};\n}\n")
        self.assert_finds(lengths, "a.cc:2: this function has 83 lines", "this function has 82 lines")

    def test_kinds_of_functions(self):
        long = body(80)
        for header in ("C::C(int a) : a_(a), b_{1} ", "C::C() noexcept : a_{} ", "auto f() -> int ", "TEST(A, b) ",
                       "void f() override ", "template <class T> requires(sizeof(T) > 1) void f(T t) "):
            with self.subTest(header=header):
                self.plant("a.cc", header + long)
                self.assertEqual(len(self.found(lengths)), 1, self.found(lengths))

    def test_what_is_no_function_passes(self):
        self.plant("a.cc", "const int k[] = {\n" + "    f(1),\n" * 80 + "};\nstruct S {\n" + "    int a = g(1);\n" * 80 +
                   "};\nenum class E : int {\n" + "    a,\n" * 80 + "};\n" + "#define M(a) do { \\\n a; } while (0)\n")
        self.assert_finds(lengths)

    def test_braces_in_strings_and_comments_do_not_count(self):
        self.plant("a.cc", "void f() {\n    g(\"{\", '{');  // {\n    h(R\"(}})\"); /* { */\n}\n" +
                   "int x = 1'000;\n" + "void g() " + body(60))
        self.assert_finds(lengths)

    def test_long_files_and_lines(self):
        self.plant("a.h", "int a;\n" * 501)
        self.plant("b.h", "x" * 121 + "\n")
        self.assert_finds(lengths, "has 501 lines", "has 121 columns")


class Stray(Planted):
    def test_names(self):
        for name in ("a.cc~", "b.orig", "x/.DS_Store", "y/core", "z/lib.so", "#a#"):
            self.plant(name, "")
        self.plant("tests/fuzz/corpus/x/crash-" + "0a" * 20, "")
        self.plant("tests/fuzz/corpus/x/empty", "")
        self.plant("consensus/core/core.h", "")
        self.assertEqual(len(self.found(stray)), 7)

    def test_contents(self):
        self.plant("a.dat", b"a\0b")
        self.plant("b.txt", "x" * 400_001)
        self.plant("c.cc", "// TO" + "DO: later\n")
        self.plant("d.md", "see /ro" + "ot/notes\n")
        self.plant("tests/fuzz/corpus/x/1", b"\0TO" + b"DO")
        self.assert_finds(stray, "is binary", "400001 bytes", "left open", "path of one machine")


class ConfigKeys(Planted):
    def test_missing_and_unexplained_keys(self):
        self.plant(config_keys.SCHEMA, "message Config {\n    optional uint32 id = 1;\n    optional bool form = 2;\n"
                                       "    repeated Member members = 3;\n}\n")
        self.plant(config_keys.SAMPLE, "# Which one.\nid: 1\nmembers { id: 1 }\n")
        self.assert_finds(config_keys, 'does not show "form"', 'no comment before "members"')


class Documents(Planted):
    def test_what_is_not_there(self):
        self.plant("tools/test", "", 0o755)
        self.plant("tools/demo", "", 0o644)
        self.plant("tools/CMakeLists.txt", "lockstep_program(lockstep-counter a.cc)\n")
        self.plant("README.md", "    tools/demo\n    tools/test\n    tools/gone\n`build/release/bin/lockstep-counter`\n"
                                "`build/release/bin/lockstep-nothing`\n[a](docs/none.md) [b](tools/test) "
                                "[c](https://example.org)\n")
        self.assert_finds(documents, "tools/demo, which is not executable", "tools/gone, which is not there",
                          "lockstep-nothing, which nothing builds", "docs/none.md, which is not there")


class Source(unittest.TestCase):
    def test_blanking_keeps_places(self):
        text = 'a("x\\"{"); // {\n/* {\n */ b(\'{\'); R"(})";\n'
        blanked = source.without_comments_and_strings(text)
        self.assertEqual(len(blanked), len(text))
        self.assertEqual(blanked.count("\n"), text.count("\n"))
        self.assertNotIn("{", blanked)
        self.assertNotIn("}", blanked)


if __name__ == "__main__":
    unittest.main()
