"""Each house rule catches a planted breach in a small tree, and passes the same tree without it.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEAD = "// A file.\n// SPDX-License-Identifier: Apache-2.0\n"


class RulesTest(unittest.TestCase):
    def setUp(self):
        self.tree = pathlib.Path(tempfile.mkdtemp(prefix="dial9-rules-"))
        self.addCleanup(shutil.rmtree, self.tree)
        (self.tree / "tools").mkdir()
        for tool in ("tidy", "check_layers", "bootstrap"):
            shutil.copy(ROOT / "tools" / tool, self.tree / "tools" / tool)
        self.write("CMakeLists.txt", "project(x)\n")
        self.write("src/base/ok.h", HEAD + "#pragma once\ninline int one() { return 1; }\n")

    def write(self, name, text):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_tool(self, *command):
        done = subprocess.run([str(self.tree / "tools" / command[0]), *command[1:]],
                              capture_output=True, text=True, cwd=self.tree)
        return done.returncode, done.stdout + done.stderr

    def assert_breach(self, tool, words, *args):
        code, out = self.run_tool(tool, *args)
        self.assertEqual(code, 1, out)
        self.assertIn(words, out)

    def test_a_clean_tree_passes(self):
        self.assertEqual(self.run_tool("tidy")[0], 0, self.run_tool("tidy")[1])
        self.assertEqual(self.run_tool("check_layers")[0], 0)

    def test_a_reader_that_includes_the_recorder_is_caught(self):
        self.write("src/analysis/bad.cc", HEAD + '#include "recorder/collector.h"\n')
        self.assert_breach("check_layers", "analysis may not use recorder")

    def test_sources_may_include_the_symbol_tables_only(self):
        self.write("src/sources/ok.cc", HEAD + '#include "symbolize/symbol_scan.h"\n')
        self.assertEqual(self.run_tool("check_layers")[0], 0)
        self.write("src/sources/bad.cc", HEAD + '#include "symbolize/symbolizer.h"\n')
        self.assert_breach("check_layers", "not symbolize/symbolizer.h")

    def test_a_reader_that_includes_the_recording_headers_is_caught(self):
        self.write("src/analysis/bad.cc", HEAD + "#include <dial9/event.h>\n")
        self.assert_breach("check_layers", "may not use the recording headers")

    def test_a_public_header_that_includes_an_internal_one_is_caught(self):
        self.write("include/dial9/bad.h", HEAD + '#include "format/wire.h"\n')
        self.assert_breach("check_layers", "which isn't installed")

    def test_a_platform_if_outside_base_is_caught(self):
        self.write("src/recorder/bad.cc", HEAD + "#ifdef __linux__\n#endif\n")
        self.assert_breach("check_layers", "platform #if")

    def test_a_web_folder_that_imports_upwards_is_caught(self):
        self.write("web/src/base/bad.ts", "import { x } from '../ui/panel';\n")
        self.assert_breach("check_layers", "base may not use ui")

    def test_a_long_line_is_caught(self):
        self.write("src/base/bad.cc", HEAD + "int x = 0;" + " " * 100 + "// far\n")
        self.assert_breach("tidy", "columns", "--quick")

    def test_a_long_function_is_caught(self):
        self.write("src/base/bad.cc", HEAD + "void f() {\n" + "  g();\n" * 80 + "}\n")
        self.assert_breach("tidy", "f has 82 lines", "--quick")

    def test_an_allowed_long_function_may_only_shrink(self):
        self.write("src/base/bad.cc", HEAD + "void f() {\n" + "  g();\n" * 80 + "}\n"
                   + "void h() {}\n" * 60)
        self.write("tools/tidy_allowed.txt", "src/base/bad.cc:f 90\n")
        self.assert_breach("tidy", "lower it", "--quick")
        self.write("tools/tidy_allowed.txt", "src/base/bad.cc:f 82\n")
        self.assertEqual(self.run_tool("tidy", "--quick")[0], 0, self.run_tool("tidy", "--quick")[1])

    def test_an_unfinished_mark_is_caught(self):
        self.write("src/base/bad.cc", HEAD + "// TO" + "DO later\n")
        self.assert_breach("tidy", "unfinished mark", "--quick")

    def test_a_header_that_does_not_compile_alone_is_caught(self):
        self.write("src/base/bad.h", HEAD + "#pragma once\nstd::string name();\n")
        self.assert_breach("tidy", "does not compile alone")

    def test_a_dead_path_in_a_document_is_caught(self):
        self.write("README.md", "# x\nSee `src/base/gone.h`.\n")
        self.assert_breach("tidy", "dead path src/base/gone.h", "--quick")

    def test_bootstrap_says_what_it_would_do_and_does_nothing(self):
        code, out = self.run_tool("bootstrap", "--dry-run", "test")
        self.assertEqual(code, 0, out)
        self.assertRegex(out, "would install|nothing is missing")

    def test_bootstrap_refuses_an_unknown_argument(self):
        self.assertEqual(self.run_tool("bootstrap", "--wrong")[0], 2)


if __name__ == "__main__":
    unittest.main()
